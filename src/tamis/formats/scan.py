"""What a reader needs to know of the files that a plan keeps, whatever format the table has.

A format says how the table's columns are found in its files, which values stand in metadata and not in files, and
which rows are deleted. That is all that a reader asks: a new format reads on Spark by giving a `Scan`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np
import pyarrow as pa
from numpy import typing as npt

__all__ = [
    "METADATA_COLUMNS",
    "DeleteGroup",
    "EqualityDeletes",
    "FileGroup",
    "OwnNames",
    "PositionDeletes",
    "ReadField",
    "Scan",
    "Vectors",
]

METADATA_COLUMNS: Final = ("_file", "_pos", "_spec_id", "_partition")
"""What a row may be asked about where it lies, beside its columns."""
Numbers = npt.NDArray[np.int64]
"""Files by their place in Scan.files."""
FileFormat = Literal["parquet", "orc", "avro"]
Calendar = Literal["known", "taken for julian", "unknown"]


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
    calendar: Calendar = "known"
    """What becomes of dates before 1582-10-15 in these files: Spark reads them as they are; it takes them for days of
    the Julian calendar, which they are not; or nobody knows which calendar their writer meant."""
    own_name: bool = False
    """No file has another column under this name, nor other fields under those inside it. Spark pushes filters down
    by name even where it reads by id, so a name that had two meanings must not reach it."""
    own_path: bool = False
    """Every file calls this column, and all that is inside it, as the table does. Where Spark reads a part of a
    column alone, it forgets the ids, and takes what has the name: of others the whole must be read."""


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Files that one relation reads: of one file format, with one way to find the columns."""

    file_format: FileFormat
    numbers: Numbers
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


@dataclass(frozen=True, slots=True)
class PositionDeletes:
    """Files of (file_path, pos) rows, and which of them concern which data files."""

    files: pa.Table
    """path and file_format of each delete file."""
    data: Numbers
    delete: Numbers
    """Pairs: the data file of this number, and the place in files of a delete file that applies to it."""
    rows: int
    """At most so many rows are deleted."""


@dataclass(frozen=True, slots=True)
class Vectors:
    """Bitmaps of deleted positions, one for a data file."""

    data: Numbers
    location: tuple[str, ...]
    """The file that holds each bitmap."""
    offset: Numbers
    length: Numbers
    decode: Callable[[bytes], Numbers]
    """The positions in a bitmap, ascending; it is sent to executors where there are many."""
    fetch: Callable[[str], bytes]
    rows: int


@dataclass(frozen=True, slots=True)
class DeleteGroup:
    """Files of deleted values that one relation reads."""

    file_format: FileFormat
    fields: tuple[ReadField, ...]
    """What to read of them: the compared columns, nested ones in their structs."""
    files: pa.Table
    """path, sequence and scope of each file."""
    options: tuple[tuple[str, str], ...] = ()


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
class Scan:
    """All that is to be read."""

    fields: tuple[ReadField, ...]
    """The table's columns, in order."""
    files: pa.Table
    """A row for each file: path, size, spec_id, partition (a struct over all specs)."""
    groups: tuple[FileGroup, ...]
    hidden: tuple[ReadField, ...] = ()
    """Columns that the table has no more, but its deletes still name."""
    constants: Mapping[str, pa.Array] = field(default_factory=dict)
    """Values that a file has for all its rows, by column: a row for each file. UUIDs are text, as users see them."""
    positions: PositionDeletes | None = None
    vectors: Vectors | None = None
    equality: tuple[EqualityDeletes, ...] = ()
    own: OwnNames = field(default_factory=OwnNames)
    """Names that no column of the table has, nor had."""
    unknown_sizes: Callable[[], frozenset[str]] = frozenset
    """Asks storage whether data and delete files are those that the metadata describes; those that it cannot ask."""
