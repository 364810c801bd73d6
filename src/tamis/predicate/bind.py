"""From what the user wrote to what the sieve judges.

Binding finds columns by name, splits their order by the literals, and pushes every NOT down, so that what is left
denotes sets of rows. SQL has three truth values; a set has two. The law of the translation: `holds(p)` is the set of
rows of which p is TRUE, `fails(p)` the set of which p is FALSE; rows of which p is NULL are in neither.

    holds(NOT p) = fails(p)              fails(NOT p) = holds(p)
    holds(p AND q) = holds(p) & holds(q)  fails(p AND q) = fails(p) | fails(q)
    holds(p IS TRUE) = holds(p)           fails(p IS TRUE) = all rows but holds(p)
    holds(p IS UNKNOWN) = all rows but holds(p) | fails(p), which are none if p is never NULL

Each of these is made once for a node, without recursion. What IS UNKNOWN would still multiply, by standing in itself,
is left to Spark beyond a multiple of what the user wrote, and so is what lies too deep to judge: both are noted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyarrow import types as pt

from tamis.errors import BindError
from tamis.predicate import nodes as n
from tamis.predicate.accepted import Accepted, NullableList, accepted, points, run, spans
from tamis.predicate.bound import AllOf, AnyOf, Bound, BoundPredicate, Known, Leaf, Unclear
from tamis.predicate.compare.columns import column_keys
from tamis.predicate.compare.functions import is_utf8, prefix_end, pull, result_type
from tamis.predicate.compare.numbers import always_at_null
from tamis.predicate.compare.rules import check_kinds, listed, split
from tamis.predicate.compare.split import Pair, Split
from tamis.predicate.compare.zone_rules import ZoneRules
from tamis.predicate.compare.zones import Ask, Zone, find_zone
from tamis.predicate.keys import Key, has_order, key_span, uses_bytes
from tamis.predicate.literals import LiteralColumn
from tamis.predicate.schema import Column, Schema
from tamis.predicate.simplify import MAX_LEVELS, all_of, any_of, complement, constant, trimmed
from tamis.predicate.sql.rendering import brief, render, shortened
from tamis.predicate.type_names import a_type, is_text, type_name
from tamis.predicate.values import ValueSet
from tamis.predicate.walk import bottom_up

__all__ = ["bind"]

FEW, TIMES = 2000, 8
"""A part of a bound condition may hold so many conditions, and so many times those that were written."""


@dataclass(frozen=True, slots=True)
class _Target:
    """A term resolved: the column, the functions applied to it from the inside out, and the result's type."""

    column: Column
    calls: tuple[tuple[n.Call, pa.DataType], ...]
    type: pa.DataType


_Side = tuple[n.Node, bool]
"""A node, and whether the rows are wanted of which it is TRUE or of which it is FALSE."""


def bind(
    node: n.Node,
    schema: Schema,
    *,
    case_sensitive: bool = False,
    time_zone: str = "UTC",
    ask: Ask | None = None,
    sql: str | None = None,
) -> BoundPredicate:
    """The predicate in terms of the table's columns; BindError if a column or a comparison does not exist.

    time_zone is that of the session that filters the rows: text and days are read in it where a column stores
    instants. ask gives that session's rules for a zone, and is called only if they matter; without it the sets leave
    room for the rules of any session. sql is the row filter's text if it is not to be rendered from the node.
    """
    rules: dict[str, ZoneRules] = {}

    def remember(name: str) -> ZoneRules:
        if name not in rules and ask is not None:
            rules[name] = ask(name)
        return rules[name]

    zone = find_zone(time_zone, None if ask is None else remember)
    binder = _Binder(schema, case_sensitive, zone, FEW + TIMES * _size(node), node)
    root = trimmed(untrimmed := binder.holds(node))
    if root is not untrimmed:
        binder.notes.append(
            f"the condition nests deeper than {MAX_LEVELS} levels: what lies below them prunes nothing, and is left "
            "to Spark. Write it flatter."
        )
    return BoundPredicate(root, sql or render(node), zone.asked, time_zone, tuple(binder.notes), tuple(rules.items()))


