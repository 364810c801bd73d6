"""The one judge: a bound predicate against what is known of each file.

Two answers for every file, as arrays: `possible` (a row may match) and `certain` (every row matches). NONE is not
possible, ALL is certain, SOME is the rest. Derivation for a leaf with the set S and a file whose values lie in
[lower, upper]: let r(x) be the number of S's cuts at or below x. Between two cuts membership never changes. So

    r(lower) = r(upper)   the whole range lies in one run of S: all of it is inside, or none of it
    r(lower) < r(upper)   the range crosses a cut: some of it may be inside, and some outside
    r(lower) > r(upper)   two facts exclude each other: there is no such value

and NULL and NaN, which stand apart from the range, are members of S or not. A leaf's possible is asked of its outer
set, its certain of its inner one, so that an inexact set errs on the safe side in both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types as pt

from tamis.predicate.arrays import Int64s, Mask
from tamis.predicate.bound import AllOf, AnyOf, Bound, Known, Leaf, Unclear, columns_of
from tamis.predicate.keys import NAN_KEY, key_span
from tamis.predicate.schema import Column
from tamis.predicate.values import Cuts, ValueSet
from tamis.sieve.boxes import Boxes, is_box
from tamis.sieve.domain import BucketRange, Domain, Facts, Range
from tamis.sieve.hashing import ANY_BUCKET, BucketHash, hash_keys, key_array
from tamis.sieve.order import Ranks, Side, ranks
from tamis.sieve.placing import placed

__all__ = ["MAX_HASHED", "Same", "Turn", "Verdicts", "in_turn", "judge", "may_hold"]

MAX_HASHED = 1_000_000
"""Most values of one set to hash into buckets. Hashing them takes about as long as reading a small manifest."""
MANY = 32
"""From so many branches on an OR is judged by where they lie, not branch by branch."""
MAX_EXPANDED = 1000
"""Most values of a plain range to hash: beyond it nearly every bucket is hit."""
FEW_BUCKETS = 1 << 16
"""Up to so many buckets the members before each are counted in a table; beyond it they are searched."""


@dataclass(frozen=True, slots=True)
class Verdicts:
    """A selection vector and its proof: possible is never false, certain never true, without one."""

    possible: Mask
    certain: Mask

    def __len__(self) -> int:
        return len(self.possible)

    def to_arrow(self) -> pa.StructArray:
        """The two answers as an Arrow struct array."""
        return pa.StructArray.from_arrays([pa.array(self.possible), pa.array(self.certain)], ["possible", "certain"])


def judge(node: Bound, facts: Facts) -> Verdicts:
    """Whether each file may, and whether it surely does, hold rows of which the predicate is true.

    An Unclear part is possible and never certain; a column without a domain is ANY.
    """
    match node:
        case Leaf():
            return _judge_leaf(node, facts.of(node.column))
        case Unclear():
            return Verdicts(np.ones(facts.count, np.bool_), np.zeros(facts.count, np.bool_))
        case Known(value=value):
            answer = np.full(facts.count, value)
            return Verdicts(answer, answer)
        case AllOf(operands=operands):
            possible, certain = np.ones(facts.count, np.bool_), np.ones(facts.count, np.bool_)
            for part in in_turn(operands, facts):
                possible[part.rows] &= part.possible
                certain[part.rows] &= part.certain
            return Verdicts(possible, certain & possible)
        case AnyOf(operands=operands):
            parts = [judge(operand, facts) for operand in operands] if len(operands) < MANY else _many(node, facts)
            return Verdicts(
                reduce(np.logical_or, (part.possible for part in parts)),
                reduce(np.logical_or, (part.certain for part in parts)),
            )


def _many(node: AnyOf, facts: Facts) -> list[Verdicts]:
    """The parts of a wide OR: those that are boxes together, the others one by one."""
    boxes, others = _kept_boxes(Same(node))
    parts = [judge(operand, facts) for operand in others]
    if boxes is not None:
        parts.append(Verdicts(*boxes.judge(facts, _one)))
    return parts


def _one(branch: AllOf, facts: Facts) -> tuple[Mask, Mask]:
    found = judge(branch, facts)
    return found.possible, found.certain


@dataclass(frozen=True, slots=True)
class Turn:
    """One part of a conjunction, judged for the files of which no part before it was impossible."""

    place: int
    rows: Int64s | slice
    possible: Mask
    certain: Mask


def in_turn(parts: Sequence[Bound], facts: Facts) -> Iterator[Turn]:
    """Judge the parts of a conjunction, cheap ones first, each only for the files that may still match.

    A part that drops half the files or more halves the work of all that follow; a list of a million keys comes last.
    """
    rows: Int64s | None = None
    left = np.ones(facts.count, np.bool_)
    for place in sorted(range(len(parts)), key=lambda place: parts[place].cost):
        part = parts[place]
        if rows is None:
            found = judge(part, facts)
        else:
            needed = {column.id for column in columns_of(part)}
            known = {id_: domain for id_, domain in facts.domains.items() if id_ in needed}
            found = judge(part, Facts(facts.count, known).take(rows))
        yield Turn(place, slice(None) if rows is None else rows, found.possible, found.certain)
        left = found.possible if rows is not None else left & found.possible
        if left.sum() * 2 < len(left):
            rows = np.flatnonzero(left) if rows is None else rows[left]
            left = np.ones(len(rows), np.bool_)


def may_hold(accepted: ValueSet, column: Column, domain: Domain) -> Mask:
    """False only where no value of the column can be in the set; True also where unknown."""
    return _may_hold(accepted, column, domain, placed(accepted.cuts, column, domain))


def _judge_leaf(leaf: Leaf, domain: Domain) -> Verdicts:
    """Possible: a value may be in the outer set. Certain: none can be in the complement of the inner set."""
    outer, outside = leaf.outer, leaf.inner.complement()
    places = placed(outer.cuts, leaf.column, domain)
    possible = _may_hold(outer, leaf.column, domain, places)
    if outside.cuts is not outer.cuts:  # most leaves are exact: then both questions have the same ranks
        places = placed(outside.cuts, leaf.column, domain)
    return Verdicts(possible, ~_may_hold(outside, leaf.column, domain, places))


def _may_hold(accepted: ValueSet, column: Column, domain: Domain, places: tuple[Ranks, Ranks]) -> Mask:
    may = domain.may_null if accepted.nulls else np.zeros(len(domain), np.bool_)
    if pt.is_floating(column.type) and accepted.holds(NAN_KEY):
        may = may | domain.may_nan
    low, high = places
    within = (low < high) | ((low == high) & accepted.inside(low))
    for bucket in domain.buckets:
        within &= reduce(
            np.logical_or, (_may_hash(accepted, column, each, domain.ranges) for each in bucket.variants())
        )
    return np.asarray(may | (domain.may_value & within))


def _may_hash(accepted: ValueSet, column: Column, bucket: BucketRange, ranges: Sequence[Range]) -> Mask:
    """False only where no member of a finite set both hashes into the file's buckets and lies in its ranges."""
    members = _members(accepted, column.type, bucket)
    if members is None:
        return np.ones(len(bucket.valid), np.bool_)
    lower = np.clip(bucket.lower, 0, bucket.count - 1)
    upper = np.clip(bucket.upper, 0, bucket.count - 1)
    found = members.before(upper + 1) > members.before(lower)
    if members.anywhere:
        found[:] = True
    one = np.flatnonzero(found & bucket.valid & (lower == upper))
    if ranges and len(one):
        found[one] = members.within(lower[one], [part.take(one) for part in ranges])
    return np.asarray(found | ~bucket.valid)


