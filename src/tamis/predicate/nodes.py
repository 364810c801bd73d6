"""What the user asks, before it meets a table: a small tree of frozen nodes.

Nothing here knows columns' types or ids. What tamis cannot analyse is Opaque: it may match, it never surely
matches, and Spark still evaluates it on every row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf

import pyarrow as pa

__all__ = [
    "And",
    "Call",
    "Compare",
    "Constant",
    "In",
    "IsNull",
    "Like",
    "Literal",
    "Node",
    "Not",
    "Opaque",
    "Operator",
    "Or",
    "Ref",
    "StartsWith",
    "Term",
    "Truth",
]

Operator = OneOf["=", "!=", "<", "<=", ">", ">=", "<=>"]


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant and its SQL type.

    A str under a date, time or timestamp type is text that is cast when the predicate is bound: what it means may
    depend on the session's time zone. A naive datetime under a zoned type is read in that zone as well.
    None is the NULL literal, of any type.
    """

    value: object
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class Ref:
    """A column by name, or a struct's field by its path."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """A monotone function of a term: it maps an ordered column to an ordered result, and only NULL to NULL.

    date(x) and cast(x as date) are `date`; `year`; `date_trunc` and `trunc` carry the unit; `left` (a prefix of so
    many characters) the length.
    """

    function: OneOf["date", "year", "date_trunc", "trunc", "left"]
    term: Term
    argument: str | int | None = None


Term = Ref | Call


@dataclass(frozen=True, slots=True)
class Constant:
    """TRUE, FALSE or NULL where a condition stands."""

    value: bool | None


@dataclass(frozen=True, slots=True)
class Compare:
    """A term against a literal; `literal < term` is turned round when it is parsed."""

    operator: Operator
    term: Term
    literal: Literal


@dataclass(frozen=True, slots=True)
class In:
    """A term against a list, as Spark compares it: a NULL in the list makes every miss unknown."""

    term: Term
    literals: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class IsNull:
    """A term is NULL."""

    term: Term


@dataclass(frozen=True, slots=True)
class Like:
    """A string term against a pattern with `%` and `_`."""

    term: Term
    pattern: str
    escape: str = "\\"


@dataclass(frozen=True, slots=True)
class StartsWith:
    """A string or binary term begins with the literal."""

    term: Term
    prefix: Literal


@dataclass(frozen=True, slots=True)
class Truth:
    """A condition IS TRUE, IS FALSE, or (None) IS NULL: never itself unknown. A bare boolean column is a Ref."""

    operand: Node
    value: bool | None


@dataclass(frozen=True, slots=True)
class Not:
    """SQL's NOT: unknown stays unknown."""

    operand: Node


@dataclass(frozen=True, slots=True)
class And:
    """All of at least one operand."""

    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Any of at least one operand."""

    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Opaque:
    """SQL that is not analysed; the columns that it reads must still exist."""

    sql: str
    refs: tuple[Ref, ...]


Node = Constant | Compare | In | IsNull | Like | StartsWith | Truth | Not | And | Or | Opaque | Ref | Call
