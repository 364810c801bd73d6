"""Generated Delta tables: their logs alone, no data files."""
