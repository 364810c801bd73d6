"""Types as Spark's SQL names them: `bigint`, not `int64`."""

from __future__ import annotations

import pyarrow as pa
from pyarrow import types as pt

__all__ = ["NAMES", "a_type", "type_name"]

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
    if pt.is_list(type_) or pt.is_large_list(type_):
        return f"array<{type_name(type_.value_type)}>"
    if pt.is_map(type_):
        return f"map<{type_name(type_.key_type)},{type_name(type_.item_type)}>"
    if pt.is_fixed_size_binary(type_):
        return "binary"
    return NAMES.get(type_) or _MORE.get(type_) or str(type_)


def a_type(type_: pa.DataType) -> str:
    """The name with its article.

    >>> a_type(pa.int32()), a_type(pa.int64())
    ('an int', 'a bigint')
    """
    name = type_name(type_)
    return f"{'an' if name[0] in 'aeio' else 'a'} {name}"
