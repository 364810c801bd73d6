"""Functions that keep the order of a column, and so turn into ranges on it.

Law: for a monotone f, {x : f(x) >= cut} is {x : x >= pull(cut)}. So a function is known by its result type and by
how it pulls a cut of the result back to a cut of its argument: as a pair, (at least, at most), that differs only
where the clocks of the session's zone are changed, or may be. f(NULL) is NULL, and only that.

date_trunc gives instants. Where the rules of the zone are in doubt, these are known by the wall clock's reading,
which is exact: a month starts at its first midnight, whenever that is. Such a result has the type CLOCK.
"""

from __future__ import annotations

import pyarrow as pa
from pyarrow import types as pt

from tamis.predicate.compare.times import civil, days
from tamis.predicate.compare.widening import pull_widened, widened
from tamis.predicate.compare.zones import MARGIN, Zone
from tamis.predicate.keys import Key
from tamis.predicate.nodes import Call
from tamis.predicate.type_names import is_text
from tamis.predicate.units import DAY, HOUR, PER_SECOND, SECOND

__all__ = ["is_utf8", "prefix_end", "pull", "result_type"]

_UNITS = {unit: SECOND // count for unit, count in PER_SECOND.items() if count <= SECOND}
"""Microseconds in a unit of a timestamp; a nanosecond has none, and is scaled the other way."""
_CLOCK_UNITS = {
    "microsecond": 1,
    "millisecond": 10**3,
    "second": SECOND,
    "minute": 60 * SECOND,
    "hour": HOUR,
    "day": DAY,
}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_DAY_UNITS = _MONTHS.keys() | {"week"}
LAST_CODE_POINT = 0x10FFFF
ABOVE_TEXT = b"\xf8"
"""A key above that of every text."""
SURROGATES = range(0xD800, 0xE000)

SPARK_TIMESTAMP = pa.timestamp("us", "UTC")
CLOCK = pa.timestamp("us", "wall clock")
"""Instants, by what the wall clock of the session's zone shows."""
_ZONELESS = {"microsecond", "millisecond", "second"}
"""What date_trunc cuts off without a look at the clock."""


def result_type(call: Call, argument: pa.DataType, zone: Zone) -> pa.DataType | None:
    """The type of f(x) for an x of this type; None if the function is not monotone on it."""
    temporal = bool(pt.is_timestamp(argument) or pt.is_date32(argument))
    match call.function:
        case "date" if temporal:
            return pa.date32()
        case "trunc" if temporal and call.argument in _DAY_UNITS:
            return pa.date32()
        case "year" if temporal:
            return pa.int32()
        case "date_trunc" if temporal and call.argument in _DAY_UNITS | _CLOCK_UNITS.keys():
            return CLOCK if zone.doubtful and call.argument not in _ZONELESS else SPARK_TIMESTAMP
        case "left" if is_text(argument) and isinstance(call.argument, int) and call.argument > 0:
            return argument
        case "cast":
            return widened(argument, str(call.argument))
    return None


def pull(call: Call, argument: pa.DataType, cut: Key, zone: Zone) -> tuple[Key, Key]:
    """The least argument whose result reaches the cut: at least the first, at most the second."""
    if call.function == "cast":
        return (pull_widened(argument, str(call.argument), cut),) * 2
    if isinstance(cut, bytes):
        return _pull_left(cut, int(call.argument or 0))
    if call.function == "date_trunc":
        return _pull_date_trunc(str(call.argument), argument, cut, zone)
    if pt.is_date32(argument):
        return (_first_day(call, cut),) * 2
    wall = _first_day(call, cut) * DAY
    if argument == CLOCK:
        return wall - _slack(wall, zone), wall  # a reading that is jumped over is one that follows
    if argument.tz is None:
        return (_from_microseconds(wall, argument),) * 2
    # local(ts) >= wall begins at the instant of that wall time: one, unless the clock passes it twice or jumps it.
    low, high = zone.instants(wall)
    return _from_microseconds(low, argument), _from_microseconds(high, argument)


def _first_day(call: Call, cut: int) -> int:
    """The first day of which date(), year() or trunc() reaches the cut."""
    match call.function:
        case "year":
            return days(cut, 1, 1)
        case "trunc":
            return ceil_day(cut, str(call.argument))
        case _:
            return cut


def _pull_date_trunc(unit: str, argument: pa.DataType, cut: int, zone: Zone) -> tuple[Key, Key]:
    """date_trunc works on instants: a date, and a timestamp without zone, become one in the session's zone first."""
    if zone.doubtful and unit not in _ZONELESS:
        return _pull_on_clock(unit, argument, cut, zone)
    low, high = _pull_floor(unit, cut, zone)
    if pt.is_timestamp(argument) and argument.tz is not None:
        return _from_microseconds(low, argument), _from_microseconds(high, argument)
    low, high = _walls(low, zone)[0], _walls(high, zone)[1]
    if pt.is_date32(argument):
        return -(-low // DAY), -(-high // DAY)
    return _from_microseconds(low, argument), _from_microseconds(high, argument)


def _pull_on_clock(unit: str, argument: pa.DataType, cut: int, zone: Zone) -> tuple[Key, Key]:
    """date_trunc under unknown rules: the cut is a wall time.

    Of two readings a < b, a is the earlier instant, unless b is jumped over by a gap and a is not past it by as much,
    or a comes twice, and it is the second one: that is open to clocks, for a week or more starts with its first
    midnight. A gap, and what comes twice, is no longer than the offsets are apart that are within reach.
    """
    slack = _slack(cut, zone)
    low = ceil_wall(cut if unit in _DAY_UNITS else cut - slack, unit)
    high = ceil_wall(cut + slack, unit)
    if pt.is_timestamp(argument) and argument.tz is not None and argument != CLOCK:
        return _from_microseconds(zone.instants(low)[0], argument), _from_microseconds(
            zone.instants(high)[1], argument
        )
    # A date's midnight, or a wall time, that is jumped over is read as one that follows.
    low, high = low - _slack(low, zone), high + _slack(high, zone)
    if pt.is_date32(argument):
        return -(-low // DAY), -(-high // DAY)
    return _from_microseconds(low, argument), _from_microseconds(high, argument)


def _slack(wall: int, zone: Zone) -> int:
    least, greatest = zone.reach(wall)
    return greatest - least


def _pull_floor(unit: str, cut: int, zone: Zone) -> tuple[int, int]:
    """{x : floor(x) >= cut} is {x : x >= ceil(cut)}, on the wall clock; instants in microseconds."""
    if unit in _ZONELESS:
        return (ceil_wall(cut, unit),) * 2
    wall = zone.wall(cut)
    if wall is None:
        return cut, ceil_wall(cut + MARGIN, unit) + 2 * MARGIN
    low, high = zone.instants(ceil_wall(wall, unit))
    if low == high and zone.calm(cut, low):
        return low, high
    # A floor is never above its argument, so nothing below the cut reaches it; past the next period all do.
    return cut, high + MARGIN


def _walls(instant: int, zone: Zone) -> tuple[int, int]:
    """The wall times from which on a value without zone is at or after an instant, as Spark may take it."""
    wall = zone.wall(instant)
    if wall is not None and zone.calm(instant):
        return wall, wall
    if zone.doubtful:
        return zone.walls(instant)
    return instant - 2 * DAY, instant + 2 * DAY


def ceil_wall(wall: int, unit: str) -> int:
    """The first start of a period at or after a wall time in microseconds.

    >>> ceil_wall(1, "hour") == 3600 * 10**6, ceil_wall(-1, "year")
    (True, 0)
    """
    if unit in _CLOCK_UNITS:
        size = _CLOCK_UNITS[unit]
        return -(-wall // size) * size
    return ceil_day(-(-wall // DAY), unit) * DAY


def ceil_day(day: int, unit: str) -> int:
    """The first start of a week, month, quarter or year at or after a day; weeks start on Monday.

    >>> civil(ceil_day(days(2024, 1, 2), "quarter"))
    (2024, 4, 1)
    """
    if unit == "week":
        return day + (-(day + 3)) % 7  # 1970-01-01 was a Thursday, three days after a Monday
    if unit == "day":
        return day
    size = _MONTHS[unit]
    year, month, _ = civil(day)
    start = (month - 1) // size * size
    first = days(year, start + 1, 1)
    if first >= day:
        return first
    years, following = divmod(start + size, 12)
    return days(year + years, following + 1, 1)


def _from_microseconds(micros: int, type_: pa.DataType) -> int:
    """The first value of the type at or after a time."""
    return micros * 1000 if type_.unit == "ns" else -(-micros // _UNITS[type_.unit])


def _pull_left(cut: bytes, size: int) -> tuple[bytes, bytes]:
    """For f(s) = left(s, n): if the cut has at most n characters, f(s) >= cut exactly if s >= cut.

    A longer cut lies between its own first n characters and the next string of n: f must be past those.
    """
    if not is_utf8(cut):
        return b"", ABOVE_TEXT
    text = cut.decode()
    if len(text) <= size:
        return cut, cut
    return (prefix_end(text[:size].encode(), text=True) or ABOVE_TEXT,) * 2


def is_utf8(raw: bytes) -> bool:
    """Whether the bytes are text."""
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def prefix_end(prefix: bytes, *, text: bool) -> bytes | None:
    r"""The least key above all that begin with prefix; None if there is none.

    >>> prefix_end(b"ab", text=True), prefix_end(b"\xff", text=False)
    (b'ac', None)
    """
    if not text:
        stripped = prefix.rstrip(b"\xff")
        return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else None
    points = [ord(char) for char in prefix.decode()]
    while points and points[-1] == LAST_CODE_POINT:
        points.pop()
    if not points:
        return None
    points[-1] = SURROGATES.stop if points[-1] + 1 in SURROGATES else points[-1] + 1
    return "".join(map(chr, points)).encode()
