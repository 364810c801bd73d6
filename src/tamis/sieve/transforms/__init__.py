"""Iceberg's partition transforms: what a value is partitioned to, and which values a partition may hold.

Law: apply(t, v) = p implies that v lies in preimage(t, p), also for what older or careless writers made of v. Where
that cannot be said the preimage is everything. A new transform is one case in apply and one in preimage.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from tamis.predicate.arrays import Mask
from tamis.predicate.keys import NAN_KEY, has_order, key_span
from tamis.sieve.domain import BucketRange, Range, uuid_bounds
from tamis.sieve.order import KeyArray, encode, mask_of
from tamis.sieve.transforms.bucket import ICEBERG, bucket_of_keys, can_hash
from tamis.sieve.transforms.partition_values import (
    Problem,
    distrust,
    encode_or_report,
    fits,
    flat,
    integers,
    problems,
)
from tamis.sieve.transforms.periods import has_periods, ordinals, period_range
from tamis.sieve.transforms.truncation import can_truncate, truncate, truncated_range

__all__ = ["Preimage", "Problem", "Transform", "TransformName", "apply", "parse_transform", "preimage"]

TransformName = Literal["identity", "bucket", "truncate", "year", "month", "day", "hour", "void", "unknown"]

_WITH_WIDTH: Final = re.compile(r"(bucket|truncate)\[([0-9]+)\]", re.IGNORECASE | re.ASCII)
_PLAIN: Final = frozenset(get_args(TransformName)) - {"bucket", "truncate", "unknown"}
_GREATEST_WIDTH: Final = (1 << 31) - 1
"""Java reads a width as an int."""


@dataclass(frozen=True, slots=True)
class Transform:
    """How a partition field derives its value from a column; text is how the metadata spells it."""

    name: TransformName
    width: int | None = None
    text: str = ""
    slack: tuple[int, int] = field(default=(0, 0), repr=False)
    """How far below and above the preimage the source may lie, in its own unit: a clock that is not in UTC."""

    def __str__(self) -> str:
        return self.text or (self.name if self.width is None else f"{self.name}[{self.width}]")


@dataclass(frozen=True, slots=True, eq=False)
class Preimage:
    """What a column may hold in each file, given its partition value or its manifest's bounds.

    Nothing is known of the ordinary values where neither range nor buckets are valid. null_is_null says whether a
    null partition value proves that all its rows are null. Nothing is said of NaN.
    """

    range: Range | None = None
    buckets: BucketRange | None = None
    null_is_null: bool = False
    problems: tuple[Problem, ...] = ()


def parse_transform(text: str) -> Transform:
    """The transform of that name, in any case, as Java reads it; unknown for all else, also a width of 0.

    >>> parse_transform("Bucket[16]")
    Transform(name='bucket', width=16, text='Bucket[16]')
    >>> parse_transform("zorder").name
    'unknown'
    """
    found = _WITH_WIDTH.fullmatch(text)
    if found:
        digits = found[2].lstrip("0")
        if digits and len(digits) <= len(str(_GREATEST_WIDTH)) and int(digits) <= _GREATEST_WIDTH:
            return Transform("bucket" if found[1].lower() == "bucket" else "truncate", int(digits), text)
    name = text.lower()
    return Transform(name if name in _PLAIN else "unknown", None, text)  # type: ignore[arg-type] # one of _PLAIN


def apply(transform: Transform, values: pa.Array) -> pa.Array:
    """The partition values that Iceberg defines, null for null. ValueError if it does not take the type."""
    match transform:
        case Transform(name="identity"):
            return values
        case Transform(name="void"):
            return pa.nulls(len(values), values.type)
        case Transform(name="truncate", width=int(width)):
            return truncate(values, width)
        case Transform(name="bucket", width=int(width)) if can_hash(values.type):
            keys = encode(values, values.type)
            return pa.array(bucket_of_keys(keys.keys, values.type, width), pa.int32(), mask=~keys.valid)
        case Transform(name=("year" | "month" | "day" | "hour") as period):
            return ordinals(period, values)
    raise ValueError(f"{transform} cannot be applied to {values.type}")


def preimage(transform: Transform, source: pa.DataType, lower: pa.Array, upper: pa.Array) -> Preimage:
    """A superset of the source values v with lower <= apply(v) <= upper, an entry for each file or manifest.

    A null says nothing of its side. For a file both arrays are its partition values. What cannot be trusted is
    reported and says nothing of either side.
    """
    lower, upper = flat(lower), flat(upper)
    if not _defined(transform, source):
        if transform.name in ("void", "unknown"):
            return Preimage()
        everywhere = np.ones(len(lower), np.bool_)
        return Preimage(problems=problems((everywhere, f"{transform} is not defined for {source}")))
    match transform:
        case Transform(name="bucket", width=int(width)):
            buckets, found = _bucket_range(width, lower, upper)
            return Preimage(None, buckets, buckets is not None, found)
        case Transform(name="truncate", width=int(width)):
            range_, found = truncated_range(width, source, lower, upper)
        case Transform(name=("year" | "month" | "day" | "hour") as period):
            range_, found = period_range(period, source, lower, upper)
        case _:
            range_, found = _identity_range(source, lower, upper)
    if range_ is not None and transform.slack != (0, 0):
        range_ = _loosened(range_, source, *transform.slack)
    return Preimage(range_, None, range_ is not None, found)


def _loosened(range_: Range, source: pa.DataType, below: int, above: int) -> Range | None:
    """The range with its ends so much further out, but within the type's keys; None if these are no numbers."""
    span = key_span(source)
    if not isinstance(span.least, int) or not isinstance(span.greatest, int):
        return None
    lower, upper = range_.lower, range_.upper
    if lower is not None:
        lower = KeyArray(np.maximum(lower.keys, span.least + below) - below, lower.valid)
    if upper is not None:
        upper = KeyArray(np.minimum(upper.keys, span.greatest - above) + above, upper.valid)
    return Range(lower, upper, range_.upper_open)


