"""What a reader needs to know of the files that a plan keeps, whatever format the table has.

A format says how the table's columns are found in its files, which values stand in metadata and not in files, and
which rows are deleted. That is all that a reader asks: a new format reads on Spark by giving a `Scan`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

import pyarrow as pa

from tamis.predicate.arrays import Int64s

__all__ = [
    "SHOWN_AS",
    "Calendar",
    "DeleteGroup",
    "EqualityDeletes",
    "FileFormat",
    "FileGroup",
    "Merging",
    "MetadataColumn",
    "Newer",
    "OwnNames",
    "PositionDeletes",
    "ReadField",
    "Scan",
    "Vectors",
    "check_shown",
    "counted_positions",
    "has_counts",
    "has_variant",
    "has_void_inside",
]

"""Files by their place in Scan.files."""
FileFormat = Literal["parquet", "orc", "avro"]
Calendar = Literal["known", "taken for julian", "unknown"]
SHOWN_AS: Final[Mapping[str, tuple[str, ...]]] = {
    "time": ("time", "bigint", "string"),
    "timestamp_ns": ("timestamp_ntz",),
    "timestamptz_ns": ("timestamp",),
}
"""Types of tables that Spark has no type for by default, and as what they may be asked for."""


def check_shown(types: Mapping[str, str]) -> None:
    """ValueError for a type that is not shown as another, or not so."""
    for name, shown in types.items():
        if name not in SHOWN_AS:
            raise ValueError(f"types has {name!r}: as something else are shown {', '.join(map(repr, SHOWN_AS))}.")
        if shown not in SHOWN_AS[name]:
            raise ValueError(
                f"types has {shown!r} for {name!r}: give {' or '.join(repr(one) for one in SHOWN_AS[name])}."
            )


@dataclass(frozen=True, slots=True)
class MetadataColumn:
    """What a row may be asked about where it lies, beside its columns, in the format's words."""

    name: str
    source: str | None
    """The column of Scan.files whose value all rows of a file have; None for the row's position in its file."""
    stored: int | None = None
    """The id of a column in which files may have the value of a row themselves: where it is not NULL, it counts."""
    counted: bool = False
    """Whether the row's position in its file is added to the value that its file has."""


@dataclass(frozen=True, slots=True)
class OwnNames:
    """Names for what a reader adds to the table's columns: none of them is a column's, in any case."""

    prefix: str = "_tamis_"

    @classmethod
    def beside(cls, names: Iterable[str]) -> OwnNames:
        """Names that are none of these.

        >>> OwnNames.beside(["id", "_TAMIS_file"])("file")
        '__tamis_file'
        """
        prefix, taken = "_tamis_", [name.casefold() for name in names]
        while any(name.startswith(prefix) for name in taken):
            prefix = f"_{prefix}"
        return cls(prefix)

    def __call__(self, name: str) -> str:
        """The name, as it is used."""
        return self.prefix + name


@dataclass(frozen=True, slots=True)
class ReadField:
    """A column, or a field inside one: its name in the table, and how it is found in files."""

    name: str
    type: pa.DataType
    """Of a type that no reader knows, described says what it is."""
    id: int | None = None
    """Found in files by this id; None to find it by name."""
    written_as: str | None = None
    """Its name in the files where it is found by name; None if it is not in them at all."""
    children: tuple[ReadField, ...] = ()
    """The fields of a struct, the element of a list, the key and the value of a map."""
    default: pa.Scalar | None = None
    """What rows have that are older than the column; NULL if None."""
    described: str = ""
    """The type as the table's metadata spells it, for errors."""
    spark_type: str = ""
    """A type of Spark's alone, by its name in SQL, where Arrow has none whose values compare so: `void`, which no
    file has, or `string collate UNICODE_CI`."""
    calendar: Calendar = "known"
    """What becomes of dates before 1582-10-15 in these files: Spark reads them as they are; it takes them for days of
    the Julian calendar, which they are not; or nobody knows which calendar their writer meant."""
    stored: pa.DataType | None = None
    """The type that files have where it is another, from which every value can be cast; for a field without others
    inside it. A duration is a time as a number, since 1970 in UTC."""
    own_name: bool = False
    """No file has another column under this name, nor other fields under those inside it. Spark pushes filters down
    by name even where it reads by id, so a name that had two meanings must not reach it."""
    own_path: bool = False
    """Every file calls this column, and all that is inside it, as the table does. Where Spark reads a part of a
    column alone, it forgets the ids, and takes what has the name: of others the whole must be read."""
    counts: pa.DataType | None = None
    """The time of which this, an int64, is the number: of microseconds since midnight, of nanoseconds since 1970."""
    variant: bool = False
    """It is a variant, for which Arrow has no type: Spark's Parquet reader alone reads it."""
    padded: int = 0
    """Characters to which its texts, and those that it is compared with, are padded with blanks; 0 for none."""
    utc_alone: bool = False
    """Writers of this format store times in ORC files by their own clocks and calendars: only those of UTC, and of
    days that all calendars count alike, can be read."""
    filled: bool = False
    """The file format fills texts up with blanks, which are none of the value: its own readers take them away."""
    promoted: bool = False
    """Older files may have another type: what is a time by now may be the number of a day there."""


