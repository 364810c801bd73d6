"""Join keys of several columns: sorted, distinct, and tested as whole tuples.

Column by column a file may pass although no single tuple fits it: of (1, 9) and (9, 1) the file with both columns in
[0, 5] has a first and a second half. So every file is placed in the rank coordinates of the keys, where its box is
a run of ranks on each axis, and tuples are tested against boxes.

Law: a file is dropped only if every tuple was tested and none lies in its box. What the work budget leaves untested
is kept and counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy import typing as npt
from pyarrow import types as pt

from tamis.predicate.keys import INT64_MIN, NAN_KEY, float_key, successor
from tamis.predicate.schema import Column
from tamis.predicate.values import Cuts, ValueSet
from tamis.sieve.domain import BucketRange, Domain, Facts
from tamis.sieve.hashing import bucket_of_keys
from tamis.sieve.order import KeyArray, Mask, ranks

__all__ = ["MAX_PAIRS", "Axis", "KeyTuples", "dense", "distinct_rows"]

MAX_PAIRS: Final = 20_000_000
"""Most (tuple, file) pairs to test, about a second's work. Files beyond it are kept: reading some is cheaper."""
CHUNK: Final = 1 << 20
"""Pairs tested at a time: a few arrays of this length fit the cache of a core or two."""
NULL_CODE: Final = -1

