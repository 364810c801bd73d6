"""A predicate over one row, as Spark 4.1 (ANSI on) answers it: true, false or unknown.

This is what the sieve is held against, so it is slow, plain and written apart from it: it reads the nodes that the
user's text becomes, before anything is bound, and shares no code with tamis but their definitions.
tests/spark/test_oracle_is_spark.py checks it against the real Spark.

>>> import pyarrow as pa
>>> from tamis.predicate.nodes import Compare, Literal, Ref
>>> x = ("x",)
>>> less = Compare("<", Ref(x), Literal(5, pa.int32()))
>>> [evaluate(less, {x: value}, {x: pa.int64()}) for value in (4, 5, None)]
[True, False, None]
"""

from __future__ import annotations

import math
import re
import uuid
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import reduce

import pyarrow as pa
from pyarrow import types as pt

from tamis.predicate.nodes import (
    And,
    Call,
    Compare,
    Constant,
    In,
    IsNull,
    Like,
    Literal,
    Node,
    Not,
    Opaque,
    Or,
    Ref,
    StartsWith,
    Term,
    Truth,
)
from tests.making.oracle_casts import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DAY,
    DOUBLE,
    FLOAT,
    INT,
    INTEGRALS,
    LONG,
    LONG_MAX,
    LONG_MIN,
    LTZ,
    NTZ,
    NULL,
    SECOND,
    SHORT,
    STRING,
    TIME,
    CastError,
    Kind,
    cast,
    civil,
    to_float32,
    to_instant,
    to_scale,
    trunc_days,
    trunc_instant,
)

__all__ = ["CastError", "Incomparable", "Path", "Row", "Types", "evaluate", "kind_of", "literal_of", "order", "read"]

Path = tuple[str, ...]
Row = Mapping[Path, object]
"""One row: a Python value by path. Timestamps and times may be given as a count of their type's unit (ns must)."""
Types = Mapping[Path, pa.DataType]
Typed = tuple[object, Kind]

MAX_DIGITS = 38
_UNIT_NS = {"s": SECOND, "ms": 1_000_000, "us": 1_000, "ns": 1}
_INTEGRAL_DIGITS = {BYTE: 3, SHORT: 5, INT: 10, LONG: 20}
_PRECEDENCE = (BYTE, SHORT, INT, LONG, FLOAT, DOUBLE)
_DATETIMES = (DATE, NTZ, LTZ)
_CAST_KINDS = {"tinyint": BYTE, "smallint": SHORT, "int": INT, "bigint": LONG, "float": FLOAT, "double": DOUBLE}


class Incomparable(TypeError):
    """Spark refuses the query: it knows no common type for both sides."""


def evaluate(node: Node, row: Row, types: Types, zone: str = "UTC") -> bool | None:
    """True, False, or None where SQL says unknown. CastError where Spark would stop the query.

    An Opaque node gets one answer per row out of the three, by chance but always the same one: nobody may rely on it.
    """
    match node:
        case Constant(value):
            return value
        case Not(operand):
            return _not(evaluate(operand, row, types, zone))
        case And(operands):
            return _all(evaluate(operand, row, types, zone) for operand in operands)
        case Or(operands):
            return _not(_all(_not(evaluate(operand, row, types, zone)) for operand in operands))
        case Truth(operand, value):
            return evaluate(operand, row, types, zone) is value
        case IsNull(term):
            return _term(term, row, types, zone)[0] is None
        case Compare(operator, term, literal):
            return _compare(operator, _side(term, row, types, zone), literal_of(literal, zone), zone)
        case In(term, literals):
            return _in(_side(term, row, types, zone), literals, zone)
        case Like(term, pattern, escape):
            value = _text(_term(term, row, types, zone))
            return None if value is None else _like(value, pattern, escape)
        case StartsWith(term, prefix):
            return _starts(_term(term, row, types, zone), literal_of(prefix, zone))
        case Opaque(sql, refs):
            seen = repr((sql, [(ref.path, row[ref.path]) for ref in refs]))
            return (True, False, None)[zlib.crc32(seen.encode("utf-8", "replace")) % 3]
        case Ref() | Call():
            value, kind = _term(node, row, types, zone)
            if kind not in (BOOLEAN, NULL):
                raise Incomparable(f"a condition is boolean, not {kind.name}")
            assert value is None or isinstance(value, bool)
            return value
    raise TypeError(f"no such node: {node!r}")


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


