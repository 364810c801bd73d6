"""Conditions in Python: `col("ts") >= datetime(2024, 1, 15)`.

An expression wraps a node; nothing is looked up until it is bound. A Python value has one SQL type, the one that
Spark would give it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from itertools import chain
from typing import Any, Final, NoReturn
from uuid import UUID

import pyarrow as pa
from numpy import typing as npt

from tamis.checks import check_type, kind, shown
from tamis.errors import BindError, UnsupportedValueError
from tamis.predicate.keys import MAX_DIGITS
from tamis.predicate.literals import LiteralColumn, column_of
from tamis.predicate.names import split_name
from tamis.predicate.nodes import (
    MAX_NESTING,
    MAX_SIZE,
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
)
from tamis.predicate.sql.rendering import brief, render, shortened
from tamis.predicate.walk import bottom_up

__all__ = ["ColumnExpression", "Expression", "col", "literal"]

"""The most digits of a decimal in Spark."""
MAX_CALLS: Final = 50
"""Most functions of a function of a column: nobody needs two."""
DATE_TRUNC_UNITS = (
    *("year", "quarter", "month", "week", "day", "hour", "minute", "second"),
    *("millisecond", "microsecond"),
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Expression:
    """A condition: combine it with `&`, `|` and `~`.

    A loop that adds one condition after the other costs one step each: what was joined is put together when it is
    asked for. How deep and how large it grows is counted on the way, and refused beyond a limit.
    """

    content: Node | _Joined
    size: int = 1
    """How many conditions are in it."""
    levels: int = 0
    """How deep they nest."""

    @property
    def node(self) -> Node:
        """The condition as nodes, ANDs of ANDs and ORs of ORs made flat."""
        if isinstance(self.content, _Joined):
            object.__setattr__(self, "content", bottom_up(self, _operands, _flat))
        return self.content  # type: ignore[return-value] # by now

    def __and__(self, other: Expression) -> Expression:
        return _join(And, self, other)

    def __or__(self, other: Expression) -> Expression:
        return _join(Or, self, other)

    def __invert__(self) -> Expression:
        return _limited(Expression(Not(self.node), self.size, self.levels + 1))

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"the condition {self.shown} is neither true nor false by itself: combine conditions with &, | "
            "and ~ in place of and, or and not, with brackets around each; write a < x < b as (x > a) & (x < b)."
        )

    def __str__(self) -> str:
        return render(self.node)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.shown}>"

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.node, self.size, self.levels)

    @property
    def shown(self) -> str:
        """Its SQL text for people: long lists, and what is longer than a screen, are cut."""
        return shortened(brief(self.node))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Joined:
    """Two conditions that were combined, and not put together yet."""

    kind: type[And | Or]
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ColumnExpression(Expression):
    """A column, or a function of one: compare it, or take it as a condition if it is boolean."""

    @property
    def node(self) -> Term:
        """The column or function."""
        return self.content  # type: ignore[return-value] # as it was made

    def __eq__(self, other: object) -> Expression:  # type: ignore[override] # a condition, as in every such builder
        return self._compare("=", other)

    def __ne__(self, other: object) -> Expression:  # type: ignore[override] # as __eq__
        return self._compare("!=", other)

    __hash__ = None  # type: ignore[assignment] # what == does not compare cannot be a key

    def __lt__(self, other: object) -> Expression:
        return self._compare("<", other)

    def __le__(self, other: object) -> Expression:
        return self._compare("<=", other)

    def __gt__(self, other: object) -> Expression:
        return self._compare(">", other)

    def __ge__(self, other: object) -> Expression:
        return self._compare(">=", other)

    def eq_null_safe(self, other: object) -> Expression:
        """Equal, or both NULL: never itself unknown."""
        return self._compare("<=>", other)

    def isin(self, values: Iterable[object] | npt.NDArray[Any] | pa.Array | pa.ChunkedArray) -> Expression:
        """Equal to one of the values, a list or an array. Of no value at all: false, also for NULL, as in Spark."""
        if isinstance(values, (str, bytes)):
            raise TypeError(f"isin() takes a list of values, and {values!r} is one: write isin([{values!r}])")
        column = column_of(values)
        literals: Sequence[Literal] = (
            column
            if isinstance(column, LiteralColumn)
            else tuple(literal(value) for value in (values if column is None else column))
        )
        return Expression(In(self.node, literals) if literals else Constant(value=False))

    def is_null(self) -> Expression:
        """NULL, or in a struct that is NULL."""
        return Expression(IsNull(self.node))

    def is_not_null(self) -> Expression:
        """Not NULL."""
        return Expression(Not(IsNull(self.node)))

    def between(self, low: object, high: object) -> Expression:
        """At least low and at most high."""
        return (self >= low) & (self <= high)

    def startswith(self, prefix: str | bytes) -> Expression:
        """A string or binary that begins with the prefix."""
        return Expression(StartsWith(self.node, literal(prefix)))

    def like(self, pattern: str, escape: str = "\\") -> Expression:
        """A string that matches a pattern: `%` is any text, `_` any character."""
        check_type("the pattern of like()", pattern, str, expected="text, such as 'eu%'")
        check_type("the escape of like()", escape, str, expected="one character")
        if len(escape) != 1:
            raise TypeError(f"the escape of like() is one character, not {shown(escape)}")
        return Expression(Like(self.node, pattern, escape))

    def date(self) -> ColumnExpression:
        """The day of a timestamp, in the session's time zone."""
        return self._applied(Call("date", self.node))

    def year(self) -> ColumnExpression:
        """The year of a date or timestamp."""
        return self._applied(Call("year", self.node))

    def date_trunc(self, unit: str) -> ColumnExpression:
        """The start of the year, quarter, month, week, day, hour, minute, … that a timestamp is in."""
        check_type("the unit of date_trunc()", unit, str, expected=f"one of {', '.join(DATE_TRUNC_UNITS)}")
        if unit.lower() not in DATE_TRUNC_UNITS:
            raise TypeError(f"date_trunc() has no unit {shown(unit)}: it takes one of {', '.join(DATE_TRUNC_UNITS)}")
        return self._applied(Call("date_trunc", self.node, unit.lower()))

    def left(self, length: int) -> ColumnExpression:
        """The first so many characters of a string."""
        check_type("the length of left()", length, int, expected="a number of characters")
        if length <= 0:
            raise TypeError(f"left() takes a length of at least 1, not {length}")
        return self._applied(Call("left", self.node, length))

    def _applied(self, call: Call) -> ColumnExpression:
        if self.levels >= MAX_CALLS:
            raise BindError(
                f"functions are nested more than {MAX_CALLS} deep: {shortened(render(call), 80)}. Take it apart.",
                column=None,
                nearest=(),
            )
        return ColumnExpression(call, levels=self.levels + 1)

    def _compare(self, operator: Operator, other: object) -> Expression:
        if isinstance(other, ColumnExpression):
            sql = f"{render(self.node)} {operator} {render(other.node)}"
            columns = dict.fromkeys((_column(self.node), _column(other.node)))
            return Expression(Opaque(sql, tuple(columns)))
        return Expression(Compare(operator, self.node, literal(other)))


