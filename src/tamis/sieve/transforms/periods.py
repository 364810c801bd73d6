"""Years, months, days and hours since 1970 in UTC: the ordinal of a value, and the period of an ordinal.

Law: a period holds every value that any writer may have given its ordinal. Two writers' habits widen it:

- Java up to 0.10 rounded towards zero, so that ordinals below 1970 came out one too high: 0 holds what belongs to -1
  as well. For ordinals up to 0 the period starts one earlier. Only day(date) never had to be rounded.
- Ordinals are 32 bits, and hour() of a far timestamp wraps. An ordinal that may be a wrapped one is not trusted.
"""

from __future__ import annotations

from typing import Final, Literal

import numpy as np
import pyarrow as pa
from pyarrow import types as pt

from tamis.predicate.arrays import Int64s, Mask
from tamis.predicate.keys import INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN
from tamis.predicate.units import DAY_SECONDS, PER_SECOND
from tamis.sieve.domain import Range
from tamis.sieve.order import KeyArray, mask_of
from tamis.sieve.transforms.partition_values import Problem, distrust, integers, problems

__all__ = ["Period", "has_periods", "ordinals", "period_range"]

Period = Literal["year", "month", "day", "hour"]

_SECONDS: Final = {"day": DAY_SECONDS, "hour": 3_600}


def has_periods(period: Period, source: pa.DataType) -> bool:
    """Whether Iceberg applies year, month, day or hour to this type."""
    return bool(pt.is_timestamp(source) or (pt.is_date32(source) and period != "hour"))


def ordinals(period: Period, values: pa.Array) -> pa.Array:
    """How many periods after 1970 each value lies, rounded down: int32, and date32 for day, as Iceberg types them.

    An hour beyond 32 bits wraps as it does in Java.
    """
    if not has_periods(period, values.type):
        raise ValueError(
            f"{period}() does not take {values.type}: it needs a timestamp, or a date for year, month and day"
        )
    null = ~mask_of(values.is_valid())
    width = pa.int32() if pt.is_date32(values.type) else pa.int64()
    keys = values.view(width).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    found = _ordinals(period, values.type, keys).astype(np.int32)
    return pa.array(found, pa.int32(), mask=null).view(pa.date32() if period == "day" else pa.int32())


def _ordinals(period: Period, source: pa.DataType, keys: Int64s) -> Int64s:
    if pt.is_timestamp(source):
        keys = keys // (PER_SECOND[source.unit] * _SECONDS["hour" if period == "hour" else "day"])
    if period in _SECONDS:
        return keys
    return keys.astype("M8[D]").astype(f"M8[{period[0].upper()}]").astype(np.int64)


def period_range(
    period: Period, source: pa.DataType, lower: pa.Array, upper: pa.Array
) -> tuple[Range | None, tuple[Problem, ...]]:
    """The values whose ordinals lie between lower and upper, clipped to the type; None if these are no ordinals."""
    low, high = integers(lower), integers(upper)
    if low is None or high is None:
        return None, (
            Problem(np.ones(len(lower), np.bool_), f"{lower.type} is not a type for the values of {period}()"),
        )
    found = problems(
        (_outside(period, source, low) | _outside(period, source, high), f"no {source} has this {period}"),
        (low.above(high), "the lower bound is above the upper bound"),
    )
    low, high = distrust(low, high, found)
    if _wraps(period, source):
        both = low.valid & high.valid  # beyond a lone bound lie the wrapped ones too
        low, high = low.keep(both), high.keep(both)
    exact = period == "day" and pt.is_date32(source)
    first = _within(low) - np.where(exact, 0, low.keys <= 0)
    start = _start(period, source, first)
    # The period is half-open and keys are whole numbers: its last key is the one before the next period.
    end = _start(period, source, _within(high) + 1)
    end = np.where(end == INT64_MAX, INT64_MAX, end - 1)
    least, greatest = (INT32_MIN, INT32_MAX) if pt.is_date32(source) else (INT64_MIN, INT64_MAX)
    lowest, highest = (
        KeyArray(np.clip(keys, least, greatest), side.valid) for keys, side in ((start, low), (end, high))
    )
    return Range(lowest, highest), found


def _outside(period: Period, source: pa.DataType, side: KeyArray) -> Mask:
    """Ordinals that no value of the type has, or that a value beyond 32 bits may have as well."""
    least, greatest = _ordinals(period, source, _extremes(source)).tolist()
    if _wraps(period, source):
        # o is written as o - 2**32 if it is too great, as o + 2**32 if too small: only what lies between is sure.
        least, greatest = greatest - (1 << 32) + 1, least + (1 << 32) - 1
    return np.asarray(side.valid & ((side.keys < least) | (side.keys > greatest)))


def _wraps(period: Period, source: pa.DataType) -> bool:
    """Whether some value's ordinal takes more than 32 bits: hours of microseconds, and of nothing else."""
    return bool(np.abs(_ordinals(period, source, _extremes(source))).max() > INT32_MAX + 1)


def _extremes(source: pa.DataType) -> Int64s:
    """The least and the greatest key; seconds and milliseconds are stored as microseconds and reach no further."""
    if pt.is_date32(source):
        return np.array([INT32_MIN, INT32_MAX], np.int64)
    scale = max(1, PER_SECOND["us"] // PER_SECOND[source.unit])
    return np.array([INT64_MIN, INT64_MAX], np.int64) // scale


def _within(side: KeyArray) -> Int64s:
    """Ordinals to calculate with: what is not valid may be any number, and becomes 0."""
    return np.where(side.valid, side.keys, 0)


def _start(period: Period, source: pa.DataType, numbers: Int64s) -> Int64s:
    """The first key of each period, or the least or greatest 64-bit number where that is beyond them."""
    if period not in _SECONDS:
        numbers = numbers.astype(f"M8[{period[0].upper()}]").astype("M8[D]").astype(np.int64)
    if pt.is_date32(source):
        return numbers
    unit = PER_SECOND[source.unit] * _SECONDS["hour" if period == "hour" else "day"]
    most = INT64_MAX // unit
    starts = np.clip(numbers, -most, most) * unit
    return np.where(numbers > most, INT64_MAX, np.where(numbers < -most, INT64_MIN, starts))
