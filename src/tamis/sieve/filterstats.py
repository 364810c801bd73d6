"""What each runtime filter did: its keys, how long they took to collect, and what it removed, by which facts.

A file is credited to the cheapest facts with which any filter can remove it (the manifest's summary, the partition,
the bucket, the statistics), and to the first filter that can with those. What the predicate removes, by whatever
facts, is never credited here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow.compute as pc

from tamis.sieve.outcome import BASES, NO_LAYER, Outcome, Sieve

if TYPE_CHECKING:
    from tamis.sieve.plan import Unread

__all__ = ["Idleness", "RuntimeFilterStats", "count_filters"]

MANIFEST: Final = "manifest"


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


def count_filters(
    sieve: Sieve, outcomes: Sequence[Outcome], unread: Sequence[Unread], idleness: Idleness
) -> tuple[RuntimeFilterStats, ...]:
    """The numbers of every filter, in their order."""
    filters = sieve.runtime_filters
    files, sizes = (np.zeros((len(filters), len(BASES)), np.int64) for _ in range(2))
    for outcome in outcomes if filters else ():
        rows = np.flatnonzero(outcome.basis != NO_LAYER)
        if len(rows):
            cells = (outcome.decider[rows] - len(sieve.predicate.conjuncts), outcome.basis[rows])
            np.add.at(files, cells, 1)
            np.add.at(sizes, cells, pc.fill_null(outcome.batch.size, 0).to_numpy(zero_copy_only=False)[rows])
    found = []
    for place, runtime in enumerate(filters):
        skipped = [part for part in unread if part.runtime_filter == place]
        dropped = {MANIFEST: sum(part.files for part in skipped), **_named(files[place])}
        dropped_bytes = {MANIFEST: sum(part.size for part in skipped), **_named(sizes[place])}
        removed = sum(dropped.values())
        collected = runtime.collected
        found.append(
            RuntimeFilterStats(
                runtime.text,
                tuple(column.name for column in runtime.columns),
                runtime.keys,
                collected is None or collected.exact,
                None if collected is None else collected.seconds,
                removed,
                sum(dropped_bytes.values()),
                dropped,
                dropped_bytes,
                None if removed else runtime.idle() or idleness.of(place),
            )
        )
    return tuple(found)


def _named(counts: np.ndarray[tuple[int], np.dtype[np.int64]]) -> dict[str, int]:
    return dict(zip(BASES, counts.tolist(), strict=True))
