"""Iceberg tables of format versions 1, 2 and 3."""
