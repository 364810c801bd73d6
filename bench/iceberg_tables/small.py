"""A table of very many manifests with one file each, as frequent small commits leave behind: metadata alone.

PyIceberg writes a manifest and a manifest list as patterns; the others differ in path, partition and bounds.
"""

from __future__ import annotations

import io
import json
import shutil
import struct
import zlib
from pathlib import Path
from typing import Any, Final

import fastavro
from fastavro.schema import parse_schema
from pyiceberg.io import load_file_io
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    write_manifest,
    write_manifest_list,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField, StringType

from bench.iceberg_tables.java import CACHE

__all__ = ["small_manifests"]

COLUMNS: Final = 12
SNAPSHOT: Final = 1
_LONG: Final = struct.Struct("<q")


def small_manifests(count: int) -> Path:
    """A version 2 table of so many manifests, partitioned by region, with bounds of id for each file."""
    location = CACHE / f"small-manifests-{count}"
    if not (location / "done").exists():
        shutil.rmtree(location, ignore_errors=True)
        (location / "metadata").mkdir(parents=True)
        _make(location, count)
        (location / "done").touch()
    return location


def _make(location: Path, count: int) -> None:
    folder = location / "metadata"
    table = _metadata(location)
    manifest, listed = _patterns(folder, table)
    head, schema, entry = _taken_apart(manifest)
    sync = head[-16:]
    paths = [folder / f"m{place:06}.avro" for place in range(count)]
    lengths = []
    for place, path in enumerate(paths):
        data = head + _block(schema, _changed(entry, place), sync)
        path.write_bytes(data)
        lengths.append(len(data))
    _, list_schema, row = _taken_apart(listed)
    rows = [
        row | {"manifest_path": str(path), "manifest_length": length, "partitions": [_summary(place)]}
        for place, (path, length) in enumerate(zip(paths, lengths, strict=True))
    ]
    with listed.open("wb") as file:
        fastavro.writer(file, list_schema, rows, codec="deflate")
    manifest.unlink()
    document = json.loads(table.model_dump_json())
    snapshot = {"snapshot-id": SNAPSHOT, "sequence-number": 1, "timestamp-ms": 1, "manifest-list": str(listed)}
    document |= {
        "snapshots": [snapshot | {"summary": {"operation": "append"}, "schema-id": 0}],
        "current-snapshot-id": SNAPSHOT,
        "last-sequence-number": 1,
        "refs": {"main": {"snapshot-id": SNAPSHOT, "type": "branch"}},
    }
    TableMetadataUtil.parse_obj(document)
    (folder / "v1.metadata.json").write_text(json.dumps(document), encoding="utf-8")


def _metadata(location: Path) -> TableMetadata:
    fields = [NestedField(1, "id", LongType()), NestedField(2, "region", StringType())]
    fields += [NestedField(id_, f"c{id_}", LongType()) for id_ in range(3, COLUMNS + 1)]
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "region"))
    properties = {"format-version": "2"}
    return new_table_metadata(Schema(*fields), spec, UNSORTED_SORT_ORDER, str(location), properties)


def _patterns(folder: Path, table: TableMetadata) -> tuple[Path, Path]:
    """A manifest of one entry and a manifest list of one manifest."""
    files = load_file_io({})
    ids = range(1, COLUMNS + 1)
    data_file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path="x.parquet",
        file_format=FileFormat.PARQUET,
        partition=Record("r0"),
        record_count=1000,
        file_size_in_bytes=100_000,
        column_sizes=dict.fromkeys(ids, 8000),
        value_counts=dict.fromkeys(ids, 1000),
        null_value_counts=dict.fromkeys(ids, 0),
        nan_value_counts={},
        lower_bounds=dict.fromkeys(ids, _LONG.pack(0)),
        upper_bounds=dict.fromkeys(ids, _LONG.pack(0)),
    )
    entry = ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=SNAPSHOT, data_file=data_file)
    paths = folder / "pattern.avro", folder / f"snap-{SNAPSHOT}.avro"
    output = files.new_output(str(paths[0]))
    with write_manifest(2, table.spec(), table.schema(), output, SNAPSHOT, "deflate") as writer:
        writer.add(entry)
    arguments = (SNAPSHOT, None, 1, "deflate")
    with write_manifest_list(2, files.new_output(str(paths[1])), *arguments) as listing:
        listing.add_manifests([writer.to_manifest_file()])
    return paths


def _taken_apart(path: Path) -> tuple[bytes, Any, dict[str, Any]]:
    """A file's header with its sync marker, the writer's schema, and its only record."""
    data = path.read_bytes()
    sync = data[-16:]
    reader = fastavro.reader(io.BytesIO(data))
    schema = reader.writer_schema
    (record,) = list(reader)
    return data[: data.index(sync) + 16], parse_schema(schema), record  # type: ignore[arg-type, return-value]


def _block(schema: Any, record: dict[str, Any], sync: bytes) -> bytes:  # noqa: ANN401 - an Avro schema
    raw = io.BytesIO()
    fastavro.schemaless_writer(raw, schema, record)
    body = zlib.compress(raw.getvalue(), 6)[2:-4]
    size = io.BytesIO()
    for number in (1, len(body)):
        fastavro.schemaless_writer(size, "long", number)  # type: ignore[arg-type]
    return size.getvalue() + body + sync


def _region(place: int) -> str:
    return f"region-{place % 20:02}"


def _changed(entry: dict[str, Any], place: int) -> dict[str, Any]:
    region = _region(place)
    bounds = {1: (place * 1000, place * 1000 + 999)} | {id_: (place, place + id_) for id_ in range(3, COLUMNS + 1)}
    lower, upper = (
        [
            {"key": id_, "value": region.encode() if id_ == 2 else _LONG.pack(bounds[id_][side])}
            for id_ in range(1, COLUMNS + 1)
        ]
        for side in (0, 1)
    )
    name = (
        f"s3://warehouse/db/events/data/region={region}/{place:08}-{place * 7919 % 100_003:06}-{place:032x}.parquet"
    )
    changes = {"file_path": name, "partition": {"region": region}, "lower_bounds": lower, "upper_bounds": upper}
    return entry | {"data_file": entry["data_file"] | changes}


def _summary(place: int) -> dict[str, Any]:
    region = _region(place).encode()
    return {"contains_null": False, "contains_nan": None, "lower_bound": region, "upper_bound": region}
