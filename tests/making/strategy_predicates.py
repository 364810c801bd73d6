"""Random predicates whose literals lie on, beside or across the values that the rows hold.

Literals have the types that SQL text gives them (an integer is as wide as it must be, a decimal has its own digits)
or a column's own type, and are always comparable with the term by Spark's rules. Predicates that would stop a query
with a cast error are not made.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Final, get_args

import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
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
    Operator,
    Or,
    Ref,
    StartsWith,
    Term,
    Truth,
)
from tamis.predicate.type_names import type_name
from tests.making.oracle import CastError, Path, Row, Types, evaluate
from tests.making.strategy_values import decimal_of, values

__all__ = ["literals", "predicates"]

NTZ: Final = pa.timestamp("us")
LTZ: Final = pa.timestamp("us", tz="UTC")
_EPOCH = datetime(1970, 1, 1)
_DATE_UNITS = ("year", "quarter", "month", "week")
_TIME_UNITS = (*_DATE_UNITS, "day", "hour", "minute", "second", "millisecond", "microsecond")
_OFFSETS = ("", "", "", "Z", "+00:00", "-03:30", "+5", " Europe/Paris")


# -- literals -------------------------------------------------------------------------------------------------


def literals(type_: pa.DataType, near: Sequence[object] = ()) -> SearchStrategy[Literal]:
    """Literals for a term of this type, near the given values where there are any; never NULL."""
    known = [value for value in near if value is not None]
    close = values(type_)
    if known:
        close = st.integers(0, 3).flatmap(lambda n: values(type_) if n == 3 else st.sampled_from(known))
    if pt.is_boolean(type_):
        words = st.sampled_from(["true", "FALSE", " t ", "n", "yes", "0"]).map(_text)
        return st.one_of(st.booleans().map(lambda b: Literal(b, type_)), words)
    if pt.is_integer(type_) or pt.is_floating(type_) or pt.is_decimal(type_):
        return close.flatmap(lambda value: _numeric(value, type_))
    if pt.is_date(type_):
        return st.builds(_moved_day, close, st.integers(-1, 1)).flatmap(_of_day)
    if pt.is_timestamp(type_):
        return st.builds(_moment, close, st.sampled_from([-1_000_000, -1, 0, 0, 1])).flatmap(_of_moment)
    if pt.is_time(type_):
        clocks = close.map(lambda v: v if isinstance(v, time) else _clock(v))
        return clocks.flatmap(lambda t: st.sampled_from([Literal(t, pa.time64("us")), _text(t.isoformat())]))
    if type_ == pa.uuid():
        return close.flatmap(_of_uuid)
    if pt.is_string(type_) or pt.is_large_string(type_):
        return st.builds(_bent, close, st.sampled_from(["", "", "\x00", "a", "\U0010ffff"])).map(_text)
    return st.builds(_bent, close, st.sampled_from([b"", b"", b"\x00", b"\xff"])).flatmap(_of_bytes)


def _text(value: str) -> Literal:
    return Literal(value, pa.string())


def _integer(value: int) -> Literal:
    """As SQL types it: an int if it fits, else a long, else a decimal."""
    for bits, type_ in ((32, pa.int32()), (64, pa.int64())):
        if -(1 << bits - 1) <= value < 1 << bits - 1:
            return Literal(value, type_)
    return _decimal(Decimal(value))


def _decimal(value: Decimal) -> Literal:
    """As SQL types it: as many digits as are written."""
    _, digits, exponent = value.as_tuple()
    scale = max(-int(exponent), 0)
    precision = max(len(digits) + max(int(exponent), 0), scale, 1)
    return Literal(value, pa.decimal128(precision, scale))


def _numeric(value: object, type_: pa.DataType) -> SearchStrategy[Literal]:
    """The number itself, its neighbours, halves and far ends, written in any numeric type or as text."""
    assert isinstance(value, (int, float, Decimal))
    options = [Literal(value, type_)]
    if isinstance(value, float) and not math.isfinite(value):
        words = {"inf": ["inf", "Infinity"], "-inf": ["-inf", "-Infinity"], "nan": ["NaN", "nan"]}[str(value)]
        return st.sampled_from([*options, Literal(value, pa.float64()), *map(_text, words)])
    double = float(value)
    options += [Literal(double, pa.float64()), Literal(math.nextafter(double, math.inf), pa.float64())]
    if abs(double) < 1e38:
        options.append(Literal(double, pa.float32()))
    whole = int(value)
    options += [_integer(whole + step) for step in (-1, 0, 1) if abs(whole) < 10**37]
    options += [_integer(n) for n in (0, 1, 128, 1 << 31, 1 << 63, 10**20, -(10**20))]
    if abs(whole) < 10**36:
        options += [_decimal(decimal_of(whole * 10 + step, 1)) for step in (-5, 0, 5)]
        options += [_decimal(decimal_of(whole * 100 + 1, 2)), _decimal(decimal_of(10**25 - 1, 25))]
    if pt.is_decimal(type_):
        assert isinstance(value, Decimal)
        options += [_decimal(value), Literal(value, type_)]
    if pt.is_integer(type_):
        options += [_text(f" {whole} "), _text(f"{whole:+d}")]
    else:
        options += [_text(repr(double)), _text(f"{double:.3e}"), _text(str(whole))]
    return st.sampled_from(options)


def _moved_day(value: object, step: int) -> date:
    assert isinstance(value, date)
    ordinal = value.toordinal() + step
    return date.fromordinal(min(max(ordinal, 2), date.max.toordinal() - 1))


def _of_day(day: date) -> SearchStrategy[Literal]:
    midnight = datetime(day.year, day.month, day.day)
    iso = day.isoformat()
    return st.sampled_from(
        [
            Literal(day, pa.date32()),
            Literal(day, pa.date32()),
            Literal(iso, pa.date32()),
            _text(iso),
            _text(f" {day.year:04}-{day.month}-{day.day} "),
            _text(iso[:7]),
            _text(iso[:4]),
            _text(f"{iso} 13:00:00+05:00"),
            Literal(midnight, NTZ),
            Literal(midnight, LTZ),
            Literal(midnight + timedelta(hours=13), NTZ),
            Literal(midnight.replace(tzinfo=UTC), LTZ),
            Literal(f"{iso} 00:00:00", LTZ),
        ]
    )


def _moment(value: object, micros: int) -> datetime:
    """A value of any unit as a naive datetime in microseconds, moved a little."""
    if isinstance(value, int):
        value = _EPOCH + timedelta(microseconds=value // 1_000)
    assert isinstance(value, datetime)
    least, most = datetime(1, 1, 2), datetime(9999, 12, 30)
    return min(max(value.replace(tzinfo=None), least), most) + timedelta(microseconds=micros)


def _of_moment(moment: datetime) -> SearchStrategy[Literal]:
    iso = moment.isoformat(" ")
    return st.one_of(
        st.sampled_from(
            [
                Literal(moment, NTZ),
                Literal(moment, LTZ),
                Literal(moment.replace(tzinfo=UTC), LTZ),
                Literal(iso, NTZ),
                Literal(iso, LTZ),
                Literal(moment.date(), pa.date32()),
                _text(moment.date().isoformat()),
                _text(iso[:16]),
                _text(moment.isoformat("T") + ("" if moment.microsecond else ".0") + "999"),
            ]
        ),
        st.sampled_from(_OFFSETS).map(lambda offset: _text(iso + offset)),
        st.sampled_from(_OFFSETS).map(lambda offset: Literal(iso + offset, LTZ)),
    )


def _clock(value: object) -> time:
    assert isinstance(value, int)  # nanoseconds of the day
    return (_EPOCH + timedelta(microseconds=value // 1_000)).time()


def _of_uuid(value: object) -> SearchStrategy[Literal]:
    assert isinstance(value, uuid.UUID)
    return st.sampled_from(
        [_text(str(value)), _text(str(value).upper()), _text(str(value)[:9]), Literal(value, pa.uuid())]
    )


def _of_bytes(value: object) -> SearchStrategy[Literal]:
    assert isinstance(value, bytes)
    options = [Literal(value, pa.binary())]
    if value.isascii():
        options.append(_text(value.decode()))
    return st.sampled_from(options)


def _bent(value: object, suffix: str | bytes) -> object:
    """The value, a little more, or (every other time) a little less."""
    return value + suffix if suffix else value  # type: ignore[operator] # both text or both bytes


# -- leaves ---------------------------------------------------------------------------------------------------


def _terms(path: Path, type_: pa.DataType) -> list[tuple[SearchStrategy[Term], pa.DataType]]:
    """The column, and the functions that may stand over it, with the type of their results."""
    ref = Ref(path)
    found: list[tuple[SearchStrategy[Term], pa.DataType]] = [(st.just(ref), type_)] * 4
    if pt.is_date(type_) or pt.is_timestamp(type_):
        found += [
            (st.just(Call("date", ref)), pa.date32()),
            (st.just(Call("year", ref)), pa.int32()),
            (st.sampled_from(_DATE_UNITS).map(lambda unit: Call("trunc", ref, unit)), pa.date32()),
            (st.sampled_from(_TIME_UNITS).map(lambda unit: Call("date_trunc", ref, unit)), LTZ),
        ]
    wider = _WIDER.get(type_, [])
    if pt.is_decimal(type_) and type_.precision <= 30:
        wider = [pa.decimal128(type_.precision + 3, type_.scale + 2), pa.decimal128(38, type_.scale + 1)]
    found += [(st.just(Call("cast", ref, type_name(to))), to) for to in wider]
    if pt.is_string(type_) or pt.is_binary(type_) or type_ == pa.uuid():
        result = pa.string() if type_ == pa.uuid() else type_
        found.append((st.integers(-1, 4).map(lambda length: Call("left", ref, length)), result))
    return found


_WIDER: Final = {
    pa.bool_(): [pa.int32()],
    pa.int8(): [pa.int64(), pa.float32(), pa.decimal128(5, 2)],
    pa.int16(): [pa.int32(), pa.float64()],
    pa.int32(): [pa.int64(), pa.float64(), pa.decimal128(20, 4)],
    pa.int64(): [pa.int64(), pa.decimal128(19, 0), pa.decimal128(38, 10)],
    pa.float32(): [pa.float64()],
}
"""What numbers are cast to, and stay apart: a cast that rounds or fails is for Spark alone."""


def _near(known: Sequence[object], type_: pa.DataType, result: pa.DataType) -> list[object]:
    """The rows' values seen through a function: roughly what it may return."""
    if pt.is_boolean(type_):
        return [int(bool(value)) for value in known]
    if pt.is_integer(type_) or pt.is_floating(type_) or pt.is_decimal(type_):
        return [_converted(value, result) for value in known]
    if result == type_:
        return [value[:n] for value in known for n in (2, 9)] if _sliced(known) else list(known)
    if type_ == pa.uuid():
        return [str(value)[:3] for value in known]
    if pt.is_date(type_):
        days = [value for value in known if isinstance(value, date)]
        if result == LTZ:
            return [datetime(day.year, day.month, day.day) for day in days]
    else:
        moments = [_moment(value, 0) for value in known]
        if result == LTZ:
            return [m.replace(minute=0, second=0, microsecond=0) for m in moments] + list(moments)
        days = [moment.date() for moment in moments]
    return [day.year for day in days] if pt.is_integer(result) else [*days, *(day.replace(day=1) for day in days)]


