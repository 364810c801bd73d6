"""An Iceberg table of many manifests and several specs, with deletes; and one with manifests that nobody can judge.

PyIceberg writes the data. It writes no delete files, so those, and whatever is odd, are added by hand.
"""

from __future__ import annotations

import datetime as dt
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform, TruncateTransform
from pyiceberg.types import IntegerType, LongType, NestedField, StringType, TimestampType

from tests.making.cli_tables import catalog
from tests.making.manifests import avro_bytes, entry, entry_schema

__all__ = ["Listed", "evolved", "odd"]

SCHEMA: Final = Schema(
    NestedField(1, "id", IntegerType()),
    NestedField(2, "region", StringType()),
    NestedField(3, "ts", TimestampType()),
    NestedField(4, "score", LongType()),
)
BY_REGION: Final = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "region"))
REGIONS: Final = ("eu", "us", "uk", None)
APPENDS: Final = 4
"""Commits under each spec; each gives a manifest."""
POSITION, EQUALITY = 1, 2
REGION_FIELD: Final = {"name": "region", "type": ["null", "string"], "default": None, "field-id": 1000}
UNKNOWN_SPEC: Final = 90
FREE_SPEC: Final = 91


@dataclass(frozen=True, slots=True)
class Listed:
    """A manifest to add to a table."""

    name: str
    spec_id: int
    entries: Sequence[Mapping[str, Any]]
    partition: Sequence[Mapping[str, Any]] = ()
    content: int = 0
    sequence_number: int = 1
    damage: int = 0
    """Bytes that its end lacks."""


def evolved(folder: Path) -> str:
    """The metadata file of a table with five specs, a renamed and a promoted column, and deletes of two kinds.

    Position deletes remove the first row of every file of region eu of the first spec; an equality delete removes
    all rows with id 7, 107, 207 and 307 but for those of the last spec.
    """
    table = _written(folder)
    first = [one for one in _files(table) if one["spec_id"] == 0 and one["partition"]["region"] == "eu"]
    position = _parquet(
        folder / "deletes" / "position.parquet",
        {
            "file_path": (2147483546, pa.array([one["path"] for one in first])),
            "pos": (2147483545, pa.array([0] * len(first), pa.int64())),
        },
    )
    equality = _parquet(
        folder / "deletes" / "equality.parquet", {"id": (1, pa.array([7, 107, 207, 307], pa.int64()))}
    )
    last = 4 * APPENDS  # the sequence number of the last commit before the last spec
    return _with(
        table,
        Listed("deletes-position.avro", 0, [_delete(position, len(first), region="eu")], [REGION_FIELD], 1, last),
        Listed("deletes-equality.avro", FREE_SPEC, [_delete(equality, 4, ids=[1])], (), 1, last + 1),
    )


def odd(folder: Path, prefix: str = "lost") -> str:
    """The metadata file of a table of which much cannot be judged: nothing of its files is there but metadata.

    prefix begins the names of some of its manifests.
    """
    table = _written(folder)
    files = [entry(f"lost-{n}.parquet", partition={}, snapshot_id=1, sequence_number=1, rows=n + 1) for n in range(3)]
    days = [
        entry(f"day-{n}.parquet", partition={"region": REGIONS[n % 3], "day": n}, snapshot_id=1, sequence_number=1)
        for n in range(6)
    ]
    field = {"name": "day", "type": ["null", "int"], "default": None, "field-id": 1777}
    more = []
    for n in range(4):
        more += [
            Listed(f"{prefix}-{n}.avro", 0, files),
            Listed(f"unknown-{n}.avro", UNKNOWN_SPEC, days, [REGION_FIELD, field]),
        ]
    return _with(table, *more)


def _written(folder: Path) -> Table:
    table = catalog(folder).create_table("db.t", SCHEMA, partition_spec=BY_REGION)
    names = ("id", "region", "ts", "score")
    for n in range(APPENDS):
        table.append(_rows(names, n * 12, wide=False))
    with table.update_spec() as update:
        update.remove_field("region")
        update.add_field("ts", DayTransform(), "ts_day")
    for n in range(APPENDS):
        table.append(_rows(names, 100 + n * 12, wide=False))
    with table.update_schema() as change:
        change.rename_column("region", "area")
        change.update_column("id", LongType())
    names = ("id", "area", "ts", "score")
    with table.update_spec() as update:
        update.remove_field("ts_day")
        update.add_field("id", BucketTransform(4), "id_bucket")
        update.add_field("area", IdentityTransform(), "area")
    for n in range(APPENDS):
        table.append(_rows(names, 200 + n * 12, wide=True))
    with table.update_spec() as update:
        update.remove_field("id_bucket")
        update.remove_field("area")
        update.add_field("score", TruncateTransform(10), "score_tens")
    for n in range(APPENDS):
        table.append(_rows(names, 300 + n * 12, wide=True))
    with table.update_spec() as update:
        update.remove_field("score_tens")
    table.append(_rows(names, 400, wide=True))
    return table


