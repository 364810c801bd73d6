"""Iceberg's single-value encoding, and bounds cut to a length: what manifests say of a file's values.

Law: a lower bound is at most, an upper bound at least, every value that it was made of; an upper bound that cannot be
cut upwards is None.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from decimal import Context
from typing import Any, Final

import pyarrow as pa
from pyarrow import types as pt

__all__ = ["cut_lower", "cut_upper", "encoded", "plain_array"]

_LAST: Final = 0x10FFFF
_EXACT: Final = Context(prec=76)
"""Python's own arithmetic rounds to 28 digits; a decimal may have 38, and a bound that is rounded excludes values."""
_SURROGATES: Final = range(0xD800, 0xE000)


def encoded(type_: pa.DataType, value: Any) -> bytes:  # noqa: ANN401 - a value of any type
    r"""A plain value (dates and times as counts, texts as str) as manifests store it.

    >>> from decimal import Decimal
    >>> encoded(pa.int32(), -1), encoded(pa.decimal128(9, 2), Decimal("14.20")), encoded(pa.string(), "é")
    (b'\xff\xff\xff\xff', b'\x05\x8c', b'\xc3\xa9')
    """
    if pt.is_boolean(type_):
        return b"\1" if value else b"\0"
    if pt.is_float32(type_):
        return struct.pack("<f", value)
    if pt.is_float64(type_):
        return struct.pack("<d", value)
    if pt.is_decimal128(type_):
        unscaled = int(value.scaleb(type_.scale, _EXACT))
        # The fewest bytes of two's complement that hold it, as BigInteger.toByteArray.
        size = (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1
        return unscaled.to_bytes(size, "big", signed=True)
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    return struct.pack("<i" if type_.bit_width == 32 else "<q", value)  # noqa: PLR2004 - bits of an int or a date


def cut_lower(value: str | bytes, length: int) -> str | bytes:
    """The first code points, or bytes: at most the value."""
    return value[:length]


def cut_upper(value: str | bytes, length: int) -> str | bytes | None:
    r"""The least value of that length which is not less; None if there is none.

    >>> cut_upper("abcd", 2), cut_upper("a\U0010ffffc", 2), cut_upper(b"\xff\xff\xff", 2)
    ('ac', 'b', None)
    """
    if len(value) <= length:
        return value
    if isinstance(value, bytes):
        kept = value[:length].rstrip(b"\xff")
        return kept[:-1] + bytes([kept[-1] + 1]) if kept else None
    for end in range(length, 0, -1):
        code = ord(value[end - 1]) + 1
        if code in _SURROGATES:
            code = _SURROGATES.stop
        if code <= _LAST:
            return value[: end - 1] + chr(code)
    return None


def plain_array(values: Sequence[object], type_: pa.DataType) -> pa.Array:
    """Plain values as an array of the type: counts of days and microseconds become dates and times."""
    if pt.is_temporal(type_):
        return pa.array(values, pa.int32() if type_.bit_width == 32 else pa.int64()).view(type_)  # noqa: PLR2004
    if type_ == pa.uuid():
        return pa.array(values, pa.binary(16))
    return pa.array(values, type_)
