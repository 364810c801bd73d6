"""Dates and timestamps computed from literals: moved by an interval, cut to a unit, cast to one another.

Law: a result is the one value that Spark gets, by ANSI rules and without, in the session's time zone; where its rules
are not known, or the clocks are changed near, there is none. Without a session's zone only what no zone can change is
computed. Results are text, as literals of these types are, in years from 1 to 9999.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyarrow import types as pt

from tamis.predicate.compare.casts import WALL, ZONED
from tamis.predicate.compare.functions import ceil_wall
from tamis.predicate.compare.times import civil, days, parse_date, parse_moment
from tamis.predicate.compare.zones import Zone
from tamis.predicate.keys import INT32_MAX, INT32_MIN, INT64_MAX
from tamis.predicate.nodes import Literal
from tamis.predicate.type_names import is_text
from tamis.predicate.units import DAY, SECOND

__all__ = [
    "Interval",
    "cast_moment",
    "date_of",
    "date_text",
    "instant_text",
    "moved",
    "moved_months",
    "truncated",
    "truncated_day",
]

LAST_YEAR: Final = 9999
_ZONELESS: Final = frozenset({"second", "millisecond", "microsecond"})
_DAYS_IN_MONTH: Final = 31


@dataclass(frozen=True, slots=True)
class Interval:
    """An ANSI interval: months, or microseconds, never both."""

    months: int | None = None
    micros: int | None = None
    only_days: bool = True
    """True if it has no field below the day: a date that is moved by it stays a date."""

    def __add__(self, other: Interval) -> Interval | None:
        """Both, one after the other; None if they are of two kinds, or too long."""
        if self.months is not None and other.months is not None:
            return Interval(self.months + other.months).checked()
        if self.micros is not None and other.micros is not None:
            only_days = self.only_days and other.only_days
            return Interval(None, self.micros + other.micros, only_days).checked()
        return None

    def __neg__(self) -> Interval:
        months, micros = (None if count is None else -count for count in (self.months, self.micros))
        return Interval(months, micros, self.only_days)

    def checked(self) -> Interval | None:
        """The interval; None if Spark has none that is so long."""
        fits = abs(self.months or 0) <= INT32_MAX and abs(self.micros or 0) <= INT64_MAX
        return self if fits else None


# -- moving and cutting -------------------------------------------------------------------------------------------


def moved(start: Literal, interval: Interval, zone: Zone | None) -> Literal | None:
    """A date or timestamp an interval later. A date becomes an instant if the interval is shorter than days."""
    months, micros = interval.months, interval.micros
    if pt.is_date32(start.type) and (months is not None or interval.only_days):
        if months is not None:
            return moved_months(start, months, zone)
        day = _day(start, zone)
        return None if day is None or micros is None else date_of(day + micros // DAY)
    if not pt.is_timestamp(start.type) and not pt.is_date32(start.type):
        return None
    if start.type == WALL:
        wall = _wall(start, zone)
        return None if wall is None else _wall_literal(_shifted(wall, interval))
    instant = _instant(start, zone)
    if instant is None:
        return None
    if micros is not None and abs(micros) < DAY:
        return _instant_literal(instant + micros)
    # Whole days and months are counted on the wall clock, and only what is left of a day after them in time.
    wall = None if zone is None else zone.wall(instant)
    if wall is None or zone is None:
        return None
    rest = 0 if micros is None else micros - _whole_days(micros)
    later = _settled(_shifted(wall, interval) - rest, zone)
    return None if later is None else _instant_literal(later + rest)


def moved_months(start: Literal, months: int, zone: Zone | None) -> Literal | None:
    """add_months: the same day of another month, or the last one that it has."""
    day = _day(start, zone)
    return None if day is None or not INT32_MIN <= months <= INT32_MAX else date_of(_add_months(day, months))


def truncated(start: Literal, unit: str, zone: Zone | None) -> Literal | None:
    """date_trunc of a date, a timestamp or a text: the instant at which its unit began."""
    instant = _instant(start, zone)
    if instant is None:
        return None
    if unit in _ZONELESS:
        return _instant_literal(_floor(instant, unit))
    wall = None if zone is None else zone.wall(instant)
    if wall is None or zone is None:
        return None
    begun = _settled(_floor(wall, unit), zone)
    return None if begun is None or not zone.calm(instant, begun) else _instant_literal(begun)


def truncated_day(start: Literal, unit: str, zone: Zone | None) -> Literal | None:
    """Trunc of a date, a timestamp or a text: the day with which its unit began."""
    day = _day(start, zone)
    return None if day is None else date_of(_floor(day * DAY, unit) // DAY)


def cast_moment(literal: Literal, type_: pa.DataType, zone: Zone | None) -> Literal | None:
    """Casts between dates and timestamps, and of them to text and numbers; None if that is not certain."""
    temporal = pt.is_date32(literal.type) or pt.is_timestamp(literal.type)
    value = literal.value
    if type_ == ZONED and type(value) is int and pt.is_integer(literal.type):
        return _instant_literal(value * SECOND)
    if not temporal or not isinstance(value, str):
        return None
    if pt.is_date32(type_):
        day = _day(literal, zone)
        return None if day is None else date_of(day)
    if type_ == WALL:
        wall = _wall(literal, zone)
        return None if wall is None else _wall_literal(wall)
    if type_ == ZONED:
        instant = _instant(literal, zone)
        return None if instant is None else _instant_literal(instant)
    if pt.is_string(type_) and pt.is_date32(literal.type):
        day = _day(literal, zone)
        made = None if day is None else date_of(day)
        return None if made is None else Literal(made.value, type_)
    if pt.is_int64(type_) and literal.type == ZONED:
        instant = _instant(literal, zone)
        return None if instant is None else Literal(instant // SECOND, type_)
    return None


# -- writing ------------------------------------------------------------------------------------------------------


def date_text(day: int) -> str | None:
    """A count of days since 1970 as text; None if its year is not from 1 to 9999."""
    year, month, of_month = civil(day)
    return f"{year:04}-{month:02}-{of_month:02}" if 1 <= year <= LAST_YEAR else None


def instant_text(micros: int) -> str | None:
    """Microseconds since 1970 as wall time with its fraction, if it has one; None as for a date."""
    day, clock = divmod(micros, DAY)
    seconds, fraction = divmod(clock, SECOND)
    date = date_text(day)
    written = f"{date} {seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return None if date is None else f"{written}.{fraction:06}" if fraction else written


def date_of(day: int) -> Literal | None:
    """A date literal."""
    text = date_text(day)
    return None if text is None else Literal(text, pa.date32())


def _wall_literal(micros: int) -> Literal | None:
    text = instant_text(micros)
    return None if text is None else Literal(text, WALL)


def _instant_literal(micros: int) -> Literal | None:
    text = instant_text(micros)
    return None if text is None else Literal(f"{text}Z", ZONED)


# -- reading ------------------------------------------------------------------------------------------------------


def _day(literal: Literal, zone: Zone | None) -> int | None:
    """The day that Spark casts a literal to."""
    if not isinstance(literal.value, str):
        return None
    if pt.is_date32(literal.type) or is_text(literal.type):
        return parse_date(literal.value)
    wall = _wall(literal, zone)
    return None if wall is None else wall // DAY


def _wall(literal: Literal, zone: Zone | None) -> int | None:
    """The wall time of a date or timestamp; of an instant in the session's zone."""
    if literal.type == ZONED:
        instant = _instant(literal, zone)
        return None if instant is None or zone is None else zone.wall(instant)
    if pt.is_date32(literal.type):
        day = _day(literal, zone)
        return None if day is None else day * DAY
    moment = parse_moment(literal.value) if isinstance(literal.value, str) and literal.type == WALL else None
    return None if moment is None else moment.wall