def _rows(names: tuple[str, str, str, str], first: int, *, wide: bool) -> pa.Table:
    """Twelve rows: three of each region, each of a day of its own."""
    ids = list(range(first, first + 12))
    return pa.table(
        {
            names[0]: pa.array(ids, pa.int64() if wide else pa.int32()),
            names[1]: pa.array([REGIONS[n % 4] for n in ids], pa.string()),
            names[2]: pa.array([dt.datetime(2024, 1 + n % 3, 1 + n % 7, n % 24) for n in ids], pa.timestamp("us")),
            names[3]: pa.array([None if n % 5 == 0 else n * 7 % 40 for n in ids], pa.int64()),
        }
    )


def _delete(path: Path, rows: int, *, region: str | None = None, ids: Sequence[int] | None = None) -> dict[str, Any]:
    kind = EQUALITY if ids else POSITION
    partition = {} if region is None else {"region": region}
    more = {"equality_ids": list(ids)} if ids else {}
    size = path.stat().st_size
    found = entry(f"file://{path}", content=kind, partition=partition, snapshot_id=1, rows=rows, **more)
    found["data_file"]["file_size_in_bytes"] = size
    found["data_file"]["file_format"] = "PARQUET"
    return found


def _parquet(path: Path, columns: Mapping[str, tuple[int, pa.Array]]) -> Path:
    path.parent.mkdir(exist_ok=True)
    fields = [
        pa.field(name, values.type, nullable=False, metadata={"PARQUET:field_id": str(id_)})
        for name, (id_, values) in columns.items()
    ]
    pq.write_table(pa.table([values for _, values in columns.values()], schema=pa.schema(fields)), path)
    return path


def _files(table: Table) -> Iterable[dict[str, Any]]:
    for one in table.inspect.files().to_pylist():
        yield {"path": one["file_path"], "spec_id": one["spec_id"], "partition": one["partition"]}


def _local(location: str) -> Path:
    return Path(location.removeprefix("file://"))


def _with(table: Table, *manifests: Listed) -> str:
    """A metadata file of the table with more manifests, and the two specs that they may have."""
    document = json.loads(_local(table.metadata_location).read_text(encoding="utf-8"))
    snapshot = next(one for one in document["snapshots"] if one["snapshot-id"] == document["current-snapshot-id"])
    with _local(snapshot["manifest-list"]).open("rb") as file:
        reader = fastavro.reader(file)
        schema, listed = reader.writer_schema, cast("list[dict[str, Any]]", list(reader))
    assert isinstance(schema, dict)
    folder = _local(table.metadata_location).parent
    for place, one in enumerate(manifests):
        path = folder / one.name
        data = avro_bytes(entry_schema(one.partition, version=3), one.entries)
        path.write_bytes(data[: len(data) - one.damage])
        added = {"manifest_path": f"file://{path}", "manifest_length": len(data), "partition_spec_id": one.spec_id}
        counts = {"added_files_count": len(one.entries), "existing_files_count": 0, "deleted_files_count": 0}
        numbers = {"content": one.content, "sequence_number": one.sequence_number, "min_sequence_number": 1}
        # Among the others, not after them: a partition key then comes up in units that lie apart.
        listed.insert((3 * place + 1) % len(listed), {**listed[0], **added, **counts, **numbers, "partitions": None})
    buffer = io.BytesIO()
    fastavro.writer(buffer, schema, listed)
    target = folder / "snap-with-more.avro"
    target.write_bytes(buffer.getvalue())
    snapshot["manifest-list"] = target.as_uri()
    unknown = [
        {"source-id": 2, "field-id": 1000, "name": "region", "transform": "identity"},
        {"source-id": 3, "field-id": 1777, "name": "day", "transform": "zodiac"},
    ]
    document["partition-specs"].append({"spec-id": UNKNOWN_SPEC, "fields": unknown})
    document["partition-specs"].append({"spec-id": FREE_SPEC, "fields": []})
    metadata = folder / "00099-0b54a0ba-5bd2-4a3c-b9bb-2c6f93a8a34d.metadata.json"
    metadata.write_text(json.dumps(document), encoding="utf-8")
    return str(metadata)
