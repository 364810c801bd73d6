"""Iceberg tables of metadata alone, for commits: no data file is there, and none is read.

What a snapshot lists is read back with fastavro, by the rules of Iceberg's specification, not by tamis.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fastavro
import numpy as np

import tamis
from tamis.formats import writable_table
from tamis.formats.edit import Edit, NewFile, Planned, WritableTable, new_snapshot_id
from tamis.formats.iceberg.single_values import encoded
from tamis.sieve.outcome import Outcome
from tests.making.manifests import table_document

__all__ = [
    "SPECS",
    "Entry",
    "data_file",
    "edit",
    "entries",
    "latest",
    "listed",
    "make_table",
    "planned",
    "position_deletes",
    "vector",
    "writable",
]

FIELDS = [
    {"id": 1, "name": "id", "required": False, "type": "long"},
    {"id": 2, "name": "region", "required": False, "type": "string"},
    {"id": 3, "name": "day", "required": False, "type": "date"},
    {"id": 4, "name": "amount", "required": False, "type": "decimal(9, 2)"},
]
SPECS: list[dict[str, Any]] = [
    {"spec-id": 0, "fields": []},
    {
        "spec-id": 1,
        "fields": [{"name": "region", "transform": "identity", "source-id": 2, "field-id": 1000}],
    },
    {
        "spec-id": 2,
        "fields": [
            {"name": "region", "transform": "identity", "source-id": 2, "field-id": 1000},
            {"name": "id bucket", "transform": "bucket[4]", "source-id": 1, "field-id": 1001},
        ],
    },
    {
        "spec-id": 3,
        "fields": [
            {"name": "day", "transform": "day", "source-id": 3, "field-id": 1002},
            {"name": "amount", "transform": "identity", "source-id": 4, "field-id": 1003},
        ],
    },
]


@dataclass(frozen=True, slots=True)
class Entry:
    """A live entry, with what it inherits."""

    path: str
    content: int
    spec_id: int
    partition: tuple[object, ...]
    sequence: int
    file_sequence: int
    snapshot_id: int
    first_row_id: int | None
    rows: int
    offset: int | None
    referenced: str | None
    raw: str
    """All else that is said of the file."""


def make_table(folder: Path, version: int, **changes: object) -> str:
    """A Hadoop table without a snapshot, with four specs of which the last is current."""
    metadata = folder / "metadata"
    metadata.mkdir(parents=True, exist_ok=True)
    said = {
        "format-version": version,
        "location": str(folder),
        "last-column-id": 4,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": FIELDS}],
        "partition-specs": SPECS,
        "last-partition-id": 1003,
        "default-spec-id": 3,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "current-snapshot-id": -1,
    }
    if version == 1:
        said |= {"schema": {"type": "struct", "schema-id": 0, "fields": FIELDS}, "partition-spec": []}
    if version > 2:
        said["next-row-id"] = 0
    document = table_document(**{**said, **changes})
    (metadata / "v1.metadata.json").write_text(json.dumps(document))
    return str(folder)


def writable(path: str) -> WritableTable:
    return writable_table(tamis.open(path, cache=False).source)


def partition_of(spec_id: int, number: int) -> tuple[object, ...]:
    """Partition values of a file, NULL among them."""
    from decimal import Decimal

    region = (None, "eu", "us")[number % 3]
    amount = None if number % 4 == 0 else Decimal(number % 7) / 4
    return {0: (), 1: (region,), 2: (region, number % 4), 3: (19_000 + number % 5, amount)}[spec_id]


def data_file(path: str, number: int, spec_id: int | None, **said: Any) -> NewFile:  # noqa: ANN401 - fields
    """A file of ids 10 * number up to 9 more, of which metadata says all that it can."""
    low, high = (encoded(_LONG, 10 * number + step) for step in (0, 9))
    return NewFile(
        f"{path}/data/f{number}.parquet",
        1000 + number,
        10,
        spec_id,
        partition_of(spec_id or 0, number),
        column_sizes={1: 80, 2: 5},
        value_counts={1: 10, 2: 10},
        null_counts={1: 0, 2: number % 3},
        lower={1: low},
        upper={1: high},
        split_offsets=(4, 500),
        sort_order_id=0,
        **said,
    )


def position_deletes(path: str, number: int, of: NewFile, rows: int = 2) -> NewFile:
    return NewFile(
        f"{path}/data/d{number}.parquet", 50, rows, of.spec_id, of.partition, content=1, referenced=of.path
    )


def vector(path: str, number: int, of: NewFile, offset: int = 4) -> NewFile:
    return NewFile(
        f"{path}/data/v{number}.puffin",
        500,
        3,
        of.spec_id,
        of.partition,
        content=1,
        file_format="PUFFIN",
        referenced=of.path,
        content_offset=offset,
        content_size=40,
    )


def edit(table: WritableTable, operation: str, **said: Any) -> Edit:  # noqa: ANN401 - fields of Edit
    return Edit(operation, table.head("main"), table.schema_id, new_snapshot_id(), **said)  # type: ignore[arg-type]


def planned(
    table: WritableTable, leaves: Callable[[str], bool], where: str | None = None
) -> tuple[tamis.TablePlan, tuple[Planned, ...]]:
    """A plan of the whole table, and the files of these paths as it found them."""
    source = table.table()
    plan = tamis.Table(source).plan(where)

    def chosen(outcome: Outcome) -> Any:  # noqa: ANN401 - a mask
        return np.array([leaves(path) for path in outcome.batch.path.to_pylist()], np.bool_)

    return plan, table.planned(source, plan, chosen)


def latest(path: str) -> dict[str, Any]:
    """The newest metadata document."""
    files = Path(path, "metadata").glob("v*.metadata.json")
    found: dict[str, Any] = json.loads(max(files, key=lambda one: int(one.name[1:].split(".")[0])).read_text())
    return found


def listed(path: str) -> list[dict[str, Any]]:
    """The manifest list of the current snapshot."""
    document = latest(path)
    current = next(one for one in document["snapshots"] if one["snapshot-id"] == document["current-snapshot-id"])
    return _records(current["manifest-list"])


def _records(path: str) -> list[dict[str, Any]]:
    return list(fastavro.reader(io.BytesIO(Path(path).read_bytes())))  # type: ignore[arg-type]


def entries(path: str, status: tuple[int, ...] = (0, 1)) -> list[Entry]:
    """The entries of the current snapshot that have one of the statuses."""
    found = []
    for manifest in listed(path):
        next_row = manifest.get("first_row_id")
        for one in _records(manifest["manifest_path"]):
            file, added = one["data_file"], one["status"] == 1
            first = file.get("first_row_id")
            if one["status"] != 2 and first is None and next_row is not None:
                first, next_row = next_row, next_row + file["record_count"]
            if one["status"] not in status:
                continue
            own = manifest.get("sequence_number", 0) if added or not manifest.get("sequence_number") else None
            sequences = [one.get(name) for name in ("sequence_number", "file_sequence_number")]
            sequence, file_sequence = (own if number is None else number for number in sequences)
            snapshot = one["snapshot_id"] if one["snapshot_id"] is not None else manifest["added_snapshot_id"]
            rest = {key: value for key, value in file.items() if key not in {"first_row_id", "content"}}
            found.append(
                Entry(
                    file["file_path"],
                    file.get("content", 0),
                    manifest["partition_spec_id"],
                    tuple(file["partition"].values()),
                    sequence,
                    file_sequence,
                    snapshot,
                    first,
                    file["record_count"],
                    file.get("content_offset"),
                    file.get("referenced_data_file"),
                    repr(rest),
                )
            )
    return found


def _long() -> Any:  # noqa: ANN401 - pyarrow has no types
    import pyarrow as pa

    return pa.int64()


_LONG = _long()


def totals(path: str) -> Mapping[str, int]:
    """What the newest snapshot's summary says of the whole table."""
    document = latest(path)
    summary = document["snapshots"][-1]["summary"]
    return {key: int(value) for key, value in summary.items() if key.startswith("total-")}
