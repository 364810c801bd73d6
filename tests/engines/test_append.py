# ruff: noqa: S608 - SQL made of the tests' own names
"""Appends by tamis to tables of Spark's own Iceberg, beside the same append by Spark: the same rows and metadata."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING, Final, cast

import pyarrow as pa
import pytest

import tamis
from tamis.errors import UnwritableRowsError
from tamis.formats.edit import Stage, WriteField
from tamis.formats.iceberg.table import IcebergTable
from tamis.spark.fitting import fitted_columns
from tests.engines.appending import create, entries, manifests, rows, rows_of
from tests.engines.conftest import Warehouse
from tests.engines.tables import evolve, execute

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = pytest.mark.engine

SPECS: Final = {
    "plain": "",
    "mixed": "bucket(4, id), days(ts), truncate(2, s), months(ntz)",
    "times": "years(d), hours(ts), region",
    "buckets": "bucket(3, s), bucket(5, d), bucket(2, ts), bucket(3, amount), bucket(4, bin), bucket(2, n)",
    "truncated": "truncate(10, n), truncate(3, bin), truncate(50, amount), truncate(7, id)",
    "identity": "flag, d, amount, info.city, s",
}
SAID: Final = (
    "record_count",
    "partition",
    "value_counts",
    "null_value_counts",
    "nan_value_counts",
    "lower_bounds",
    "upper_bounds",
    "sort_order_id",
    "equality_ids",
)
_numbers = count()


def twins(warehouse: Warehouse, version: int, fields: str, **properties: str) -> tuple[str, str]:
    """Two empty tables, alike: one for Spark to write, one for tamis."""
    names = [f"append_{next(_numbers)}" for _ in range(2)]
    for name in names:
        create(warehouse.spark, f"ice.db.{name}", version, fields, **properties)
    return names[0], names[1]


def opened(warehouse: Warehouse, name: str) -> tamis.Table:
    return tamis.open(warehouse.path(name), cache=False)


def read_by_spark(warehouse: Warehouse, name: str) -> DataFrame:
    warehouse.spark.sql(f"refresh table ice.db.{name}")
    return warehouse.spark.table(f"ice.db.{name}")


def said(table: tamis.Table) -> list[str]:
    """What the metadata says of each file, but for paths and sizes, which are each writer's own.

    A bound of zero is -0.0 below and 0.0 above, as tamis writes it: of Spark's either may stand there.
    """
    source = table.source
    assert isinstance(source, IcebergTable)
    floats = frozenset(id_ for id_, type_ in source.metadata.schema.types.items() if pa.types.is_floating(type_))
    files = [{key: _sorted(one.get(key)) for key in SAID} for one in entries(table)]
    for file in files:
        for side, sign in (("lower_bounds", b"\x80"), ("upper_bounds", b"\x00")):
            bounds = cast("dict[int, bytes]", file[side] or {})
            zeros = [
                id_ for id_ in floats & bounds.keys() if not any(bounds[id_][:-1]) and bounds[id_][-1] & 0x7F == 0
            ]
            bounds |= {id_: bounds[id_][:-1] + sign for id_ in zeros}
    return sorted(map(repr, files))


def plain_rows(table: pa.Table) -> list[str]:
    """The rows by id, whatever reader they are from: instants in UTC, and maps as pairs."""

    def plain(value: object) -> object:
        match value:
            case dict():
                return {key: plain(part) for key, part in value.items()}
            case list() | tuple():
                return [plain(part) for part in value]
            case datetime(tzinfo=zone) if zone is not None:
                return value.astimezone(UTC)
            case _:
                return value

    return [repr(plain(row)) for row in table.sort_by("id").to_pylist()]


def _sorted(value: object) -> object:
    by_id = isinstance(value, dict) and all(isinstance(key, int) for key in value)
    return dict(sorted(value.items())) if isinstance(value, dict) and by_id else value


CASES: Final = [(version, spec) for version in (1, 2, 3) for spec in SPECS if version == 2 or spec == "mixed"]


@pytest.mark.parametrize(("version", "spec"), [*CASES, (1, "plain"), (3, "plain")])
def test_an_append_is_what_spark_itself_would_have_written(warehouse: Warehouse, version: int, spec: str) -> None:
    """Rows, partition values, counts and bounds: equal, file by file; read by Spark, by PyIceberg and by tamis."""
    from pyiceberg.table import StaticTable

    theirs, ours = twins(warehouse, version, SPECS[spec])
    frame = rows(warehouse.spark, 0, 40).coalesce(1).cache()
    frame.writeTo(f"ice.db.{theirs}").append()
    done = opened(warehouse, ours).append(frame)
    wanted = rows_of(frame)
    assert rows_of(read_by_spark(warehouse, ours)) == wanted
    assert rows_of(done.table.plan().read(warehouse.spark)) == wanted
    assert said(done.table) == said(opened(warehouse, theirs))
    static = StaticTable.from_metadata(done.table.source.metadata.path)  # type: ignore[attr-defined]
    if version < 3 or spec == "plain":
        assert plain_rows(static.scan().to_arrow()) == plain_rows(frame.toArrow())
    assert (done.rows, done.files, done.attempts) == (40, len(entries(done.table)), 1)
    assert done.snapshot_id == done.table.snapshot_id == opened(warehouse, ours).snapshot_id
    for mine, other in zip(manifests(done.table), manifests(opened(warehouse, theirs)), strict=True):
        same = set(other) - {"manifest_path", "manifest_length", "added_snapshot_id"}
        assert {key: mine.get(key) for key in same} == {key: other[key] for key in same}
    summaries = [opened(warehouse, name).source.selection.snapshot.summary for name in (ours, theirs)]  # type: ignore[attr-defined]
    kinds = ("added-data", "added-rec", "total-d", "total-r", "total-p", "total-e", "changed", "manif")
    counted = [{key: value for key, value in one.items() if key.startswith(kinds)} for one in summaries]
    assert counted[0] == counted[1]


@pytest.mark.parametrize("version", [2, 3])
def test_appends_of_both_alternate_on_an_evolved_table(warehouse: Warehouse, version: int) -> None:
    """Ten specs, renamed, dropped and promoted columns, deletes: what was there stays, and the rows come."""
    name = f"append_evolved_v{version}"
    evolve(warehouse.spark, f"ice.db.{name}", version)
    before = read_by_spark(warehouse, name).localCheckpoint()  # a cache is filled anew when the table is refreshed
    new = before.limit(50).localCheckpoint()
    wanted = rows_of(before)
    for writer in ("tamis", "spark", "tamis"):
        if writer == "spark":
            new.writeTo(f"ice.db.{name}").append()
        else:
            opened(warehouse, name).append(new)
        wanted = sorted([*wanted, *rows_of(new)])
        assert rows_of(read_by_spark(warehouse, name)) == wanted
    assert rows_of(opened(warehouse, name).plan().read(warehouse.spark)) == wanted
    if version == 2:  # of version 3 Java cannot rewrite it: the partition field of a dropped column has no type
        execute(warehouse.spark, f"call ice.system.rewrite_manifests('db.{name}')")
        assert rows_of(read_by_spark(warehouse, name)) == wanted
    # Every row goes with its file. A condition that cuts through a file would need Java's merge-on-read, which finds
    # no type for that partition field either.
    execute(warehouse.spark, f"delete from ice.db.{name} where id >= 0")
    assert read_by_spark(warehouse, name).count() == 0
    summary = opened(warehouse, name).source.selection.snapshot.summary  # type: ignore[attr-defined]
    assert (summary["total-records"], summary["total-data-files"]) == ("0", "0")


def test_row_ids_go_on_where_they_were(warehouse: Warehouse) -> None:
    """Version 3 gives every row an id of its own: none twice, also on a table that was upgraded."""
    spark = warehouse.spark
    _, name = twins(warehouse, 2, "bucket(2, id)")
    rows(spark, 0, 10).writeTo(f"ice.db.{name}").append()
    execute(spark, f"alter table ice.db.{name} set tblproperties ('format-version' = '3')")
    opened(warehouse, name).append(rows(spark, 10, 20))
    rows(spark, 20, 30).writeTo(f"ice.db.{name}").append()
    opened(warehouse, name).append(rows(spark, 30, 40))
    found = (
        read_by_spark(warehouse, name).selectExpr("id", "_row_id", "_last_updated_sequence_number as seq").collect()
    )
    assert sorted(row._row_id for row in found) == list(range(40))
    assert {row.seq for row in found if row.id >= 30} == {4}


def test_no_rows_make_no_snapshot_unless_it_has_something_to_say(warehouse: Warehouse) -> None:
    """An empty batch of a nightly job is no change of the table; a mark that the caller gives is."""
    _, name = twins(warehouse, 2, "days(ts)")
    table = opened(warehouse, name)
    none = rows(warehouse.spark, 0, 0)
    done = table.append(none)
    assert (done.snapshot_id, done.files, done.rows, done.attempts) == (None, 0, 0, 0)
    marked = table.append(none, snapshot_properties={"batch": "7"})
    assert opened(warehouse, name).snapshot_id == marked.snapshot_id
    assert marked.table.source.selection.snapshot.summary["batch"] == "7"  # type: ignore[attr-defined]
    assert read_by_spark(warehouse, name).count() == 0


def test_columns_are_matched_by_name_and_widened(warehouse: Warehouse) -> None:
    """Another order, another case, narrower types, and columns left out: NULL."""
    spark = warehouse.spark
    _, name = twins(warehouse, 2, "region")
    frame = spark.sql(
        "select 'eu' as REGION, cast(1 as tinyint) as Id, 1.5f as x, cast(2 as decimal(5, 0)) as amount, "
        "named_struct('city', 'c', 'a', 1Y) as info, null as s, cast(array() as array<string>) as tags"
    )
    opened(warehouse, name).append(frame)
    row = read_by_spark(warehouse, name).collect()[0]
    assert (row.id, row.region, row.x, str(row.amount), row.info.a, row.info.city, row.info.deep, row.s) == (
        1,
        "eu",
        1.5,
        "2.00",
        1,
        "c",
        None,
        None,
    )


@pytest.mark.parametrize(
    ("select", "column", "reason", "nearest"),
    [
        ("id, 1 as regoin", "regoin", "no such column", ("region", "points")),
        ("id, 1 as id", "id", "twice", ()),
        ("1L as n, id", "n", "it is bigint in the rows, and int in the table", ()),
        ("id, timestamp'2024-01-01' as ntz", "ntz", "timestamp in the rows", ()),
        ("id, '2024-01-01' as d", "d", "string in the rows", ()),
        ("id, named_struct('a', 1, 'town', 'x') as info", "info.town", "no such column", ()),
        ("id, array(1) as tags", "tags.element", "int in the rows", ()),
        ("'x' as s", "id", "requires it", ()),
        ("if(id > 5, null, id) as id", "id", "NULL in a required column", ()),
    ],
)
def test_rows_that_do_not_fit_are_refused_by_name(
    warehouse: Warehouse, select: str, column: str, reason: str, nearest: tuple[str, ...]
) -> None:
    """Before anything is committed; and nothing stays behind."""
    from pathlib import Path

    name = "append_refused"
    if not Path(warehouse.path(name)).exists():
        create(warehouse.spark, f"ice.db.{name}", 2, "bucket(2, id)")
    frame = warehouse.spark.range(0, 10, 1, 1).selectExpr(*_split(select))
    with pytest.raises(UnwritableRowsError) as caught:
        opened(warehouse, name).append(frame)
    assert (caught.value.column, caught.value.nearest) == (column, nearest)
    assert reason in caught.value.reason
    assert opened(warehouse, name).snapshot_id is None
    assert not list(Path(warehouse.path(name)).rglob("*.parquet"))


def test_a_null_that_is_given_is_no_missing_column(warehouse: Warehouse) -> None:
    """A column that the rows lack gets its write default; one that they have as NULL stays NULL."""
    spark = warehouse.spark
    fields = (
        WriteField(1, "id", pa.int64()),
        WriteField(2, "n", pa.int32(), default=pa.scalar(7, pa.int32())),
    )
    stage = Stage("t", fields, (), (), "none", 1, _unused, _unused)  # type: ignore[arg-type] # nothing is written

    def fitted(select: str) -> list[object]:
        frame = spark.range(1).selectExpr(*_split(select))
        return list(frame.select(*fitted_columns(frame, stage)).collect()[0])

    assert fitted("id") == [0, 7]
    assert fitted("id, null as n") == [0, None]
    assert fitted("id, cast(null as int) as n") == [0, None]


def test_a_default_of_a_struct_list_or_map_is_written_whole(warehouse: Warehouse) -> None:
    """That of a struct is made of those of its fields, inside of a list too."""
    inside = (
        WriteField(3, "a", pa.int32(), default=pa.scalar(5, pa.int32())),
        WriteField(4, "b", pa.string()),
    )
    struct = pa.struct([("a", pa.int32()), ("b", pa.string())])
    made = WriteField(2, "st", struct, children=inside, default=pa.scalar({}, pa.struct([])))
    listed = pa.scalar([{}, None], pa.list_(pa.struct([])))
    entries = pa.scalar([("k", 1), ("l", None)], pa.map_(pa.string(), pa.int64()))
    both = (WriteField(8, "key", pa.string()), WriteField(9, "value", pa.int64()))
    fields = (
        WriteField(1, "id", pa.int64()),
        made,
        WriteField(5, "ls", pa.list_(struct), children=(replace(made, id=6, default=None),), default=listed),
        WriteField(7, "m", pa.map_(pa.string(), pa.int64()), children=both, default=entries),
    )
    stage = Stage("t", fields, (), (), "none", 1, _unused, _unused)  # type: ignore[arg-type] # nothing is written
    frame = warehouse.spark.range(1)
    (row,) = frame.select(*fitted_columns(frame, stage)).collect()
    struct_row = {"a": 5, "b": None}
    assert row.asDict(recursive=True) == {
        "id": 0,
        "st": struct_row,
        "ls": [struct_row, None],
        "m": {"k": 1, "l": None},
    }


def test_a_name_that_two_columns_have_is_refused(warehouse: Warehouse) -> None:
    """Where case does not count, nobody can tell which of them is meant; both would get the values."""
    fields = (WriteField(1, "id", pa.int64()), WriteField(2, "ID", pa.int64()))
    stage = Stage("t", fields, (), (), "none", 1, _unused, _unused)  # type: ignore[arg-type] # nothing is written
    with pytest.raises(UnwritableRowsError, match="several columns of that name"):
        fitted_columns(warehouse.spark.range(1), stage)


def _unused(*_: object) -> None:
    raise AssertionError


def _split(select: str) -> list[str]:
    parts, depth = [""], 0
    for letter in select:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def test_files_have_about_the_size_that_the_table_asks_for(warehouse: Warehouse) -> None:
    """A partition of many rows becomes several files, none much larger than the target."""
    spark = warehouse.spark
    spark.sql(
        "create table ice.db.append_sizes (id bigint, s string) using iceberg "
        "tblproperties ('write.target-file-size-bytes' = '2000000', 'write.parquet.compression-codec' = 'snappy')"
    )
    frame = spark.range(0, 300_000, 1, 1).selectExpr("id", "sha2(cast(id as string), 256) as s")
    done = opened(warehouse, "append_sizes").append(frame)
    sizes = [one["file_size_in_bytes"] for one in entries(done.table)]
    assert 5 <= len(sizes) <= 12
    assert max(sizes) < 4_000_000
    assert done.bytes == sum(sizes)
    assert read_by_spark(warehouse, "append_sizes").distinct().count() == 300_000
    assert all(len(one["split_offsets"]) >= 1 for one in entries(done.table))


def test_rows_are_sorted_as_the_table_asks(warehouse: Warehouse) -> None:
    """The sort order is followed within each file, which says so."""
    spark = warehouse.spark
    spark.sql("create table ice.db.append_sorted (id bigint, s string) using iceberg")
    spark.sql("alter table ice.db.append_sorted write ordered by truncate(2, s) desc nulls last, id")
    frame = spark.range(0, 1000, 1, 2).selectExpr("id", "if(id % 10 = 0, null, 'k' || id % 7) as s")
    done = opened(warehouse, "append_sorted").append(frame)
    assert {one["sort_order_id"] for one in entries(done.table)} == {1}
    import pyarrow.parquet as pq

    for one in entries(done.table):
        found = pq.read_table(one["file_path"]).to_pylist()
        keys = [(row["s"] is None, [-ord(c) for c in (row["s"] or "")[:2]], row["id"]) for row in found]
        assert keys == sorted(keys)
    assert read_by_spark(warehouse, "append_sorted").count() == 1000
