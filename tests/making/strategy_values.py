"""Random columns, values and rows, leaning on the corners where pruning goes wrong.

A column is a path and an Arrow type; a row is a dict of Python values, as oracle.py reads them: timestamps and
times are datetime and time objects, except in nanoseconds, which Python cannot hold: those are counts since 1970
or midnight.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Final

import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from pyarrow import types as pt

from tests.making.oracle import Path

__all__ = ["TYPES", "Row", "Types", "columns", "decimal_of", "rows", "values"]

Types = dict[Path, pa.DataType]
Row = dict[Path, object]

_UNITS = ("s", "ms", "us", "ns")
TYPES: Final[tuple[pa.DataType, ...]] = (
    pa.bool_(),
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.decimal128(5, 2),
    pa.decimal128(18, 0),
    pa.decimal128(20, 10),
    pa.decimal128(38, 0),
    pa.decimal128(38, 18),
    pa.decimal128(38, 38),
    pa.date32(),
    pa.time32("s"),
    pa.time32("ms"),
    pa.time64("us"),
    pa.time64("ns"),
    *(pa.timestamp(unit) for unit in _UNITS),
    *(pa.timestamp(unit, tz="UTC") for unit in _UNITS),
    pa.string(),
    pa.binary(),
    pa.binary(4),
    pa.uuid(),
)
"""Every primitive type of the three formats."""

_PATHS: Final[tuple[Path, ...]] = (("a",), ("b",), ("c d",), ("s", "x"), ("s", "y"), ("s", "t", "z"))

_STRINGS = (
    "", "\x00", "a", "a\x00", "ab", "abc", "abd", "abcdefghijklmnop", "abcdefghijklmnoq", "b", "A", "é", "z",
    "\ud7ff", "\ue000", "\uffff", "\uffff\uffff", "😀", "😀a", "😀ab", "😀😀", "\U0010ffff", "\U0010ffffa",
    "a%b", "a_b", "a\\b", "'", "10", "9", " 1 ", "true", "2024-01-15", "1969-12-31 23:59:59",
)  # fmt: skip
_BINARIES = (b"", b"\x00", b"\x00\x00", b"a", b"ab", b"abc", b"abd", b"\x7f", b"\x80", b"\xff", b"\xff\xff", b"\xffa")
_MOMENTS = tuple(
    datetime.fromisoformat(text)
    for text in (
        "0001-01-02 00:00:00",
        "1900-01-01 00:00:00",
        "1969-12-31 10:00:00",
        "1969-12-31 23:59:59.999999",
        "1970-01-01 00:00:00",
        "1970-01-01 00:00:00.000001",
        "2000-02-29 12:34:56.789012",
        "2006-10-29 02:30:30",  # St John's repeats the last hour of the day before, after midnight
        "2006-10-29 02:31:30",
        "2024-01-15 00:00:00",
        "2024-01-15 23:59:59.999999",
        "2024-03-31 00:59:59.999999",  # Paris has no 02:00 to 03:00 that night
        "2024-03-31 01:00:00",
        "2024-03-31 02:30:00",
        "2024-10-27 00:30:00",  # and two of them that night
        "2024-10-27 01:30:00",
        "2024-12-31 23:30:00",
        "2038-01-19 03:14:08",
        "9999-12-30 23:59:59.999999",
    )
)
_EPOCH = datetime(1970, 1, 1)
_CHANGES = tuple(
    map(
        datetime.fromisoformat,
        (
            "2024-03-31 01:00:00",  # of clocks, in UTC and by the wall: Paris
            "2024-03-31 02:00:00",
            "2024-10-27 01:00:00",
            "2024-10-27 02:00:00",
            "2006-10-29 02:31:00",  # St John's
            "2006-10-29 00:01:00",
            "2006-04-02 03:31:00",
            "2006-04-02 00:01:00",
        ),
    )
)
_STEPS = tuple(
    timedelta(minutes=minutes, microseconds=micros)
    for minutes in (-180, -90, -61, -60, -59, -30, -1, 0, 1, 15, 30, 59, 60, 61, 90, 180)
    for micros in (-1, 0, 1)
)


# -- columns and values ---------------------------------------------------------------------------------------


@st.composite
def columns(draw: DrawFn, choices: Sequence[pa.DataType] = TYPES, *, most: int = 4) -> Types:
    """One to four columns, some of them fields of a struct."""
    paths = draw(st.lists(st.sampled_from(_PATHS), min_size=1, max_size=most, unique=True))
    return {path: draw(st.sampled_from(choices)) for path in paths}


def values(type_: pa.DataType) -> SearchStrategy[object]:
    """Values of a type, never NULL: mostly corners and close neighbours, so that comparisons are near misses."""
    if pt.is_boolean(type_):
        return st.booleans()
    if pt.is_integer(type_):
        return _integers(type_.bit_width)
    if pt.is_floating(type_):
        return _floats(type_.bit_width)
    if pt.is_decimal(type_):
        return _decimals(type_.precision, type_.scale)
    if pt.is_date(type_):
        return st.one_of(
            st.sampled_from([moment.date() for moment in _MOMENTS]),
            st.dates(date(2023, 12, 30), date(2024, 4, 2)),
            st.dates(),
        )
    if pt.is_time(type_):
        return _times(type_.unit)
    if pt.is_timestamp(type_):
        return _timestamps(type_.unit, zoned=type_.tz is not None)
    if pt.is_string(type_) or pt.is_large_string(type_):
        return st.one_of(
            st.sampled_from(_STRINGS),
            st.text("ab\x00é😀", max_size=4),
            st.text(st.characters(exclude_categories=("Cs",)), max_size=6),
        )
    return _bytes(type_)


def _integers(bits: int) -> SearchStrategy[object]:
    least, most = -(1 << bits - 1), (1 << bits - 1) - 1
    corners = [least, least + 1, -1, 0, 1, most - 1, most]
    if bits == 64:
        corners += [sign * (2**53 + step) for sign in (-1, 1) for step in (-1, 0, 1)]
    return st.one_of(st.sampled_from(corners), st.integers(-12, 12), st.integers(least, most))


def _floats(bits: int) -> SearchStrategy[object]:
    greatest = 3.4028234663852886e38 if bits == 32 else 1.7976931348623157e308
    least = 1.401298464324817e-45 if bits == 32 else 5e-324
    tenth = 0.10000000149011612 if bits == 32 else 0.1
    corners = [0.0, -0.0, 1.0, -1.0, tenth, greatest, -greatest, least, -least, 2.0**24, 2.0**53]
    specials = [float("nan"), float("inf"), float("-inf"), 0.0, -0.0]
    return st.one_of(
        st.sampled_from(specials),
        st.sampled_from(corners),
        st.integers(-12, 12).map(lambda n: n / 2),
        st.floats(width=bits),  # type: ignore[arg-type] # 32 or 64
    )


def decimal_of(unscaled: int, scale: int) -> Decimal:
    """Exact for any number of digits: Decimal's own arithmetic would round to the context's 28."""
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))


def _decimals(precision: int, scale: int) -> SearchStrategy[object]:
    most, one = 10**precision - 1, 10**scale
    corners = {0, 1, -1, most, -most, most - 1, one, -one, one // 2, one - 1, most // 2}
    inside = sorted(n for n in corners if abs(n) <= most)
    near = min(12 * one, most)
    return st.one_of(
        st.sampled_from(inside), st.integers(-near, near), st.integers(-most, most), st.integers(-2, 2)
    ).map(lambda unscaled: decimal_of(unscaled, scale))


def _times(unit: str) -> SearchStrategy[object]:
    if unit == "ns":
        most = 86_400 * 10**9 - 1
        return st.one_of(st.sampled_from([0, 1, 999, 1000, most]), st.integers(0, most))
    corners = [time(0), time(0, 0, 1), time(12), time(12, 0, 0, 1000), time(23, 59, 59, 999999)]
    return st.one_of(st.sampled_from(corners), st.times()).map(lambda t: t.replace(microsecond=_cut(t, unit)))


def _timestamps(unit: str, *, zoned: bool) -> SearchStrategy[object]:
    moments = st.one_of(
        st.sampled_from(_MOMENTS),
        st.datetimes(datetime(2024, 1, 14), datetime(2024, 1, 17)),
        st.builds(datetime.__add__, st.sampled_from(_CHANGES), st.sampled_from(_STEPS)),
        st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)),
    )
    if unit == "ns":
        inside = moments.filter(lambda m: 1678 <= m.year <= 2261).map(_nanoseconds)
        return st.one_of(inside, st.builds(lambda n, step: n + step, inside, st.sampled_from([-1, 1, 999])))
    zone = UTC if zoned else None
    return moments.map(lambda m: m.replace(microsecond=_cut(m, unit), tzinfo=zone))


def _cut(moment: datetime | time, unit: str) -> int:
    return moment.microsecond // {"s": 10**6, "ms": 1_000, "us": 1}[unit] * {"s": 10**6, "ms": 1_000, "us": 1}[unit]


def _nanoseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1_000


def _bytes(type_: pa.DataType) -> SearchStrategy[object]:
    if type_ == pa.uuid():
        corners = [0, 1, 1 << 127, (1 << 128) - 1, (1 << 127) - 1]
        return st.one_of(st.sampled_from(corners), st.integers(0, (1 << 128) - 1)).map(lambda n: uuid.UUID(int=n))
    if pt.is_fixed_size_binary(type_):
        width = type_.byte_width
        corners_ = [b"\x00" * width, b"\xff" * width, b"a" * width, b"a" * (width - 1) + b"b"]
        return st.one_of(st.sampled_from(corners_), st.binary(min_size=width, max_size=width))
    return st.one_of(st.sampled_from(_BINARIES), st.binary(max_size=5))


@st.composite
def rows(draw: DrawFn, types: Types, *, least: int = 0, most: int = 6) -> tuple[Row, ...]:
    """A file's rows: NULLs are common, and a null struct is NULL in all its fields at once."""
    alike = {path: draw(st.lists(values(type_), min_size=1, max_size=4)) for path, type_ in types.items()}
    nulls = draw(st.sampled_from([0, 1, 3]))  # of 4 values
    found: list[Row] = []
    for _ in range(draw(st.integers(least, most))):
        row = {
            path: None if draw(st.integers(0, 3)) < nulls and draw(st.booleans()) else draw(st.sampled_from(known))
            for path, known in alike.items()
        }
        if draw(st.integers(0, 7)) == 0:
            row = {path: None if len(path) > 1 else value for path, value in row.items()}
        found.append(row)
    return tuple(found)
