"""Paimon tables: partitions, buckets and statistics of keys and values."""
