"""The types that SQL names, as Arrow has them.

Law: a type that no literal of ours can have is None, and what is cast to it stays as it is written.
"""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from tamis.predicate.compare.casts import MAX_DIGITS, WALL, ZONED

__all__ = ["target"]

_Type = exp.DataType.Type
_TYPES = {
    _Type.BOOLEAN: pa.bool_(),
    _Type.TINYINT: pa.int8(),
    _Type.SMALLINT: pa.int16(),
    _Type.INT: pa.int32(),
    _Type.BIGINT: pa.int64(),
    _Type.FLOAT: pa.float32(),
    _Type.DOUBLE: pa.float64(),
    _Type.TEXT: pa.string(),
    _Type.BINARY: pa.binary(),
    _Type.DATE: pa.date32(),
    _Type.TIME: pa.time64("us"),
    _Type.TIMESTAMP: ZONED,
    _Type.TIMESTAMPTZ: ZONED,
    _Type.TIMESTAMPLTZ: ZONED,
    _Type.TIMESTAMPNTZ: WALL,
}


def target(type_: exp.DataType) -> pa.DataType | None:
    """The Arrow type of a SQL type; None for those that no literal here has."""
    if type_.this is _Type.DECIMAL:
        sizes = [int(size.name) for size in type_.expressions if size.name.isdecimal()]
        precision, scale = (*sizes, 0)[:2] if sizes else (10, 0)
        return pa.decimal128(precision, scale) if scale <= precision <= MAX_DIGITS and precision else None
    return None if type_.expressions else _TYPES.get(type_.this)
