"""The only truth: evidence, claims, derivations, extractions and the audit chain."""
