"""Data sets: each a declaration (source, digest, licence) and a record mapper."""
