"""Dates, times and timestamps as Spark compares them, in the session's time zone where instants are stored.

Law: the pairs of a split enclose what Spark does, also where clocks are changed: it casts literals, columns, or
takes casts off again, and around a change these are not the same.
"""

from __future__ import annotations

from datetime import date, datetime, time
from fractions import Fraction

import pyarrow as pa
from pyarrow import types as pt

from tamis.predicate.compare.functions import CLOCK, SPARK_TIMESTAMP
from tamis.predicate.compare.split import Split, incomparable, unreadable
from tamis.predicate.compare.times import (
    Moment,
    days_of,
    moment_of,
    only_spark_reads,
    parse_date,
    parse_moment,
    parse_time,
)
from tamis.predicate.compare.zones import MARGIN, Zone
from tamis.predicate.nodes import Literal
from tamis.predicate.type_names import is_text
from tamis.predicate.units import DAY, PER_SECOND, SECOND

__all__ = ["date_split", "time_split", "timestamp_split"]

_WALL = pa.timestamp("us")


def date_split(literal: Literal, zone: Zone, where: str) -> Split | None:
    """Where a literal splits dates; None for text that only Spark can read."""
    match literal.value:
        case datetime() | str() if pt.is_timestamp(literal.type):
            wall = _wall_range(literal, zone, where)
            return None if wall is None else _days_from(wall)
        case date() as value if not isinstance(value, datetime):
            return Split.key(days_of(value))
        case str(text) if is_text(literal.type) or pt.is_date32(literal.type):
            day = parse_date(text)
            if day is None and only_spark_reads(text):
                return None
            if day is None:
                raise unreadable(where, pa.date32(), text)
            return Split.key(day)
    raise incomparable(where, pa.date32(), literal)


def _days_from(wall: tuple[int, int, bool]) -> Split:
    """A date against a timestamp is that day's midnight: the days whose midnight is at or after the wall time."""
    low, high, calm = wall
    slack = 0 if calm else 1
    return Split((-(-low // DAY) - slack, -(-high // DAY) + slack), (low // DAY + 1 - slack, high // DAY + 1 + slack))


def _wall_range(literal: Literal, zone: Zone, where: str) -> tuple[int, int, bool] | None:
    """A timestamp literal as wall time in the session's zone: the least, the most, and whether no change is near."""
    moment = _moment(literal, where, literal.type)
    if moment is None:
        return None
    if literal.type.tz is None:
        return moment.wall, moment.wall, True
    low, high = moment.instants(zone)
    if zone.doubtful:
        # A midnight m begins at m - offset: before the literal, by any rules, if m is below low + least offset.
        return zone.walls(low)[0], zone.walls(high)[1], True
    wall = zone.wall(low)
    if low != high or wall is None:
        return low - MARGIN, high + MARGIN, False
    return wall, wall, zone.calm(low)


def _moment(literal: Literal, where: str, type_: pa.DataType) -> Moment | None:
    match literal.value:
        case datetime() as value:
            return moment_of(value)
        case str(text) if is_text(literal.type) or pt.is_timestamp(literal.type):
            moment = parse_moment(text)
            if moment is None and (literal.type == _WALL or not only_spark_reads(text)):
                raise unreadable(where, type_, text)
            return moment
        case date() as value:
            return Moment(days_of(value) * DAY, is_date=True)
        case str(text) if pt.is_date32(literal.type):
            day = parse_date(text)
            if day is None and not only_spark_reads(text):
                raise unreadable(where, type_, text)
            return None if day is None else Moment(day * DAY, is_date=True)
    raise incomparable(where, type_, literal)


def timestamp_split(type_: pa.DataType, literal: Literal, zone: Zone, where: str) -> Split | None:
    """Where a literal splits timestamps of any unit, with or without zone; None for text that only Spark can read."""
    if type_ == CLOCK:
        return _clock_split(literal, zone, where)
    if type_.unit == "ns":
        return _floored(timestamp_split(pa.timestamp("us", type_.tz), literal, zone, where))
    moment = _moment(literal, where, type_)
    if moment is None:
        return None
    per_microsecond = Fraction(PER_SECOND[type_.unit], SECOND)
    zoned_literal = pt.is_timestamp(literal.type) and literal.type.tz is not None
    if type_.tz is None and not zoned_literal:
        # Text cast to a timestamp without zone drops a zone that it names; a datetime's offset cannot be dropped.
        return Split.number(moment.wall * per_microsecond)
    low, high = moment.instants(zone)
    if type_.tz is None:
        # The column's wall times become instants in the session's zone, out of order where clocks change.
        wall = zone.wall(low)
        if low == high and wall is not None and zone.calm(low):
            return Split.number(wall * per_microsecond)
        if zone.doubtful:
            low, high = zone.walls(low)[0], zone.walls(high)[1]  # as midnights, above
        else:
            low, high = low - 2 * DAY, high + 2 * DAY
    return Split.number(low * per_microsecond).hull(Split.number(high * per_microsecond))


def _floored(micros: Split | None) -> Split | None:
    """Where a literal that splits microseconds splits nanoseconds.

    Spark compares what is left of them to the microsecond, downwards: m <= n // 1000 exactly if 1000 m <= n. Whoever
    compares them as they are has n > 1000 m where n // 1000 = m. So the least above m is 1000 m + 1, or 1000 (m + 1).
    """
    if micros is None:
        return None
    (at, last), (after, end) = ((int(low), int(high)) for low, high in (micros.at, micros.after))
    return Split((at * 1000, last * 1000), ((after - 1) * 1000 + 1, end * 1000), micros.exact)


def _clock_split(literal: Literal, zone: Zone, where: str) -> Split | None:
    """Where a literal splits instants that are known by what the wall clock shows."""
    moment = _moment(literal, where, SPARK_TIMESTAMP)
    if moment is None:
        return None
    if moment.zone is None:
        zone.instants(moment.wall)  # the zone matters, though its rules do not
        return Split.key(moment.wall)
    low, high = moment.instants(zone)
    return Split.key(zone.walls(low)[0]).hull(Split.key(zone.walls(high)[1]))


def time_split(type_: pa.DataType, literal: Literal, where: str) -> Split:
    """Where a literal splits times of day."""
    match literal.value:
        case str() | time() as value if is_text(literal.type) or pt.is_time(literal.type):
            nanoseconds = parse_time(value)
            if nanoseconds is None:
                raise unreadable(where, type_, str(value))
            return Split.number(Fraction(nanoseconds * PER_SECOND[type_.unit], PER_SECOND["ns"]))
    raise incomparable(where, type_, literal)
