"""What can go wrong, as few kinds as a caller can act on.

Every error says what, where, why and what next; its facts are attributes, so that no caller parses the text.
An error declares its fields by annotations, and takes each of them by its name. Law: none can be made without a field
that it or its base declares, nor with another. A type checker sees the same signature, and the types of the fields.
"""

from __future__ import annotations

import re
from functools import partial
from inspect import get_annotations
from typing import ClassVar, Final, dataclass_transform

from tamis.printable import printable_lines

__all__ = [
    "AmbiguousTableError",
    "BindError",
    "CatalogError",
    "CommitConflict",
    "CommitRefused",
    "CommitStateUnknown",
    "ExecutorError",
    "FilterInputError",
    "ForkedProcessError",
    "JoinError",
    "MergeMatchError",
    "MissingDependency",
    "MissingFileError",
    "NoSuchSnapshotError",
    "NoSuchTableError",
    "OptionError",
    "ParseError",
    "SessionSettingError",
    "SettingError",
    "SparkStorageError",
    "SparkVersionError",
    "TamisError",
    "TimeZoneError",
    "UnevaluableError",
    "UnknownSpecError",
    "UnreadableColumnError",
    "UnreadableFileError",
    "UnreadableMetadataError",
    "UnsupportedFormatError",
    "UnsupportedValueError",
    "UnwritableFileError",
    "UnwritableRowsError",
]


_LONG: Final = re.compile(r"(\S{600})\S{600,}(\S{200})")
"""A word of 1,400 characters and more: longer than any path of an object store, whose keys end at 1,024."""


@dataclass_transform(eq_default=False, kw_only_default=True)
class _Declared:
    """Makes the annotations of every class below it the keyword arguments that it takes."""

    fields: ClassVar[tuple[str, ...]] = ()
    """The names of an error's fields: its base's, then its own, in the order in which they are declared."""

    def __init_subclass__(cls, *, kw_only: bool = True) -> None:
        """Take up the fields that the class declares, unless they are positional: the message alone is."""
        own = tuple(get_annotations(cls)) if kw_only else ()
        taken = [name for name in own if hasattr(cls, name)]
        if taken:
            raise TypeError(f"a field of {cls.__name__} has a default, or the name of something else: {taken}")
        cls.fields = tuple(dict.fromkeys((*cls.fields, *own)))


class TamisError(_Declared, Exception, kw_only=False):
    """The root of every error that tamis raises on purpose.

    Its message may be printed anywhere: names and values in it are escaped, and cut if they are longer than a path
    can be. Its facts are as they are.
    """

    message: str

    def __init__(self, message: str, **facts: object) -> None:
        if facts.keys() != set(self.fields):
            takes = ", ".join(("message", *self.fields))
            raise TypeError(f"{type(self).__name__} takes {takes}, and was given {', '.join(('message', *facts))}")
        self.message = _LONG.sub(r"\1…\2", printable_lines(message))
        super().__init__(self.message)
        for name, value in facts.items():
            setattr(self, name, value)

    @property
    def facts(self) -> dict[str, object]:
        """All fields by name."""
        return {name: getattr(self, name) for name in self.fields}

    def __repr__(self) -> str:
        """As the error can be made again."""
        facts = (f"{name}={value!r}" for name, value in self.facts.items())
        return f"{type(self).__name__}({', '.join((repr(self.message), *facts))})"

    def __reduce__(self) -> tuple[object, ...]:
        """Copies and pickles are made anew with every field: errors of executors travel so."""
        return partial(type(self), self.message, **self.facts), (), self.__dict__


class ParseError(TamisError):
    """The WHERE text is not valid SQL."""

    text: str
    line: int
    column: int


class BindError(TamisError):
    """The predicate does not fit the table: an unknown or ambiguous column, or types that do not compare."""

    column: str | None
    """None if the fault lies in no column: in a time zone, say, or in how deep the condition is nested."""
    nearest: tuple[str, ...]
    """Names that may have been meant, the likeliest first; none if no other name would help."""


class UnsupportedValueError(BindError):
    """A Python value in a condition has no type that a column could be compared in."""

    value: object


class UnknownSpecError(TamisError):
    """A file names a partition spec that the table's metadata does not have: the metadata is corrupt."""

    spec_id: int | None
    """None if the file names none, and the table's specs have ids."""
    known: tuple[int, ...]


class UnevaluableError(TamisError):
    """Raised in strict mode only, where otherwise a file would be kept because it cannot be judged."""

    reason: str


class FilterInputError(TamisError):
    """A runtime filter was built from keys that cannot be used: no columns, unequal lengths, unordered types."""

    columns: tuple[str, ...]
    """The columns of the keys at fault; none if it lies elsewhere, as in a damaged bloom filter."""
    reason: str


class MissingDependency(TamisError):
    """An optional package is needed for this job; the message names the extra that brings it."""

    package: str
    extra: str | None
    """The extra of tamis that brings the package; None if none does."""


