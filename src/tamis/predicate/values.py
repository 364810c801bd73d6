"""A set of values of one column: what a leaf of the predicate accepts.

A set is a sorted run of cuts through the key order. Left of the first cut the values are inside or outside; at
every cut that flips, and the cut itself belongs to its right-hand side. NULL is a member or not, apart from the
order. So `x < 5`, `x != 5`, `x IN (...)`, `x IS NULL`, `s LIKE 'p%'`, `year(ts) = 2024` and a join's million keys
are all the same thing, closed under complement, union and intersection:

    x < 5           inside first, cuts [5]            (-inf, 5)
    x = 5           outside first, cuts [5, 6]        [5, 6)
    x != 5          inside first, cuts [5, 6]         (-inf, 5) and [6, inf)
    x IS NULL       outside first, no cuts, NULL
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import typing as npt

from tamis.predicate.arrays import Int64s, Mask
from tamis.predicate.keys import INT64_MAX, Key, KeySpan, successor

__all__ = ["Cuts", "ValueSet"]

Cuts = npt.NDArray[Any]
"""Keys, strictly ascending: int64, or objects of type bytes."""


@dataclass(frozen=True, slots=True, eq=False)
class ValueSet:
    """The values, and perhaps NULL, that a leaf accepts."""

    cuts: Cuts
    inside_first: bool = False
    nulls: bool = False

    # -- making one ------------------------------------------------------------------------------------------

    @classmethod
    def nothing(cls) -> ValueSet:
        """No value at all, and not NULL."""
        return cls(np.empty(0, np.int64))

    @classmethod
    def null(cls) -> ValueSet:
        """NULL alone."""
        return cls(np.empty(0, np.int64), nulls=True)

    @classmethod
    def not_null(cls) -> ValueSet:
        """Every value but NULL."""
        return cls(np.empty(0, np.int64), inside_first=True)

    @classmethod
    def everything(cls) -> ValueSet:
        """Every value, and NULL."""
        return cls(np.empty(0, np.int64), inside_first=True, nulls=True)

    @classmethod
    def between(cls, start: Key | None, end: Key | None) -> ValueSet:
        """Keys in [start, end): None is unbounded. Empty if end is not above start."""
        if start is not None and end is not None and end <= start:  # type: ignore[operator] # same type by contract
            return cls.nothing()
        return cls(_cuts(key for key in (start, end) if key is not None), inside_first=start is None)

    @classmethod
    def of_cuts(cls, cuts: Sequence[Key], *, inside_first: bool) -> ValueSet:
        """What lies between every other two of the cuts, strictly ascending; or, if inside_first, the rest."""
        return cls(_cuts(cuts), inside_first) if cuts else cls(np.empty(0, np.int64), inside_first)

    @classmethod
    def of_keys(cls, keys: Iterable[Key] | npt.NDArray[Any]) -> ValueSet:
        """Just these keys, in any order, repeated or not."""
        points = np.sort(keys if isinstance(keys, np.ndarray) else _cuts(keys))
        # Sorted by hand: np.unique hashes first, and takes several times as long.
        points = points[np.append(np.True_, points[1:] != points[:-1])] if len(points) else points
        if not len(points):
            return cls.nothing()
        if points.dtype == object:
            return cls.of_intervals(points, np.array([successor(key) for key in points], object))
        ends = points + 1
        if points[-1] == INT64_MAX:
            ends = ends[:-1]  # nothing lies above the greatest key, so that the last run never ends
        return cls.of_intervals(points, ends)

    @classmethod
    def of_intervals(cls, starts: Cuts, ends: Cuts) -> ValueSet:
        """Disjoint [start, end) runs in ascending order; where one ends at the next one's start they join.

        The last run is unbounded if it has no end.
        """
        cuts = np.empty(len(starts) + len(ends), starts.dtype)
        cuts[0::2], cuts[1::2] = starts, ends
        touching = np.flatnonzero(cuts[1:-1:2] == cuts[2::2])
        keep = np.ones(len(cuts), np.bool_)
        keep[2 * touching + 1] = keep[2 * touching + 2] = False
        return cls(cuts[keep])

    # -- asking ----------------------------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        """No value and no NULL: no row is accepted."""
        return not self.nulls and not self.inside_first and not len(self.cuts)

    @property
    def is_everything(self) -> bool:
        """Every row is accepted, also NULL."""
        return self.nulls and self.inside_first and not len(self.cuts)

    def inside(self, ranks: Int64s) -> Mask:
        """Whether the run after so many cuts is inside."""
        return np.asarray((ranks & 1).astype(np.bool_) ^ self.inside_first)

    def holds(self, key: Key) -> bool:
        """Whether the value with this key is a member."""
        return bool((int(np.searchsorted(self.cuts, _cuts([key])[0], "right")) & 1) ^ self.inside_first)

    def points(self, limit: int, span: KeySpan) -> Cuts | None:
        """The keys one by one if there are at most limit of them within span, else None. NULL is no key."""
        within = self.clip(span)
        bounds: list[Any] = [span.least] if within.inside_first else []
        bounds += within.cuts.tolist()
        if len(bounds) > 2 * limit or (len(bounds) % 2 and span.greatest is None):
            return None
        if isinstance(span.least, bytes):
            if len(bounds) % 2:
                bounds.append(successor(span.greatest or b""))
            return _fixed_points(bounds, len(span.least), limit) if span.greatest else _byte_points(bounds, limit)
        starts = np.array(bounds[0::2], np.int64)
        lasts = np.array(bounds[1::2], np.int64) - 1
        if len(starts) > len(lasts):
            lasts = np.append(lasts, np.int64(span.greatest or 0))
        # The distance of two 64-bit keys needs 64 bits without a sign.
        gaps = lasts.view(np.uint64) - starts.view(np.uint64)
        if len(starts) + float(gaps.sum(dtype=np.float64)) > limit:
            return None
        sizes = gaps.astype(np.int64) + 1
        offsets = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return np.asarray(np.repeat(starts, sizes) + offsets)

    # -- combining -------------------------------------------------------------------------------------------

    def complement(self) -> ValueSet:
        """What is not a member; NULL too changes sides."""
        return ValueSet(self.cuts, not self.inside_first, not self.nulls)

    def without_null(self) -> ValueSet:
        """The same values, and not NULL."""
        return ValueSet(self.cuts, self.inside_first)

    def union(self, other: ValueSet) -> ValueSet:
        """What is a member of either."""
        return self._combine(other, np.logical_or)

    def intersect(self, other: ValueSet) -> ValueSet:
        """What is a member of both."""
        return self._combine(other, np.logical_and)

    @classmethod
    def union_of(cls, sets: Sequence[ValueSet]) -> ValueSet:
        """What is a member of any of them; nothing if there are none."""
        return _swept(sets, 1) if sets else cls.nothing()

    @classmethod
    def intersection_of(cls, sets: Sequence[ValueSet]) -> ValueSet:
        """What is a member of all of them; everything if there are none."""
        return _swept(sets, len(sets)) if sets else cls.everything()

    def clip(self, span: KeySpan) -> ValueSet:
        """The same set for keys within span: cuts outside it go, so that `tinyint < 1000` is "not null"."""
        if not len(self.cuts):
            return self
        low = int(np.searchsorted(self.cuts, _cuts([span.least])[0], "right"))
        high = len(self.cuts)
        if span.greatest is not None:
            high = int(np.searchsorted(self.cuts, _cuts([span.greatest])[0], "right"))
        return ValueSet(self.cuts[low:high], self.inside_first ^ bool(low & 1), self.nulls)

    def _combine(self, other: ValueSet, rule: Callable[..., Any]) -> ValueSet:
        nulls, first = bool(rule(self.nulls, other.nulls)), bool(rule(self.inside_first, other.inside_first))
        if not len(self.cuts) and not len(other.cuts):
            return ValueSet(self.cuts, first, nulls)
        wide = self.cuts if len(self.cuts) else other.cuts
        cuts = np.unique(np.concatenate([self.cuts, other.cuts]) if len(self.cuts) and len(other.cuts) else wide)
        after = rule(self._after(cuts), other._after(cuts))
        changes = after != np.concatenate([[first], after[:-1]])
        return ValueSet(cuts[changes], first, nulls)

    def _after(self, cuts: Cuts) -> Mask:
        """Whether the values at and just after each cut are members."""
        if not len(self.cuts):
            return np.full(len(cuts), self.inside_first)
        return self.inside(np.searchsorted(self.cuts, cuts, "right"))

    # -- comparing -------------------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, ValueSet)
            and self.nulls == other.nulls
            and self.inside_first == other.inside_first
            and len(self.cuts) == len(other.cuts)
            and bool(np.all(self.cuts == other.cuts))
        )

    def __hash__(self) -> int:
        return hash((tuple(self.cuts.tolist()), self.inside_first, self.nulls))


def _swept(sets: Sequence[ValueSet], least: int) -> ValueSet:
    """What is a member of at least so many of the sets, in one pass over all their cuts.

    From left to right, every cut of a set adds one to the number of sets that the values are in, or takes one off.
    Of [0, 5) and [3, 8):

        cuts            0    3    5    8
        steps          +1   +1   -1   -1
        in so many      1    2    1    0      at least 1 (union): [0, 8); at least 2 (intersection): [3, 5)
    """
    nulls = sum(set_.nulls for set_ in sets) >= least
    within = sum(set_.inside_first for set_ in sets)
    cut = [set_ for set_ in sets if len(set_.cuts)]
    if not cut:
        return ValueSet(np.empty(0, np.int64), within >= least, nulls)
    cuts = np.concatenate([set_.cuts for set_ in cut])
    steps = np.concatenate([_steps(set_) for set_ in cut])
    order = np.argsort(cuts, kind="stable")
    cuts = cuts[order]
    last = np.append(np.asarray(cuts[1:] != cuts[:-1], np.bool_), True)
    after = (within + np.cumsum(steps[order]))[last] >= least
    changes = after != np.concatenate([[within >= least], after[:-1]])
    return ValueSet(cuts[last][changes], within >= least, nulls)


def _steps(set_: ValueSet) -> Int64s:
    """Of each cut, 1 if the values after it are inside, -1 if they are outside."""
    steps = np.ones(len(set_.cuts), np.int64)
    steps[0 if set_.inside_first else 1 :: 2] = -1
    return steps


def _byte_points(bounds: list[bytes], limit: int) -> Cuts | None:
    """The keys of runs that can be counted; None if a run is longer, and so endless, or if they exceed limit.

    [p, p + k NULs) holds k keys: p, p NUL, p NUL NUL. Nothing lies between neighbours.
    """
    points: list[Key] = []
    for start, end in zip(bounds[0::2], bounds[1::2], strict=True):
        size = len(end) - len(start)
        if end != start + b"\0" * size:
            return None
        points += (start + b"\0" * count for count in range(min(size, limit + 1)))
    return _cuts(points).astype(object) if len(points) <= limit else None


def _fixed_points(bounds: list[bytes], width: int, limit: int) -> Cuts | None:
    """The keys of runs over keys of one width, which can be counted; None if there are more than limit."""
    # The least key at or above a cut: a cut that is longer than a key lies just above its own beginning.
    marks = [int.from_bytes(cut[:width].ljust(width, b"\0"), "big") + (len(cut) > width) for cut in bounds]
    runs = [range(start, end) for start, end in zip(marks[0::2], marks[1::2], strict=True)]
    if sum(run.stop - run.start for run in runs) > limit:
        return None
    return _cuts(key.to_bytes(width, "big") for run in runs for key in run).astype(object)


def _cuts(keys: Iterable[Key]) -> Cuts:
    """Keys as an array. Bytes go in one by one: numpy would read a list of them as fixed-width text."""
    listed = list(keys)
    if listed and isinstance(listed[0], bytes):
        array = np.empty(len(listed), object)
        array[:] = listed
        return array
    return np.array(listed, np.int64)
