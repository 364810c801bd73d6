"""A table's metadata as work: a format lists, tamis sifts.

A format gives its metadata files in units, a reader that makes batches of files of a unit, what it pruned unread, and
the deletes that apply to kept files. One driver sifts a listing here (`sift_here`), another on executors
(spark/planning). Law: the batches of all units, in the units' order, are the table's files that are left; whoever
reads them, and wherever, gets the same plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from tamis.formats.storage import Fetch
from tamis.formats.storage.ordered import in_order
from tamis.sieve.files import FileBatch
from tamis.sieve.funnel import sift
from tamis.sieve.outcome import Outcome
from tamis.sieve.plan import DeleteCounts, ScanPlan
from tamis.sieve.sieve import Sieve
from tamis.sieve.stats import Unread

__all__ = ["Held", "Listing", "Progress", "Reader", "Unit", "finished", "sift_here"]

Progress = Callable[[int, int], None]
"""Told how many of how many files have come in."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Metadata files that are decoded together, by their locations as the table's metadata spells them."""

    locations: tuple[str, ...]
    size: int
    """Bytes, as far as they are known."""
    about: Any
    """What the reader has to know of these files beside their content. It is pickled."""


@dataclass(slots=True)
class Held:
    """What the listings of one job have read of a table: given to each of them, nothing is read twice."""

    first: Any = None
    """The metadata that is always read, as the format has parsed it."""
    files: dict[Any, Any] = field(default_factory=dict)
    """The files that have been read, as the format keeps them."""


class Reader(Protocol):
    """Makes files of a unit's metadata. It is pickled, and then keeps only what it needs to read."""

    def __call__(self, unit: Unit, fetch: Fetch) -> Iterable[FileBatch]:
        """The unit's files. fetch gives the content of the unit's locations; several threads may call at once."""

    def close(self) -> None:
        """All units have been read, or there was an error."""


@dataclass(frozen=True, slots=True)
class Listing:
    """What is left to read of a table, once the metadata that is always read has been read and judged."""

    fetch: Fetch
    units: tuple[Unit, ...] = ()
    reader: Reader | None = None
    """None if there is nothing to read."""
    unread: tuple[Unread, ...] = ()
    """What was pruned without being read."""
    deletes: DeleteCounts | None = None
    """What is to be done with the files that are kept: their deletes, which are read when they are asked for."""
    files: int = 0
    """About how many files the units have."""
    size: int = 0
    """Bytes of metadata that the units have, compressed as they are."""
    seconds: float = 0.0
    """What it took to come this far."""
    threads: int = 1
    """How many units to read at a time in this process."""
    notes: Callable[[Sequence[Outcome]], tuple[str, ...]] | None = None
    """What is to be told of the kept files."""
    apart: bool = True
    """Whether units may be read by processes that share nothing: then they can be judged on executors."""

    def batches(self, progress: Progress | None = None) -> Iterator[FileBatch]:
        """The files of all units, read by this process; whoever watches is told how far they have come."""
        if self.reader is None:
            return
        done = 0
        try:
            for batches in in_order(self._read, self.units, self.threads):
                for batch in batches:
                    done += len(batch)
                    if progress is not None:
                        progress(done, max(done, self.files))
                    yield batch
            if progress is not None and done < self.files:
                progress(done, done)  # there were fewer than was thought: whoever watches sees an end
        finally:
            self.reader.close()

    def _read(self, unit: Unit) -> Iterable[FileBatch]:
        assert self.reader is not None  # noqa: S101 - for the type checker: batches has looked
        batches = self.reader(unit, self.fetch)
        # One thread reads a batch when it is to be judged, so that few are there at once; several read ahead.
        return batches if self.threads <= 1 else list(batches)


def sift_here(listing: Listing, sieve: Sieve, progress: Progress | None = None) -> ScanPlan:
    """The plan of a listing, made by this process."""
    batches = listing.batches(progress)
    found = sift(sieve, batches, unread=listing.unread, manifest_seconds=listing.seconds)
    return finished(listing, found.plan)


def finished(listing: Listing, plan: ScanPlan) -> ScanPlan:
    """The plan, wherever it was made, with what the format has to say of the kept files."""
    told = () if listing.notes is None else listing.notes(plan.outcomes)
    stats = replace(plan.stats, notes=(*plan.stats.notes, *told)) if told else plan.stats
    return replace(plan, deletes=listing.deletes, stats=stats)
