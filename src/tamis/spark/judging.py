"""Units of metadata judged on an executor: their files pass the funnel there, and only what is kept comes back.

With the kept files come the counts of all, and what several units may have counted alike: partition keys that could
not be judged, notes, filters that had nothing to go by. So the parts add up to what one process would have found.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy import typing as npt

from tamis.errors import TamisError
from tamis.formats.spread import Read
from tamis.sieve.filterstats import Idleness
from tamis.sieve.funnel import LAYERS, Layer, Sifting, partition_filter, sift
from tamis.sieve.notes import Notes
from tamis.sieve.outcome import Outcome, Sieve
from tamis.sieve.partitions import MultiSpecPartitionFilter, PartitionKey
from tamis.sieve.plan import PlanStats

__all__ = ["ANSWER", "Answer", "judge_units"]

ANSWER: Final = "unit int, answer binary"
"""What judge_units gives: a row for each unit."""
_TALLY: Final = "tally"


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a unit's files."""

    outcomes: tuple[Outcome, ...]
    """Of the kept files alone."""
    stats: PlanStats
    """Of all of them."""
    errors: frozenset[bytes]
    """The partition keys that could not be decoded, each by a digest."""
    open: frozenset[bytes]
    """Those that were kept because they could not be judged."""
    notes: Mapping[str, int]
    """Each as often as it was noted."""
    omitted: int
    useful: frozenset[int]
    """The runtime filters that had something to judge by."""
    idle: Mapping[int, str]
    """Why the others had not."""


@dataclass(slots=True)
class _Tally:
    """A last step of the funnel that drops nothing: it keeps what one process shares among all batches."""

    partitions: MultiSpecPartitionFilter
    notes: Notes
    idleness: Idleness = field(default_factory=Idleness)

    def __call__(self, state: Sifting, place: int) -> None:  # noqa: ARG002 - as every layer
        self.partitions, self.notes, self.idleness = state.partitions, state.notes, state.idleness


def judge_units(batches: Iterable[pa.RecordBatch], sieve: Sieve, read: Read) -> Iterator[pa.RecordBatch]:
    """Runs on executors. Rows of one unit stand together, in order: unit, place, location, about, content.

    A unit whose metadata is unreadable, or that strict planning refuses, gives its error; the driver raises it.
    """
    for unit, about, contents in _units(batches):
        found: Answer | TamisError
        try:
            found = judge_unit(sieve, read, about, contents)
        except TamisError as error:
            found = error
        arrays = [pa.array([unit], pa.int32()), pa.array([pickle.dumps(found, protocol=5)], pa.binary())]
        yield pa.RecordBatch.from_arrays(arrays, names=["unit", "answer"])


def _units(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Any, dict[str, bytes]]]:
    current, about, contents = -1, None, dict[str, bytes]()
    for batch in batches:
        rows = zip(*(batch.column(name) for name in ("unit", "location", "about", "content")), strict=True)
        for row in rows:
            unit, location, told, content = (value.as_py() for value in row)
            if unit != current and contents:
                yield current, about, contents
                about, contents = None, {}
            current = unit
            about = about if told is None else pickle.loads(told)  # noqa: S301 - the driver's own
            contents[location] = content
    if contents:
        yield current, about, contents


def judge_unit(sieve: Sieve, read: Read, about: object, contents: Mapping[str, bytes]) -> Answer:
    """What became of one unit's files."""
    untouched = partition_filter(sieve)
    tally = _Tally(untouched, untouched.notes)
    plan = sift(sieve, read(about, contents), layers=(*LAYERS, Layer(_TALLY, tally)))
    partitions, notes, idleness = tally.partitions, tally.notes, tally.idleness
    idle = {place: why for place in range(len(sieve.runtime_filters)) if (why := idleness.of(place)) is not None}
    errors, opened = partitions.undecided
    return Answer(
        tuple(_only_kept(outcome) for outcome in plan.outcomes if outcome.kept.any()),
        _without_tally(plan.stats),
        _digests(errors),
        _digests(opened),
        notes.counts,
        notes.omitted,
        frozenset(idleness.useful),
        idle,
    )


def _without_tally(stats: PlanStats) -> PlanStats:
    layers = tuple(one for one in stats.layers if one.layer != _TALLY)
    specs = tuple(
        replace(spec, dropped={name: count for name, count in spec.dropped.items() if name != _TALLY})
        for spec in stats.specs
    )
    return replace(stats, layers=layers, specs=specs)


def _digests(keys: Iterable[PartitionKey]) -> frozenset[bytes]:
    """Keys by digest: a table may have a million that cannot be judged, and only their number is wanted."""
    return frozenset(hashlib.blake2b(repr(key).encode(), digest_size=16).digest() for key in keys)


def _only_kept(outcome: Outcome) -> Outcome:
    found = _taken(outcome, np.flatnonzero(outcome.kept))
    assert isinstance(found, Outcome)  # noqa: S101 - for the type checker
    return found


def _taken(value: Any, rows: npt.NDArray[np.int64]) -> Any:  # noqa: ANN401 - an outcome, or any part of one
    """The same for some of the files, whatever a batch or an outcome is made of."""
    match value:
        case np.ndarray():
            return value[rows]
        case pa.Array():
            return value.take(pa.array(rows))
        case tuple():
            return tuple(_taken(one, rows) for one in value)
        case Mapping():
            return {key: _taken(one, rows) for key, one in value.items()}
        case _ if is_dataclass(value) and not isinstance(value, type):
            return replace(value, **{one.name: _taken(getattr(value, one.name), rows) for one in fields(value)})
        case _:
            return value
