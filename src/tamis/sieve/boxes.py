"""An OR of very many ANDs, judged as boxes: not each of them against every file.

A branch such as `x = 1 AND y < 5` is a box: a set of values on each of its columns. All cuts of a column's sets, in
one row, are a coordinate in which every file and every branch has its place, so that a pair of them is compared by
numbers alone. Of the branches in the order of one axis, a file is compared with a run: those that reach it there.

Law: the verdicts are those of the branches one by one. A pair is left out only if the two are apart on an axis, or if
the file is known to match and not to match as a whole whatever the pair says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from pyarrow import types as pt

from tamis.predicate.arrays import Int64s, Mask
from tamis.predicate.bound import AllOf, Leaf
from tamis.predicate.keys import NAN_KEY
from tamis.predicate.schema import Column
from tamis.predicate.values import Cuts, ValueSet
from tamis.sieve.domain import Domain, Facts
from tamis.sieve.placing import placed

__all__ = ["Boxes", "is_box"]

CHUNK: Final = 1 << 19
"""Pairs compared at a time: a few arrays of this length fit the cache of a core or two."""
FIRST_ROUND: Final = 32
"""Branches of which a file's first are tried; each round tries eight times as many. Most wide files match early."""


def is_box(node: object) -> bool:
    """Whether the condition is a conjunction of sets of different columns."""
    return (
        isinstance(node, AllOf)
        and all(isinstance(operand, Leaf) for operand in node.operands)
        and len(node.columns) == len(node.operands)
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Sets:
    """Sets of values, a number each, by the ranks of their cuts in a row of all cuts."""

    marks: Int64s
    """Of each cut, its set and its rank, as one number: in order."""
    start: Int64s
    inside_first: Mask
    nulls: Mask
    nan: Mask
    width: int

    @classmethod
    def of(cls, sets: Sequence[ValueSet], cuts: Cuts, column: Column) -> _Sets:
        sizes = np.array([len(set_.cuts) for set_ in sets], np.int64)
        every = (
            np.concatenate([set_.cuts for set_ in sets if len(set_.cuts)]) if sizes.any() else np.empty(0, np.int64)
        )
        ranks = np.searchsorted(cuts, every) if len(every) else np.empty(0, np.int64)
        width = len(cuts) + 1
        floating = bool(pt.is_floating(column.type))
        return cls(
            np.repeat(np.arange(len(sets)), sizes) * width + ranks,
            np.concatenate([[0], np.cumsum(sizes)]),
            np.array([set_.inside_first for set_ in sets], np.bool_),
            np.array([set_.nulls for set_ in sets], np.bool_),
            np.array([floating and set_.holds(NAN_KEY) for set_ in sets], np.bool_),
            width,
        )

    def reach(self) -> tuple[Int64s, Int64s]:
        """The first and the last rank at which each set holds values; all ranks if it holds NULL or NaN as well."""
        count = np.diff(self.start)
        first, last = np.zeros(len(count), np.int64), np.full(len(count), self.width - 1, np.int64)
        marks = np.append(self.marks, 0) % self.width
        cut = (count > 0) & ~(self.nulls | self.nan)
        begins, ends = cut & ~self.inside_first, cut & (self.inside_first ^ (count % 2 == 1) ^ True)
        first[begins] = marks[self.start[:-1][begins]] + 1
        last[ends] = marks[self.start[1:][ends] - 1]
        return first, last

    def may_hold(self, numbers: Int64s, file: _Placed, rows: Int64s) -> Mask:
        """Whether a value of the file may be in the set, pair by pair."""
        low, high = (
            np.searchsorted(self.marks, numbers * self.width + ranks[rows]) - self.start[numbers]
            for ranks in (file.low, file.high)
        )
        inside = (low & 1).astype(np.bool_) ^ self.inside_first[numbers]
        within = (low < high) | ((low == high) & inside)
        may = file.may_value[rows] & within
        may |= self.nulls[numbers] & file.may_null[rows]
        return np.asarray(may | (self.nan[numbers] & file.may_nan[rows]))


@dataclass(frozen=True, slots=True, eq=False)
class _Placed:
    """Where each file's values lie among all cuts of a column."""

    low: Int64s
    high: Int64s
    may_value: Mask
    may_null: Mask
    may_nan: Mask


@dataclass(frozen=True, slots=True, eq=False)
class _Axis:
    """One column: the sets that branches have on it, and which set each branch has; -1 if it asks nothing of it."""

    column: Column
    cuts: Cuts
    outer: _Sets
    outside: _Sets
    of_branch: Int64s

    @classmethod
    def of(cls, column: Column, branches: Sequence[AllOf]) -> _Axis:
        leaves: list[Leaf] = []
        of_branch = np.full(len(branches), -1, np.int64)
        for index, branch in enumerate(branches):
            for leaf in branch.operands:
                if isinstance(leaf, Leaf) and leaf.column.id == column.id:
                    of_branch[index] = len(leaves)
                    leaves.append(leaf)
        every = [values.cuts for leaf in leaves for values in (leaf.outer, leaf.inner) if len(values.cuts)]
        cuts = np.unique(np.concatenate(every)) if every else np.empty(0, np.int64)
        outer = _Sets.of([leaf.outer for leaf in leaves], cuts, column)
        outside = _Sets.of([leaf.inner.complement() for leaf in leaves], cuts, column)
        return cls(column, cuts, outer, outside, of_branch)

    def reach(self) -> tuple[Int64s, Int64s]:
        """From which to which rank each branch reaches."""
        first, last = (
            np.append(ends, default) for ends, default in zip(self.outer.reach(), (0, len(self.cuts)), strict=True)
        )
        return first[self.of_branch], last[self.of_branch]

    def placed(self, domain: Domain) -> _Placed:
        low, high = placed(self.cuts, self.column, domain)
        return _Placed(low, high, domain.may_value, domain.may_null, domain.may_nan)


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """Branches that are narrowest on one axis, in the order in which they begin there."""

    axis: int
    branches: Int64s
    first: Int64s
    furthest: Int64s
    """The last rank that this branch, or one before it, reaches."""

    def runs(self, file: _Placed) -> tuple[Int64s, Int64s, Mask]:
        """From which to which branch each file has to be compared, and whether one may hold all of the file."""
        begin = np.searchsorted(self.furthest, file.low)
        end = np.maximum(np.searchsorted(self.first, file.high, "right"), begin)
        before = np.searchsorted(self.first, file.low, "right")
        whole = (before > 0) & (self.furthest[np.maximum(before - 1, 0)] >= file.high)
        return begin, end, np.asarray(whole | ~file.may_value)


@dataclass(frozen=True, slots=True, eq=False)
class Boxes:
    """The branches of an OR, ready to be compared with any number of files."""

    branches: tuple[AllOf, ...]
    axes: tuple[_Axis, ...]
    groups: tuple[_Group, ...]

    @classmethod
    def of(cls, branches: Sequence[AllOf]) -> Boxes:
        """Each branch as is_box has it."""
        columns = {column.id: column for branch in branches for column in branch.columns}
        axes = tuple(_Axis.of(column, branches) for column in columns.values())
        reaches = [axis.reach() for axis in axes]
        shares = np.stack(
            [(last - first) / (len(axis.cuts) + 1) for axis, (first, last) in zip(axes, reaches, strict=True)]
        )
        narrowest = shares.argmin(axis=0)
        groups = []
        for number, (first, last) in enumerate(reaches):
            chosen = np.flatnonzero(narrowest == number)
            if len(chosen):
                chosen = chosen[np.argsort(first[chosen], kind="stable")]
                groups.append(_Group(number, chosen, first[chosen], np.maximum.accumulate(last[chosen])))
        return cls(tuple(branches), axes, tuple(groups))

    def judge(self, facts: Facts, judge_branch: Callable[[AllOf, Facts], tuple[Mask, Mask]]) -> tuple[Mask, Mask]:
        """Whether each file may match, and whether it surely does; judge_branch is asked where hashes count."""
        possible, certain = np.zeros(facts.count, np.bool_), np.zeros(facts.count, np.bool_)
        if any(facts.of(axis.column).buckets for axis in self.axes):
            pairs = list(self._pairs(facts, possible, certain, early=False))
            possible[:] = certain[:] = False
            self._one_by_one(facts, pairs, possible, certain, judge_branch)
        else:
            for _ in self._pairs(facts, possible, certain, early=True):
                pass
        return possible, certain

    def _pairs(self, facts: Facts, possible: Mask, certain: Mask, *, early: bool) -> Iterator[tuple[Int64s, Int64s]]:
        """Compare files with the branches that reach them; gives the pairs that may match."""
        files = [axis.placed(facts.of(axis.column)) for axis in self.axes]
        for group in self.groups:
            begin, end, whole = group.runs(files[group.axis])
            rows, size = np.arange(facts.count), FIRST_ROUND
            while len(rows := rows[begin[rows] < end[rows]]):
                count = np.minimum(end[rows] - begin[rows], size)
                for chunk in np.split(np.arange(len(rows)), np.flatnonzero(np.diff(np.cumsum(count) // CHUNK)) + 1):
                    file = np.repeat(rows[chunk], count[chunk])
                    step = np.arange(len(file)) - np.repeat(np.cumsum(count[chunk]) - count[chunk], count[chunk])
                    branch = group.branches[begin[file] + step]
                    file, branch = self._compare(files, file, branch, certain)
                    possible[file] = True
                    yield file, branch
                begin[rows] += count
                if early:
                    rows = rows[~possible[rows] | (whole[rows] & ~certain[rows])]
                size *= 8

    def _compare(self, files: list[_Placed], file: Int64s, branch: Int64s, certain: Mask) -> tuple[Int64s, Int64s]:
        """The pairs that may match, an axis at a time; files that match as a whole are marked as certain."""
        sure = np.ones(len(file), np.bool_)
        for axis, placed_files in zip(self.axes, files, strict=True):
            numbers = axis.of_branch[branch]
            constrained = np.flatnonzero(numbers >= 0)
            sure[constrained] &= ~axis.outside.may_hold(numbers[constrained], placed_files, file[constrained])
            keep = np.ones(len(file), np.bool_)
            keep[constrained] = axis.outer.may_hold(numbers[constrained], placed_files, file[constrained])
            file, branch, sure = file[keep], branch[keep], sure[keep]
        certain[file[sure]] = True
        return file, branch

    def _one_by_one(
        self,
        facts: Facts,
        pairs: list[tuple[Int64s, Int64s]],
        possible: Mask,
        certain: Mask,
        judge_branch: Callable[[AllOf, Facts], tuple[Mask, Mask]],
    ) -> None:
        """Hashes are asked branch by branch, for the files that a branch is left with."""
        file, branch = (np.concatenate([pair[side] for pair in pairs] or [np.empty(0, np.int64)]) for side in (0, 1))
        order = np.argsort(branch, kind="stable")
        numbers, starts = np.unique(branch[order], return_index=True)
        for number, rows in zip(numbers.tolist(), np.split(file[order], starts[1:]), strict=False):
            node = self.branches[number]
            domains = {column.id: facts.domains[column.id] for column in node.columns if column.id in facts.domains}
            may, surely = judge_branch(node, Facts(facts.count, domains).take(rows))
            possible[rows] |= may
            certain[rows] |= surely
