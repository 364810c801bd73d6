"""What a snapshot is made of: files, rows, bytes, deletes and small files, for each partition spec.

Facts of the metadata alone; no data file is opened. What a writer left out is not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.formats.errors import shown
from tamis.formats.iceberg.deletes import EQUALITY
from tamis.formats.iceberg.manifest_list import DATA, DELETES, Manifest, read_manifest_list
from tamis.formats.iceberg.manifests import DeleteBatch, live_manifests, read_data_files, read_delete_files
from tamis.formats.iceberg.metadata import Selection, SpecLayout, TableMetadata
from tamis.formats.inspection import (
    ColumnInspection,
    Deletes,
    Fact,
    Inspection,
    SnapshotInspection,
    SpecField,
    SpecInspection,
)
from tamis.formats.storage import Fetch
from tamis.predicate.type_names import type_name
from tamis.sieve.files import FileBatch

__all__ = ["IcebergInspection", "inspect_table", "target_file_size"]

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


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergInspection(Inspection):
    """One snapshot of an Iceberg table, in numbers."""

    metadata: str
    """The metadata file."""
    snapshots: int
    branches: tuple[str, ...]
    tags: tuple[str, ...]
    data_manifests: int
    delete_manifests: int
    manifest_bytes: int

    @property
    def facts(self) -> tuple[Fact, ...]:
        """The metadata file, the history, and the manifests."""
        branches = f"; branches: {', '.join(self.branches)}" if self.branches else ""
        tags = f"; tags: {', '.join(self.tags)}" if self.tags else ""
        snapshots = f"{self.snapshots:,} snapshot{'s' * (self.snapshots != 1)}"
        manifests = f"{self.data_manifests:,} of data, {self.delete_manifests:,} of deletes"
        return (
            Fact("metadata", self.metadata, after="location"),
            Fact("history", f"{snapshots}{branches}{tags}", after="snapshot"),
            Fact("manifests", manifests, after="columns", bytes=self.manifest_bytes),
        )


def inspect_table(
    name: str,
    metadata: TableMetadata,
    selection: Selection,
    fetch: Fetch,
    progress: Callable[[int, int], None] | None = None,
) -> IcebergInspection:
    """The snapshot's numbers, from all of its manifests. progress is told how many of how many files have come in."""
    snapshot = selection.snapshot
    listed = [] if snapshot is None else read_manifest_list(snapshot, fetch)
    data, deletes = live_manifests(listed, DATA), live_manifests(listed, DELETES)
    target = target_file_size(metadata.properties)
    specs = {layout.spec_id: _empty(metadata, layout) for layout in metadata.specs}
    batches = read_data_files(metadata, data, fetch, {})
    _count_files(specs, batches, int(target * SMALL), _teller(data, progress))
    _count_deletes(specs, read_delete_files(metadata, deletes, fetch, {}))
    refs = {
        ref_type: tuple(sorted(ref.name for ref in metadata.refs if ref.kind == ref_type))
        for ref_type in ("branch", "tag")
    }
    return IcebergInspection(
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
        manifest_bytes=sum(manifest.length or 0 for manifest in (*data, *deletes)),
        target_file_size=target,
        small_below=int(target * SMALL),
        specs=tuple(specs[spec_id] for spec_id in sorted(specs)),
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
    text = str((summary or {}).get(name, ""))
    return int(text) if text.isascii() and text.isdigit() and len(text) < LONGEST_COUNT else None


def target_file_size(properties: Mapping[str, str]) -> int:
    """Bytes that the table's writers aim at, by its properties."""
    try:
        size = int(properties.get(TARGET, DEFAULT_TARGET))
    except ValueError:
        return DEFAULT_TARGET
    return size if 0 < size < 1 << 63 else DEFAULT_TARGET


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
    spec_id = layout.spec_id
    return SpecInspection(spec_id, spec_id == metadata.default_spec_id, fields)


def _teller(manifests: Sequence[Manifest], progress: Callable[[int, int], None] | None) -> Callable[[int], None]:
    total = sum(manifest.live_files or 0 for manifest in manifests)

    def tell(done: int) -> None:
        if progress is not None:
            progress(done, max(done, total))

    return tell


def _count_files(
    specs: dict[int, SpecInspection], batches: Iterable[FileBatch], small: int, tell: Callable[[int], None]
) -> None:
    done = 0
    for batch in batches:
        assert batch.spec_id is not None  # noqa: S101 - for the type checker: every Iceberg file has a spec
        spec = specs[batch.spec_id]
        sizes = batch.size.to_numpy(zero_copy_only=False)
        specs[batch.spec_id] = replace(
            spec,
            files=spec.files + len(batch),
            rows=spec.rows + _sum(batch.rows),
            bytes=spec.bytes + int(sizes.sum()),
            small_files=spec.small_files + int(np.count_nonzero(sizes < small)),
        )
        done += len(batch)
        tell(done)


def _count_deletes(specs: dict[int, SpecInspection], batches: Iterable[DeleteBatch]) -> None:
    for batch in batches:
        spec = specs[batch.spec_id]
        specs[batch.spec_id] = replace(spec, deletes=spec.deletes + _deletes(batch.files))


def _deletes(files: pa.Table) -> Deletes:
    equality = pc.equal(files["content"], EQUALITY)
    vector = pc.and_(pc.invert(equality), files["content_offset"].is_valid())
    # Many vectors share one file: each counts with its own bytes.
    size = pc.if_else(vector, files["content_size"], files["size"])
    equalities, vectors = (int(pc.sum(mask).as_py() or 0) for mask in (equality, vector))
    return Deletes(files.num_rows - equalities - vectors, equalities, vectors, _sum(files["rows"]), _sum(size))


def _sum(numbers: pa.Array | pa.ChunkedArray) -> int:
    return int(pc.sum(numbers).as_py() or 0)
