"""Random expressions of constants, each with the value that Spark's rules give it, by another way than tamis's.

The value is None, with FAILS, where Spark stops the query by ANSI rules, or answers otherwise without them: such an
expression must not be computed. tests/spark/test_constants_are_spark.py asks the real Spark the same.
"""

from __future__ import annotations

import calendar
import math
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from tests.making.oracle_casts import (
    DATE,
    DAY,
    FLOAT,
    INT,
    LONG,
    LTZ,
    NTZ,
    SECOND,
    STRING,
    CastError,
    Kind,
    offset_at,
    start_of_day,
    to_float32,
    to_instant,
    to_local,
    to_scale,
    trunc_days,
    trunc_instant,
)

__all__ = ["FAILS", "Constant", "constants"]

FAILS: Final = object()
"""Spark stops, or its answer depends on its settings."""
_EPOCH: Final = date(1970, 1, 1)
_DATES = st.dates(date(1900, 1, 1), date(2099, 12, 31))
_TIMES = st.datetimes(datetime(1990, 1, 1), datetime(2029, 12, 31))
_UNITS = ("year", "YYYY", "quarter", "mon", "MM", "week", "day", "dd", "hour", "minute", "second", "millisecond")
_DOUBLES = st.floats(allow_nan=False, allow_infinity=False, width=64)
_RANGES = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}


@dataclass(frozen=True, slots=True)
class Constant:
    """An expression, and its value and kind as the oracle has them: instants and clocks in nanoseconds."""

    sql: str
    value: object
    kind: Kind


def constants(zone: str) -> SearchStrategy[Constant]:
    """Expressions in a session of that zone."""
    return st.one_of(
        _moved_dates(),
        _moved_instants(zone),
        _dates_made(),
        _truncated(zone),
        _texts(),
        _numbers(),
        _casts_of_doubles(),
        _casts_of_decimals(),
        _coalesced(),
        _casts_of_moments(zone),
    )


def _later(day: date, months: int) -> date:
    years, month = divmod(day.month - 1 + months, 12)
    year = day.year + years
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


@st.composite
def _moved_dates(draw: DrawFn) -> Constant:
    day, count = draw(_DATES), draw(st.integers(-60, 60))
    unit, sign = draw(st.sampled_from(["YEAR", "MONTHS", "WEEK", "DAYS"])), draw(st.sampled_from([1, -1]))
    written = draw(st.sampled_from([f"{count}", f"'{count}'"]))
    steps = count * sign
    months = {"YEAR": 12 * steps, "MONTHS": steps}.get(unit)
    moved = _later(day, months) if months is not None else day + timedelta(steps * (7 if unit == "WEEK" else 1))
    literal = f"date '{day}'"
    sql = f"{literal} {'+' if sign > 0 else '-'} INTERVAL {written} {unit}"
    if months is not None and draw(st.booleans()):
        start = draw(st.sampled_from([literal, f"'{day}'"]))
        sql = f"add_months({start}, {months})"
    return Constant(sql, (moved - _EPOCH).days, DATE)


