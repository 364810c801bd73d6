"""Paimon's types, as schema files spell them, and the Arrow types that their values compare in.

A type whose values do not compare as Arrow's would is opaque: pa.null(), of which nothing but null counts is judged.
Law: a type that this page does not name is refused by its name, never guessed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from tamis.formats.document import Misfit
from tamis.predicate.keys import MAX_DIGITS

__all__ = ["Atomic", "UnknownType", "atomic"]

_SPELLED: Final = re.compile(
    r"\s*(?P<name>[A-Z_]+(?: PRECISION)?)\s*(?:\(\s*(?P<first>\d{1,10})\s*(?:,\s*(?P<second>\d{1,10})\s*)?\))?"
    r"(?P<zone>\s+WITH(?:OUT| LOCAL)? TIME ZONE)?\s*(?P<null>(?:NOT\s+)?NULL)?\s*"
)
_PLAIN: Final = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "DOUBLE PRECISION": pa.float64(),
    "DATE": pa.date32(),
    "STRING": pa.string(),
    "BYTES": pa.binary(),
    "VARIANT": pa.null(),
}
"""VARIANT has no order."""
_SIZED: Final = {
    "VARCHAR": pa.string(),
    "CHAR": pa.null(),
    "VARBINARY": pa.binary(),
    "BINARY": pa.binary(),
}
"""Spark pads a CHAR with blanks, and what it is compared with: 'ab' equals 'ab '. So a CHAR is opaque."""
_DECIMALS: Final = ("DECIMAL", "DEC", "NUMERIC")
_TIMESTAMPS: Final = ("TIMESTAMP", "TIMESTAMP_LTZ")
_DEFAULT_DECIMAL: Final = 10
_DEFAULT_TIMESTAMP: Final = 6
_MICROS: Final = 6
_NANOS: Final = 9


@dataclass(frozen=True, slots=True)
class Atomic:
    """A type without others inside it."""

    arrow: pa.DataType
    name: str
    """As the schema spells it, without NOT NULL: `DECIMAL(10, 2)`."""
    nullable: bool = True
    precision: int | None = None
    """Of a timestamp, a time or a decimal."""
    length: int | None = None
    """Most characters or bytes of a text or a binary; None if there is no limit."""


class UnknownType(Misfit):
    """A type that tamis does not know; name is how the schema spells it."""

    def __init__(self, name: str, place: str = "") -> None:
        super().__init__(f"the type {name} is not known", place)
        self.name = name

    def below(self, key: str | int) -> UnknownType:
        """The same, with a step of its path more."""
        return UnknownType(self.name, super().below(key).place)


def atomic(spelled: str) -> Atomic:
    """The type of that name; UnknownType if there is none.

    >>> atomic("BIGINT NOT NULL").arrow, atomic("DECIMAL(9, 2)").arrow, atomic("TIMESTAMP(3)").precision
    (DataType(int64), Decimal128Type(decimal128(9, 2)), 3)
    >>> atomic("TIMESTAMP(6) WITH LOCAL TIME ZONE").arrow
    TimestampType(timestamp[us, tz=UTC])
    """
    found = _SPELLED.fullmatch(spelled.upper())
    if found is None:
        raise UnknownType(spelled)
    name, null = found["name"], found["null"]
    nullable = null is None or "NOT" not in null
    plain = spelled if null is None else spelled[: found.start("null")].rstrip()
    first = None if found["first"] is None else int(found["first"])
    second = None if found["second"] is None else int(found["second"])
    if found["zone"] is not None and name != "TIMESTAMP" and not (name == "TIME" and "OUT" in found["zone"]):
        raise UnknownType(spelled)
    if name in _PLAIN and first is None:
        return Atomic(_PLAIN[name], plain, nullable)
    if name in _SIZED and second is None:
        # Without a length it is 1, as in SQL.
        return Atomic(_SIZED[name], plain, nullable, length=1 if first is None else first)
    if name in _DECIMALS:
        return _decimal(plain, first, second, nullable=nullable)
    if name == "TIME" and second is None and (first or 0) <= _NANOS:
        return Atomic(pa.time64("us"), plain, nullable, precision=first or 0)
    if name in _TIMESTAMPS and second is None:
        local = name == "TIMESTAMP_LTZ" or "LOCAL" in (found["zone"] or "")
        if found["zone"] is not None and "WITH TIME" in found["zone"]:
            raise UnknownType(spelled)
        precision = _DEFAULT_TIMESTAMP if first is None else first
        if precision <= _NANOS:
            unit = "us" if precision <= _MICROS else "ns"
            return Atomic(pa.timestamp(unit, "UTC" if local else None), plain, nullable, precision=precision)
    raise UnknownType(spelled)


def _decimal(name: str, first: int | None, second: int | None, *, nullable: bool) -> Atomic:
    precision, scale = _DEFAULT_DECIMAL if first is None else first, second or 0
    if not (1 <= precision <= MAX_DIGITS and 0 <= scale <= precision):
        raise UnknownType(name)
    return Atomic(pa.decimal128(precision, scale), name, nullable, precision=precision)
