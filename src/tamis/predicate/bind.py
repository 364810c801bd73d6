"""From what the user wrote to what the sieve judges.

Binding finds columns by name, splits their order by the literals, and pushes every NOT down, so that what is left
denotes sets of rows. SQL has three truth values; a set has two. The law of the translation: `holds(p)` is the set of
rows of which p is TRUE, `fails(p)` the set of which p is FALSE; rows of which p is NULL are in neither.

    holds(NOT p) = fails(p)              fails(NOT p) = holds(p)
    holds(p AND q) = holds(p) & holds(q)  fails(p AND q) = fails(p) | fails(q)
    holds(p IS TRUE) = holds(p)           fails(p IS TRUE) = all rows but holds(p)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
from pyarrow import types as pt

from tamis.errors import BindError
from tamis.predicate import nodes as n
from tamis.predicate.bound import Bound, BoundPredicate, Known, Leaf, Unclear
from tamis.predicate.functions import is_utf8, prefix_end, pull, result_type
from tamis.predicate.keys import Key, KeySpan, has_order, is_text, key_span, successor, uses_bytes
from tamis.predicate.numbers import always_at_null
from tamis.predicate.render import brief, render
from tamis.predicate.schema import Column, Schema
from tamis.predicate.simplify import all_of, any_of, complement
from tamis.predicate.split import Pair, Split
from tamis.predicate.splits import listed, split
from tamis.predicate.type_names import a_type, type_name
from tamis.predicate.values import ValueSet
from tamis.predicate.zones import Zone, find_zone

__all__ = ["bind"]


@dataclass(frozen=True, slots=True)
class _Sets:
    """What a condition on one column accepts: a superset and a subset, and its value where the column is NULL."""

    outer: ValueSet
    inner: ValueSet
    at_null: bool | None = None
    exact: bool = True
    """False if Spark may answer otherwise, or fail, for some values: then nothing is certain, either way."""
    perhaps_at_null: bool | None = None
    """What it may be where the column is NULL, though SQL says NULL: Spark folds some comparisons to constants."""

    def when(self, *, true: bool) -> tuple[ValueSet, ValueSet]:
        """The outer and inner sets of values of which the condition is TRUE, or of which it is FALSE."""
        outer, inner = self.outer, self.inner
        if not true:
            outer, inner = inner.complement(), outer.complement()
        if not self.exact:
            inner = ValueSet.nothing()
        nulls, perhaps = self.at_null is true, self.perhaps_at_null is true
        accepted = ValueSet(outer.cuts, outer.inside_first, nulls or perhaps)
        if self.inner is self.outer and self.exact and not perhaps:
            return accepted, accepted
        return accepted, ValueSet(inner.cuts, inner.inside_first, nulls)


@dataclass(frozen=True, slots=True)
class _Target:
    """A term resolved: the column, the functions applied to it from the inside out, and the result's type."""

    column: Column
    calls: tuple[tuple[n.Call, pa.DataType], ...]
    type: pa.DataType


def bind(
    node: n.Node, schema: Schema, *, case_sensitive: bool = False, time_zone: str = "UTC", sql: str | None = None
) -> BoundPredicate:
    """The predicate in terms of the table's columns; BindError if a column or a comparison does not exist.

    time_zone is that of the session that filters the rows: text and days are read in it where a column stores
    instants. sql is the row filter's text if it is not to be rendered from the node.
    """
    binder = _Binder(schema, case_sensitive, find_zone(time_zone))
    root = binder.holds(node)
    return BoundPredicate(root, sql or render(node), binder.zone.asked, time_zone)


