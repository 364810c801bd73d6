"""Bucket keys of every type: random rows as JSON for Paimon's Java core, and the same rows as the sieve's keys."""

from __future__ import annotations

import base64
import random
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa

from tamis.formats.paimon.bucket_keys import KeyType, key_type
from tamis.sieve.order import KeyArray, encode

TYPES: dict[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "DATE": pa.date32(),
    "TIME(0)": pa.time32("ms"),
    "TIME(3)": pa.time32("ms"),
    "CHAR(5)": pa.string(),
    "VARCHAR(40)": pa.string(),
    "STRING": pa.string(),
    "BINARY(9)": pa.binary(),
    "VARBINARY(30)": pa.binary(),
    "BYTES": pa.binary(),
    "DECIMAL(5, 2)": pa.decimal128(5, 2),
    "DECIMAL(18, 0)": pa.decimal128(18, 0),
    "DECIMAL(19, 4)": pa.decimal128(19, 4),
    "DECIMAL(38, 10)": pa.decimal128(38, 10),
    "TIMESTAMP(0)": pa.timestamp("ms"),
    "TIMESTAMP(3)": pa.timestamp("ms"),
    "TIMESTAMP(4)": pa.timestamp("us"),
    "TIMESTAMP(6)": pa.timestamp("us"),
    "TIMESTAMP(9)": pa.timestamp("ns"),
    "TIMESTAMP(3) WITH LOCAL TIME ZONE": pa.timestamp("ms", "UTC"),
    "TIMESTAMP(6) WITH LOCAL TIME ZONE": pa.timestamp("us", "UTC"),
}
"""Types that bucket keys may have and buckets are told of, by Paimon's names, and their columns' Arrow types."""

Value = Any
_EPOCH = datetime(1970, 1, 1)


def random_value(type_: str, by: random.Random) -> Value:
    """A value of the type, often an odd one; None now and then. Timestamps are their number, of the column's unit."""
    if by.random() < 0.12:
        return None
    arrow = TYPES[type_]
    if pa.types.is_boolean(arrow):
        return by.random() < 0.5
    if pa.types.is_integer(arrow):
        most = (1 << arrow.bit_width - 1) - 1
        return by.choice([0, 1, -1, most, -most - 1, by.randint(-most - 1, most), by.randint(-100, 100)])
    if pa.types.is_date(arrow):
        return date(1970, 1, 1) + timedelta(by.choice([0, -1, by.randint(-200_000, 200_000)]))
    if pa.types.is_time(arrow):
        return by.randint(0, 86_399) * 1000 + (0 if type_ == "TIME(0)" else by.randint(0, 999))
    if pa.types.is_decimal(arrow):
        return Decimal(_unscaled(arrow.precision, by)).scaleb(-arrow.scale, Context(prec=50))
    if pa.types.is_timestamp(arrow):
        return _stamp(type_, arrow.unit, by)
    longest = {"CHAR(5)": 5, "BINARY(9)": 9}.get(type_, 30)
    size = (
        longest
        if type_ == "BINARY(9)"
        else by.choice([0, 1, min(7, longest), min(8, longest), by.randint(0, longest)])
    )
    if pa.types.is_string(arrow):
        return "".join(by.choice("abz09 é漢😀") for _ in range(size))
    return bytes(by.randint(0, 255) for _ in range(size))


def _unscaled(precision: int, by: random.Random) -> int:
    powers = [-(1 << 8 * k - 1) for k in range(1, 16)] + [(1 << 8 * k - 1) - 1 for k in range(1, 16)]
    most = 10**precision - 1
    some = by.choice([0, 1, -1, 100, -100, most, -most, by.randint(-most, most), by.choice(powers)])
    return max(-most, min(most, some))


def _stamp(type_: str, unit: str, by: random.Random) -> int:
    """A number of the unit with as many digits behind the second as the type has."""
    digits = int(type_[10])
    seconds = by.choice([0, -1, by.randint(-4_000_000_000, 4_000_000_000)])
    fraction = by.choice([0, 10**digits - 1, by.randint(0, 10**digits - 1)])
    per = {"ms": 3, "us": 6, "ns": 9}[unit]
    return seconds * 10**per + fraction * 10 ** (per - digits)


def for_java(value: Value, type_: str) -> Value:
    """The value as the engine's JSON has it."""
    match value:
        case None | bool() | str():
            return value
        case bytes():
            return base64.b64encode(value).decode()
        case Decimal() | date():
            return str(value)
    arrow = TYPES[type_]
    if pa.types.is_timestamp(arrow):
        per = {"ms": 10**3, "us": 10**6, "ns": 10**9}[arrow.unit]
        seconds, fraction = divmod(value, per)
        text = (_EPOCH + timedelta(seconds=seconds)).isoformat() + f".{fraction:0{len(str(per)) - 1}d}"
        return text + "Z" if arrow.tz else text
    return value


def for_arrow(values: Sequence[Any], type_: str) -> pa.Array:
    """The values as a column has them."""
    arrow = TYPES[type_]
    if pa.types.is_timestamp(arrow):
        return pa.array(values, pa.int64()).cast(arrow)
    if pa.types.is_time(arrow):
        return pa.array(values, pa.int32()).cast(arrow)
    return pa.array(values, arrow)


def keys_of(columns: Mapping[str, Sequence[Any]], types: Mapping[str, str]) -> list[KeyArray]:
    """The columns as the sieve's keys."""
    return [encode(for_arrow(columns[name], type_), TYPES[type_]) for name, type_ in types.items()]


def key_types(types: Mapping[str, str]) -> tuple[KeyType, ...]:
    """The types as they are hashed."""
    found = [key_type(type_) for type_ in types.values()]
    return tuple(type_ for type_ in found if type_ is not None)


def for_python(value: Value, type_: str) -> Value:
    """The value as pypaimon's rows have it."""
    arrow = TYPES[type_]
    if value is None or not isinstance(value, int) or isinstance(value, bool):
        return value
    if pa.types.is_timestamp(arrow):
        micros = value * 1000 if arrow.unit == "ms" else value if arrow.unit == "us" else value // 1000
        made = _EPOCH + timedelta(microseconds=micros)
        return made.replace(tzinfo=UTC) if arrow.tz else made
    if pa.types.is_time(arrow):
        return (datetime.combine(date(1970, 1, 1), time()) + timedelta(milliseconds=value)).time()
    return value
