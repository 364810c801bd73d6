"""What a snapshot is made of: files, rows, bytes, deletes and small files, for each partition spec.

Facts of the metadata alone; no data file is opened. What a writer left out is not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.formats.errors import shown
from tamis.formats.iceberg.deletes import EQUALITY
from tamis.formats.iceberg.manifest_list import DATA, DELETES, Manifest, read_manifest_list
from tamis.formats.iceberg.manifests import DeleteBatch, live_manifests, read_data_files, read_delete_files
from tamis.formats.iceberg.metadata import Selection, SpecLayout, TableMetadata
from tamis.formats.iceberg.reading import Fetch
from tamis.predicate.type_names import type_name
from tamis.sieve.files import FileBatch

__all__ = [
    "ColumnInspection",
    "Deletes",
    "Inspection",
    "SnapshotInspection",
    "SpecField",
    "SpecInspection",
    "inspect_table",
]

TARGET: Final = "write.target-file-size-bytes"
DEFAULT_TARGET: Final = 512 << 20
"""Bytes that Iceberg's writers aim at where the table does not say."""
LONGEST_COUNT: Final = 19
"""Digits beyond which a count is none."""
SMALL: Final = 0.75
"""The part of the target below which a file is small: what Iceberg's own rewrite goes by."""
_SHOWN_PROPERTIES: Final = frozenset(
    {
        TARGET,
        "commit.manifest.target-size-bytes",
        "commit.manifest-merge.enabled",
        "format-version",
        "gc.enabled",
        "history.expire.max-snapshot-age-ms",
        "history.expire.min-snapshots-to-keep",
        "write.data.partition-columns",
        "write.delete.granularity",
        "write.delete.isolation-level",
        "write.delete.mode",
        "write.distribution-mode",
        "write.format.default",
        "write.merge.isolation-level",
        "write.merge.mode",
        "write.metadata.delete-after-commit.enabled",
        "write.metadata.previous-versions-max",
        "write.parquet.compression-codec",
        "write.parquet.row-group-size-bytes",
        "write.update.isolation-level",
        "write.update.mode",
        "write.wap.enabled",
    }
)
"""Properties that say how the table is written. All others stay hidden: users keep anything in properties."""
_SHOWN_PREFIX: Final = "write.metadata.metrics."


@dataclass(frozen=True, slots=True)
class SpecField:
    """One field of a partition spec."""

    name: str
    transform: str
    source: str | None
    """The column's name: today's, or its last one if it was dropped; None if no schema knows it."""
    dropped: bool = False
    """Whether the column is gone from the schema."""

    def __str__(self) -> str:
        source = self.source or "?"
        return source if self.transform == "identity" else f"{self.transform}({source})"


@dataclass(frozen=True, slots=True)
class Deletes:
    """Live delete files and deletion vectors, and the rows that they list."""

    position: int = 0
    equality: int = 0
    vectors: int = 0
    rows: int = 0
    """Positions and keys listed; one may be listed twice, and a key may delete any number of rows."""
    bytes: int = 0

    @property
    def files(self) -> int:
        """How many of any kind."""
        return self.position + self.equality + self.vectors

    def __add__(self, other: Deletes) -> Deletes:
        return Deletes(
            self.position + other.position,
            self.equality + other.equality,
            self.vectors + other.vectors,
            self.rows + other.rows,
            self.bytes + other.bytes,
        )


@dataclass(frozen=True, slots=True)
class SpecInspection:
    """The live files of one spec."""

    spec_id: int
    current: bool
    """Whether new files are written with it."""
    fields: tuple[SpecField, ...]
    files: int = 0
    rows: int = 0
    bytes: int = 0
    small_files: int = 0
    deletes: Deletes = Deletes()

    @property
    def average_bytes(self) -> int | None:
        """Of a data file; None if there is none."""
        return self.bytes // self.files if self.files else None


@dataclass(frozen=True, slots=True)
class ColumnInspection:
    """One column of the schema."""

    name: str
    type: str
    """As Spark's SQL names it."""


