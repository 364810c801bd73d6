"""The time-zone rules of a session: those of the JVM that computes with them, not of this Python.

Spark tells the offset of one instant at a time, `from_utc_timestamp(instant, zone) - instant`; all changes of it are
found in one query: which spans of three days begin with another offset than they end with, then the hour, the minute,
the second. No clock was ever changed twice within three days, so that no change hides behind another.
"""

from __future__ import annotations

from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from pyspark.errors import PySparkException

from tamis.errors import BindError, TimeZoneError
from tamis.predicate.bound import BoundPredicate
from tamis.predicate.compare.zone_rules import ZoneRules
from tamis.predicate.compare.zones import Zone, find_zone, fixed_offset, no_zone
from tamis.predicate.units import SECOND
from tamis.spark.session import session_zone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["check_zone", "session_rules"]

START: Final = -5_364_662_400
"""1800-01-01: the first change of any zone is of 1835."""
END: Final = 4_133_980_800
"""2101-01-01. Beyond either end the sets leave room for any offset."""
_OFFSET: Final = "unix_seconds(from_utc_timestamp(timestamp_seconds({0}), @zone)) - {0}"
_CHANGES: Final = f"""
WITH spans AS (
  SELECT id AS s FROM range({START}, {END}, 259200, 1)
  WHERE {_OFFSET.format("id")} <> {_OFFSET.format("(id + 259200)")}),
hours AS (
  SELECT h FROM spans LATERAL VIEW explode(sequence(s, s + 255600, 3600L)) AS h
  WHERE {_OFFSET.format("h")} <> {_OFFSET.format("(h + 3600)")}),
minutes AS (
  SELECT m FROM hours LATERAL VIEW explode(sequence(h, h + 3540, 60L)) AS m
  WHERE {_OFFSET.format("m")} <> {_OFFSET.format("(m + 60)")}),
seconds AS (
  SELECT x + 1 AS at FROM minutes LATERAL VIEW explode(sequence(m, m + 59, 1L)) AS x
  WHERE {_OFFSET.format("x")} <> {_OFFSET.format("(x + 1)")})
SELECT at, {_OFFSET.format("at")} AS offset FROM seconds
UNION ALL SELECT {START}L, {_OFFSET.format(f"({START}L)")}
"""  # noqa: S608 - of constants; the zone's name comes as hexadecimal digits

_rules: WeakKeyDictionary[SparkSession, dict[str, ZoneRules]] = WeakKeyDictionary()
_lock = Lock()


def session_rules(spark: SparkSession, name: str) -> ZoneRules:
    """The rules that the session has for a zone; BindError if it knows no such zone. Asked once a session."""
    with _lock:
        known = _rules.setdefault(spark, {})
        rules = known.get(name)
    if rules is None:
        rules = known[name] = _ask(spark, name)
    return rules


def check_zone(predicate: BoundPredicate, spark: SparkSession) -> None:
    """TimeZoneError if the session filters by other rules than the plan was made for: what matches may be pruned.

    A plan for a zone that holds under any rules of it holds for every name that this session gives the same rules.
    """
    if predicate.zone_dependent and not _same_rules(spark, predicate.time_zone, session_zone(spark)):
        raise wrong_zone("the plan's condition depends on the time zone", predicate.time_zone, spark)
    for name, rules in predicate.rules:
        if _known_rules(spark, name) != rules:
            raise TimeZoneError(
                f"the plan was made with another session, whose Java has other time-zone rules for {name} than this "
                f"one's. Plan with spark= this session, or without one: such a plan holds under the rules of any.",
                plan=name,
                session=name,
            )


def wrong_zone(why: str, planned: str, spark: SparkSession) -> TimeZoneError:
    """The error for a plan that was made for another zone than the session's."""
    zone = session_zone(spark)
    return TimeZoneError(
        f"{why}. It was planned for {planned}, and the "
        f"session has {zone}. Plan with time_zone={zone!r} or with spark=..., or set spark.sql.session.timeZone.",
        plan=planned,
        session=zone,
    )


def session_time(spark: SparkSession) -> Zone:
    """The session's zone, with its own rules, which are asked for when they are needed."""
    return find_zone(session_zone(spark), partial(session_rules, spark))


def is_other_zone(planned: Zone, spark: SparkSession) -> bool:
    """Whether a plan was made for another zone than the session's, or for other rules of it."""
    told = isinstance(planned.rules, ZoneRules) and planned.rules != _known_rules(spark, planned.name)
    return told or not _same_rules(spark, planned.name, session_zone(spark))


def _same_rules(spark: SparkSession, one: str, other: str) -> bool:
    """Whether two names mean the same to the session, as UTC and Etc/UTC do, or Europe/Oslo and Europe/Berlin."""
    if one == other:
        return True
    offsets = fixed_offset(one), fixed_offset(other)
    if None not in offsets:
        return offsets[0] == offsets[1]
    rules = _known_rules(spark, one)
    return rules is not None and rules == _known_rules(spark, other)


def _known_rules(spark: SparkSession, name: str) -> ZoneRules | None:
    try:
        return session_rules(spark, name)
    except BindError:
        return None  # a zone that Python knows, or another session, and this one does not


def _ask(spark: SparkSession, name: str) -> ZoneRules:
    try:
        # No parameter of the query: a session with Delta's extensions leaves those unbound. Digits escape nothing.
        zone = f"cast(x'{name.encode().hex()}' as string)"
        rows = spark.sql(_CHANGES.replace("@zone", zone)).collect()
    except PySparkException as error:
        if "TIMEZONE" in str(error.getCondition()):
            raise no_zone(name) from error
        raise
    changes = sorted((int(row.at) * SECOND, int(row.offset) * SECOND) for row in rows)
    first, *later = changes
    return ZoneRules(
        START * SECOND, END * SECOND, tuple(at for at, _ in later), (first[1], *(offset for _, offset in later))
    )
