"""A long list against a column, all at once.

Law: the keys are those that its members have one by one, or there are none: then they are taken one by one. That is
so wherever Spark's answer depends on more than a member's own value, or a member is no value of the column's type.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy import typing as npt
from pyarrow import types as pt

from tamis.predicate.arrays import Int64s
from tamis.predicate.compare.zones import Zone
from tamis.predicate.keys import INT64_MAX, INT_DIGITS, LONG_DECIMAL_DIGITS, MAX_DIGITS, NAN_KEY, uses_bytes
from tamis.predicate.literals import LiteralColumn
from tamis.predicate.type_names import is_text
from tamis.predicate.units import DAY

__all__ = ["column_keys"]

Keys = npt.NDArray[Any]

_INTEGER_DIGITS: Final = INT_DIGITS[pa.int64()]
"""Digits that Spark reckons with for a bigint in a list."""
_FLOAT_EXACT: Final = 1 << 24
"""Up to here a float holds every integer, so that it makes no difference which way Spark widens them."""
_DAY_TEXT: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_MOMENT_TEXT: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?$"


def column_keys(type_: pa.DataType, literals: LiteralColumn, zone: Zone) -> Keys | None:
    """The keys of the members that a column of type_ can hold, NULLs left out; None if that is not so plain."""
    values = literals.values.drop_null()
    literal_type = literals.values.type
    try:
        if pt.is_integer(literal_type):
            return _integers(type_, values)
        if pt.is_floating(literal_type):
            return _float_keys(values) if pt.is_floating(type_) else None
        if literals.type is None:
            return _numbers(type_, values)
        if pt.is_date32(type_):
            return _days(values, literals.type)
        if pt.is_timestamp(type_):
            return _moments(type_, values, literals.type, zone)
    except pa.ArrowInvalid:
        return None
    plain = literals.type == pa.string() and (is_text(type_) or uses_bytes(type_)) and not pt.is_decimal(type_)
    return _texts(values) if plain and type_ != pa.uuid() else None


def _integers(type_: pa.DataType, values: pa.Array) -> Keys | None:
    numbers = values.to_numpy(zero_copy_only=False)
    if pt.is_integer(type_):
        most = 1 << type_.bit_width - 1
        return np.asarray(numbers[(numbers >= -most) & (numbers <= most - 1)])
    if pt.is_floating(type_):
        small = pt.is_float64(type_) or bool(np.all((numbers >= -_FLOAT_EXACT) & (numbers <= _FLOAT_EXACT)))
        return _float_keys(pa.array(numbers.astype(np.float64))) if small else None
    return _scaled(type_, numbers, 0, _INTEGER_DIGITS)


def _numbers(type_: pa.DataType, values: pa.Array) -> Keys | None:
    """Numbers as they are written, with and without a point."""
    if pt.is_float64(type_):
        return _float_keys(values.cast(pa.float64()))
    bare = pc.replace_substring(values, "-", "")
    point = pc.find_substring(bare, ".")
    lengths, points = (counts.to_numpy(zero_copy_only=False) for counts in (pc.utf8_length(bare), point))
    behind = int(np.where(points < 0, 0, lengths - points - 1).max(initial=0))
    whole = int(np.where(points < 0, lengths, points).max(initial=0))
    if whole + behind > LONG_DECIMAL_DIGITS:
        return None
    unscaled = values.cast(pa.decimal128(MAX_DIGITS, behind))
    words = np.frombuffer(unscaled.buffers()[1], "<i8").reshape(-1, 2)
    digits = max(whole, _INTEGER_DIGITS if bool((points < 0).any()) else 0)
    return _scaled(type_, words[unscaled.offset : unscaled.offset + len(unscaled), 0], behind, digits)


def _scaled(type_: pa.DataType, unscaled: Int64s, scale: int, whole: int) -> Keys | None:
    """The keys of numbers with so many digits behind the point, and at most so many before it."""
    if pt.is_integer(type_):
        precision, target, most = _INTEGER_DIGITS, 0, (1 << type_.bit_width - 1) - 1
    elif pt.is_decimal128(type_) and type_.precision <= LONG_DECIMAL_DIGITS:
        precision, target, most = type_.precision, type_.scale, 10**type_.precision - 1
    else:
        return None
    if max(precision - target, whole) + max(target, scale) > MAX_DIGITS:
        return None  # Spark rounds both sides
    if scale > target:
        # More digits than the column has: equal to a value of it only if the rest are zeros.
        step = 10 ** (scale - target)
        unscaled = unscaled[unscaled % step == 0] // step
        factor = 1
    else:
        factor = 10 ** (target - scale)
    least = -most - 1 if pt.is_integer(type_) else -most
    inside = (unscaled >= -(-least // factor)) & (unscaled <= most // factor)
    return np.asarray(unscaled[inside] * factor)


def _float_keys(values: pa.Array) -> Keys:
    numbers = np.ascontiguousarray(values.to_numpy(zero_copy_only=False))
    bits = numbers.view(np.int64)
    return np.where(np.isnan(numbers), NAN_KEY, np.where(bits >= 0, bits, -(bits & INT64_MAX)))


def _texts(values: pa.Array) -> Keys:
    """Each once and in order: Arrow sorts bytes faster than Python does."""
    raw = values.cast(pa.large_binary()).unique()
    listed = raw.take(pc.sort_indices(raw)).to_pylist()
    keys = np.empty(len(listed), object)
    keys[:] = listed
    return keys


def _days(values: pa.Array, type_: pa.DataType) -> Keys | None:
    """Dates, or text that is written as one in full."""
    if pt.is_timestamp(type_):
        return None
    if is_text(values.type):
        if not pc.all(pc.match_substring_regex(values, _DAY_TEXT)).as_py():
            return None
        values = values.cast(pa.date32())
    return np.asarray(values.cast(pa.int32()).to_numpy(zero_copy_only=False).astype(np.int64))


def _moments(type_: pa.DataType, values: pa.Array, literal: pa.DataType, zone: Zone) -> Keys | None:
    """Moments that are written in full, without a zone of their own, where the session's never changes."""
    if type_.unit != "us" or (type_.tz is None and pt.is_timestamp(literal) and literal.tz is not None):
        return None
    if pt.is_date(values.type) or pt.is_date(literal):
        days = _days(values, literal)
        wall = None if days is None else days * DAY
    elif pc.all(pc.match_substring_regex(values, _MOMENT_TEXT)).as_py():
        wall = values.cast(pa.timestamp("us")).cast(pa.int64()).to_numpy(zero_copy_only=False)
    else:
        return None
    if wall is None or type_.tz is None:
        return wall
    return None if zone.fixed is None else np.asarray(wall - zone.fixed)
