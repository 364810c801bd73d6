"""The values in PyIceberg's expressions, as values of the columns that they are compared with.

PyIceberg brings a value to the column's type before it compares: 0.1 beside a float is the nearest float, text beside
a uuid is a uuid in whatever case, a number beside a date is a day. Spark compares otherwise: 0.1 is a double, which
no float equals. Law: the value that PyIceberg compares with, or an error. A value that it would cut (a time of day
beside a date, 1.5 beside an integer), and text that it cannot read, is an error. What else it refuses to compare, a
date with a timestamp, means what it means in SQL.
"""

from __future__ import annotations

import struct
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from pyarrow import types as pt

from tamis.errors import BindError
from tamis.predicate.type_names import a_type
from tamis.predicate.units import DAY

if TYPE_CHECKING:
    import pyarrow as pa

    from tamis.predicate.schema import Column

__all__ = ["value_of"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def value_of(given: Any, column: Column | None) -> Any:  # noqa: ANN401 - PyIceberg's literal; any value of SQL
    """A literal's value, as the builder takes it; BindError if PyIceberg means another one, or none."""
    try:
        return _python_value(given if column is None else _brought(given, column), column)
    except (OverflowError, ValueError) as error:
        raise BindError(
            f"cannot compare with {given!r} of PyIceberg: {error}. Write the condition as SQL text.",
            column=None if column is None else column.name,
            nearest=(),
        ) from error


def _brought(given: Any, column: Column) -> Any:  # noqa: ANN401 - as value_of
    """The literal that PyIceberg makes of it for the column; itself where it makes none, and it is no text."""
    type_ = _iceberg_type(column.type)
    if type_ is None:
        return given
    try:
        literal = given.to(type_)
    except (ArithmeticError, TypeError, ValueError) as error:
        if type(given).__name__ == "StringLiteral":
            raise ValueError(f"PyIceberg does not read it as {a_type(column.type)}") from error
        return given
    if type(literal).__name__.endswith(("AboveMax", "BelowMin")):
        return given  # beyond every value of the column, which SQL knows as well
    if _cut(given, literal):
        raise ValueError(f"PyIceberg cuts it to {literal.value!r} for {column.name}, {a_type(column.type)}")
    return literal


def _cut(given: Any, literal: Any) -> bool:  # noqa: ANN401 - as value_of
    """Whether the literal lost a part of it on the way to the column's type; a float's nearest is no loss."""
    names = type(given).__name__, type(literal).__name__
    match names:
        case ("TimestampLiteral", "DateLiteral"):
            return bool(given.value % DAY)
        case ("DecimalLiteral" | "StringLiteral", "LongLiteral"):
            return bool(Decimal(given.value) != literal.value)
        case ("FloatLiteral" | "DoubleLiteral", "DecimalLiteral"):
            return bool(Decimal(repr(given.value)) != literal.value)
    return False


@lru_cache(maxsize=64)
def _iceberg_type(type_: pa.DataType) -> Any:  # noqa: ANN401 - PyIceberg's types; one line a type
    """Iceberg's name for the type; None if PyIceberg compares it with nothing."""
    from pyiceberg import types as ice

    match type_:
        case _ if pt.is_decimal128(type_):
            return ice.DecimalType(type_.precision, type_.scale)
        case _ if pt.is_fixed_size_binary(type_):
            return ice.FixedType(type_.byte_width)
        case _ if pt.is_timestamp(type_):
            zoned = ice.TimestampType() if type_.tz is None else ice.TimestamptzType()
            return zoned if type_.unit == "us" else None
        case _ if pt.is_time(type_):
            return ice.TimeType()
    plain = {
        "bool": ice.BooleanType,
        "int32": ice.IntegerType,
        "int64": ice.LongType,
        "float": ice.FloatType,
        "double": ice.DoubleType,
        "date32[day]": ice.DateType,
        "string": ice.StringType,
        "large_string": ice.StringType,
        "binary": ice.BinaryType,
        "large_binary": ice.BinaryType,
        "extension<arrow.uuid>": ice.UUIDType,
    }.get(str(type_))
    return None if plain is None else plain()


def _python_value(literal: Any, column: Column | None) -> Any:  # noqa: ANN401 - as value_of
    value = literal.value
    match type(literal).__name__:
        case "DateLiteral":
            return date(1970, 1, 1) + timedelta(days=value)
        case "TimestampLiteral":
            moment = _EPOCH + timedelta(microseconds=value)
            zoned = column is not None and pt.is_timestamp(column.type) and column.type.tz is not None
            return moment if zoned else moment.replace(tzinfo=None)
        case "TimeLiteral":
            if not 0 <= value < DAY:
                raise ValueError("it is no time of day")
            return (datetime.min + timedelta(microseconds=value)).time()  # noqa: DTZ901 - a time of day has no zone
        case "UUIDLiteral":
            return UUID(bytes=value)
        case "FloatLiteral":
            return struct.unpack("<f", struct.pack("<f", value))[0]
    if not isinstance(value, (bool, int, float, Decimal, str, bytes, date, time)):
        raise ValueError(f"it is a {type(literal).__name__}")  # noqa: TRY004 - the class is right, the value is not
    return value
