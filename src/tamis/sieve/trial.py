"""A predicate tried part by part, so that every verdict can name the part that decided it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy import typing as npt

from tamis.predicate.bound import Bound
from tamis.sieve.domain import Facts
from tamis.sieve.judge import in_turn
from tamis.sieve.order import Mask

__all__ = ["Trial", "try_all"]

NOBODY = -1
Deciders = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Trial:
    """The verdicts, and which part decided: the first that is impossible, or else the first not certain."""

    possible: Mask
    certain: Mask
    decider: Deciders

    @classmethod
    def of(cls, rows: Sequence[tuple[bool, bool, int]]) -> Trial:
        """The outcomes listed one by one."""
        possible, certain, decider = zip(*rows, strict=True) if rows else ((), (), ())
        return cls(np.array(possible, np.bool_), np.array(certain, np.bool_), np.array(decider, np.int32))

    def rows(self) -> list[tuple[bool, bool, int]]:
        """The outcomes one by one."""
        return list(zip(self.possible.tolist(), self.certain.tolist(), self.decider.tolist(), strict=True))

    def take(self, rows: npt.NDArray[np.int64]) -> Trial:
        """The outcome of these files, in this order."""
        return Trial(self.possible[rows], self.certain[rows], self.decider[rows])


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