Int64s = npt.NDArray[np.int64]


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
        most = np.iinfo(np.int64).max // step
        ends = (keys[:-1] if len(keys) and keys[-1] >= most else keys) + 1
        least = -(np.iinfo(np.int64).max // step) if step > 1 else INT64_MIN
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
        hashed = tuple(each for bucket in domain.buckets if (each := self._hashed(bucket)))
        return _Reach(first, last, domain.may_null, domain.may_nan & self.has_nan, len(self.starts) - 1, hashed)

    def _hashed(self, bucket: BucketRange) -> _Hashed | None:
        """None where the keys cannot be hashed, or stand for more than one value each."""
        if self.step > 1 or not len(self.starts):
            return None
        buckets = bucket_of_keys(self.starts, self.column.type, bucket.count)
        if buckets is None:
            return None
        lower, upper = np.where(bucket.valid, bucket.lower, 0), np.where(bucket.valid, bucket.upper, bucket.count)
        return _Hashed(buckets, lower, upper)


@dataclass(frozen=True, slots=True, eq=False)
class _Hashed:
    """The bucket of each key, and the buckets that each file's values are in."""

    of_code: Int64s
    lower: Int64s
    upper: Int64s


@dataclass(frozen=True, slots=True, eq=False)
class _Reach:
    """A file's box on one axis: codes in [first, last), perhaps NULL, perhaps NaN."""

    first: Int64s
    last: Int64s
    null: Mask
    nan: Mask
    nan_code: int
    buckets: tuple[_Hashed, ...]

    def take(self, rows: Int64s) -> _Reach:
        """The boxes of these files."""
        return _Reach(
            self.first[rows],
            self.last[rows],
            self.null[rows],
            self.nan[rows],
            self.nan_code,
            tuple(_Hashed(part.of_code, part.lower[rows], part.upper[rows]) for part in self.buckets),
        )

    def columns(self) -> list[npt.NDArray[Any]]:
        """All that tells one box from another."""
        return [
            *(self.first, self.last, self.null, self.nan),
            *(side for part in self.buckets for side in (part.lower, part.upper)),
        ]

    def allows(self, files: Int64s, codes: Int64s) -> Mask:
        """Whether the file may hold the key, pair by pair."""
        within = (codes >= self.first[files]) & (codes < self.last[files])
        for part in self.buckets:
            bucket = part.of_code[codes]  # NULL's code takes the last key's bucket, and is not within
            within &= (bucket >= part.lower[files]) & (bucket <= part.upper[files])
        null = self.null[files] & (codes == NULL_CODE)
        return np.asarray(within | null | (self.nan[files] & (codes == self.nan_code)))


@dataclass(frozen=True, slots=True, eq=False)
class KeyTuples:
    """Distinct tuples of join keys: for each axis, the code of each tuple's key; -1 is NULL."""

    axes: tuple[Axis, ...]
    codes: tuple[Int64s, ...]

    def possible(self, facts: Facts, budget: int = MAX_PAIRS) -> tuple[Mask, int]:
        """False only where no tuple lies in the file's box; and how many files were kept for want of budget."""
        reaches = tuple(axis.reach(facts.of(axis.column)) for axis in self.axes)
        possible = np.ones(facts.count, np.bool_)
        # Where a file takes every key of every axis but one, a key on that one is a tuple: nothing left to test.
        limited = [~self._takes_all(place, reach) for place, reach in enumerate(reaches)]
        rows = np.flatnonzero(reduce(np.add, (part.astype(np.int64) for part in limited)) > 1)
        place = np.arange(len(rows))
        work = self._work([reach.take(rows) for reach in reaches])
        if int(work.min(axis=0).sum()) > budget:
            kinds, place = distinct_rows([column[rows] for reach in reaches for column in reach.columns()])
            rows, files = rows[kinds], rows
            work = work[:, kinds]
        else:
            files = rows
        least = work.min(axis=0)
        order = np.argsort(least, kind="stable")
        affordable = order[: int(np.searchsorted(np.cumsum(least[order]), budget, "right"))]
        answer = np.ones(len(rows), np.bool_)
        taken = [reach.take(rows) for reach in reaches]
        for axis in range(len(self.axes)):
            chosen = affordable[work[:, affordable].argmin(axis=0) == axis]
            answer[chosen] = self._test([reach.take(chosen) for reach in taken], axis)
        tested = np.zeros(len(rows), np.bool_)
        tested[affordable] = True
        possible[files] = answer[place]
        return possible, int((~tested[place]).sum())

    def _takes_all(self, place: int, reach: _Reach) -> Mask:
        axis, codes = self.axes[place], self.codes[place]
        all_of_it = (reach.first == 0) & (reach.last == axis.ordinary)
        if bool((codes == NULL_CODE).any()):
            all_of_it &= reach.null
        if axis.has_nan:
            all_of_it &= reach.nan
        for part in reach.buckets:
            lowest, highest = part.of_code.min(initial=0), part.of_code.max(initial=0)
            all_of_it &= (part.lower <= lowest) & (part.upper >= highest)
        return np.asarray(all_of_it)

    def _slices(self, axis: int, reach: _Reach) -> tuple[Int64s, Int64s, Int64s]:
        """The tuples in order of one axis, and from where to where each file has to look at them."""
        codes = self.codes[axis]
        order = np.argsort(codes, kind="stable")
        offsets = np.searchsorted(codes[order], np.arange(len(self.axes[axis].starts) + 1))
        # NULL stands before the first key and NaN behind the last: a file that may hold one looks from, or to, there.
        start = np.where(reach.null & (offsets[0] > 0), 0, offsets[reach.first])
        end = np.where(reach.nan, len(codes), offsets[reach.last])
        return order, start, np.maximum(end, start)

    def _work(self, reaches: list[_Reach]) -> Int64s:
        """For each axis and file, how many tuples have to be looked at if that axis leads."""
        slices = [self._slices(axis, reach) for axis, reach in enumerate(reaches)]
        return np.stack([end - start for _, start, end in slices])

    def _test(self, reaches: list[_Reach], axis: int) -> Mask:
        """Whether any tuple lies in each file's box, the tuples looked at in slices of one axis."""
        order, start, end = self._slices(axis, reaches[axis])
        found = np.zeros(len(start), np.bool_)
        files, start, size = _pieces(start, end - start)
        group = np.cumsum(size) // CHUNK
        for piece in np.split(np.arange(len(files)), np.flatnonzero(np.diff(group)) + 1):
            sizes = size[piece]
            file = np.repeat(files[piece], sizes)
            step = np.arange(len(file)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
            each = order[np.repeat(start[piece], sizes) + step]
            hit = np.ones(len(file), np.bool_)
            for reach, codes in zip(reaches, self.codes, strict=True):
                hit &= reach.allows(file, codes[each])
            found[file[hit]] = True
        return found


def _pieces(start: Int64s, size: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """The slices, those longer than a chunk cut up: the file, the start and the size of each piece."""
    count = -(-size // CHUNK)
    files = np.repeat(np.arange(len(start)), count)
    nth = np.arange(len(files)) - np.repeat(np.cumsum(count) - count, count)
    begins = start[files] + nth * CHUNK
    return files, begins, np.minimum(size[files] - nth * CHUNK, CHUNK)