@dataclass(frozen=True, slots=True, eq=False)
class _Members:
    """The members of a finite set, in order, by the buckets that they hash to; those of any bucket come last."""

    keys: Cuts
    marks: Int64s
    """Of each member, its bucket and its place, as one number: in order."""
    count: int
    """How many buckets there are: the number of one more, in which stands what may lie in any."""
    table: Int64s | None
    """How many members' buckets are below each; None if the buckets are too many to list."""
    anywhere: bool
    """Whether a member may lie in any bucket."""

    def before(self, buckets: Int64s) -> Int64s:
        """How many members' buckets are below each: a range of buckets holds one if the counts at its ends differ."""
        return np.searchsorted(self.marks, buckets * len(self.keys)) if self.table is None else self.table[buckets]

    def within(self, buckets: Int64s, ranges: Sequence[Range]) -> Mask:
        """Whether a member hashes to each file's bucket, or may, and lies in all its ranges."""
        count = len(self.keys)
        first, last = np.zeros(len(buckets), np.int64), np.full(len(buckets), count, np.int64)
        for part in ranges:
            if part.lower is not None:
                np.maximum(first, ranks(part.lower, self.keys, "left"), out=first, where=part.lower.valid)
            if part.upper is not None:
                side: Side = "left" if part.upper_open else "right"
                np.minimum(last, ranks(part.upper, self.keys, side), out=last, where=part.upper.valid)
        last = np.maximum(first, last)
        found = self._between(buckets, first, last)
        return found | self._between(np.full_like(buckets, self.count), first, last) if self.anywhere else found

    def _between(self, buckets: Ranks, first: Ranks, last: Ranks) -> Mask:
        count = len(self.keys)
        begin = np.searchsorted(self.marks, buckets * count + first)
        return np.asarray(begin < np.searchsorted(self.marks, buckets * count + last))


