"""Values that Delta writes as text, decoded for a whole column at once: dates, timestamps, numbers.

Law: a text is decoded exactly, or not at all. What no writer is known to write is null, and the caller says so; no
part of a text is ignored, rounded or guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy import typing as npt

from tamis.predicate.arrays import Int64s, Mask
from tamis.predicate.keys import INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN
from tamis.predicate.units import DAY, SECOND

__all__ = ["HIVE_NULL", "Moments", "cast_texts", "dates", "moments"]

Bytes = npt.NDArray[np.uint8]

HIVE_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
"""What folders say for NULL. In a log Spark takes it for text, which is no number and no date."""
_DATE: Final = 10
"""Characters of `2024-01-15`."""
_SECONDS: Final = 19
"""Characters of `2024-01-15T10:20:30`."""
_BLOCK: Final = 1 << 15
"""Texts that are read at a time: few enough to stay in a processor's cache."""
_MOST_DIGITS: Final = 9
_MICRO_DIGITS: Final = 6
_GREATEST_OFFSET: Final = 18 * 3600
"""Seconds. Java has no zone that is further from UTC."""
_ODD: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<year>\d{4,7})-(?P<month>\d{1,2})-(?P<day>\d{1,2})"
    r"(?:[T ](?P<hour>\d{1,2}):(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?P<fraction>\.\d{1,9})?)?"
    r"(?: ?(?:(?P<utc>Z|UTC|GMT)|(?P<east>[+-])(?P<hours>\d{1,2})(?P<rest>(?::\d\d){0,2})))?)?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Moments:
    """Points in time, an entry for each text: microseconds of the wall clock, and how far that is from UTC."""

    wall: Int64s
    offset: Int64s
    """Microseconds east of UTC; 0 where the text has no zone."""
    valid: Mask
    """False where there is no text, or none of a date or timestamp."""
    zoned: Mask
    """Whether the text says its zone."""
    dated: Mask
    """Whether the text is a date alone."""

    @property
    def instant(self) -> Int64s:
        """In UTC, if the text says its zone."""
        return np.asarray(self.wall - self.offset)


def moments(texts: pa.Array) -> Moments:
    """ISO 8601 as Delta's writers have it: a date, or a date and a time with `T` or a blank, with or without a zone.

    Fractions have up to six digits; of more, the others must be zero. Years beyond four digits have a sign.
    """
    count = len(texts)
    wall, offset = np.zeros(count, np.int64), np.zeros(count, np.int64)
    valid, zoned, dated = (np.zeros(count, np.bool_) for _ in range(3))
    found = Moments(wall, offset, valid, zoned, dated)
    begins, sizes, data = _pieces(texts)
    for size in np.unique(sizes[sizes >= 0]).tolist():
        rows = np.flatnonzero(sizes == size)
        if _DATE <= size < _SECONDS + 1 + _MOST_DIGITS + len("+00:00:00") + 1:
            for start in range(0, len(rows), _BLOCK):
                block = rows[start : start + _BLOCK]
                _read_block(found, block, _matrix(data, begins[block], size))
        _read_odd(found, rows[~found.valid[rows]], texts)
    return found


def dates(texts: pa.Array) -> pa.Array:
    """Dates; null where there is no text, or where it is none of a date alone."""
    found = moments(texts)
    days = found.wall // DAY
    ok = found.valid & found.dated & (days >= INT32_MIN) & (days <= INT32_MAX)
    return pa.array(np.where(ok, days, 0).astype(np.int32), mask=~ok).view(pa.date32())


def cast_texts(texts: pa.Array, type_: pa.DataType) -> pa.Array:
    """Numbers of a type as Arrow reads them, exactly; null where there is no text, or where it is none of those."""
    if pa.types.is_integer(type_):  # Arrow takes hexadecimal digits, which no engine does
        texts = pc.if_else(pc.match_substring(texts, "x", ignore_case=True), pa.scalar(None, texts.type), texts)
    try:
        return texts.cast(type_)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        pass
    # Only now value by value: what a healthy table never needs.
    read: Callable[[pa.Scalar], pa.Scalar | None] = lambda value: _cast(value, type_)  # noqa: E731 - one use
    return pa.array([None if (one := read(value)) is None else one.as_py() for value in texts], type_)


