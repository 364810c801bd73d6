"""The rows of data files, read with Arrow where Spark's own readers cannot read them right."""
