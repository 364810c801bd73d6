"""Delta's types, as schema strings spell them, and the Arrow types that their values compare in.

A type whose values do not compare as Arrow's would is opaque: pa.null(), of which nothing but null counts is judged.
Law: a type that this page does not name is refused by its name, never guessed.
"""

from __future__ import annotations

import re
from typing import Final

import pyarrow as pa

from tamis.formats.document import Misfit
from tamis.predicate.keys import MAX_DIGITS

__all__ = ["UnknownType", "is_opaque", "padded_length", "primitive"]

_PRIMITIVES: Final = {
    "string": pa.string(),
    "long": pa.int64(),
    "integer": pa.int32(),
    "short": pa.int16(),
    "byte": pa.int8(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "variant": pa.null(),
    "void": pa.null(),
    "null": pa.null(),
}
"""variant has no order; void is what Spark calls a column of which no value was ever seen."""
_DECIMAL: Final = re.compile(r"decimal\(\s*(\d{1,2})\s*,\s*(-?\d{1,2})\s*\)")
_PADDED: Final = re.compile(r"char\(\s*(\d{1,9})\s*\)", re.IGNORECASE)
_BINARY_ORDER: Final = "UTF8_BINARY"


class UnknownType(Misfit):
    """A type that tamis does not know; name is how the schema spells it."""

    def __init__(self, name: str, place: str = "") -> None:
        super().__init__(f"the type {name} is not known", place)
        self.name = name

    def below(self, key: str | int) -> UnknownType:
        """The same, with a step of its path more."""
        return UnknownType(self.name, super().below(key).place)


def primitive(name: str) -> pa.DataType:
    """The Arrow type of a primitive type; UnknownType if there is none of that name.

    >>> primitive("long"), primitive("decimal(9,2)"), primitive("timestamp_ntz")
    (DataType(int64), Decimal128Type(decimal128(9, 2)), TimestampType(timestamp[us]))
    """
    if name in _PRIMITIVES:
        return _PRIMITIVES[name]
    if name == "decimal":
        return pa.decimal128(10, 0)  # Spark's default, written out by every writer that is known
    if found := _DECIMAL.fullmatch(name):
        precision, scale = int(found[1]), int(found[2])
        if 1 <= precision <= MAX_DIGITS and 0 <= scale <= precision:
            return pa.decimal128(precision, scale)
    raise UnknownType(name)


def is_opaque(collation: str | None, written_as: str | None) -> bool:
    """Whether a string column compares otherwise than by its bytes.

    Under a collation 'a' may equal 'A'. A char(n) is padded with blanks, and so is what it is compared with: 'ab'
    equals the 'ab ' of its statistics.
    """
    collated = collation is not None and collation.rsplit(".", 1)[-1].upper() != _BINARY_ORDER
    return collated or (written_as is not None and _PADDED.fullmatch(written_as.strip()) is not None)


def padded_length(spark_type: str) -> int:
    """How many characters the texts of a char(n) have; 0 for any other type."""
    found = _PADDED.fullmatch(spark_type.strip())
    return int(found[1]) if found else 0
