"""One batch on its way through the layers: what is known of its files, and which of them are left.

Law: a file leaves only if it was proved that no row of it is wanted. Where files hold versions of the same rows, that
is the law of groups: see tamis.sieve.groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy import typing as npt

from tamis.sieve.buckets import selector_of
from tamis.sieve.domain import Facts
from tamis.sieve.files import FileBatch
from tamis.sieve.groups import Groups
from tamis.sieve.join.credit import Idleness
from tamis.sieve.join.runtime import BoundRuntimeFilter
from tamis.sieve.notes import Notes
from tamis.sieve.order import Mask
from tamis.sieve.outcome import BASES, NO_LAYER
from tamis.sieve.partitions import KeyedTrial, MultiSpecPartitionFilter
from tamis.sieve.sieve import Sieve
from tamis.sieve.trial import NOBODY, WHOLE, Trial, try_all

__all__ = ["Rows", "Sifting"]

Rows = npt.NDArray[np.int64]
Deciders = npt.NDArray[np.int32]
Bases = int | npt.NDArray[np.int8]


class Drop(Protocol):
    """What is done with files that are not possible."""

    def __call__(self, place: int, possible: Mask, decider: Deciders, basis: Bases = NO_LAYER, /) -> None:
        """The layer's place, and of each file that is left whether it is possible, who decided and by which facts."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Doomed:
    """Files that all facts together exclude, whether or not their group lets them go; and who excluded them first."""

    mask: Mask
    decider: Deciders
    basis: npt.NDArray[np.int8]
    fallen: Mask
    """Those that have gone, with their group."""

    @classmethod
    def none(cls, count: int) -> Doomed:
        no = np.zeros(count, np.bool_)
        return cls(no, np.full(count, NOBODY, np.int32), np.full(count, NO_LAYER, np.int8), no.copy())

    def add(self, rows: Rows, decider: Deciders, basis: npt.NDArray[np.int8]) -> None:
        new = ~self.mask[rows]
        self.mask[rows[new]] = True
        self.decider[rows[new]], self.basis[rows[new]] = decider[new], basis[new]


