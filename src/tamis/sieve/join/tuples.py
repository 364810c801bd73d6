"""Keys of several columns, a join's or a predicate's: sorted, distinct, and tested as whole tuples.

Column by column a file may pass although no single tuple fits it: of (1, 9) and (9, 1) the file with both columns in
[0, 5] has a first and a second half. So every file is placed in the rank coordinates of the keys, where its box is
a run of ranks on each axis, and tuples are tested against boxes:

    tuples (1, 9) and (9, 1)      first axis: 1 has rank 0, 9 has 1      second axis: the same
    file with a, b in [0, 5]      box [0, 1) x [0, 1)      neither (0, 1) nor (1, 0) lies in it

The hash bucket of a key, or of a whole tuple, is one more coordinate: a file's buckets are a run on that axis.

Law: a file is dropped only if an axis excludes all tuples, or every tuple was tested and none lies in its box. What
the work budget leaves untested is kept and counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy import typing as npt
from pyarrow import types as pt

from tamis.predicate.arrays import Int64s, Mask
from tamis.predicate.keys import INT64_MAX, INT64_MIN, NAN_KEY, float_key, successor, uses_bytes
from tamis.predicate.schema import Column
from tamis.predicate.values import Cuts, ValueSet
from tamis.sieve.domain import BucketRange, Domain, Facts, KeyBuckets
from tamis.sieve.hashing import ANY_BUCKET, BucketHash, hash_keys, key_array
from tamis.sieve.order import KeyArray, ranks

__all__ = ["MAX_PAIRS", "Axis", "KeyTuples", "dense", "distinct_rows"]

MAX_PAIRS: Final = 20_000_000
"""Most (tuple, file) pairs to test, about a second's work. Files beyond it are kept: reading some is cheaper."""
CHUNK: Final = 1 << 20
"""Pairs tested at a time: a few arrays of this length fit the cache of a core or two."""
NULL_CODE: Final = -1


def dense(keys: KeyArray) -> tuple[Int64s, Cuts]:
    """A number for each key in key order, equal for equal keys, -1 where there is none; and the keys themselves."""
    codes = np.full(len(keys), NULL_CODE, np.int64)
    if isinstance(keys.keys, np.ndarray):
        distinct, codes[keys.valid] = np.unique(keys.keys[keys.valid], return_inverse=True)
        return codes, distinct
    encoded = keys.keys.filter(pa.array(keys.valid)).dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    codes[keys.valid] = places[encoded.indices.to_numpy()]
    found = np.empty(len(order), object)
    found[:] = encoded.dictionary.take(pa.array(order)).to_pylist()
    return codes, found


