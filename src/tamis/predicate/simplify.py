"""Joining bound parts: constants go, conditions on one column become one set.

Law: the result accepts the same rows. `a > 5 AND a < 3` becomes the empty set and so proves every file away;
`a < 5 OR a >= 5` becomes "not null".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tamis.predicate.bound import AllOf, AnyOf, Bound, Known, Leaf, Unclear
from tamis.predicate.schema import ColumnId
from tamis.predicate.sql.rendering import MAX_TEXT, shortened
from tamis.predicate.values import ValueSet
from tamis.predicate.walk import bottom_up

__all__ = ["MAX_LEVELS", "all_of", "any_of", "complement", "constant", "trimmed"]

MAX_LEVELS = 100
"""Most levels of a bound condition that are judged: whoever judges recurses. What lies deeper is left to Spark."""

_Merge = Callable[[Sequence[ValueSet]], ValueSet]


def all_of(operands: Sequence[Bound]) -> Bound:
    """Every operand holds. A part that never holds decides alone; parts that always hold go."""
    return _join(operands, AllOf, ValueSet.intersection_of, " AND ", decisive=False)


def any_of(operands: Sequence[Bound]) -> Bound:
    """At least one operand holds. A part that always holds decides alone; parts that never hold go."""
    return _join(operands, AnyOf, ValueSet.union_of, " OR ", decisive=True)


def complement(root: Bound) -> Bound:
    """All rows that are not in the node's set: NULL changes sides too."""
    return bottom_up(root, _operands, _complement)


def _operands(node: Bound) -> tuple[Bound, ...]:
    return node.operands if isinstance(node, (AllOf, AnyOf)) else ()


def _complement(node: Bound, operands: list[Bound]) -> Bound:
    text = shortened(f"({node.text}) IS NOT TRUE")
    match node:
        case Leaf(column=column, outer=outer, inner=inner):
            outside = inner.complement()
            return constant(Leaf(column, outside, outside if inner is outer else outer.complement(), text))
        case Unclear(columns=columns, why=why):
            return Unclear(text, columns, why)
        case Known(value=value):
            return Known(not value, text)
        case AllOf():
            return any_of(operands)
        case AnyOf():
            return all_of(operands)


def trimmed(root: Bound) -> Bound:
    """The same condition with at most MAX_LEVELS levels: what lies deeper may hold, and never surely does."""
    if not isinstance(root, (AllOf, AnyOf)) or root.height <= MAX_LEVELS:
        return root

    def below(item: tuple[Bound, int]) -> list[tuple[Bound, int]]:
        node, level = item
        return [(operand, level + 1) for operand in _operands(node)] if level < MAX_LEVELS else []

    def cut(item: tuple[Bound, int], operands: list[Bound]) -> Bound:
        node, level = item
        if not isinstance(node, (AllOf, AnyOf)):
            return node
        if level == MAX_LEVELS:
            return Unclear(node.text, node.columns, f"nested deeper than {MAX_LEVELS} levels")
        return type(node)(tuple(operands), node.text)

    start: tuple[Bound, int] = (root, 0)
    return bottom_up(start, below, cut, key=lambda item: (id(item[0]), item[1]))


def _join(
    operands: Sequence[Bound],
    connective: type[AllOf | AnyOf],
    merge: _Merge,
    word: str,
    *,
    decisive: bool,
) -> Bound:
    flat = [
        condition
        for operand in operands
        for condition in (operand.operands if isinstance(operand, connective) else (operand,))
    ]
    # What stands there twice says no more than once.
    flat = list({id(condition): condition for condition in flat}.values())
    conditions = [constant(condition) for condition in _merge_columns(flat, merge, word)]
    for condition in conditions:
        if isinstance(condition, Known) and condition.value is decisive:
            return condition
    undecided = tuple(condition for condition in conditions if not isinstance(condition, Known))
    if len(undecided) == 1:
        return undecided[0]
    if undecided:
        return connective(undecided, _joined([_grouped(condition) for condition in undecided], word))
    return conditions[0] if conditions else Known(not decisive)


def _merge_columns(conditions: list[Bound], merge: _Merge, word: str) -> list[Bound]:
    """Leaves of one column as one leaf, at the place of the first."""
    by_column: dict[ColumnId, list[Leaf]] = {}
    for condition in conditions:
        if isinstance(condition, Leaf):
            by_column.setdefault(condition.column.id, []).append(condition)
    merged: list[Bound] = []
    for condition in conditions:
        if not isinstance(condition, Leaf):
            merged.append(condition)
        elif leaves := by_column.pop(condition.column.id, None):
            merged.append(_merged(leaves, merge, word))
    return merged


def _merged(leaves: list[Leaf], merge: _Merge, word: str) -> Leaf:
    if len(leaves) == 1:
        return leaves[0]
    outer = merge([leaf.outer for leaf in leaves])
    exact = all(leaf.inner is leaf.outer for leaf in leaves)
    inner = outer if exact else merge([leaf.inner for leaf in leaves])
    text = _joined([leaf.text for leaf in leaves], word)
    return Leaf(leaves[0].column, outer, outer if outer == inner else inner, text)


def constant(condition: Bound) -> Bound:
    """A leaf that accepts nothing, or surely everything, is a constant."""
    if isinstance(condition, Leaf):
        if condition.outer.is_empty:
            return Known(value=False, text=condition.text)
        if condition.inner.is_everything:
            return Known(value=True, text=condition.text)
    return condition


def _grouped(condition: Bound) -> str:
    return f"({condition.text})" if isinstance(condition, (AllOf, AnyOf)) else condition.text


def _joined(texts: Sequence[str], word: str) -> str:
    """The texts in one; of thousands, those that are shown."""
    room, shown = MAX_TEXT + 1, 0
    while shown < len(texts) and room > 0:
        room -= len(texts[shown]) + len(word)
        shown += 1
    text = word.join(texts[:shown])
    return text if shown == len(texts) and len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]} … ({len(texts)} parts)"
