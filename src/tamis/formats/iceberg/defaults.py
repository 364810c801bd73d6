"""What rows have in a column that was added after they were written: Iceberg's JSON to values."""

from __future__ import annotations

import base64
import binascii
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import pyarrow as pa
from pyarrow import types as pt

from tamis.predicate.type_names import a_type, is_bytes, is_list

__all__ = ["default_scalar"]

_LONGEST: Final = 60


def default_scalar(type_: pa.DataType, value: object) -> pa.Scalar | None:
    r"""The value of an `initial-default`; None if there is none. ValueError if it does not fit the type.

    >>> (
    ...     default_scalar(pa.decimal128(9, 2), "14.20"),
    ...     default_scalar(pa.binary(), "00ff"),
    ...     default_scalar(pa.int32(), None),
    ... )
    (<pyarrow.Decimal128Scalar: Decimal('14.20')>, <pyarrow.BinaryScalar: b'\x00\xff'>, None)

    That of a struct has no values, for its fields have defaults of their own; so have structs inside lists and maps.
    """
    if value is None or pt.is_null(type_):  # a type that tamis does not know is not read either
        return None
    if isinstance(value, list | dict) and not pt.is_nested(type_):
        # Not shown: it may be nested deeper than Python can write down.
        raise ValueError(f"the default, a {type(value).__name__}, is no {type_}")
    try:
        return pa.scalar(_plain(type_, value), _storage(type_))
    except (TypeError, ValueError, AttributeError, ArithmeticError, binascii.Error, pa.ArrowException) as error:
        raise ValueError(f"the default {_shown(value)} is not {a_type(type_)}") from error


def _shown(value: object) -> str:
    text = repr(value) if isinstance(value, str | int | float) else type(value).__name__
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _storage(type_: pa.DataType) -> pa.DataType:
    if pt.is_struct(type_):
        return pa.struct([])
    if pt.is_map(type_):
        return pa.map_(_storage(type_.key_type), _storage(type_.item_type))
    if is_list(type_):
        return pa.list_(_storage(type_.value_type))
    return type_.storage_type if isinstance(type_, pa.BaseExtensionType) else type_


def _plain(type_: pa.DataType, value: Any) -> object:  # noqa: ANN401 - JSON
    if pt.is_nested(type_):
        return _nested(type_, value)
    if type_ == pa.uuid():
        return UUID(value).bytes
    if pt.is_decimal(type_):
        return Decimal(value)
    if pt.is_date(type_):
        return date.fromisoformat(value)
    if pt.is_time(type_):
        return time.fromisoformat(value)
    if pt.is_timestamp(type_) and type_.unit == "ns":
        return pa.scalar(value).cast(type_).value
    if pt.is_timestamp(type_):
        return datetime.fromisoformat(value)
    if is_bytes(type_):
        return base64.b16decode(value, casefold=True)
    if pt.is_floating(type_):
        return float(value)
    return value


def _nested(type_: pa.DataType, value: Any) -> object:  # noqa: ANN401 - JSON
    if pt.is_struct(type_) and value == {}:
        return value
    if pt.is_map(type_):
        if not isinstance(value, dict) or value.keys() != {"keys", "values"}:
            raise ValueError("a map has keys and values")
        kinds = (type_.key_type, "keys"), (type_.item_type, "values")
        keys, items = ([_inside(kind, inner) for inner in value[name]] for kind, name in kinds)
        return list(zip(keys, items, strict=True))
    if is_list(type_) and isinstance(value, list):
        return [_inside(type_.value_type, inner) for inner in value]
    raise ValueError("the fields of a struct have defaults of their own")


def _inside(type_: pa.DataType, value: object) -> object:
    return None if value is None else _plain(type_, value)
