"""The constants of a SQL expression, computed as Spark 4 computes them.

Law: the value and the type are those that Spark gets with its default (ANSI) rules, or there is none. What would
overflow, divide by zero, or round to other than Spark's digits, is not folded. Dates and timestamps are computed with
in the time zone of the session; without one, only where no zone can matter.
"""

from __future__ import annotations

import math
import re
import struct
from decimal import Context, Decimal, DecimalException, DivisionByZero, Inexact, InvalidOperation, Overflow
from fractions import Fraction

import pyarrow as pa
from pyarrow import types as pt
from sqlglot import exp

from tamis.predicate.compare.calendar import cast_moment, moved
from tamis.predicate.compare.casts import (
    MAX_DIGITS,
    WALL,
    ZONED,
    cast,
    decimal_literal,
    int_literal,
    to_float32,
)
from tamis.predicate.compare.times import civil, days, parse_date
from tamis.predicate.compare.zones import Zone
from tamis.predicate.keys import INT_DIGITS
from tamis.predicate.nodes import Literal
from tamis.predicate.sql.functions import FUNCTIONS, joined
from tamis.predicate.sql.intervals import interval
from tamis.predicate.sql.types import target

__all__ = ["CASTS", "fold"]

_NUMBER = re.compile(r"(\d+|\d*\.\d*)(?:[eE]([+-]?\d+))?(BD|[LSYDF])?", re.IGNORECASE)
_SUFFIXES = {"L": pa.int64(), "S": pa.int16(), "Y": pa.int8()}
_INTS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_EXACT = Context(prec=4 * MAX_DIGITS, traps=[Inexact, InvalidOperation, DivisionByZero, Overflow])
"""Arithmetic that raises rather than rounds."""
_DIVISION_SCALE = 6
CASTS = {
    "bigint": pa.int64(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "decimal": pa.decimal128(10, 0),
    "double": pa.float64(),
    "float": pa.float32(),
    "int": pa.int32(),
    "smallint": pa.int16(),
    "string": pa.string(),
    "timestamp": ZONED,
    "tinyint": pa.int8(),
    "to_date": pa.date32(),
    "to_timestamp": ZONED,
}
"""Functions of one argument that are casts."""
MAX_YEAR = 9_999_999
"""The last year that Spark reads in text."""
_DAYS = {"date_add": 1, "dateadd": 1, "date_sub": -1}
_TO = (pa.string(), pa.date32(), ZONED, WALL)
"""What to_date and to_timestamp cast without a format, and what stands for a date."""


def fold(expression: exp.Expression, zone: Zone | None = None) -> Literal | None:
    """The literal that expression always is; None if it reads a column, or if its value is not certain.

    zone is that of the session, where it is known.
    """
    match expression:
        case exp.Paren():
            return fold(expression.this, zone)
        case exp.Literal(is_string=True):
            return Literal(expression.this, pa.string())
        case exp.Literal():
            return _number(expression.this)
        case exp.Null():
            return Literal(None, pa.null())
        case exp.Boolean():
            return Literal(bool(expression.this), pa.bool_())
        case exp.HexString():
            return _binary(expression.this)
        case exp.Neg():
            return _negated(expression.this, zone)
        case exp.Cast():
            typed = type(expression) is exp.Cast
            return _cast(fold(expression.this, zone), target(expression.to), zone, typed=typed)
        case exp.Anonymous():
            return _function(expression.name.lower(), expression.expressions, zone)
        case exp.DPipe():
            sides = fold(expression.this, zone), fold(expression.expression, zone)
            return None if sides[0] is None or sides[1] is None else joined([sides[0], sides[1]])
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.IntDiv() | exp.Mod():
            return _arithmetic(expression, zone)
    return None


def _cast(
    literal: Literal | None, type_: pa.DataType | None, zone: Zone | None, *, typed: bool = False
) -> Literal | None:
    made = cast(literal, type_, typed=typed)
    if made is not None or literal is None or type_ is None:
        return made
    return cast_moment(literal, type_, zone)


def _number(text: str, sign: int = 1) -> Literal | None:
    """A number as it is written. Its sign belongs to it: -128Y is a tinyint, 128Y is none."""
    match = _NUMBER.fullmatch(text)
    if match is None or match[1] == ".":
        return None
    mantissa, exponent, suffix = match[1], match[2], (match[3] or "").upper()
    if suffix == "D" or (exponent and not suffix):
        return _finite(sign * float(text.rstrip("dD")), pa.float64())
    if suffix == "F":
        value = to_float32(float(text.rstrip("fF")))
        return None if value is None else _finite(sign * value, pa.float32())
    if "." in mantissa or suffix == "BD":
        if len(mantissa) > 4 * MAX_DIGITS or abs(int(exponent or 0)) > MAX_DIGITS:
            return None
        written = Decimal(f"{mantissa}e{exponent or 0}")
        return decimal_literal(written if sign > 0 else written.copy_negate())
    if exponent or len(mantissa) > 4 * MAX_DIGITS:
        return None
    whole = sign * int(mantissa)
    if suffix:
        return int_literal(whole, _SUFFIXES[suffix])
    return int_literal(whole, pa.int32()) or int_literal(whole, pa.int64()) or decimal_literal(Decimal(whole))


def _binary(digits: str) -> Literal | None:
    """An odd number of digits lacks a leading zero: X'1F0' is X'01F0'."""
    try:
        return Literal(bytes.fromhex(digits if len(digits) % 2 == 0 else "0" + digits), pa.binary())
    except ValueError:
        return None


def _negated(operand: exp.Expression, zone: Zone | None) -> Literal | None:
    if isinstance(operand, exp.Literal) and not operand.is_string:
        return _number(operand.this, -1)
    literal = fold(operand, zone)
    match literal:
        case Literal(value=bool()):
            return None
        case Literal(value=int(value), type=type_):
            return int_literal(-value, type_)
        case Literal(value=float(value), type=type_):
            return Literal(-value, type_)
        case Literal(value=Decimal() as value, type=type_):
            return decimal_literal(value.copy_negate(), type_.precision, type_.scale)
    return None


def _function(name: str, arguments: list[exp.Expression], zone: Zone | None) -> Literal | None:
    if name in FUNCTIONS:
        literals = [fold(argument, zone) for argument in arguments]
        known = [literal for literal in literals if literal is not None]
        return FUNCTIONS[name](known, zone) if len(known) == len(literals) else None
    match arguments:
        case [argument] if name in CASTS:
            literal = fold(argument, zone)
            if name.startswith("to_") and literal is not None and literal.type not in _TO:
                return None
            return _cast(literal, CASTS[name], zone)
        case [start, step] if name in _DAYS:
            literal = fold(start, zone)
            if literal is not None and not pt.is_date32(literal.type):
                literal = _cast(literal, pa.date32(), zone) if literal.type in _TO else None
            return _moved(literal, fold(step, zone), _DAYS[name])
    return None


def _moved(start: Literal | None, step: Literal | None, sign: int) -> Literal | None:
    """A date some days later; Spark takes no bigint for them."""
    match start, step:
        case Literal(value=str(text), type=type_), Literal(value=int(count), type=width) if (
            pt.is_date32(type_) and width in _INTS[:3]
        ):
            day = parse_date(text)
            if day is None:
                return None
            year, month, of_month = civil(day + sign * count)
            if 1 <= year <= MAX_YEAR and days(year, month, of_month) < 2**31:
                return Literal(f"{year:04}-{month:02}-{of_month:02}", pa.date32())
    return None


def _with_interval(expression: exp.Expression, zone: Zone | None) -> Literal | None:
    """A date or timestamp an interval later or earlier; None if there is no interval in it."""
    start, step = expression.this, interval(expression.expression)
    if step is None and isinstance(expression, exp.Add):
        start, step = expression.expression, interval(expression.this)
    if step is None or not isinstance(expression, (exp.Add, exp.Sub)):
        return None
    literal = fold(start, zone)
    if literal is None or literal.value is None:
        return None
    return moved(literal, -step if isinstance(expression, exp.Sub) else step, zone)


def _arithmetic(expression: exp.Expression, zone: Zone | None) -> Literal | None:
    left, right = fold(expression.this, zone), fold(expression.expression, zone)
    if left is None or right is None:
        return _with_interval(expression, zone)
    if left.value is None or right.value is None:
        return None
    match expression:
        case exp.Add() if pt.is_date32(left.type):
            return _moved(left, right, 1)
        case exp.Add() if pt.is_date32(right.type):
            return _moved(right, left, 1)
        case exp.Sub() if pt.is_date32(left.type):
            return _moved(left, right, -1)
    if not (_is_number(left) and _is_number(right)):
        return None
    try:
        if pt.is_floating(left.type) or pt.is_floating(right.type):
            return _floats(expression, left, right)
        if pt.is_decimal(left.type) or pt.is_decimal(right.type):
            sides = _as_decimal(expression.this, left), _as_decimal(expression.expression, right)
            return _decimals(expression, *sides)
        return _ints(expression, left, right)
    except (ZeroDivisionError, OverflowError, DecimalException):
        return None


def _is_number(literal: Literal) -> bool:
    return isinstance(literal.value, (int, Decimal, float)) and not isinstance(literal.value, bool)


def _ints(expression: exp.Expression, left: Literal, right: Literal) -> Literal | None:
    a, b = int(str(left.value)), int(str(right.value))
    wider = _INTS[max(_INTS.index(left.type), _INTS.index(right.type))]
    match expression:
        case exp.Add():
            return int_literal(a + b, wider)
        case exp.Sub():
            return int_literal(a - b, wider)
        case exp.Mul():
            return int_literal(a * b, wider)
        case exp.IntDiv():
            return int_literal(_toward_zero(Fraction(a, b)), pa.int64())
        case exp.Mod():
            return int_literal(a - b * _toward_zero(Fraction(a, b)), wider)
    return _exactly(float(a) / float(b), Fraction(a, b), pa.float64())  # both are doubles before they are divided


def _decimals(expression: exp.Expression, left: Literal, right: Literal) -> Literal | None:
    """Spark's result types; where they would need more than 38 digits it gives up scale, and this gives up."""
    a, b = Decimal(str(left.value)), Decimal(str(right.value))
    (p1, s1), (p2, s2) = ((side.type.precision, side.type.scale) for side in (left, right))
    match expression:
        case exp.Add() | exp.Sub():
            scale = max(s1, s2)
            precision = max(p1 - s1, p2 - s2) + scale + 1
            value = _EXACT.add(a, b if isinstance(expression, exp.Add) else b.copy_negate())
        case exp.Mul():
            precision, scale, value = p1 + p2 + 1, s1 + s2, _EXACT.multiply(a, b)
        case exp.Div():
            scale = max(_DIVISION_SCALE, s1 + p2 + 1)
            precision, value = p1 - s1 + s2 + scale, _EXACT.divide(a, b)
        case exp.Mod():
            scale = max(s1, s2)
            precision = min(p1 - s1, p2 - s2) + scale
            value = _EXACT.remainder(a, b)
        case _:
            return int_literal(_toward_zero(Fraction(a) / Fraction(b)), pa.int64())
    literal = decimal_literal(value, precision, scale)
    return literal if literal is not None and literal.value == value else None


def _as_decimal(expression: exp.Expression, literal: Literal) -> Literal:
    """An integer beside a decimal: with its own digits if it is written, with its type's if it is computed."""
    if pt.is_decimal(literal.type):
        return literal
    while isinstance(expression, exp.Paren):
        expression = expression.this
    bare = expression.this if isinstance(expression, exp.Neg) else expression
    written = isinstance(bare, exp.Literal) and literal.type != pa.int8()  # Spark forgets tinyints here
    digits = len(str(literal.value).lstrip("-")) if written else INT_DIGITS[literal.type]
    return Literal(Decimal(str(literal.value)), pa.decimal128(digits, 0))


def _floats(expression: exp.Expression, left: Literal, right: Literal) -> Literal | None:
    """Floats stay floats among themselves, except that they divide as doubles; else both are doubles.

    A float and an integer are doubles by ANSI rules and floats without, unless they are divided: left to Spark.
    """
    both = pt.is_float32(left.type) and pt.is_float32(right.type)
    types = (left.type, right.type)
    if pa.float32() in types and any(map(pt.is_integer, types)) and not isinstance(expression, exp.Div):
        return None
    a, b = (cast(side, pa.float64()) for side in (left, right))
    if a is None or b is None or not (math.isfinite(a.value) and math.isfinite(b.value)):  # type: ignore[arg-type] # doubles
        return None
    x, y = float(str(a.value)), float(str(b.value))
    match expression:
        case exp.Add():
            value, exact = x + y, Fraction(x) + Fraction(y)
        case exp.Sub():
            value, exact = x - y, Fraction(x) - Fraction(y)
        case exp.Mul():
            value, exact = x * y, Fraction(x) * Fraction(y)
        case exp.Div():
            both, value, exact = False, x / y, Fraction(x) / Fraction(y)
        case _:
            return None
    return _exactly(value, exact, pa.float32() if both else pa.float64())


def _exactly(value: float, exact: Fraction, type_: pa.DataType) -> Literal | None:
    """A float, unless it had to be rounded."""
    if not math.isfinite(value) or Fraction(value) != exact:
        return None
    if pt.is_float32(type_) and struct.unpack("f", struct.pack("f", value))[0] != value:
        return None
    return Literal(value, type_)


def _finite(value: float, type_: pa.DataType) -> Literal | None:
    return Literal(value, type_) if math.isfinite(value) else None


def _toward_zero(value: Fraction) -> int:
    return math.trunc(value)