def _size(node: n.Node) -> int:
    """How many conditions are written; one that a program put in several places is counted at each."""
    return bottom_up(node, n.operands_of, lambda _, below: 1 + sum(below))


@dataclass(frozen=True, slots=True)
class _Binder:
    schema: Schema
    case_sensitive: bool
    zone: Zone
    limit: int
    """Most conditions in one part of the result."""
    root: n.Node
    """All that is bound."""
    notes: list[str] = field(default_factory=list)
    others: dict[int, tuple[Bound, Bound]] = field(default_factory=dict)
    """Rows and their complement, by the rows as an object; both are kept, so that no other object takes its place."""

    def holds(self, node: n.Node) -> Bound:
        """The rows of which node is TRUE."""
        return bottom_up((node, True), _needs, self._rows, key=lambda item: (id(item[0]), item[1]))

    def _rows(self, item: _Side, below: list[Bound]) -> Bound:
        """The rows of which a node is TRUE, or FALSE, by those of its operands."""
        node, true = item
        match node:
            case n.Not():
                return below[0]
            case n.And() | n.Or():
                return self._bounded((all_of if isinstance(node, n.And) is true else any_of)(below))
            case n.Truth(operand=(n.Ref() | n.Call()) as term, value=None):
                return self._condition(n.IsNull(term), true=true)  # Spark takes IS UNKNOWN of a column of any type
            case n.Truth(operand=operand, value=value):
                return self._truth(operand, value, below, true=true)
            case n.Constant(value=value):
                return Known(value is true, _text(node, true=true))
            case n.Opaque(refs=refs):
                columns = tuple(self.schema.read(ref.path, case_sensitive=self.case_sensitive)[0] for ref in refs)
                return Unclear(_text(node, true=true), columns, _why_opaque(node))
            case _:
                return self._condition(node, true=true)

    def _truth(self, operand: n.Node, value: bool | None, below: list[Bound], *, true: bool) -> Bound:  # noqa: FBT001 - SQL's value
        if value is None and _never_null(operand):
            return Known(not true, shortened(f"({below[0].text}) IS {'' if true else 'NOT '}UNKNOWN"))
        rows = below[0] if value is not None else self._bounded(any_of(below))
        return self._complement(rows) if (value is None) is true else rows

    def _complement(self, rows: Bound) -> Bound:
        """All other rows. The complement of a complement is what it was made of, however often that is asked."""
        if id(rows) not in self.others:
            others = complement(rows)
            self.others[id(rows)], self.others[id(others)] = (rows, others), (others, rows)
        return self.others[id(rows)][1]

    def _bounded(self, rows: Bound) -> Bound:
        """The rows, or, where their condition has grown out of proportion, that only Spark can tell."""
        if not isinstance(rows, (AllOf, AnyOf)) or rows.size <= self.limit:
            return rows
        self.notes.append(
            f"a part that asks whether others are unknown, again and again, comes to {rows.size:,} conditions: it "
            "prunes nothing, and is left to Spark. Write it with fewer IS UNKNOWN."
        )
        return Unclear(rows.text, rows.columns, "too many conditions within IS UNKNOWN")

    def _condition(self, node: n.Node, *, true: bool) -> Bound:
        """A condition on one column."""
        term = node if isinstance(node, (n.Ref, n.Call)) else node.term  # type: ignore[union-attr] # others are done
        column, whole = self._column(term)
        if not whole:
            return Unclear(
                _text(node, true=true), (column,), f"part of a {'map' if pt.is_map(column.type) else 'list'}"
            )
        target = self._resolve(term, column)
        if target is None:
            return Unclear(_text(node, true=true), (column,), "function of a column")
        sets = self._sets(node, target)
        if sets is None:
            return Unclear(_text(node, true=true), (target.column,), _why_unordered(node, target.type))
        if isinstance(sets, str):
            return Known(value=False, text=_text(node, true=true))
        outer, inner = sets.when(true=true)
        return constant(Leaf(target.column, outer, inner, _text(node, true=true)))

    def _sets(self, node: n.Node, target: _Target) -> Accepted | str | None:
        """The sets of a condition; "never" if it is NULL of every row; None if only Spark can tell."""
        where = target.column.name
        if isinstance(node, (n.Compare, n.In)):
            check_kinds(target.type, (node.literal,) if isinstance(node, n.Compare) else node.literals, where)
        match node:
            case n.IsNull():
                return accepted(ValueSet.nothing(), ValueSet.nothing(), at_null=True)
            case n.Compare(operator="<=>", literal=n.Literal(value=None)):
                return accepted(ValueSet.nothing(), ValueSet.nothing(), at_null=True)
            case n.Compare(literal=n.Literal(value=None)):
                return "never"
            case n.Compare(operator=operator, literal=literal):
                split_ = split(target.type, literal, self.zone, where) if has_order(target.type) else None
                if split_ is None:
                    return None
                sets = self._compared(operator, self._pull(split_, target), target)
                return replace(sets, perhaps_at_null=always_at_null(target.type, operator, literal))
            case n.In(literals=literals):
                return self._listed(literals, target)
            case n.Like(pattern=pattern, escape=escape):
                return self._liked(pattern, escape, target)
            case n.StartsWith(prefix=prefix):
                return self._prefixed(prefix, target)
            case _:
                return self._bare(node, target)

    def _compared(self, operator: n.Operator, at: Split, target: _Target) -> Accepted:
        span = key_span(target.column.type)
        (at_low, at_high), (after_low, after_high) = at.at, at.after
        match operator:
            case "=" | "<=>" | "!=":
                outer, inner = run(at_low, after_high, span), run(at_high, after_low, span)
            case "<" | ">=":
                outer, inner = run(None, at_high, span), run(None, at_low, span)
            case "<=" | ">":
                outer, inner = run(None, after_high, span), run(None, after_low, span)
        if operator in {"!=", ">=", ">"}:
            outer, inner = inner.complement().without_null(), outer.complement().without_null()
        return accepted(outer, inner, exact=at.exact, at_null=False if operator == "<=>" else None)

    def _listed(self, literals: Sequence[n.Literal], target: _Target) -> Accepted | str | None:
        if isinstance(literals, LiteralColumn) and not target.calls:
            keys = column_keys(target.type, literals, self.zone)
            if keys is not None:
                whole = ValueSet.of_keys(keys).clip(key_span(target.type))
                return NullableList(whole, whole) if literals.has_null else Accepted(whole, whole)
        splits = listed(target.type, literals, self.zone, target.column.name) if has_order(target.type) else None
        if splits is None:
            return None
        span = key_span(target.column.type)
        if not target.calls:
            sets = points(splits, span) or spans(splits, span)
        else:
            members = [self._compared("=", self._pull(split_, target), target) for split_ in splits]
            outer, inner = (
                ValueSet.union_of([getattr(member, side) for member in members]) for side in ("outer", "inner")
            )
            sets = accepted(outer, inner, exact=all(member.exact for member in members))
        if len(splits) < len(literals):
            # A miss is NULL, not FALSE: whatever fails the list is neither, so that its complement accepts nothing.
            return NullableList(sets.outer, sets.inner, exact=sets.exact)
        return sets if literals else replace(sets, at_null=False)

    def _liked(self, pattern: str, escape: str, target: _Target) -> Accepted | None:
        if not is_text(target.type):
            return None
        prefix, rest = _pattern_prefix(pattern, escape)
        if prefix is None:
            return None
        if rest == "":
            return self._compared("=", self._pull(Split.key(prefix.encode()), target), target)
        outer = self._beginning(prefix.encode(), target, text=True)
        return replace(outer, inner=outer.inner if rest.strip("%") == "" else ValueSet.nothing())

    def _prefixed(self, prefix: n.Literal, target: _Target) -> Accepted | str | None:
        if prefix.value is None:
            return "never"
        if not uses_bytes(target.type) or not isinstance(prefix.value, (str, bytes)):
            return None
        if pt.is_decimal(target.type) or target.type == pa.uuid():
            return None
        raw = prefix.value.encode() if isinstance(prefix.value, str) else prefix.value
        text = is_text(target.type)
        return None if text and not is_utf8(raw) else self._beginning(raw, target, text=text)

    def _beginning(self, prefix: bytes, target: _Target, *, text: bool) -> Accepted:
        end = prefix_end(prefix, text=text)
        start_low, start_high = self._pull_cut(prefix, target)
        if end is None:
            outer, inner = ValueSet.between(start_low, None), ValueSet.between(start_high, None)
            return accepted(outer, inner) if prefix else accepted(ValueSet.not_null(), ValueSet.not_null())
        end_low, end_high = self._pull_cut(end, target)
        span = key_span(target.column.type)
        return accepted(run(start_low, end_high, span), run(start_high, end_low, span))

    def _bare(self, node: n.Node, target: _Target) -> Accepted | None:
        if is_text(target.type) and node is not self.root:
            return None  # beside AND, OR, NOT and IS Spark reads a truth value from it
        if not pt.is_boolean(target.type):
            raise BindError(
                f"{target.column.name} stands as a condition, but is {a_type(target.type)}, not a boolean. "
                "Compare it with a value.",
                column=target.column.name,
                nearest=(),
            )
        true = run(1, 2, key_span(target.type))
        return Accepted(true, true)

    def _column(self, term: n.Term) -> tuple[Column, bool]:
        """The column that a term reads, and whether all of it."""
        while isinstance(term, n.Call):
            term = term.term
        return self.schema.read(term.path, case_sensitive=self.case_sensitive)

    def _resolve(self, term: n.Term, column: Column) -> _Target | None:
        """The term's column and type; None if a function is not monotone on what it is given."""
        applied: list[n.Call] = []
        inside = term
        while isinstance(inside, n.Call):
            applied.append(inside)
            inside = inside.term
        target = _Target(column, (), column.type)
        for call in reversed(applied):
            result = result_type(call, target.type, self.zone)
            if result is None:
                return None
            target = _Target(column, ((call, target.type), *target.calls), result)
        return target

    def _pull(self, split_: Split, target: _Target) -> Split:
        """The split of the column's own values, through every function applied to it."""
        if not target.calls:
            return split_
        at_low, after_low = (self._pull_cut(key, target)[0] for key in (split_.at[0], split_.after[0]))
        at_high, after_high = (self._pull_cut(key, target)[1] for key in (split_.at[1], split_.after[1]))
        return Split((at_low, at_high), (after_low, after_high), split_.exact)

    def _pull_cut(self, cut: Key, target: _Target) -> Pair:
        low = high = cut
        for call, argument in target.calls:
            low, high = pull(call, argument, low, self.zone)[0], pull(call, argument, high, self.zone)[1]
        return low, high


