"""What a join's other side says of a table's files: keys, ranges, tuples, bloom filters, and their credit."""
