"""Which hash buckets can hold a row that matches: the bucket key's values that a predicate leaves, hashed.

Law: a bucket is dropped only if every combination of bucket-key values that a matching row can have hashes into
another one. A predicate is read as OR branches; in each, every bucket-key column has a set of values:

    id = 5 AND id IN (5, 6)               one branch     id in {5}
    (a = 1 AND b = 2) OR (a = 3 AND b = 4)  two branches   a in {1}, b in {2}  and  a in {3}, b in {4}
    id = 1 AND id = 2                     no branch      nothing matches
    id = 1 OR x = 7                       two branches   id in {1}  and  id anything, guarded by x = 7

What a branch asks of other columns guards it: where facts disprove the guard, the branch's buckets need not be read.
So `(day = 1 AND id = 5) OR (day = 2 AND id = 6)` reads one bucket of each day.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import product
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy import typing as npt
from pyarrow import types as pt

from tamis.predicate.bound import AllOf, AnyOf, Bound, BoundPredicate, Known, Leaf, Unclear, columns_of
from tamis.predicate.keys import Key, key_span
from tamis.predicate.schema import Column
from tamis.predicate.values import ValueSet
from tamis.sieve.domain import Facts
from tamis.sieve.inverse import is_value, to_values
from tamis.sieve.judge import judge
from tamis.sieve.order import Mask

__all__ = ["MAX_VALUES", "BucketSelector", "HashFunction"]

MAX_VALUES: Final = 1000
"""Most key combinations to hash for one branch. Beyond it nearly every bucket is hit: keep them all."""
MAX_BRANCHES: Final = 1000
"""Most OR branches to tell apart, each differing from the others in two columns at least. ANDed ORs multiply."""
MAX_GUARDS: Final = 32
"""Most different guards to judge, each over all files. Beyond it the branches are taken as unguarded."""

Buckets = npt.NDArray[np.int64]
Combination = tuple[Key | None, ...]


class HashFunction(Protocol):
    """How a format's writer finds a row's bucket."""

    def __call__(self, keys: pa.Table, total_buckets: int, /) -> npt.NDArray[np.integer] | None:
        """The bucket, from 0 to total_buckets - 1, of each row of bucket-key values.

        The table has the bucket-key columns in their order and types; NULL is null. None, or a ValueError that
        says why, if a value, a NULL or a type cannot be hashed as the writer did: then all buckets are kept.
        """
        ...


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
    open_because: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class BucketSelector:
    """Which buckets a predicate can need, for any total number of buckets. Each total is hashed once."""

    predicate: BoundPredicate
    columns: tuple[Column, ...]
    """The bucket key, in the order in which the writer hashes it."""
    hash_function: HashFunction
    max_values: int = MAX_VALUES
    _groups: tuple[_Group, ...] = field(init=False, repr=False)
    _hashed: dict[int, tuple[Buckets | None, ...]] = field(init=False, repr=False, default_factory=dict)
    _failures: dict[int, str] = field(init=False, repr=False, default_factory=dict)

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
        return found[0] if found else next(iter(self._failures.values()), None)

    @property
    def chosen(self) -> dict[int, tuple[int, ...] | None]:
        """For each total number of buckets asked for so far: the buckets that can match; None if all can."""
        return {total: _together(hashed) for total, hashed in sorted(self._hashed.items())}

    def select(self, buckets: pa.Array, total_buckets: pa.Array, facts: Facts | None = None) -> Mask:
        """For each file, False only if no row of its bucket can match.

        True where the bucket or the total is null, not positive or out of range, and where the hash cannot tell.
        With facts (of the same files: their partitions, usually) branches count only where their guards may hold.
        """
        if not self._groups:
            return np.zeros(len(buckets), np.bool_)
        if all(group.open_because and not (facts and group.guards) for group in self._groups):
            return np.ones(len(buckets), np.bool_)
        bucket, total = _integers(buckets), _integers(total_buckets)
        keep = (total <= 0) | (bucket < 0) | (bucket >= total)
        guarded = [_guard(group.guards, facts) for group in self._groups]
        for count in np.unique(total[~keep]).tolist():
            rows = np.flatnonzero(~keep & (total == count))
            for hashed, guard in zip(self._buckets_of(count), guarded, strict=True):
                hit = np.True_ if hashed is None else np.isin(bucket[rows], hashed)
                keep[rows] |= hit if guard is None else hit & guard[rows]
        return np.asarray(keep)

    def _buckets_of(self, total: int) -> tuple[Buckets | None, ...]:
        if total not in self._hashed:
            self._hashed[total] = tuple(self._hash(group, total) for group in self._groups)
        return self._hashed[total]

    def _hash(self, group: _Group, total: int) -> Buckets | None:
        if group.open_because:
            return None
        if not group.combinations:
            return np.empty(0, np.int64)
        try:
            hashed = self.hash_function(_as_table(group.combinations, self.columns), total)
        except (ValueError, OverflowError, pa.ArrowException) as error:
            self._failures[total] = f"the bucket hash cannot take a value: {error}"
            return None
        if hashed is None:
            self._failures[total] = "the bucket hash cannot take these values"
            return None
        found = np.unique(hashed).astype(np.int64)
        if not len(found) or found[0] < 0 or found[-1] >= total:
            self._failures[total] = f"the bucket hash gave a bucket outside 0 to {total - 1}"
            return None
        return found


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
    sets = [branch.keys[place] for branch in branches]
    while len(sets) > 1:  # in pairs, so that a thousand ORed values take ten rounds over them
        rest = sets[len(sets) // 2 * 2 :]
        sets = [one.union(other) for one, other in zip(sets[0::2], sets[1::2], strict=False)] + rest
    keys = branches[0].keys
    return _Branch((*keys[:place], sets[0], *keys[place + 1 :]), branches[0].guards)


def _grouped(branches: list[_Branch], columns: tuple[Column, ...], limit: int) -> tuple[_Group, ...]:
    guards = list(dict.fromkeys(branch.guards for branch in branches))
    if len(guards) > MAX_GUARDS:
        branches, guards = [_Branch(branch.keys) for branch in branches], [()]
    return tuple(
        _group(each, [branch for branch in branches if branch.guards == each], columns, limit) for each in guards
    )


def _group(guards: tuple[Bound, ...], branches: list[_Branch], columns: tuple[Column, ...], limit: int) -> _Group:
    if not columns:
        return _Group(guards, frozenset(), "the table has no bucket key")
    found: set[Combination] = set()
    too_many = f"more than {limit:,} combinations of bucket-key values match"
    for branch in branches:
        lists = []
        for column, values in zip(columns, branch.keys, strict=True):
            listed = _listed(values, column, limit)
            if listed is None:
                return _Group(guards, frozenset(), f"{column.name} is not limited to at most {limit:,} values")
            lists.append(listed)
        if reduce(lambda size, values: size * len(values), lists, 1) > limit:
            return _Group(guards, frozenset(), too_many)
        found.update(product(*lists))
        if len(found) > limit:
            return _Group(guards, frozenset(), too_many)
    return _Group(guards, frozenset(found))


def _listed(values: ValueSet, column: Column, limit: int) -> list[Key | None] | None:
    points = values.points(limit, key_span(column.type))
    if points is None:
        return None
    listed: list[Key | None] = [key for key in points.tolist() if is_value(key, column.type)]
    return [*listed, None] if values.nulls else listed


def _as_table(combinations: frozenset[Combination], columns: tuple[Column, ...]) -> pa.Table:
    """The combinations as rows, in a fixed order; a key that stands for two bit patterns becomes two rows."""
    ordered = sorted(combinations, key=lambda row: tuple((key is not None, key) for key in row))
    lists = zip(*ordered, strict=True)
    arrays = [to_values(keys, column.type) for keys, column in zip(lists, columns, strict=True)]
    table = pa.Table.from_arrays(arrays, [column.name for column in columns])
    for place, column in enumerate(columns):
        if not pt.is_floating(column.type):
            continue
        values = table.column(place)
        if pc.any(pc.is_nan(values)).as_py():
            raise ValueError(f"{column.name} may be NaN, which writers store as different bits")
        # -0.0 equals 0.0, but its bits, and so its bucket, differ.
        zeros = table.filter(pc.equal(values, pa.scalar(0.0, column.type)))
        negative = pa.array([-0.0] * len(zeros), column.type)
        table = pa.concat_tables([table, zeros.set_column(place, column.name, negative)])
    return table.combine_chunks()


def _integers(array: pa.Array | pa.ChunkedArray) -> Buckets:
    """Numbers, with -1 for null."""
    return np.asarray(array.fill_null(-1), np.int64)


def _guard(guards: tuple[Bound, ...], facts: Facts | None) -> Mask | None:
    """Where every guard may hold; None for everywhere."""
    if facts is None or not guards:
        return None
    return reduce(np.logical_and, (judge(guard, facts).possible for guard in guards))


def _together(hashed: tuple[Buckets | None, ...]) -> tuple[int, ...] | None:
    listed = [part for part in hashed if part is not None]
    if len(listed) < len(hashed):
        return None
    return tuple(sorted({bucket for part in listed for bucket in part.tolist()}))
