"""How far the rules of Python's time-zone database can be from those of the session that will read the plan.

Python and the JVM each bring their own release of the database, some built with other sources for times before 1970,
and nobody knows which a session will have. Law: whatever release it is, its offset at an instant lies within `reach`.

- Java has no offset beyond 18 hours: that much always holds, without any data.
- Since 1970 the releases are close. The database keeps zones apart that differ since then, and only those: what it
  says of earlier times is merged away, or kept, by the maker's choice. In the releases from 2018 to 2026, of IANA,
  Debian and OpenJDK, offsets since 1970 differ by up to two hours, for decisions of governments and corrections
  alike, with the exceptions below. Governments have moved clocks by up to three at once, but for the date line.
- Days on which the date line was crossed (Kwajalein 1993, Kiribati 1995) were corrected by a day. Two days around a
  time are looked at, so that the offsets of both sides are within reach there.
- A move across the date line, by 24 hours, is open to clocks that are at least 10 hours behind or 12 ahead, for
  offsets go from -12 to +14. Those up to RELEASE are in every release; a later one may come in any such zone.
- Stations in Antarctica keep the time of whoever supplies them: their offsets were corrected by up to 6 hours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tamis.predicate.units import DAY, HOUR

__all__ = ["reach"]

WIDEST: Final = 18 * HOUR
"""Java's greatest offset, either way."""
DIFFERENCE: Final = 3 * HOUR
"""Most that two releases are apart since 1970. Measured: two hours; one more is for what is to come."""
SINCE: Final = 3 * DAY
"""1970, and a bit: what is looked at around it must not lie before."""
RELEASE: Final = 20_727 * DAY
"""2026-10-01: the releases that were compared go up to here."""
LAST: Final = 2_932_000 * DAY
"""In the year 9997: Python's rules reach no further."""
AROUND: Final = 2 * DAY
"""A wall time and its instant are up to 18 hours apart, and a corrected change up to 24 hours from the old one."""
EAST: Final = 12 * HOUR
WEST: Final = -10 * HOUR


def reach(name: str, offset: Callable[[int], int], about: int) -> tuple[int, int]:
    """The least and the greatest offset that any release may have within a day of a time.

    offset is Python's, of an instant. Since 1970 no clock was changed twice within four days: three looks see both
    sides of a change.
    """
    if not SINCE <= about < LAST or name.startswith("Antarctica/"):
        return -WIDEST, WIDEST
    offsets = [offset(about + step) for step in (-AROUND, 0, AROUND)]
    if about > RELEASE and (max(offsets) >= EAST or min(offsets) <= WEST):
        return -WIDEST, WIDEST
    return min(offsets) - DIFFERENCE, max(offsets) + DIFFERENCE