@dataclass(frozen=True, slots=True)
class Same:
    """A set or condition, known by being the same object: to compare a million keys costs more than to hash them."""

    same: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.same is other.same

    def __hash__(self) -> int:
        return id(self.same)


def _members(accepted: ValueSet, type_: pa.DataType, bucket: BucketRange) -> _Members | None:
    """None if there are too many members to hash, or they cannot be hashed."""
    return _kept_members(Same(accepted), type_, bucket.hash, bucket.count)


@lru_cache(maxsize=16)
def _kept_members(same: Same, type_: pa.DataType, by: BucketHash, count: int) -> _Members | None:
    """A set meets many batches, one after the other, and perhaps more than one number of buckets."""
    accepted: ValueSet = same.same
    # A listed value is a run of one key: if every run is short, all are worth hashing; a long run is a range.
    # Of nanoseconds a listed value is a microsecond, a run of a thousand keys.
    short = min(MAX_EXPANDED * 1000, MAX_HASHED) if pt.is_timestamp(type_) and type_.unit == "ns" else MAX_EXPANDED
    limit = MAX_HASHED if len(accepted.cuts) > 2 * MAX_EXPANDED else short
    points = accepted.points(limit, key_span(type_))
    if points is None:
        return None
    hashed = hash_keys(by, [key_array(points, type_)], [type_], count)
    if isinstance(hashed, str):
        return None
    anywhere = hashed == ANY_BUCKET
    hashed = np.where(anywhere, count, hashed)
    table = None
    if count <= FEW_BUCKETS:
        table = np.zeros(count + 1, np.int64)
        table[1:] = np.cumsum(np.bincount(hashed, minlength=count)[:count])
    marks = np.sort(hashed * len(points) + np.arange(len(points)))
    return _Members(points, marks, count, table, bool(anywhere.any()))


@lru_cache(maxsize=4)
def _kept_boxes(same: Same) -> tuple[Boxes | None, tuple[Bound, ...]]:
    """The branches of an OR that are boxes, and the others. They meet many batches, one after the other."""
    operands: tuple[Bound, ...] = same.same.operands
    boxes = [part for part in operands if isinstance(part, AllOf) and is_box(part)]
    if len(boxes) < MANY:
        return None, operands
    return Boxes.of(boxes), tuple(part for part in operands if not is_box(part))
