"""The manifest lists of a snapshot: which manifests it has, and what they say of their files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.formats.document import Misfit, location
from tamis.formats.errors import unreadable
from tamis.formats.paimon.sheets import Kinds, Names, Sheet, read_sheets
from tamis.formats.paimon.snapshots import Snapshot
from tamis.formats.storage import Fetch
from tamis.formats.storage.ordered import in_order

__all__ = ["VERSION", "Manifest", "Manifests", "check_version", "read_manifests"]

VERSION: Final = 2
"""Of the entries of manifests and manifest lists: all that Paimon has written since it is Paimon."""

_VERSION: Final[Names] = ("_VERSION",)
_NAME: Final[Names] = ("_FILE_NAME",)
_SIZE: Final[Names] = ("_FILE_SIZE",)
_ADDED: Final[Names] = ("_NUM_ADDED_FILES",)
_DELETED: Final[Names] = ("_NUM_DELETED_FILES",)
_LOWER: Final[Names] = ("_PARTITION_STATS", "_MIN_VALUES")
_UPPER: Final[Names] = ("_PARTITION_STATS", "_MAX_VALUES")
_NULLS: Final[Names] = ("_PARTITION_STATS", "_NULL_COUNTS")
_MIN_BUCKET: Final[Names] = ("_MIN_BUCKET",)
_MAX_BUCKET: Final[Names] = ("_MAX_BUCKET",)
_TOTAL: Final[Names] = ("_TOTAL_BUCKETS",)
_KINDS: Final[Kinds] = {
    _VERSION: pa.int32(),
    _NAME: pa.string(),
    _SIZE: pa.int64(),
    _ADDED: pa.int64(),
    _DELETED: pa.int64(),
    _LOWER: pa.binary(),
    _UPPER: pa.binary(),
    _NULLS: pa.list_(pa.int64()),
    _MIN_BUCKET: pa.int32(),
    _MAX_BUCKET: pa.int32(),
    _TOTAL: pa.int32(),
}
_NEEDED: Final = (_NAME, _SIZE, _ADDED, _DELETED)


@dataclass(frozen=True, slots=True)
class Manifest:
    """One manifest of a snapshot."""

    path: str
    size: int
    added: int
    """Entries that add a file; they may be deleted again by entries of other manifests."""
    deleted: int
    """Entries that delete one."""


@dataclass(frozen=True, slots=True, eq=False)
class Manifests:
    """The manifests of a snapshot, and what their lists say of the files in each."""

    manifests: tuple[Manifest, ...]
    lower: pa.Array
    """The least value of each partition field, as a serialised row."""
    upper: pa.Array
    nulls: pa.Array
    """A count for each partition field."""
    min_bucket: pa.Array
    max_bucket: pa.Array
    total_buckets: pa.Array
    """Of how many buckets those of all its files are; null if they differ, or nobody says."""

    def __len__(self) -> int:
        return len(self.manifests)

    @property
    def bucket(self) -> pa.Array:
        """The bucket of all files of a manifest; null if they are of several."""
        one = pc.equal(self.min_bucket, self.max_bucket)
        return pc.if_else(one, self.min_bucket, pa.scalar(None, pa.int32()))


def read_manifests(folder: str, snapshot: Snapshot, fetch: Fetch) -> Manifests:
    """The manifests of a snapshot: of what was there before, then of what its commit changed.

    folder is that of the table's manifests, by which their names are found.
    """
    names = [snapshot.base, snapshot.delta]
    paths = [f"{folder}/{_plain(name, name)}" for name in names]
    files = list(zip(paths, in_order(fetch, paths, len(paths)), strict=True))
    sheet = read_sheets(files, _KINDS, _NEEDED, "a manifest list")
    check_version(sheet, _VERSION, paths)
    for column in _NEEDED:
        if (lost := pc.index(sheet[column].is_null(), pa.scalar(True)).as_py()) >= 0:
            raise unreadable(paths[int(sheet.files[lost])], f"a manifest has no {column[0]}")
    for column in (_SIZE, _ADDED, _DELETED):
        if len(sheet) and (pc.min(sheet[column]).as_py() or 0) < 0:
            raise unreadable(paths[0], f"{column[0]} is negative")
    found = tuple(
        Manifest(f"{folder}/{_plain(name, paths[file])}", size, added, deleted)
        for file, name, size, added, deleted in zip(
            sheet.files.tolist(), *(sheet[one].to_pylist() for one in _NEEDED), strict=True
        )
    )
    if len({one.path for one in found}) < len(found):
        raise unreadable(paths[-1], "a manifest stands twice in the snapshot's lists: its files would be read twice")
    return Manifests(found, *(sheet[one] for one in (_LOWER, _UPPER, _NULLS, _MIN_BUCKET, _MAX_BUCKET, _TOTAL)))


def check_version(sheet: Sheet, column: Names, paths: Sequence[str]) -> None:
    """UnreadableMetadataError if an entry is of another version than this one knows."""
    versions = sheet[column].fill_null(VERSION).to_numpy(zero_copy_only=False)
    other = np.flatnonzero(versions != VERSION)
    if len(other):
        raise unreadable(
            paths[int(sheet.files[other[0]])],
            f"its entries are of version {versions[other[0]]}, and this version of tamis knows version {VERSION}",
            cure="Read the table with the engine that wrote it, or use a newer tamis.",
        )


def _plain(name: str, path: str) -> str:
    """A file's name in the table's folder of manifests. One that leads elsewhere is none that Paimon writes."""
    try:
        found = location(name)
    except Misfit as misfit:
        raise unreadable(path, f"the name of a manifest is wrong: {misfit.reason}") from misfit
    if "/" in found or found in {".", ".."}:
        raise unreadable(path, f"the name of a manifest is {found!r}, which is no file's name")
    return found
