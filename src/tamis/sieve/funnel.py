"""The layers in order, the selection narrowing at each, and the plan that comes out.

Each layer adds facts, or a condition, to what is known of the files that are left, and judges them again with all
that is known by then. So a layer can only narrow; and since the last one knows everything, the order of the layers
changes which of them is credited with a file, never which files are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
from numpy import typing as npt

from tamis.errors import UnevaluableError
from tamis.predicate.bound import Leaf
from tamis.predicate.schema import Column
from tamis.predicate.type_names import type_name
from tamis.sieve.domain import ColumnStats, Facts, not_empty, trusted_domain
from tamis.sieve.files import FileBatch
from tamis.sieve.filterstats import Idleness, count_filters
from tamis.sieve.kept import check_all_used, count_kept, not_used
from tamis.sieve.notes import Notes
from tamis.sieve.order import Mask
from tamis.sieve.outcome import BASES, NO_LAYER, Outcome, Sieve
from tamis.sieve.partitions import KeyedTrial, MultiSpecPartitionFilter
from tamis.sieve.plan import ScanPlan, Unread, count
from tamis.sieve.runtime import BoundRuntimeFilter
from tamis.sieve.trial import NOBODY, Trial, try_all

__all__ = ["LAYERS", "Layer", "partition_filter", "sift"]

Rows = npt.NDArray[np.int64]


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
    active: tuple[BoundRuntimeFilter, ...] = ()
    keyed: KeyedTrial | None = None
    only_keys: bool = True
    """True while partition keys are all that is known: then files of one key have one verdict."""
    judged: bool = False

    def narrow(self, place: int, possible: Mask, decider: npt.NDArray[Any]) -> None:
        """Drop what is not possible, and credit the layer with it."""
        dropped = self.rows[~possible]
        self.layer[dropped], self.decider[dropped] = place, decider[~possible]
        if len(dropped):
            self.rows = self.rows[possible]
            self.facts = self.facts.take(np.flatnonzero(possible))

    def settle(self, place: int, trial: Trial) -> None:
        """Take over a trial of the files that are left."""
        self.judged = True
        self.certain[self.rows], self.decider[self.rows] = trial.certain, trial.decider
        self.narrow(place, trial.possible, trial.decider)

    def judge(self, place: int, basis: str) -> None:
        """Judge the files that are left with all that is known, by the predicate and by the filters in force."""
        self.settle(place, try_all(self.sieve.predicate.conjuncts, self.facts))
        for number, runtime in enumerate(self.active):
            if len(self.rows):
                self.idleness.note(number, runtime.blind(self.facts))
            found = runtime.probe(self.facts)
            self.filter(place, number, found.possible, basis)
            for text in found.notes:
                self.notes.add(text)

    def filter(self, place: int, number: int, possible: Mask, basis: str) -> None:
        """Drop what a runtime filter excludes, and credit the filter and the facts with it."""
        self.basis[self.rows[~possible]] = BASES.index(basis)
        decider = len(self.sieve.predicate.conjuncts) + number
        self.narrow(place, possible, np.full(len(self.rows), decider, np.int32))


def by_partition(state: Sifting, place: int) -> None:
    """Partition values of the file's own spec, but for hash buckets."""
    if state.batch.spec_id is None:
        return
    keyed = _keyed(state, state.batch.spec_id)
    if not state.facts.domains and not state.active:
        state.settle(place, keyed.partition.take(keyed.codes[state.rows]))
        state.facts = keyed.facts.without_buckets().take(keyed.codes[state.rows])
        return
    state.facts = state.facts.and_also(keyed.facts.without_buckets().take(keyed.codes[state.rows]))
    state.judge(place, "partition")


def by_bucket(state: Sifting, place: int) -> None:
    """Hash buckets: of bucket transforms, and of formats that place rows by a hash of their key."""
    if state.batch.spec_id is not None:
        keyed = _keyed(state, state.batch.spec_id)
        if any(domain.buckets for domain in keyed.facts.domains.values()):
            if state.only_keys and not state.active:
                state.settle(place, keyed.bucket.take(keyed.codes[state.rows]))
                state.facts = keyed.facts.take(keyed.codes[state.rows])
            else:
                state.facts = state.facts.and_also(keyed.facts.take(keyed.codes[state.rows]))
                state.judge(place, "bucket")
    selector, bucket, total = state.sieve.bucket_selector, state.batch.bucket, state.batch.total_buckets
    if selector is not None and bucket is not None and total is not None:
        taken = pa.array(state.rows)
        kept = selector.select(bucket.take(taken), total.take(taken), state.facts)
        state.narrow(place, kept, np.full(len(kept), NOBODY, np.int32))