def _instant(literal: Literal, zone: Zone | None) -> int | None:
    """The instant that Spark casts a literal to, if that is but one."""
    if not isinstance(literal.value, str):
        return None
    pair: tuple[int, int] | None = None
    if literal.type == ZONED or is_text(literal.type):
        moment = parse_moment(literal.value)
        session = zone if zone is not None or moment is None else moment.zone
        pair = None if moment is None or session is None else moment.instants(session)
    elif zone is not None and (wall := _wall(literal, zone)) is not None:
        pair = zone.instants(wall)
    return None if pair is None or pair[0] != pair[1] else pair[0]


def _settled(wall: int, zone: Zone) -> int | None:
    """The instant of a wall time that exists just once."""
    low, high = zone.instants(wall)
    return low if low == high else None


def _shifted(wall: int, interval: Interval) -> int:
    if interval.months is None:
        return wall + (interval.micros or 0)
    day, clock = divmod(wall, DAY)
    return _add_months(day, interval.months) * DAY + clock


def _whole_days(micros: int) -> int:
    """As Java divides: toward zero."""
    return (abs(micros) // DAY) * DAY * (1 if micros >= 0 else -1)


def _add_months(day: int, months: int) -> int:
    year, month, of_month = civil(day)
    years, following = divmod(month - 1 + months, 12)
    last = next(
        last for last in range(_DAYS_IN_MONTH, 0, -1) if civil(days(year + years, following + 1, last))[2] == last
    )
    return days(year + years, following + 1, min(of_month, last))


def _floor(wall: int, unit: str) -> int:
    """The last start of a unit at or before a wall time: the next one's, and back by one."""
    above = ceil_wall(wall + 1, unit)
    if unit in {"year", "quarter", "month"}:
        size = {"year": 12, "quarter": 3, "month": 1}[unit]
        return _add_months(above // DAY, -size) * DAY
    size = {"week": 7 * DAY, "day": DAY, "hour": 3600 * SECOND, "minute": 60 * SECOND}.get(unit, 0)
    size = size or {"second": SECOND, "millisecond": SECOND // 1000, "microsecond": 1}[unit]
    return above - size
