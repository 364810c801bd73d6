"""A condition in two: what partition columns alone decide, and the rest.

Law: a row matches the condition exactly if it matches both parts, and the first part mentions no other column than
those of the partition. The split goes through AND, and through what is one once NOT is pushed down; an OR that mixes
columns is the rest's, whole. A rewrite takes partition predicates alone: it asks whether anything is left.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from tamis.predicate.nodes import And, Call, Constant, Node, Not, Opaque, Or, Ref, Truth, operands_of
from tamis.predicate.schema import ColumnId, Schema
from tamis.predicate.walk import bottom_up

__all__ = ["Parts", "split_condition"]

_TRUE: Final = Constant(value=True)
_PER_ROW: Final = re.compile(
    r"\b(rand|randn|random|randstr|uniform|uuid|shuffle|monotonically_increasing_id|spark_partition_id|input_file_\w+"
    r"|java_method|reflect|try_reflect|_metadata)\b",
    re.IGNORECASE,
)
"""SQL that may answer otherwise for two rows of one partition, though it names partition columns alone."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Two conditions that say together what one said."""

    partition: Node
    """What partition columns alone decide; TRUE if there is nothing of that."""
    rest: Node
    """Everything else; TRUE if there is nothing else."""

    @property
    def is_partition_only(self) -> bool:
        """Whether every row of a partition matches, or none does."""
        return self.rest == _TRUE


def split_condition(
    node: Node, schema: Schema, partition: Collection[ColumnId], *, case_sensitive: bool = False
) -> Parts:
    """The condition's part on the columns of these ids alone, and the rest; BindError for a column that is not there.

    >>> import pyarrow as pa
    >>> from tamis.predicate.sql.parse import parse
    >>> from tamis.predicate.sql.rendering import render
    >>> schema = Schema.of(day=pa.date32(), id=pa.int64())
    >>> parts = split_condition(parse("day > date'2024-01-01' and not (id = 1 or day is null)"), schema, {1})
    >>> render(parts.partition), render(parts.rest)
    ("day > date '2024-01-01' AND day IS NOT NULL", 'NOT (id = 1)')
    """
    mine: list[Node] = []
    others: list[Node] = []
    for conjunct in _conjuncts(node):
        columns = {schema.find(ref.path, case_sensitive=case_sensitive).id for ref in _refs(conjunct)}
        decided = columns <= set(partition) and _is_settled(conjunct)
        (mine if decided else others).append(conjunct)
    return Parts(_all(mine), _all(others))


def _conjuncts(root: Node) -> list[Node]:
    """Conditions that all have to be TRUE for the root to be, from left to right; one that is shared, once.

    A row has to make the root TRUE, so that `p IS TRUE` asks for p, and NOT (p OR q) for NOT p and NOT q.
    """
    found: list[Node] = []
    seen: set[tuple[int, bool]] = set()
    todo: list[tuple[Node, bool]] = [(root, True)]
    while todo:
        node, true = todo.pop()
        if (id(node), true) in seen:
            continue
        seen.add((id(node), true))
        match node:
            case Not(operand=operand):
                todo.append((operand, not true))
            case And(operands=operands) if true:
                todo.extend((one, True) for one in reversed(operands))
            case Or(operands=operands) if not true:
                todo.extend((one, False) for one in reversed(operands))
            case Truth(operand=operand, value=bool() as value) if true:
                todo.append((operand, value))
            case _:
                found.append(node if true else Not(node))
    return found


def _refs(root: Node) -> frozenset[Ref]:
    """The columns that a condition reads."""
    return bottom_up(root, operands_of, lambda node, below: frozenset().union(_own_refs(node), *below))


def _own_refs(node: Node) -> tuple[Ref, ...]:
    if isinstance(node, Opaque):
        return node.refs
    term = node if isinstance(node, (Ref, Call)) else getattr(node, "term", None)
    while isinstance(term, Call):
        term = term.term
    return () if term is None else (term,)


def _is_settled(root: Node) -> bool:
    """Whether the values of the columns decide: what is not analysed may ask more than the columns that it names."""

    def settled(node: Node, below: list[bool]) -> bool:
        return all(below) and (not isinstance(node, Opaque) or bool(node.refs and not _PER_ROW.search(node.sql)))

    return bottom_up(root, operands_of, settled)


def _all(conditions: list[Node]) -> Node:
    if len(conditions) < 2:  # noqa: PLR2004 - one stands for itself
        return conditions[0] if conditions else _TRUE
    return And(tuple(conditions))
