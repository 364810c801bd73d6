"""What a SQL expression says of columns: the one that it is a monotone function of, or all that it reads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa
from sqlglot import exp

from tamis.predicate.nodes import Call, Ref, Term
from tamis.predicate.sql.folding import CASTS, fold
from tamis.predicate.sql.types import target
from tamis.predicate.sql.units import DATE_UNITS, TIMESTAMP_UNITS
from tamis.predicate.type_names import is_float, is_number, type_name

__all__ = ["path_of", "refs", "term"]

_YEAR = {"year", "y", "years", "yr", "yrs"}
_WITH_UNIT = {"dateadd", "date_add", "datediff", "date_diff", "timediff", "timestampadd", "timestampdiff"}
"""Functions whose first argument of three is a unit, which looks like a column."""


def term(expression: exp.Expression) -> Term | None:
    """The column, or the monotone function of one, that expression is; None if it is neither."""
    match expression:
        case exp.Paren():
            return term(expression.this)
        case exp.Column() | exp.Dot():
            path = path_of(expression)
            return Ref(path) if path else None
        case exp.Cast() if not expression.args.get("safe") and expression.to.this is exp.DataType.Type.DATE:
            return _call("date", expression.this)
        case exp.Cast() if not expression.args.get("safe"):
            return _cast(expression.this, target(expression.to))
        case exp.Extract() if expression.name.lower() in _YEAR:
            return _call("year", expression.expression)
        case exp.Substring():
            start, length = (_int(expression.args.get(name)) for name in ("start", "length"))
            # Spark counts characters from 1, and reads 0 as 1.
            return _left(expression.this, length) if start in {0, 1} else None
        case exp.Anonymous():
            function = _FUNCTIONS.get((expression.name.lower(), len(expression.expressions)))
            return function(*expression.expressions) if function else None
    return None


def refs(expression: exp.Expression) -> tuple[Ref, ...]:
    """Every column that expression reads, once, but for those of subqueries and the parameters of lambdas."""
    found: dict[Ref, None] = {}
    todo = [expression]
    while todo:
        node = todo.pop()
        match node:
            case exp.Query():
                continue
            case exp.Column() | exp.Dot() if path := path_of(node):
                found[Ref(path)] = None
                continue
        inside = list(node.iter_expressions())
        if isinstance(node, exp.Anonymous) and node.name.lower() in _WITH_UNIT and len(node.expressions) == 3:  # noqa: PLR2004 - unit, number, start
            inside = [child for child in inside if child is not node.expressions[0]]
        todo.extend(reversed(inside))
    return tuple(found)


def path_of(expression: exp.Expression) -> tuple[str, ...] | None:
    """The names of `a.b.c`, of any length; None if a part is no plain name."""
    after: list[str] = []
    while isinstance(expression, exp.Dot) and isinstance(expression.expression, exp.Identifier):
        after.append(expression.expression.name)
        expression = expression.this
    if not isinstance(expression, exp.Column) or not all(isinstance(p, exp.Identifier) for p in expression.parts):
        return None
    return (*(part.name for part in expression.parts), *reversed(after))


def _call(function: str, argument: exp.Expression, value: str | int | None = None) -> Term | None:
    inside = term(argument)
    return None if inside is None else Call(function, inside, value)  # type: ignore[arg-type] # named in this file


def _cast(argument: exp.Expression, type_: pa.DataType | None) -> Term | None:
    """A cast to a number; whether it keeps every value is known when the column's type is."""
    numeric = type_ is not None and (is_number(type_) or is_float(type_))
    return _call("cast", argument, type_name(type_)) if numeric else None


def _int(expression: exp.Expression | None) -> int | None:
    literal = None if expression is None else fold(expression)
    return literal.value if literal is not None and type(literal.value) is int else None


def _word(expression: exp.Expression) -> str:
    literal = fold(expression)
    plain = literal is not None and literal.type == pa.string() and isinstance(literal.value, str)
    return str(literal.value).lower() if literal is not None and plain else ""


def _left(argument: exp.Expression, length: int | None) -> Term | None:
    return None if length is None or length <= 0 else _call("left", argument, length)


def _date_trunc(unit: exp.Expression, argument: exp.Expression) -> Term | None:
    known = TIMESTAMP_UNITS.get(_word(unit))
    return _call("date_trunc", argument, known) if known else None


def _trunc(argument: exp.Expression, unit: exp.Expression) -> Term | None:
    known = DATE_UNITS.get(_word(unit))
    return _call("trunc", argument, known) if known else None


def _date_part(unit: exp.Expression, argument: exp.Expression) -> Term | None:
    return _call("year", argument) if _word(unit) in _YEAR else None


_FUNCTIONS: dict[tuple[str, int], Callable[..., Term | None]] = {
    ("year", 1): lambda argument: _call("year", argument),
    ("date_part", 2): _date_part,
    ("datepart", 2): _date_part,
    ("date_trunc", 2): _date_trunc,
    ("trunc", 2): _trunc,
    ("left", 2): lambda argument, length: _left(argument, _int(length)),
    **{(name, 1): partial(_cast, type_=type_) for name, type_ in CASTS.items()},
    ("date", 1): lambda argument: _call("date", argument),
    ("to_date", 1): lambda argument: _call("date", argument),
}
"""Functions by name and number of arguments."""
