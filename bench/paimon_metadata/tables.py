"""Paimon tables without data files: manifests as Java sizes their blocks, with full statistics of eight columns.

A table has 100 days as partitions, and the files of a day go round its buckets. Of file n: `id` lies in [0, 10**6),
which no statistics tell apart, `a` is n, `e` lies in [10 * n, 10 * n + 9], and the rest is alike in all of them.
"""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import fastavro
from pypaimon.manifest.schema.manifest_entry import MANIFEST_ENTRY_SCHEMA
from pypaimon.manifest.schema.manifest_file_meta import MANIFEST_FILE_META_SCHEMA

from bench.harness import CACHE

__all__ = ["DAYS", "day_of", "made_table"]

DAYS: Final = 100
BLOCK: Final = 64_000
"""Bytes of a block, as Java's writer has it; pypaimon's has 16,000."""
PER_MANIFEST: Final = 25_000
LARGEST: Final = 10**6
COLUMNS: Final = {
    "id": "BIGINT NOT NULL",
    "dt": "STRING NOT NULL",
    "a": "INT",
    "b": "STRING",
    "c": "DOUBLE",
    "d": "DATE",
    "e": "BIGINT",
    "f": "INT",
}
_EMPTY: Final = bytes(12)


def day_of(number: int) -> str:
    """The partition of a file."""
    number %= DAYS
    return f"2024-{number // 28 + 1:02d}-{number % 28 + 1:02d}"


def made_table(files: int, buckets: int, *, keys: bool) -> Path:
    """The folder of a table of so many files, with a primary key of (dt, id) or as an append table bucketed by id."""
    kind = "keys" if keys else "append"
    folder = CACHE / "paimon" / "db.db" / f"{kind}_{files}_{buckets}"
    if (folder / "snapshot" / "LATEST").exists():
        return folder.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("schema", "snapshot", "manifest"):
        (folder / name).mkdir(parents=True)
    options = {"bucket": str(buckets), **({} if keys else {"bucket-key": "id"})}
    schema = {
        "version": 3,
        "id": 0,
        "fields": [{"id": place, "name": name, "type": type_} for place, (name, type_) in enumerate(COLUMNS.items())],
        "highestFieldId": len(COLUMNS) - 1,
        "partitionKeys": ["dt"],
        "primaryKeys": ["dt", "id"] if keys else [],
        "options": options,
        "timeMillis": 0,
    }
    (folder / "schema" / "schema-0").write_text(json.dumps(schema), encoding="utf-8")
    metas = [
        _manifest(folder, number, range(start, min(start + PER_MANIFEST, files)), buckets, keys=keys)
        for number, start in enumerate(range(0, files, PER_MANIFEST))
    ]
    _avro(folder / "manifest" / "manifest-list-0", MANIFEST_FILE_META_SCHEMA, iter(metas))
    _avro(folder / "manifest" / "manifest-list-1", MANIFEST_FILE_META_SCHEMA, iter(()))
    snapshot = {
        "version": 3,
        "id": 1,
        "schemaId": 0,
        "baseManifestList": "manifest-list-0",
        "deltaManifestList": "manifest-list-1",
        "commitUser": "bench",
        "commitIdentifier": 1,
        "commitKind": "APPEND",
        "timeMillis": 1_700_000_000_000,
        "totalRecordCount": 1000 * files,
        "deltaRecordCount": 0,
    }
    (folder / "snapshot" / "snapshot-1").write_text(json.dumps(snapshot), encoding="utf-8")
    (folder / "snapshot" / "LATEST").write_text("1", encoding="utf-8")
    return folder.resolve()


def _manifest(folder: Path, number: int, files: range, buckets: int, *, keys: bool) -> dict[str, Any]:
    name = f"manifest-{number}"
    size = _avro(folder / "manifest" / name, MANIFEST_ENTRY_SCHEMA, _entries(files, buckets, keys=keys))
    days = [_row(day_of(0)), _row(day_of(DAYS - 1))]
    return {
        "_VERSION": 2,
        "_FILE_NAME": name,
        "_FILE_SIZE": size,
        "_NUM_ADDED_FILES": len(files),
        "_NUM_DELETED_FILES": 0,
        "_PARTITION_STATS": _stats(*days, [0]),
        "_SCHEMA_ID": 0,
    }


def _entries(files: range, buckets: int, *, keys: bool) -> Iterator[dict[str, Any]]:
    low, high = (_row(bound) for bound in (0, LARGEST - 1))
    for number in files:
        day = day_of(number)
        values = [
            _row(at, day, number, "b", 0.5, 19_000, 10 * number + more, 7) for at, more in ((0, 0), (LARGEST - 1, 9))
        ]
        yield {
            "_VERSION": 2,
            "_KIND": 0,
            "_PARTITION": _row(day),
            "_BUCKET": number // DAYS % buckets,
            "_TOTAL_BUCKETS": buckets,
            "_FILE": {
                "_FILE_NAME": f"data-3f2504e0-4f89-11d3-9a0c-{number:012d}-0.parquet",
                "_FILE_SIZE": 1_000_000 + number,
                "_ROW_COUNT": 1000,
                "_MIN_KEY": low if keys else _EMPTY,
                "_MAX_KEY": high if keys else _EMPTY,
                "_KEY_STATS": _stats(low, high, [0]) if keys else _stats(_EMPTY, _EMPTY, []),
                "_VALUE_STATS": _stats(*values, [0] * len(COLUMNS)),
                "_MIN_SEQUENCE_NUMBER": 1000 * number,
                "_MAX_SEQUENCE_NUMBER": 1000 * number + 999,
                "_SCHEMA_ID": 0,
                "_LEVEL": 0,
                "_EXTRA_FILES": [],
                "_CREATION_TIME": 1_700_000_000_000,
                "_DELETE_ROW_COUNT": 0,
                "_FILE_SOURCE": 0,
            },
        }


def _stats(low: bytes, high: bytes, nulls: list[int]) -> dict[str, Any]:
    return {"_MIN_VALUES": low, "_MAX_VALUES": high, "_NULL_COUNTS": nulls}


def _row(*values: float | str) -> bytes:
    """A serialised BinaryRow without NULLs: text, whole numbers of up to 8 bytes, and doubles."""
    fields, behind = b"", b""
    for value in values:
        match value:
            case str() if len(value) <= 7:
                fields += value.encode().ljust(7, b"\0") + bytes([0x80 | len(value)])
            case str():
                fields += struct.pack("<ii", len(value), 8 + 8 * len(values) + len(behind))
                behind += value.encode() + bytes(-len(value) % 8)
            case int():
                fields += struct.pack("<q", value)
            case float():
                fields += struct.pack("<d", value)
    return struct.pack(">i", len(values)) + bytes(8) + fields + behind


def _avro(path: Path, schema: dict[str, Any], records: Iterator[dict[str, Any]]) -> int:
    file = BytesIO()
    fastavro.writer(file, schema, records, codec="zstandard", sync_interval=BLOCK)
    path.write_bytes(file.getvalue())
    return len(file.getvalue())
