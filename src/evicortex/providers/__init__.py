"""Encoders, token counters and other models; one file each, imported lazily."""
