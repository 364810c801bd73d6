"""Deletes on a line, so that those of a file are a run that two searches find. Nothing is done for each pair."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tamis.predicate.arrays import Int64s, Mask

__all__ = ["Line", "Pairs", "Run"]

Pairs = tuple[Int64s, Int64s]
"""Files and, of the same length, what belongs to each."""


@dataclass(frozen=True, slots=True)
class Run:
    """For each file the deletes from begin up to end of members; where these are None, the numbers themselves."""

    begin: Int64s
    end: Int64s
    members: Int64s | None = None

    @property
    def counts(self) -> Int64s:
        """How many deletes each file has."""
        return np.asarray(np.maximum(self.end - self.begin, 0), np.int64)

    def sums(self, values: Int64s) -> Int64s:
        """Of each file, the sum over its deletes of what values has for them, by their rows."""
        own = values if self.members is None else values[self.members]
        before = np.concatenate([[0], np.cumsum(own)])
        begin = np.clip(self.begin, 0, len(own))
        return np.asarray(before[np.maximum(np.clip(self.end, 0, len(own)), begin)] - before[begin], np.int64)

    def but_not(self, files: Mask) -> Run:
        """Without the deletes of these files."""
        return Run(self.begin, np.where(files, self.begin, self.end), self.members)

    def pairs(self, chunk: slice) -> Pairs:
        """These files, counted from the beginning of the run, with each of their members."""
        begin, counts = self.begin[chunk], self.counts[chunk]
        files = np.repeat(np.arange(len(counts)) + chunk.start, counts)
        members = np.arange(len(files)) + np.repeat(begin - (np.cumsum(counts) - counts), counts)
        return files, members if self.members is None else self.members[members]


@dataclass(frozen=True, slots=True)
class Line:
    """Deletes in groups, in each by the greatest sequence number of data that they apply to: their reach.

    Equality deletes that were committed with the numbers 3, 5 and 8 reach data up to 2, 4 and 7. On a number line,
    with the data files A to D of their partition below:

        sequence numbers    1    2    3    4    5    6    7    8
        reach of deletes         r         s              t
        data files               A         B    C              D

    A delete applies to the files that are not to the right of its reach, so those of a file are a run that ends with
    the last of them: A has r, s and t; B has s and t; C has t; D has none. One search among 2, 4 and 7 finds where a
    file's run begins. Groups stand one behind the other on one line, each as wide as all reaches and one mark more:
    group 0 has the marks 0 to 3 and group 1 has 4 to 7. D looks from mark 3 up to mark 4, where nothing stands, and
    never at deletes of group 1.

    >>> line = Line.of(np.array([20, 21, 22]), np.array([0, 0, 0]), np.array([2, 4, 7]))
    >>> line.find(np.array([0, 0, 0, 0]), np.array([2, 4, 5, 8])).counts.tolist()
    [3, 2, 1, 0]
    """

    deletes: Int64s
    """Their rows in the index's files."""
    reaches: Int64s
    """All of these numbers, each once, in order."""
    marks: Int64s
    """Of each delete: its group and the rank of its number, as one number. In order."""

    @classmethod
    def of(cls, deletes: Int64s, groups: Int64s, reach: Int64s) -> Line:
        """The line of these deletes, which are in these groups and have these reaches."""
        reaches, ranks = np.unique(reach, return_inverse=True)
        marks = groups * (len(reaches) + 1) + ranks
        order = np.argsort(marks, kind="stable")
        return cls(deletes[order], reaches, marks[order])

    def find(self, groups: Int64s, sequences: Int64s) -> Run:
        """Those of each file's group that reach it; group -1 has none."""
        width = len(self.reaches) + 1
        first = groups * width + np.searchsorted(self.reaches, sequences)
        begin = np.searchsorted(self.marks, first)
        return Run(begin, np.searchsorted(self.marks, (groups + 1) * width), self.deletes)
