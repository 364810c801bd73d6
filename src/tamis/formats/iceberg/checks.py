"""What a manifest must be, beside readable: as its list says, with entries that can be acted on.

Law: an entry that would be dropped, kept or applied by guess is an error that names the manifest and the entry. A
contradiction between a manifest and its list is an error if an entry may be missing, or may have come back. Counts
of a list that are too low are not: writers are known to state them so, and the entries themselves are all there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from tamis.errors import UnreadableMetadataError
from tamis.formats.avro.container import AvroFile
from tamis.formats.errors import unreadable
from tamis.formats.iceberg.manifest_list import DATA, Manifest
from tamis.predicate.arrays import Int64s, Mask

__all__ = [
    "Checked",
    "check_counts",
    "check_empty",
    "check_entries",
    "check_header",
    "check_sequences",
    "check_whole",
    "statuses",
]

_LEAST_ID: Final = -(1 << 31)
_GREATEST_ID: Final = (1 << 31) - 1
EXISTING: Final = 0
ADDED: Final = 1
DELETED: Final = 2
_DATA_FILE: Final = 0
_POSITION: Final = 1
_EQUALITY: Final = 2


def check_whole(manifest: Manifest, file: AvroFile) -> None:
    """An error for a file that was cut off between two blocks: it looks sound, and has too few entries.

    A length alone proves nothing. Writers state wrong ones, and tools rewrite manifests in place. A file that is
    shorter than its list says is whole if it holds all entries that the list counts.
    """
    if manifest.length is None or len(file.data) >= manifest.length:
        return
    counts = (manifest.added_files, manifest.existing_files, manifest.deleted_files)
    counted = None if None in counts else sum(count or 0 for count in counts)
    if counted is None or file.records < counted:
        entries = "does not say how many entries" if counted is None else f"counts {counted} entries"
        reason = (
            f"it has {len(file.data)} bytes and {file.records} entries, but the manifest list says "
            f"{manifest.length} bytes and {entries}: truncated"
        )
        raise unreadable(manifest.path, reason, len(file.data))


def check_header(manifest: Manifest, file: AvroFile) -> None:
    """An error if the manifest itself says that it has another partition spec than its list says.

    Its partition values would be read by the wrong transforms.
    """
    spec_id = file.metadata.get("partition-spec-id")
    if spec_id is not None and spec_id != str(manifest.spec_id):
        reason = f"its partition-spec-id is {spec_id!r}, but the manifest list says {manifest.spec_id}"
        raise unreadable(manifest.path, reason, 0)


def statuses(status: pa.Array, files: Int64s, manifests: Sequence[Manifest]) -> Int64s:
    """The status of each entry: existing, added or deleted. An error for any other, and for none."""
    numbers = _numbers(status, -1)
    wrong = np.flatnonzero((numbers < EXISTING) | (numbers > DELETED))
    if len(wrong):
        number = status[int(wrong[0])].as_py()
        why = f"its status is {number}, not 0 (existing), 1 (added) or 2 (deleted)"
        raise _entry(files, manifests, int(wrong[0]), why)
    return numbers


def check_counts(files: Int64s, live: Mask, indices: Sequence[int], manifests: Sequence[Manifest]) -> None:
    """An error for a manifest with fewer live entries than its list says, or as many entries but more live ones."""
    entries = np.bincount(files, minlength=len(manifests))
    alive = np.bincount(files[live], minlength=len(manifests))
    for index in indices:
        manifest = manifests[index]
        listed, total, lives = manifest.live_files, int(entries[index]), int(alive[index])
        if listed is None:
            continue
        came_back = lives > listed and manifest.deleted_files is not None and total == listed + manifest.deleted_files
        if lives < listed or came_back:
            reason = (
                f"it has {lives} live and {total - lives} deleted entries, but the manifest list counts "
                f"{manifest.added_files} added, {manifest.existing_files} existing and {manifest.deleted_files} "
                "deleted files"
            )
            raise unreadable(manifest.path, reason)


@dataclass(frozen=True, slots=True)
class Checked:
    """Entries to check: which are live, and which of the manifests each is from."""

    files: Int64s
    live: Mask
    manifests: Sequence[Manifest]

    def refuse(self, wrong: Mask, why: str) -> None:
        """An error for the first live entry of these."""
        entries = np.flatnonzero(wrong & self.live)
        if len(entries):
            raise _entry(self.files, self.manifests, int(entries[0]), why)


def check_entries(
    entries: Checked,
    path: pa.Array,
    rows: pa.Array,
    size: pa.Array,
    content: pa.Array | None,
    equality_ids: pa.Array | None,
) -> None:
    """An error for a live entry without what every use of it needs, or of a content that its manifest cannot have."""
    entries.refuse(_numbers(pc.binary_length(path), 0) == 0, "it has no path")
    if _has_nul(path):
        nul = pc.match_substring(path, "\0") if pt.is_string(path.type) else pc.match_substring(path, b"\0")
        entries.refuse(_numbers(nul.cast(pa.int8()), 0) == 1, "its path has a NUL character")
    entries.refuse(_numbers(rows, -1) < 0, "its record count is missing or negative")
    entries.refuse(_numbers(size, -1) < 0, "its file size is missing or negative")
    in_deletes = np.array([manifest.content != DATA for manifest in entries.manifests], np.bool_)[entries.files]
    # Version 1 has no content, and no delete files: what is not said is data.
    contents = np.zeros(len(rows), np.int64) if content is None else _numbers(content, _DATA_FILE)
    is_delete = (contents == _POSITION) | (contents == _EQUALITY)
    entries.refuse(in_deletes & ~is_delete, "it is not a delete file, but its manifest is a delete manifest")
    entries.refuse(
        ~in_deletes & (contents != _DATA_FILE), "it is not a data file, but its manifest is a data manifest"
    )
    if equality_ids is not None:
        entries.refuse(_with_wide_ids(equality_ids), "it names a column by more than 32 bits, which no id has")
        named = _numbers(pc.list_value_length(equality_ids), 0) > 0
        entries.refuse(in_deletes & (contents == _EQUALITY) & ~named, "it deletes by value, and names no column")
        entries.refuse(in_deletes & (contents == _POSITION) & named, "it deletes by position, and names columns")


def _with_wide_ids(lists: pa.ListArray) -> Mask:
    """Which lists have an id that is no 32-bit number; some writers, PyIceberg among them, give ids 64 bits."""
    found = np.zeros(len(lists), np.bool_)
    ids = _numbers(pc.list_flatten(lists), 0)
    wide = (ids < _LEAST_ID) | (ids > _GREATEST_ID)
    found[_numbers(pc.list_parent_indices(lists), 0)[wide]] = True
    return found


def check_empty(entries: Checked, rows: pa.Array, indices: Sequence[int]) -> None:
    """An error for a live entry of no rows, if its manifest's list counts more than all entries have.

    It would be pruned unread. What the list counts is compared only then: some writers count wrongly.
    """
    counts = _numbers(rows, 0)
    empty = entries.live & (counts == 0)
    if not empty.any():
        return
    there = np.zeros(len(entries.manifests), np.int64)
    np.add.at(there, entries.files[entries.live], counts[entries.live])
    lacking = np.zeros(len(entries.manifests), np.bool_)
    for index in indices:
        manifest = entries.manifests[index]
        lacking[index] = int(there[index]) < (manifest.added_rows or 0) + (manifest.existing_rows or 0)
    entries.refuse(empty & lacking[entries.files], "it has no rows, but the manifest list counts more than there are")


def check_sequences(entries: Checked, sequences: pa.Array) -> None:
    """An error for a live entry whose sequence number, as inherited, is missing, or is none that it can have.

    It decides which deletes apply. An entry that was carried over has its own, which only version 1, where all are 0,
    may lack. None is newer than its manifest: rows would come back that deletes between the two have removed.
    """
    own = _numbers(sequences, 0)
    entries.refuse(
        _mask(sequences.is_null()), "it was carried over without its sequence number, which tells what deletes it"
    )
    entries.refuse(own < 0, "its sequence number is negative")
    newest = np.array([manifest.sequence_number for manifest in entries.manifests], np.int64)[entries.files]
    entries.refuse(own > newest, "its sequence number is greater than that of its manifest")


def _mask(array: pa.BooleanArray) -> Mask:
    return np.asarray(array.to_numpy(zero_copy_only=False), np.bool_)


def _numbers(array: pa.Array, absent: int) -> Int64s:
    return np.asarray(array.fill_null(absent).to_numpy(zero_copy_only=False), np.int64)


def _has_nul(path: pa.Array) -> bool:
    """Whether any text of the array, or beside it in its memory, has a NUL: nearly never, and quickly told."""
    data = path.buffers()[2]
    return data is not None and np.frombuffer(data, np.uint8).min(initial=1) == 0


def _entry(files: Int64s, manifests: Sequence[Manifest], row: int, why: str) -> UnreadableMetadataError:
    number = row - int(np.searchsorted(files, files[row]))
    return unreadable(manifests[int(files[row])].path, f"entry {number}: {why}")
