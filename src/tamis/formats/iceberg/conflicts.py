"""What has happened to a branch since a job planned, and whether the job's edit still fits.

As Iceberg's own library validates each operation:

| the edit | serializable | snapshot |
|---|---|---|
| adds files, and has read nothing | nothing | nothing |
| has read rows by a condition | no new data file may hold a row that matches | nothing |
| removes data files | they are there still, and no new delete applies to them | the same |
| adds deletes | the data files are there still, or a DELETE took them | the same |
| adds deletes of rows that come back changed | they are there still, and no new delete applies to them | the same |
| adds deletion vectors | no other vector has come for these data files | the same |

A compaction (`replace`) moves rows and adds none: its files are no new rows, unless others have come before it whose
rows, or deletes, it may have moved. Law: a change that the edit would undo,
or that it should have seen, is a conflict; unknown is a conflict.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.formats.edit import Edit, Planned
from tamis.formats.iceberg.deletes import DeleteIndex
from tamis.formats.iceberg.entries import FILE_PATH, read_entries
from tamis.formats.iceberg.manifest_list import DATA, DELETES, Manifest
from tamis.formats.iceberg.manifests import DeleteBatch, live_manifests, read_data_files, read_delete_files
from tamis.formats.iceberg.metadata import Snapshot, TableMetadata
from tamis.formats.storage import Fetch
from tamis.sieve.files import FileBatch, rows_of
from tamis.sieve.funnel import sift
from tamis.sieve.sieve import Sieve

__all__ = ["Standing", "standing", "why_conflict"]

REPLACE: Final = "replace"
_REMOVES_ROWS_ONLY: Final = frozenset({"append", "delete"})
"""Operations that move no row: one that is not where it was is gone."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where planned files stand by now: the paths to look for in each data manifest, and those that are nowhere."""

    found: dict[str, pa.Array]
    missing: tuple[str, ...]


def standing(
    files: Sequence[Planned], metadata: TableMetadata, manifests: Sequence[Manifest], fetch: Fetch
) -> Standing:
    """Where the files stand. A manifest never changes: what it held when it was read, it holds while it is listed.

    A file whose manifest is not listed any more is looked for, by its path, in the manifests of its spec that the
    plan has not seen.
    """
    listed = {manifest.path for manifest in manifests}
    found: dict[str, list[pa.Array]] = {}
    lost: dict[int | None, list[str]] = {}
    seen: set[str] = set()
    for one in files:
        numbers, paths = one.column("manifest"), one.column("path")
        seen |= set(one.sources.values())
        for number in pc.unique(numbers).to_pylist():
            source = one.sources.get(number)
            mine = paths.filter(pc.equal(numbers, number))
            if source is not None and source in listed:
                found.setdefault(source, []).append(mine)
            else:
                lost.setdefault(one.batch.spec_id, []).extend(mine.to_pylist())
    missing: list[str] = []
    for spec_id, paths in lost.items():
        wanted = pa.array(paths, pa.string())
        for manifest in live_manifests(manifests, DATA):
            if manifest.spec_id != spec_id or manifest.path in seen or not len(wanted):
                continue
            for entries in read_entries([manifest], metadata.layout(spec_id), fetch, {}):
                here = pc.is_in(wanted, value_set=entries.columns[FILE_PATH].cast(pa.string()))
                if pc.any(here).as_py():
                    found.setdefault(manifest.path, []).append(wanted.filter(here))
                    wanted = wanted.filter(pc.invert(here))
        missing += wanted.to_pylist()
    return Standing({path: pa.concat_arrays(parts) for path, parts in found.items()}, tuple(missing))


def why_conflict(
    edit: Edit, now: TableMetadata, head: Snapshot | None, manifests: Sequence[Manifest], fetch: Fetch
) -> str | None:
    """Why the edit does not fit what the branch has become; None if it does. manifests are the head's."""
    if edit.read is None and not edit.removed and not edit.deletes:
        return None  # it rests on nothing
    if (None if head is None else head.id) == edit.base:
        return None
    came = _since(now, head, edit.base)
    if came is None:
        return f"its history does not lead back to snapshot {edit.base}, which the job has read: it was rolled back"
    new = {one.id for one in came}
    mine = [manifest for manifest in manifests if manifest.snapshot_id in new or manifest.snapshot_id is None]
    rows = _with_new_rows(came)
    if edit.read is not None and edit.isolation == "serializable":
        path = _new_match(edit.read, now, live_manifests(mine, DATA), rows, fetch)
        if path is not None:
            return f"{path}, which came meanwhile, may hold rows that the condition matches"
    changed = live_manifests(mine, DELETES)
    if edit.removed and (path := _deleted(edit.removed, now, changed, rows, fetch)) is not None:
        return f"rows of {path}, which the job replaces, were deleted meanwhile"
    vectors = {file.referenced for file in edit.deletes if file.content_offset is not None}
    if vectors and (path := _new_vector(vectors, now, changed, new, fetch)) is not None:
        return f"rows of {path} were deleted meanwhile, in another deletion vector"
    if edit.moved and (path := _deleted(edit.referenced, now, changed, rows, fetch)) is not None:
        return f"rows of {path}, which the job changes, were deleted meanwhile"
    if edit.referenced and (edit.moved or any(one.operation not in _REMOVES_ROWS_ONLY for one in came)):
        missing = standing(edit.referenced, now, manifests, fetch).missing
        if missing:
            return f"{missing[0]}, of which the job deletes rows, was replaced meanwhile"
    return None


