"""Integer and decimal literals, and the types that Spark gives them."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation

import pyarrow as pa

from tamis.predicate.keys import MAX_DIGITS
from tamis.predicate.nodes import Literal

__all__ = ["MAX_DIGITS", "decimal_literal", "int_literal"]

"""The most digits of a decimal in Spark, and in Arrow's decimal128."""
_WIDE = Context(prec=4 * MAX_DIGITS)


def int_literal(value: int, type_: pa.DataType) -> Literal | None:
    """A literal of an integer type; None if it overflows."""
    most = 1 << type_.bit_width - 1
    return Literal(value, type_) if -most <= value < most else None


def decimal_literal(value: Decimal, precision: int | None = None, scale: int | None = None) -> Literal | None:
    """A decimal rounded half up to a type's scale, or with just the digits that it has; None if it overflows.

    >>> decimal_literal(Decimal("0.05")).type, decimal_literal(Decimal("1.239"), 10, 2).value
    (Decimal128Type(decimal128(2, 2)), Decimal('1.24'))
    """
    own = -int(value.as_tuple().exponent)
    scale = max(own, 0) if scale is None else scale
    try:
        rounded = value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, _WIDE)
    except InvalidOperation:
        return None
    rounded = rounded or rounded.copy_abs()  # Java's decimals have one zero, without a sign
    digits = max(len(str(abs(int(rounded.scaleb(scale, _WIDE))))), scale)
    precision = max(digits, 1) if precision is None else precision
    if digits > precision or not scale <= precision <= MAX_DIGITS:
        return None
    return Literal(rounded, pa.decimal128(precision, scale))
