"""Measures: one question, one value; a missing result scores zero, never vanishes."""