def _converted(value: object, result: pa.DataType) -> object:
    """A number as a value of another type, roughly; itself where it is none of that type."""
    assert isinstance(value, (int, float, Decimal))
    if pt.is_decimal(result):
        return Decimal(value) if abs(value) < 10**20 else Decimal(0)
    if pt.is_floating(result):
        return float(value)
    most = 1 << result.bit_width - 1
    return min(max(int(value), -most), most - 1)


def _sliced(known: Sequence[object]) -> bool:
    return bool(known) and all(isinstance(value, (str, bytes)) for value in known)


@st.composite
def _leaf(draw: DrawFn, types: Types, rows: Sequence[Row], *, opaque: bool) -> Node:
    path = draw(st.sampled_from(sorted(types)))
    type_ = types[path]
    known = [row[path] for row in rows if row[path] is not None]
    made, result = draw(st.sampled_from(_terms(path, type_)))
    term = draw(made)
    near = known if isinstance(term, Ref) else _near(known, type_, result)
    literal = literals(result, near)
    if (pt.is_string(type_) and isinstance(term, Ref)) and _castable(path, type_, rows):
        literal = st.one_of(literal, draw(st.sampled_from(_castable(path, type_, rows))))
    shapes = ["compare"] * 4 + ["in", "in", "null", "truth"]
    texts = pt.is_string(result) or result == pa.uuid()
    shapes += ["like", "like", "starts"] if texts else ["starts"] if pt.is_binary(result) else []
    shapes += ["ref", "ref"] if pt.is_boolean(result) else []
    shapes += ["opaque"] if opaque else []
    match draw(st.sampled_from(shapes)):
        case "compare":
            operator: Operator = draw(st.sampled_from(get_args(Operator)))
            return Compare(operator, term, draw(_or_null(literal, 12)))
        case "in":
            size = draw(st.sampled_from([1, 2, 3, 12]))
            return In(term, tuple(draw(st.lists(_or_null(literal, 8), min_size=1, max_size=size))))
        case "null":
            return IsNull(term)
        case "truth":
            return Constant(draw(st.sampled_from([True, False, None])))
        case "like":
            return draw(_likes(term, [str(value) for value in near]))
        case "starts":
            return StartsWith(term, draw(_or_null(_prefixes(near, texts=texts), 12)))
        case "opaque":
            return Opaque(f"hash({'.'.join(path)}) % {draw(st.integers(2, 5))} = 0", (Ref(path),))
    return Ref(path)