def _cast(value: pa.Scalar, type_: pa.DataType) -> pa.Scalar | None:
    try:
        return value.cast(type_)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def _pieces(texts: pa.Array) -> tuple[Int64s, Int64s, Bytes]:
    """Where each text begins, how many bytes it has (-1 if it is null), and all the bytes."""
    texts = texts.cast(pa.large_string())
    _, offset_buffer, data_buffer = texts.buffers()
    count = len(texts)
    if not count:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.uint8)
    offsets = np.frombuffer(offset_buffer, np.int64)[texts.offset : texts.offset + count + 1]
    sizes = np.diff(offsets)
    if texts.null_count:
        sizes = np.where(texts.is_valid().to_numpy(zero_copy_only=False), sizes, -1)
    data = np.frombuffer(data_buffer if data_buffer is not None else b"", np.uint8)
    return offsets[:-1], sizes, data


def _matrix(data: Bytes, begins: Int64s, size: int) -> Bytes:
    """Texts of one length as rows of bytes; without a copy where each begins at the end of the one before."""
    first = int(begins[0])
    if int(begins[-1]) - first == (len(begins) - 1) * size and bool((np.diff(begins) == size).all()):
        return data[first : first + len(begins) * size].reshape(len(begins), size)
    taken: Bytes = data[begins[:, None] + np.arange(size)]
    return taken


def _read_block(found: Moments, rows: Int64s, text: Bytes) -> None:
    """Texts of one length, of which each kind of ending is read by itself."""
    size = text.shape[1]
    if size == _DATE:
        days, ok = _days(text)
        _store(found, rows, days * DAY, ok, dated=True)
        return
    if size < _SECONDS:
        return
    ends = {0: np.ones(len(rows), np.bool_)}
    if size > _SECONDS:
        ends = {1: text[:, -1] == ord("Z")}
        for end in (6, 9):
            if size >= _SECONDS + end:
                sign = (text[:, -end] == ord("+")) | (text[:, -end] == ord("-"))
                ends[end] = sign & (text[:, 3 - end] == ord(":")) & (text[:, -3] == ord(":"))
        ends[0] = ~np.logical_or.reduce(list(ends.values()))
    for end, mask in ends.items():
        if mask.any():
            _read_times(found, rows[mask], text[mask], end)


def _read_times(found: Moments, rows: Int64s, text: Bytes, end: int) -> None:
    days, ok = _days(text)
    hours, minutes, seconds = (_number(text[:, at : at + 2]) for at in (11, 14, 17))
    ok &= (text[:, 10] == ord("T")) | (text[:, 10] == ord(" "))
    ok &= (text[:, 13] == ord(":")) & (text[:, 16] == ord(":"))
    for part, most in ((hours, 24), (minutes, 60), (seconds, 60)):
        ok &= (part >= 0) & (part < most)
    fraction = text[:, _SECONDS : text.shape[1] - end]
    micros = np.zeros(len(rows), np.int64)
    if digits := fraction.shape[1]:
        ok &= (fraction[:, 0] == ord(".")) & (1 < digits <= _MOST_DIGITS + 1)
        whole = _number(fraction[:, 1 : _MICRO_DIGITS + 1])
        rest = _number(fraction[:, _MICRO_DIGITS + 1 :])
        ok &= (whole >= 0) & (rest == 0)
        micros = whole * 10 ** max(0, _MICRO_DIGITS + 1 - digits)
    offset = np.zeros(len(rows), np.int64)
    if end > 1:
        away = np.zeros(len(rows), np.int64)
        for place, unit in zip(range(1 - end, 0, 3), (3600, 60, 1), strict=False):
            part = _number(text[:, place : place + 2 or None])
            ok &= (part >= 0) & (part < 60)  # noqa: PLR2004 - minutes and seconds; hours are fewer still
            away = away + part * unit
        ok &= away <= _GREATEST_OFFSET
        offset = np.where(text[:, -end] == ord("-"), -away, away) * SECOND
    wall = days * DAY + ((hours * 60 + minutes) * 60 + seconds) * SECOND + micros
    _store(found, rows, wall, ok, offset=offset, zoned=end > 0)


