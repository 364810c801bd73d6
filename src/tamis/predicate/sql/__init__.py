"""Text to nodes and back: Spark's grammar of conditions, constants folded, conditions written out again."""
