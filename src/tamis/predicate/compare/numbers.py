"""Numbers as Spark compares them: exactly, or rounded to the type that both sides are brought to.

Law: the split of a column's values is exact where Spark compares exactly; where it rounds (a long to a double, a
decimal to 38 digits) the pairs enclose whatever it may do.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from fractions import Fraction

import pyarrow as pa
from pyarrow import types as pt

from tamis.predicate.compare.split import Split, incomparable, unreadable
from tamis.predicate.keys import INT64_MAX, INT64_MIN, INT_DIGITS, MAX_DIGITS, decimal_bytes, float_key, uses_bytes
from tamis.predicate.nodes import Literal
from tamis.predicate.type_names import is_number, is_text

__all__ = ["always_at_null", "exact_number", "floating", "listed_numbers"]


def exact_number(type_: pa.DataType, literal: Literal, where: str) -> Split:
    """Integers and decimals: keys are unscaled numbers, so that every comparison is one of fractions."""
    scale = type_.scale if pt.is_decimal128(type_) else 0
    value = _number(literal, where, type_)
    if isinstance(value, Fraction):
        return _wide(type_, _numbered(value, scale, _lost(type_, [literal], listed=False)))
    # Against a double Spark rounds the column's value to a double; rounding never changes the order.
    rounded = _rounded(value, scale, _double)
    if pt.is_float32(literal.type):  # a byte or short, and without ANSI all, are rounded to a float instead
        rounded = rounded.hull(_rounded(value, scale, _float))
    return _wide(type_, rounded)


def _numbered(value: Fraction, scale: int, lost: Fraction) -> Split:
    """The split by an exact number; where Spark rounds both sides to `lost`, by anything that near to it."""
    if not lost:
        return Split.number(value * 10**scale)
    low, high = (Split.number((value + shift) * 10**scale) for shift in (-lost, lost))
    return Split(low.hull(high).at, low.hull(high).after, exact=False)


def _lost(type_: pa.DataType, literals: Sequence[Literal], *, listed: bool) -> Fraction:
    """What Spark rounds to when the common decimal type does not hold all digits; 0 if it does.

    The common type keeps the digits before the point and gives up digits behind it, down to 38 in all. An integer
    literal has as many digits as it is written with, in a list as many as its type may have.
    """
    digits = [_digits(type_), *(_digits(literal.type, None if listed else literal.value) for literal in literals)]
    whole, behind = max(counts[0] for counts in digits), max(counts[1] for counts in digits)
    return Fraction(1, 10 ** max(MAX_DIGITS - whole, 0)) if whole + behind > MAX_DIGITS else Fraction(0)


def _digits(type_: pa.DataType, value: object = None) -> tuple[int, int]:
    """Digits before and behind the point."""
    if pt.is_decimal128(type_):
        return type_.precision - type_.scale, type_.scale
    if isinstance(value, int):
        return len(str(abs(value))), 0
    return INT_DIGITS.get(type_, 0), 0


def always_at_null(type_: pa.DataType, operator: str, literal: Literal) -> bool | None:
    """What Spark makes of NULL where it folds a comparison with a number beyond every bigint to a constant.

    `int_col < 99999999999999999999` becomes TRUE, for NULL too; None where NULL stays unknown.
    """
    value = literal.value
    if not (pt.is_integer(type_) and isinstance(value, (int, Decimal)) and operator in {"<", "<=", ">", ">="}):
        return None
    if INT64_MIN <= value <= INT64_MAX:
        return None
    return (operator in {"<", "<="}) is (value > 0)


def listed_numbers(
    type_: pa.DataType, literals: Sequence[Literal], present: Sequence[Literal], kinds: set[str], where: str
) -> list[Split]:
    """The splits of an IN list's members; each is taken exactly and as a double where the list mixes kinds."""
    scale = type_.scale if pt.is_decimal128(type_) else 0
    lost = _lost(type_, [member for member in literals if is_number(member.type)], listed=True)
    splits: list[Split] = []
    for literal in present:
        value = _number(literal, where, type_ if len(kinds) == 1 else _in_list(literal, type_))
        if isinstance(value, Fraction):
            split = _numbered(value, scale, lost)
            if kinds != {"number"}:
                split = split.hull(_rounded(_double(*value.as_integer_ratio()), scale, _double))
        else:
            split = _rounded(value, scale, _double).hull(_rounded(value, scale, _float))
            if not math.isnan(value) and not math.isinf(value):
                split = split.hull(_numbered(Fraction(value), scale, lost)) if len(kinds) > 1 else split
        splits.append(_wide(type_, Split(split.at, split.after, split.exact and len(kinds) == 1)))
    return splits


