"""Extractors under comparison, beside those of the product."""