@dataclass(frozen=True, slots=True)
class _Binder:
    schema: Schema
    case_sensitive: bool
    zone: Zone

    def holds(self, node: n.Node) -> Bound:
        """The rows of which node is TRUE."""
        return self._rows(node, true=True)

    def _rows(self, node: n.Node, *, true: bool) -> Bound:
        match node:
            case n.Not(operand=operand):
                return self._rows(operand, true=not true)
            case n.And(operands=operands) | n.Or(operands=operands):
                combine = all_of if isinstance(node, n.And) is true else any_of
                return combine([self._rows(operand, true=true) for operand in operands])
            case n.Truth(operand=operand, value=value):
                return self._truth(operand, value, true=true)
            case n.Constant(value=value):
                return Known(value is true, _text(node, true=true))
            case n.Opaque(refs=refs):
                columns = tuple(self.schema.find(ref.path, case_sensitive=self.case_sensitive) for ref in refs)
                return Unclear(_text(node, true=true), columns, _why_opaque(node))
            case _:
                return self._condition(node, true=true)

    def _truth(self, operand: n.Node, value: bool | None, *, true: bool) -> Bound:  # noqa: FBT001 - SQL's value
        if value is None:
            known = any_of([self._rows(operand, true=True), self._rows(operand, true=False)])
            return complement(known) if true else known
        rows = self._rows(operand, true=value)
        return rows if true else complement(rows)

    def _condition(self, node: n.Node, *, true: bool) -> Bound:
        """A condition on one column."""
        term = node if isinstance(node, (n.Ref, n.Call)) else node.term  # type: ignore[union-attr] # others are done
        target = self._resolve(term)
        if target is None:
            columns = (self._column(term),)
            return Unclear(_text(node, true=true), columns, "function of a column")
        sets = self._sets(node, target)
        if sets is None:
            return Unclear(_text(node, true=true), (target.column,), _why_unordered(node, target.type))
        if isinstance(sets, str):
            return Known(value=False, text=_text(node, true=true))
        outer, inner = sets.when(true=true)
        return all_of([Leaf(target.column, outer, inner, _text(node, true=true))])

    def _sets(self, node: n.Node, target: _Target) -> _Sets | str | None:
        """The sets of a condition; "never" if it is NULL of every row; None if only Spark can tell."""
        where = target.column.name
        match node:
            case n.IsNull():
                return _sets(ValueSet.nothing(), ValueSet.nothing(), at_null=True)
            case n.Compare(operator="<=>", literal=n.Literal(value=None)):
                return _sets(ValueSet.nothing(), ValueSet.nothing(), at_null=True)
            case n.Compare(literal=n.Literal(value=None)):
                return "never"
            case n.Compare(operator=operator, literal=literal):
                found = split(target.type, literal, self.zone, where) if has_order(target.type) else None
                if found is None:
                    return None
                sets = self._compared(operator, self._pull(found, target), target)
                return replace(sets, perhaps_at_null=always_at_null(target.type, operator, literal))
            case n.In(literals=literals):
                return self._listed(literals, target)
            case n.Like(pattern=pattern, escape=escape):
                return self._liked(pattern, escape, target)
            case n.StartsWith(prefix=prefix):
                return self._prefixed(prefix, target)
            case _:
                return self._bare(target)

    def _compared(self, operator: n.Operator, at: Split, target: _Target) -> _Sets:
        span = key_span(target.column.type)
        (at_low, at_high), (after_low, after_high) = at.at, at.after
        match operator:
            case "=" | "<=>" | "!=":
                outer, inner = _run(at_low, after_high, span), _run(at_high, after_low, span)
            case "<" | ">=":
                outer, inner = _run(None, at_high, span), _run(None, at_low, span)
            case "<=" | ">":
                outer, inner = _run(None, after_high, span), _run(None, after_low, span)
        if operator in {"!=", ">=", ">"}:
            outer, inner = inner.complement().without_null(), outer.complement().without_null()
        return _sets(outer, inner, exact=at.exact, at_null=False if operator == "<=>" else None)

    def _listed(self, literals: tuple[n.Literal, ...], target: _Target) -> _Sets | str | None:
        splits = listed(target.type, literals, self.zone, target.column.name) if has_order(target.type) else None
        if splits is None:
            return None
        sets = _points(splits, key_span(target.column.type)) if not target.calls else None
        if sets is None:
            parts = [self._compared("=", self._pull(found, target), target) for found in splits]
            outer, inner = (_union([getattr(part, side) for part in parts]) for side in ("outer", "inner"))
            sets = _sets(outer, inner, exact=all(part.exact for part in parts))
        if len(splits) < len(literals):
            # A miss is NULL, not FALSE: whatever fails the list is neither, so that its complement accepts nothing.
            return _NullableList(sets.outer, sets.inner, exact=sets.exact)
        return sets if literals else replace(sets, at_null=False)

    def _liked(self, pattern: str, escape: str, target: _Target) -> _Sets | None:
        if not is_text(target.type):
            return None
        prefix, rest = _pattern_prefix(pattern, escape)
        if prefix is None:
            return None
        if rest == "":
            return self._compared("=", self._pull(Split.key(prefix.encode()), target), target)
        outer = self._beginning(prefix.encode(), target, text=True)
        return replace(outer, inner=outer.inner if rest.strip("%") == "" else ValueSet.nothing())

    def _prefixed(self, prefix: n.Literal, target: _Target) -> _Sets | str | None:
        if prefix.value is None:
            return "never"
        if not uses_bytes(target.type) or not isinstance(prefix.value, (str, bytes)):
            return None
        if pt.is_decimal(target.type) or target.type == pa.uuid():
            return None
        raw = prefix.value.encode() if isinstance(prefix.value, str) else prefix.value
        text = is_text(target.type)
        return None if text and not is_utf8(raw) else self._beginning(raw, target, text=text)

    def _beginning(self, prefix: bytes, target: _Target, *, text: bool) -> _Sets:
        end = prefix_end(prefix, text=text)
        start_low, start_high = self._pull_cut(prefix, target)
        if end is None:
            outer, inner = ValueSet.between(start_low, None), ValueSet.between(start_high, None)
            return _sets(outer, inner) if prefix else _sets(ValueSet.not_null(), ValueSet.not_null())
        end_low, end_high = self._pull_cut(end, target)
        span = key_span(target.column.type)
        return _sets(_run(start_low, end_high, span), _run(start_high, end_low, span))

    def _bare(self, target: _Target) -> _Sets:
        if not pt.is_boolean(target.type):
            raise BindError(
                f"{target.column.name} stands as a condition, but is {a_type(target.type)}, not a boolean. "
                "Compare it with a value.",
                column=target.column.name,
                nearest=(),
            )
        accepted = _run(1, 2, key_span(target.type))
        return _Sets(accepted, accepted)

    def _column(self, term: n.Term) -> Column:
        while isinstance(term, n.Call):
            term = term.term
        return self.schema.find(term.path, case_sensitive=self.case_sensitive)

    def _resolve(self, term: n.Term) -> _Target | None:
        """The term's column and type; None if a function is not monotone on what it is given."""
        if isinstance(term, n.Ref):
            column = self._column(term)
            return _Target(column, (), column.type)
        inside = self._resolve(term.term)
        result = None if inside is None else result_type(term, inside.type)
        if inside is None or result is None:
            return None
        return _Target(inside.column, ((term, inside.type), *inside.calls), result)

    def _pull(self, found: Split, target: _Target) -> Split:
        """The split of the column's own values, through every function applied to it."""
        if not target.calls:
            return found
        at_low, after_low = (self._pull_cut(key, target)[0] for key in (found.at[0], found.after[0]))
        at_high, after_high = (self._pull_cut(key, target)[1] for key in (found.at[1], found.after[1]))
        return Split((at_low, at_high), (after_low, after_high), found.exact)

    def _pull_cut(self, cut: Key, target: _Target) -> Pair:
        low = high = cut
        for call, argument in target.calls:
            low, high = pull(call, argument, low, self.zone)[0], pull(call, argument, high, self.zone)[1]
        return low, high