def _in_list(literal: Literal, type_: pa.DataType) -> pa.DataType:
    """What text among numbers is read as: an integer if it is written as one, else a double."""
    text = literal.value
    return pa.float64() if isinstance(text, str) and not text.strip().lstrip("+-").isdigit() else type_


def _wide(type_: pa.DataType, split: Split) -> Split:
    """Byte keys where a decimal has more than 18 digits."""
    if not uses_bytes(type_):
        return split
    most = 10**type_.precision
    at, after = (
        (decimal_bytes(max(-most, min(low, most))), decimal_bytes(max(-most, min(high, most))))
        for low, high in (split.at, split.after)
    )
    return Split(at, after, split.exact)


def _number(literal: Literal, where: str, type_: pa.DataType) -> Fraction | float:
    """A numeric literal exactly, as a Fraction, or as the double that it is."""
    match literal.value:
        case bool():
            raise incomparable(where, type_, literal)
        case int() | Decimal() as value:
            return Fraction(value)
        case float(value):
            return _narrowed(value) if pt.is_float32(literal.type) else value
        case str(text) if is_text(literal.type):
            return _number_text(text, where, type_)
    raise incomparable(where, type_, literal)


def _number_text(text: str, where: str, type_: pa.DataType) -> Fraction | float:
    """Text against an integer is cast to bigint, against a fraction to double."""
    stripped = text.strip()
    try:
        if not text.isascii():
            raise unreadable(where, type_, text)
        if not pt.is_integer(type_):
            return float(_double_text(stripped))
        value = int(stripped)
    except (ValueError, InvalidOperation):
        raise unreadable(where, type_, text) from None
    if not INT64_MIN <= value <= INT64_MAX or "_" in stripped:
        raise unreadable(where, type_, text)
    return Fraction(value)


def _double_text(text: str) -> str:
    """Text that Java reads as a double: Python's forms, less underscores, with a trailing d or f."""
    lowered = text.lower()
    if "_" in text:
        raise ValueError(text)
    if "0x" in lowered:
        return str(float.fromhex(text))
    return text[:-1] if lowered[-1:] in {"d", "f"} and lowered not in {"inf", "+inf", "-inf"} else text


def _rounded(value: float, scale: int, rounding: Callable[[int, int], float]) -> Split:
    """The split of unscaled numbers n by value, where n / 10**scale is first rounded as Spark does."""
    if math.isnan(value) or value == math.inf:
        far = 10 ** (MAX_DIGITS + 1)
        return Split((far, far), (far, far))
    if value == -math.inf:
        far = -(10 ** (MAX_DIGITS + 1))
        return Split((far, far), (far, far))

    power = 10**scale
    centre = round(Fraction(value) * power)

    def first(reached: Callable[[float], bool]) -> int:
        # Rounding is monotone: bisect for the least n that reaches value, from both sides of the number itself.
        low, high, step = centre - 1, centre, 1
        while not reached(rounding(high, power)):
            low, high, step = high, high + step, 2 * step
        while reached(rounding(low, power)):
            low, high, step = low - step, low, 2 * step
        while high - low > 1:
            middle = (low + high) // 2
            if reached(rounding(middle, power)):
                high = middle
            else:
                low = middle
        return int(high)

    at, after = first(lambda number: number >= value), first(lambda number: number > value)
    return Split((at, at), (after, after))


def _double(number: int, power: int = 1) -> float:
    """The double nearest to number / power, ties to even; infinite if it is too large."""
    try:
        return number / power
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _float(number: int, power: int = 1) -> float:
    """The nearest float, by way of the nearest double: as Java narrows a double."""
    return _narrowed(_double(number, power))


def _narrowed(value: float) -> float:
    """The nearest float, as Java narrows a double."""
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def floating(type_: pa.DataType, literal: Literal, where: str) -> Split:
    """Where a literal splits floats or doubles: NaN is the greatest, and -0.0 equals 0.0."""
    value = _number(literal, where, type_)
    if not isinstance(value, Fraction):
        return Split.key(float_key(value))
    split = Split.key(float_key(_double(*value.as_integer_ratio())))
    if pt.is_float32(type_) and pt.is_integer(literal.type):
        # An integer beside a float becomes a double under ANSI rules, a float without them.
        split = split.hull(Split.key(float_key(_float(*value.as_integer_ratio()))))
    return split