def _since(metadata: TableMetadata, head: Snapshot | None, base: int | None) -> list[Snapshot] | None:
    """The snapshots after base up to the head; None if base is no ancestor of it."""
    by_id = {snapshot.id: snapshot for snapshot in metadata.snapshots}
    found: list[Snapshot] = []
    at = None if head is None else head.id
    while at != base:
        snapshot = None if at is None else by_id.get(at)
        if snapshot is None or len(found) > len(by_id):
            return None
        found.append(snapshot)
        at = snapshot.parent_id
    return found


def _with_new_rows(came: Sequence[Snapshot]) -> set[int]:
    """The snapshots, of these from the newest to the oldest, whose files may hold rows or deletes that are new.

    The head alone is looked at: what an append or a delete brought is not there any more once it was compacted, but
    in a file of the compaction's.
    """
    first = max((place for place, one in enumerate(came) if one.operation != REPLACE), default=-1)
    return {one.id for one in came[: first + 1]}


def _new_match(
    sieve: Sieve, metadata: TableMetadata, manifests: Sequence[Manifest], by: Collection[int], fetch: Fetch
) -> str | None:
    """A data file that one of these snapshots has added, and that may hold a matching row."""
    asked = replace(sieve, specs=tuple(layout.spec for layout in metadata.specs), strict=False)
    wanted = {column.id: column.type for column in sieve.columns if isinstance(column.id, int)}
    batches = _added(read_data_files(metadata, manifests, fetch, wanted), by)
    for outcome in sift(asked, batches, unread=(), manifest_seconds=0.0).plan.outcomes:
        kept = np.flatnonzero(outcome.kept)
        if len(kept):
            return str(outcome.batch.path[int(kept[0])].as_py())
    return None


def _added(batches: Iterator[FileBatch], by: Collection[int]) -> Iterator[FileBatch]:
    for batch in batches:
        rows = np.flatnonzero(_is_by(batch.extra["snapshot_id"], by))
        if len(rows):
            yield rows_of(batch, rows)


def _is_by(snapshots: pa.Array | pa.ChunkedArray, by: Collection[int]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which were added by one of the snapshots; those of which nobody knows may have been."""
    known = pc.is_in(snapshots, value_set=pa.array(sorted(by), pa.int64()))
    return np.asarray(pc.or_(known, snapshots.is_null()).to_numpy(zero_copy_only=False), np.bool_)


def _new_deletes(
    metadata: TableMetadata, manifests: Sequence[Manifest], by: Collection[int], fetch: Fetch
) -> Iterator[DeleteBatch]:
    for batch in read_delete_files(metadata, manifests, fetch, {}):
        mask = pa.array(_is_by(batch.files["snapshot_id"].combine_chunks(), by))
        if pc.any(mask).as_py():
            partition = None if batch.partition is None else batch.partition.filter(mask)
            yield DeleteBatch(batch.spec_id, batch.files.filter(mask), partition)


def _deleted(
    files: Sequence[Planned],
    metadata: TableMetadata,
    manifests: Sequence[Manifest],
    by: Collection[int],
    fetch: Fetch,
) -> str | None:
    """One of the files of which a delete of these snapshots removes rows."""
    if not manifests:
        return None
    index = DeleteIndex(metadata, _new_deletes(metadata, manifests, by, fetch))
    for one in files if len(index) else ():
        hit = np.flatnonzero(index.count(one.batch, one.rows))
        if len(hit):
            return str(one.batch.path[int(one.rows[hit[0]])].as_py())
    return None


def _new_vector(
    referenced: Collection[str | None],
    metadata: TableMetadata,
    manifests: Sequence[Manifest],
    by: Collection[int],
    fetch: Fetch,
) -> str | None:
    """One of the data files for which these snapshots have added deletes by position."""
    for batch in _new_deletes(metadata, manifests, by, fetch) if manifests else ():
        named = pc.is_in(batch.files["referenced_data_file"], value_set=pa.array(sorted(map(str, referenced))))
        hit = batch.files["referenced_data_file"].filter(named)
        if len(hit):
            return str(hit[0].as_py())
    return None
