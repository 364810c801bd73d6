"""What a snapshot is made of: files, rows and bytes, buckets and their skew, levels, and how rows are merged.

Facts of the metadata alone; no data file is opened. What a writer left out is not counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow.compute as pc

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
from tamis.formats.paimon.deletions import Key, Placed, file_keys, read_vectors
from tamis.formats.paimon.files import DELETE_ROWS, LEVEL, PARTITION_ROW, TOTAL_BUCKETS, FileMaker
from tamis.formats.paimon.schema import PaimonSchema
from tamis.formats.paimon.snapshots import Snapshot, read_snapshots, references
from tamis.formats.paimon.units import ManifestReader, manifest_units
from tamis.predicate.type_names import type_name
from tamis.sieve.files import FileBatch

if TYPE_CHECKING:
    from tamis.formats.paimon.table import PaimonTable

__all__ = ["PaimonInspection", "inspect_table"]

TARGET: Final = "target-file-size"
DEFAULT_TARGET: Final = {True: 128 << 20, False: 256 << 20}
"""Bytes that compaction aims at where the table does not say: of a table with a primary key, and of one without."""
SMALL: Final = 0.7
"""Java compacts files of append tables that are smaller than this part of the target."""
MOST_HISTORY: Final = 20
"""Snapshots of the history that are told: each is a file that has to be read."""
_SHOWN: Final = (
    *("bucket", "changelog-producer", "compaction.", "deletion-vectors.", "dynamic-bucket.", "file-index.", "file."),
    *("ignore-delete", "manifest.", "merge-engine", "metadata.", "num-levels", "num-sorted-run.", "partition."),
    *("row-tracking.", "sequence.", "snapshot.", "target-file-size", "write-only", "zorder."),
)
"""Options that say how the table is written. All others stay hidden: users keep anything in options."""
_MOST_DIGITS: Final = 18
_UNITS: Final = {"": 1, "b": 1, "k": 1 << 10, "kb": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "g": 1 << 30, "gb": 1 << 30}


@dataclass(frozen=True, slots=True, kw_only=True)
class PaimonInspection(Inspection):
    """One snapshot of a Paimon table, in numbers."""

    primary_key: tuple[str, ...]
    merge_engine: str | None
    """None without a primary key."""
    bucket_mode: str
    bucket_key: tuple[str, ...]
    """None where no hash chooses buckets."""
    bucket_totals: Mapping[str, int]
    """Files by the number of buckets that they are one of: several if the table was rescaled."""
    buckets: int
    """Buckets of partitions that have files."""
    bucket_bytes: Mapping[str, int]
    """The bytes of a bucket: the least, the median and the greatest."""
    levels: Mapping[str, int]
    """Files by their level; only with a primary key."""
    removals: int
    """Rows that remove a row, as far as they are counted."""
    vectors: bool
    """Whether writers delete rows by deletion vectors."""
    hidden: tuple[str, ...]
    """Files that a batch read does not see, and why."""
    schema_id: int

    @property
    def delete_kinds(self) -> tuple[DeleteKind, ...]:
        """Paimon has deletion vectors alone."""
        return ("vectors",)

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Key and merge engine, buckets, levels, and what is not seen."""
        found = []
        if self.merge_engine is not None:
            key = ", ".join(self.primary_key)
            found.append(Fact("primary key", f"{key}; rows are merged by {self.merge_engine}", after="location"))
        found.append(Fact("buckets", self._buckets(), after="columns"))
        if self.levels:
            levels = ", ".join(f"level {level}: {count:,}" for level, count in self.levels.items())
            found.append(Fact("files by level", levels, after="columns"))
        if self.removals:
            found.append(Fact("removing rows", f"{self.removals:,}", after="columns"))
        found.append(Fact("deletion vectors", "enabled" if self.vectors else "not enabled", after="columns"))
        found += [Fact("not seen", text, after="columns") for text in self.hidden]
        return tuple(found)

    def _buckets(self) -> str:
        text = self.bucket_mode
        if self.bucket_key:
            totals = " or ".join(self.bucket_totals) or "no"
            text += f", {totals} for each partition, by {', '.join(self.bucket_key)}"
        if self.buckets and self.bucket_mode != "unaware":
            least, median, most = self.bucket_bytes.values()
            text += f"; {self.buckets:,} with files, of {least:,} to {most:,} bytes, half of them up to {median:,}"
        return text


@dataclass(slots=True)
class _Count:
    """What has been counted so far."""

    spec: SpecInspection
    totals: Counter[int] = field(default_factory=Counter)
    levels: Counter[int] = field(default_factory=Counter)
    bytes: Counter[tuple[bytes, int]] = field(default_factory=Counter)
    removals: int = 0
    notes: list[str] = field(default_factory=list)
    vectors: Mapping[Key, Placed] = field(default_factory=dict)


