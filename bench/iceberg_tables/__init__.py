"""Metadata-only Iceberg tables for the planning benches: as Java writes them, and as PyIceberg does."""
