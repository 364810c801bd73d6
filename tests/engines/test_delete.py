# ruff: noqa: S608 - SQL made of the tests' own names
"""Deletes on evolved tables, beside Spark's own: the same rows stay, and each reads what the other has written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyiceberg.table import StaticTable

import tamis
from tamis.errors import BindError
from tests.engines.appending import entries, manifests
from tests.engines.conftest import Warehouse
from tests.engines.tables import execute

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.engine

COLUMNS = (
    "id int, region string, ts timestamp, x double, amount decimal(9, 2), "
    "info struct<city: string, n: int>, tags array<string>"
)
LINEAGE = ("_row_id", "_last_updated_sequence_number")
VALUES = (
    "cast(id as int) id",
    "element_at(array('eu', 'us', null, 'uk'), cast(1 + id % 4 as int)) region",
    "timestamp_micros(id * 40000000001) ts",
    "case id % 5 when 0 then double('NaN') when 1 then null when 2 then -0.0D else id / 4 end x",
    "case when id % 6 > 0 then cast(id / 3 as decimal(9, 2)) end amount",
    "case when id % 7 > 0 then named_struct('city', 'c' || id % 3, 'n', cast(id as int)) end info",
    "case when id % 3 > 0 then array('a', null, 't' || id) end tags",
)
ROUNDS = (
    "region = 'eu' and id < 130",
    "x <= 5 or info.city = 'c1'",
    "id between 40 and 60",
    "not (region = 'us') and amount > 30 or ts < timestamp '1970-02-01 00:00:00' and id % 2 = 0",
)
"""No comparison that NaN satisfies: Java skips files by bounds that leave NaN out, and keeps such rows."""


KINDS = (
    (1, "copy-on-write"),
    (2, "copy-on-write"),
    (2, "merge-on-read"),
    (3, "copy-on-write"),
    (3, "merge-on-read"),
)


def history(spark: SparkSession, table: str, version: int, mode: str) -> None:
    """A table of four specs, with a renamed and a widened column, and deletes of Spark's own from version 2 on."""
    properties = f"'format-version' = '{version}', 'write.delete.mode' = '{mode}'"
    change = f"alter table {table}"
    execute(spark, f"create table {table} ({COLUMNS}) using iceberg tblproperties ({properties})")
    insert(spark, table, 0, 60)
    execute(spark, f"{change} add partition field region")
    insert(spark, table, 60, 120)
    if version > 1:
        execute(spark, f"delete from {table} where id in (3, 61, 62, 119)")
    execute(spark, f"{change} drop partition field region", f"{change} add partition field bucket(3, id)")
    execute(spark, f"{change} add partition field months(ts)", f"{change} alter column id type bigint")
    insert(spark, table, 120, 160)
    execute(spark, f"{change} add partition field info.city")
    insert(spark, table, 160, 190)


def insert(spark: SparkSession, table: str, first: int, end: int) -> None:
    spark.range(first, end, 1, 2).selectExpr(*VALUES).writeTo(table).append()


def rows(spark: SparkSession, table: str) -> list[str]:
    spark.sql(f"refresh table {table}")
    return sorted(map(repr, spark.table(table).collect()))


def lineage(spark: SparkSession, table: str) -> dict[int, tuple[int, int]]:
    """The id of each row, and when it was changed, as Iceberg's own reader tells them."""
    spark.sql(f"refresh table {table}")
    return {row[0]: (row[1], row[2]) for row in spark.sql(f"select id, {', '.join(LINEAGE)} from {table}").collect()}


def ours(spark: SparkSession, path: str) -> list[str]:
    return sorted(map(repr, tamis.open(path, cache=False).plan().read(spark).collect()))


def check_manifests(path: str) -> None:
    """Each has files of one spec alone, with as many partition values as the spec has fields, and true counts."""
    table = tamis.open(path, cache=False)
    widths = {spec.spec_id: len(spec.fields) for spec in table.source.specs}
    for one in entries(table):
        assert len(one["partition"]) == widths[one["list"]["partition_spec_id"]]
    for one in manifests(table):
        assert one["added_files_count"] + one["existing_files_count"] + one["deleted_files_count"] > 0


