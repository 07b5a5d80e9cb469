"""The ways of the data: remember, recall, purge, rebuild, sync."""
