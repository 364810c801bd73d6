"""Dates and timestamps as Spark casts text to them.

Law: a text is read as Spark 4 reads it in a CAST, or refused; never guessed at. Days and microseconds are counted
from 1970 in the proleptic Gregorian calendar, in integers of any size.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from tamis.predicate.compare.zones import Zone, find_zone
from tamis.predicate.units import DAY, SECOND

__all__ = ["SPECIAL_DAYS", "Moment", "civil", "days", "only_spark_reads", "parse_date", "parse_moment", "parse_time"]

_DATE = r"([+-]?\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2}))?)?"
_CLOCK = r"(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?)?"
_DATE_TEXT = re.compile(_DATE, re.ASCII)
_DATE_TAIL = re.compile(_DATE + r"[ T].*", re.DOTALL | re.ASCII)
_MOMENT_TEXT = re.compile(_DATE.replace("4,7", "4,6") + rf"(?:[ T]{_CLOCK}\s*(\S.*)?)?", re.DOTALL | re.ASCII)
_TIME_TEXT = re.compile(r"(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?", re.ASCII)
SPECIAL_DAYS = frozenset({"epoch", "now", "today", "tomorrow", "yesterday"})
"""Words that stand for a day or a moment."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A wall time in microseconds and, if the text names one, its own zone."""

    wall: int
    zone: Zone | None = None
    is_date: bool = False
    """True for a date: its midnight, or the end of the gap if clocks are set forward just then."""

    def instants(self, session: Zone) -> tuple[int, int]:
        """The instant meant, in the text's own zone or else the session's: the least and the most it may be."""
        if self.is_date:
            return session.instants(self.wall)
        return (session if self.zone is None else session.sibling(self.zone)).taken(self.wall)


def days(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01 to a date of the proleptic Gregorian calendar, of any year.

    >>> days(1970, 1, 1), days(1969, 12, 31), days(2024, 2, 29)
    (0, -1, 19782)
    """
    # Years from March on: the leap day is the last day of such a year, and 153 days make five months.
    shifted = year - (month <= 2)
    era, of_era = divmod(shifted, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + day_of_year - 719_468


def civil(day: int) -> tuple[int, int, int]:
    """The year, month and day of a count of days: the inverse of days().

    >>> civil(-1)
    (1969, 12, 31)
    """
    era, of_era = divmod(day + 719_468, 146_097)
    year_of_era = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    day_of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = (shifted + 2) % 12 + 1
    return year_of_era + era * 400 + (month <= 2), month, day_of_year - (153 * shifted + 2) // 5 + 1


def parse_date(text: str) -> int | None:
    """Days since 1970 of text cast to a date; what follows a blank or T is ignored, as Spark does."""
    stripped = text.strip()
    match = _DATE_TEXT.fullmatch(stripped) or _DATE_TAIL.fullmatch(stripped)
    if match is None or (match[3] is None and match.re is _DATE_TAIL):
        return None
    return _days(match[1], match[2], match[3])


def parse_moment(text: str) -> Moment | None:
    """The wall time of text cast to a timestamp, and the zone if it names one; None if Spark would refuse it."""
    match = _MOMENT_TEXT.fullmatch(text.strip())
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    day_count = _days(year, month, day)
    if day_count is None or (hour is not None and day is None) or (zone is not None and minute is None):
        return None
    clock = _clock(hour, minute, second, fraction, digits=6)
    if clock is None:
        return None
    return Moment(day_count * DAY + clock, None if zone is None else find_zone(zone))


def only_spark_reads(text: str) -> bool:
    """True for text that means another moment each day (`today`, `12:30`), or that only Spark knows (`epoch`)."""
    stripped = text.strip().lower()
    return stripped in SPECIAL_DAYS or re.match(r"t?\d{1,2}:", stripped) is not None


def parse_time(value: str | time) -> int | None:
    """Nanoseconds since midnight; None if text is no time of day."""
    if isinstance(value, time):
        whole = ((value.hour * 60 + value.minute) * 60 + value.second) * SECOND + value.microsecond
        return whole * 1000
    match = _TIME_TEXT.fullmatch(value.strip())
    return None if match is None else _clock(*match.groups(), digits=9)


def moment_of(value: datetime) -> Moment:
    """A Python datetime as a moment; an aware one keeps its offset."""
    naive = value.replace(tzinfo=None)
    wall = (naive - datetime(1970, 1, 1)) // timedelta(microseconds=1)  # noqa: DTZ001 - wall time
    offset = value.utcoffset()
    if offset is None:
        return Moment(wall)
    return Moment(wall - offset // timedelta(microseconds=1), find_zone("UTC"))


def days_of(value: date) -> int:
    """A Python date in days since 1970."""
    return value.toordinal() - date(1970, 1, 1).toordinal()


def _days(year: str, month: str | None, day: str | None) -> int | None:
    numbers = int(year), int(month or 1), int(day or 1)
    count = days(*numbers)
    return count if civil(count) == numbers else None


def _clock(
    hour: str | None, minute: str | None, second: str | None, fraction: str | None, *, digits: int
) -> int | None:
    """Time of day in units of 10**-digits seconds; what a fraction has beyond is cut off, as Spark does."""
    h, m, s = int(hour or 0), int(minute or 0), int(second or 0)
    if h > 23 or m > 59 or s > 59:
        return None
    units = int((fraction or "").ljust(digits, "0")[:digits])
    return int(((h * 60 + m) * 60 + s) * 10**digits + units)
