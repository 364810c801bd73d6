"""Paimon tables of chosen metadata alone: schemas, entries and statistics as a test wants them, and no data files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
from pypaimon.schema.data_types import AtomicType, DataField
from pypaimon.table.row.generic_row import GenericRow, GenericRowSerializer

__all__ = ["MadeTable", "avro", "entry", "entry_schema", "row", "stats", "vectors"]

EMPTY = bytes(12)
"""A row without fields."""
_STATS: list[dict[str, Any]] = [
    {"name": "_MIN_VALUES", "type": "bytes"},
    {"name": "_MAX_VALUES", "type": "bytes"},
    {"name": "_NULL_COUNTS", "type": ["null", {"type": "array", "items": ["null", "long"]}], "default": None},
]
_TEXTS = {"type": "array", "items": "string"}
FILE_FIELDS: list[dict[str, Any]] = [
    {"name": "_FILE_NAME", "type": "string"},
    {"name": "_FILE_SIZE", "type": "long"},
    {"name": "_ROW_COUNT", "type": "long"},
    {"name": "_MIN_KEY", "type": "bytes"},
    {"name": "_MAX_KEY", "type": "bytes"},
    {"name": "_KEY_STATS", "type": {"type": "record", "name": "keys", "fields": _STATS}},
    {"name": "_VALUE_STATS", "type": {"type": "record", "name": "vals", "fields": _STATS}},
    {"name": "_MIN_SEQUENCE_NUMBER", "type": "long"},
    {"name": "_MAX_SEQUENCE_NUMBER", "type": "long"},
    {"name": "_SCHEMA_ID", "type": "long"},
    {"name": "_LEVEL", "type": "int"},
    {"name": "_EXTRA_FILES", "type": _TEXTS},
    {
        "name": "_CREATION_TIME",
        "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}],
        "default": None,
    },
    {"name": "_DELETE_ROW_COUNT", "type": ["null", "long"], "default": None},
    {"name": "_EMBEDDED_FILE_INDEX", "type": ["null", "bytes"], "default": None},
    {"name": "_FILE_SOURCE", "type": ["null", "int"], "default": None},
    {"name": "_VALUE_STATS_COLS", "type": ["null", _TEXTS], "default": None},
    {"name": "_EXTERNAL_PATH", "type": ["null", "string"], "default": None},
    {"name": "_FIRST_ROW_ID", "type": ["null", "long"], "default": None},
    {"name": "_WRITE_COLS", "type": ["null", _TEXTS], "default": None},
]


def entry_schema(without: Iterable[str] = (), more: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """A manifest's schema, without some fields of files, as an older writer has it; or with more."""
    left_out = set(without)
    fields = [one for one in FILE_FIELDS if one["name"] not in left_out]
    return {
        "type": "record",
        "name": "Entry",
        "fields": [
            {"name": "_VERSION", "type": "int"},
            {"name": "_KIND", "type": "int"},
            {"name": "_PARTITION", "type": "bytes"},
            {"name": "_BUCKET", "type": "int"},
            {"name": "_TOTAL_BUCKETS", "type": "int"},
            {"name": "_FILE", "type": {"type": "record", "name": "File", "fields": [*fields, *more]}},
        ],
    }


LIST_SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Meta",
    "fields": [
        {"name": "_VERSION", "type": "int"},
        {"name": "_FILE_NAME", "type": "string"},
        {"name": "_FILE_SIZE", "type": "long"},
        {"name": "_NUM_ADDED_FILES", "type": "long"},
        {"name": "_NUM_DELETED_FILES", "type": "long"},
        {"name": "_PARTITION_STATS", "type": {"type": "record", "name": "parts", "fields": _STATS}},
        {"name": "_SCHEMA_ID", "type": "long"},
        {"name": "_MIN_BUCKET", "type": ["null", "int"], "default": None},
        {"name": "_MAX_BUCKET", "type": ["null", "int"], "default": None},
        {"name": "_TOTAL_BUCKETS", "type": ["null", "int"], "default": None},
    ],
}


INDEX_SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Index",
    "fields": [
        {"name": "_VERSION", "type": "int"},
        {"name": "_KIND", "type": "int"},
        {"name": "_PARTITION", "type": "bytes"},
        {"name": "_BUCKET", "type": "int"},
        {"name": "_INDEX_TYPE", "type": "string"},
        {"name": "_FILE_NAME", "type": "string"},
        {
            "name": "_DELETIONS_VECTORS_RANGES",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "Range",
                    "fields": [
                        {"name": "f0", "type": "string"},
                        {"name": "f1", "type": ["null", "int"]},
                        {"name": "f2", "type": ["null", "int"]},
                        {"name": "_CARDINALITY", "type": ["null", "long"], "default": None},
                    ],
                },
            },
        },
    ],
}


def vectors(*files: str, partition: bytes = EMPTY, bucket: int = 0, **more: object) -> dict[str, Any]:
    """An entry of an index manifest: these data files of one bucket have vectors. more are fields of the vectors."""
    ranges = [{"f0": name, "f1": 1, "f2": 20, "_CARDINALITY": 1, **more} for name in files]
    return {
        "_VERSION": 1,
        "_KIND": 0,
        "_PARTITION": partition,
        "_BUCKET": bucket,
        "_INDEX_TYPE": "DELETION_VECTORS",
        "_FILE_NAME": "index-0",
        "_DELETIONS_VECTORS_RANGES": ranges,
    }


