"""How Spark is told to list files."""

from __future__ import annotations

from tamis.spark.relation import listing_settings

KEPT = "spark.sql.hive.filesourcePartitionFileCacheSize"
THRESHOLD = "spark.sql.sources.parallelPartitionDiscovery.threshold"
PARALLELISM = "spark.sql.sources.parallelPartitionDiscovery.parallelism"


def test_near_files_are_listed_by_the_driver_and_far_ones_by_few_tasks() -> None:
    """By default each file is a task of its own: half a minute for ten thousand."""
    near = listing_settings(["/a/1.parquet", "file:///a/2.parquet"])
    assert int(near[THRESHOLD]) > 1_000_000
    assert PARALLELISM not in near
    far = listing_settings(["/a/1.parquet", "s3://lake/2.parquet"])
    assert int(far[THRESHOLD]) < 100
    assert int(far[PARALLELISM]) < 100


def test_what_is_listed_is_not_measured_to_be_kept() -> None:
    """Spark walks through all that it keeps to know its size, and no other relation ever asks for it."""
    assert listing_settings(["/a"])[KEPT] == listing_settings(["s3://lake/a"])[KEPT] == "0"
