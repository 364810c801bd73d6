"""A predicate tried part by part, so that every verdict can name the part that decided it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy import typing as npt

from tamis.predicate.arrays import Int64s, Mask
from tamis.predicate.bound import Bound
from tamis.sieve.domain import Facts
from tamis.sieve.judge import in_turn

__all__ = ["NOBODY", "WHOLE", "Trial", "Trials", "try_all"]

NOBODY = -1
WHOLE = -2
"""Stands for a decider where no part of the predicate decided alone: its keys hash to other buckets."""
Deciders = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Trial:
    """The verdicts, and which part decided: the first that is impossible, or else the first not certain."""

    possible: Mask
    certain: Mask
    decider: Deciders

    @classmethod
    def of(cls, rows: Sequence[tuple[bool, bool, int]]) -> Trial:
        """Of files that are listed one by one."""
        possible, certain, decider = zip(*rows, strict=True) if rows else ((), (), ())
        return cls(np.array(possible, np.bool_), np.array(certain, np.bool_), np.array(decider, np.int32))

    def take(self, rows: Int64s) -> Trial:
        """The trial of these files, in this order."""
        return Trial(self.possible[rows], self.certain[rows], self.decider[rows])


class Trials:
    """Trials that come one after the other, as one that grows; adding costs the same however much there is."""

    def __init__(self) -> None:
        self._count = 0
        self._room = Trial.of([])

    def __len__(self) -> int:
        return self._count

    def add(self, trial: Trial) -> None:
        """Behind what there is."""
        end = self._count + len(trial.possible)
        if end > len(self._room.possible):
            # Twice the room each time: all copies together are as long as the last one.
            more = max(end, 2 * self._count) - self._count
            columns = (self._room.possible, self._room.certain, self._room.decider)
            kept = (np.concatenate([column[: self._count], np.zeros(more, column.dtype)]) for column in columns)
            self._room = Trial(*kept)
        for room, column in (
            (self._room.possible, trial.possible),
            (self._room.certain, trial.certain),
            (self._room.decider, trial.decider),
        ):
            room[self._count : end] = column
        self._count = end

    def take(self, places: Int64s) -> Trial:
        """What stands at these places."""
        return self._room.take(places)


def try_all(conjuncts: Sequence[Bound], facts: Facts) -> Trial:
    """Judge every part of a conjunction, each for the files that the parts before it left possible."""
    possible = np.ones(facts.count, np.bool_)
    certain = np.ones(facts.count, np.bool_)
    decider = np.full(facts.count, NOBODY, np.int32)
    for turn in in_turn(conjuncts, facts):
        before, sure = possible[turn.rows], certain[turn.rows]
        named = decider[turn.rows]
        named[before & ~turn.possible] = turn.place
        named[before & turn.possible & sure & ~turn.certain] = turn.place
        decider[turn.rows] = named
        possible[turn.rows] = before & turn.possible
        certain[turn.rows] = sure & turn.certain
    return Trial(possible, certain & possible, decider)
