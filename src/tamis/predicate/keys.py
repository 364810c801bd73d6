"""One order for every type: each value has a key, an int or bytes, that sorts as Spark compares.

Law: a < b in Spark exactly if key(a) < key(b), and a = b exactly if the keys are equal. So whatever is proved
about keys holds for values. Ints, dates, times, timestamps, booleans, floats and decimals of up to 18 digits have
64-bit keys; strings, binaries, uuids and wider decimals have byte keys.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyarrow import types as pt

from tamis.predicate.type_names import is_bytes, is_float, is_text
from tamis.predicate.units import DAY_SECONDS, PER_SECOND

__all__ = [
    "INT32_MAX",
    "INT32_MIN",
    "INT64_MAX",
    "INT64_MIN",
    "INT_DIGITS",
    "LONG_DECIMAL_DIGITS",
    "MAX_DIGITS",
    "NAN_KEY",
    "Key",
    "KeySpan",
    "decimal_bytes",
    "float_key",
    "has_order",
    "key_span",
    "successor",
    "uses_bytes",
]

Key = int | bytes

INT32_MIN: Final = -(1 << 31)
INT32_MAX: Final = (1 << 31) - 1
INT64_MIN: Final = -(1 << 63)
INT64_MAX: Final = (1 << 63) - 1
INT_DIGITS: Final = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
"""Of the decimal that Spark makes of an int."""
MAX_DIGITS: Final = 38
"""Of a decimal: as many as 128 bits hold."""
LONG_DECIMAL_DIGITS: Final = 18
"""Decimals of up to this precision fit 64 bits unscaled; 10**18 < 2**63 < 10**19."""
DECIMAL_BIAS: Final = 1 << 127
"""Added to a wide decimal's unscaled value, so that 16 big-endian bytes sort as the numbers do."""
NAN_KEY: Final = 0x7FF8000000000000
"""NaN is one value for Spark, equal to itself and greater than infinity."""


@dataclass(frozen=True, slots=True)
class KeySpan:
    """The least and the greatest key of a type; no greatest where strings may always be longer."""

    least: Key
    greatest: Key | None


_TIMES: Final = (pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"))
_INT_SPANS: Final = {
    pa.bool_(): KeySpan(0, 1),
    pa.int8(): KeySpan(-(1 << 7), (1 << 7) - 1),
    pa.int16(): KeySpan(-(1 << 15), (1 << 15) - 1),
    pa.int32(): KeySpan(INT32_MIN, INT32_MAX),
    pa.int64(): KeySpan(INT64_MIN, INT64_MAX),
    pa.date32(): KeySpan(INT32_MIN, INT32_MAX),
    **{type_: KeySpan(0, DAY_SECONDS * PER_SECOND[type_.unit] - 1) for type_ in _TIMES},
}


def uses_bytes(type_: pa.DataType) -> bool:
    """True where keys are bytes, not ints."""
    return bool(
        is_text(type_)
        or is_bytes(type_)
        or type_ == pa.uuid()
        or (pt.is_decimal128(type_) and type_.precision > LONG_DECIMAL_DIGITS)
    )


def has_order(type_: pa.DataType) -> bool:
    """False for structs, lists, maps, variants: types that have no keys and are never judged by value."""
    return bool(
        uses_bytes(type_)
        or type_ in _INT_SPANS
        or pt.is_timestamp(type_)
        or is_float(type_)
        or pt.is_decimal128(type_)
    )


def key_span(type_: pa.DataType) -> KeySpan:
    """The keys that values of an ordered type can have."""
    if pt.is_decimal128(type_):
        most = 10**type_.precision - 1
        if type_.precision > LONG_DECIMAL_DIGITS:
            return KeySpan(decimal_bytes(-most), decimal_bytes(most))
        return KeySpan(-most, most)
    if type_ == pa.uuid() or pt.is_fixed_size_binary(type_):
        width = 16 if type_ == pa.uuid() else type_.byte_width
        return KeySpan(b"\x00" * width, b"\xff" * width)
    if uses_bytes(type_):
        return KeySpan(b"", None)
    if is_float(type_):
        return KeySpan(float_key(float("-inf")), NAN_KEY)
    return _INT_SPANS.get(type_, KeySpan(INT64_MIN, INT64_MAX))


def float_key(value: float) -> int:
    """The key of a double (a float is widened first): -0.0 equals 0.0, NaN is greatest.

    >>> float_key(-0.0) == float_key(0.0), float_key(-1.5) < float_key(2.0) < float_key(float("nan"))
    (True, True)
    """
    if value != value:  # noqa: PLR0124 - the definition of NaN
        return NAN_KEY
    (bits,) = struct.unpack(">q", struct.pack(">d", value))
    # IEEE 754: magnitudes of either sign sort like their bits; negative ones are mirrored below zero.
    return int(bits) if bits >= 0 else -int(bits & INT64_MAX)


def decimal_bytes(unscaled: int) -> bytes:
    """The key of a decimal wider than 18 digits, from its unscaled value.

    >>> decimal_bytes(-1) < decimal_bytes(0) < decimal_bytes(10**37)
    True
    """
    return (unscaled + DECIMAL_BIAS).to_bytes(16, "big")


def successor(key: Key) -> Key:
    """The least key above key. For bytes that is key + NUL: nothing lies between."""
    return key + 1 if isinstance(key, int) else key + b"\x00"
