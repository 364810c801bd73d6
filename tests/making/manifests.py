"""Small Iceberg tables and hand-written manifests for these tests."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table

from tamis.formats.iceberg.metadata import TableMetadata
from tamis.formats.iceberg.parsing import parse_metadata
from tamis.formats.storage.local import fetch_local

__all__ = ["avro_bytes", "create", "entry", "entry_schema", "metadata_of", "table_document"]


def create(folder: Path, schema: Schema, spec: PartitionSpec, version: str = "2") -> Table:
    """A table in a catalog that lives in memory, its files under folder."""
    catalog = InMemoryCatalog("test", warehouse=folder.as_uri())
    catalog.create_namespace("db")
    return catalog.create_table("db.t", schema, partition_spec=spec, properties={"format-version": version})


def metadata_of(table: Table) -> TableMetadata:
    """The table's current metadata file as tamis reads it."""
    return parse_metadata(fetch_local(table.metadata_location), table.metadata_location)


def table_document(**changes: object) -> dict[str, Any]:
    """The JSON of a small version 2 table without snapshots."""
    document: dict[str, Any] = {
        "format-version": 2,
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": "/warehouse/t",
        "last-sequence-number": 0,
        "last-updated-ms": 1,
        "last-column-id": 3,
        "schemas": [
            {
                "type": "struct",
                "schema-id": 0,
                "fields": [
                    {"id": 1, "name": "id", "required": True, "type": "long"},
                    {"id": 2, "name": "name", "required": False, "type": "string"},
                ],
            }
        ],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "properties": {},
        "snapshots": [],
    }
    return document | changes


def parsed(document: Mapping[str, Any]) -> TableMetadata:
    """The document as tamis reads it."""
    return parse_metadata(json.dumps(document).encode(), "/warehouse/t/metadata/v1.metadata.json")


def map_of(key: int, value: int, type_: str) -> list[Any]:
    """An optional Avro map with int keys, as Iceberg writes it."""
    fields = [{"name": "key", "type": "int", "field-id": key}, {"name": "value", "type": type_, "field-id": value}]
    record = {"type": "record", "name": f"k{key}_v{value}", "fields": fields}
    return ["null", {"type": "array", "items": record, "logicalType": "map"}]


def entry_schema(partition: Iterable[Mapping[str, Any]] = (), *, version: int = 2) -> dict[str, Any]:
    """A manifest's Avro schema; version 1 lacks what came later."""
    file: list[dict[str, Any]] = [
        {"name": "file_path", "type": "string", "field-id": 100},
        {"name": "file_format", "type": "string", "field-id": 101},
        {
            "name": "partition",
            "type": {"type": "record", "name": "r102", "fields": list(partition)},
            "field-id": 102,
        },
        {"name": "record_count", "type": "long", "field-id": 103},
        {"name": "file_size_in_bytes", "type": "long", "field-id": 104},
        {"name": "null_value_counts", "type": map_of(121, 122, "long"), "default": None, "field-id": 110},
        {"name": "nan_value_counts", "type": map_of(138, 139, "long"), "default": None, "field-id": 137},
        {"name": "lower_bounds", "type": map_of(126, 127, "bytes"), "default": None, "field-id": 125},
        {"name": "upper_bounds", "type": map_of(129, 130, "bytes"), "default": None, "field-id": 128},
    ]
    top: list[dict[str, Any]] = [
        {"name": "status", "type": "int", "field-id": 0},
        {"name": "snapshot_id", "type": ["null", "long"], "default": None, "field-id": 1},
    ]
    if version > 1:
        top += [
            {"name": "sequence_number", "type": ["null", "long"], "default": None, "field-id": 3},
            {"name": "file_sequence_number", "type": ["null", "long"], "default": None, "field-id": 4},
        ]
        file.insert(0, {"name": "content", "type": "int", "field-id": 134})
        ids = ["null", {"type": "array", "items": "int", "element-id": 136}]
        file += [
            {"name": "equality_ids", "type": ids, "default": None, "field-id": 135},
            {"name": "referenced_data_file", "type": ["null", "string"], "default": None, "field-id": 143},
        ]
    if version > 2:
        names = {"first_row_id": 142, "content_offset": 144, "content_size_in_bytes": 145}
        file += [
            {"name": name, "type": ["null", "long"], "default": None, "field-id": id_} for name, id_ in names.items()
        ]
    data_file = {"name": "data_file", "type": {"type": "record", "name": "r2", "fields": file}, "field-id": 2}
    return {"type": "record", "name": "manifest_entry", "fields": [*top, data_file]}


def entry(path: str = "a.parquet", *, status: int = 1, rows: int = 10, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """One entry; what is named beside goes where it belongs."""
    top = {
        name: more.pop(name) for name in ("snapshot_id", "sequence_number", "file_sequence_number") if name in more
    }
    for name in ("lower_bounds", "upper_bounds", "null_value_counts", "nan_value_counts"):
        if more.get(name) is not None:
            more[name] = [{"key": key, "value": value} for key, value in more[name].items()]
    file = {"content": 0, "file_path": path, "file_format": "PARQUET", "partition": {}, "record_count": rows}
    return {"status": status, **top, "data_file": {**file, "file_size_in_bytes": 100, **more}}


def avro_bytes(
    schema: Mapping[str, Any], records: Iterable[Mapping[str, Any]], *, codec: str = "deflate", block: int = 64_000
) -> bytes:
    """An Avro file; a block of 1 puts every record into one of its own."""
    buffer = io.BytesIO()
    fastavro.writer(buffer, schema, records, codec=codec, sync_interval=block)
    return buffer.getvalue()


def scalars(array: pa.Array) -> list[Any]:
    """Python values, uuids as their bytes."""
    return (array.storage if isinstance(array, pa.ExtensionArray) else array).to_pylist()