@dataclass(frozen=True, slots=True)
class SnapshotInspection:
    """One snapshot of the history, as its summary tells."""

    id: int
    made_ms: int
    operation: str | None
    added_files: int | None
    removed_files: int | None
    refs: tuple[str, ...]
    """The branches and tags that point at it."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """One snapshot of a table, in numbers."""

    table: str
    format: str
    location: str
    metadata: str
    """The metadata file."""
    snapshot_id: int | None
    snapshot_ms: int | None
    operation: str | None
    """What made the snapshot: append, overwrite, replace or delete."""
    columns: int
    snapshots: int
    branches: tuple[str, ...]
    tags: tuple[str, ...]
    data_manifests: int
    delete_manifests: int
    manifest_bytes: int
    target_file_size: int
    small_below: int
    """Bytes: files smaller than this are counted as small."""
    specs: tuple[SpecInspection, ...]
    properties: Mapping[str, str]
    schema: tuple[ColumnInspection, ...] = ()
    history: tuple[SnapshotInspection, ...] = ()
    """All snapshots, the newest first."""

    @property
    def total(self) -> SpecInspection:
        """All specs together, as if they were one."""
        return SpecInspection(
            -1,
            current=False,
            fields=(),
            files=sum(one.files for one in self.specs),
            rows=sum(one.rows for one in self.specs),
            bytes=sum(one.bytes for one in self.specs),
            small_files=sum(one.small_files for one in self.specs),
            deletes=sum((one.deletes for one in self.specs), Deletes()),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, dicts, numbers and strings, ready for JSON."""
        total = self.total
        document = asdict(self)
        document["properties"] = dict(self.properties)
        # Many readers of JSON keep numbers as doubles, which round an id of 19 digits.
        document["snapshot"] = None if self.snapshot_id is None else str(self.snapshot_id)
        for found, made in zip(document["history"], self.history, strict=True):
            found["snapshot"] = str(made.id)
        document["total"] = {
            "files": total.files,
            "rows": total.rows,
            "bytes": total.bytes,
            "average_bytes": total.average_bytes,
            "small_files": total.small_files,
            "deletes": asdict(total.deletes),
        }
        for found, spec in zip(document["specs"], self.specs, strict=True):
            found["average_bytes"] = spec.average_bytes
        return document


def inspect_table(
    name: str,
    metadata: TableMetadata,
    selection: Selection,
    fetch: Fetch,
    progress: Callable[[int, int], None] | None = None,
) -> Inspection:
    """The snapshot's numbers, from all of its manifests. progress is told how many of how many files have come in."""
    snapshot = selection.snapshot
    listed = [] if snapshot is None else read_manifest_list(snapshot, fetch)
    data, deletes = live_manifests(listed, DATA), live_manifests(listed, DELETES)
    target = _target(metadata.properties)
    found = {one.spec.spec_id: _empty(metadata, one) for one in metadata.specs}
    batches = read_data_files(metadata, data, fetch, {})
    _count_files(found, batches, int(target * SMALL), _told(data, progress))
    _count_deletes(found, read_delete_files(metadata, deletes, fetch, {}))
    refs = {kind: tuple(sorted(one.name for one in metadata.refs if one.kind == kind)) for kind in ("branch", "tag")}
    return Inspection(
        table=name,
        format=f"iceberg v{metadata.format_version}",
        location=shown(metadata.location),
        metadata=shown(metadata.path),
        snapshot_id=None if snapshot is None else snapshot.id,
        snapshot_ms=None if snapshot is None else snapshot.timestamp_ms,
        operation=None if snapshot is None else snapshot.operation,
        columns=len(selection.schema.fields),
        snapshots=len(metadata.snapshots),
        branches=refs["branch"],
        tags=refs["tag"],
        data_manifests=len(data),
        delete_manifests=len(deletes),
        manifest_bytes=sum(one.length or 0 for one in (*data, *deletes)),
        target_file_size=target,
        small_below=int(target * SMALL),
        specs=tuple(found[spec_id] for spec_id in sorted(found)),
        properties={
            key: value
            for key, value in sorted(metadata.properties.items())
            if key in _SHOWN_PROPERTIES or key.startswith(_SHOWN_PREFIX)
        },
        schema=tuple(
            ColumnInspection(column.path[0], type_name(column.type))
            for column in selection.schema.columns().columns
            if not column.nested
        ),
        history=_history(metadata),
    )


