"""Which keys of several columns a predicate leaves, tested against files as a join's tuples are.

Law: a file is dropped only if every combination of bucket-key values that a matching row can have hashes into
another bucket, or lies outside what the file holds. A predicate is read as OR branches; in each, every bucket-key
column has a set of values:

    id = 5 AND id IN (5, 6)               one branch     id in {5}
    (a = 1 AND b = 2) OR (a = 3 AND b = 4)  two branches   a in {1}, b in {2}  and  a in {3}, b in {4}
    id = 1 AND id = 2                     no branch      nothing matches
    id = 1 OR x = 7                       two branches   id in {1}  and  id anything, guarded by x = 7

What a branch asks of other columns guards it: where facts disprove the guard, the branch's buckets need not be read.
So `(day = 1 AND id = 5) OR (day = 2 AND id = 6)` reads one bucket of each day. Buckets of a single column are part
of its domain, and the judge asks for them leaf by leaf; this is for keys of several.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from itertools import product
from typing import Final

import numpy as np

from tamis.predicate.arrays import Mask
from tamis.predicate.bound import AllOf, AnyOf, Bound, BoundPredicate, Known, Leaf, Unclear, columns_of
from tamis.predicate.keys import Key, key_span, uses_bytes
from tamis.predicate.schema import Column
from tamis.predicate.values import ValueSet
from tamis.sieve.domain import Facts
from tamis.sieve.hashing import key_array
from tamis.sieve.join.tuples import Axis, KeyTuples, dense
from tamis.sieve.judge import Same, judge
from tamis.sieve.key_values import is_value

__all__ = ["MAX_VALUES", "BucketSelector", "limits", "selector_of"]

MAX_VALUES: Final = 1000
"""Most key combinations to hash for one branch. Beyond it nearly every bucket is hit: keep them all."""
MAX_BRANCHES: Final = 1000
"""Most OR branches to tell apart, each differing from the others in two columns at least. ANDed ORs multiply."""
MAX_GUARDS: Final = 32
"""Most different guards to judge, each over all files. Beyond it the branches are taken as unguarded."""

Combination = tuple[Key | None, ...]


@dataclass(frozen=True, slots=True)
class _Branch:
    """One way to match: a set of values for each bucket-key column, and what else must hold."""

    keys: tuple[ValueSet, ...]
    guards: tuple[Bound, ...] = ()


@dataclass(frozen=True, slots=True)
class _Group:
    """Branches of equal guards: their key combinations together, or why they are too many to list."""

    guards: tuple[Bound, ...]
    combinations: frozenset[Combination]
    tuples: KeyTuples | None = None
    """The combinations as keys to test files with; None if there are none, or too many."""
    open_because: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class BucketSelector:
    """Which keys a predicate can need, to be met with any buckets: each hash and total is asked once."""

    predicate: BoundPredicate
    columns: tuple[Column, ...]
    """The bucket key, in the order in which the writer hashes it."""
    max_values: int = MAX_VALUES
    _groups: tuple[_Group, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        branches = _Reader(self.columns).branches(self.predicate.root) if self.columns else [_Branch(())]
        object.__setattr__(self, "_groups", _grouped(branches, self.columns, self.max_values))

    @property
    def combinations(self) -> int | None:
        """How many different key combinations can match; None if they cannot be listed."""
        if any(group.open_because for group in self._groups):
            return None
        return len(frozenset[Combination]().union(*(group.combinations for group in self._groups)))

    @property
    def reason(self) -> str | None:
        """Why no bucket, or not every one that might, can be left out; None if nothing stands in the way."""
        found = [group.open_because for group in self._groups if group.open_because]
        return found[0] if found else next((why for why in self.faults), None)

    @property
    def faults(self) -> tuple[str, ...]:
        """Why combinations could not be hashed into buckets that files were asked for by."""
        found = [why for group in self._groups if group.tuples is not None for why in group.tuples.faults]
        return tuple(dict.fromkeys(found))

    def possible(self, facts: Facts) -> Mask:
        """For each file, False only if no row that it can hold matches.

        True where its bucket is not known, and where the hash cannot tell. A combination counts only if it hashes
        into the file's buckets and lies in all else that is known of the file, and its branch's guards may hold.
        """
        keep = np.zeros(facts.count, np.bool_)
        for group in self._groups:
            rows = np.flatnonzero(~keep)
            left = facts if len(rows) == facts.count else facts.take(rows)
            may = _guard(group.guards, left)
            if group.tuples is not None:
                may &= group.tuples.possible(left)[0]
            elif not group.open_because:
                may[:] = False
            keep[rows] = may
        return keep


def selector_of(predicate: BoundPredicate, columns: tuple[Column, ...]) -> BucketSelector:
    """The selector of a predicate over a bucket key; it meets many batches, one after the other."""
    return _kept_selector(Same(predicate), columns)


def limits(
    predicate: BoundPredicate, columns: tuple[Column, ...], places: Sequence[int]
) -> Iterator[list[list[Key | None]] | None]:
    """For each way to match, the values that it leaves of the columns at these places; None if they cannot be listed.

    A row that matches has, in one of the ways, a value of each list. What else a way asks is not looked at.
    """
    for branch in _Reader(columns).branches(predicate.root):
        listed = [_listed(branch.keys[place], columns[place], MAX_VALUES) for place in places]
        lists = [values for values in listed if values is not None]
        size = reduce(lambda total, values: total * len(values), lists, 1)
        yield lists if len(lists) == len(places) and size <= MAX_VALUES else None


@lru_cache(maxsize=8)
def _kept_selector(same: Same, columns: tuple[Column, ...]) -> BucketSelector:
    return BucketSelector(same.same, columns)


class _Reader:
    """Reads a predicate as branches over the bucket key; what it cannot follow, it widens."""

    def __init__(self, columns: tuple[Column, ...]) -> None:
        self._places = {column.id: place for place, column in enumerate(columns)}
        self._types = {column.id: column.type for column in columns}
        self._free = _Branch((ValueSet.everything(),) * len(columns))

    def branches(self, node: Bound) -> list[_Branch]:
        """Every row that matches node matches one of these; none if no row can."""
        match node:
            case Known(value=value):
                return [self._free] if value else []
            case Unclear():
                return [self._free]
            case Leaf(outer=outer) if outer.is_empty:
                return []
            # A column whose type has changed since has other keys: no set of the one is a set of the other.
            case Leaf(column=column, outer=outer) if self._types.get(column.id) == column.type:
                keys = list(self._free.keys)
                keys[self._places[column.id]] = outer
                return [_Branch(tuple(keys))]
            case AllOf(operands=operands):
                return self._all_of(operands)
            case AnyOf(operands=operands) if any(column.id in self._places for column in columns_of(node)):
                found = [branch for operand in operands for branch in self.branches(operand)]
                merged = _merged(found, len(self._places))
                return merged if len(merged) <= MAX_BRANCHES else [self._free]
        return [_Branch(self._free.keys, (node,))]

    def _all_of(self, operands: Sequence[Bound]) -> list[_Branch]:
        joined = [self._free]
        for more in sorted((self.branches(operand) for operand in operands), key=len):
            if len(joined) * len(more) > MAX_BRANCHES:
                break  # what is left out only narrows: the branches so far hold every match
            joined = [both for one in joined for other in more if (both := _both(one, other))]
        return _merged(joined, len(self._places))


def _both(one: _Branch, other: _Branch) -> _Branch | None:
    """What matches both branches; None if a column is left without a value: a contradiction."""
    keys = tuple(left.intersect(right) for left, right in zip(one.keys, other.keys, strict=True))
    if any(values.is_empty for values in keys):
        return None
    return _Branch(keys, tuple(dict.fromkeys(one.guards + other.guards)))


def _merged(branches: list[_Branch], width: int) -> list[_Branch]:
    """The same rows in fewer branches: those that differ in one column only become one."""
    for place in range(width):
        alike: dict[tuple[object, ...], list[_Branch]] = {}
        for branch in branches:
            rest = (branch.keys[:place], branch.keys[place + 1 :], branch.guards)
            alike.setdefault(rest, []).append(branch)
        branches = [_joined(group, place) for group in alike.values()]
    return branches


def _joined(branches: list[_Branch], place: int) -> _Branch:
    keys, either = branches[0].keys, ValueSet.union_of([branch.keys[place] for branch in branches])
    return _Branch((*keys[:place], either, *keys[place + 1 :]), branches[0].guards)


def _grouped(branches: list[_Branch], columns: tuple[Column, ...], limit: int) -> tuple[_Group, ...]:
    guards = list(dict.fromkeys(branch.guards for branch in branches))
    if len(guards) > MAX_GUARDS:
        branches, guards = [_Branch(branch.keys) for branch in branches], [()]
    return tuple(
        _group(each, [branch for branch in branches if branch.guards == each], columns, limit) for each in guards
    )


def _group(guards: tuple[Bound, ...], branches: list[_Branch], columns: tuple[Column, ...], limit: int) -> _Group:
    if not columns:
        return _open(guards, "the table has no bucket key")
    found: set[Combination] = set()
    too_many = f"more than {limit:,} combinations of bucket-key values match"
    for branch in branches:
        lists = []
        for column, values in zip(columns, branch.keys, strict=True):
            listed = _listed(values, column, limit)
            if listed is None:
                return _open(guards, f"{column.name} is not limited to at most {limit:,} values")
            lists.append(listed)
        if reduce(lambda size, values: size * len(values), lists, 1) > limit:
            return _open(guards, too_many)
        found.update(product(*lists))
        if len(found) > limit:
            return _open(guards, too_many)
    return _Group(guards, frozenset(found), _as_tuples(found, columns) if found else None)


def _open(guards: tuple[Bound, ...], why: str) -> _Group:
    return _Group(guards, frozenset(), open_because=why)


def _listed(values: ValueSet, column: Column, limit: int) -> list[Key | None] | None:
    points = values.points(limit, key_span(column.type))
    if points is None:
        return None
    listed: list[Key | None] = [key for key in points.tolist() if is_value(key, column.type)]
    return [*listed, None] if values.nulls else listed


def _as_tuples(combinations: set[Combination], columns: tuple[Column, ...]) -> KeyTuples:
    """The combinations as a join's keys would be, in a fixed order."""
    ordered = sorted(combinations, key=lambda row: tuple((key is not None, key) for key in row))
    axes, codes = [], []
    for column, keys in zip(columns, zip(*ordered, strict=True), strict=True):
        filled = np.empty(len(keys), object)
        filled[:] = [(b"" if uses_bytes(column.type) else 0) if key is None else key for key in keys]
        code, distinct = dense(key_array(filled, column.type, np.array([key is not None for key in keys])))
        axes.append(Axis.of(column, distinct))
        codes.append(code)
    return KeyTuples(tuple(axes), tuple(codes))


def _guard(guards: tuple[Bound, ...], facts: Facts) -> Mask:
    """Where every guard may hold."""
    may = np.ones(facts.count, np.bool_)
    for guard in guards:
        may &= judge(guard, facts).possible
    return may
