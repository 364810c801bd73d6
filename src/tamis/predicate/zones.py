"""Between the wall clock of a session's time zone and the instants that zoned timestamps store.

Clocks are set back, so one wall time may name two instants, and set forward, so it may name none. Law: every answer
is a pair, the earliest and the latest instant (or wall time) that can be meant; they are equal except near a change.
All times are microseconds since 1970, so that no year is out of range.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tamis.errors import BindError

__all__ = ["DAY", "Zone", "find_zone"]

SECOND = 1_000_000
DAY = 86_400 * SECOND
MARGIN = 26 * 3600 * SECOND
"""Wider than any offset from UTC, and than any change of it (Samoa skipped a whole day)."""

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - wall time, on purpose without a zone
_FIRST = (datetime(2, 1, 1) - _EPOCH) // timedelta(microseconds=1)  # noqa: DTZ001 - wall time
_LAST = (datetime(9998, 1, 1) - _EPOCH) // timedelta(microseconds=1)  # noqa: DTZ001 - wall time
_GREATEST_OFFSET = timedelta(hours=18)
SIXTY = 60
_OFFSET = re.compile(r"(?:(?:UTC|GMT|UT)(?=[+-]|$))?(?:([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?)?")


_SHORT_NAMES = {
    "ACT": "Australia/Darwin",
    "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo",
    "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns",
    "CST": "America/Chicago",
    "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris",
    "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia",
    "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
}
"""Three letters that Java takes for a region, and so does Spark."""


@dataclass(slots=True)
class Zone:
    """A session's time zone, which remembers whether anything asked it: then the answer depends on the zone."""

    name: str
    rules: tzinfo
    asked: bool = field(default=False, compare=False)

    @property
    def fixed(self) -> int | None:
        """The offset from UTC if it never changes."""
        self.asked = True
        return _microseconds(self.rules.utcoffset(None)) if isinstance(self.rules, timezone) else None

    def instants(self, wall: int) -> tuple[int, int]:
        """The earliest and the latest instant at which the wall clock may show, or jump over, this time."""
        if self.fixed is not None:
            return wall - self.fixed, wall - self.fixed
        if not _FIRST < wall < _LAST:
            return wall - MARGIN, wall + MARGIN
        first, second = (wall - self._offset_on_wall(wall, fold) for fold in (0, 1))
        return min(first, second), max(first, second)

    def taken(self, wall: int) -> tuple[int, int]:
        """The instant that Spark takes for a wall time: the earlier of two, the later side of a gap.

        A pair all the same: in years that the rules do not cover nobody knows the offset.
        """
        if self.fixed is None and _FIRST < wall < _LAST:
            return (wall - self._offset_on_wall(wall, 0),) * 2
        return self.instants(wall)

    def wall(self, instant: int) -> int | None:
        """What the wall clock shows at an instant; None outside the years that the rules cover."""
        if self.fixed is not None:
            return instant + self.fixed
        return instant + self._offset(instant) if _FIRST < instant < _LAST else None

    def calm(self, *instants: int) -> bool:
        """True if the clock is not changed within a day around any of them."""
        if self.fixed is not None:
            return True
        if any(not _FIRST + MARGIN < instant < _LAST - MARGIN for instant in instants):
            return False
        return all(
            self._offset(instant - MARGIN) == self._offset(instant) == self._offset(instant + MARGIN)
            for instant in instants
        )

    def _offset(self, instant: int) -> int:
        moment = (_EPOCH + timedelta(microseconds=instant)).replace(tzinfo=UTC).astimezone(self.rules)
        return _microseconds(moment.utcoffset())

    def _offset_on_wall(self, wall: int, fold: int) -> int:
        moment = (_EPOCH + timedelta(microseconds=wall)).replace(tzinfo=self.rules, fold=fold)
        return _microseconds(moment.utcoffset())


def find_zone(name: str) -> Zone:
    """The zone that Spark means by name: a region, UTC, or an offset such as +02:00. BindError if there is none.

    >>> find_zone("Europe/Paris").instants(0)
    (-3600000000, -3600000000)
    """
    return Zone(name, _rules(name))


@lru_cache(maxsize=64)
def _rules(name: str) -> tzinfo:
    stripped = name.strip()
    if stripped in {"Z", "z"}:
        return UTC
    offset = _OFFSET.fullmatch(stripped)
    if stripped and offset is not None:
        sign, hours, minutes, seconds = offset.groups()
        delta = timedelta(hours=int(hours or 0), minutes=int(minutes or 0), seconds=int(seconds or 0))
        if delta <= _GREATEST_OFFSET and all(int(part or 0) < SIXTY for part in (minutes, seconds)):
            return timezone(-delta if sign == "-" else delta)
    if stripped in {"UTC", "GMT", "UT", "Etc/UTC", "Etc/GMT"}:
        return UTC
    try:
        return ZoneInfo(_SHORT_NAMES.get(stripped, stripped))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise BindError(
            f"no time zone {name!r}. Give a region such as Europe/Paris, UTC, or an offset such as +02:00.",
            column="",
            nearest=(),
        ) from None


def _microseconds(offset: timedelta | None) -> int:
    return 0 if offset is None else offset // timedelta(microseconds=1)