def _all(values: Iterable[bool | None]) -> bool | None:
    found = list(values)
    if False in found:
        return False
    return None if None in found else True


# -- comparing --------------------------------------------------------------------------------------------


def _compare(operator: str, side: _Side, right: Typed, zone: str) -> bool | None:
    value, kind = side.typed
    if right[0] is None:
        _wider(kind, right[1])
        return value is None if operator == "<=>" else None
    if kind in INTEGRALS and right[1].name == "decimal" and operator in ("<", "<=", ">", ">="):
        # Spark rewrites `integer < decimal literal` before it looks for a common type: nothing is rounded, and
        # beyond the range of a long the answer is a constant, for NULL too.
        limit = right[0]
        assert isinstance(limit, Fraction)
        if not LONG_MIN <= limit <= LONG_MAX:
            return operator in ("<", "<=") if limit > 0 else operator in (">", ">=")
        return None if value is None else _holds(operator, order(Fraction(_int(value)), limit))
    if kind.name == "decimal" and right[1] in INTEGRALS:
        # In a comparison, though not in an IN list, an integer literal takes no more digits than it has.
        right = right[0], Kind("decimal", len(str(abs(_int(right[0])))), 0)
    common = _wider(kind, right[1])
    return _optimized(operator, side, (cast(right[0], right[1], common, zone), common), zone)


def _optimized(operator: str, side: _Side, right: Typed, zone: str) -> bool | None:
    """A comparison with a literal of the common type, as Spark's optimiser leaves it.

    The optimiser takes casts between dates and timestamps off the column and puts them on the literal. Around a
    change of clocks that is not the same: mornings exist twice or not at all. What it leaves is what rows meet.
    """
    (value, kind), (limit, common) = side.typed, right
    if kind == NTZ and common == LTZ:
        local = cast(limit, LTZ, NTZ, zone)
        if cast(local, NTZ, LTZ, zone) == limit:
            limit, common = local, NTZ
    elif kind == DATE and common in (NTZ, LTZ):
        day = cast(limit, common, DATE, zone)
        missed = order(limit, cast(day, DATE, common, zone))
        if missed and operator in ("=", "!=", "<=>"):
            return None if value is None and operator != "<=>" else operator == "!="
        if missed:
            operator = {"<0": "<", ">0": ">=", "<1": "<=", ">1": ">"}[operator[0] + "01"[missed > 0]]
        limit, common = day, DATE
    if side.inner and common == DATE and operator != "<=>":
        return _of_day(operator, side.inner, _int(limit), zone)
    a = cast(value, kind, common, zone)
    if operator == "<=>":
        return a is not None and order(a, limit) == 0
    return None if a is None else _holds(operator, order(a, limit))


def _of_day(operator: str, inner: Typed, day: int, zone: str) -> bool | None:
    """date(timestamp) against a day: the timestamp against the day's first moment and the next day's."""
    value, kind = inner
    if value is None:
        return None
    start, end = (_int(cast(one, DATE, kind, zone)) for one in (day, day + 1))
    at = _int(value)
    return {
        "=": start <= at < end,
        "!=": not start <= at < end,
        "<": at < start,
        "<=": at < end,
        ">": at >= end,
        ">=": at >= start,
    }[operator]


def _in(side: _Side, literals: tuple[Literal, ...], zone: str) -> bool | None:
    """One common type for the value and the whole list, found from left to right: the list's order matters."""
    value, kind = side.typed
    rights = [literal_of(literal, zone) for literal in literals]
    common = reduce(_wider, [kind, *(kind for _, kind in rights)])
    members = [cast(member, kind, common, zone) for member, kind in rights]
    if None not in members and all(order(member, members[0]) == 0 for member in members):
        return _optimized("=", side, (members[0], common), zone)  # a list of one value is a comparison
    value = cast(value, kind, common, zone)
    if value is None:
        return None
    if any(member is not None and order(value, member) == 0 for member in members):
        return True
    return None if None in members else False


def _holds(operator: str, order: int) -> bool:
    return {
        "=": order == 0,
        "!=": order != 0,
        "<": order < 0,
        "<=": order <= 0,
        ">": order > 0,
        ">=": order >= 0,
    }[operator]


