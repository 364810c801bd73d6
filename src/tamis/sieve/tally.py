"""What sifting counted, in a form that adds up: the tallies of a table's parts make the tally of the table.

Numbers are added. What several parts may have counted alike (partition keys that could not be judged, notes, filters
that had nothing to go by) stays as it is, and is counted in the end. Law: the merged tallies of parts, in order,
are the tally of one process that sifts all of them; only times differ.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.predicate.arrays import Mask
from tamis.sieve.join.credit import Idleness, RuntimeFilterStats, dropped_by_filters, filter_stats
from tamis.sieve.kept import KeptBecause, added_kept, count_kept, not_used
from tamis.sieve.notes import MAX_NOTES, Notes
from tamis.sieve.outcome import BASES, Outcome
from tamis.sieve.partition_keys import spec_order
from tamis.sieve.partitions import FilterStats, MultiSpecPartitionFilter, PartitionKey
from tamis.sieve.sieve import Sieve
from tamis.sieve.stats import LayerStats, PlanStats, SpecStats, Unread

__all__ = ["MANIFEST", "SpecTally", "Tally", "Weight", "stats_of"]

MANIFEST: Final = "manifest"
"""The layer before the funnel: what a format prunes unread."""
_DIGEST: Final = 16


@dataclass(frozen=True, slots=True)
class Weight:
    """Files, and their bytes."""

    files: int = 0
    bytes: int = 0

    def __add__(self, other: Weight) -> Weight:
        return Weight(self.files + other.files, self.bytes + other.bytes)

    @classmethod
    def of(cls, outcomes: Iterable[Outcome], masks: Iterable[Mask]) -> Weight:
        """The files that a mask chooses of each outcome's."""
        files = size = 0
        for outcome, mask in zip(outcomes, masks, strict=True):
            chosen = int(mask.sum())
            if chosen:
                sizes = outcome.batch.size if chosen == len(mask) else outcome.batch.size.filter(pa.array(mask))
                files, size = files + chosen, size + int(pc.sum(sizes).as_py() or 0)
        return cls(files, size)


Weights = Mapping[str, Weight]


def _sum(weights: Iterable[Weights]) -> dict[str, Weight]:
    total: dict[str, Weight] = {}
    for mapping in weights:
        for name, weight in mapping.items():
            total[name] = total.get(name, Weight()) + weight
    return total


@dataclass(frozen=True, slots=True)
class SpecTally:
    """The files of one spec: all, those that are kept, those of which every row matches, and the rest by layer."""

    all: Weight = Weight()
    kept: Weight = Weight()
    whole: Weight = Weight()
    dropped: Weights = field(default_factory=dict)

    @classmethod
    def of(cls, layers: Sequence[str], outcomes: Sequence[Outcome]) -> SpecTally:
        """Of these batches, whose funnel has these layers."""
        return cls(
            Weight.of(outcomes, (np.ones(len(outcome.batch), np.bool_) for outcome in outcomes)),
            Weight.of(outcomes, (outcome.kept for outcome in outcomes)),
            Weight.of(outcomes, (outcome.certain for outcome in outcomes)),
            {
                name: Weight.of(outcomes, (outcome.layer == index for outcome in outcomes))
                for index, name in enumerate(layers)
            },
        )

    def __add__(self, other: SpecTally) -> SpecTally:
        dropped = _sum((self.dropped, other.dropped))
        return SpecTally(self.all + other.all, self.kept + other.kept, self.whole + other.whole, dropped)


