"""A predicate that has met its table: columns by id, literals as keys, no NOT left.

A bound predicate denotes a set of rows, those of which the SQL condition is TRUE; there is no third value any more.
A leaf knows two sets. `outer` holds every value that may be accepted, `inner` only values that surely are; they
differ where a condition cannot be turned into ranges exactly (a day's start when clocks are set back, or
under time-zone rules that are not known, LIKE 'a%b').
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from tamis.predicate.compare.zone_rules import ZoneRules
from tamis.predicate.schema import Column
from tamis.predicate.values import ValueSet

__all__ = ["AllOf", "AnyOf", "Bound", "BoundPredicate", "Known", "Leaf", "Unclear", "columns_of"]

LAST: Final = 1 << 40
"""The cost of a part that drops nothing: it comes after every part that may."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """The column's value is in a set. inner is a subset of what matches, outer a superset."""

    column: Column
    outer: ValueSet
    inner: ValueSet
    text: str

    @property
    def columns(self) -> tuple[Column, ...]:
        """The one column."""
        return (self.column,)

    @property
    def cost(self) -> int:
        """How many cuts there are to compare with."""
        return len(self.outer.cuts) + (0 if self.inner is self.outer else len(self.inner.cuts))


@dataclass(frozen=True, slots=True)
class Unclear:
    """May be true of any row, is surely true of none: evaluated by Spark alone."""

    text: str
    columns: tuple[Column, ...] = ()
    why: str = ""
    """Why nothing can be said of it: `function of a column`."""

    @property
    def cost(self) -> int:
        """It drops nothing, so it comes after every part that may."""
        return LAST


@dataclass(frozen=True, slots=True)
class Known:
    """True of every row, or of none."""

    value: bool
    text: str = ""

    @property
    def columns(self) -> tuple[Column, ...]:
        """None: it is true, or false, whatever they hold."""
        return ()

    @property
    def cost(self) -> int:
        """Nothing is compared."""
        return 0


@dataclass(frozen=True, slots=True)
class _Joined:
    """Conditions joined, and what is asked of all of them again and again, counted once."""

    operands: tuple[Bound, ...]
    text: str
    columns: tuple[Column, ...] = field(init=False, repr=False, compare=False)
    """The columns of all operands, each once, in order of appearance."""
    cost: int = field(init=False, repr=False, compare=False)
    """How many cuts there are to compare with."""
    size: int = field(init=False, repr=False, compare=False)
    """How many conditions there are in it, one that stands in several places counted at each."""
    height: int = field(init=False, repr=False, compare=False)
    """How many levels of joined conditions."""

    def __post_init__(self) -> None:
        joined = [operand for operand in self.operands if isinstance(operand, _Joined)]
        columns = {column.id: column for operand in self.operands for column in operand.columns}
        object.__setattr__(self, "columns", tuple(columns.values()))
        object.__setattr__(self, "cost", sum(operand.cost for operand in self.operands))
        object.__setattr__(self, "size", len(self.operands) + sum(operand.size for operand in joined))
        object.__setattr__(self, "height", 1 + max((operand.height for operand in joined), default=0))

    def __reduce__(self) -> tuple[object, ...]:
        """Flat, so that pickling needs no stack: each joined condition before its operands."""
        listed: list[object] = []
        todo: list[object] = [self]
        while todo:
            node = todo.pop()
            if isinstance(node, _Joined):
                listed.append((isinstance(node, AllOf), len(node.operands), node.text))
                todo.extend(reversed(node.operands))
            else:
                listed.append(node)
        return _rebuilt, (listed,)


@dataclass(frozen=True, slots=True)
class AllOf(_Joined):
    """Every operand holds."""


@dataclass(frozen=True, slots=True)
class AnyOf(_Joined):
    """At least one operand holds."""


def _rebuilt(listed: list[object]) -> Bound:
    """What __reduce__ listed: from right to left, operands are there before what joins them."""
    made: list[Bound] = []
    for item in reversed(listed):
        if isinstance(item, tuple):
            every, count, text = item
            operands = tuple(made.pop() for _ in range(count))
            made.append(AllOf(operands, text) if every else AnyOf(operands, text))
        else:
            made.append(item)  # type: ignore[arg-type] # whatever joins nothing is a bound condition
    return made[0]


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
    notes: tuple[str, ...] = ()
    """What the clock was taken to show, and what is left to Spark for being too large or too deep to judge."""
    rules: tuple[tuple[str, ZoneRules], ...] = ()
    """The zones whose rules the sets were made with, as a session told them: rows must be filtered by the same."""

    @property
    def conjuncts(self) -> tuple[Bound, ...]:
        """The parts that must all hold; each can disprove a file on its own."""
        return self.root.operands if isinstance(self.root, AllOf) else (self.root,)

    @property
    def unclear(self) -> tuple[Unclear, ...]:
        """The parts that only Spark can evaluate, wherever they stand, each text once: no file is pruned by them."""
        by_text: dict[str, Unclear] = {}
        todo: list[Bound] = [self.root]
        while todo:
            node = todo.pop()
            if isinstance(node, Unclear):
                by_text.setdefault(node.text, node)
            elif isinstance(node, (AllOf, AnyOf)):
                todo.extend(reversed(node.operands))
        return tuple(by_text.values())

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that the predicate mentions, each once, in order of appearance."""
        return columns_of(self.root)


def columns_of(node: Bound) -> tuple[Column, ...]:
    """The columns under a node, each once, in order of appearance."""
    return tuple({column.id: column for column in node.columns}.values())
