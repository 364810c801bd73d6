"""Casts of literals, where Spark's answer is certain whatever the session.

Law: a cast is done only if it succeeds, and in one way, with and without ANSI rules. Text under a date, time or
timestamp type stays text: it is read when the predicate is bound, in the session's time zone.
"""

from __future__ import annotations

import math
import re
import struct
from decimal import Decimal

import pyarrow as pa
from pyarrow import types as pt

from tamis.predicate.compare.exact import MAX_DIGITS, decimal_literal, int_literal
from tamis.predicate.compare.kinds import castable
from tamis.predicate.compare.times import parse_date, parse_moment, parse_time
from tamis.predicate.nodes import Literal
from tamis.predicate.type_names import is_temporal

__all__ = ["MAX_DIGITS", "WALL", "ZONED", "cast", "decimal_literal", "int_literal", "to_float32"]

ZONED, WALL = pa.timestamp("us", "UTC"), pa.timestamp("us")

_INT_TEXT = re.compile(r"[+-]?[0-9]{1,40}")
_NUMBER_TEXT = re.compile(r"[+-]?([0-9]{1,60}(\.[0-9]{0,60})?|\.[0-9]{1,60})(e[+-]?[0-9]{1,3})?", re.IGNORECASE)
_SPECIAL_FLOATS = {"nan", "inf", "+inf", "-inf", "infinity", "+infinity", "-infinity"}
_TRUE, _FALSE = {"t", "true", "y", "yes", "1"}, {"f", "false", "n", "no", "0"}
_SPECIAL_DAYS = {"now", "today", "yesterday", "tomorrow", "epoch"}
_CLOCK_ALONE = re.compile(r"t?\d{1,2}:")
_FLOAT32_NORMAL = 2.0**-126
_LEAST_PLAIN = -6
"""The power of ten of a decimal's first digit below which Java writes it with an exponent."""
_BELOW_FLOAT32, _HALF_FLOAT32 = (1 << 29) - 1, 1 << 28
"""The 29 bits that a double's fraction has beyond a float's, and the first of them."""


def cast(literal: Literal | None, type_: pa.DataType | None, *, typed: bool = False) -> Literal | None:
    """The literal as a value of type_; None if that may fail, or depends on when and where Spark runs.

    typed says that it was written as `DATE '…'`: Spark refuses such a text if it is malformed, so that it is kept
    for bind to do the same.
    """
    if literal is None or type_ is None:
        return None
    value = literal.value
    if value is None:
        return Literal(None, type_) if castable(literal.type, type_) else None
    if literal.type == type_:
        return literal
    match value:
        case str() if literal.type == pa.string():
            return _from_text(value, type_, typed=typed) if is_temporal(type_) or not typed else None
        case bool():
            return _from_bool(value, type_)
        case int() | Decimal():
            return _from_exact(value, type_)
        case float():
            return _from_float(value, type_)
    return None


def to_float32(value: float) -> float | None:
    """The float nearest to the number that value was read from; None if a double is too coarse to tell."""
    if math.isfinite(value) and value:
        (bits,) = struct.unpack(">Q", struct.pack(">d", value))
        # A double halfway between two floats may itself be rounded: then the text decides, not the double.
        if abs(value) < _FLOAT32_NORMAL or bits & _BELOW_FLOAT32 == _HALF_FLOAT32:
            return None
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return None


def _from_text(text: str, type_: pa.DataType, *, typed: bool) -> Literal | None:
    if is_temporal(type_):
        return Literal(text, type_) if _readable(text, type_, typed=typed) else None
    if type_ == pa.binary():
        return Literal(text.encode(), type_)
    stripped = text.strip(" ")
    word = stripped.lower()
    if pt.is_boolean(type_):
        return Literal(word in _TRUE, type_) if word in _TRUE | _FALSE else None
    if pt.is_integer(type_):
        return int_literal(int(stripped), type_) if _INT_TEXT.fullmatch(stripped) else None
    if pt.is_floating(type_) and word in _SPECIAL_FLOATS:
        return Literal(float(word), type_)
    if not _NUMBER_TEXT.fullmatch(stripped):
        return None
    if pt.is_decimal(type_):
        return _from_exact(Decimal(stripped), type_)
    return _float_literal(float(stripped), type_)