def has_variant(field: ReadField) -> bool:
    """Whether the field is a variant, or has one inside it."""
    return field.variant or any(map(has_variant, field.children))


def has_void_inside(field: ReadField) -> bool:
    """Whether something inside the field is of no type, so that no file has it."""
    return any(child.spark_type == "void" or has_void_inside(child) for child in field.children)


def has_counts(field: ReadField) -> bool:
    """Whether a time is read as a number, in the field or inside it."""
    return field.counts is not None or any(map(has_counts, field.children))


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Files that one relation reads: of one file format, with one way to find the columns."""

    file_format: FileFormat
    numbers: Int64s
    fields: tuple[ReadField, ...]
    """How each of Scan.fields, then each of Scan.hidden, is found in these files."""
    constants: tuple[str, ...] = ()
    """Columns whose values are in Scan.constants, and stand in where a file does not have the column."""
    holds: bool = False
    """Every row satisfies the predicate: no filter is needed."""
    positions: bool = False
    """Some rows are deleted by position, by files or by vectors."""
    equality: bool = False
    """Some rows are deleted by value."""
    options: tuple[tuple[str, str], ...] = ()
    """What else Spark's reader of this file format has to be told."""
    ordinary: frozenset[tuple[str, ...]] = frozenset()
    """Columns, by path, whose values in these files are surely ordinary: floats that are neither NaN nor zero, and in
    ORC files dates that are not before 1582-10-15. Of others nothing is known."""
    merged: bool = False
    """The rows are versions of rows, as Scan.merging has it: they are filtered when they have been merged."""
    removals: bool = False
    """Some rows, not merged, say by their kind that they remove a row, and are none themselves."""
    unread_by_spark: str | None = None
    """Why Spark's reader fails on such files, whichever columns are read; None if it does not."""
    twins: bool = False
    """Columns are found by name, and the files have names side by side that differ in case alone."""
    unknown: frozenset[str] = frozenset()
    """Nested columns of which nobody knows how these files call what is inside them."""


@dataclass(frozen=True, slots=True)
class PositionDeletes:
    """Files of (file_path, pos) rows, and which of them concern which data files."""

    files: pa.Table
    """path and file_format of each delete file."""
    data: Int64s
    delete: Int64s
    """Pairs: the data file of this number, and the place in files of a delete file that applies to it."""
    rows: int
    """At most so many rows are deleted."""


@dataclass(frozen=True, slots=True)
class Vectors:
    """Bitmaps of deleted positions, one for a data file."""

    data: Int64s
    location: tuple[str, ...]
    """The file that holds each bitmap."""
    offset: Int64s
    length: Int64s
    decode: Callable[[bytes], Int64s]
    """The positions in a bitmap, ascending; it is sent to executors where there are many."""
    fetch: Callable[[str], bytes]
    rows: int
    held: Mapping[int, bytes] = field(default_factory=dict)
    """Bitmaps that stand in the metadata itself, by their places: these are in no file."""
    counts: Mapping[int, int] = field(default_factory=dict)
    """How many positions a bitmap has to have, by its place, where the metadata says so."""

    def positions(self, place: int, blob: bytes) -> Int64s:
        """What `counted_positions` finds in the bitmap of that place."""
        return counted_positions(self.decode, blob, self.counts.get(place))


