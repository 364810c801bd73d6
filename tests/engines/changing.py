# ruff: noqa: S608 - SQL made of the tests' own names
"""Evolved tables to change, twice: one for tamis, one for Spark alone; and what both are asked afterwards."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import tamis
from tests.engines.appending import entries, manifests
from tests.engines.conftest import Warehouse
from tests.engines.tables import execute

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["KINDS", "LINEAGE", "SOAK", "check_manifests", "history", "insert", "lineage", "ours", "rows", "twins"]

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
SOAK = os.environ.get("TAMIS_HYPOTHESIS_PROFILE") == "soak"
KINDS = (
    (1, "copy-on-write"),
    (2, "copy-on-write"),
    (2, "merge-on-read"),
    (3, "copy-on-write"),
    (3, "merge-on-read"),
)


def history(spark: SparkSession, table: str, version: int, mode: str, first: int | None = None) -> None:
    """A table of four specs, with a widened column, and deletes of Spark's own from version 2 on.

    first is the version that it begins with, if it is upgraded on its way: position deletes of version 2 stay.
    """
    modes = ", ".join(f"'write.{one}.mode' = '{mode}'" for one in ("delete", "update", "merge"))
    change = f"alter table {table}"
    execute(
        spark,
        f"create table {table} ({COLUMNS}) using iceberg tblproperties "
        f"('format-version' = '{first or version}', {modes})",
    )
    insert(spark, table, 0, 60)
    execute(spark, f"{change} add partition field region")
    insert(spark, table, 60, 120)
    if (first or version) > 1:
        execute(spark, f"delete from {table} where id in (3, 61, 62, 119)")
    if first is not None:
        execute(spark, f"{change} set tblproperties ('format-version' = '{version}')")
    execute(spark, f"{change} drop partition field region", f"{change} add partition field bucket(3, id)")
    execute(spark, f"{change} add partition field months(ts)", f"{change} alter column id type bigint")
    insert(spark, table, 120, 160)
    execute(spark, f"{change} add partition field info.city")
    insert(spark, table, 160, 190)


def insert(spark: SparkSession, table: str, first: int, end: int) -> None:
    """Rows first..end."""
    spark.range(first, end, 1, 2).selectExpr(*VALUES).writeTo(table).append()


def twins(warehouse: Warehouse, name: str, version: int, mode: str, first: int | None = None) -> tuple[str, str, str]:
    """A table for tamis and Spark by turns, its path, and one for Spark alone."""
    mixed, alone = f"ice.db.{name}", f"ice.db.{name}_spark"
    for table in (mixed, alone):
        history(warehouse.spark, table, version, mode, first)
    return mixed, warehouse.path(name), alone


def rows(spark: SparkSession, table: str) -> list[str]:
    """All rows, as Iceberg's own reader tells them."""
    spark.sql(f"refresh table {table}")
    return sorted(map(repr, spark.table(table).collect()))


def lineage(spark: SparkSession, table: str) -> dict[int, tuple[int, int]]:
    """The id of each row, and when it was changed, as Iceberg's own reader tells them."""
    spark.sql(f"refresh table {table}")
    return {row[0]: (row[1], row[2]) for row in spark.sql(f"select id, {', '.join(LINEAGE)} from {table}").collect()}


def ours(spark: SparkSession, path: str) -> list[str]:
    """All rows, as tamis reads them."""
    return sorted(map(repr, tamis.open(path, cache=False).plan().read(spark).collect()))


def check_manifests(path: str) -> None:
    """Each has files of one spec alone, with as many partition values as the spec has fields, and true counts."""
    table = tamis.open(path, cache=False)
    widths = {spec.spec_id: len(spec.fields) for spec in table.source.specs}
    for one in entries(table):
        assert len(one["partition"]) == widths[one["list"]["partition_spec_id"]]
    for one in manifests(table):
        assert one["added_files_count"] + one["existing_files_count"] + one["deleted_files_count"] > 0
