"""A predicate that has met its table: columns by id, literals as keys, no NOT left.

A bound predicate denotes a set of rows, those of which the SQL condition is TRUE; there is no third value any more.
A leaf knows two sets. `outer` holds every value that may be accepted, `inner` only values that surely are; they
differ where a condition cannot be turned into ranges exactly (a day's start when clocks are set back, LIKE 'a%b').
"""

from __future__ import annotations

from dataclasses import dataclass

from tamis.predicate.schema import Column
from tamis.predicate.values import ValueSet

__all__ = ["AllOf", "AnyOf", "Bound", "BoundPredicate", "Known", "Leaf", "Unclear", "columns_of"]


@dataclass(frozen=True, slots=True)
class Leaf:
    """The column's value is in a set. inner is a subset of what matches, outer a superset."""

    column: Column
    outer: ValueSet
    inner: ValueSet
    text: str


@dataclass(frozen=True, slots=True)
class Unclear:
    """May be true of any row, is surely true of none: evaluated by Spark alone."""

    text: str
    columns: tuple[Column, ...] = ()
    why: str = ""
    """Why nothing can be said of it: `function of a column`."""


@dataclass(frozen=True, slots=True)
class Known:
    """True of every row, or of none."""

    value: bool
    text: str = ""


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every operand holds."""

    operands: tuple[Bound, ...]
    text: str


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one operand holds."""

    operands: tuple[Bound, ...]
    text: str


Bound = Leaf | Unclear | Known | AllOf | AnyOf


@dataclass(frozen=True, slots=True)
class BoundPredicate:
    """A whole WHERE, bound: what the sieve judges, and the text that Spark filters rows by."""

    root: Bound
    sql: str
    """The condition in Spark SQL, every part of it, also what could not be analysed."""
    zone_dependent: bool = False
    """True if the meaning depends on the session's time zone: rows must be filtered in the same one."""
    time_zone: str = "UTC"

    @property
    def conjuncts(self) -> tuple[Bound, ...]:
        """The parts that must all hold; each can disprove a file on its own."""
        return self.root.operands if isinstance(self.root, AllOf) else (self.root,)

    @property
    def unclear(self) -> tuple[Unclear, ...]:
        """The parts that only Spark can evaluate, wherever they stand, each text once: no file is pruned by them."""
        found: dict[str, Unclear] = {}
        todo: list[Bound] = [self.root]
        while todo:
            node = todo.pop()
            if isinstance(node, Unclear):
                found.setdefault(node.text, node)
            elif isinstance(node, (AllOf, AnyOf)):
                todo.extend(reversed(node.operands))
        return tuple(found.values())

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that the predicate mentions, each once, in order of appearance."""
        return columns_of(self.root)


def columns_of(node: Bound) -> tuple[Column, ...]:
    """The columns under a node, each once, in order of appearance."""
    match node:
        case Leaf(column=column):
            found: tuple[Column, ...] = (column,)
        case Unclear(columns=columns):
            found = columns
        case Known():
            found = ()
        case AllOf(operands=operands) | AnyOf(operands=operands):
            found = tuple(column for operand in operands for column in columns_of(operand))
    return tuple({column.id: column for column in found}.values())
