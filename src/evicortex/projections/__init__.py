"""Derived and rebuildable: full-text rows, vectors, time mentions, indexes."""