# -- tables ----------------------------------------------------------------------------------------------------


class UnreadableMetadataError(TamisError):
    """A metadata file is not what it should be: truncated, damaged, encrypted, or no such file at all."""

    path: str
    offset: int | None
    """The byte at which the file fails; None if that is not known."""
    place: str | None
    """The value at which a JSON document fails, as `snapshots[3].manifest-list`; None if it is no single value."""
    reason: str


class UnwritableFileError(TamisError):
    """A file cannot be put where it is to be, or cannot be removed."""

    path: str
    reason: str
    unknown: bool
    """Whether it may have been done all the same: a store's answer was lost, or a disk failed after it."""


class UnsupportedFormatError(TamisError):
    """The table uses something that this version of tamis does not know and must not guess."""

    path: str
    feature: str


class NoSuchSnapshotError(TamisError):
    """The table has no snapshot, branch or tag of that name, or none as old as that."""

    wanted: str
    known: tuple[str, ...]


class NoSuchTableError(TamisError):
    """There is no table of that name, or at that place."""

    table: str


class AmbiguousTableError(NoSuchTableError):
    """A folder holds several states, or tables of several formats, and which one is meant cannot be known."""

    candidates: tuple[str, ...]
    """What there is to choose from: metadata files, or formats."""
    reason: str


class CatalogError(TamisError):
    """A catalog could not be reached, or did not open the table."""

    table: str | None
    """The name that was asked for; None if it was none: a list of catalogs, or before any is known."""
    catalog: str | None
    """None if it failed before one was chosen."""
    reason: str


class ForkedProcessError(TamisError):
    """This process was forked from one that had read metadata, and no interpreter could be started to read for it."""

    pid: int
    reason: str


class SettingError(TamisError):
    """An environment variable has a value that cannot be used."""

    variable: str
    value: str


# -- work on Spark ---------------------------------------------------------------------------------------------


class SparkVersionError(TamisError):
    """The session's Spark is older than tamis supports."""

    version: str
    oldest: str


class SessionSettingError(TamisError):
    """A setting would make Spark read wrong values, or the condition otherwise."""

    setting: str
    value: str


class TimeZoneError(TamisError):
    """The plan was made for another time zone, or other rules of it, than the session's."""

    plan: str
    session: str


class UnreadableColumnError(TamisError):
    """Spark has no type for a column, or cannot rebuild it."""

    column: str
    type: str


class UnreadableFileError(TamisError):
    """Spark's reader cannot give the rows of a file."""

    path: str
    reason: str


class MissingFileError(TamisError):
    """The table lists a file that is not there."""

    path: str


class SparkStorageError(TamisError):
    """Spark has no client for the store that a file is in, or may not enter it."""

    path: str
    scheme: str
    package: str | None
    """What brings the client, in the version that fits, for spark.jars.packages; None if none is known to lack."""
    settings: tuple[str, ...]
    """What the session is told the store by; none if the reader was given all that the table was opened with."""
    reason: str


class JoinError(TamisError):
    """A join of a kind that has no keys, or that Spark does not know."""

    how: str


class ExecutorError(TamisError):
    """The executors lack what a job needs."""

    needs: str
    reason: str


# -- changes of a table ----------------------------------------------------------------------------------------


class CommitConflict(TamisError):
    """The table has changed under a job: nothing of it was committed."""

    table: str
    base: int | None
    """The snapshot that the job planned with; None if the table had none."""
    head: int | None
    """The snapshot that the branch is at now."""
    reason: str
    retryable: bool
    """Whether the same job may succeed when it is tried again as it is; if not, it has to be planned anew."""


class CommitStateUnknown(TamisError):
    """Nobody knows whether the commit has happened: its files must stay until somebody has looked."""

    table: str
    snapshot_id: int
    """The snapshot that the table has if the commit has happened."""
    reason: str


class CommitRefused(TamisError):
    """The table cannot be changed this way, or not by this version of tamis: nothing was written."""

    table: str
    feature: str
    """What stands against it: a property of the table, its origin, a branch."""


class UnwritableRowsError(TamisError):
    """The rows to write do not fit the table's columns."""

    table: str
    column: str
    reason: str
    nearest: tuple[str, ...]
    """Columns of the table that may have been meant, the likeliest first."""


class MergeMatchError(TamisError):
    """A row of the table matches several rows of a MERGE's source: nothing was committed."""

    table: str
    path: str
    """The file of one such row."""
    position: int
    """Where it stands in the file."""
    matches: int
    """How many rows of the source it matches."""


class OptionError(TamisError):
    """Options of a job are not known, not this format's, or do not go together: nothing was read."""

    options: tuple[str, ...]
    """Those at fault, as they were written."""
    reasons: tuple[str, ...]
    """Why, one for each."""
    nearest: tuple[str, ...]
    """Options that may have been meant, the likeliest first."""
