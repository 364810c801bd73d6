"""Delta tables that Spark's own connector made: tamis reads the same rows, and prunes what holds none of them."""
# ruff: noqa: S608 - statements are made of the tests' own names

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tamis
from tests.making.sparks import Started

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.engine

PARTITIONS = {
    "p_bool": "boolean",
    "p_byte": "tinyint",
    "p_short": "smallint",
    "p_int": "int",
    "p_long": "bigint",
    "p_float": "float",
    "p_double": "double",
    "p_dec": "decimal(9,2)",
    "p_date": "date",
    "p_ts": "timestamp",
    "p_ntz": "timestamp_ntz",
    "p_str": "string",
}
ROWS = """
(1, true, 1, 2, 3, 4, 1.5, 2.5, 12.34, date'2024-01-15', timestamp'2024-01-15 12:00:00.123456',
 timestamp_ntz'2024-01-15 12:00:00', 'a b/c%=é'),
(2, false, -1, -2, -3, -4, -1.5, double('NaN'), -12.30, date'1969-12-31', timestamp'1969-12-31 23:59:59.5',
 timestamp_ntz'0001-01-01 00:00:00', ''),
(3, null, null, null, null, null, null, null, null, null, null, null, null),
(4, true, 127, 32767, 2147483647, 9223372036854775807, float('Infinity'), -0.0, 9999999.99, date'9999-12-31',
 timestamp'9999-12-31 23:59:59.999999', timestamp_ntz'9999-12-31 23:59:59.999999', 'x:y#?')
"""


@pytest.fixture(scope="module")
def spark(started_spark: Started) -> SparkSession:
    if started_spark.missing:
        pytest.skip(started_spark.missing)
    return started_spark.session


def _same(spark: SparkSession, path: Path, conditions: Iterable[str]) -> dict[str, int]:
    """Check that rows are the connector's, and that a file without a matching row is read only if it may hold one."""
    kept = {}
    table = tamis.open(path)
    columns = spark.read.format("delta").load(str(path)).columns
    for condition in conditions:
        plan = table.plan(condition, spark=spark)
        mine = _rows(plan.read(spark), columns)
        assert mine == _rows(spark.read.format("delta").load(str(path)).filter(condition), columns), condition
        kept[condition] = len(plan.files)
    return kept


def _rows(frame: DataFrame, columns: list[str]) -> list[str]:
    assert frame.columns == columns
    return sorted(repr(row.asDict(recursive=True)) for row in frame.collect())


def test_partition_columns_of_every_type(spark: SparkSession, tmp_path: Path) -> None:
    columns = ", ".join(f"{name} {kind}" for name, kind in PARTITIONS.items())
    spark.sql(
        f"create table delta.`{tmp_path}` (id int, {columns}) using delta partitioned by ({', '.join(PARTITIONS)})"
    )
    spark.sql(f"insert into delta.`{tmp_path}` values {ROWS}")
    kept = _same(
        spark,
        tmp_path,
        [
            "true",
            "p_bool and p_date >= '2024-01-15'",
            "p_ts < timestamp'1970-01-01 00:00:00' and p_dec = -12.3",
            "p_str = 'a b/c%=é' or p_int = 2147483647",
            "p_double = 0 or p_ntz is null",
            "p_long > 3 and id < 3",
            "isnan(p_double) or p_float < 0",
        ],
    )
    assert kept["p_bool and p_date >= '2024-01-15'"] == 2
    assert kept["p_ts < timestamp'1970-01-01 00:00:00' and p_dec = -12.3"] == 1
    assert kept["p_str = 'a b/c%=é' or p_int = 2147483647"] == 2
    assert kept["p_long > 3 and id < 3"] == 1