@dataclass(frozen=True, slots=True)
class Tally:
    """What was counted of some files on their way through the funnel."""

    specs: Mapping[int | None, SpecTally] = field(default_factory=dict)
    filtered: tuple[Weights, ...] = ()
    """What each runtime filter removed, by the facts that sufficed."""
    useful: frozenset[int] = frozenset()
    """The runtime filters that had something to judge by."""
    idle: Mapping[int, str] = field(default_factory=dict)
    """Why others had not."""
    kept_because: tuple[KeptBecause, ...] = ()
    undecoded: frozenset[PartitionKey | bytes] = frozenset()
    """The partition keys with a value that could not be decoded."""
    open: frozenset[PartitionKey | bytes] = frozenset()
    """Those that were kept because they could not be judged."""
    fail_open_files: int = 0
    notes: Mapping[str, int] = field(default_factory=dict)
    """Each as often as it was noted, beside the notes with which every plan of the predicate begins."""
    omitted: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    """By layer."""
    read_seconds: float = 0.0

    @classmethod
    def of(
        cls,
        sieve: Sieve,
        layers: Sequence[str],
        outcomes: Sequence[Outcome],
        partitions: MultiSpecPartitionFilter,
        idleness: Idleness,
    ) -> Tally:
        """Of batches that have gone through the layers, and through nothing else with these partitions."""
        by_spec: dict[int | None, list[Outcome]] = {}
        for outcome in outcomes:
            by_spec.setdefault(outcome.batch.spec_id, []).append(outcome)
        positions = range(len(sieve.runtime_filters))
        undecoded, unjudged = partitions.undecided
        begun = Notes.of(partitions.begun)
        return cls(
            {spec_id: SpecTally.of(layers, batches) for spec_id, batches in by_spec.items()},
            tuple(_weights(*totals) for totals in dropped_by_filters(sieve, outcomes)),
            frozenset(idleness.useful),
            {position: why for position in positions if (why := idleness.of(position)) is not None},
            count_kept(sieve, outcomes),
            undecoded,
            unjudged,
            notes={
                text: times - begun.counts.get(text, 0)
                for text, times in partitions.notes.counts.items()
                if times > begun.counts.get(text, 0)
            },
            omitted=partitions.notes.omitted - begun.omitted,
        )

    @classmethod
    def of_unread(cls, unread: Sequence[Unread], filters: int, seconds: float = 0.0) -> Tally:
        """Of files that were pruned unread, by the predicate or by one of so many filters."""
        specs: dict[int | None, SpecTally] = {}
        filtered: list[Weights] = [{MANIFEST: Weight()} for _ in range(filters)]
        for manifest in unread:
            weight = Weight(manifest.files, manifest.size)
            tally = SpecTally(weight, dropped={MANIFEST: weight})
            specs[manifest.spec_id] = specs.get(manifest.spec_id, SpecTally()) + tally
            if manifest.runtime_filter is not None:
                filtered[manifest.runtime_filter] = _sum((filtered[manifest.runtime_filter], {MANIFEST: weight}))
        return cls(specs, tuple(filtered), seconds={MANIFEST: seconds})

    @classmethod
    def merged(cls, tallies: Sequence[Tally]) -> Tally:
        """Of all tallies, which come in this order."""
        specs: dict[int | None, SpecTally] = {}
        notes: dict[str, int] = {}
        idle: dict[int, str] = {}
        seconds: dict[str, float] = {}
        omitted = 0
        for tally in tallies:
            for spec_id, spec in tally.specs.items():
                specs[spec_id] = specs.get(spec_id, SpecTally()) + spec
            for text, times in tally.notes.items():
                if text in notes or len(notes) < MAX_NOTES:
                    notes[text] = notes.get(text, 0) + times
                else:
                    omitted += times
            # A text that a tally had no room for comes after as many others, also in all.
            omitted += tally.omitted
            idle = {**tally.idle, **idle}
            for name, took in tally.seconds.items():
                seconds[name] = seconds.get(name, 0.0) + took
        filters = max((len(tally.filtered) for tally in tallies), default=0)
        return cls(
            specs,
            tuple(
                _sum(tally.filtered[position] for tally in tallies if tally.filtered) for position in range(filters)
            ),
            frozenset().union(*(tally.useful for tally in tallies)),
            idle,
            added_kept(tally.kept_because for tally in tallies),
            frozenset().union(*(tally.undecoded for tally in tallies)),
            frozenset().union(*(tally.open for tally in tallies)),
            sum(tally.fail_open_files for tally in tallies),
            notes,
            omitted,
            seconds,
            sum(tally.read_seconds for tally in tallies),
        )

    def portable(self) -> Tally:
        """The same, small to send: a table may have a million keys that cannot be judged, of which the number counts.

        A tally is merged with others that are all portable, or none of them.
        """
        return replace(self, undecoded=_digests(self.undecoded), open=_digests(self.open))


def _weights(files: Mapping[str, int], sizes: Mapping[str, int]) -> dict[str, Weight]:
    return {name: Weight(count, sizes[name]) for name, count in files.items()}


def _digests(keys: Iterable[PartitionKey | bytes]) -> frozenset[bytes]:
    return frozenset(
        key if isinstance(key, bytes) else hashlib.blake2b(repr(key).encode(), digest_size=_DIGEST).digest()
        for key in keys
    )


def stats_of(sieve: Sieve, layers: Sequence[str], begun: MultiSpecPartitionFilter, tally: Tally) -> PlanStats:
    """The funnel in numbers, in all and for each spec. begun is any filter of this sieve, used or not."""
    names = (MANIFEST, *layers)
    specs = tuple(_spec(id_, names, tally.specs[id_]) for id_ in sorted(tally.specs, key=spec_order))
    every = sum(tally.specs.values(), SpecTally())
    steps: list[LayerStats] = []
    left = every.all
    for name in names:
        gone = every.dropped.get(name, Weight())
        after = Weight(left.files - gone.files, left.bytes - gone.bytes)
        steps.append(LayerStats(name, left.files, after.files, left.bytes, after.bytes, tally.seconds.get(name, 0.0)))
        left = after
    open_ = FilterStats(begun.stats.unevaluable_specs, len(tally.undecoded), len(tally.open), tally.fail_open_files)
    return PlanStats(
        every.all.files,
        left.files,
        every.whole.files,
        every.all.bytes,
        left.bytes,
        tuple(steps),
        specs,
        open_,
        tuple(_notes(begun, tally).to_list()),
        tally.read_seconds,
        _filters(sieve, tally),
        tally.kept_because,
        not_used(sieve.predicate),
    )


def _spec(spec_id: int | None, names: Sequence[str], tally: SpecTally) -> SpecStats:
    dropped = {name: tally.dropped.get(name, Weight()).files for name in names}
    return SpecStats(
        spec_id, tally.all.files, tally.kept.files, tally.whole.files, tally.all.bytes, tally.kept.bytes, dropped
    )


def _filters(sieve: Sieve, tally: Tally) -> tuple[RuntimeFilterStats, ...]:
    stats = []
    for position, runtime in enumerate(sieve.runtime_filters):
        nothing = dict.fromkeys((MANIFEST, *BASES), Weight())
        weights = _sum([nothing, *([tally.filtered[position]] if tally.filtered else [])])
        idle = None if position in tally.useful else tally.idle.get(position)
        files = {name: weight.files for name, weight in weights.items()}
        sizes = {name: weight.bytes for name, weight in weights.items()}
        stats.append(filter_stats(runtime, files, sizes, idle))
    return tuple(stats)


def _notes(begun: MultiSpecPartitionFilter, tally: Tally) -> Notes:
    """The notes as they would have come one after the other."""
    notes = Notes.of(begun.begun)
    for text, times in tally.notes.items():
        for _ in range(times):
            notes.add(text)
    notes.omitted += tally.omitted
    return notes