def _readable(text: str, type_: pa.DataType, *, typed: bool) -> bool:
    """Whether bind may read the text: always one value, or surely none."""
    stripped = text.strip().lower()
    if any(stripped.startswith(special) for special in _SPECIAL_DAYS):
        return False
    if pt.is_date32(type_):
        return typed or parse_date(text) is not None
    if pt.is_time(type_):
        return typed or parse_time(text) is not None
    # A time of day alone is today's: which that is only Spark knows. Without a zone there is no such timestamp.
    return parse_moment(text) is not None or (typed and (type_ == WALL or _CLOCK_ALONE.match(stripped) is None))


def _from_bool(value: bool, type_: pa.DataType) -> Literal | None:  # noqa: FBT001 - SQL's value
    if pt.is_string(type_):
        return Literal(str(value).lower(), type_)
    if pt.is_decimal(type_):
        return decimal_literal(Decimal(int(value)), type_.precision, type_.scale)
    if pt.is_floating(type_):
        return Literal(float(value), type_)
    return Literal(int(value), type_) if pt.is_integer(type_) else None


def _from_exact(value: int | Decimal, type_: pa.DataType) -> Literal | None:
    if pt.is_decimal(type_):
        return decimal_literal(Decimal(value), type_.precision, type_.scale)
    if pt.is_boolean(type_):
        return Literal(value != 0, type_)
    if pt.is_string(type_):
        return _text_of(value, type_)
    if pt.is_integer(type_):
        return int_literal(int(value), type_)  # what follows the point is cut off, by either rules
    if pt.is_floating(type_):
        # Java rounds a decimal's text once, and a long to the nearest double, as Python does.
        nearest = float(value)
        if isinstance(value, int) and pt.is_float32(type_):
            return _narrowed(nearest) if nearest == value else None
        return _float_literal(nearest, type_)
    return None


def _text_of(value: int | Decimal, type_: pa.DataType) -> Literal | None:
    """Without ANSI rules a small decimal is written as Java has it, with an exponent: 1E-7. By them it has none."""
    if isinstance(value, int):
        return Literal(str(value), type_)
    return Literal(f"{value:f}", type_) if value.adjusted() >= _LEAST_PLAIN else None


def _from_float(value: float, type_: pa.DataType) -> Literal | None:
    if pt.is_float64(type_):
        return Literal(value, type_)
    if pt.is_float32(type_):
        return _narrowed(value)
    if pt.is_boolean(type_):
        return Literal(value != 0, type_)  # NaN is TRUE
    if pt.is_integer(type_) and math.isfinite(value):
        return int_literal(int(value), type_)
    if pt.is_decimal(type_) and math.isfinite(value):
        return _as_decimal(value, type_)
    return None


def _narrowed(value: float) -> Literal | None:
    """The float nearest to a double, which Java finds as C does; none where it is too large for one."""
    try:
        return Literal(float(struct.unpack("<f", struct.pack("<f", value))[0]), pa.float32())
    except OverflowError:
        return None


def _as_decimal(value: float, type_: pa.DataType) -> Literal | None:
    """A double as a decimal, if the way in which Java writes its digits, which has changed, cannot matter.

    Java's text of a double reads back as the same double, so it lies between the double's two neighbours. Rounding
    keeps the order: where both of them round to one decimal, so does the text. Midway between two decimals they
    round apart, and it is left to Spark.
    """
    ends = (math.nextafter(value, -math.inf), math.nextafter(value, math.inf))
    if not all(map(math.isfinite, ends)):
        return None  # the greatest double there is: no decimal holds it
    low, high = (decimal_literal(Decimal(end), type_.precision, type_.scale) for end in ends)
    return low if low is not None and low == high else None


def _float_literal(value: float, type_: pa.DataType) -> Literal | None:
    if pt.is_float32(type_):
        narrow = to_float32(value)
        return None if narrow is None else Literal(narrow, type_)
    return Literal(value, type_) if math.isfinite(value) else None
