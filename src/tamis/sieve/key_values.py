"""Keys back to values, for those who must see a value and not only its order: hash functions, and readers.

Law: to_values is the inverse of order.encode. What is_value refuses is a key between two values of the type, which
no row can hold.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from decimal import Decimal

import pyarrow as pa
from pyarrow import types as pt

from tamis.predicate.keys import (
    DECIMAL_BIAS,
    INT64_MAX,
    NAN_KEY,
    Key,
    float_key,
    key_span,
    uses_bytes,
)
from tamis.predicate.type_names import is_text

__all__ = ["is_value", "to_values"]


def is_value(key: Key, type_: pa.DataType) -> bool:
    """False if no value of the type has this key.

    >>> is_value(float_key(0.1), pa.float32()), is_value(float_key(0.5), pa.float32())
    (False, True)
    """
    if pt.is_floating(type_):
        if not isinstance(key, int) or float_key(float("inf")) < key < NAN_KEY:
            return False
        value = _float(key)
        return not pt.is_float32(type_) or key == NAN_KEY or _is_float32(value)
    if isinstance(key, bytes) and not is_text(type_):
        least = key_span(type_).least
        # Types of a fixed width (decimals, uuids, fixed) have a least key of that width; others an empty one.
        return not least or len(key) == len(least)  # type: ignore[arg-type] # bytes, as key is
    return True


def to_values(keys: Sequence[Key | None], type_: pa.DataType) -> pa.Array:
    """The values that have these keys, as the column's type has them; None is NULL.

    Raises pa.ArrowInvalid if a key cannot be a value of the type, such as bytes that are no UTF-8.

    >>> to_values([19737, None], pa.date32()).to_pylist()
    [datetime.date(2024, 1, 15), None]
    """
    if pt.is_decimal128(type_):
        return pa.array([None if key is None else _decimal(key, type_) for key in keys], type_)
    if type_ == pa.uuid():
        return pa.ExtensionArray.from_storage(type_, pa.array(keys, type_.storage_type))
    if pt.is_fixed_size_binary(type_):
        return pa.array(keys, type_)
    if uses_bytes(type_):
        return pa.array(keys, pa.large_binary()).cast(type_)
    if pt.is_floating(type_):
        return pa.array([None if key is None else _float(key) for key in keys], pa.float64()).cast(type_)
    if pt.is_boolean(type_):
        return pa.array([None if key is None else bool(key) for key in keys], type_)
    whole = {32: pa.int32(), 64: pa.int64()}.get(type_.bit_width, type_)
    return pa.array(keys, pa.int64()).cast(whole).view(type_)


def _float(key: Key) -> float:
    """The double with this key; 0.0 for zero, whatever its sign was."""
    assert isinstance(key, int)  # noqa: S101 - floats have 64-bit keys
    bits = key if key >= 0 else -key | (INT64_MAX + 1)
    return float(struct.unpack(">d", struct.pack(">Q", bits))[0])


def _is_float32(value: float) -> bool:
    try:
        return float(struct.unpack(">f", struct.pack(">f", value))[0]) == value
    except OverflowError:
        return False


def _decimal(key: Key, type_: pa.DataType) -> Decimal:
    """Built from digits: arithmetic would round to the context's precision."""
    unscaled = key if isinstance(key, int) else int.from_bytes(key, "big") - DECIMAL_BIAS
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -type_.scale))
