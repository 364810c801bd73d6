"""Delta tables: what their logs say, as facts."""
