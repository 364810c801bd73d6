"""What can go wrong, as few kinds as a caller can act on.

Every error says what, where, why and what next; its facts are attributes, so that no caller parses the text.
"""

from __future__ import annotations

from tamis.printable import printable_lines

__all__ = [
    "AmbiguousTableError",
    "BindError",
    "CatalogError",
    "ExecutorError",
    "FilterInputError",
    "ForkedProcessError",
    "JoinError",
    "MissingDependency",
    "MissingFileError",
    "NoSuchSnapshotError",
    "NoSuchTableError",
    "ParseError",
    "SessionSettingError",
    "SettingError",
    "SparkVersionError",
    "TamisError",
    "TimeZoneError",
    "UnevaluableError",
    "UnknownSpecError",
    "UnreadableColumnError",
    "UnreadableFileError",
    "UnreadableMetadataError",
    "UnsupportedFormatError",
]


class TamisError(Exception):
    """The root of every error that tamis raises on purpose.

    Its message may be printed anywhere: names and values in it are escaped. Its facts are as they are.
    """

    def __init__(self, message: str, **facts: object) -> None:
        self.message = printable_lines(message)
        super().__init__(self.message)
        self.facts = facts
        for name, value in facts.items():
            setattr(self, name, value)


class ParseError(TamisError):
    """The WHERE text is not valid SQL."""

    text: str
    line: int
    column: int


class BindError(TamisError):
    """The predicate does not fit the table: an unknown or ambiguous column, or types that do not compare."""

    column: str
    nearest: tuple[str, ...]


class UnknownSpecError(TamisError):
    """A file names a partition spec that the table's metadata does not have: the metadata is corrupt."""

    spec_id: int
    known: tuple[int, ...]


class UnevaluableError(TamisError):
    """Raised in strict mode only, where otherwise a file would be kept because it cannot be judged."""

    reason: str


class FilterInputError(TamisError):
    """A runtime filter was built from keys that cannot be used: no columns, unequal lengths, unordered types."""


class MissingDependency(TamisError):
    """An optional package is needed for this job; the message names the extra that brings it."""

    package: str
    extra: str


# -- tables ----------------------------------------------------------------------------------------------------


class UnreadableMetadataError(TamisError):
    """A metadata file is not what it should be: truncated, damaged, encrypted, or no such file at all."""

    path: str
    offset: int | None
    """The byte at which the file fails; None if that is not known."""
    place: str | None
    """The value at which a JSON document fails, as `snapshots[3].manifest-list`; None if it is no single value."""
    reason: str


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

    table: str
    catalog: str
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


class JoinError(TamisError):
    """A join that tamis does not do, or that names columns which are not there."""

    how: str
    columns: tuple[str, ...]


class ExecutorError(TamisError):
    """The executors lack what a job needs."""

    needs: str
    reason: str
