"""The rules of a time zone as several makers and releases of the database have them; nothing of tamis is used.

zone_versions.tsv was exported from OpenJDK 17 and 25, from Debian and from PyPI. Some zones have invented versions as
well: what a government may still do.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

__all__ = ["Version", "current", "of_python", "under", "versions"]

_FILE: Final = Path(__file__).with_suffix(".tsv")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_HOUR: Final = 3600


@dataclass(frozen=True, slots=True)
class Version:
    """A zone's offsets in seconds: before the first change, and from each change on."""

    zone: str
    maker: str
    first: int
    changes: tuple[tuple[int, int], ...]

    def offset(self, second: int) -> int:
        """How far the clocks are ahead of UTC at an instant."""
        place = bisect_right(self.changes, (second, 1 << 62))
        return self.changes[place - 1][1] if place else self.first

    def on_wall(self, second: int) -> tuple[int, int]:
        """The offsets that a reading of the clock may have: before and after a change, equal where there is none."""
        start = bisect_right(self.changes, (second - 3 * 86_400, 0))
        before = self.changes[start - 1][1] if start else self.first
        for change, after in self.changes[start:]:
            if second < change + min(before, after):
                break
            if second < change + max(before, after):
                return before, after
            before = after
        return before, before


@cache
def versions() -> tuple[Version, ...]:
    """Every version of the file, then the invented ones."""
    found = []
    for line in _FILE.read_text().splitlines():
        if not line.startswith("#"):
            zone, maker, first, changes = line.split("\t")
            pairs = (change.split(":") for change in changes.split())
            found.append(Version(zone, maker, int(first), tuple((int(at), int(after)) for at, after in pairs)))
    return (*found, *_invented())


def _invented() -> Iterator[Version]:
    """Clocks moved at the start of a period, across midnight, by two hours, and across the date line."""
    for zone, maker, at, step in (
        ("Europe/Paris", "summer time for ever", "2030-10-01T00:00:00", 1),
        ("Europe/Paris", "a gap around midnight", "2027-12-31T22:30:00", 1),
        ("Europe/Paris", "midnight comes twice", "2027-12-31T23:30:00", -1),
        ("Asia/Kolkata", "two hours", "2028-02-29T18:30:00", 2),
        ("America/Sao_Paulo", "summer time again", "2025-01-01T02:00:00", 1),
        ("Pacific/Pago_Pago", "across the date line", "2030-12-31T11:00:00", 24),
        ("Pacific/Pago_Pago", "a Monday is skipped", "2030-12-30T11:00:00", 24),
        ("Pacific/Tongatapu", "and back", "2031-06-30T11:00:00", -24),
    ):
        now = of_python(zone)
        change = round((datetime.fromisoformat(at).replace(tzinfo=UTC) - _EPOCH).total_seconds())
        after = tuple((moment, offset + step * _HOUR) for moment, offset in now.changes if moment > change)
        before = tuple(pair for pair in now.changes if pair[0] < change)
        yield Version(zone, maker, now.first, (*before, (change, now.offset(change) + step * _HOUR), *after))


@cache
def of_python(zone: str) -> Version:
    """The rules that Python finds on this machine, from 1840 to 2060: searched for, as it does not tell them."""
    rules = ZoneInfo(zone)

    def offset(second: int) -> int:
        moment = (_EPOCH + timedelta(seconds=second)).astimezone(rules).utcoffset()
        assert moment is not None
        return moment.days * 86_400 + moment.seconds

    step, changes = 3 * 86_400, []
    start = -4_102_444_800
    before = offset(start)
    for day in range(start, 2_840_140_800, step):
        low, high = day, day + step
        if before != (before := offset(high)):
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if offset(middle) == offset(low) else (low, middle)
            changes.append((high, offset(high)))
    return Version(zone, "python", offset(start), tuple(changes))


_current: list[dict[str, Version]] = [{}]


@contextmanager
def under(version: Version) -> Iterator[None]:
    """The oracle takes these rules for this zone, for the time of a block."""
    _current.append({version.zone: version})
    try:
        yield
    finally:
        _current.pop()


def current(zone: str) -> Version | None:
    """The version to take for a zone; None for Python's own rules."""
    return _current[-1].get(zone)
