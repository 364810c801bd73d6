"""What changes a table: plan, stage on Spark, commit, and on a lost race again. Knows an Edit, and no format."""