@pytest.mark.parametrize("mode", ["name", "id"])
def test_column_mapping_vectors_and_a_checkpoint(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    """Renamed, dropped and re-added columns, nested ones too; rows deleted by vectors; the log folded on the way."""
    t = f"delta.`{tmp_path}`"
    spark.sql(
        f"create table {t} (id bigint, part string, s struct<a int, b string>, gone int, l array<struct<x int>>)"
        f" using delta partitioned by (part) tblproperties ('delta.columnMapping.mode' = '{mode}',"
        " 'delta.enableDeletionVectors' = 'true', 'delta.checkpointInterval' = '3',"
        " 'delta.checkpointPolicy' = 'v2')"
    )
    struct = "named_struct('a', int(id), 'b', string(id)), int(id), array(named_struct('x', int(id)))"
    data = f"select id, if(id < 50, 'a b', 'c'), {struct}"
    spark.sql(f"insert into {t} {data} from range(0, 100, 1, 2)")
    spark.sql(f"alter table {t} rename column id to key")
    spark.sql(f"alter table {t} rename column part to region")
    spark.sql(f"alter table {t} rename column s.a to c")
    spark.sql(f"alter table {t} drop column gone")
    spark.sql(f"alter table {t} add column gone string")
    spark.sql(
        f"insert into {t} select id, 'd', named_struct('c', int(id), 'b', 'new'), null, 'back'"
        " from range(100, 110, 1, 1)"
    )
    spark.sql(f"delete from {t} where key % 7 = 3")
    spark.sql(f"delete from {t} where key = 105")
    kept = _same(
        spark, tmp_path, ["true", "key < 10", "region = 'c' and s.c >= 60", "gone is null and region <> 'c'"]
    )
    assert kept["key < 10"] == 1
    table = tamis.open(tmp_path)
    assert table.plan("region = 'd'").files["deletes"].to_pylist() == [1]
    assert tamis.open(tmp_path, version=1).plan("true").stats.kept == kept["true"] - 1


def test_type_widening_and_in_commit_timestamps(spark: SparkSession, tmp_path: Path) -> None:
    t = f"delta.`{tmp_path}`"
    spark.sql(
        f"create table {t} (b tinyint, i int, f float, d decimal(5,2), day date, n int) using delta"
        " tblproperties ('delta.enableTypeWidening' = 'true', 'delta.enableInCommitTimestamps' = 'true',"
        " 'delta.feature.timestampNtz' = 'supported')"
    )
    spark.sql(
        f"insert into {t} values (1, 100, 1.5, 123.45, date'2024-01-15', 7), (-1, -100, -1.5, -0.01, null, null)"
    )
    for column, kind in (
        ("b", "int"),
        ("i", "bigint"),
        ("f", "double"),
        ("d", "decimal(20,4)"),
        ("day", "timestamp_ntz"),
    ):
        spark.sql(f"alter table {t} alter column {column} type {kind}")
    spark.sql(
        f"insert into {t} values (100000, 5000000000, 1e300, 1234567890123456.7891,"
        " timestamp_ntz'2024-01-15 12:00:00', 8)"
    )
    kept = _same(
        spark,
        tmp_path,
        [
            "true",
            "i > 4000000000",
            "b = 1",
            "f < 0",
            "d > 123.44 and d < 124",
            "day <= timestamp_ntz'2024-01-15 00:00:00'",
        ],
    )
    assert kept["i > 4000000000"] == 1
    times = [one.made_ms for one in tamis.open(tmp_path).inspect().history]
    second = times[-2]
    assert tamis.open(tmp_path, as_of_ms=second).snapshot_id == 1
    assert tamis.open(tmp_path, as_of_ms=second - 1).snapshot_id == 0
    with pytest.raises(tamis.errors.NoSuchSnapshotError):
        tamis.open(tmp_path, as_of_ms=times[-1] - 1)


def test_generated_columns_and_joins(spark: SparkSession, tmp_path: Path) -> None:
    """A condition on the source prunes the partitions of the column that is generated of it; join keys do as well."""
    t = f"delta.`{tmp_path}`"
    spark.sql(
        f"create table {t} (id bigint, ts timestamp, day date generated always as (cast(ts as date)))"
        " using delta partitioned by (day)"
    )
    spark.sql(
        f"insert into {t} (id, ts) select id, timestamp'2024-01-01 00:00:00' + make_interval(0, 0, 0, int(id))"
        " from range(0, 40, 1, 1)"
    )
    condition = "ts >= timestamp'2024-01-30 00:00:00' and ts < timestamp'2024-01-31 00:00:00'"
    kept = _same(spark, tmp_path, [condition, "true"])
    assert kept[condition] <= 3
    assert kept["true"] == 40
    keys = spark.createDataFrame([(3,), (17,)], "id bigint")
    plan = tamis.open(tmp_path).plan_join(keys, "id")
    assert len(plan.plan.files) == 2
    assert sorted(row.id for row in plan.read().collect()) == [3, 17]


def test_planned_on_executors(spark: SparkSession, tmp_path: Path) -> None:
    """A checkpoint with a tail of commits: the plan of the executors is the local one."""
    t = f"delta.`{tmp_path}`"
    spark.sql(
        f"create table {t} (id bigint, p int) using delta partitioned by (p)"
        " tblproperties ('delta.checkpointInterval' = '2')"
    )
    for number in range(4):
        spark.sql(f"insert into {t} select id, {number} from range({number * 10}, {number * 10 + 10}, 1, 1)")
    spark.sql(f"delete from {t} where p = 1")
    table = tamis.open(tmp_path)
    here = table.plan("id > 5")
    there = table.plan("id > 5", spark=spark, executors="always")
    assert there.files.sort_by("path") == here.files.sort_by("path")
    assert here.stats.kept == 3
