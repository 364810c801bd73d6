"""Between the wall clock of a session's time zone and the instants that zoned timestamps store.

Clocks are set back, so one wall time may name two instants, and set forward, so it may name none. Releases of the
time-zone database differ, and the session's is known only if it was asked. Law: every answer is a pair, the earliest
and the latest instant (or wall time) that can be meant. For an offset from UTC they are equal; by the session's own
rules they differ near a change; by Python's they enclose what any release may say, see doubt.py.
All times are microseconds since 1970, so that no year is out of range.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tamis.errors import BindError
from tamis.predicate.compare.doubt import reach
from tamis.predicate.compare.zone_rules import MARGIN, ZoneRules

__all__ = ["MARGIN", "Ask", "Zone", "find_zone", "fixed_offset", "no_zone", "python_rules"]

Ask = Callable[[str], ZoneRules]
"""Gives the rules that the session has for a zone; BindError if it has none."""

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - wall time, on purpose without a zone
_GREATEST_OFFSET = timedelta(hours=18)
SIXTY = 60
_OFFSET = re.compile(r"(?:(?:UTC|GMT|UT)(?=[+-]|$))?(?:([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?)?")
_ETC_OFFSET = re.compile(r"Etc/GMT([+-])(\d{1,2})")
_ALWAYS_UTC = frozenset({"UTC", "GMT", "UT", "UCT", "GMT0", "Greenwich", "Universal", "Zulu"})
"""Regions that are an offset of zero by definition, each also under Etc/."""

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
    rules: tzinfo | ZoneRules | None
    """An offset, what the session told, or what Python knows; None until the session is asked."""
    ask: Ask | None = field(default=None, compare=False, repr=False)
    asked: bool = field(default=False, compare=False)

    def __reduce__(self) -> tuple[object, ...]:
        """Without the session; with the rules that it has told, if it was asked, else with Python's."""
        return (find_zone, (self.name,)) if self.rules is None else (Zone, (self.name, self.rules))

    def told(self) -> Zone:
        """The same, with the session's rules asked for: what it answers does not change where it is sent."""
        return Zone(self.name, self._session_rules or self.rules)

    @property
    def fixed(self) -> int | None:
        """The offset from UTC if it never changes."""
        self.asked = True
        return _microseconds(self.rules.utcoffset(None)) if isinstance(self.rules, timezone) else None

    @property
    def doubtful(self) -> bool:
        """True if nobody told the session's rules, so that they may be those of any release."""
        return isinstance(self.rules, tzinfo) and not isinstance(self.rules, timezone)

    def sibling(self, other: Zone) -> Zone:
        """Another zone of the same session: a text may name its own."""
        return other if self.ask is None or not other.doubtful else Zone(other.name, None, self.ask)

    def instants(self, wall: int) -> tuple[int, int]:
        """The earliest and the latest instant at which the wall clock may show, or jump over, this time."""
        if self.fixed is not None:
            return wall - self.fixed, wall - self.fixed
        rules = self._session_rules
        if rules is None:
            # An instant x shows x + offset: below wall - greatest it is before the wall time, whatever the rules.
            least, greatest = self.reach(wall)
            return wall - greatest, wall - least
        if not rules.covers(wall):
            return wall - MARGIN, wall + MARGIN
        first, second = (wall - offset for offset in rules.on_wall(wall))
        return min(first, second), max(first, second)

    def taken(self, wall: int) -> tuple[int, int]:
        """The instant that Spark takes for a wall time: the earlier of two, the later side of a gap.

        A pair all the same: of rules that were not told nobody knows the offset.
        """
        if self.fixed is None and self._session_rules is not None and self._session_rules.covers(wall):
            return (wall - self._session_rules.on_wall(wall)[0],) * 2
        return self.instants(wall)

    def wall(self, instant: int) -> int | None:
        """What the wall clock shows at an instant; None if the rules do not tell."""
        if self.fixed is not None:
            return instant + self.fixed
        rules = self._session_rules
        return instant + rules.offset(instant) if rules is not None and rules.covers(instant) else None

    def walls(self, instant: int) -> tuple[int, int]:
        """The least and the most that the wall clock may show at an instant."""
        wall = self.wall(instant)
        if wall is not None:
            return wall, wall
        if not self.doubtful:
            return instant - MARGIN, instant + MARGIN
        least, greatest = self.reach(instant)
        return instant + least, instant + greatest

    def calm(self, *instants: int) -> bool:
        """True if the clock is not changed within a day around any of them."""
        if self.fixed is not None:
            return True
        rules = self._session_rules
        if rules is None or not all(map(rules.covers, instants)):
            return False
        return all(
            rules.offset(instant - MARGIN) == rules.offset(instant) == rules.offset(instant + MARGIN)
            for instant in instants
        )

    def reach(self, about: int) -> tuple[int, int]:
        """The least and the greatest offset that a session may have near a time, by whatever rules."""
        return reach(self.name, self._offset, about)

    @property
    def _session_rules(self) -> ZoneRules | None:
        if self.rules is None and self.ask is not None:
            self.rules = self.ask(self.name)
        return self.rules if isinstance(self.rules, ZoneRules) else None

    def _offset(self, instant: int) -> int:
        rules = self.rules if isinstance(self.rules, tzinfo) else UTC
        moment = (_EPOCH + timedelta(microseconds=instant)).replace(tzinfo=UTC).astimezone(rules)
        return _microseconds(moment.utcoffset())