@dataclass(slots=True)
class Sifting:
    """One batch on its way through the layers."""

    sieve: Sieve
    partitions: MultiSpecPartitionFilter
    notes: Notes
    batch: FileBatch
    rows: Rows
    """The files that are left."""
    facts: Facts
    """What is known of them so far."""
    layer: npt.NDArray[np.int8]
    decider: npt.NDArray[np.int32]
    certain: Mask
    basis: npt.NDArray[np.int8]
    idleness: Idleness
    groups: Groups | None = None
    """Which files stand or fall together; None if each stands alone."""
    sure: Facts | None = None
    """What holds of every version of their rows, if files are in groups and more than that is known."""
    doomed: Doomed | None = None
    active: tuple[BoundRuntimeFilter, ...] = ()
    keyed: KeyedTrial | None = None
    bucketed: Facts | None = None
    """What the buckets say of all files of the batch; None if the format keeps none apart from partitions."""
    only_keys: bool = True
    """True while partition keys are all that is known: then files of one key have one verdict."""
    judged: bool = False

    @property
    def together(self) -> Mask | None:
        """Files that the facts of values exclude, and that are kept, or dropped, with their group; None if nobody."""
        if self.doomed is None or self.groups is None:
            return None
        kept = np.zeros(len(self.batch), np.bool_)
        kept[self.rows] = True
        return np.asarray(self.groups.shared & (self.doomed.fallen | (kept & self.doomed.mask)))

    def learn(self, facts: Facts, *, of_values: bool = False) -> None:
        """Add to what is known. of_values: only what concerns key columns holds of every version of a row."""
        if self.groups is not None and of_values:
            keys = {id_: domain for id_, domain in facts.domains.items() if id_ in self.batch.keys}
            if self.sure is not None or len(keys) < len(facts.domains):
                self.sure = (self.sure or self.facts).and_also(Facts(facts.count, keys))
        elif self.sure is not None:
            self.sure = self.sure.and_also(facts)
        self.facts = self.facts.and_also(facts)

    def narrow(self, place: int, possible: Mask, decider: Deciders, basis: Bases = NO_LAYER) -> None:
        """Drop what is not possible, each file alone, and credit the layer with it."""
        dropped = self.rows[~possible]
        self.layer[dropped], self.decider[dropped] = place, decider[~possible]
        self.basis[dropped] = np.broadcast_to(basis, len(possible))[~possible]
        if len(dropped):
            self.rows = self.rows[possible]
            left = np.flatnonzero(possible)
            self.facts = self.facts.take(left)
            self.sure = None if self.sure is None else self.sure.take(left)

    def settle(self, place: int, trial: Trial) -> None:
        """Take over a trial of the files that are left, by facts that hold of every version of their rows."""
        self._note(trial)
        self.narrow(place, trial.possible, trial.decider)

    def judge(self, place: int, basis: str) -> None:
        """Judge the files that are left with all that is known, by the predicate and by the filters in force.

        Files in groups are judged twice: each alone by what holds of every version of its rows, then with all facts;
        and by these a group goes whole or stays whole.
        """
        if self.sure is None:
            self._judge(place, basis, "facts", self.narrow)
            return
        self._judge(place, basis, "sure", self.narrow)
        if self.doomed is None:
            self.doomed = Doomed.none(len(self.batch))
        self._judge(place, basis, "facts", self._doom)
        self._fall(place)

    def _judge(self, place: int, basis: str, known: Literal["facts", "sure"], drop: Drop) -> None:
        """Ask everybody, and drop what somebody excludes. Files may become fewer after each question."""
        trial = try_all(self.sieve.predicate.conjuncts, getattr(self, known))
        self._note(trial)
        drop(place, trial.possible, trial.decider)
        for columns in dict.fromkeys(fact.columns for fact in self.facts.buckets):
            selector = selector_of(self.sieve.predicate, columns)
            drop(place, selector.possible(getattr(self, known)), np.full(len(self.rows), WHOLE, np.int32))
            for why in selector.faults:
                self.notes.add(f"buckets do not prune: {why}")
        for number, runtime in enumerate(self.active):
            facts: Facts = getattr(self, known)
            if known == "facts":
                if len(self.rows):
                    self.idleness.note(number, runtime.blind(facts))
            elif runtime.idle(facts) is not None:
                continue  # what is known of keys does not concern it: that is no reason to note
            found = runtime.probe(facts)
            self.filter(place, number, found.possible, basis, drop)
            for text in found.notes:
                self.notes.add(text)

    def filter(self, place: int, number: int, possible: Mask, basis: str, drop: Drop | None = None) -> None:
        """Drop what a runtime filter excludes, and credit the filter and the facts with it."""
        decider = np.full(len(self.rows), len(self.sieve.predicate.conjuncts) + number, np.int32)
        (drop or self.narrow)(place, possible, decider, BASES.index(basis))

    def _note(self, trial: Trial) -> None:
        self.judged = True
        self.certain[self.rows], self.decider[self.rows] = trial.certain, trial.decider

    def _doom(self, _place: int, possible: Mask, decider: Deciders, basis: Bases = NO_LAYER) -> None:
        """Remember what is not possible: it goes with its group, or not at all."""
        assert self.doomed is not None  # noqa: S101 - there is one before anybody is asked
        self.doomed.add(self.rows[~possible], decider[~possible], np.broadcast_to(basis, len(possible))[~possible])

    def _fall(self, place: int) -> None:
        """Drop the groups of which no file that is left is possible."""
        assert self.doomed is not None  # noqa: S101 - as above
        assert self.groups is not None  # noqa: S101 - only files in groups are doomed
        doomed = self.doomed
        falls = self.groups.whole(self.rows, doomed.mask[self.rows])
        doomed.fallen[self.rows[falls]] = True
        self.narrow(place, ~falls, doomed.decider[self.rows], doomed.basis[self.rows])
