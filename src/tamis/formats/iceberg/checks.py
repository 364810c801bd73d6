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
from numpy import typing as npt
from pyarrow import types as pt

from tamis.errors import UnreadableMetadataError
from tamis.formats.errors import unreadable
from tamis.formats.iceberg.avro import AvroFile
from tamis.formats.iceberg.manifest_list import DATA, Manifest

__all__ = ["Checked", "check_counts", "check_entries", "check_header", "check_whole", "statuses"]

EXISTING: Final = 0
ADDED: Final = 1
DELETED: Final = 2
_DATA_FILE: Final = 0
_POSITION: Final = 1
_EQUALITY: Final = 2

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def check_whole(manifest: Manifest, file: AvroFile) -> None:
    """An error for a file that was cut off between two blocks: it looks sound, and has too few entries.

    A length alone proves nothing. Writers state wrong ones, and tools rewrite manifests in place. A file that is
    shorter than its list says is whole if it holds all entries that the list counts.
    """
    if manifest.length is None or len(file.data) >= manifest.length:
        return
    counts = (manifest.added_files, manifest.existing_files, manifest.deleted_files)
    said = None if None in counts else sum(one or 0 for one in counts)
    if said is None or file.records < said:
        entries = "does not say how many entries" if said is None else f"counts {said} entries"
        reason = (
            f"it has {len(file.data)} bytes and {file.records} entries, but the manifest list says "
            f"{manifest.length} bytes and {entries}: truncated"
        )
        raise unreadable(manifest.path, reason, len(file.data))


def check_header(manifest: Manifest, file: AvroFile) -> None:
    """An error if the manifest itself says that it has another partition spec than its list says.

    Its partition values would be read by the wrong transforms.
    """
    said = file.metadata.get("partition-spec-id")
    if said is not None and said != str(manifest.spec_id):
        reason = f"its partition-spec-id is {said!r}, but the manifest list says {manifest.spec_id}"
        raise unreadable(manifest.path, reason, 0)


def statuses(status: pa.Array, files: Numbers, manifests: Sequence[Manifest]) -> Numbers:
    """The status of each entry: existing, added or deleted. An error for any other, and for none."""
    found = _numbers(status, -1)
    wrong = np.flatnonzero((found < EXISTING) | (found > DELETED))
    if len(wrong):
        said = status[int(wrong[0])].as_py()
        why = f"its status is {said}, not 0 (existing), 1 (added) or 2 (deleted)"
        raise _entry(files, manifests, int(wrong[0]), why)
    return found


def check_counts(files: Numbers, live: Mask, which: Sequence[int], manifests: Sequence[Manifest]) -> None:
    """An error for a manifest with fewer live entries than its list says, or as many entries but more live ones."""
    entries = np.bincount(files, minlength=len(manifests))
    alive = np.bincount(files[live], minlength=len(manifests))
    for place in which:
        one = manifests[place]
        said, total, lives = one.live_files, int(entries[place]), int(alive[place])
        if said is None:
            continue
        came_back = lives > said and one.deleted_files is not None and total == said + one.deleted_files
        if lives < said or came_back:
            reason = (
                f"it has {lives} live and {total - lives} deleted entries, but the manifest list counts "
                f"{one.added_files} added, {one.existing_files} existing and {one.deleted_files} deleted files"
            )
            raise unreadable(one.path, reason)


@dataclass(frozen=True, slots=True)
class Checked:
    """Entries to check: which are live, and which of the manifests each is from."""

    files: Numbers
    live: Mask
    manifests: Sequence[Manifest]

    def refuse(self, wrong: Mask, why: str) -> None:
        """An error for the first live entry of these."""
        found = np.flatnonzero(wrong & self.live)
        if len(found):
            raise _entry(self.files, self.manifests, int(found[0]), why)


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
    in_deletes = np.array([one.content != DATA for one in entries.manifests], np.bool_)[entries.files]
    # Version 1 has no content, and no delete files: what is not said is data.
    kind = np.zeros(len(rows), np.int64) if content is None else _numbers(content, _DATA_FILE)
    is_delete = (kind == _POSITION) | (kind == _EQUALITY)
    entries.refuse(in_deletes & ~is_delete, "it is not a delete file, but its manifest is a delete manifest")
    entries.refuse(~in_deletes & (kind != _DATA_FILE), "it is not a data file, but its manifest is a data manifest")
    if equality_ids is not None:
        named = _numbers(pc.list_value_length(equality_ids), 0) > 0
        entries.refuse(in_deletes & (kind == _EQUALITY) & ~named, "it deletes by value, and names no column")
        entries.refuse(in_deletes & (kind == _POSITION) & named, "it deletes by position, and names columns")


def _numbers(array: pa.Array, absent: int) -> Numbers:
    return np.asarray(array.fill_null(absent).to_numpy(zero_copy_only=False), np.int64)


def _has_nul(path: pa.Array) -> bool:
    """Whether any text of the array, or beside it in its memory, has a NUL: nearly never, and quickly told."""
    data = path.buffers()[2]
    return data is not None and b"\0" in data.to_pybytes()


def _entry(files: Numbers, manifests: Sequence[Manifest], place: int, why: str) -> UnreadableMetadataError:
    number = place - int(np.searchsorted(files, files[place]))
    return unreadable(manifests[int(files[place])].path, f"entry {number}: {why}")