def row(**values: tuple[str, Any]) -> bytes:
    """A serialised row: of each field its type and its value."""
    fields = [DataField(place, name, AtomicType(type_)) for place, (name, (type_, _)) in enumerate(values.items())]
    return bytes(GenericRowSerializer.to_bytes(GenericRow([value for _, value in values.values()], fields)))


def stats(lower: bytes = EMPTY, upper: bytes = EMPTY, nulls: Sequence[int | None] | None = ()) -> dict[str, Any]:
    """Statistics of keys, values or partitions."""
    return {"_MIN_VALUES": lower, "_MAX_VALUES": upper, "_NULL_COUNTS": None if nulls is None else list(nulls)}


def entry(
    name: str, *, kind: int = 0, partition: bytes = EMPTY, bucket: int = 0, total: int = -1, **file: object
) -> dict[str, Any]:
    """An entry; fields of its file by their names, without the underscore, in lower case."""
    known = {
        "_FILE_NAME": name,
        "_FILE_SIZE": 100,
        "_ROW_COUNT": 10,
        "_MIN_KEY": EMPTY,
        "_MAX_KEY": EMPTY,
        "_KEY_STATS": stats(),
        "_VALUE_STATS": stats(),
        "_MIN_SEQUENCE_NUMBER": 0,
        "_MAX_SEQUENCE_NUMBER": 9,
        "_SCHEMA_ID": 0,
        "_LEVEL": 0,
        "_EXTRA_FILES": [],
    }
    known |= {f"_{key.upper()}": value for key, value in file.items()}
    return {
        "_VERSION": 2,
        "_KIND": kind,
        "_PARTITION": partition,
        "_BUCKET": bucket,
        "_TOTAL_BUCKETS": total,
        "_FILE": known,
    }


def avro(schema: Mapping[str, Any], records: Iterable[Mapping[str, Any]], codec: str = "zstandard") -> bytes:
    """An Avro file."""
    file = BytesIO()
    fastavro.writer(file, schema, records, codec=codec)
    return file.getvalue()


@dataclass
class MadeTable:
    """A table's folder."""

    folder: Path
    columns: Sequence[Mapping[str, Any]]
    partition: Sequence[str] = ()
    key: Sequence[str] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    codec: str = "zstandard"
    snapshots: int = 0
    manifests: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name in ("schema", "snapshot", "manifest"):
            (self.folder / name).mkdir(parents=True)
        self.schema(0, self.columns)

    def schema(self, number: int, columns: Sequence[Mapping[str, Any]], **more: Any) -> None:  # noqa: ANN401 - JSON
        """Write a schema."""
        document = {
            "version": 3,
            "id": number,
            "fields": columns,
            "highestFieldId": 99,
            "partitionKeys": self.partition,
            "primaryKeys": self.key,
            "options": self.options,
            "timeMillis": 0,
            **more,
        }
        (self.folder / "schema" / f"schema-{number}").write_text(json.dumps(document), encoding="utf-8")

    def commit(
        self,
        *entries: Mapping[str, Any],
        without: Iterable[str] = (),
        more: Sequence[Mapping[str, Any]] = (),
        meta: Mapping[str, Any] | None = None,
        schema_id: int = 0,
        index: Sequence[Mapping[str, Any]] = (),
    ) -> Path:
        """A snapshot more, whose delta has one manifest of these entries; the path of the manifest."""
        self.snapshots += 1
        name = f"manifest-{self.snapshots}"
        content = avro(entry_schema(without, more), entries, self.codec)
        (self.folder / "manifest" / name).write_bytes(content)
        listed = {
            "_VERSION": 2,
            "_FILE_NAME": name,
            "_FILE_SIZE": len(content),
            "_NUM_ADDED_FILES": sum(one["_KIND"] == 0 for one in entries),
            "_NUM_DELETED_FILES": sum(one["_KIND"] == 1 for one in entries),
            "_PARTITION_STATS": stats(),
            "_SCHEMA_ID": schema_id,
            **(meta or {}),
        }
        self._list("base", self.manifests)
        self._list("delta", [listed])
        self.manifests.append(listed)
        snapshot = {
            "version": 3,
            "id": self.snapshots,
            "schemaId": schema_id,
            "baseManifestList": f"list-base-{self.snapshots}",
            "deltaManifestList": f"list-delta-{self.snapshots}",
            "commitKind": "APPEND",
            "timeMillis": 1000 * self.snapshots,
            "totalRecordCount": 0,
            "deltaRecordCount": 0,
        }
        if index:
            snapshot["indexManifest"] = f"index-manifest-{self.snapshots}"
            content = avro(INDEX_SCHEMA, index, self.codec)
            (self.folder / "manifest" / f"index-manifest-{self.snapshots}").write_bytes(content)
        path = self.folder / "snapshot" / f"snapshot-{self.snapshots}"
        path.write_text(json.dumps(snapshot), encoding="utf-8")
        return self.folder / "manifest" / name

    def _list(self, name: str, manifests: Sequence[Mapping[str, Any]]) -> None:
        content = avro(LIST_SCHEMA, manifests, self.codec)
        (self.folder / "manifest" / f"list-{name}-{self.snapshots}").write_bytes(content)
