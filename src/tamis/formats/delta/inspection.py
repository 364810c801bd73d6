"""What a version is made of: files, rows, bytes, vectors and small files, and what its log consists of.

Facts of the log alone; no data file is opened. What a writer left out is not counted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.formats.delta.files import VECTOR_COLUMN, FileMaker
from tamis.formats.delta.metadata import TableMetadata
from tamis.formats.delta.snapshot import Snapshot
from tamis.formats.delta.times import made_ms, whole
from tamis.formats.delta.units import LogReader, checkpoint_units
from tamis.formats.errors import shown
from tamis.formats.inspection import (
    ColumnInspection,
    DeleteKind,
    Deletes,
    Fact,
    Inspection,
    SnapshotInspection,
    SpecField,
    SpecInspection,
)
from tamis.formats.listing import Progress
from tamis.predicate.names import split_name
from tamis.sieve.files import FileBatch

if TYPE_CHECKING:
    from tamis.formats.delta.table import DeltaTable

__all__ = ["DeltaInspection", "inspect_table", "target_file_size"]

TARGET: Final = "delta.targetFileSize"
DEFAULT_TARGET: Final = 1 << 30
"""Bytes that OPTIMIZE aims at where the table does not say."""
SMALL: Final = 1.0
"""OPTIMIZE rewrites what is smaller than its target."""
_UNITS: Final = {"": 1, "b": 1, "k": 1 << 10, "kb": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "g": 1 << 30, "gb": 1 << 30}
_SHOWN_PREFIX: Final = "delta."
MOST_HISTORY: Final = 20
"""Versions of the history that are told: each is a file that has to be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaInspection(Inspection):
    """One version of a Delta table, in numbers."""

    reader_version: int
    writer_version: int
    features: tuple[str, ...]
    checkpoint_version: int | None
    checkpoint_kind: str | None
    checkpoint_files: int
    """Parts and sidecars."""
    checkpoint_bytes: int
    tail_commits: int
    """Versions after the checkpoint."""
    tail_bytes: int
    column_mapping: str
    clustered_by: tuple[str, ...]

    @property
    def delete_kinds(self) -> tuple[DeleteKind, ...]:
        """Delta has deletion vectors alone."""
        return ("vectors",)

    @property
    def facts(self) -> tuple[Fact, ...]:
        """The protocol and its features, the checkpoint, and the log after it."""
        features = f"; features: {', '.join(self.features)}" if self.features else ""
        versions = f"reader {self.reader_version}, writer {self.writer_version}{features}"
        found = [Fact("protocol", versions, after="location")]
        if self.checkpoint_version is None:
            found.append(Fact("checkpoint", "none", after="columns"))
        else:
            files = f"{self.checkpoint_files:,} file{'s' * (self.checkpoint_files != 1)}"
            text = f"{self.checkpoint_kind}, of version {self.checkpoint_version}, {files}"
            found.append(Fact("checkpoint", text, after="columns", bytes=self.checkpoint_bytes))
        commits = f"{self.tail_commits:,} commit{'s' * (self.tail_commits != 1)} after it"
        found.append(Fact("log tail", commits, after="columns", bytes=self.tail_bytes))
        if self.column_mapping != "none":
            found.append(Fact("column mapping", self.column_mapping, after="columns"))
        if self.clustered_by:
            found.append(Fact("clustered by", ", ".join(self.clustered_by), after="columns"))
        return tuple(found)


def target_file_size(metadata: TableMetadata) -> int:
    """Bytes that OPTIMIZE aims at, by the table's properties."""
    return _bytes(metadata.configuration.get(TARGET, "")) or DEFAULT_TARGET


