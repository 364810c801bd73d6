"""How Spark 4.1 (ANSI on) turns one value into another type: the oracle's arithmetic.

Written slowly on purpose: Fractions, Python's calendar, the zone database. Nothing of tamis is used, so that a
mistake there is not repeated here. tests/spark/test_oracle_is_spark.py holds it against the real Spark.

Values, by kind: ints and booleans as they are; floats as float (a float32 is rounded to one); decimals as Fraction;
dates as days since 1970; times, and timestamps of either sort, as nanoseconds (of the wall clock without a zone,
of the instant with one); text as str; bytes as bytes.
"""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tests.making.zone_versions import current

MICRO = 1_000
SECOND = 1_000_000_000
DAY = 86_400 * SECOND
_EPOCH = datetime(1970, 1, 1)
_CYCLE = 146_097 * 86_400  # seconds in 400 Gregorian years: whole weeks, so every zone's rules repeat
LONG_MIN, LONG_MAX = -(1 << 63), (1 << 63) - 1


class CastError(ValueError):
    """Spark would stop the query here: the text, or the number, does not fit the type."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A Spark type: null boolean byte short int long float double decimal date time ntz ltz string binary."""

    name: str
    precision: int = 0
    scale: int = 0


NULL, BOOLEAN, BYTE, SHORT, INT, LONG = map(Kind, ("null", "boolean", "byte", "short", "int", "long"))
FLOAT, DOUBLE, DATE, TIME, NTZ, LTZ = map(Kind, ("float", "double", "date", "time", "ntz", "ltz"))
STRING, BINARY = Kind("string"), Kind("binary")
INTEGRALS = (BYTE, SHORT, INT, LONG)


# -- the calendar ---------------------------------------------------------------------------------------------


def day_number(year: int, month: int, day: int) -> int:
    """Days since 1970 in the proleptic Gregorian calendar; CastError for a day that does not exist."""
    shift = 0
    while year < 1:
        year, shift = year + 400, shift - 146_097
    while year > 9999:
        year, shift = year - 400, shift + 146_097
    try:
        return (date(year, month, day) - date(1970, 1, 1)).days + shift
    except ValueError as error:
        raise CastError(str(error)) from error


def civil(days: int) -> tuple[int, int]:
    """The year and the month of a day."""
    years = 0
    while days < -719_162:  # 0001-01-01
        days, years = days + 146_097, years - 400
    while days > 2_932_896:  # 9999-12-31
        days, years = days - 146_097, years + 400
    found = date(1970, 1, 1) + timedelta(days=days)
    return found.year + years, found.month


