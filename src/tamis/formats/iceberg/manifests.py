"""Manifests to batches of files for the sieve, several at a time.

Files come in the order of the manifest list and of each manifest, so that the same table gives the same plan.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import pyarrow as pa

from tamis.formats.iceberg import entries as e
from tamis.formats.iceberg.entries import Entries, Types, read_entries
from tamis.formats.iceberg.manifest_list import DATA, Manifest
from tamis.formats.iceberg.metadata import TableMetadata
from tamis.formats.iceberg.stored import Keeper, Run, joined, split
from tamis.formats.storage import Fetch
from tamis.formats.storage.cache import MetadataCache
from tamis.formats.storage.ordered import in_order
from tamis.predicate.schema import ColumnId
from tamis.sieve.domain import ColumnStats
from tamis.sieve.files import FileBatch
from tamis.sieve.partitions import Undecoded

__all__ = ["DeleteBatch", "data_batches", "decoding_tasks", "read_data_files", "read_delete_files"]

THREADS: Final = min(16, (os.cpu_count() or 2) + 1)
"""One for each processor, and one that waits for a file meanwhile. Each has a few megabytes in work."""
JOIN_BYTES: Final = 1 << 20
"""Small manifests of one spec are decoded together until they reach this size: one costs half a millisecond to set
up. Twice the size takes a plan a tenth more processor time: the decoder asks the system for memory anew each time."""
SHARE_BYTES: Final = 64 << 10
"""Less than this is not shared out among threads."""
JOIN_FILES: Final = 256
"""Most manifests to decode together, so that one task does not fetch a whole table."""
PATH_COLUMN: Final = 2147483546
"""The field id of file_path in position delete files: its bounds tell which data files they concern."""
_PATH_TYPE: Final = pa.string()
_DELETE_COLUMNS: Final = (e.EQUALITY_IDS, e.REFERENCED, e.OFFSET, e.CONTENT_SIZE)


@dataclass(frozen=True, slots=True)
class DeleteBatch:
    """Delete files and deletion vectors of one spec."""

    spec_id: int
    files: pa.Table
    """A row each: spec_id, content (1 position, 2 equality), path, file_format, rows, size, sequence_number,
    snapshot_id, equality_ids, referenced_data_file, content_offset, content_size, and path_lower and path_upper, the
    bounds of the data files' paths that a position delete file names."""
    partition: pa.StructArray | None = None
    stats: Mapping[ColumnId, ColumnStats] = field(default_factory=dict)
    undecoded: tuple[Undecoded, ...] = ()

    def __len__(self) -> int:
        return int(self.files.num_rows)


def read_data_files(
    metadata: TableMetadata,
    manifests: Sequence[Manifest],
    fetch: Fetch,
    wanted: Types,
    *,
    threads: int = THREADS,
    cache: MetadataCache | None = None,
) -> Iterator[FileBatch]:
    """The live data files of these manifests, with statistics of the wanted columns only.

    extra has snapshot_id, sequence_number, file_sequence_number, first_row_id (version 3), file_format, and where the
    entry stands: manifest (its index among the given manifests) and entry (its position in that manifest). What the
    cache has is not fetched again.
    """
    keeper = None if cache is None else Keeper(cache, metadata, wanted, manifests)
    work = partial(data_batches, metadata, dict(enumerate(manifests)), fetch, wanted, keeper)
    try:
        for batches in in_order(work, decoding_tasks(manifests, threads), threads):
            yield from batches
    finally:
        if cache is not None:
            cache.trim()


def read_delete_files(
    metadata: TableMetadata,
    manifests: Sequence[Manifest],
    fetch: Fetch,
    wanted: Types,
    *,
    threads: int = THREADS,
) -> Iterator[DeleteBatch]:
    """The live delete files of these manifests, with statistics of the wanted columns (for equality deletes)."""
    work = partial(_delete_batches, metadata, manifests, fetch, wanted)
    for batches in in_order(work, decoding_tasks(manifests, threads), threads):
        yield from batches


