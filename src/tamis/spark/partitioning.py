"""Partition values of rows: by Spark's own functions where these give exactly what the transform does.

A function of Python costs each row a way to a Python worker and back, before the shuffle. Law: every value is that of
tamis's own `apply`, whatever the session's time zone and its rules for overflows; where none of Spark's functions is
sure to give it, `apply` itself runs on the executors.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Final

import pyarrow as pa
from pyarrow import types as pt
from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql.types import DataType

from tamis.formats.edit import Cluster
from tamis.predicate.names import backticked
from tamis.sieve.transforms import Transform, apply
from tamis.sieve.transforms.periods import Period
from tamis.spark.types import plain_schema

__all__ = ["partition_value"]

ZERO_SEED: Final = -1_693_959_553
"""The int that Spark's hash() takes to 0. It starts the hash of what follows: Spark's murmur3, whose seed is 42,
becomes that of Iceberg, whose seed is 0."""
DAY: Final = 86_400_000_000
HOUR: Final = 3_600_000_000
"""Microseconds."""
_MOST_INT: Final = (1 << 31) - 1


def partition_value(one: Cluster) -> Column:
    """What a cluster groups by: the column itself, or what the transform makes of it; NULL of NULL."""
    column = reduce(lambda outer, name: outer.getField(name), one.path[1:], f.col(backticked(one.path[0])))
    if one.transform.name == "identity":
        return column
    found = _by_spark(one.transform, one.source, column)
    if found is not None:
        return f.when(column.isNotNull(), found)
    result = apply(one.transform, pa.array([], one.source)).type
    return f.arrow_udf(_applied(one.transform, one.source), _spark_type(result))(column)  # type: ignore[attr-defined,no-any-return]


def _by_spark(transform: Transform, source: pa.DataType, column: Column) -> Column | None:
    """The value of a column that is not NULL; None if Spark's functions are not sure to give it."""
    match transform:
        case Transform(name="bucket", width=int(width)):
            number = _number(source, column)
            if number is None:
                return None
            # hash() of two values: that of the first is the seed of the second, here 0.
            hashed = f.hash(f.lit(ZERO_SEED), number)
            return f.pmod(hashed.bitwiseAND(_MOST_INT), f.lit(width))
        case Transform(name="truncate", width=int(width)) if pt.is_string(source):
            return f.substring(column.cast("string"), 1, width)
        case Transform(name=("year" | "month" | "day" | "hour") as period):
            return _period(period, source, column)
    return None


def _number(source: pa.DataType, column: Column) -> Column | None:
    """The long that Iceberg hashes; None for what it hashes as bytes, and for times that Spark does not count."""
    if pt.is_integer(source):
        return column.cast("bigint")
    if pt.is_date32(source):
        return f.unix_date(column).cast("bigint")
    return f.unix_micros(column) if _is_instant(source) else None


def _period(period: Period, source: pa.DataType, column: Column) -> Column | None:
    """How many periods after 1970, rounded down, in UTC."""
    hours = None
    if pt.is_date32(source):
        day = column
    elif _is_instant(source):
        micros = f.unix_micros(column)
        day = f.date_from_unix_date(_rounded_down(micros, DAY).cast("int"))
        hours = _rounded_down(micros, HOUR)
    elif pt.is_timestamp(source) and source.unit == "us":
        day = column.cast("date")  # neither of them has a zone
        hours = f.unix_date(day).cast("bigint") * 24 + f.hour(column)
    else:
        return None
    match period:
        case "day":
            return day
        case "month":
            return (f.year(day) - 1970) * 12 + f.month(day) - 1
        case "year":
            return f.year(day) - 1970
    # Beyond 32 bits it wraps as it does in Java.
    return None if hours is None else (f.pmod(hours + (1 << 31), f.lit(1 << 32)) - (1 << 31)).cast("int")


def _rounded_down(number: Column, unit: int) -> Column:
    """The quotient of two longs; div rounds towards zero."""
    return f.call_function("div", number, f.lit(unit)) - f.when(number % unit < 0, 1).otherwise(0)


def _is_instant(source: pa.DataType) -> bool:
    return bool(pt.is_timestamp(source) and source.unit == "us" and source.tz is not None)


def _applied(transform: Transform, source: pa.DataType) -> Callable[[pa.Array], pa.Array]:
    def values(column: pa.Array) -> pa.Array:
        return apply(transform, column.cast(source))

    values.__annotations__ = {"column": pa.Array, "return": pa.Array}  # Spark reads them, and not as text
    return values


def _spark_type(type_: pa.DataType) -> DataType:
    return plain_schema(pa.schema([("value", type_)]))[0].dataType