def order(a: object, b: object) -> int:
    """-1, 0 or 1 for two values of one kind. NaN equals NaN and is greatest; text goes by code point."""
    if isinstance(a, float) and isinstance(b, float) and (math.isnan(a) or math.isnan(b)):
        return math.isnan(a) - math.isnan(b)
    if isinstance(a, str) and isinstance(b, str):
        a, b = a.encode(), b.encode()
    return (a > b) - (a < b)  # type: ignore[operator] # of one kind, by contract


def _wider(a: Kind, b: Kind) -> Kind:
    """The type that Spark compares both in."""
    if b in (a, NULL):
        return a
    if a == NULL:
        return b
    if b == STRING:
        a, b = b, a
    if a == STRING:
        if b in INTEGRALS:
            return LONG
        return DOUBLE if b in (FLOAT, DOUBLE) or b.name == "decimal" else b
    if "decimal" in (a.name, b.name):
        return _wider_decimal(a, b)
    if a in _PRECEDENCE and b in _PRECEDENCE:
        wide = max(a, b, key=_PRECEDENCE.index)
        return DOUBLE if wide == FLOAT and {a, b} & {INT, LONG} else wide
    if a in _DATETIMES and b in _DATETIMES:
        return max(a, b, key=_DATETIMES.index)
    raise Incomparable(f"{a.name} and {b.name}")


def _wider_decimal(a: Kind, b: Kind) -> Kind:
    """Room for both; where 38 digits do not give it, digits after the point go, and values are rounded."""
    if {a, b} & {FLOAT, DOUBLE}:
        return DOUBLE
    try:
        (ap, as_), (bp, bs) = (
            (_INTEGRAL_DIGITS[k], 0) if k.name != "decimal" else (k.precision, k.scale) for k in (a, b)
        )
    except KeyError as error:
        raise Incomparable(f"{a.name} and {b.name}") from error
    scale = max(as_, bs)
    digits = max(ap - as_, bp - bs) + scale
    lost = max(digits - MAX_DIGITS, 0)
    return Kind("decimal", digits - lost, max(scale - lost, 0))


# -- terms ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Side:
    """A term's value, and the timestamp that its outermost date() is taken of."""

    typed: Typed
    inner: Typed | None


def _side(term: Term, row: Row, types: Types, zone: str) -> _Side:
    inner = _term(term.term, row, types, zone) if isinstance(term, Call) and term.function == "date" else None
    return _Side(_term(term, row, types, zone), inner if inner and inner[1] in (NTZ, LTZ) else None)


def _term(term: Term, row: Row, types: Types, zone: str) -> Typed:
    if isinstance(term, Ref):
        return read(row[term.path], types[term.path]), kind_of(types[term.path])
    value, kind = _term(term.term, row, types, zone)
    match term.function:
        case "date":
            return cast(value, kind, DATE, zone), DATE
        case "year":
            day = cast(value, kind, DATE, zone)
            return None if day is None else civil(_int(day))[0], INT
        case "trunc":
            day = cast(value, kind, DATE, zone)
            return None if day is None else trunc_days(_int(day), str(term.argument)), DATE
        case "date_trunc":
            # Without a zone, or a mere date, the value is first read in the session's zone.
            instant = cast(value, kind, LTZ, zone)
            return None if instant is None else trunc_instant(_int(instant), str(term.argument), zone), LTZ
        case "cast":
            target = _CAST_KINDS.get(str(term.argument)) or _decimal_kind(str(term.argument))
            return cast(value, kind, target, zone), target
        case "left":
            if kind not in (STRING, BINARY):
                raise Incomparable(f"left() of {kind.name}")
            assert value is None or isinstance(value, (str, bytes))
            return None if value is None else value[: max(_int(term.argument), 0)], kind
    raise TypeError(f"no such function: {term.function}")


def _decimal_kind(name: str) -> Kind:
    precision, scale = name.removeprefix("decimal(").removesuffix(")").split(",")
    return Kind("decimal", int(precision), int(scale))


def _text(typed: Typed) -> str | None:
    value, kind = typed
    if kind not in (STRING, NULL):
        raise Incomparable(f"LIKE over {kind.name}")
    assert value is None or isinstance(value, str)
    return value