def inspect_table(table: PaimonTable, progress: Progress | None = None) -> PaimonInspection:
    """The snapshot's numbers, from all its manifests. progress is told how many of how many files have come in."""
    schema, options = table.state.schema, table.options
    target = _bytes(schema.options.get(TARGET, "")) or DEFAULT_TARGET[options.has_key]
    fields = tuple(SpecField(one.name, "identity", one.name) for one in schema.partition_fields)
    count = _Count(SpecInspection(None, current=True, fields=fields))
    if table.snapshot is not None:
        _count(table, count, int(target * SMALL), progress)
    if progress is not None:
        progress(count.spec.files, count.spec.files)
    sizes = np.array(sorted(count.bytes.values()), np.int64)
    ends = (0, len(sizes) // 2, len(sizes) - 1) if len(sizes) else ()
    names = ("least", "median", "greatest")
    fixed = options.bucket_mode in {"fixed", "postpone"}
    snapshot = table.snapshot
    return PaimonInspection(
        table=table.name,
        format=table.format,
        location=shown(table.location),
        snapshot_id=table.snapshot_id,
        snapshot_ms=None if snapshot is None else snapshot.made_ms,
        operation=None if snapshot is None else snapshot.kind,
        columns=len(schema.fields),
        target_file_size=target,
        small_below=int(target * SMALL),
        specs=(count.spec,),
        properties={name: said for name, said in sorted(schema.options.items()) if name.startswith(_SHOWN)},
        schema=tuple(ColumnInspection(one.name, type_name(one.type)) for one in schema.fields),
        history=_history(table),
        primary_key=schema.primary_keys,
        merge_engine=options.merge_engine,
        bucket_mode=options.bucket_mode,
        bucket_key=tuple(one.name for one in schema.bucket_fields) if fixed else (),
        bucket_totals={str(total): files for total, files in sorted(count.totals.items())},
        buckets=len(sizes),
        bucket_bytes={name: int(sizes[place]) for name, place in zip(names, ends, strict=False)},
        levels={str(level): files for level, files in sorted(count.levels.items())} if options.has_key else {},
        removals=count.removals,
        vectors=options.vectors,
        hidden=tuple(count.notes),
        schema_id=schema.id,
    )


def _count(table: PaimonTable, count: _Count, small: int, progress: Progress | None) -> None:
    if (path := table.index_manifest) is not None:
        count.vectors = read_vectors(path, table.storage(path), table.state.schema)
    first = table.first()
    reader = ManifestReader(FileMaker(table.state.schema, level=table.level), first.deleted, fetched=first.contents)
    manifests = first.manifests.manifests
    about = sum(one.added for one in manifests)
    for unit in manifest_units(manifests):
        for batch in reader(unit, table.storage):
            _add(count, batch, small, table.state.schema)
            if progress is not None:
                progress(count.spec.files, max(count.spec.files, about))


def _deletes(batch: FileBatch, vectors: Mapping[Key, Placed], schema: PaimonSchema) -> Deletes:
    """The deletion vectors of a batch's files. An index manifest may still name those of files that are gone."""
    if not vectors:
        return Deletes()
    assert batch.bucket is not None  # noqa: S101 - for the type checker: every file has a bucket
    keys = file_keys(batch.extra[PARTITION_ROW], batch.bucket, batch.path.to_pylist(), schema)
    found = [vectors[key] for key in keys if key in vectors]
    rows, size = sum(one.rows or 0 for one in found), sum(one.length for one in found)
    return Deletes(vectors=len(found), rows=rows, bytes=size)


def _add(count: _Count, batch: FileBatch, small: int, schema: PaimonSchema) -> None:
    sizes = batch.size.fill_null(0).to_numpy(zero_copy_only=False)
    spec = count.spec
    count.spec = replace(
        spec,
        files=spec.files + len(batch),
        rows=spec.rows + int(pc.sum(batch.rows).as_py() or 0),
        bytes=spec.bytes + int(sizes.sum()),
        small_files=spec.small_files + int(np.count_nonzero(sizes < small)),
        deletes=spec.deletes + _deletes(batch, count.vectors, schema),
    )
    count.notes += batch.notes
    for total, files in _counted(batch.extra[TOTAL_BUCKETS].to_pylist()).items():
        count.totals[-1 if total is None else int(total)] += files
    for level, files in _counted(batch.extra[LEVEL].to_pylist()).items():
        count.levels[int(level or 0)] += files
    count.removals += int(pc.sum(batch.extra[DELETE_ROWS]).as_py() or 0)
    assert batch.bucket is not None  # noqa: S101 - for the type checker: every file has a bucket
    partitions = batch.extra[PARTITION_ROW].to_pylist()
    for partition, bucket, size in zip(partitions, batch.bucket.to_pylist(), sizes.tolist(), strict=True):
        count.bytes[partition, bucket] += size


def _counted(values: Sequence[int | None]) -> Counter[int | None]:
    return Counter(values)


def _bytes(text: str) -> int | None:
    """A size as table options spell it: 134217728, or 128 mb."""
    spelled = text.strip().lower()
    digits = spelled.rstrip("abcdefghijklmnopqrstuvwxyz ")
    unit = _UNITS.get(spelled[len(digits) :].strip())
    number = digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS
    return int(digits) * unit if unit and number and int(digits) else None


def _history(table: PaimonTable) -> tuple[SnapshotInspection, ...]:
    """The newest snapshots up to this one, and the tags that keep them."""
    if table.snapshot is None:
        return ()
    named: dict[int, list[str]] = {}
    for name, snapshot in references(table.storage, table.home).items():
        named.setdefault(snapshot.id, []).append(name)
    found = read_snapshots(table.storage, table.home, table.snapshot.id, MOST_HISTORY)
    return tuple(_told(one, tuple(named.get(one.id, ()))) for one in found)


def _told(snapshot: Snapshot, refs: tuple[str, ...]) -> SnapshotInspection:
    return SnapshotInspection(snapshot.id, snapshot.made_ms, snapshot.kind, None, None, refs)