def by_stats(state: Sifting, place: int) -> None:
    """Bounds and counts of the predicate's columns; a file without rows has nothing to match."""
    wanted = [*state.sieve.predicate.columns, *(c for keys in state.sieve.runtime_filters for c in keys.columns)]
    may = _not_zero(state.batch.rows)
    if not may.all():
        for column in wanted:
            if (stats := state.batch.stats.get(column.id)) is not None:
                may = may | not_empty(stats, len(state.batch))
    state.narrow(place, may[state.rows], np.full(len(state.rows), NOBODY, np.int32))
    state.only_keys = False
    learnt = Facts(len(state.rows), {})
    taken = pa.array(state.rows)
    for column in {column.id: column for column in wanted}.values():
        stats = state.batch.stats.get(column.id)
        if stats is None:
            continue
        if stats.value_count is None:
            stats = replace(stats, value_count=state.batch.rows)  # a column of the schema is never repeated
        if len(state.rows) < len(state.batch):
            stats = _take(stats, taken)
        try:
            learnt.domains[column.id], wrong = trusted_domain(column, stats, len(state.rows))
            if wrong.any():
                _distrust(state, column)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            reason = f"statistics of {column.name} do not fit its type {type_name(column.type)}: {error}"
            if state.sieve.strict:
                raise UnevaluableError(
                    f"cannot judge by statistics: {reason}. Plan without strict=True to keep such files.",
                    reason=reason,
                ) from error
            state.notes.add(f"statistics ignored: {reason}")
    if learnt.domains or not state.judged:
        state.facts = state.facts.and_also(learnt)
        state.judge(place, "stats")


def _distrust(state: Sifting, column: Column) -> None:
    why = "more NULLs or NaN are counted than rows, or there is a bound and no value is counted"
    _ignore(state, f"statistics of {column.name} contradict themselves in some files: {why}")


def _ignore(state: Sifting, reason: str, error: Exception | None = None) -> None:
    """Say that statistics were ignored, and why; in strict mode that is an error."""
    if state.sieve.strict:
        raise UnevaluableError(
            f"cannot judge by statistics: {reason}. Plan without strict=True to keep such files.", reason=reason
        ) from error
    state.notes.add(f"statistics ignored: {reason}")


def by_runtime(state: Sifting, place: int) -> None:
    """The keys of a join's other side. They select files; the join itself selects rows: nothing is certain here.

    Partitions alone are asked first, each distinct one once: that is cheap, and tells which facts removed a file.
    """
    if not state.sieve.runtime_filters:
        return
    state.active = state.sieve.runtime_filters
    if state.keyed is not None:
        known = state.keyed.facts
        _by_keys(state, place, known.without_buckets(), "partition")
        if any(domain.buckets for domain in known.domains.values()):
            _by_keys(state, place, known, "bucket")
    state.judge(place, "stats")


def _by_keys(state: Sifting, place: int, known: Facts, basis: str) -> None:
    for number, runtime in enumerate(state.active):
        if state.keyed is None or not len(state.rows) or runtime.idle(known) is not None:
            continue
        codes = state.keyed.codes[state.rows]
        few = known.count <= len(codes)
        possible = runtime.possible(known)[codes] if few else runtime.possible(known.take(codes))
        state.filter(place, number, possible, basis)


@dataclass(frozen=True, slots=True)
class Layer:
    """A step of the funnel: what it is called, and what it does."""

    name: str
    apply: Callable[[Sifting, int], None]


LAYERS = (
    Layer("partition", by_partition),
    Layer("bucket", by_bucket),
    Layer("stats", by_stats),
    Layer("runtime", by_runtime),
)