@pytest.mark.parametrize(("version", "mode"), KINDS)
def test_deletes_leave_the_rows_that_sparks_own_leave(warehouse: Warehouse, version: int, mode: str) -> None:
    """Round by round, by turns: tamis and Spark delete from one table, Spark alone from the other."""
    spark, name = warehouse.spark, f"del_{version}_{mode[:4]}"
    mixed, alone = f"ice.db.{name}", f"ice.db.{name}_spark"
    path = warehouse.path(name)
    for table in (mixed, alone):
        history(spark, table, version, mode)
    assert rows(spark, mixed) == rows(spark, alone)
    for number, where in enumerate(ROUNDS):
        execute(spark, f"delete from {alone} where {where}")
        if number % 3 == 2:
            spark.sql(f"refresh table {mixed}")
            execute(spark, f"delete from {mixed} where {where}")
        else:
            before = lineage(spark, mixed) if version > 2 else {}
            done = tamis.open(path, cache=False).delete(where, spark=spark)
            if version > 2:
                kept = lineage(spark, mixed)
                assert kept == {id_: before[id_] for id_ in kept}  # a row that is moved stays itself
                mine = done.table.plan().read(spark, columns=["id"], metadata_columns=list(LINEAGE)).collect()
                assert {row[0]: (row[1], row[2]) for row in mine} == kept
            assert done.rows > 0
            assert done.table.snapshot_id == done.snapshot_id
            check_manifests(path)
            assert (done.delete_files_added > 0, done.files_rewritten > 0) == (
                mode == "merge-on-read",
                mode == "copy-on-write",
            )
        assert rows(spark, mixed) == rows(spark, alone), where
        assert ours(spark, path) == rows(spark, alone), where
    if version < 3:
        newest = max(Path(path, "metadata").glob("v*.metadata.json"), key=lambda one: int(one.name[1:].split(".")[0]))
        theirs = StaticTable.from_metadata(str(newest)).scan().to_arrow()
        assert sorted(theirs["id"].to_pylist()) == sorted(row.id for row in spark.table(alone).collect())
    insert(spark, mixed, 500, 520)
    spark.sql(f"refresh table {mixed}")
    assert spark.table(mixed).count() == spark.table(alone).count() + 20


def test_summaries_count_as_sparks_do(warehouse: Warehouse) -> None:
    """Snapshots are watched by their counts: those of a delete by tamis are Spark's own.

    The file of the first has no deletes yet: Spark writes a file's older position deletes anew together with the new
    ones, and tamis leaves them beside them.
    """
    spark = warehouse.spark
    told: list[dict[str, Any]] = []
    for name in ("sum_tamis", "sum_spark"):
        history(spark, f"ice.db.{name}", 2, "merge-on-read")
        path = warehouse.path(name)
        if name == "sum_tamis":
            tamis.open(path, cache=False).delete("id = 130", spark=spark)
            tamis.open(path, cache=False).delete("region = 'eu' and id < 120", spark=spark, mode="copy-on-write")
        else:
            execute(spark, f"delete from ice.db.{name} where id = 130")
            execute(spark, f"alter table ice.db.{name} set tblproperties ('write.delete.mode' = 'copy-on-write')")
            execute(spark, f"delete from ice.db.{name} where region = 'eu' and id < 120")
        spark.sql(f"refresh table ice.db.{name}")  # the connector keeps what it has read for a while
        found = spark.sql(f"select operation, summary from ice.db.{name}.snapshots order by committed_at").collect()
        told.append({number: (row.operation, dict(row.summary)) for number, row in enumerate(found[-2:])})
    mine, theirs = told
    for number in (0, 1):
        assert mine[number][0] == theirs[number][0]
        counted = {key for key in theirs[number][1] if key.startswith(("deleted-", "removed-", "total-", "added-"))}
        counted -= {"added-files-size", "total-files-size"}
        differ = {key: (mine[number][1].get(key), theirs[number][1][key]) for key in counted}
        assert all(a == b for a, b in differ.values()), differ


@pytest.mark.parametrize(
    "condition",
    [
        *("rand() < 0.5 and id > 3", "id = 5 and nosuch(id) = 1"),
        # Every file is taken whole, or none is: nothing is read, and Spark refuses the condition all the same.
        *("id >= 0 or nosuch(id) = 1", "id > 99 and length(id, 1) = 2"),
    ],
)
def test_condition_that_spark_s_own_delete_refuses_is_refused(warehouse: Warehouse, condition: str) -> None:
    """One that answers otherwise when it is asked again, and one that Spark cannot read. Nothing is committed."""
    table = "ice.db.refused_delete"
    execute(warehouse.spark, f"create table if not exists {table} (id int) using iceberg")
    execute(warehouse.spark, f"insert into {table} select cast(id as int) from range(10)")
    opened = tamis.open(warehouse.path("refused_delete"))
    with pytest.raises(BindError, match="DELETE"):
        opened.delete(condition, spark=warehouse.spark)
    assert tamis.open(warehouse.path("refused_delete")).snapshot_id == opened.snapshot_id
