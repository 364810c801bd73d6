"""What the user asks, before it meets a table: a small tree of frozen nodes.

Nothing here knows columns' types or ids. What tamis cannot analyse is Opaque: it may match, it never surely
matches, and Spark still evaluates it on every row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from typing import Literal as OneOf

import pyarrow as pa

__all__ = [
    "MAX_NESTING",
    "MAX_SIZE",
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
    "operands_of",
]

MAX_NESTING: Final = 5_000
"""Most levels of AND in OR in NOT in IS, once made flat, in SQL text and in Python alike. Spark has a limit of its
own, of some thousands, by the stack of the JVM."""
MAX_SIZE: Final = 1_000_000
"""Most conditions in one. A program that doubles a condition in a loop reaches any number; its SQL text does not."""

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
    many characters) the length; `cast` the name of a numeric type.
    """

    function: OneOf["date", "year", "date_trunc", "trunc", "left", "cast"]
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
    literals: Sequence[Literal]
    """A tuple, or where there are many of one kind a column of them."""


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


class _Compound:
    """A condition made of conditions, to any depth: compared, hashed, shown and pickled without recursion."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        own, theirs = _preorder(self), _preorder(other)  # type: ignore[arg-type] # compounds are nodes
        return self is other or all(a == b for a, b in zip(own, theirs, strict=False))

    def __hash__(self) -> int:
        return hash(tuple(_preorder(self)))  # type: ignore[arg-type] # compounds are nodes

    def __repr__(self) -> str:
        written: list[str] = []
        todo: list[object] = [self]
        while todo:
            item = todo.pop()
            match item:
                case str():
                    written.append(item)
                case And(operands=operands) | Or(operands=operands):
                    listed = [piece for operand in operands for piece in (operand, ", ")]
                    end = ",))" if len(operands) == 1 else "))"
                    todo += [end, *reversed(listed[:-1]), f"{type(item).__name__}(operands=("]
                case Not(operand=operand):
                    todo += [")", operand, "Not(operand="]
                case Truth(operand=operand, value=value):
                    todo += [f", value={value!r})", operand, "Truth(operand="]
                case _:
                    written.append(repr(item))
        return "".join(written)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuilt, ([*_preorder(self)],)  # type: ignore[arg-type] # compounds are nodes


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Truth(_Compound):
    """A condition IS TRUE, IS FALSE, or (None) IS NULL: never itself unknown. A bare boolean column is a Ref."""

    operand: Node
    value: bool | None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Not(_Compound):
    """SQL's NOT: unknown stays unknown."""

    operand: Node


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class And(_Compound):
    """All of at least one operand."""

    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Or(_Compound):
    """Any of at least one operand."""

    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Opaque:
    """SQL that is not analysed; the columns that it reads must still exist."""

    sql: str
    refs: tuple[Ref, ...]


Node = Constant | Compare | In | IsNull | Like | StartsWith | Truth | Not | And | Or | Opaque | Ref | Call


@dataclass(frozen=True, slots=True)
class _Opening:
    """Where a compound stands in a flat list of nodes: its operands follow it."""

    kind: OneOf["and", "or", "not", "truth"]
    count: int = 1
    value: bool | None = None


def operands_of(node: Node) -> tuple[Node, ...]:
    """The conditions that a condition is made of; none if it is one on a term."""
    match node:
        case And(operands=operands) | Or(operands=operands):
            return operands
        case Not(operand=operand) | Truth(operand=operand):
            return (operand,)
    return ()


def _preorder(root: Node) -> Iterator[object]:
    """The nodes from left to right, every compound as its opening: two conditions are equal if these are."""
    todo = [root]
    while todo:
        node = todo.pop()
        operands = operands_of(node)
        match node:
            case And():
                yield _Opening("and", len(operands))
            case Or():
                yield _Opening("or", len(operands))
            case Not():
                yield _Opening("not")
            case Truth(value=value):
                yield _Opening("truth", value=value)
            case _:
                yield node
        todo.extend(reversed(operands))


def _rebuilt(listed: list[object]) -> Node:
    """The condition that _preorder listed: from right to left, operands are there before their compound."""
    made: list[Node] = []
    for item in reversed(listed):
        match item:
            case _Opening("and" | "or" as kind, count):
                operands = tuple(made.pop() for _ in range(count))
                made.append(And(operands) if kind == "and" else Or(operands))
            case _Opening("not"):
                made.append(Not(made.pop()))
            case _Opening("truth", value=value):
                made.append(Truth(made.pop(), value))
            case _:
                made.append(item)  # type: ignore[arg-type] # whatever is no opening is a node
    return made[0]
