"""What each runtime filter did: its keys, how long they took to collect, and what it removed, by which facts.

A file is credited to the cheapest facts with which any filter can remove it (the manifest's summary, the partition,
the bucket, the statistics), and to the first filter that can with those. What the predicate removes, by whatever
facts, is never credited here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from tamis.sieve.join.runtime import BoundRuntimeFilter
from tamis.sieve.outcome import BASES, NO_LAYER, Outcome
from tamis.sieve.sieve import Sieve

__all__ = ["Idleness", "RuntimeFilterStats", "dropped_by_filters", "filter_stats"]


@dataclass(frozen=True, slots=True)
class RuntimeFilterStats:
    """One filter's share of the funnel."""

    text: str
    columns: tuple[str, ...]
    keys: int | None
    """Distinct join keys; None if nobody counted them."""
    exact: bool
    """False if the number of keys is an estimate."""
    collect_seconds: float | None
    """How long it took to collect the keys from a DataFrame; None if they were given."""
    files: int
    """Files that the filter removed, beside those that the predicate did."""
    bytes: int
    dropped: Mapping[str, int]
    """The same files, by the facts that sufficed."""
    dropped_bytes: Mapping[str, int]
    idle: str | None = None
    """Why the filter cannot remove any file; None if it could."""


class Idleness:
    """Which filters had anything to judge by, over all batches."""

    def __init__(self) -> None:
        self.useful: set[int] = set()
        self._why: dict[int, str] = {}

    def note(self, place: int, why: str | None) -> None:
        """Whether the filter at this place could judge a batch of files; if not, why."""
        if why is None:
            self.useful.add(place)
        else:
            self._why.setdefault(place, why)

    def of(self, place: int) -> str | None:
        """Why the filter could judge no batch at all; None if it could, or met no file."""
        return None if place in self.useful else self._why.get(place)


def dropped_by_filters(
    sieve: Sieve, outcomes: Sequence[Outcome]
) -> list[tuple[Mapping[str, int], Mapping[str, int]]]:
    """The files that each filter removed, and their bytes, by the facts that sufficed."""
    filters = sieve.runtime_filters
    files, sizes = (np.zeros((len(filters), len(BASES)), np.int64) for _ in range(2))
    for outcome in outcomes if filters else ():
        rows = np.flatnonzero(outcome.basis != NO_LAYER)
        if len(rows):
            cells = (outcome.decider[rows] - len(sieve.predicate.conjuncts), outcome.basis[rows])
            np.add.at(files, cells, 1)
            np.add.at(sizes, cells, pc.fill_null(outcome.batch.size, 0).to_numpy(zero_copy_only=False)[rows])
    return [(_named(files[place]), _named(sizes[place])) for place in range(len(filters))]


def filter_stats(
    runtime: BoundRuntimeFilter, dropped: Mapping[str, int], dropped_bytes: Mapping[str, int], idle: str | None
) -> RuntimeFilterStats:
    """The numbers of a filter; idle says why it could judge no batch at all, if it met any."""
    removed = sum(dropped.values())
    collected = runtime.collected
    return RuntimeFilterStats(
        runtime.text,
        tuple(column.name for column in runtime.columns),
        runtime.keys,
        collected is None or collected.exact,
        None if collected is None else collected.seconds,
        removed,
        sum(dropped_bytes.values()),
        dropped,
        dropped_bytes,
        None if removed else runtime.idle() or idle,
    )


def _named(counts: np.ndarray[tuple[int], np.dtype[np.int64]]) -> dict[str, int]:
    return dict(zip(BASES, counts.tolist(), strict=True))
