"""Joining bound parts: constants go, conditions on one column become one set.

Law: the result accepts the same rows. `a > 5 AND a < 3` becomes the empty set and so proves every file away;
`a < 5 OR a >= 5` becomes "not null".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from tamis.predicate.bound import AllOf, AnyOf, Bound, Known, Leaf, Unclear
from tamis.predicate.schema import ColumnId
from tamis.predicate.values import ValueSet

__all__ = ["all_of", "any_of", "complement"]

MAX_TEXT = 2000
"""Longest text of a joined condition; a generated predicate of thousands of parts is abbreviated."""


def all_of(operands: Sequence[Bound]) -> Bound:
    """Every operand holds. A part that never holds decides alone; parts that always hold go."""
    return _join(operands, AllOf, ValueSet.intersect, " AND ", decisive=False)


def any_of(operands: Sequence[Bound]) -> Bound:
    """At least one operand holds. A part that always holds decides alone; parts that never hold go."""
    return _join(operands, AnyOf, ValueSet.union, " OR ", decisive=True)


def complement(node: Bound) -> Bound:
    """All rows that are not in the node's set: NULL changes sides too."""
    match node:
        case Leaf(column=column, outer=outer, inner=inner, text=text):
            return all_of([Leaf(column, inner.complement(), outer.complement(), f"({text}) IS NOT TRUE")])
        case Unclear(text=text, columns=columns, why=why):
            return Unclear(f"({text}) IS NOT TRUE", columns, why)
        case Known(value=value, text=text):
            return Known(not value, f"({text}) IS NOT TRUE")
        case AllOf(operands=operands):
            return any_of([complement(operand) for operand in operands])
        case AnyOf(operands=operands):
            return all_of([complement(operand) for operand in operands])


def _join(
    operands: Sequence[Bound],
    kind: type[AllOf | AnyOf],
    merge: Callable[[ValueSet, ValueSet], ValueSet],
    word: str,
    *,
    decisive: bool,
) -> Bound:
    flat = [part for operand in operands for part in (operand.operands if isinstance(operand, kind) else (operand,))]
    parts = [_constant(part) for part in _merge_columns(flat, merge, word)]
    for part in parts:
        if isinstance(part, Known) and part.value is decisive:
            return part
    rest = tuple(part for part in parts if not isinstance(part, Known))
    if len(rest) == 1:
        return rest[0]
    if rest:
        return kind(rest, _joined([_grouped(part) for part in rest], word))
    return parts[0] if parts else Known(not decisive)


def _merge_columns(parts: list[Bound], merge: Callable[[ValueSet, ValueSet], ValueSet], word: str) -> list[Bound]:
    """Leaves of one column as one leaf, at the place of the first."""
    by_column: dict[ColumnId, list[Leaf]] = {}
    for part in parts:
        if isinstance(part, Leaf):
            by_column.setdefault(part.column.id, []).append(part)
    merged: list[Bound] = []
    for part in parts:
        if not isinstance(part, Leaf):
            merged.append(part)
        elif leaves := by_column.pop(part.column.id, None):
            merged.append(_merged(leaves, merge, word))
    return merged


def _merged(leaves: list[Leaf], merge: Callable[[ValueSet, ValueSet], ValueSet], word: str) -> Leaf:
    if len(leaves) == 1:
        return leaves[0]
    outer = _halves([leaf.outer for leaf in leaves], merge)
    inner = _halves([leaf.inner for leaf in leaves], merge)
    text = _joined([leaf.text for leaf in leaves], word)
    return Leaf(leaves[0].column, outer, outer if outer == inner else inner, text)


def _halves(sets: list[ValueSet], merge: Callable[[ValueSet, ValueSet], ValueSet]) -> ValueSet:
    """Merge neighbours first, so that thousands of sets cost n log n."""
    while len(sets) > 1:
        last = sets[-1:] if len(sets) % 2 else []
        sets = [reduce(merge, pair) for pair in zip(sets[0:-1:2], sets[1::2], strict=True)] + last
    return sets[0]


def _constant(part: Bound) -> Bound:
    """A leaf that accepts nothing, or surely everything, is a constant."""
    if isinstance(part, Leaf):
        if part.outer.is_empty:
            return Known(value=False, text=part.text)
        if part.inner.is_everything:
            return Known(value=True, text=part.text)
    return part


def _grouped(part: Bound) -> str:
    return f"({part.text})" if isinstance(part, (AllOf, AnyOf)) else part.text


def _joined(texts: list[str], word: str) -> str:
    text = word.join(texts)
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]} … ({len(texts)} parts)"