def sift(
    sieve: Sieve,
    batches: Iterable[FileBatch],
    *,
    unread: Sequence[Unread] = (),
    manifest_seconds: float = 0.0,
    layers: Sequence[Layer] = LAYERS,
) -> ScanPlan:
    """Pass every batch through the layers. Batches and their files keep their order in the plan.

    unread are files of manifests that were pruned without being read, in manifest_seconds: they are counted, and
    credited to the manifest layer.
    """
    partitions = partition_filter(sieve)
    notes = partitions.notes
    seconds = dict.fromkeys((layer.name for layer in layers), 0.0)
    outcomes: list[Outcome] = []
    idleness = Idleness()
    fail_open_files = 0
    reading = -perf_counter()
    for batch in batches:
        reading += perf_counter()
        state = _enter(sieve, partitions, notes, batch, idleness)
        for place, layer in enumerate(layers):
            start = perf_counter()
            layer.apply(state, place)
            seconds[layer.name] += perf_counter() - start
        outcomes.append(_outcome(state))
        if state.keyed is not None:
            fail_open_files += int(state.keyed.fail_open[state.keyed.codes[state.rows]].sum())
        reading -= perf_counter()
    reading += perf_counter()
    filtered = replace(partitions.stats, fail_open_files=fail_open_files)
    stats = count({"manifest": manifest_seconds, **seconds}, outcomes, unread, filtered, notes.to_list())
    stats = replace(
        stats,
        read_seconds=reading,
        filters=count_filters(sieve, outcomes, unread, idleness),
        kept_because=count_kept(sieve, outcomes),
        not_used=not_used(sieve.predicate),
    )
    return ScanPlan(sieve, tuple(outcomes), stats, tuple(seconds))


def partition_filter(sieve: Sieve) -> MultiSpecPartitionFilter:
    """The filter with which the funnel begins; strict refuses a condition by which no file can be pruned."""
    if sieve.strict:
        check_all_used(sieve.predicate)
    also = [column for runtime in sieve.runtime_filters for column in runtime.columns]
    return MultiSpecPartitionFilter(sieve.predicate, sieve.specs, strict=sieve.strict, also=also)


def _enter(
    sieve: Sieve, partitions: MultiSpecPartitionFilter, notes: Notes, batch: FileBatch, idleness: Idleness
) -> Sifting:
    count = len(batch)
    return Sifting(
        sieve=sieve,
        partitions=partitions,
        notes=notes,
        batch=batch,
        rows=np.arange(count),
        facts=Facts(count, {}),
        layer=np.full(count, NO_LAYER, np.int8),
        decider=np.full(count, NOBODY, np.int32),
        certain=np.zeros(count, np.bool_),
        basis=np.full(count, NO_LAYER, np.int8),
        idleness=idleness,
    )


def _outcome(state: Sifting) -> Outcome:
    kept = np.zeros(len(state.batch), np.bool_)
    kept[state.rows] = True
    # A join's keys select files, not rows: which rows of a file meet them, nobody knows before the join.
    holds = state.certain & kept
    certain = holds & (not state.sieve.runtime_filters)
    return Outcome(state.batch, kept, certain, state.layer, state.decider, _unknown(state), holds, state.basis)


def _unknown(state: Sifting) -> Mask:
    """Kept files of which nothing is known about the column that decided."""
    unknown = np.zeros(len(state.batch), np.bool_)
    for place, conjunct in enumerate(state.sieve.predicate.conjuncts):
        if isinstance(conjunct, Leaf):
            decided = state.decider[state.rows] == place
            if decided.any():
                unknown[state.rows[decided & state.facts.of(conjunct.column).unknown()]] = True
    return unknown


def _keyed(state: Sifting, spec_id: int) -> KeyedTrial:
    if state.keyed is None:
        batch = state.batch
        state.keyed = state.partitions.judge(spec_id, batch.partition, len(batch), batch.undecoded)
    return state.keyed


def _not_zero(rows: pa.Array) -> Mask:
    return np.asarray(rows.fill_null(-1).to_numpy(zero_copy_only=False) != 0)


def _take(stats: ColumnStats, rows: pa.Array) -> ColumnStats:
    parts = (stats.lower, stats.upper, stats.null_count, stats.nan_count, stats.value_count)
    return ColumnStats(*(None if part is None else part.take(rows) for part in parts))
