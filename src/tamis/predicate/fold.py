"""The constants of a SQL expression, computed as Spark 4 computes them.

Law: the value and the type are those that Spark gets with its default (ANSI) rules, or there is none. What would
overflow, divide by zero, or round to other than Spark's digits, is not folded.
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

from tamis.predicate.casts import MAX_DIGITS, ZONED, cast, decimal_literal, int_literal, target, to_float32
from tamis.predicate.nodes import Literal
from tamis.predicate.times import civil, days, parse_date

__all__ = ["fold"]

_NUMBER = re.compile(r"(\d+|\d*\.\d*)(?:[eE]([+-]?\d+))?(BD|[LSYDF])?", re.IGNORECASE)
_SUFFIXES = {"L": pa.int64(), "S": pa.int16(), "Y": pa.int8()}
_INTS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_INT_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
_EXACT = Context(prec=4 * MAX_DIGITS, traps=[Inexact, InvalidOperation, DivisionByZero, Overflow])
"""Arithmetic that raises rather than rounds."""
_DIVISION_SCALE = 6
_CASTS = {
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


def fold(expression: exp.Expression) -> Literal | None:
    """The literal that expression always is; None if it reads a column, or if its value is not certain."""
    match expression:
        case exp.Paren():
            return fold(expression.this)
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
            return _negated(expression.this)
        case exp.Cast():
            return cast(fold(expression.this), target(expression.to), typed=type(expression) is exp.Cast)
        case exp.Anonymous():
            return _function(expression.name.lower(), expression.expressions)
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.IntDiv() | exp.Mod():
            return _arithmetic(expression)
    return None


def _number(text: str, sign: int = 1) -> Literal | None:
    """A number as it is written. Its sign belongs to it: -128Y is a tinyint, 128Y is none."""
    found = _NUMBER.fullmatch(text)
    if found is None or found[1] == ".":
        return None
    mantissa, exponent, suffix = found[1], found[2], (found[3] or "").upper()
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


def _negated(operand: exp.Expression) -> Literal | None:
    if isinstance(operand, exp.Literal) and not operand.is_string:
        return _number(operand.this, -1)
    literal = fold(operand)
    match literal:
        case Literal(value=bool()):
            return None
        case Literal(value=int(value), type=type_):
            return int_literal(-value, type_)
        case Literal(value=Decimal() | float() as value, type=type_):
            return Literal(-value if isinstance(value, float) else value.copy_negate(), type_)
    return None


def _function(name: str, arguments: list[exp.Expression]) -> Literal | None:
    match arguments:
        case [argument] if name in _CASTS:
            literal = fold(argument)
            if name.startswith("to_") and literal is not None and literal.type != pa.string():
                return None
            return cast(literal, _CASTS[name])
        case [start, step] if name in _DAYS:
            literal = fold(start)
            if literal is not None and literal.type == pa.string():
                literal = cast(literal, pa.date32())
            return _moved(literal, fold(step), _DAYS[name])
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


def _arithmetic(expression: exp.Expression) -> Literal | None:
    left, right = fold(expression.this), fold(expression.expression)
    if left is None or right is None or left.value is None or right.value is None:
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
    return _exactly(a / b, Fraction(a, b), pa.float64())


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
    found = decimal_literal(value, precision, scale)
    return found if found is not None and found.value == value else None


def _as_decimal(expression: exp.Expression, literal: Literal) -> Literal:
    """An integer beside a decimal: with its own digits if it is written, with its type's if it is computed."""
    if pt.is_decimal(literal.type):
        return literal
    while isinstance(expression, exp.Paren):
        expression = expression.this
    bare = expression.this if isinstance(expression, exp.Neg) else expression
    written = isinstance(bare, exp.Literal) and literal.type != pa.int8()  # Spark forgets tinyints here
    digits = len(str(literal.value).lstrip("-")) if written else _INT_DIGITS[literal.type]
    return Literal(Decimal(str(literal.value)), pa.decimal128(digits, 0))


def _floats(expression: exp.Expression, left: Literal, right: Literal) -> Literal | None:
    """Floats stay floats among themselves, except that they divide as doubles; else both are doubles."""
    both = pt.is_float32(left.type) and pt.is_float32(right.type)
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
