"""A time zone's rules as a session told them: from when on which offset from UTC holds.

All times are microseconds since 1970.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from tamis.predicate.units import HOUR

__all__ = ["MARGIN", "ZoneRules"]

MARGIN = 26 * HOUR
"""Wider than any offset from UTC, and than any change of it (Samoa skipped a whole day)."""


@dataclass(frozen=True, slots=True)
class ZoneRules:
    """The offsets of a zone at every instant from start to end; beyond them it is not known."""

    start: int
    end: int
    changes: tuple[int, ...]
    """The instants from which on another offset holds, in order."""
    offsets: tuple[int, ...]
    """The offset before the first change, then the one from each change on."""

    def covers(self, time: int) -> bool:
        """Whether what holds at this time, an instant or a wall time, and a day around it, is known."""
        return self.start + 2 * MARGIN < time < self.end - 2 * MARGIN

    def offset(self, instant: int) -> int:
        """How far the clocks are ahead of UTC."""
        return self.offsets[bisect_right(self.changes, instant)]

    def on_wall(self, wall: int) -> tuple[int, int]:
        """The offsets before and after the change that makes a wall time come twice, or not at all; else one."""
        index = bisect_right(self.changes, wall - MARGIN)
        while index < len(self.changes) and self.changes[index] <= wall + MARGIN:
            change, before, after = self.changes[index], self.offsets[index], self.offsets[index + 1]
            if wall < change + min(before, after):
                break
            if wall < change + max(before, after):
                return before, after
            index += 1
        return self.offsets[index], self.offsets[index]