@st.composite
def _moved_instants(draw: DrawFn, zone: str) -> Constant:
    moment, sign = draw(_TIMES).replace(microsecond=0), draw(st.sampled_from([1, -1]))
    count, unit = draw(st.integers(0, 400)), draw(st.sampled_from(["MONTH", "DAYS", "HOURS", "MINUTES", "SECOND"]))
    ntz = draw(st.booleans())
    local = _nanos(moment)
    nanos = (
        {"DAYS": DAY, "HOURS": 3600 * SECOND, "MINUTES": 60 * SECOND, "SECOND": SECOND}.get(unit, 0) * count * sign
    )
    sql = f"timestamp{'_ntz' if ntz else ''} '{moment}' {'+' if sign > 0 else '-'} INTERVAL {count} {unit}"
    if ntz:
        return Constant(sql, _shifted(local, nanos, count * sign if unit == "MONTH" else 0), NTZ)
    instant = to_instant(local, zone)
    wall = to_local(instant, zone)
    # Java: whole days on the clock, keeping the offset where the reading has two, then the rest in time.
    whole = int(math.copysign(abs(nanos) // DAY * DAY, nanos))
    landed = _shifted(wall, whole, count * sign if unit == "MONTH" else 0)
    kept = landed - offset_at(instant, zone) * SECOND
    later = kept if to_local(kept, zone) == landed else to_instant(landed, zone)
    return Constant(sql, later + nanos - whole, LTZ)


def _nanos(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1)) // timedelta(microseconds=1) * 1000


def _shifted(local: int, nanos: int, months: int) -> int:
    day, clock = divmod(local, DAY)
    moved = _later(_EPOCH + timedelta(day), months)
    return (moved - _EPOCH).days * DAY + clock + nanos


@st.composite
def _dates_made(draw: DrawFn) -> Constant:
    year, month, day = draw(st.integers(1900, 2100)), draw(st.integers(0, 13)), draw(st.integers(0, 32))
    value: object = FAILS
    if 1 <= month <= 12 and 1 <= day <= calendar.monthrange(year, month)[1]:
        value = (date(year, month, day) - _EPOCH).days
    return Constant(f"make_date({year}, {month}, {day})", value, DATE)


@st.composite
def _truncated(draw: DrawFn, zone: str) -> Constant:
    moment, unit = draw(_TIMES), draw(st.sampled_from(_UNITS))
    day, local = (moment.date() - _EPOCH).days, _nanos(moment)
    match draw(st.sampled_from(["trunc", "day", "zoned", "wall", "text"])):
        case "trunc":
            found = trunc_days(day, unit)
            return Constant(f"trunc(date '{moment.date()}', '{unit}')", found, DATE)
        case "day":
            return Constant(
                f"date_trunc('{unit}', date '{moment.date()}')",
                trunc_instant(start_of_day(day, zone), unit, zone),
                LTZ,
            )
        case "zoned":
            return Constant(f"date_trunc('{unit}', timestamp '{moment}Z')", trunc_instant(local, unit, zone), LTZ)
        case "wall":
            sql = f"date_trunc('{unit}', timestamp_ntz '{moment}')"
            return Constant(sql, trunc_instant(to_instant(local, zone), unit, zone), LTZ)
    sql = f"date_trunc('{unit}', '{moment}')"
    return Constant(sql, trunc_instant(to_instant(local, zone), unit, zone), LTZ)


@st.composite
def _texts(draw: DrawFn) -> Constant:
    parts = draw(st.lists(st.text("aBc %é", max_size=4), min_size=1, max_size=4))
    quoted = [f"'{part}'" for part in parts]
    joined = "".join(parts)
    match draw(st.sampled_from(["concat", "pipes", "null", "lower", "number"])):
        case "concat":
            return Constant(f"concat({', '.join(quoted)})", joined, STRING)
        case "pipes":
            return Constant(" || ".join(quoted), joined, STRING)
        case "null":
            return Constant(f"concat({', '.join(quoted)}, NULL)", None, STRING)
        case "number":
            number = draw(st.integers(-(10**12), 10**12))
            return Constant(f"concat({', '.join(quoted)}, {number}, true)", f"{joined}{number}true", STRING)
    return Constant(f"lower('{joined}')", joined.lower(), STRING)


@st.composite
def _numbers(draw: DrawFn) -> Constant:
    bits, kind, suffix = draw(st.sampled_from([(32, INT, ""), (64, LONG, "L")]))
    most = 1 << bits - 1
    value = draw(st.sampled_from([-most + 1, -1, 0, 5, most - 1]) | st.integers(-most + 1, most - 1))
    kind = LONG if suffix or abs(value) >= 1 << 31 else INT
    return Constant(f"abs({value}{suffix})", abs(value), kind)


@st.composite
def _casts_of_doubles(draw: DrawFn) -> Constant:
    value = draw(st.one_of(_DOUBLES, st.floats(-1e6, 1e6), st.integers(-400, 400).map(lambda n: n / 8)))
    written = f"{value!r}D"
    target = draw(st.sampled_from(["float", *_RANGES, "decimal"]))
    if target == "float":
        narrow = to_float32(value)
        return Constant(f"cast({written} AS float)", narrow, FLOAT)
    if target == "decimal":
        try:
            # Java writes the digits first, then rounds: the same, but in the middle between two.
            decimal: object = to_scale(Fraction(Decimal(repr(value))), 20, 2)
        except CastError:
            decimal = FAILS
        return Constant(f"cast({written} AS decimal(20,2))", decimal, Kind("decimal", 20, 2))
    return _whole(written, math.trunc(value), target)


@st.composite
def _casts_of_decimals(draw: DrawFn) -> Constant:
    scale = draw(st.integers(1, 4))
    unscaled = draw(st.integers(-(10**14), 10**14) | st.integers(-40_000, 40_000))
    value = Decimal(unscaled).scaleb(-scale)
    return _whole(f"{value:f}", math.trunc(value), draw(st.sampled_from(sorted(_RANGES))))


def _whole(written: str, value: int, target: str) -> Constant:
    most = 1 << _RANGES[target] - 1
    kind = Kind({"tinyint": "byte", "smallint": "short", "int": "int", "bigint": "long"}[target])
    return Constant(f"cast({written} AS {target})", value if -most <= value < most else FAILS, kind)


@st.composite
def _coalesced(draw: DrawFn) -> Constant:
    items = draw(st.lists(st.none() | st.integers(-5, 5), min_size=1, max_size=3))
    last, long = draw(st.integers(-5, 5)), draw(st.booleans())
    listed = ", ".join("NULL" if item is None else str(item) for item in items)
    first = next((item for item in items if item is not None), last)
    return Constant(f"coalesce({listed}, {last}{'L' if long else ''})", first, LONG if long else INT)


@st.composite
def _casts_of_moments(draw: DrawFn, zone: str) -> Constant:
    moment = draw(_TIMES)
    local, iso = _nanos(moment), str(moment)
    day = (moment.date() - _EPOCH).days
    wall = to_local(local, zone)
    return draw(
        st.sampled_from(
            [
                Constant(f"cast(timestamp '{iso}Z' AS date)", wall // DAY, DATE),
                Constant(f"date(timestamp '{iso}Z')", wall // DAY, DATE),
                Constant(f"to_date(timestamp_ntz '{iso}')", day, DATE),
                Constant(f"cast(timestamp '{iso}Z' AS timestamp_ntz)", wall, NTZ),
                Constant(f"cast(timestamp_ntz '{iso}' AS timestamp)", to_instant(local, zone), LTZ),
                Constant(f"cast(date '{moment.date()}' AS timestamp)", start_of_day(day, zone), LTZ),
                Constant(f"cast(date '{moment.date()}' AS timestamp_ntz)", day * DAY, NTZ),
                Constant(f"cast(date '{moment.date()}' AS string)", str(moment.date()), STRING),
                Constant(f"cast(timestamp '{iso}' AS bigint)", to_instant(local, zone) // SECOND, LONG),
                Constant(f"cast({local // SECOND} AS timestamp)", local // SECOND * SECOND, LTZ),
                Constant(f"date_sub(timestamp '{iso}Z', 7)", wall // DAY - 7, DATE),
            ]
        )
    )