def distinct_rows(columns: list[npt.NDArray[Any]]) -> tuple[Int64s, Int64s]:
    """One row of each kind, in ascending order; and for every row the place of its kind among them."""
    order = np.lexsort(columns[::-1])
    new = np.zeros(len(order), np.bool_)
    new[:1] = True
    for column in columns:
        ordered = column[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    place = np.empty(len(order), np.int64)
    place[order] = np.cumsum(new) - 1
    return order[new], place


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """The distinct join keys of one column, each a run [start, end) of the column's keys."""

    column: Column
    starts: Cuts
    ends: Cuts
    """One fewer than starts if nothing lies above the last key."""
    step: int = 1

    @classmethod
    def of(cls, column: Column, keys: Cuts, step: int = 1) -> Axis:
        """Keys in ascending order; each stands for step keys of the column."""
        if keys.dtype == object:
            ends = np.empty(len(keys), object)
            ends[:] = [successor(key) for key in keys]
            return cls(column, keys, ends)
        # (k + 1) * step overflows for the last key at most, and k * step underflows for the first at most.
        most = INT64_MAX // step
        ends = (keys[:-1] if len(keys) and keys[-1] >= most else keys) + 1
        least = -(INT64_MAX // step) if step > 1 else INT64_MIN
        return cls(column, np.where(keys < least, INT64_MIN, keys * step), ends * step, step)

    def accepted(self, *, nulls: bool = False) -> ValueSet:
        """The keys as the set that a leaf of a predicate would accept."""
        values = ValueSet.of_intervals(self.starts, self.ends)
        return ValueSet(values.cuts, values.inside_first, nulls)

    @property
    def ordinary(self) -> int:
        """How many keys are no NaN, which is last if it is there."""
        if pt.is_floating(self.column.type):
            return int(np.searchsorted(self.starts, float_key(float("inf")), "right"))
        return len(self.starts)

    @property
    def has_nan(self) -> bool:
        """Whether NaN is among the keys."""
        return bool(pt.is_floating(self.column.type) and len(self.starts) and self.starts[-1] == NAN_KEY)

    def reach(self, domain: Domain) -> _Reach:
        """Which of the keys each file may hold."""
        first = np.zeros(len(domain), np.int64)
        last = np.full(len(domain), self.ordinary, np.int64)
        for part in domain.ranges:
            if part.lower is not None:
                np.maximum(first, ranks(part.lower, self.ends, "right"), out=first, where=part.lower.valid)
            if part.upper is not None:
                found = ranks(part.upper, self.starts, "left" if part.upper_open else "right")
                np.minimum(last, found, out=last, where=part.upper.valid)
        last = np.where(domain.may_value, np.maximum(first, last), first)
        return _Reach(first, last, domain.may_null, domain.may_nan & self.has_nan)


@dataclass(frozen=True, slots=True, eq=False)
class _Reach:
    """A file's box on one axis: codes in [first, last), perhaps the code NULL_CODE, perhaps NaN's."""

    first: Int64s
    last: Int64s
    null: Mask
    nan: Mask

    def take(self, rows: Int64s) -> _Reach:
        """The boxes of these files."""
        return _Reach(self.first[rows], self.last[rows], self.null[rows], self.nan[rows])


@dataclass(frozen=True, slots=True, eq=False)
class _Codes:
    """One coordinate of every tuple: a column's key, or the bucket of a key; and the tuples in its order."""

    codes: Int64s
    """NULL_CODE for NULL, and for what may lie in any bucket."""
    ordinary: int
    """Codes from 0 to here are neither NULL nor NaN."""
    nan_code: int
    """NaN's code, the last; -2 if it is not there."""
    order: Int64s
    offsets: Int64s
    """Where each code begins in that order."""
    buckets: Int64s | None = None
    """Which bucket each code stands for, ascending; None if it is a column's key."""

    @classmethod
    def of(cls, codes: Int64s, count: int, ordinary: int, buckets: Int64s | None = None) -> _Codes:
        order = np.argsort(codes, kind="stable")
        offsets = np.searchsorted(codes[order], np.arange(count + 1))
        return cls(codes, ordinary, count - 1 if ordinary < count else -2, order, offsets, buckets)

    @classmethod
    def of_buckets(cls, buckets: Int64s) -> _Codes:
        """Of each tuple its bucket: a code for each bucket that occurs."""
        known = buckets != ANY_BUCKET
        codes = np.full(len(buckets), NULL_CODE, np.int64)
        present, codes[known] = np.unique(buckets[known], return_inverse=True)
        return cls.of(codes, len(present), len(present), present)

    def reach(self, bucket: BucketRange) -> _Reach:
        """Which of the buckets each file has. What may lie in any bucket is in all of them."""
        assert self.buckets is not None  # noqa: S101 - asked of buckets alone
        first = np.where(bucket.valid, np.searchsorted(self.buckets, bucket.lower), 0)
        last = np.where(bucket.valid, np.searchsorted(self.buckets, bucket.upper, "right"), self.ordinary)
        every = np.ones(len(first), np.bool_)
        return _Reach(first, np.maximum(first, last), every, ~every)

    @property
    def has_null(self) -> bool:
        return bool(self.offsets[0] > 0)

    def takes_all(self, reach: _Reach) -> Mask:
        """Where a file's box holds all codes that occur."""
        all_of_it = (reach.first == 0) & (reach.last == self.ordinary)
        if self.has_null:
            all_of_it = all_of_it & reach.null
        return np.asarray(all_of_it & reach.nan if self.nan_code >= 0 else all_of_it)

    def takes_any(self, reach: _Reach) -> Mask:
        """Where a file's box holds any code at all."""
        return np.asarray((reach.first < reach.last) | (reach.null & self.has_null) | reach.nan)

    def slices(self, reach: _Reach) -> tuple[Int64s, Int64s]:
        """From where to where each file has to look at the tuples in order of this axis."""
        # NULL stands before the first key and NaN behind the last: a file that may hold one looks from, or to, there.
        start = np.where(reach.null & self.has_null, 0, self.offsets[reach.first])
        end = np.where(reach.nan, len(self.codes), self.offsets[reach.last])
        return start, np.maximum(end, start)

    def allows(self, reach: _Reach, files: Int64s, tuples: Int64s) -> Mask:
        """Whether the file may hold the tuple's key, pair by pair."""
        codes = self.codes[tuples]
        within = (codes >= reach.first[files]) & (codes < reach.last[files])
        if self.has_null:
            within |= reach.null[files] & (codes == NULL_CODE)
        if self.nan_code >= 0:
            within |= reach.nan[files] & (codes == self.nan_code)
        return np.asarray(within)


@dataclass(frozen=True, slots=True, eq=False)
class _Side:
    """One coordinate of tuples and files alike."""

    codes: _Codes
    reach: _Reach
    limit: int
    """Coordinates of one number are one limit: a column and its own buckets, which were asked for together."""

    def take(self, rows: Int64s) -> _Side:
        """The same of these files."""
        return _Side(self.codes, self.reach.take(rows), self.limit)

    def columns(self) -> list[npt.NDArray[Any]]:
        """All that tells one box from another."""
        ends = [self.reach.first, self.reach.last]
        return [*ends, self.reach.null, self.reach.nan] if self.codes.buckets is None else ends


@dataclass(frozen=True, slots=True, eq=False)
class KeyTuples:
    """Distinct tuples of keys: for each axis, the code of each tuple's key; -1 is NULL."""

    axes: tuple[Axis, ...]
    codes: tuple[Int64s, ...]
    _columns: list[_Codes] = field(init=False, repr=False, default_factory=list)
    _hashed: dict[tuple[object, ...], _Codes | str] = field(init=False, repr=False, default_factory=dict)

    @property
    def faults(self) -> tuple[str, ...]:
        """Why tuples could not be hashed into buckets that files were asked for by."""
        return tuple(dict.fromkeys(text for text in self._hashed.values() if isinstance(text, str)))

    def hashes(self, fact: KeyBuckets) -> bool:
        """Whether whole keys of these buckets are among the tuples: each column, of the type that was hashed."""
        exact = {axis.column.id: axis.column.type for axis in self.axes if axis.step == 1}
        return all(exact.get(column.id) == column.type for column in fact.columns)

    def possible(self, facts: Facts, budget: int = MAX_PAIRS) -> tuple[Mask, int]:
        """False only where no tuple lies in the file's box; and how many files were kept for want of budget.

        Where writers disagree on the hash, a tuple counts that lies there by any of theirs.
        """
        ways = facts.variants()
        if len(ways) == 1:
            return self._possible(facts, budget)
        keep, untested = np.zeros(facts.count, np.bool_), 0
        for each in ways:
            rows = np.flatnonzero(~keep)
            keep[rows], missed = self._possible(each.take(rows), budget // len(ways))
            untested += missed
        return keep, untested

    def _possible(self, facts: Facts, budget: int) -> tuple[Mask, int]:
        sides = self._sides(facts)
        possible = reduce(np.logical_and, (side.codes.takes_any(side.reach) for side in sides))
        # Where a file takes every key of every axis but one, a key on that one is a tuple: nothing left to test.
        limited = np.zeros((max(side.limit for side in sides) + 1, facts.count), np.bool_)
        for side in sides:
            limited[side.limit] |= ~side.codes.takes_all(side.reach)
        rows = np.flatnonzero(possible & (limited.sum(axis=0) > 1))
        place = np.arange(len(rows))
        work = _work([side.take(rows) for side in sides])
        files = rows
        if int(work.min(axis=0).sum()) > budget:
            kinds, place = distinct_rows([column[rows] for side in sides for column in side.columns()])
            rows, work = rows[kinds], work[:, kinds]
        least = work.min(axis=0)
        order = np.argsort(least, kind="stable")
        affordable = order[: int(np.searchsorted(np.cumsum(least[order]), budget, "right"))]
        answer = np.ones(len(rows), np.bool_)
        taken = [side.take(rows) for side in sides]
        for lead in range(len(sides)):
            chosen = affordable[work[:, affordable].argmin(axis=0) == lead]
            answer[chosen] = _test([side.take(chosen) for side in taken], lead)
        tested = np.zeros(len(rows), np.bool_)
        tested[affordable] = True
        possible[files] = answer[place]
        return possible, int((~tested[place]).sum())

    def _sides(self, facts: Facts) -> list[_Side]:
        """The columns, the buckets of single columns, and those of whole tuples."""
        if not self._columns:
            self._columns.extend(
                _Codes.of(codes, len(axis.starts), axis.ordinary)
                for axis, codes in zip(self.axes, self.codes, strict=True)
            )
        sides = []
        for number, axis in enumerate(self.axes):
            domain = facts.of(axis.column)
            sides.append(_Side(self._columns[number], axis.reach(domain), number))
            for bucket in domain.buckets:
                if axis.step == 1 and len(axis.starts):
                    sides += self._bucket_side((number,), bucket, number)
        for fact in facts.buckets:
            if self.hashes(fact):
                places = {axis.column.id: number for number, axis in enumerate(self.axes)}
                columns = tuple(places[column.id] for column in fact.columns)
                sides += self._bucket_side(columns, fact.range, max(side.limit for side in sides) + 1)
        return sides

    def _bucket_side(self, columns: tuple[int, ...], bucket: BucketRange, limit: int) -> list[_Side]:
        """The bucket of each tuple by its keys in these columns; nothing where they cannot be hashed."""
        known = (columns, bucket.hash, bucket.count, limit < len(self.axes))
        if known not in self._hashed:
            nulls = limit >= len(self.axes)
            self._hashed[known] = self._hash(columns, bucket.hash, bucket.count, nulls=nulls)
        codes = self._hashed[known]
        return [] if isinstance(codes, str) else [_Side(codes, codes.reach(bucket), limit)]

    def _hash(self, columns: Sequence[int], by: BucketHash, total: int, *, nulls: bool) -> _Codes | str:
        """nulls: NULL is hashed as any value is. Of a single column the domain tells whether it may occur."""
        axes, codes = [self.axes[number] for number in columns], [self.codes[number] for number in columns]
        keys = [_at(axis, each) for axis, each in zip(axes, codes, strict=True)]
        found = hash_keys(by, keys, [axis.column.type for axis in axes], total)
        if isinstance(found, str):
            return found
        return _Codes.of_buckets(found if nulls else np.where(codes[0] == NULL_CODE, ANY_BUCKET, found))


def _at(axis: Axis, codes: Int64s) -> KeyArray:
    """The keys that stand behind codes; NULL is not valid."""
    valid = codes != NULL_CODE
    starts = key_array(axis.starts, axis.column.type) if len(axis.starts) else None
    if starts is None:
        empty = np.array([b""] if uses_bytes(axis.column.type) else [0], object)
        return key_array(empty, axis.column.type).take(np.zeros(len(codes), np.int64)).keep(valid)
    return starts.take(np.where(valid, codes, 0)).keep(valid)


def _work(sides: list[_Side]) -> Int64s:
    """For each side and file, how many tuples have to be looked at if that side leads."""
    slices = [side.codes.slices(side.reach) for side in sides]
    return np.stack([end - start for start, end in slices])


def _test(sides: list[_Side], lead: int) -> Mask:
    """Whether any tuple lies in each file's box, the tuples looked at in slices of one side."""
    order = sides[lead].codes.order
    start, end = sides[lead].codes.slices(sides[lead].reach)
    found = np.zeros(len(start), np.bool_)
    files, start, size = _pieces(start, end - start)
    group = np.cumsum(size) // CHUNK
    for piece in np.split(np.arange(len(files)), np.flatnonzero(np.diff(group)) + 1):
        sizes = size[piece]
        file = np.repeat(files[piece], sizes)
        step = np.arange(len(file)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        each = order[np.repeat(start[piece], sizes) + step]
        hit = np.ones(len(file), np.bool_)
        for side in sides:
            hit &= side.codes.allows(side.reach, file, each)
        found[file[hit]] = True
    return found


def _pieces(start: Int64s, size: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """The slices, those longer than a chunk cut up: the file, the start and the size of each piece."""
    count = -(-size // CHUNK)
    files = np.repeat(np.arange(len(start)), count)
    nth = np.arange(len(files)) - np.repeat(np.cumsum(count) - count, count)
    begins = start[files] + nth * CHUNK
    return files, begins, np.minimum(size[files] - nth * CHUNK, CHUNK)
