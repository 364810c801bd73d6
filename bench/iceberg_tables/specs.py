"""A table that has had very many partition specs, a manifest for each: metadata alone, as PyIceberg writes it."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path
from typing import Final

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
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.transforms import TruncateTransform, VoidTransform
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField, StringType

from bench.iceberg_tables.java import CACHE

__all__ = ["many_specs"]

FILES: Final = 20
"""Files of each spec."""
SNAPSHOT: Final = 1
SCHEMA: Final = Schema(NestedField(1, "id", LongType()), NestedField(2, "name", StringType()))
_LONG: Final = struct.Struct("<q")


def many_specs(count: int) -> Path:
    """A version 2 table of so many specs, each `truncate[w](id)` for another w, with bounds of id for each file.

    Every field that is replaced stays in the specs that follow, as void: so version 1 tables evolve.
    """
    location = CACHE / f"many-specs-{count}"
    if not (location / "done").exists():
        shutil.rmtree(location, ignore_errors=True)
        (location / "metadata").mkdir(parents=True)
        _make(location, count)
        (location / "done").touch()
    return location


def _spec(number: int) -> PartitionSpec:
    fields = [PartitionField(1, 1000 + one, VoidTransform(), f"id_trunc_{one + 10}") for one in range(number)]
    width = number + 10
    fields.append(PartitionField(1, 1000 + number, TruncateTransform(width), f"id_trunc_{width}"))
    return PartitionSpec(*fields, spec_id=number)


def _make(location: Path, count: int) -> None:
    folder, io = location / "metadata", load_file_io({})
    specs = [_spec(number) for number in range(count)]
    manifests = []
    for spec in specs:
        output = io.new_output(str(folder / f"m{spec.spec_id:05}.avro"))
        with write_manifest(2, spec, SCHEMA, output, SNAPSHOT, "deflate") as writer:
            for place in range(FILES):
                writer.add(_entry(spec, place))
        manifests.append(writer.to_manifest_file())
    listed = folder / "snap-1.avro"
    with write_manifest_list(2, io.new_output(str(listed)), SNAPSHOT, None, 1, "deflate") as writer:
        writer.add_manifests(manifests)
    table = new_table_metadata(SCHEMA, specs[0], UNSORTED_SORT_ORDER, str(location), {"format-version": "2"})
    document = json.loads(table.model_dump_json())
    snapshot = {"snapshot-id": SNAPSHOT, "sequence-number": 1, "timestamp-ms": 1, "manifest-list": str(listed)}
    document |= {
        "partition-specs": [json.loads(spec.model_dump_json()) for spec in specs],
        "default-spec-id": count - 1,
        "last-partition-id": 1000 + count,
        "snapshots": [snapshot | {"summary": {"operation": "append"}, "schema-id": 0}],
        "current-snapshot-id": SNAPSHOT,
        "last-sequence-number": 1,
        "refs": {"main": {"snapshot-id": SNAPSHOT, "type": "branch"}},
    }
    (folder / "v1.metadata.json").write_text(json.dumps(document), encoding="utf-8")


def _entry(spec: PartitionSpec, place: int) -> ManifestEntry:
    width = spec.spec_id + 10
    low = place * 1000
    file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=f"s3://bucket/data/{spec.spec_id}/{place}.parquet",
        file_format=FileFormat.PARQUET,
        partition=Record(*[None] * spec.spec_id, low - low % width),
        record_count=100,
        file_size_in_bytes=10_000,
        value_counts={1: 100},
        null_value_counts={1: 0},
        lower_bounds={1: _LONG.pack(low)},
        upper_bounds={1: _LONG.pack(low - low % width + width - 1)},
    )
    return ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=SNAPSHOT, data_file=file)
