"""Numbers that Spark's parser refuses, wherever they stand: those that their own type cannot hold."""

from __future__ import annotations

import re
import sys
from decimal import Decimal, InvalidOperation
from typing import Final

from tamis.predicate.keys import MAX_DIGITS

__all__ = ["beyond"]

_NUMBER: Final = re.compile(r"(\d+|\d+\.\d*|\.\d+)(?:e([+-]?\d+))?(BD|[LSYDF])?", re.IGNORECASE | re.ASCII)
_BITS: Final = {"Y": ("tinyint", 8), "S": ("smallint", 16), "L": ("bigint", 64)}
_GREATEST: Final = {"D": ("double", Decimal(sys.float_info.max)), "F": ("float", Decimal((2 - 2**-23) * 2.0**127))}


def beyond(text: str, *, negative: bool = False) -> str | None:
    """The type that cannot hold the number; None if it can, or the text is no number. negative: a minus precedes it.

    >>> beyond("1e400"), beyond("128Y"), beyond("128Y", negative=True), beyond("9" * 39)
    ('double', 'tinyint', None, 'decimal')
    """
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    suffix = (match[3] or ("D" if match[2] else "")).upper()
    try:
        value = Decimal(f"{match[1]}e{match[2] or 0}")
    except InvalidOperation:
        return "double"
    if suffix in _BITS:
        name, bits = _BITS[suffix]
        return name if value >= (1 << bits - 1) + negative else None
    if suffix in _GREATEST:
        name, greatest = _GREATEST[suffix]
        return name if value > greatest else None
    _, digits, exponent = value.as_tuple()
    significant = len(digits) if any(digits) else 0
    scale = -int(exponent)
    precision = max(significant, scale) if scale >= 0 else significant - scale
    return "decimal" if precision > MAX_DIGITS else None
