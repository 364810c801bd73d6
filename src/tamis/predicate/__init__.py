"""What the user asks: SQL text or a built condition, bound to a table's columns."""