def trunc_days(days: int, unit: str) -> int | None:
    """The first day of the year, quarter, month or week; None for a unit that Spark does not know here."""
    year, month = civil(days)
    match unit.upper():
        case "YEAR" | "YYYY" | "YY":
            return day_number(year, 1, 1)
        case "QUARTER":
            return day_number(year, (month - 1) // 3 * 3 + 1, 1)
        case "MONTH" | "MON" | "MM":
            return day_number(year, month, 1)
        case "WEEK":
            return days - (days + 3) % 7  # 1970-01-01 was a Thursday; weeks begin on Monday
    return None


# -- zones ----------------------------------------------------------------------------------------------------


def _shown(seconds: int) -> datetime:
    """The same second of a 400-year cycle that Python's datetime can hold with room for any offset."""
    while seconds < -62_104_060_800:  # 0002-01-01
        seconds += _CYCLE
    while seconds > 253_339_228_800:  # 9998-01-01
        seconds -= _CYCLE
    return _EPOCH + timedelta(seconds=seconds)


@cache
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


def offset_at(instant: int, zone: str) -> int:
    """Seconds that the zone's clocks are ahead of UTC at an instant (ns)."""
    seconds = max(instant // SECOND, -62_104_060_800)  # before that no zone changed its clocks
    version = current(zone)
    if version is not None:
        return version.offset(seconds)
    aware = _shown(seconds).replace(tzinfo=UTC).astimezone(_zone(zone))
    return _seconds(aware.utcoffset())


def _offsets_of(local: int, zone: str) -> tuple[int, int]:
    """The offsets that a wall clock's reading may have: before and after a change, equal where there is none."""
    seconds = max(local // SECOND, -62_104_060_800)
    version = current(zone)
    if version is not None:
        return version.on_wall(seconds)
    shown = _shown(seconds).replace(tzinfo=_zone(zone))
    return _seconds(shown.utcoffset()), _seconds(shown.replace(fold=1).utcoffset())


def _seconds(offset: timedelta | None) -> int:
    assert offset is not None
    return offset.days * 86_400 + offset.seconds


def to_local(instant: int, zone: str) -> int:
    return instant + offset_at(instant, zone) * SECOND


def to_instant(local: int, zone: str) -> int:
    """In a gap the reading moves on by the gap's length; of a repeated reading the first one is meant."""
    return local - _offsets_of(local, zone)[0] * SECOND


def start_of_day(days: int, zone: str) -> int:
    """The first instant of a day. If midnight is in a gap, that is where the gap ends."""
    local = days * DAY
    before, after = _offsets_of(local, zone)
    if after <= before:
        return local - before * SECOND
    low, high = local // SECOND - after, local // SECOND - before  # the change lies in (low, high]
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if offset_at(middle * SECOND, zone) == after else (middle, high)
    return high * SECOND


def trunc_instant(instant: int, unit: str, zone: str) -> int | None:
    """date_trunc: clocks are cut in the zone, below a second without it. None for an unknown unit."""
    match unit.upper():
        case "MICROSECOND":
            return instant // MICRO * MICRO
        case "MILLISECOND":
            return instant // 1_000_000 * 1_000_000
        case "SECOND":
            return instant // SECOND * SECOND
        case "MINUTE":
            return _cut(instant, 60 * SECOND, zone)
        case "HOUR":
            return _cut(instant, 3_600 * SECOND, zone)
        case "DAY" | "DD":
            return _cut(instant, DAY, zone)
    day = trunc_days(to_local(instant, zone) // DAY, unit)
    return None if day is None else start_of_day(day, zone)


def _cut(instant: int, width: int, zone: str) -> int:
    """The cut reading keeps the offset it had wherever that offset is possible, as Java's ZonedDateTime does."""
    offset = offset_at(instant, zone)
    local = (instant + offset * SECOND) // width * width
    before, after = _offsets_of(local, zone)
    kept = offset if after < before and offset in (before, after) else before
    return local - kept * SECOND


# -- text -----------------------------------------------------------------------------------------------------

_CONTROL = "".join(map(chr, [*range(0x21), *range(0x7F, 0xA0)]))
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_DATE = re.compile(r"([+-]?)(\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?", re.ASCII | re.DOTALL)
_CLOCK = r"(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?)?"
_TIMESTAMP = re.compile(
    rf"([+-]?)(\d{{4,6}})(?:-(\d{{1,2}})(?:-(\d{{1,2}})(?:[ T]{_CLOCK}(?: *([A-Za-z+-].*))?)?)?)?", re.ASCII
)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?(?:([+-])(\d{1,2})(?::?(\d{2}))?)?", re.ASCII)
_TRUE, _FALSE = ("t", "true", "y", "yes", "1"), ("f", "false", "n", "no", "0")


def _cannot(text: str, kind: str) -> CastError:
    return CastError(f"{text!r} is no {kind}")


def text_to_boolean(text: str) -> bool:
    word = text.strip(_CONTROL).lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise _cannot(text, "boolean")


def text_to_int(text: str, low: int, high: int) -> int:
    """No decimal point, no exponent: '1.0' is an error even for a long."""
    word = text.strip(_CONTROL)
    if not re.fullmatch(r"[+-]?\d+", word, re.ASCII) or not low <= int(word) <= high:
        raise _cannot(text, "integer")
    return int(word)


def text_to_double(text: str) -> float:
    word = text.strip("".join(map(chr, range(0x21))))
    if word.lower() in ("inf", "+inf", "infinity", "+infinity"):
        return math.inf
    if word.lower() in ("-inf", "-infinity"):
        return -math.inf
    if word.lower() == "nan" or word in ("+NaN", "-NaN"):
        return math.nan
    if word[-1:] in ("d", "D", "f", "F"):
        word = word[:-1]  # Java's suffixes: '1.5f' is read as a double all the same
    if not _NUMBER.fullmatch(word):
        raise _cannot(text, "number")
    return float(word)


def text_to_fraction(text: str) -> Fraction:
    word = text.strip(_CONTROL)
    try:
        if not _NUMBER.fullmatch(word):
            raise _cannot(text, "decimal")
        return Fraction(Decimal(word))
    except InvalidOperation as error:
        raise _cannot(text, "decimal") from error


def text_to_days(text: str) -> int:
    """Whatever follows the day after a blank or a T is ignored, a zone too."""
    found = _DATE.fullmatch(text.strip(_CONTROL))
    if not found:
        raise _cannot(text, "date")
    sign, year, month, day = found.groups()
    return day_number(int(sign + year), int(month or 1), int(day or 1))


def text_to_local(text: str) -> tuple[int, str | None]:
    """The wall clock's reading, digits below a microsecond cut off, and the zone if the text names one."""
    found = _TIMESTAMP.fullmatch(text.strip(_CONTROL))
    if not found:
        raise _cannot(text, "timestamp")
    sign, year, month, day, hour, minute, second, fraction, zone = found.groups()
    clock = _clock_ns(hour, minute, second, fraction)
    if clock is None or (zone is not None and (minute is None or _fixed_offset(zone) is None)):
        raise _cannot(text, "timestamp")
    return day_number(int(sign + year), int(month or 1), int(day or 1)) * DAY + clock, zone


def text_to_time(text: str) -> int:
    found = re.fullmatch(_CLOCK, text.strip(_CONTROL), re.ASCII)
    clock = _clock_ns(*found.groups()) if found and found[2] else None
    if clock is None:
        raise _cannot(text, "time")
    return clock


def _clock_ns(hour: str | None, minute: str | None, second: str | None, fraction: str | None) -> int | None:
    h, m, s = int(hour or 0), int(minute or 0), int(second or 0)
    if h > 23 or m > 59 or s > 59:
        return None
    return (h * 3_600 + m * 60 + s) * SECOND + int((fraction or "").ljust(6, "0")[:6]) * MICRO


def text_to_instant(text: str, zone: str) -> int:
    local, named = text_to_local(text)
    if named is None:
        return to_instant(local, zone)
    seconds = _fixed_offset(named)
    assert seconds is not None
    return to_instant(local, named) if seconds == _REGION else local - seconds * SECOND


_REGION = 1 << 20  # no offset: the zone's rules tell


def _fixed_offset(zone: str) -> int | None:
    """Seconds ahead of UTC, _REGION for a zone of the database, None for what is no zone."""
    if zone == "Z":
        return 0
    found = _OFFSET.fullmatch(zone)
    if found:
        sign, hours, minutes = found.groups()
        seconds = int(hours or 0) * 3_600 + int(minutes or 0) * 60
        if seconds > 18 * 3_600 or int(minutes or 0) > 59:
            return None
        return -seconds if sign == "-" else seconds
    try:
        _zone(zone)
    except (ValueError, OSError, ZoneInfoNotFoundError):
        return None
    return _REGION


# -- numbers --------------------------------------------------------------------------------------------------


def to_float32(value: float) -> float:
    """The nearest float, widened again."""
    if math.isnan(value) or math.isinf(value):
        return value
    try:
        return float(struct.unpack(">f", struct.pack(">f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def to_double(value: float | Fraction) -> float:
    """The nearest double, halves to even; Python rounds ints and Fractions so."""
    return value.numerator / value.denominator if isinstance(value, Fraction) else float(value)


def to_scale(value: Fraction, precision: int, scale: int) -> Fraction:
    """Rounded to the scale, halves away from zero; CastError if it has too many digits."""
    scaled = abs(value) * 10**scale
    whole = scaled.numerator // scaled.denominator
    if scaled - whole >= Fraction(1, 2):
        whole += 1
    if whole >= 10**precision:
        raise CastError(f"{value} does not fit decimal({precision},{scale})")
    return Fraction(whole if value >= 0 else -whole, 10**scale)


# -- any kind to any wider kind -------------------------------------------------------------------------------


def cast(value: object, source: Kind, target: Kind, zone: str) -> object:
    """A value of one kind as Spark casts it to the kind that both sides of a comparison share."""
    if value is None or source == target:
        return value
    match source.name, target.name:
        case "string", "boolean":
            return text_to_boolean(_text(value))
        case "string", "long":
            return text_to_int(_text(value), LONG_MIN, LONG_MAX)
        case "string", "double":
            return text_to_double(_text(value))
        case "string", "decimal":
            return to_scale(text_to_fraction(_text(value)), target.precision, target.scale)
        case "string", "date":
            return text_to_days(_text(value))
        case "string", "time":
            return text_to_time(_text(value))
        case "string", "ntz":
            return text_to_local(_text(value))[0]  # a zone in the text is read and forgotten
        case "string", "ltz":
            return text_to_instant(_text(value), zone)
        case "string", "binary":
            return _text(value).encode()
        case (("byte" | "short" | "int" | "long"), ("short" | "int" | "long")):
            return value
        case "boolean", ("byte" | "short" | "int" | "long"):
            assert isinstance(value, bool)
            return int(value)
        case (("byte" | "short" | "int" | "long" | "decimal" | "float"), "double"):
            assert isinstance(value, (int, float, Fraction))
            return to_double(value)
        case (("byte" | "short"), "float"):
            assert isinstance(value, int)
            return to_float32(value)
        case (("byte" | "short" | "int" | "long" | "decimal"), "decimal"):
            assert isinstance(value, (int, Fraction))
            return to_scale(Fraction(value), target.precision, target.scale)
        case "date", "ntz":
            return _number(value) * DAY
        case "date", "ltz":
            return start_of_day(_number(value), zone)
        case "ntz", "ltz":
            return to_instant(_number(value), zone)
        case "ltz", "ntz":
            return to_local(_number(value), zone)
        case "ntz", "date":
            return _number(value) // DAY
        case "ltz", "date":
            return to_local(_number(value), zone) // DAY
    raise TypeError(f"the oracle casts no {source.name} to {target.name}")


def _text(value: object) -> str:
    assert isinstance(value, str)
    return value


def _number(value: object) -> int:
    assert isinstance(value, int)
    return value
