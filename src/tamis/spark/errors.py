"""What goes wrong on the way to Spark: one root, each with its facts."""

from __future__ import annotations

from tamis.errors import TamisError

__all__ = [
    "ExecutorError",
    "JoinError",
    "MissingFileError",
    "SessionSettingError",
    "SparkVersionError",
    "TimeZoneError",
    "UnreadableColumnError",
    "UnreadableFileError",
]


class SparkVersionError(TamisError):
    """The session's Spark is older than tamis supports. Facts: version, oldest."""


class SessionSettingError(TamisError):
    """A setting of the session would make Spark read wrong values. Facts: setting, value."""


class TimeZoneError(TamisError):
    """The plan was made for another time zone, or other rules of it, than the session's. Facts: plan, session."""


class UnreadableColumnError(TamisError):
    """Spark has no type for a column, or cannot rebuild it. Facts: column, type."""


class UnreadableFileError(TamisError):
    """Spark's reader cannot give the rows of a file. Facts: path, reason."""


class MissingFileError(TamisError):
    """The table lists a file that is not there. Facts: path."""


class JoinError(TamisError):
    """A join that tamis does not do, or that names columns which are not there. Facts: how, or columns."""


class ExecutorError(TamisError):
    """The executors lack what a job needs. Facts: needs, reason."""
