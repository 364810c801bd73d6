"""Entries of manifests: files that are added, and files that are deleted.

What is live: every file that an entry adds and none deletes. The two are one file if all of this is equal: partition,
bucket, level, name, extra files, embedded index and external path. It does not matter in which order they stand: no
writer adds a file again that was deleted. So whoever knows all that was deleted can read a manifest by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.formats.errors import unreadable
from tamis.formats.paimon.manifests import check_version
from tamis.formats.paimon.sheets import Kinds, Names, Sheet, read_sheets
from tamis.predicate.arrays import Mask
from tamis.sieve.order import mask_of
from tamis.sieve.partition_keys import distinct

__all__ = [
    "BUCKET",
    "DELETE_ROWS",
    "EXTERNAL",
    "EXTRA",
    "FIRST_ROW_ID",
    "KEY_LOWER",
    "KEY_NULLS",
    "KEY_UPPER",
    "LEVEL",
    "MAX_SEQUENCE",
    "MIN_SEQUENCE",
    "NAME",
    "PARTITION",
    "ROWS",
    "SCHEMA",
    "SIZE",
    "SOURCE",
    "STATS_COLUMNS",
    "TOTAL",
    "VALUE_LOWER",
    "VALUE_NULLS",
    "VALUE_UPPER",
    "WRITE_COLUMNS",
    "Deleted",
    "live_entries",
    "read_deleted",
]

_FILE: Final = "_FILE"
_VERSION: Final[Names] = ("_VERSION",)
_KIND: Final[Names] = ("_KIND",)
PARTITION: Final[Names] = ("_PARTITION",)
BUCKET: Final[Names] = ("_BUCKET",)
TOTAL: Final[Names] = ("_TOTAL_BUCKETS",)
NAME: Final[Names] = (_FILE, "_FILE_NAME")
SIZE: Final[Names] = (_FILE, "_FILE_SIZE")
ROWS: Final[Names] = (_FILE, "_ROW_COUNT")
KEY_LOWER: Final[Names] = (_FILE, "_KEY_STATS", "_MIN_VALUES")
KEY_UPPER: Final[Names] = (_FILE, "_KEY_STATS", "_MAX_VALUES")
KEY_NULLS: Final[Names] = (_FILE, "_KEY_STATS", "_NULL_COUNTS")
VALUE_LOWER: Final[Names] = (_FILE, "_VALUE_STATS", "_MIN_VALUES")
VALUE_UPPER: Final[Names] = (_FILE, "_VALUE_STATS", "_MAX_VALUES")
VALUE_NULLS: Final[Names] = (_FILE, "_VALUE_STATS", "_NULL_COUNTS")
MIN_SEQUENCE: Final[Names] = (_FILE, "_MIN_SEQUENCE_NUMBER")
MAX_SEQUENCE: Final[Names] = (_FILE, "_MAX_SEQUENCE_NUMBER")
SCHEMA: Final[Names] = (_FILE, "_SCHEMA_ID")
LEVEL: Final[Names] = (_FILE, "_LEVEL")
EXTRA: Final[Names] = (_FILE, "_EXTRA_FILES")
DELETE_ROWS: Final[Names] = (_FILE, "_DELETE_ROW_COUNT")
_INDEX: Final[Names] = (_FILE, "_EMBEDDED_FILE_INDEX")
SOURCE: Final[Names] = (_FILE, "_FILE_SOURCE")
STATS_COLUMNS: Final[Names] = (_FILE, "_VALUE_STATS_COLS")
EXTERNAL: Final[Names] = (_FILE, "_EXTERNAL_PATH")
FIRST_ROW_ID: Final[Names] = (_FILE, "_FIRST_ROW_ID")
WRITE_COLUMNS: Final[Names] = (_FILE, "_WRITE_COLS")

_TEXTS: Final = pa.list_(pa.string())
_ALWAYS: Final[Kinds] = {
    _VERSION: pa.int32(),
    _KIND: pa.int32(),
    PARTITION: pa.binary(),
    BUCKET: pa.int32(),
    TOTAL: pa.int32(),
    NAME: pa.string(),
    SIZE: pa.int64(),
    ROWS: pa.int64(),
    MIN_SEQUENCE: pa.int64(),
    MAX_SEQUENCE: pa.int64(),
    SCHEMA: pa.int64(),
    LEVEL: pa.int32(),
    EXTRA: _TEXTS,
    DELETE_ROWS: pa.int64(),
    SOURCE: pa.int32(),
    EXTERNAL: pa.string(),
    FIRST_ROW_ID: pa.int64(),
    WRITE_COLUMNS: _TEXTS,
}
_KEYS: Final[Kinds] = {KEY_LOWER: pa.binary(), KEY_UPPER: pa.binary(), KEY_NULLS: pa.list_(pa.int64())}
_VALUES: Final[Kinds] = {
    VALUE_LOWER: pa.binary(),
    VALUE_UPPER: pa.binary(),
    VALUE_NULLS: pa.list_(pa.int64()),
    STATS_COLUMNS: _TEXTS,
}
_STATISTICS: Final = frozenset({**_KEYS, **_VALUES})
"""More bytes than all else: of those files whose partition and bucket drop them they are never put together."""
_IDENTITY: Final[Kinds] = {
    PARTITION: pa.binary(),
    BUCKET: pa.int32(),
    LEVEL: pa.int32(),
    NAME: pa.string(),
    EXTRA: _TEXTS,
    _INDEX: pa.binary(),
    EXTERNAL: pa.string(),
}
_COUNTS: Final = (SIZE, ROWS, DELETE_ROWS)
_NEEDED: Final = (_KIND, PARTITION, BUCKET, NAME, SIZE, ROWS, SCHEMA, LEVEL)
_ADD: Final = 0
_DELETE: Final = 1


@dataclass(frozen=True, slots=True, eq=False)
class Deleted:
    """Files that entries delete, by all that makes them one. It is pickled."""

    columns: Mapping[Names, pa.Array]

    def __len__(self) -> int:
        return len(self.columns[NAME]) if self.columns else 0

    def among(self, sheet: Sheet) -> Mask:
        """Which of the added files they are."""
        found = np.zeros(len(sheet), np.bool_)
        if not len(self):
            return found
        # Names are nearly unique: most files are told by them alone.
        named = np.flatnonzero(mask_of(pc.is_in(sheet[NAME], value_set=self.columns[NAME])))
        if not len(named):
            return found
        taken = pa.array(named)
        both = [
            pa.concat_arrays([_comparable(self.columns[name]), _comparable(sheet[name].take(taken))])
            for name in _IDENTITY
        ]
        codes, _ = distinct(both, len(self) + len(named))
        found[named] = np.isin(codes[len(self) :], codes[: len(self)])
        return found


def read_deleted(files: Sequence[tuple[str, bytes]], counts: Sequence[int]) -> Deleted:
    """What the manifests delete, by their paths and contents; counts says how much each of them has to."""
    sheet = read_sheets(files, {_VERSION: pa.int32(), _KIND: pa.int32(), **_IDENTITY}, _NEEDED_OF_DELETED, _WHAT)
    paths = [path for path, _ in files]
    check_version(sheet, _VERSION, paths)
    deletes = _kinds(sheet, paths) == _DELETE
    _check_counts(sheet, deletes, counts, paths, "delete")
    gone = sheet.filter(deletes)
    return Deleted({name: gone[name] for name in _IDENTITY})


Counts = tuple[int, int]
"""How many files a manifest adds, and how many it deletes, as its list says."""
_NEEDED_OF_DELETED: Final = (_KIND, PARTITION, BUCKET, NAME, LEVEL)
_WHAT: Final = "a manifest"


def live_entries(
    files: Sequence[tuple[str, bytes]], counts: Sequence[Counts], deleted: Deleted, *, keys: bool, values: bool
) -> Sheet:
    """The files that the manifests add and no entry deletes, with statistics of keys or values where asked for.

    counts has of each manifest what its list says. One that adds fewer files is an error, for some are lost, and so
    is one that deletes files where the list says that none does: deleted does not have them.
    """
    kinds = {**_ALWAYS, **(_KEYS if keys else {}), **(_VALUES if values else {}), **(_IDENTITY if deleted else {})}
    sheet = read_sheets(files, kinds, _NEEDED, _WHAT, chunked=_STATISTICS)
    paths = [path for path, _ in files]
    check_version(sheet, _VERSION, paths)
    added = _kinds(sheet, paths) == _ADD
    for name in _NEEDED:
        if sheet[name].null_count:
            lost = int(np.flatnonzero(mask_of(sheet[name].is_null()))[0])
            raise unreadable(paths[int(sheet.files[lost])], f"entry {lost} has no {name[-1]}")
    _check_counts(sheet, added, [count for count, _ in counts], paths, "add")
    if not added.all():
        untold = np.flatnonzero(~added & (np.array([count for _, count in counts]) == 0)[sheet.files])
        if len(untold):
            path = paths[int(sheet.files[untold[0]])]
            raise unreadable(path, "it deletes files, and its manifest list says that it does not")
        sheet = sheet.filter(added)
    gone = deleted.among(sheet)
    live = sheet.filter(~gone) if gone.any() else sheet
    return Sheet(live.files, {**live.columns, **{name: _known(live[name]) for name in _COUNTS}})


def _check_counts(sheet: Sheet, of_kind: Mask, counts: Sequence[int], paths: Sequence[str], what: str) -> None:
    """An error for a manifest with fewer entries of a kind than its list says; more of them are all there."""
    found = np.bincount(sheet.files[of_kind], minlength=len(counts))
    lacking = np.flatnonzero(found < np.asarray(counts, np.int64))
    if len(lacking):
        place = int(lacking[0])
        reason = f"it has {found[place]} entries that {what} a file, but the manifest list counts {counts[place]}"
        raise unreadable(paths[place], reason)


def _known(counts: pa.Array) -> pa.Array:
    """Negative ones, which writers give that have not counted, as null."""
    least = pc.min(counts).as_py()
    return counts if least is None or least >= 0 else pc.if_else(pc.less(counts, 0), None, counts)


def _kinds(sheet: Sheet, paths: Sequence[str]) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    kinds = np.asarray(sheet[_KIND].fill_null(-1).to_numpy(zero_copy_only=False), np.int32)
    strange = np.flatnonzero((kinds != _ADD) & (kinds != _DELETE))
    if len(strange):
        path = paths[int(sheet.files[strange[0]])]
        raise unreadable(path, f"an entry is neither added nor deleted: its _KIND is {kinds[strange[0]]}")
    return kinds


def _comparable(column: pa.Array) -> pa.Array:
    """A column whose values can be told apart: a list of names as one text. No name holds a NUL."""
    if pa.types.is_list(column.type):
        return pc.binary_join(column, "\0").fill_null("")
    return column
