"""Rows to append, the tables for them, and what metadata says of their files: by our own reader of Avro records."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tamis.formats.avro.container import parse_avro
from tamis.formats.avro.records import read_records

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    import tamis

__all__ = ["COLUMNS", "create", "entries", "manifests", "rows", "rows_of"]

_INFO: Final = (
    "case when id % 8 > 0 then named_struct('a', cast(-id as int), 'city', 'c' || id % 3, 'deep', "
    "case when id % 3 > 0 then named_struct('x', case when id % 5 > 0 then id / 4D end) end) end"
)
COLUMNS: Final = {
    "id": ("bigint not null", "id"),
    "n": ("int", "case when id % 7 > 0 then cast(id * 11 - 100 as int) end"),
    "f": ("float", "case id % 5 when 0 then float('NaN') when 1 then -0.0f when 2 then null else id / 4f end"),
    "x": ("double", "case id % 3 when 0 then double('-Infinity') when 1 then 0.0D else double('NaN') end"),
    "s": ("string", "element_at(array('', '😀abcdefghijklmnopqrstuvwxyz', null, 'zz', 'a_b.c d/e=%'), 1 + id % 5)"),
    "region": ("string", "element_at(array('eu', 'us', null), 1 + id % 3)"),
    "d": ("date", "case when id % 6 > 0 then date_add(date'1969-12-01', 17 * id) end"),
    "ts": ("timestamp", "timestamp_micros(id * 40000000001 - 400000000000)"),
    "ntz": ("timestamp_ntz", "timestamp_micros(id * 1500000000007 - 9000000000000)::timestamp_ntz"),
    "amount": ("decimal(9, 2)", "cast(id / 3 - 5 as decimal(9, 2))"),
    "big": ("decimal(30, 4)", "case when id % 4 > 0 then cast(id as decimal(30, 4)) * -1000000000000 end"),
    "bin": ("binary", "case when id % 5 > 0 then unhex(repeat('ff', id % 20)) end"),
    "flag": ("boolean", "case when id % 4 > 0 then id % 2 = 0 end"),
    "void": ("string", "cast(null as string)"),
    "info": ("struct<a: int, city: string, deep: struct<x: double>>", _INFO),
    "tags": (
        "array<string>",
        "case id % 3 when 0 then null when 1 then array() else array('a', null, 'b' || id) end",
    ),
    "pairs": ("map<string, int>", "case when id % 4 > 0 then map('k' || id, cast(id as int), 'none', null) end"),
    "points": ("array<struct<p: double, q: string>>", "array(named_struct('p', id / 2D, 'q', null), null)"),
}
"""Type and value for a row `id` of each column: NULL, NaN, both zeros, text beyond 16 bits, times before 1970."""


def create(spark: SparkSession, table: str, version: int, fields: str = "", **properties: str) -> None:
    """An empty table of the columns, partitioned by the fields."""
    columns = ", ".join(f"{name} {type_}" for name, (type_, _) in COLUMNS.items())
    by = f"partitioned by ({fields})" if fields else ""
    listed = {"format-version": str(version), **{key.replace("_", "-"): value for key, value in properties.items()}}
    said = ", ".join(f"'{key}' = '{value}'" for key, value in listed.items())
    spark.sql(f"create table {table} ({columns}) using iceberg {by} tblproperties ({said})")


def rows(spark: SparkSession, first: int, end: int, tasks: int = 2) -> DataFrame:
    """The rows first..end."""
    source = spark.range(first, end, 1, tasks).selectExpr("cast(id as int) as id")
    return source.selectExpr(
        *(f"cast({value} as {type_.removesuffix(' not null')}) as {name}" for name, (type_, value) in COLUMNS.items())
    )


def rows_of(frame: DataFrame) -> list[str]:
    """The rows in an order of their own, NaN equal to NaN and -0.0 unlike 0.0."""
    return sorted(repr(row) for row in frame.collect())


def manifests(table: tamis.Table) -> list[dict[str, Any]]:
    """The entries of the newest snapshot's manifest list."""
    snapshot = table.source.selection.snapshot  # type: ignore[attr-defined] # an IcebergTable
    path = snapshot.manifest_list
    return read_records(parse_avro(path, Path(path).read_bytes()))


def entries(table: tamis.Table) -> list[dict[str, Any]]:
    """What the manifests say of the live files, maps as dicts."""
    found = []
    for one in manifests(table):
        path = one["manifest_path"]
        for entry in read_records(parse_avro(path, Path(path).read_bytes())):
            if entry["status"] != 2:
                file = entry["data_file"]
                found.append({key: _plain(value) for key, value in file.items()} | {"entry": entry, "list": one})
    return found


def _plain(value: Any) -> Any:  # noqa: ANN401 - a value of Avro's
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return {one["key"]: one["value"] for one in value}
    return value
