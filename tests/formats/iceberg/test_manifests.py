"""Batches say of every entry what PyIceberg says of it, for tables that PyIceberg wrote."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from pyiceberg.conversions import from_bytes
from pyiceberg.manifest import ManifestEntry, ManifestFile
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform, MonthTransform, TruncateTransform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from tamis.formats.iceberg.manifest_list import read_manifest_list, summaries
from tamis.formats.iceberg.manifests import live_manifests, read_data_files
from tamis.formats.storage.local import fetch_local
from tests.making.manifests import create, metadata_of, scalars

SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "region", StringType()),
    NestedField(3, "ts", TimestampType()),
    NestedField(4, "tz", TimestamptzType()),
    NestedField(5, "amount", DecimalType(12, 2)),
    NestedField(6, "wide", DecimalType(30, 4)),
    NestedField(7, "price", DoubleType()),
    NestedField(8, "score", FloatType()),
    NestedField(9, "qty", IntegerType()),
    NestedField(10, "day", DateType()),
    NestedField(11, "at", TimeType()),
    NestedField(12, "flag", BooleanType()),
    NestedField(13, "raw", BinaryType()),
    NestedField(14, "code", FixedType(3)),
    NestedField(15, "trace", UUIDType()),
    NestedField(16, "place", StructType(NestedField(17, "city", StringType()))),
)


def rows(start: int, count: int, region: str | None) -> pa.Table:
    """Some rows of every type, with nulls and a NaN."""
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("region", pa.string()),
            ("ts", pa.timestamp("us")),
            ("tz", pa.timestamp("us", "UTC")),
            ("amount", pa.decimal128(12, 2)),
            ("wide", pa.decimal128(30, 4)),
            ("price", pa.float64()),
            ("score", pa.float32()),
            ("qty", pa.int32()),
            ("day", pa.date32()),
            ("at", pa.time64("us")),
            ("flag", pa.bool_()),
            ("raw", pa.binary()),
            ("code", pa.binary(3)),
            ("trace", pa.binary(16)),
            ("place", pa.struct([("city", pa.string())])),
        ]
    )
    made = [
        {
            "id": i,
            "region": region,
            "ts": datetime(2024, 1, 1 + i % 3),
            "tz": datetime(1969, 12, 31, i % 24),
            "amount": Decimal(-i) / 4,
            "wide": Decimal(10) ** 20 + i,
            "price": float("nan") if i % 5 == 0 else i / 2,
            "score": i / 4,
            "qty": None if i % 2 else -i,
            "day": date(1960, 1, 1 + i % 28),
            "at": time(i % 24),
            "flag": bool(i % 2),
            "raw": bytes([i % 256]),
            "code": b"abc",
            "trace": UUID(int=i).bytes,
            "place": {"city": f"city {i}"} if i % 4 else None,
        }
        for i in range(start, start + count)
    ]
    return pa.Table.from_pylist(made, schema)


@pytest.fixture(scope="module", params=["1", "2"])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Table:
    """A table whose partitioning has evolved, with deleted entries and carried-over ones."""
    spec = PartitionSpec(
        PartitionField(3, 1000, DayTransform(), "ts_day"),
        PartitionField(2, 1001, IdentityTransform(), "region"),
        PartitionField(5, 1002, IdentityTransform(), "amount"),
        PartitionField(1, 1003, BucketTransform(4), "id_bucket"),
    )
    table = create(tmp_path_factory.mktemp("table"), SCHEMA, spec, request.param)
    table.append(rows(0, 6, "eu"))
    table.append(rows(6, 6, None))
    with table.update_spec() as update:
        for name in ("ts_day", "region", "amount", "id_bucket"):
            update.remove_field(name)
    table.append(rows(12, 4, "uk"))
    with table.update_spec() as update:
        # Not of columns that had a field before: version 1 keeps those as void, and PyIceberg trips over the pair.
        update.add_field("tz", MonthTransform(), "tz_month")
        update.add_field("qty", TruncateTransform(10), "qty_10")
        update.add_identity("day")
    table.append(rows(16, 4, "us"))
    table.delete("id = 3")
    table.delete("id = 19")
    with table.update_schema() as update:
        update.rename_column("region", "area")
    return table


def theirs(table: Table) -> Iterator[tuple[ManifestFile, ManifestEntry]]:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    for manifest in snapshot.manifests(table.io):
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
            yield manifest, entry


def ours(table: Table) -> list[dict[str, Any]]:
    """Every file as one dict: plain facts, partition, and statistics by field id."""
    metadata = metadata_of(table)
    snapshot = metadata.select().snapshot
    assert snapshot is not None
    manifests = live_manifests(read_manifest_list(snapshot, fetch_local))
    wanted = dict(metadata.schema.types)
    found = []
    for batch in read_data_files(metadata, manifests, fetch_local, wanted):
        assert not batch.undecoded
        plain = {"path": batch.path, "size": batch.size, "rows": batch.rows, **batch.extra}
        partition = [] if batch.partition is None else [scalars(child) for child in batch.partition.flatten()]
        stats = {
            (id_, side): scalars(array)
            for id_, one in batch.stats.items()
            for side in ("lower", "upper", "null_count", "nan_count")
            if (array := getattr(one, side)) is not None
        }
        found += [
            {name: array[place].as_py() for name, array in plain.items()}
            | {"spec_id": batch.spec_id, "partition": [column[place] for column in partition]}
            | {key: column[place] for key, column in stats.items()}
            for place in range(len(batch))
        ]
    return found


def test_every_entry_is_read_as_pyiceberg_reads_it(table: Table) -> None:
    mine = ours(table)
    others = list(theirs(table))
    assert [one["path"] for one in mine] == [entry.data_file.file_path for _, entry in others]
    for one, (manifest, entry) in zip(mine, others, strict=True):
        file = entry.data_file
        assert one["spec_id"] == manifest.partition_spec_id
        assert (one["size"], one["rows"]) == (file.file_size_in_bytes, file.record_count)
        assert one["file_format"] == file.file_format.value
        assert one["snapshot_id"] == entry.snapshot_id
        assert one["sequence_number"] == entry.sequence_number
        assert one["file_sequence_number"] == entry.file_sequence_number
        expected = [file.partition[place] for place in range(len(one["partition"]))]
        assert [_plain(value) for value in one["partition"]] == [_plain(value) for value in expected]


def _plain(value: object) -> object:
    """Dates as PyIceberg counts them."""
    return (value - date(1970, 1, 1)).days if type(value) is date else value


def test_every_statistic_is_the_one_that_pyiceberg_decodes(table: Table) -> None:
    for one, (_, entry) in zip(ours(table), theirs(table), strict=True):
        file = entry.data_file
        for column in SCHEMA.fields[:-1]:
            id_ = column.field_id
            for side, raw in (("lower", file.lower_bounds), ("upper", file.upper_bounds)):
                expected = from_bytes(column.field_type, raw[id_]) if raw and id_ in raw else None
                assert _number(one[id_, side]) == _number(expected), (column.name, side)
            assert one[id_, "null_count"] == (file.null_value_counts or {}).get(id_)
            assert one.get((id_, "nan_count")) == (file.nan_value_counts or {}).get(id_)


def _number(value: Any) -> object:  # noqa: ANN401 - a value of any type
    """Dates and times as the numbers that PyIceberg gives for them."""
    if isinstance(value, datetime):
        zero = datetime(1970, 1, 1, tzinfo=value.tzinfo)
        delta = value - zero
        return delta.days * 86_400_000_000 + delta.seconds * 1_000_000 + delta.microseconds
    if isinstance(value, time):
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
    if isinstance(value, UUID):
        return value.bytes
    return _plain(value)


def test_manifest_list_is_the_one_that_pyiceberg_reads(table: Table) -> None:
    metadata = metadata_of(table)
    snapshot = metadata.select().snapshot
    their_snapshot = table.current_snapshot()
    assert snapshot is not None
    assert their_snapshot is not None
    mine = read_manifest_list(snapshot, fetch_local)
    others = their_snapshot.manifests(table.io)
    assert [one.path for one in mine] == [one.manifest_path for one in others]
    for one, other in zip(mine, others, strict=True):
        assert (one.length, one.spec_id, one.content) == (
            other.manifest_length,
            other.partition_spec_id,
            int(other.content),
        )
        assert one.sequence_number == (other.sequence_number or 0)
        assert one.snapshot_id == other.added_snapshot_id
        assert (one.added_files, one.existing_files) == (other.added_files_count, other.existing_files_count)
        told = [
            (part.contains_null, part.contains_nan, part.lower_bound, part.upper_bound)
            for part in other.partitions or ()
        ]
        assert list(one.summaries or ()) == told


def test_summaries_are_typed_by_their_spec(table: Table) -> None:
    metadata = metadata_of(table)
    snapshot = metadata.select().snapshot
    assert snapshot is not None
    manifests = [one for one in read_manifest_list(snapshot, fetch_local) if one.spec_id == 0]
    days, regions, amounts, buckets = summaries(manifests, metadata.layout(0))[:4]
    assert days.lower.type == pa.date32()
    assert buckets.upper.type == pa.int32()
    assert amounts.lower.type == pa.decimal128(12, 2)
    assert None in regions.lower.to_pylist()
    assert True in regions.contains_null.to_pylist()
    assert days.known.to_pylist() == [True] * len(manifests)


def test_threads_do_not_change_the_order(table: Table) -> None:
    metadata = metadata_of(table)
    snapshot = metadata.select().snapshot
    assert snapshot is not None
    manifests = live_manifests(read_manifest_list(snapshot, fetch_local))
    orders = [
        [
            path
            for batch in read_data_files(metadata, manifests, fetch_local, {}, threads=threads)
            for path in batch.path
        ]
        for threads in (1, 2, 5)
    ]
    assert orders[0] == orders[1] == orders[2]
