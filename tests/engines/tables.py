# ruff: noqa: S608 - SQL made of the tests' own names
"""Tables that Spark's own Iceberg writes, with a history: every way in which a layout changes under the data.

Rows are functions of their number, so every run has the same ones. Numbers ascend from insert to insert and from file
to file, which gives bounds something to say; dates and times cross 1970; every column has NULLs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["COLUMNS", "Column", "evolve", "execute", "insert"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column: the name at the end of the history, its kind in predicates, and its value for a row `id`."""

    name: str
    kind: str
    type: str
    value: str
    old_name: str | None = None

    @property
    def first_name(self) -> str:
        """The name that the table was made with."""
        return self.old_name or self.name


# h<n> below is a number that looks random and is the same on every run.
_TEXT: Final = "array('apple', 'apricot', 'banana', 'čaj', '😀ab', 'zz', '', 'Apfel')"
COLUMNS: Final = (
    Column("id", "integer", "int", "cast(id as int)"),
    Column("gone", "dropped", "int", "cast(h1 % 3 as int)"),
    Column("f", "float", "float", "case when h2 % 29 = 0 then float('NaN') else cast(id / 8 as float) end"),
    Column("amt", "decimal", "decimal(9, 2)", "case when h3 % 10 > 0 then cast(id / 3 as decimal(9, 2)) end"),
    Column("s", "text", "string", f"case when h4 % 9 > 0 then element_at({_TEXT}, 1 + h4 % 8) || h5 % 4 end"),
    Column("region", "text", "string", "element_at(array('eu', 'us', null, 'uk'), 1 + h6 % 4)", old_name="cat"),
    Column(
        "d", "date", "date", "case when h7 % 12 > 0 then date_add(date'1970-01-01', 3 * cast(id - 280 as int)) end"
    ),
    Column("ts", "timestamp", "timestamp", "timestamp_micros((id - 280) * 40000000001)"),
    Column("ntz", "timestamp_ntz", "timestamp_ntz", "timestamp_micros((id - 420) * 1500000000)::timestamp_ntz"),
    Column("flag", "boolean", "boolean", "case h8 % 5 when 0 then null when 1 then false else id % 3 > 0 end"),
    Column("bin", "binary", "binary", "case when h9 % 7 > 0 then unhex(hex(h9 % 250)) end"),
    Column(
        "info",
        "struct",
        "struct<a: int, city: string, deep: struct<x: double>>",
        "case when h1 % 8 > 0 then named_struct('a', cast(-id as int), 'city', 'c' || h2 % 3, "
        "'deep', named_struct('x', case when h3 % 5 > 0 then h3 % 100 / 4D end)) end",
    ),
)
PROPERTIES: Final = {
    # Every task writes a file for each partition that it meets: many small files.
    "write.distribution-mode": "none",
    "write.delete.distribution-mode": "none",
    "write.update.distribution-mode": "none",
    "write.spark.fanout.enabled": "true",
}
MERGE_ON_READ: Final = {"write.delete.mode": "merge-on-read", "write.update.mode": "merge-on-read"}


def execute(spark: SparkSession, *statements: str) -> None:
    """Run SQL statements in order."""
    for statement in statements:
        spark.sql(statement)


def create(spark: SparkSession, table: str, version: int, columns: str) -> None:
    """A new unpartitioned table; from version 2 on, DELETE and UPDATE write delete files instead of rewriting."""
    properties = PROPERTIES | ({} if version == 1 else MERGE_ON_READ) | {"format-version": str(version)}
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    execute(spark, f"create table {table} ({columns}) using iceberg tblproperties ({listed})")


def insert(spark: SparkSession, table: str, first: int, end: int, tasks: int) -> None:
    """Append the rows first..end, each task a run of them."""
    source = spark.range(first, end, 1, tasks).selectExpr(
        "id", *(f"pmod(xxhash64(id, {n}), 1000)::int as h{n}" for n in range(1, 10))
    )
    there = set(spark.table(table).columns)
    named = [(column.first_name if column.first_name in there else column.name, column) for column in COLUMNS]
    values = [f"{column.value} as {name}" for name, column in named if name in there]
    source.selectExpr(*values).writeTo(table).append()


def evolve(spark: SparkSession, table: str, version: int) -> None:
    """Make a table with ten specs that hold data, and columns that were renamed, dropped and promoted."""
    change = f"alter table {table}"
    field = f"{change} add partition field"
    drop = f"{change} drop partition field"
    create(spark, table, version, ", ".join(f"{column.first_name} {column.type}" for column in COLUMNS))
    insert(spark, table, 0, 160, 8)
    execute(spark, f"{field} cat")
    insert(spark, table, 160, 240, 4)
    execute(spark, f"{field} bucket(4, id)", f"{field} days(ts)")
    insert(spark, table, 240, 280, 2)
    execute(
        spark, f"{change} replace partition field days(ts) with months(ts)", f"{drop} cat", f"{field} truncate(2, s)"
    )
    insert(spark, table, 280, 330, 2)
    # Row-level changes over files of every spec so far. They come before a source column goes: after that, Java's
    # merge-on-read finds no type for the old spec's field.
    execute(spark, f"delete from {table} where id % 17 = 3 or id between 60 and 90")
    execute(spark, f"update {table} set flag = true, f = -1 where id % 23 = 5")
    execute(spark, f"delete from {table} where id < 20")  # a whole file: it goes without a delete file
    execute(spark, f"{drop} bucket(4, id)", f"{drop} months(ts)", f"{field} gone")
    insert(spark, table, 330, 370, 2)
    execute(spark, f"{drop} gone", f"{drop} truncate(2, s)")
    if version > 1:  # a spec of version 1 keeps dropped fields as void ones, and Java then cannot write without them
        execute(spark, f"{change} drop column gone")
    execute(spark, f"{change} rename column cat to region")
    execute(
        spark,
        *(f"{change} alter column {to}" for to in ("id type bigint", "f type double", "amt type decimal(12, 2)")),
    )
    execute(spark, f"{field} hours(ntz)", f"{field} region")
    insert(spark, table, 370, 430, 2)
    execute(spark, f"{drop} hours(ntz)", f"{drop} region", f"{field} years(d)", f"{field} truncate(50, id)")
    insert(spark, table, 430, 480, 2)
    execute(spark, f"{drop} truncate(50, id)", f"{drop} years(d)", f"{field} info.city", f"{field} truncate(1, bin)")
    insert(spark, table, 480, 540, 2)
    execute(spark, f"{drop} info.city", f"{drop} bin_trunc_1" if version == 1 else f"{drop} truncate(1, bin)")
    insert(spark, table, 540, 600, 4)
    execute(spark, f"{field} bucket(3, s)", f"{field} truncate(10, amt)")
    insert(spark, table, 600, 640, 2)
    if version == 1:
        execute(spark, f"{change} drop column gone")