def _store(
    found: Moments,
    rows: Int64s,
    wall: Int64s,
    ok: Mask,
    *,
    offset: Int64s | int = 0,
    zoned: bool = False,
    dated: bool = False,
) -> None:
    found.wall[rows] = np.where(ok, wall, 0)
    found.offset[rows] = np.where(ok, offset, 0)
    found.valid[rows] = ok
    found.zoned[rows] = ok & zoned
    found.dated[rows] = ok & dated


def _days(text: Bytes) -> tuple[Int64s, Mask]:
    """Days since 1970 of `yyyy-MM-dd` at the beginning of each text, and where that is a day of the calendar."""
    year, month, day = _number(text[:, :4]), _number(text[:, 5:7]), _number(text[:, 8:10])
    ok = (text[:, 4] == ord("-")) & (text[:, 7] == ord("-")) & (year >= 0)
    return _calendar(year, month, day, ok)


def _calendar(year: Int64s, month: Int64s, day: Int64s, ok: Mask) -> tuple[Int64s, Mask]:
    ok = ok & (month >= 1) & (month <= 12) & (day >= 1)  # noqa: PLR2004 - months
    months = np.where(ok, (year - 1970) * 12 + month - 1, 0)
    first = months.astype("M8[M]").astype("M8[D]").astype(np.int64)
    after = (months + 1).astype("M8[M]").astype("M8[D]").astype(np.int64)
    days = first + np.where(ok, day - 1, 0)
    return days, np.asarray(ok & (days < after))


def _number(digits: Bytes) -> Int64s:
    """Each row's digits as a number, 0 of none; -1 where something else is among them."""
    values = digits.astype(np.int64) - ord("0")
    number = np.zeros(len(digits), np.int64)
    for place in range(values.shape[1]):
        number = number * 10 + values[:, place]
    return np.where(((values < 0) | (values > 9)).any(axis=1), -1, number)  # noqa: PLR2004 - digits


def _read_odd(found: Moments, rows: Int64s, texts: pa.Array) -> None:
    """What is spelt in another way that every engine reads, one by one: a table has none, or very few.

    Years with a sign, or of more than four digits; parts of one digit; no seconds; UTC by its name.
    """
    for row in rows.tolist():
        read = _ODD.fullmatch(texts[row].as_py())
        if read is None:
            continue
        year = int(read["year"]) * (-1 if read["sign"] == "-" else 1)
        # A year of four digits with the same calendar: 400 years are 146,097 days.
        cycles, stand_in = divmod(year - 2000, 400)
        plain = _plain(read, stand_in + 2000)
        if plain == texts[row].as_py():
            continue  # it was read, and is none
        inner = moments(pa.array([plain]))
        wall = int(inner.wall[0]) + cycles * 146_097 * DAY
        if inner.valid[0] and INT64_MIN // 2 < wall < INT64_MAX // 2:
            one = np.array([row])
            _store(
                found,
                one,
                np.array([wall]),
                np.array([True]),
                offset=int(inner.offset[0]),
                zoned=bool(inner.zoned[0]),
                dated=bool(inner.dated[0]),
            )


def _plain(read: re.Match[str], year: int) -> str:
    """The same with two digits for each part, all of a time, and a plain zone."""
    found = f"{year:04d}-{read['month']:0>2}-{read['day']:0>2}"
    if read["hour"] is None:
        return found
    found += f"T{read['hour']:0>2}:{read['minute']:0>2}:{read['second'] or '':0>2}{read['fraction'] or ''}"
    if read["utc"]:
        return f"{found}Z"
    return found if read["east"] is None else f"{found}{read['east']}{read['hours']:0>2}{read['rest'] or ':00'}"
