"""Spark's rules of comparison: where a literal cuts the values of a column."""
