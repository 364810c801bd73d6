"""Casts of a column's numbers that keep every value apart, and all of them in order.

An int in a longer int, a decimal or a double that hold it exactly; a float in a double; a decimal with more digits on
either side. None of them can fail, by whatever rules, so the result's cuts are cuts of the column. A cast that rounds
is not among them: two numbers become one, and Spark, which takes casts off the column, forgets that.
"""

from __future__ import annotations

import math
import re
import struct
from fractions import Fraction
from typing import Final

import pyarrow as pa
from pyarrow import types as pt

from tamis.predicate.keys import INT64_MAX, NAN_KEY, Key, decimal_bytes, float_key, key_span, uses_bytes
from tamis.predicate.type_names import NAMES, is_float

__all__ = ["pull_widened", "widened"]

_NAMED: Final = {name: type_ for type_, name in NAMES.items()}
_DECIMAL: Final = re.compile(r"decimal\((\d+), ?(\d+)\)")
_DIGITS: Final = {pa.bool_(): 1, pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}
"""Most digits of an integer."""
_EXACT: Final = {pa.float32(): {pa.int8(), pa.int16()}, pa.float64(): {pa.int8(), pa.int16(), pa.int32()}}
"""Integers that a float, or a double, holds without rounding."""
_DECIMAL_KEY: Final = 16


def widened(argument: pa.DataType, name: str) -> pa.DataType | None:
    """The type of a cast to the type of that name; None if a value could be lost, or fail, in it."""
    match = _DECIMAL.fullmatch(name)
    type_ = pa.decimal128(int(match[1]), int(match[2])) if match else _NAMED.get(name)
    if type_ is None:
        return None
    whole = argument in _DIGITS
    if pt.is_integer(type_):
        keeps = argument == pa.bool_() or (whole and argument.bit_width <= type_.bit_width)
    elif pt.is_decimal(type_) and pt.is_decimal128(argument):
        before, after = (one.precision - one.scale for one in (argument, type_))
        keeps = after >= before and type_.scale >= argument.scale
    elif pt.is_decimal(type_):
        keeps = whole and type_.precision - type_.scale >= _DIGITS[argument]
    else:
        keeps = is_float(type_) and (argument in _EXACT[type_] or (is_float(argument) and _narrower(argument, type_)))
    return type_ if keeps else None


def pull_widened(argument: pa.DataType, name: str, cut: Key) -> Key:
    """The key of the least argument whose cast reaches the cut; above all of them if none does."""
    result = widened(argument, name)
    if result is None:
        raise AssertionError(f"no cast of {argument} to {name} keeps every value")
    if is_float(result):
        return int(cut) if is_float(argument) else _least_whole(int(cut), argument)
    scaled = _unscaled(cut)
    own, given = (one.scale if pt.is_decimal(one) else 0 for one in (argument, result))
    least = math.ceil(Fraction(scaled, 10 ** (given - own)))
    if not uses_bytes(argument):
        return least
    most = 10**argument.precision
    return decimal_bytes(min(max(least, -most), most))


def _narrower(argument: pa.DataType, type_: pa.DataType) -> bool:
    return bool(argument.bit_width <= type_.bit_width)


def _unscaled(cut: Key) -> int:
    """The number that a key of an integer or a decimal stands for; a key just above one, for the next."""
    if isinstance(cut, int):
        return cut
    base = int.from_bytes(cut[:_DECIMAL_KEY], "big") - (int.from_bytes(decimal_bytes(0), "big"))
    return base + (len(cut) > _DECIMAL_KEY)


def _least_whole(cut: int, argument: pa.DataType) -> int:
    """The least integer whose double has a key at or above the cut."""
    span = key_span(argument)
    least, greatest = int(span.least), int(span.greatest or 0)
    if cut <= float_key(-math.inf):
        return least
    if cut > float_key(math.inf) or cut == NAN_KEY:
        return greatest + 1
    bits = cut if cut >= 0 else (-cut) | (INT64_MAX + 1)
    (value,) = struct.unpack(">d", struct.pack(">Q", bits))
    return greatest + 1 if value > greatest else least if value < least else math.ceil(value)