def col(name: str, *fields: str) -> ColumnExpression:
    """A column by its name, or a struct's field by its path.

    A single string is split at its dots, but for those in backticks: col("a.b") is col("a", "b"), and col("`a.b`")
    is the column whose name has a dot.

    >>> str((col("ts") >= date(2024, 1, 15)) & col("region").isin(["eu", "uk"]))
    "ts >= date '2024-01-15' AND region IN ('eu', 'uk')"
    """
    for step in (name, *fields):
        if not isinstance(step, str):
            raise TypeError(f"a column's name is {kind(step)}: give text, such as col('id').")
    return ColumnExpression(Ref((name, *fields) if fields else _split(name)))


def literal(value: object) -> Literal:
    """A Python value and the SQL type that Spark gives it; BindError if there is none."""
    match value:
        case None:
            return Literal(None, pa.null())
        case bool():
            return Literal(value, pa.bool_())
        case int():
            return _int(value)
        case float():
            return Literal(float(value), pa.float64())
        case Decimal():
            return _decimal(value)
        case str():
            return Literal(str(value), pa.string())
        case bytes() | bytearray():
            return Literal(bytes(value), pa.binary())
        case UUID():
            return Literal(value, pa.uuid())
        case datetime() if not getattr(value, "nanosecond", 0):
            return Literal(value, pa.timestamp("us", None if value.tzinfo is None else "UTC"))
        case date() if not isinstance(value, datetime):
            return Literal(value, pa.date32())
        case time(tzinfo=None):
            return Literal(value, pa.time64("us"))
    raise _unsupported(value, "bool, int, float, Decimal, str, bytes, date, datetime, time, UUID or None")