def decoding_tasks(manifests: Sequence[Manifest], threads: int) -> Iterator[list[int]]:
    """Indices of manifests to decode together: neighbours of one spec, up to a size, and a share for each thread."""
    total = sum(manifest.length or JOIN_BYTES for manifest in manifests)
    most = min(JOIN_BYTES, max(total // max(threads, 1), SHARE_BYTES))
    task: list[int] = []
    size = 0
    for index, manifest in enumerate(manifests):
        full = size >= most or len(task) >= JOIN_FILES
        if task and (full or manifests[task[0]].spec_id != manifest.spec_id):
            yield task
            task, size = [], 0
        task.append(index)
        size += manifest.length or JOIN_BYTES
    if task:
        yield task


def data_batches(
    metadata: TableMetadata,
    manifests: Mapping[int, Manifest],
    fetch: Fetch,
    wanted: Types,
    keeper: Keeper | None,
    indices: Sequence[int],
) -> list[FileBatch]:
    """The live data files of the manifests of these indices, which are of one spec; what keeper has is not read."""
    spec_id = manifests[indices[0]].spec_id
    if keeper is None:
        decoded = _decoded(metadata, manifests, fetch, wanted, indices)
        return decoded if len(decoded) <= 1 else joined(spec_id, _runs(decoded, indices))
    lookup = keeper.find(indices)
    decoded = _decoded(metadata, manifests, fetch, wanted, lookup.missing) if lookup.missing else []
    if lookup.missing:
        keeper.keep(decoded, lookup)
    if not lookup.runs and len(decoded) <= 1:
        return decoded
    batches = joined(spec_id, [*lookup.runs, *_runs(decoded, indices)])
    keeper.tidy(batches, indices, lookup)
    return batches


def _runs(batches: Iterable[FileBatch], indices: Sequence[int]) -> list[Run]:
    return [run for batch in batches for run in split(batch, indices)]


def _decoded(
    metadata: TableMetadata, manifests: Mapping[int, Manifest], fetch: Fetch, wanted: Types, indices: Sequence[int]
) -> list[FileBatch]:
    task = [manifests[index] for index in indices]
    also = (e.FIRST_ROW_ID,) if any(manifest.first_row_id is not None for manifest in task) else ()
    read = read_entries(task, metadata.layout(task[0].spec_id), fetch, wanted, also)
    return [_file_batch(entries, indices, wanted) for entries in read if entries.count]


def _file_batch(entries: Entries, indices: Sequence[int], wanted: Types) -> FileBatch:
    partition, undecoded = entries.partition()
    return FileBatch(
        path=entries.columns[e.FILE_PATH],
        size=entries.columns[e.SIZE],
        rows=entries.columns[e.RECORDS],
        spec_id=entries.layout.spec_id,
        partition=partition,
        stats=entries.stats(wanted),
        undecoded=undecoded,
        extra={
            **entries.inherited,
            "file_format": entries.column(e.FILE_FORMAT, pa.string()),
            "manifest": pa.array(indices, pa.int32()).take(pa.array(entries.manifest)),
            "entry": pa.array(entries.position, pa.int32()),
        },
    )


def _delete_batches(
    metadata: TableMetadata, manifests: Sequence[Manifest], fetch: Fetch, wanted: Types, indices: Sequence[int]
) -> list[DeleteBatch]:
    task = [manifests[index] for index in indices]
    # Position deletes say in the bounds of their file_path column which data files they concern.
    columns = {PATH_COLUMN: _PATH_TYPE, **wanted}
    read = read_entries(task, metadata.layout(task[0].spec_id), fetch, columns, _DELETE_COLUMNS)
    return [_delete_batch(entries, indices, columns) for entries in read if entries.count]


def _delete_batch(entries: Entries, indices: Sequence[int], columns: Types) -> DeleteBatch:
    partition, undecoded = entries.partition()
    stats = entries.stats(columns)
    paths = stats.pop(PATH_COLUMN)
    nothing = pa.nulls(entries.count, _PATH_TYPE)
    inherited = dict(entries.inherited)
    files = pa.table(
        {
            "spec_id": pa.repeat(pa.scalar(entries.layout.spec_id, pa.int32()), entries.count),
            "content": entries.column(e.CONTENT, pa.int32()),
            "path": entries.columns[e.FILE_PATH],
            "file_format": entries.column(e.FILE_FORMAT, pa.string()),
            "rows": entries.columns[e.RECORDS],
            "size": entries.columns[e.SIZE],
            "sequence_number": inherited["sequence_number"],
            "snapshot_id": inherited["snapshot_id"],
            "file_sequence_number": inherited["file_sequence_number"],
            "equality_ids": entries.column(e.EQUALITY_IDS, pa.list_(pa.int32())),
            "referenced_data_file": entries.column(e.REFERENCED, pa.string()),
            "content_offset": entries.column(e.OFFSET, pa.int64()),
            "content_size": entries.column(e.CONTENT_SIZE, pa.int64()),
            "path_lower": nothing if paths.lower is None else paths.lower,
            "path_upper": nothing if paths.upper is None else paths.upper,
            "manifest": pa.array(indices, pa.int32()).take(pa.array(entries.manifest)),
            "entry": pa.array(entries.position, pa.int32()),
        }
    )
    return DeleteBatch(entries.layout.spec_id, files, partition, stats, undecoded)


def live_manifests(manifests: Iterable[Manifest], content: int = DATA) -> list[Manifest]:
    """Those of that content that may have a live entry; one that does not say, or counts rows, may have some."""
    return [
        manifest
        for manifest in manifests
        if manifest.content == content and (manifest.live_files != 0 or manifest.has_rows)
    ]