def find_zone(name: str, ask: Ask | None = None) -> Zone:
    """The zone that Spark means by name: a region, UTC, or an offset such as +02:00. BindError if there is none.

    With ask, the rules of a region are the session's, and asked for when they are needed.

    >>> find_zone("+01:00").instants(0)
    (-3600000000, -3600000000)
    >>> [(instant - 10**15) // 3_600_000_000 for instant in find_zone("Europe/Paris").instants(10**15)]
    [-5, 1]
    """
    if ask is None or fixed_offset(name) is not None:
        return Zone(name, python_rules(name), ask)
    return Zone(name, None, ask)


def fixed_offset(name: str) -> timezone | None:
    """The offset that a name stands for in every release of the database; None for a region.

    >>> fixed_offset("UTC") == fixed_offset("Etc/UTC") == fixed_offset("Z") == fixed_offset("+00:00")
    True
    """
    stripped = name.strip()
    if stripped in {"Z", "z"} or stripped.removeprefix("Etc/") in _ALWAYS_UTC:
        return UTC
    match = _ETC_OFFSET.fullmatch(stripped)
    if match is not None and int(match[2]) <= (14 if match[1] == "-" else 12):
        hours = int(match[2])  # Etc/GMT+5 is five hours behind, as POSIX counts
        return timezone(timedelta(hours=-hours if match[1] == "+" else hours))
    match = _OFFSET.fullmatch(stripped)
    if stripped and match is not None:
        sign, hours_text, minutes, seconds = match.groups()
        delta = timedelta(hours=int(hours_text or 0), minutes=int(minutes or 0), seconds=int(seconds or 0))
        if delta <= _GREATEST_OFFSET and all(int(digits or 0) < SIXTY for digits in (minutes, seconds)):
            return timezone(-delta if sign == "-" else delta)
    return None


@lru_cache(maxsize=64)
def python_rules(name: str) -> tzinfo:
    """The rules of a zone by Python's database; BindError if it has no such zone."""
    fixed, stripped = fixed_offset(name), name.strip()
    if fixed is not None:
        return fixed
    try:
        return ZoneInfo(_SHORT_NAMES.get(stripped, stripped))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise no_zone(name) from None


def no_zone(name: str) -> BindError:
    """The error for a zone that does not exist."""
    return BindError(
        f"no time zone {name!r}. Give a region such as Europe/Paris, UTC, or an offset such as +02:00.",
        column=None,
        nearest=(),
    )


def _microseconds(offset: timedelta | None) -> int:
    return 0 if offset is None else offset // timedelta(microseconds=1)