def inspect_table(table: DeltaTable, progress: Progress | None = None) -> DeltaInspection:
    """The version's numbers, from its whole log. progress is told how many of how many files have come in."""
    snapshot = table.snapshot
    metadata, protocol, schema = snapshot.metadata, snapshot.protocol, snapshot.schema
    target = target_file_size(metadata)
    checkpoint = snapshot.segment.checkpoint
    units = checkpoint_units(snapshot)
    maker = FileMaker(schema, ())
    reader = LogReader(maker, snapshot.tail.touched, snapshot.tail)
    fields = tuple(SpecField(field.name, "identity", field.name) for field in schema.partition_fields)
    spec = SpecInspection(None, current=True, fields=fields)
    for batches in (*(reader(unit, table.storage) for unit in units), maker.batches(snapshot.tail.adds)):
        for batch in batches:
            spec = _counted(spec, batch.stated(), int(target * SMALL))
            if progress is not None:
                progress(spec.files, max(spec.files, snapshot.checkpoint_files + len(snapshot.tail.adds)))
    if progress is not None:
        progress(
            spec.files, spec.files
        )  # a checkpoint has rows that are no files, and files that later commits removed
    history = _history(table)
    made = made_ms(table.storage, table.log, metadata, snapshot.version)
    return DeltaInspection(
        table=table.name,
        format=table.format,
        location=shown(table.location),
        snapshot_id=snapshot.version,
        snapshot_ms=made,
        operation=history[0].operation if history and history[0].id == snapshot.version else None,
        columns=len(schema.fields),
        target_file_size=target,
        small_below=int(target * SMALL),
        specs=(spec,),
        properties={k: v for k, v in sorted(metadata.configuration.items()) if k.startswith(_SHOWN_PREFIX)},
        schema=tuple(ColumnInspection(field.name, field.described) for field in schema.fields),
        history=history,
        reader_version=protocol.reader,
        writer_version=protocol.writer,
        features=protocol.features,
        checkpoint_version=None if checkpoint is None else checkpoint.version,
        checkpoint_kind=None if checkpoint is None else checkpoint.kind,
        checkpoint_files=len(units),
        checkpoint_bytes=sum(unit.size for unit in units),
        tail_commits=snapshot.version - (-1 if checkpoint is None else checkpoint.version),
        tail_bytes=sum(one.size for one in snapshot.segment.commits),
        column_mapping=metadata.column_mapping,
        clustered_by=_clustering(snapshot),
    )


def _counted(spec: SpecInspection, batch: FileBatch, small: int) -> SpecInspection:
    sizes = batch.size.fill_null(0).to_numpy(zero_copy_only=False)
    vectors = batch.extra.get(VECTOR_COLUMN)
    deletes = spec.deletes
    if vectors is not None:
        deletes += Deletes(
            vectors=int(len(vectors) - vectors.null_count),
            rows=_sum(pc.struct_field(vectors, "cardinality")),
            bytes=_sum(pc.struct_field(vectors, "sizeInBytes")),
        )
    return replace(
        spec,
        files=spec.files + len(batch),
        rows=spec.rows + _sum(batch.rows),
        bytes=spec.bytes + int(sizes.sum()),
        small_files=spec.small_files + int(np.count_nonzero(sizes < small)),
        deletes=deletes,
    )


def _sum(counts: pa.Array) -> int:
    return int(pc.sum(counts).as_py() or 0)


def _bytes(text: str) -> int | None:
    """A size as table properties spell it: 134217728, or 128mb."""
    digits = text.strip().lower().rstrip("abcdefghijklmnopqrstuvwxyz ")
    unit = _UNITS.get(text.strip().lower()[len(digits) :].strip())
    return (whole(digits) or 0) * unit or None if unit else None


def _clustering(snapshot: Snapshot) -> tuple[str, ...]:
    """The clustering columns by their own names, as far as the log says them."""
    columns = snapshot.clustering
    names = {split_name(field.id): path for path, field in snapshot.schema.walk()}
    return tuple(".".join(names.get(path, path)) for path in columns)


def _history(table: DeltaTable) -> tuple[SnapshotInspection, ...]:
    """The newest versions up to this one, as their commits tell of them."""
    versions = [one for one in sorted(table.log.commits, reverse=True) if one <= table.snapshot.version]
    found = []
    for version in versions[:MOST_HISTORY]:
        info = _info(table.storage(table.log.commits[version].location))
        made = info.get("inCommitTimestamp") or info.get("timestamp")
        if not isinstance(made, int):
            made = table.storage.modified_ms(table.log.commits[version].location)
        metrics = info.get("operationMetrics")
        numbers = metrics if isinstance(metrics, dict) else {}
        operation = info.get("operation")
        found.append(
            SnapshotInspection(
                version,
                made or 0,
                str(operation) if operation else None,
                _count(numbers, "numAddedFiles", "numFiles", "numOutputFiles", "numTargetFilesAdded"),
                _count(numbers, "numRemovedFiles", "numTargetFilesRemoved"),
                (),
            )
        )
    return tuple(found)


def _info(text: bytes) -> Mapping[str, Any]:
    """What a commit says of itself; nothing if it does not, for whoever reads needs none of it."""
    for line in text.split(b"\n"):
        if b'"commitInfo"' in line:
            try:
                action = json.loads(line)
            except (ValueError, RecursionError):
                return {}
            found = action.get("commitInfo") if isinstance(action, dict) else None
            if isinstance(found, dict):
                return found
    return {}


def _count(metrics: Mapping[str, Any], *names: str) -> int | None:
    for name in names:
        found = whole(str(metrics.get(name, "")))
        if found is not None:
            return found
    return None