def _like(value: str, pattern: str, escape: str) -> bool:
    """`%` is any text, `_` any one character, line ends too; the escape may stand before these and itself alone."""
    parts: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            escaped = next(characters, "")
            if escaped not in ("%", "_", escape):
                raise CastError(f"the pattern {pattern!r} escapes {escaped!r}")
            parts.append(re.escape(escaped))
        else:
            parts.append({"%": ".*", "_": "."}.get(character) or re.escape(character))
    return re.fullmatch("".join(parts), value, re.DOTALL) is not None


def _starts(left: Typed, right: Typed) -> bool | None:
    """A text against bytes is compared as bytes."""
    common = _wider(left[1], right[1])
    if common not in (STRING, BINARY):
        raise Incomparable(f"startswith over {left[1].name} and {right[1].name}")
    value, prefix = (cast(side, kind, common, "UTC") for side, kind in (left, right))
    if value is None or prefix is None:
        return None
    return bool(value.startswith(prefix))  # type: ignore[attr-defined] # both str or both bytes


# -- reading Python values ------------------------------------------------------------------------------------


def kind_of(type_: pa.DataType) -> Kind:
    """The Spark type that a column of an Arrow type is read as; a uuid is read as its lower-case text."""
    simple = {
        pa.bool_(): BOOLEAN,
        pa.int8(): BYTE,
        pa.int16(): SHORT,
        pa.int32(): INT,
        pa.int64(): LONG,
        pa.float32(): FLOAT,
        pa.float64(): DOUBLE,
        pa.date32(): DATE,
        pa.string(): STRING,
        pa.large_string(): STRING,
        pa.uuid(): STRING,
        pa.null(): NULL,
    }
    if type_ in simple:
        return simple[type_]
    if pt.is_decimal(type_):
        return Kind("decimal", type_.precision, type_.scale)
    if pt.is_timestamp(type_):
        return LTZ if type_.tz else NTZ
    if pt.is_time(type_):
        return TIME
    if pt.is_binary(type_) or pt.is_large_binary(type_) or pt.is_fixed_size_binary(type_):
        return BINARY
    raise Incomparable(f"no order for {type_}")


def literal_of(literal: Literal, zone: str) -> Typed:
    """A typed NULL has its type's say in an IN list. Text under another type is cast to it in the session's zone."""
    kind = kind_of(literal.type)
    if literal.value is None:
        return None, kind
    if isinstance(literal.value, str) and literal.type != pa.uuid():
        return cast(literal.value, STRING, kind, zone), kind
    if isinstance(literal.value, datetime) and literal.value.tzinfo is None and kind == LTZ:
        return to_instant(_datetime_ns(literal.value), zone), kind
    return read(literal.value, literal.type), kind


def read(value: object, type_: pa.DataType) -> object:
    """A row's Python value in the form that the oracle compares."""
    kind = kind_of(type_)
    match value:
        case None:
            return None
        case uuid.UUID():
            return str(value)
        case str() | bytes() | bool():
            return value.lower() if type_ == pa.uuid() and isinstance(value, str) else value
        case datetime():
            if (value.tzinfo is None) == (kind == LTZ):
                raise TypeError(f"{value!r} does not fit {type_}")
            return _datetime_ns(value)
        case date():
            return (value - date(1970, 1, 1)).days
        case time():
            clock = timedelta(hours=value.hour, minutes=value.minute, seconds=value.second)
            return clock.seconds * SECOND + value.microsecond * 1_000
    assert isinstance(value, (int, float, Decimal))
    if kind.name == "decimal":
        return to_scale(Fraction(value), kind.precision, kind.scale)
    if kind in (FLOAT, DOUBLE):
        return to_float32(float(value)) if kind == FLOAT else float(value)
    if kind in (NTZ, LTZ, TIME):
        return _int(value) * _UNIT_NS[type_.unit]
    return _int(value)


def _datetime_ns(value: datetime) -> int:
    since = value.replace(tzinfo=UTC) if value.tzinfo is None else value
    apart = since - datetime(1970, 1, 1, tzinfo=UTC)
    return apart.days * DAY + apart.seconds * SECOND + apart.microseconds * 1_000


def _int(value: object) -> int:
    assert isinstance(value, int)
    return value