def _needs(item: _Side) -> list[_Side]:
    """Which rows of its operands those of a node are made of."""
    node, true = item
    match node:
        case n.Not(operand=operand):
            return [(operand, not true)]
        case n.Truth(operand=n.Ref() | n.Call(), value=None):
            return []
        case n.Truth(operand=operand, value=None):
            return [(operand, True), (operand, False)]
        case n.Truth(operand=operand, value=bool(value)):
            return [(operand, value)]
    return [(operand, true) for operand in n.operands_of(node)]


def _never_null(node: n.Node) -> bool:
    """True only if the condition is TRUE or FALSE of every row."""
    todo = [node]
    while todo:
        match todo.pop():
            case n.Truth() | n.IsNull() | n.Compare(operator="<=>") | n.Constant(value=bool()):
                continue
            case n.And() | n.Or() | n.Not() as joined:
                todo.extend(n.operands_of(joined))
            case _:
                return False
    return True


def _pattern_prefix(pattern: str, escape: str) -> tuple[str | None, str]:
    """The literal beginning of a LIKE pattern and what follows it; None if an escape is malformed."""
    prefix: list[str] = []
    index = 0
    while index < len(pattern):
        char = pattern[index]
        if char == escape:
            following = pattern[index + 1 : index + 2]
            if following not in {"%", "_", escape} or not following:
                return None, ""
            prefix.append(following)
            index += 2
            continue
        if char in "%_":
            break
        prefix.append(char)
        index += 1
    return "".join(prefix), pattern[index:]


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
    return shortened(brief(node if true else n.Not(node)))