@dataclass(frozen=True, slots=True)
class _NullableList(_Sets):
    """A list with a NULL in it: TRUE of its members, and FALSE of nothing."""

    def when(self, *, true: bool) -> tuple[ValueSet, ValueSet]:
        if not true:
            return ValueSet.nothing(), ValueSet.nothing()
        return self.outer, self.inner if self.exact else ValueSet.nothing()


def _points(splits: list[Split], span: KeySpan) -> _Sets | None:
    """The set of a list whose members are single keys, in one go; None if a member is not."""
    keys: list[Key] = []
    for found in splits:
        (at, last), after = found.at, found.after
        if not found.exact or at != last or after[0] != after[1] or after[0] not in {at, successor(at)}:
            return None
        inside = at >= span.least and (span.greatest is None or at <= span.greatest)  # type: ignore[operator]
        if inside and after[0] != at:
            keys.append(at)
    accepted = ValueSet.of_keys(keys).clip(span)
    return _Sets(accepted, accepted)


def _sets(outer: ValueSet, inner: ValueSet, *, exact: bool = True, at_null: bool | None = None) -> _Sets:
    """Sets of a condition; equal ones are made one, so that the judge ranks them once."""
    return _Sets(outer, outer if outer == inner else inner, at_null, exact)


def _run(start: Key | None, end: Key | None, span: KeySpan) -> ValueSet:
    """The keys of [start, end) within the type's span: `tinyint < 1000` is every tinyint."""
    least, greatest = span.least, span.greatest
    if start is not None and start <= least:  # type: ignore[operator] # one kind of key a type
        start = None
    if end is not None and greatest is not None and end > greatest:  # type: ignore[operator] # as above
        end = None
    if start is not None and greatest is not None and start > greatest:  # type: ignore[operator] # as above
        return ValueSet.nothing()
    if end is not None and end <= least:  # type: ignore[operator] # as above
        return ValueSet.nothing()
    return ValueSet.not_null() if start is None and end is None else ValueSet.between(start, end)


def _union(sets: list[ValueSet]) -> ValueSet:
    """The union of many sets, halves first: so that a long list costs n log n."""
    if not sets:
        return ValueSet.nothing()
    while len(sets) > 1:
        pairs = [a.union(b) for a, b in zip(sets[0::2], sets[1::2], strict=False)]
        sets = pairs + (sets[-1:] if len(sets) % 2 else [])
    return sets[0]


def _pattern_prefix(pattern: str, escape: str) -> tuple[str | None, str]:
    """The literal beginning of a LIKE pattern and what follows it; None if an escape is malformed."""
    prefix: list[str] = []
    place = 0
    while place < len(pattern):
        char = pattern[place]
        if char == escape:
            following = pattern[place + 1 : place + 2]
            if following not in {"%", "_", escape} or not following:
                return None, ""
            prefix.append(following)
            place += 2
            continue
        if char in "%_":
            break
        prefix.append(char)
        place += 1
    return "".join(prefix), pattern[place:]


def _why_opaque(node: n.Opaque) -> str:
    """What keeps a condition from being analysed, in the words of an explain."""
    match len(node.refs):
        case 0:
            return "no column in it"
        case 1:
            return "function of a column"
    return "more than one column"


def _why_unordered(node: n.Node, type_: pa.DataType) -> str:
    if not has_order(type_):
        return f"{type_name(type_)} has no order"
    return "pattern without a known beginning" if isinstance(node, n.Like) else "comparison that only Spark evaluates"


def _text(node: n.Node, *, true: bool) -> str:
    """The condition as the user would write it, for explaining."""
    return brief(node if true else n.Not(node))
