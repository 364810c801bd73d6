"""Types: their families, and their names as Spark's SQL has them: `bigint`, not `int64`."""

from __future__ import annotations

import pyarrow as pa
from pyarrow import types as pt

__all__ = [
    "NAMES",
    "a_type",
    "family",
    "is_bytes",
    "is_clock",
    "is_fixed",
    "is_float",
    "is_list",
    "is_number",
    "is_temporal",
    "is_text",
    "type_name",
]

NAMES = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.date32(): "date",
    pa.string(): "string",
    pa.binary(): "binary",
}
_MORE = {pa.large_string(): "string", pa.large_binary(): "binary", pa.null(): "void", pa.uuid(): "uuid"}
_MORE |= {pa.duration("us"): "interval of days", pa.month_day_nano_interval(): "interval of months"}


def is_text(type_: pa.DataType) -> bool:
    """True for the string types."""
    return bool(pt.is_string(type_) or pt.is_large_string(type_))


def is_bytes(type_: pa.DataType) -> bool:
    """True for binaries, of any length or of a fixed one; not for a UUID."""
    return bool(pt.is_binary(type_) or pt.is_large_binary(type_) or pt.is_fixed_size_binary(type_))


def is_float(type_: pa.DataType) -> bool:
    """True for the floating-point types that Spark has: float and double."""
    return bool(pt.is_float32(type_) or pt.is_float64(type_))


def is_number(type_: pa.DataType) -> bool:
    """True for ints and decimals: numbers that compare exactly."""
    return bool(pt.is_integer(type_) or pt.is_decimal128(type_))


def is_clock(type_: pa.DataType) -> bool:
    """True for timestamps and times: counts of a unit."""
    return bool(pt.is_timestamp(type_) or pt.is_time(type_))


def is_temporal(type_: pa.DataType) -> bool:
    """True for dates, timestamps and times."""
    return bool(pt.is_date32(type_) or is_clock(type_))


def is_fixed(type_: pa.DataType) -> bool:
    """True for types of which every value takes as many bytes as any other."""
    return bool(is_number(type_) or is_float(type_) or is_temporal(type_) or pt.is_boolean(type_))


def is_list(type_: pa.DataType) -> bool:
    """True for lists, whatever the width of their offsets."""
    return bool(pt.is_list(type_) or pt.is_large_list(type_))


def family(type_: pa.DataType) -> str:
    """Which types a value can widen in, or be compared with: one name for all ints, another for all texts.

    >>> [family(type_) for type_ in (pa.int8(), pa.large_string(), pa.timestamp("us", "UTC"), pa.date32())]
    ['int', 'text', 'zoned', 'date32[day]']
    """
    if pt.is_signed_integer(type_):
        return "int"
    if pt.is_timestamp(type_):
        return "timestamp" if type_.tz is None else "zoned"
    if type_ == pa.uuid():
        return "uuid"
    of = (
        ("time", pt.is_time),
        ("decimal", pt.is_decimal128),
        ("text", is_text),
        ("bytes", is_bytes),
        ("float", is_float),
    )
    return next((name for name, holds in of if holds(type_)), str(type_))


def type_name(type_: pa.DataType) -> str:
    """The type's name in Spark's SQL; of a type that Spark does not have, Arrow's or the format's own name.

    >>> type_name(pa.int64()), type_name(pa.list_(pa.struct({"a": pa.float32()})))
    ('bigint', 'array<struct<a:float>>')
    """
    if pt.is_decimal(type_):
        return f"decimal({type_.precision},{type_.scale})"
    if pt.is_timestamp(type_):
        name = "timestamp_ntz" if type_.tz is None else "timestamp"
        return f"{name} in nanoseconds" if type_.unit == "ns" else name
    if pt.is_time(type_):
        return "time"
    if pt.is_struct(type_):
        return f"struct<{','.join(f'{part.name}:{type_name(part.type)}' for part in type_)}>"
    if is_list(type_):
        return f"array<{type_name(type_.value_type)}>"
    if pt.is_map(type_):
        return f"map<{type_name(type_.key_type)},{type_name(type_.item_type)}>"
    if is_bytes(type_):
        return "binary"
    return NAMES.get(type_) or _MORE.get(type_) or str(type_)


def a_type(type_: pa.DataType) -> str:
    """The name with its article.

    >>> a_type(pa.int32()), a_type(pa.int64())
    ('an int', 'a bigint')
    """
    name = type_name(type_)
    return f"{'an' if name[0] in 'aeio' else 'a'} {name}"