def _defined(transform: Transform, source: pa.DataType) -> bool:
    match transform:
        case Transform(name="identity"):
            return has_order(source)
        case Transform(name="bucket", width=int()):
            return can_hash(source)
        case Transform(name="truncate", width=int()):
            return can_truncate(source)
        case Transform(name=("year" | "month" | "day" | "hour") as period):
            return has_periods(period, source)
    return False


def _bucket_range(count: int, lower: pa.Array, upper: pa.Array) -> tuple[BucketRange | None, tuple[Problem, ...]]:
    low, high = integers(lower), integers(upper)
    if low is None or high is None or pt.is_date32(lower.type):
        everywhere = np.ones(len(lower), np.bool_)
        return None, problems((everywhere, f"{lower.type} is not a type for a bucket number"))
    stray = np.zeros(len(lower), np.bool_)
    for side in (low, high):
        stray |= side.valid & ((side.keys < 0) | (side.keys >= count))
    found = problems(
        (stray, f"the bucket number is not one of 0 to {count - 1}"),
        (low.above(high), "the lower bound is above the upper bound"),
    )
    low, high = distrust(low, high, found)
    first, last = np.where(low.valid, low.keys, 0), np.where(high.valid, high.keys, count - 1)
    return BucketRange(ICEBERG, count, first, last, low.valid | high.valid), found


def _identity_range(
    source: pa.DataType, lower: pa.Array, upper: pa.Array
) -> tuple[Range | None, tuple[Problem, ...]]:
    if not fits(lower.type, source) or not fits(upper.type, source):
        everywhere = np.ones(len(lower), np.bool_)
        return None, problems((everywhere, f"{lower.type} is not a type for the values of a {source} column"))
    (low, low_bad), (high, high_bad) = (encode_or_report(side, source) for side in (lower, upper))
    unread = low_bad | high_bad | _odd_length(low, source) | _odd_length(high, source)
    # Nobody knows in which order the bounds of uuids were compared: they count where either order says the same.
    unordered = source == pa.uuid()
    found = problems(
        (unread, f"the value cannot be read as {source}"),
        (low.above(high) & (not unordered), "the lower bound is above the upper bound"),
    )
    low, high = distrust(low, high, found)
    if unordered:
        ordered = ~low.above(high)
        return uuid_bounds(low.keep(ordered), high.keep(ordered))[0], found
    if pt.is_floating(source):
        numbers = np.asarray((low.keys != NAN_KEY) & (high.keys != NAN_KEY))
        low, high = low.keep(numbers), high.keep(numbers)
    return Range(low, high), found


def _odd_length(side: KeyArray, source: pa.DataType) -> Mask:
    """Where a value of fixed length has another length."""
    if source != pa.uuid() and not (pt.is_fixed_size_binary(source) and not pt.is_decimal(source)):
        return np.zeros(len(side), np.bool_)
    least = key_span(source).least
    size = len(least) if isinstance(least, bytes) else 0
    return side.valid & mask_of(pc.fill_null(pc.not_equal(pc.binary_length(side.keys), size), fill_value=False))