def _or_null(literal: SearchStrategy[Literal], one_in: int) -> SearchStrategy[Literal]:
    # The last of the choices: Hypothesis prefers the first ones.
    null = st.one_of(st.just(Literal(None, pa.null())), literal.map(lambda one: Literal(None, one.type)))
    return st.integers(1, one_in).flatmap(lambda n: null if n == one_in else literal)


def _castable(path: Path, type_: pa.DataType, rows: Sequence[Row]) -> list[SearchStrategy[Literal]]:
    """Numbers, days and moments, wherever Spark can read each row's text as one."""
    probes = {
        Literal(1.0, pa.float64()): literals(pa.int32()),
        Literal(date(2024, 1, 15), pa.date32()): st.dates(date(2024, 1, 1)).map(lambda d: Literal(d, pa.date32())),
    }
    found = []
    for probe, strategy in probes.items():
        try:
            for row in rows:
                evaluate(Compare("=", Ref(path), probe), row, {path: type_})
        except CastError:
            continue
        found.append(strategy)
    return found


@st.composite
def _likes(draw: DrawFn, term: Term, near: Sequence[str]) -> Node:
    """Prefixes for the most part, then `_`, `%` inside, and escapes."""
    text = draw(st.sampled_from(near)) if near else draw(st.text("ab", max_size=3))
    text = text[: draw(st.integers(0, 6))]
    escape = draw(st.sampled_from(["\\", "\\", "!"]))
    safe = "".join(escape + c if c in ("%", "_", escape) else c for c in text)
    tail = draw(st.sampled_from(["%", "%", "%", "", "_", "_%", "%_", "%b%", escape + "%", escape + escape + "%"]))
    return Like(term, draw(st.sampled_from(["", "", "", "_", "%"])) + safe + tail, escape)


