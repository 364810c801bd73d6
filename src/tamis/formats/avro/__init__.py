"""Avro container files to columns of Arrow: one way for every format whose metadata is Avro."""