def _int(value: int) -> Literal:
    for type_ in (pa.int32(), pa.int64()):
        most = 1 << type_.bit_width - 1
        if -most <= value < most:
            return Literal(int(value), type_)
    if abs(value) >= 10**MAX_DIGITS:
        raise _unsupported(value, f"a number of at most {MAX_DIGITS} digits")
    return _decimal(Decimal(value))


def _decimal(value: Decimal) -> Literal:
    """A decimal with just the digits that it has: Decimal("1.50") is a decimal(3, 2)."""
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int) or exponent > MAX_DIGITS:
        raise _unsupported(value, f"a number of at most {MAX_DIGITS} digits")
    whole = Decimal(int(value)) if exponent > 0 else value
    digits, scale = int("".join(map(str, whole.as_tuple().digits))), max(-exponent, 0)
    precision = max(len(str(digits)), scale)
    if precision > MAX_DIGITS:
        raise _unsupported(value, f"a number of at most {MAX_DIGITS} digits")
    return Literal(whole, pa.decimal128(precision, scale))


def _unsupported(value: object, expected: str) -> UnsupportedValueError:
    shown = repr(value)
    shown = shown if len(shown) <= 80 else f"{shown[:79]}…"  # noqa: PLR2004 - a line
    return UnsupportedValueError(
        f"cannot compare with {shown}, a {type(value).__module__}.{type(value).__qualname__}: pass {expected}.",
        column=None,
        nearest=(),
        value=value,
    )


def _join(connective: type[And | Or], left: Expression, right: object) -> Expression:
    if not isinstance(right, Expression):
        raise TypeError(f"& and | combine conditions, and {kind(right)} is none: put brackets around comparisons")
    levels = max(side.levels + (_connective(side) is not connective) for side in (left, right))
    return _limited(Expression(_Joined(connective, left, right), left.size + right.size, levels))


def _connective(expression: Expression) -> type:
    content = expression.content
    return content.kind if isinstance(content, _Joined) else type(content)


def _limited(expression: Expression) -> Expression:
    if expression.levels > MAX_NESTING:
        raise BindError(
            f"the condition nests &, | and ~ more than {MAX_NESTING:,} deep. Write it flatter: ANDs of ANDs, and ORs "
            "of ORs, are one level.",
            column=None,
            nearest=(),
        )
    if expression.size > MAX_SIZE:
        raise BindError(
            f"the condition has grown to {expression.size:,} conditions, and the most is {MAX_SIZE:,}. Is it joined "
            "with itself in a loop? Many values of one column are one condition: col(...).isin(values).",
            column=None,
            nearest=(),
        )
    return expression


def _operands(expression: Expression) -> list[Expression]:
    """The conditions that a joined one is made of, what was joined alike made flat; none if it is put together."""
    if not isinstance(expression.content, _Joined):
        return []
    connective, operands, todo = expression.content.kind, list[Expression](), [expression]
    while todo:
        side = todo.pop()
        if isinstance(side.content, _Joined) and side.content.kind is connective:
            todo += [side.content.right, side.content.left]
        else:
            operands.append(side)
    return operands


def _flat(expression: Expression, nodes: list[Node]) -> Node:
    """The node of an expression, by those of its operands."""
    content = expression.content
    if not isinstance(content, _Joined):
        return content
    connective = content.kind
    nested = (node.operands if isinstance(node, connective) else (node,) for node in nodes)
    return connective(tuple(chain.from_iterable(nested)))


def _column(term: Term) -> Ref:
    while isinstance(term, Call):
        term = term.term
    return term


def _split(name: str) -> tuple[str, ...]:
    path = split_name(name)
    if path is None:
        raise BindError(
            f"cannot read the column name {name!r}. Write it as a.b.c, with backticks around a part that has "
            'dots or backticks, or give the parts one by one: col("a", "b").',
            column=name,
            nearest=(),
        )
    return path