def _prefixes(near: Sequence[object], *, texts: bool) -> SearchStrategy[Literal]:
    if texts:
        known = st.sampled_from([str(value) for value in near]) if near else st.text("ab", max_size=3)
        return st.builds(lambda value, n: _text(value[:n]), known, st.integers(0, 5))
    raw = st.sampled_from([v for v in near if isinstance(v, bytes)]) if near else st.binary(max_size=3)
    return st.builds(lambda value, n: Literal(value[:n], pa.binary()), raw, st.integers(0, 5))


# -- trees ----------------------------------------------------------------------------------------------------


def predicates(
    types: Mapping[Path, pa.DataType], rows: Sequence[Row] = (), *, depth: int = 4, opaque: bool = True
) -> SearchStrategy[Node]:
    """Trees of at most this depth, leaves included. With rows, literals are near their values."""
    leaf = _leaf(types, rows, opaque=opaque).filter(lambda node: _runs(node, rows, types))
    tree = leaf
    for _ in range(depth - 1):
        # As one choice of two: one_of alone would spread its weight over all that is below.
        tree = st.booleans().flatmap(lambda small, tree=tree: leaf if small else _branch(tree))
    return tree


def _branch(below: SearchStrategy[Node]) -> SearchStrategy[Node]:
    operands = st.lists(below, min_size=2, max_size=3).map(tuple)
    shapes = st.sampled_from(["and", "or", "and", "or", "and one", "or one", "not", "not", "truth"])
    return shapes.flatmap(
        {
            "and": operands.map(And),
            "or": operands.map(Or),
            "and one": below.map(lambda node: And((node,))),
            "or one": below.map(lambda node: Or((node,))),
            "not": below.map(Not),
            "truth": st.builds(Truth, below, st.sampled_from([True, False, None])),
        }.__getitem__
    )


def _runs(node: Node, rows: Sequence[Row], types: Types) -> bool:
    """Whether Spark would get through the rows: no text in them that fails to cast."""
    try:
        for row in rows:
            evaluate(node, row, types)
    except CastError:
        return False
    return True