def counted_positions(decode: Callable[[bytes], Int64s], blob: bytes, count: int | None) -> Int64s:
    """The positions in a bitmap. ValueError if it is damaged, or has not so many as the metadata says."""
    found = decode(blob)
    if count is not None and len(found) != count:
        raise ValueError(f"a deletion vector has {len(found):,} rows, and the metadata says {count:,}")
    return found


@dataclass(frozen=True, slots=True)
class DeleteGroup:
    """Files of deleted values that one relation reads."""

    file_format: FileFormat
    fields: tuple[ReadField, ...]
    """What to read of them: the compared columns, nested ones in their structs."""
    files: pa.Table
    """path, sequence and scope of each file."""
    options: tuple[tuple[str, str], ...] = ()
    unread_by_spark: str | None = None
    """As of a FileGroup."""
    twins: bool = False
    """As of a FileGroup."""


@dataclass(frozen=True, slots=True)
class EqualityDeletes:
    """Files of deleted values, all of the same columns, and which data they reach.

    A row goes if a delete of its scope has the same values, and a greater sequence. NULL equals NULL, NaN equals NaN,
    and -0.0 is not 0.0.
    """

    columns: tuple[tuple[str, ...], ...]
    """Paths into the table's columns, hidden ones included."""
    written: tuple[tuple[str, ...], ...]
    """Paths of the same columns in what the groups read."""
    groups: tuple[DeleteGroup, ...]
    data: pa.Table
    """number, sequence and scope of each data file that they may concern."""
    rows: int


@dataclass(frozen=True, slots=True)
class Newer:
    """A column that tells which of two versions of a row is the newer: that with the greater value, never NULL."""

    column: str
    descending: bool = False
    """The one with the lesser value."""


@dataclass(frozen=True, slots=True)
class Merging:
    """How versions of rows become rows: files are sorted into sections, and rows of one section are one by their key.

    A version is of a kind: it is the row, or it removes it. A row of which there is but one version is that version.
    """

    sections: Int64s
    """The section of each of Scan.files; those that are in no merged group are in none."""
    rows: Int64s
    """The rows of each file, removals included; -1 where nobody has counted them."""
    keys: tuple[str, ...]
    order: tuple[Newer, ...]
    """What tells versions apart, the most important first. Of two that it does not tell apart, as writers that knew
    nothing of one another leave them, the one in the later file counts as the newer."""
    kind: str = "_VALUE_KIND"
    """The column, a hidden one, that has a version's kind."""
    removing: tuple[int, ...] = (1, 3)
    """The kinds that remove a row: what an update replaces, and what a delete deletes."""
    engine: Literal["newest", "oldest", "by column"] = "newest"
    functions: Mapping[str, str] = field(default_factory=dict)
    """By column, for columns that are put together of all versions: the name of the function, as in `sum`, with what
    it has to know after a blank."""
    ignores_removals: bool = False
    """Versions that remove a row count for nothing, unless the row has but that one."""
    removal: str | None = None
    """Why a removal cannot be merged with other versions, as an error says it; None if it can."""


@dataclass(frozen=True, slots=True)
class Scan:
    """All that is to be read."""

    fields: tuple[ReadField, ...]
    """The table's columns, in order."""
    files: pa.Table
    """A row for each file: path, size, and what the format's metadata columns show."""
    groups: tuple[FileGroup, ...]
    hidden: tuple[ReadField, ...] = ()
    """Columns that the table does not show: those that only its deletes still name, and what merging needs."""
    constants: Mapping[str, pa.Array] = field(default_factory=dict)
    """Values that a file has for all its rows, by column: a row for each file. UUIDs are text, as users see them."""
    positions: PositionDeletes | None = None
    vectors: Vectors | None = None
    equality: tuple[EqualityDeletes, ...] = ()
    merging: Merging | None = None
    own: OwnNames = field(default_factory=OwnNames)
    """Names that no column of the table has, nor had."""
    second_way: bool = False
    """Files that Spark's readers cannot read right may be read with Arrow: their values mean what they say, times are
    in UTC and days of one calendar."""
    unknown_sizes: Callable[[], Mapping[str, int | None]] = dict
    """Asks storage whether data and delete files are those that the metadata describes. Those that it cannot ask come
    back with their sizes: who reads them compares."""
    zone_dependent: Callable[[], bool] = bool
    """Whether the plan's files depend on the zone that it was made for, as metadata has times without one. It may
    take as long as planning, and is asked only if rows are read in another zone."""
