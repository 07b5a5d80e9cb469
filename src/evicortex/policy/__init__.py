"""Pure decisions: no SQL and no models."""