def _history(metadata: TableMetadata) -> tuple[SnapshotInspection, ...]:
    refs: dict[int, list[str]] = {}
    for ref in metadata.refs:
        refs.setdefault(ref.snapshot_id, []).append(ref.name)
    newest_first = sorted(
        metadata.snapshots, key=lambda made: (made.timestamp_ms, made.sequence_number), reverse=True
    )
    return tuple(
        SnapshotInspection(
            made.id,
            made.timestamp_ms,
            made.operation,
            _counted(made.summary, "added-data-files"),
            _counted(made.summary, "deleted-data-files"),
            tuple(sorted(refs.get(made.id, ()))),
        )
        for made in newest_first
    )


def _counted(summary: Mapping[str, str] | None, name: str) -> int | None:
    """A count of a snapshot's summary; a writer may leave it out, or put anything there."""
    found = str((summary or {}).get(name, ""))
    return int(found) if found.isascii() and found.isdigit() and len(found) < LONGEST_COUNT else None


def _target(properties: Mapping[str, str]) -> int:
    try:
        found = int(properties.get(TARGET, DEFAULT_TARGET))
    except ValueError:
        return DEFAULT_TARGET
    return found if 0 < found < 1 << 63 else DEFAULT_TARGET


def _empty(metadata: TableMetadata, layout: SpecLayout) -> SpecInspection:
    today = {field.id: ".".join(path) for path, field in metadata.schema.walk()}
    ever = {field.id: ".".join(path) for schema in metadata.schemas for path, field in schema.walk()} | today
    fields = tuple(
        SpecField(
            field.name,
            str(field.transform),
            ever.get(field.source) if isinstance(field.source, int) else None,
            dropped=field.source not in today,
        )
        for field in layout.spec.fields
    )
    spec_id = layout.spec.spec_id
    return SpecInspection(spec_id, spec_id == metadata.default_spec_id, fields)


def _told(manifests: Sequence[Manifest], progress: Callable[[int, int], None] | None) -> Callable[[int], None]:
    total = sum(one.live_files or 0 for one in manifests)

    def tell(done: int) -> None:
        if progress is not None:
            progress(done, max(done, total))

    return tell


def _count_files(
    found: dict[int, SpecInspection], batches: Iterable[FileBatch], small: int, tell: Callable[[int], None]
) -> None:
    done = 0
    for batch in batches:
        assert batch.spec_id is not None  # noqa: S101 - for the type checker: every Iceberg file has a spec
        one = found[batch.spec_id]
        sizes = batch.size.to_numpy(zero_copy_only=False)
        found[batch.spec_id] = replace(
            one,
            files=one.files + len(batch),
            rows=one.rows + _sum(batch.rows),
            bytes=one.bytes + int(sizes.sum()),
            small_files=one.small_files + int(np.count_nonzero(sizes < small)),
        )
        done += len(batch)
        tell(done)


def _count_deletes(found: dict[int, SpecInspection], batches: Iterable[DeleteBatch]) -> None:
    for batch in batches:
        one = found[batch.spec_id]
        found[batch.spec_id] = replace(one, deletes=one.deletes + _deletes(batch.files))


def _deletes(files: pa.Table) -> Deletes:
    equality = pc.equal(files["content"], EQUALITY)
    vector = pc.and_(pc.invert(equality), files["content_offset"].is_valid())
    # Many vectors share one file: each counts with its own bytes.
    size = pc.if_else(vector, files["content_size"], files["size"])
    equalities, vectors = (int(pc.sum(mask).as_py() or 0) for mask in (equality, vector))
    return Deletes(files.num_rows - equalities - vectors, equalities, vectors, _sum(files["rows"]), _sum(size))


def _sum(numbers: pa.Array | pa.ChunkedArray) -> int:
    return int(pc.sum(numbers).as_py() or 0)
