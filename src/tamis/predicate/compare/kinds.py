"""Which types Spark compares with each other, by its ANSI rules.

Law: two kinds that do not compare are told apart only if Spark's analyzer refuses them whatever their values. A type
of no known kind compares with everything: Spark may refuse it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final
from typing import Literal as OneOf

import pyarrow as pa
from pyarrow import types as pt

from tamis.predicate.type_names import is_bytes, is_float, is_list, is_number, is_text

__all__ = ["Kind", "clashing", "kind_of"]

Kind = OneOf[
    "void",
    "boolean",
    "number",
    "text",
    "binary",
    "moment",
    "time",
    "days",
    "months",
    "array",
    "struct",
    "map",
]
"""void is NULL's own; moments are dates and timestamps, days and months intervals of them."""

_CAST_FROM_TEXT: Final = {"boolean", "number", "binary", "moment", "time"}
"""Beside these Spark reads text as one of them."""


def kind_of(type_: pa.DataType) -> Kind | None:
    """The kind of a type; None if Spark has none such, or it is not known how it compares."""
    if pt.is_null(type_):
        return "void"
    if is_number(type_) or is_float(type_):
        return "number"
    if is_text(type_) or type_ == pa.uuid():  # to Spark a uuid is text
        return "text"
    if pt.is_date(type_) or pt.is_timestamp(type_):
        return "moment"
    if is_bytes(type_):
        return "binary"
    if is_list(type_):
        return "array"
    plain: tuple[tuple[Kind, Callable[[pa.DataType], bool]], ...] = (
        ("boolean", pt.is_boolean),
        ("time", pt.is_time),
        ("struct", pt.is_struct),
        ("map", pt.is_map),
        ("days", pt.is_duration),
        ("months", pt.is_interval),
    )
    return next((kind for kind, holds in plain if holds(type_)), None)


def clashing(kinds: Iterable[Kind | None]) -> tuple[Kind, Kind] | None:
    """Two of the kinds that have no common type; None if Spark can bring all of them to one.

    >>> clashing(["number", "text", "void"]), clashing(["number", "text", "moment"])
    (None, ('number', 'moment'))
    """
    first: Kind | None = None
    text = False
    for kind in kinds:
        if kind is None or kind == "void":
            continue
        if kind == "text":
            text = True
        elif first is None:
            first = kind
        elif kind != first:
            return first, kind
    return (first, "text") if text and first is not None and first not in _CAST_FROM_TEXT else None


def castable(source: pa.DataType, target: pa.DataType) -> bool:
    """False only where Spark's analyzer refuses the cast by ANSI rules, whatever the value: NULL has a type as well.

    >>> castable(pa.string(), pa.date32()), castable(pa.date32(), pa.int32()), castable(pa.null(), pa.date32())
    (True, False, True)
    """
    before, after = kind_of(source), kind_of(target)
    if before is None or after is None or before in {after, "void", "time"} or after in {"text", "time"}:
        return True
    instant = source if before == "moment" else target
    if {before, after} == {"moment", "number"} and not (pt.is_timestamp(instant) and instant.tz is not None):
        return False  # of all moments only instants are numbers, of seconds
    return after in _CASTS[before]


_CASTS: Final[dict[Kind, set[Kind]]] = {
    "boolean": {"number"},
    "number": {"boolean", "moment", "days", "months"},
    "text": {"boolean", "number", "binary", "moment", "days", "months"},
    "binary": set(),
    "moment": {"number"},
    "days": {"number"},
    "months": {"number"},
    "array": set(),
    "struct": set(),
    "map": set(),
}
"""What a kind may be cast to, beside itself and text."""
