# ruff: noqa: S608 - statements are made of the tests' own names
"""Features of Delta tables, made by Spark's own connector: the same rows, and files without a match are not read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tamis
from tests.making.sparks import Started

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def spark(started_spark: Started) -> SparkSession:
    if started_spark.missing:
        pytest.skip(started_spark.missing)
    return started_spark.session


def _rows(frame: DataFrame) -> list[str]:
    return sorted(map(repr, frame.collect()))


def _theirs(spark: SparkSession, path: Path) -> DataFrame:
    return spark.read.format("delta").load(str(path))


def test_clustered_tables_with_row_tracking_prune_by_statistics(spark: SparkSession, tmp_path: Path) -> None:
    """Liquid clustering has no partitions: bounds alone tell. Rows of row-tracking tables are rows as any."""
    t = f"delta.`{tmp_path}`"
    spark.sql(
        f"create table {t} (id bigint, name string) using delta cluster by (id) tblproperties"
        " ('delta.enableRowTracking' = 'true', 'delta.enableDeletionVectors' = 'true')"
    )
    for first in (0, 100, 200):
        spark.sql(f"insert into {t} select id, 'n' || id from range({first}, {first + 100}, 1, 1)")
    spark.sql(f"delete from {t} where id = 150")
    spark.sql(f"update {t} set name = 'new' where id = 250")
    table = tamis.open(tmp_path)
    plan = table.plan("id between 140 and 160", spark=spark)
    assert plan.stats.kept < plan.stats.files
    assert _rows(plan.read(spark)) == _rows(_theirs(spark, tmp_path).where("id between 140 and 160"))
    spark.sql(f"optimize {t} full")
    again = tamis.open(tmp_path)
    assert _rows(again.plan().read(spark)) == _rows(_theirs(spark, tmp_path))
    found = again.inspect()
    assert found.to_dict()["clustered_by"] == ("id",)
    assert "rowTracking" in str(found.to_dict())


def test_vectors_of_more_than_a_million_rows_are_read_on_executors(spark: SparkSession, tmp_path: Path) -> None:
    """Beyond so many deleted rows the driver decodes none: what executors decode must be the same rows."""
    t = f"delta.`{tmp_path}`"
    spark.sql(f"create table {t} (id bigint) using delta tblproperties ('delta.enableDeletionVectors' = 'true')")
    spark.sql(f"insert into {t} select id from range(0, 2400000, 1, 2)")
    spark.sql(f"delete from {t} where id % 2 = 0")
    plan = tamis.open(tmp_path).plan(spark=spark)
    assert set(plan.files["deletes"].to_pylist()) == {1}
    mine = plan.read(spark).selectExpr("count(*) n", "sum(id) s", "min(id) a", "max(id) b").first()
    theirs = _theirs(spark, tmp_path).selectExpr("count(*) n", "sum(id) s", "min(id) a", "max(id) b").first()
    assert mine == theirs
    assert mine is not None
    assert mine.n == 1_200_000


@pytest.mark.parametrize("policy", ["classic", "v2"])
def test_parts_and_sidecars_are_planned_on_executors(spark: SparkSession, tmp_path: Path, policy: str) -> None:
    """Each file of the checkpoint is a unit: the plan of the executors is the local one."""
    t, part_size = f"delta.`{tmp_path}`", "spark.databricks.delta.checkpoint.partSize"
    spark.conf.set(part_size, "3")
    try:
        spark.sql(
            f"create table {t} (id bigint, p int) using delta partitioned by (p)"
            f" tblproperties ('delta.checkpointInterval' = '2', 'delta.checkpointPolicy' = '{policy}')"
        )
        spark.sql(f"insert into {t} select id, int(id / 10) from range(0, 80, 1, 1)")
        spark.sql(f"delete from {t} where p = 1")
        spark.sql(f"insert into {t} select id, int(id / 10) from range(80, 90, 1, 1)")
    finally:
        spark.conf.unset(part_size)
    table = tamis.open(tmp_path)
    here = table.plan("id > 25 and id < 85", spark=spark, executors="never")
    there = table.plan("id > 25 and id < 85", spark=spark, executors="always")
    assert there.files.sort_by("path") == here.files.sort_by("path")
    assert here.stats.kept == there.stats.kept == 7
    pattern = "*.checkpoint.*.*.parquet" if policy == "classic" else "_sidecars/*.parquet"
    assert len(list((tmp_path / "_delta_log").glob(pattern))) > 1
    assert _rows(there.read(spark)) == _rows(_theirs(spark, tmp_path).where("id > 25 and id < 85"))
