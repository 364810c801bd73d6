"""Functions of constants, computed as Spark computes them.

Law: the value and the type are those that Spark gets by ANSI rules and without them, or there is none. What would
fail or overflow under either is left to Spark, and so is what depends on its locale or its version.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Final

import pyarrow as pa
from pyarrow import types as pt

from tamis.predicate.compare.calendar import date_of, moved_months, truncated, truncated_day
from tamis.predicate.compare.casts import cast, int_literal
from tamis.predicate.compare.kinds import castable
from tamis.predicate.compare.times import civil, days, parse_date
from tamis.predicate.compare.zones import Zone
from tamis.predicate.keys import INT32_MAX, INT32_MIN
from tamis.predicate.nodes import Literal
from tamis.predicate.sql.units import DATE_UNITS, TIMESTAMP_UNITS
from tamis.predicate.type_names import is_float

__all__ = ["FUNCTIONS", "joined"]

_NULL_DATE: Final = Literal(None, pa.date32())
_NULL_TEXT: Final = Literal(None, pa.string())
_COUNTS: Final = {pa.null(), pa.int8(), pa.int16(), pa.int32()}
"""Types of NULLs that Spark takes for an int."""
_INTS: Final = (pa.int8(), pa.int16(), pa.int32(), pa.int64())

Arguments = Sequence[Literal]


def _add_months(arguments: Arguments, zone: Zone | None) -> Literal | None:
    match arguments:
        case [start, months]:
            if start.value is None or months.value is None:
                typed = castable(start.type, pa.date32()) and months.type in _COUNTS
                return _NULL_DATE if typed else None
            count = _int(months)
            return None if count is None else moved_months(start, count, zone)
    return None


def _make_date(arguments: Arguments, _: Zone | None) -> Literal | None:
    """An impossible day is an error by ANSI rules, and NULL without."""
    if len(arguments) != 3:  # noqa: PLR2004 - year, month, day
        return None
    if any(argument.value is None for argument in arguments):
        typed = all(one.type in _COUNTS and (one.value is None or _int(one) is not None) for one in arguments)
        return _NULL_DATE if typed else None
    numbers = [_int(argument) for argument in arguments]
    year, month, day = numbers
    if year is None or month is None or day is None or not 1 <= month <= 12 or not 1 <= day <= 31:  # noqa: PLR2004
        return None
    count = days(year, month, day)
    return date_of(count) if civil(count) == (year, month, day) else None


def _trunc(arguments: Arguments, zone: Zone | None) -> Literal | None:
    match arguments:
        case [start, Literal(value=str(word), type=type_)] if pt.is_string(type_) and start.value is not None:
            unit = DATE_UNITS.get(word.lower())
            return None if unit is None else truncated_day(start, unit, zone)
    return None


def _date_trunc(arguments: Arguments, zone: Zone | None) -> Literal | None:
    match arguments:
        case [Literal(value=str(word), type=type_), start] if pt.is_string(type_) and start.value is not None:
            unit = TIMESTAMP_UNITS.get(word.lower())
            return None if unit is None else truncated(start, unit, zone)
    return None


def _year(arguments: Arguments, _: Zone | None) -> Literal | None:
    """Of a date; the year of an instant is that of a zone."""
    match arguments:
        case [Literal(value=str(text), type=type_)] if pt.is_date32(type_):
            day = parse_date(text)
            return None if day is None else Literal(civil(day)[0], pa.int32())
    return None


def joined(arguments: Arguments, _: Zone | None = None) -> Literal | None:
    """concat, and `||`: the texts in one; NULL if one is. Of binaries a setting makes text, or not."""
    if any(pt.is_binary(argument.type) for argument in arguments):
        return None
    texts = [_text(argument) for argument in arguments]
    if None in texts:
        return None
    if any(text is not None and text.value is None for text in texts):
        return _NULL_TEXT
    return Literal("".join(str(text.value) for text in texts if text is not None), pa.string())


def _lower(arguments: Arguments, _: Zone | None) -> Literal | None:
    return _cased(arguments, str.lower)


def _upper(arguments: Arguments, _: Zone | None) -> Literal | None:
    return _cased(arguments, str.upper)


def _cased(arguments: Arguments, change: Callable[[str], str]) -> Literal | None:
    """Beyond ASCII it depends on Spark's version of Unicode, and on its locale."""
    match arguments:
        case [Literal(value=None)]:
            return _NULL_TEXT
        case [Literal(value=str(text), type=type_)] if pt.is_string(type_) and text.isascii():
            return Literal(change(text), pa.string())
    return None


def _abs(arguments: Arguments, _: Zone | None) -> Literal | None:
    """The least number of an integer type has none."""
    match arguments:
        case [Literal(value=bool())]:
            return None
        case [Literal(value=int(value), type=type_)] if pt.is_integer(type_):
            return int_literal(abs(value), type_)
        case [Literal(value=Decimal() as value, type=type_)]:
            return Literal(value.copy_abs(), type_)
        case [Literal(value=float(value), type=type_)]:
            return Literal(abs(value), type_)
    return None


def _coalesce(arguments: Arguments, _: Zone | None) -> Literal | None:
    """The first that is not NULL, in the type of all; mixed kinds, whose type depends on settings, are left alone."""
    types = list(dict.fromkeys(argument.type for argument in arguments if not pt.is_null(argument.type)))
    if not arguments or not types:
        return None
    common = _common(types)
    first = next((argument for argument in arguments if argument.value is not None), Literal(None, pa.null()))
    return None if common is None else cast(first, common)


def _nvl(arguments: Arguments, zone: Zone | None) -> Literal | None:
    return _coalesce(arguments, zone) if len(arguments) == 2 else None  # noqa: PLR2004 - the value, and another for it


def _common(types: list[pa.DataType]) -> pa.DataType | None:
    if len(types) == 1:
        return types[0]
    if all(type_ in _INTS for type_ in types):
        return max(types, key=_INTS.index)
    return pa.float64() if all(map(is_float, types)) else None


def _int(literal: Literal) -> int | None:
    """The value of an argument that Spark takes as an int."""
    value = literal.value
    fits = type(value) is int and pt.is_integer(literal.type) and INT32_MIN <= value <= INT32_MAX
    return value if fits and isinstance(value, int) else None


def _text(literal: Literal) -> Literal | None:
    if literal.value is None or pt.is_string(literal.type):
        return Literal(literal.value, pa.string())
    exact = isinstance(literal.value, (bool, int)) or (
        isinstance(literal.value, Decimal) and -int(literal.value.as_tuple().exponent) == literal.type.scale
    )
    return cast(literal, pa.string()) if exact else None


FUNCTIONS: Final[dict[str, Callable[[Arguments, Zone | None], Literal | None]]] = {
    "abs": _abs,
    "add_months": _add_months,
    "coalesce": _coalesce,
    "concat": joined,
    "date_trunc": _date_trunc,
    "ifnull": _nvl,
    "lcase": _lower,
    "lower": _lower,
    "make_date": _make_date,
    "nvl": _nvl,
    "trunc": _trunc,
    "ucase": _upper,
    "upper": _upper,
    "year": _year,
}
"""By name; each is given all of its arguments, folded, and the session's time zone if there is one."""
