"""The session that work runs on: is it new enough, what time zone has it, and which of its settings reading needs.

Reading sets one setting for good, FIELD_IDS: it changes only reads whose schema carries field ids, which none but
tamis's do unless somebody wrote them there. What concerns the listing of files is put back after each use.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import RLock
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from tamis.errors import SessionSettingError, SparkVersionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "CASE_SENSITIVE",
    "OLDEST",
    "TIME_TYPE",
    "check_reader",
    "checked",
    "is_case_sensitive",
    "is_on",
    "is_remote",
    "prepared",
    "session_zone",
    "with_fewer_tasks",
    "with_settings",
]

OLDEST: Final = (4, 1)
"""The oldest Spark that tamis is tested with, and that reads as it needs."""
FIELD_IDS: Final = "spark.sql.parquet.fieldId.read.enabled"
"""Parquet columns are found by field id, where the schema has ids."""
IGNORE_MISSING: Final = "spark.sql.parquet.fieldId.read.ignoreMissing"
"""With it, files without field ids read as NULLs: it must be off."""
QUOTED_PATTERNS: Final = "spark.sql.parser.quotedRegexColumnNames"
"""With it, a name in back quotes may be a pattern: it must be off."""
V1_SOURCES: Final = "spark.sql.sources.useV1SourceList"
"""The file formats of which Spark tells the file of a row, and gives what a file lacks. By default all are."""
CASE_SENSITIVE: Final = "spark.sql.caseSensitive"
TIME_ZONE: Final = "spark.sql.session.timeZone"
TIME_TYPE: Final = "spark.sql.timeType.enabled"
"""With it a session has the type TIME."""

SMALL_SIDE: Final = {"spark.sql.files.minPartitionNum": "1", "spark.sql.files.maxPartitionBytes": "32MB"}
"""By default each of a handful of tiny files is a task. A limit over several tasks is a shuffle, and a job more."""


@dataclass(slots=True)
class _Looking:
    """How many look at a small result in a session now, and what its settings were before the first."""

    now: int = 0
    before: dict[str, str | None] = field(default_factory=dict)


_settings = RLock()
_looking: WeakKeyDictionary[SparkSession, _Looking] = WeakKeyDictionary()


def prepared(spark: SparkSession) -> SparkSession:
    """The session, checked and ready to read by field ids; SparkVersionError if it is too old."""
    checked(spark)
    if is_on(spark, IGNORE_MISSING):
        raise SessionSettingError(
            f"this session has {IGNORE_MISSING}=true, with which files that carry no field ids read as NULLs. "
            f"Set it to false: spark.conf.set({IGNORE_MISSING!r}, 'false').",
            setting=IGNORE_MISSING,
            value="true",
        )
    if is_on(spark, QUOTED_PATTERNS):
        raise SessionSettingError(
            f"this session has {QUOTED_PATTERNS}=true, with which a column's name in back quotes is a pattern that "
            f"may match others. Set it to false: spark.conf.set({QUOTED_PATTERNS!r}, 'false').",
            setting=QUOTED_PATTERNS,
            value="true",
        )
    if not is_on(spark, FIELD_IDS):
        spark.conf.set(FIELD_IDS, "true")
    return spark


def checked(spark: SparkSession) -> SparkSession:
    """The session, if its Spark is new enough."""
    version = str(spark.version)
    numbers = tuple(int(digits) for digits in re.findall(r"\d+", version)[:2])
    if numbers < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise SparkVersionError(
            f"this session runs Spark {version}; tamis needs {oldest} or newer. "
            f"Connect to a newer cluster, or install pyspark>={oldest} here.",
            version=version,
            oldest=oldest,
        )
    return spark


def check_reader(spark: SparkSession, file_format: str) -> None:
    """SessionSettingError if the session reads such files by the newer reader, which does not tell a row's file."""
    listed = str(spark.conf.get(V1_SOURCES, file_format))
    if file_format not in (name.strip().lower() for name in listed.split(",")):
        raise SessionSettingError(
            f"this session has {V1_SOURCES}={listed!r}, without {file_format}: the reader that it chooses does not "
            f"tell which file a row is from. Add it: spark.conf.set({V1_SOURCES!r}, "
            f"{','.join(filter(None, (listed, file_format)))!r}).",
            setting=V1_SOURCES,
            value=listed,
        )


def session_zone(spark: SparkSession) -> str:
    """The time zone in which the session reads and compares times."""
    return str(checked(spark).conf.get(TIME_ZONE))


def is_case_sensitive(spark: SparkSession) -> bool:
    """Whether the session tells names apart that differ in case alone."""
    return is_on(checked(spark), CASE_SENSITIVE)


def is_on(spark: SparkSession, name: str, default: str = "false") -> bool:
    """Whether a setting is true. Spark keeps it as it was spelt, and takes TRUE and blanks for the same."""
    return str(spark.conf.get(name, default)).strip().lower() == "true"


def is_remote(spark: SparkSession) -> bool:
    """Whether the session talks to a Spark Connect server."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


@contextmanager
def with_fewer_tasks(spark: SparkSession) -> Iterator[None]:
    """While a small result is looked at: files of up to SMALL_SIDE together are read by one task.

    Whoever looks at another result meanwhile does so under the same settings, and nobody waits for anybody.
    """
    with _settings:
        looking = _looking.setdefault(spark, _Looking())
        if not looking.now:
            looking.before = {name: spark.conf.get(name, None) for name in SMALL_SIDE}
            _set(spark, SMALL_SIDE)
        looking.now += 1
    try:
        yield
    finally:
        with _settings:
            looking.now -= 1
            if not looking.now:
                _set(spark, looking.before)


@contextmanager
def with_settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Settings of the session for the time of a block; put back afterwards, one block at a time."""
    with _settings:
        before = {name: spark.conf.get(name, None) for name in settings}
        try:
            _set(spark, settings)
            yield
        finally:
            _set(spark, before)


def _set(spark: SparkSession, settings: Mapping[str, str | None]) -> None:
    """These settings; None for what is not set."""
    for name, value in settings.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)
