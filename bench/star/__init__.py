"""A star schema for the join benches: TPC-H's lineitem as an evolved Iceberg table, its dimensions as plain files."""
