"""What goes wrong on the way to Spark: see tamis.errors."""

from __future__ import annotations

from tamis.errors import (
    ExecutorError,
    JoinError,
    MissingFileError,
    SessionSettingError,
    SparkVersionError,
    TimeZoneError,
    UnreadableColumnError,
    UnreadableFileError,
)

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
