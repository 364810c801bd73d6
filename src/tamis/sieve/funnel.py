"""The layers in order, the selection narrowing at each, and the plan that comes out.

Each layer adds facts, or a condition, to what is known of the files that are left, and judges them again with all
that is known by then. So a layer can only narrow; and since the last one knows everything, the order of the layers
changes which of them is credited with a file, never which files are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
import pyarrow as pa
from numpy import typing as npt

from tamis.errors import UnevaluableError
from tamis.predicate.bound import Leaf
from tamis.predicate.schema import Column
from tamis.predicate.type_names import type_name
from tamis.sieve.domain import ColumnStats, Facts, not_empty, trusted_domain
from tamis.sieve.file_buckets import bucket_facts
from tamis.sieve.files import FileBatch
from tamis.sieve.groups import Groups
from tamis.sieve.join.combined import combined_keys
from tamis.sieve.join.credit import Idleness
from tamis.sieve.kept import check_all_used
from tamis.sieve.order import Mask
from tamis.sieve.outcome import NO_LAYER, Outcome
from tamis.sieve.partitions import KeyedTrial, MultiSpecPartitionFilter
from tamis.sieve.plan import ScanPlan
from tamis.sieve.sieve import Sieve
from tamis.sieve.sifting import Sifting
from tamis.sieve.stats import Unread
from tamis.sieve.tally import Tally, stats_of
from tamis.sieve.trial import NOBODY

__all__ = ["LAYERS", "Layer", "Sifted", "partition_filter", "sift"]

Rows = npt.NDArray[np.int64]


def by_partition(state: Sifting, place: int) -> None:
    """Partition values of the file's own spec, but for hash buckets."""
    if not _has_spec(state):
        return
    keyed = _keyed(state)
    if not state.facts.domains and not state.facts.buckets and not state.active:
        state.settle(place, keyed.partition.take(keyed.codes[state.rows]))
        state.facts = keyed.facts.without_buckets().take(keyed.codes[state.rows])
        return
    state.learn(keyed.facts.without_buckets().take(keyed.codes[state.rows]))
    state.judge(place, "partition")


def by_bucket(state: Sifting, place: int) -> None:
    """Hash buckets: of bucket transforms, and of formats that place rows by a hash of their key."""
    if _has_spec(state):
        keyed = _keyed(state)
        if any(domain.buckets for domain in keyed.facts.domains.values()):
            if state.only_keys and not state.active:
                state.settle(place, keyed.bucket.take(keyed.codes[state.rows]))
                state.facts = keyed.facts.take(keyed.codes[state.rows])
            else:
                state.learn(keyed.facts.take(keyed.codes[state.rows]))
                state.judge(place, "bucket")
    if not state.batch.buckets:
        return
    wanted = {column.id: column for column in state.sieve.columns}
    state.bucketed, faults = bucket_facts(state.batch.buckets, wanted, np.arange(len(state.batch)))
    for fault in faults:
        _fault(state, "buckets", fault)
    if state.bucketed.domains or state.bucketed.buckets:
        state.only_keys = False
        state.learn(state.bucketed.take(state.rows))
        state.judge(place, "bucket")


def by_stats(state: Sifting, place: int) -> None:
    """Bounds and counts of the predicate's columns; a file without rows has nothing to match.

    Of files that stand or fall together, those of key columns drop single files, the others groups.
    """
    wanted = state.sieve.columns
    _state(state)
    may = _not_zero(state.batch.rows)
    if not may.all():
        for column in wanted:
            if (stats := state.batch.stats.get(column.id)) is not None:
                may = may | not_empty(stats, len(state.batch))
    state.narrow(place, may[state.rows], np.full(len(state.rows), NOBODY, np.int32))
    state.only_keys = False
    learnt = Facts(len(state.rows), {})
    taken = pa.array(state.rows)
    for column in wanted:
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
            _ignore(state, reason, error)
    if learnt.domains or not state.judged:
        state.learn(learnt, of_values=True)
        state.judge(place, "stats")


def _state(state: Sifting) -> None:
    """Have a batch say what it says late, of the files that are left."""
    known = len(state.batch.notes)
    state.batch = state.batch.stated(state.rows)
    for note in state.batch.notes[known:]:
        state.notes.add(note)


def _distrust(state: Sifting, column: Column) -> None:
    why = "more NULLs or NaN are counted than rows, or there is a bound and no value is counted"
    _ignore(state, f"statistics of {column.name} contradict themselves in some files: {why}")


def _ignore(state: Sifting, reason: str, error: Exception | None = None) -> None:
    """Say that statistics were ignored, and why; in strict mode that is an error."""
    _fault(state, "statistics", f"statistics ignored: {reason}", reason, error)


def _fault(state: Sifting, facts: str, note: str, reason: str | None = None, error: Exception | None = None) -> None:
    """Note that facts were ignored, and why; in strict mode that is an error."""
    if state.sieve.strict:
        raise UnevaluableError(
            f"cannot judge by {facts}: {reason or note}. Plan without strict=True to keep such files.",
            reason=reason or note,
        ) from error
    state.notes.add(note)


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
    if state.bucketed is not None:
        _by_file_buckets(state, place, state.bucketed)
    state.judge(place, "stats")


def _by_file_buckets(state: Sifting, place: int, bucketed: Facts) -> None:
    """The buckets that a format states file by file, with the partitions that these lie in."""
    for number, runtime in enumerate(state.active):
        known = bucketed.take(state.rows)
        if state.keyed is not None:
            known = known.and_also(state.keyed.facts.take(state.keyed.codes[state.rows]))
        if len(state.rows) and runtime.idle(known) is None:
            state.filter(place, number, runtime.possible(known), "bucket")
    # Keys that the filters and the predicate have together: of (a, b) a join's a, and `b = 1`.
    for columns in dict.fromkeys(fact.columns for fact in bucketed.buckets):
        combined = combined_keys(state.sieve.predicate, state.active, columns)
        if combined is not None and len(state.rows):
            known = bucketed.take(state.rows)
            state.filter(place, combined.number, combined.tuples.possible(known)[0], "bucket")


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


@dataclass(frozen=True, slots=True)
class Sifted:
    """A plan, and what was counted on the way to it: the plans of a table's parts are merged by their tallies."""

    plan: ScanPlan
    tally: Tally


def sift(
    sieve: Sieve,
    batches: Iterable[FileBatch],
    *,
    unread: Sequence[Unread] = (),
    manifest_seconds: float = 0.0,
    layers: Sequence[Layer] = LAYERS,
) -> Sifted:
    """Pass every batch through the layers. Batches and their files keep their order in the plan.

    unread are files of manifests that were pruned without being read, in manifest_seconds: they are counted, and
    credited to the manifest layer.
    """
    partitions = partition_filter(sieve)
    names = tuple(layer.name for layer in layers)
    seconds = dict.fromkeys(names, 0.0)
    outcomes: list[Outcome] = []
    idleness = Idleness()
    fail_open_files = 0
    reading = -perf_counter()
    for batch in batches:
        reading += perf_counter()
        state = _enter(sieve, partitions, batch, idleness)
        for note in batch.notes:
            state.notes.add(note)
        for place, layer in enumerate(layers):
            start = perf_counter()
            layer.apply(state, place)
            seconds[layer.name] += perf_counter() - start
        outcomes.append(_outcome(state))
        if state.keyed is not None:
            fail_open_files += int(state.keyed.fail_open[state.keyed.codes[state.rows]].sum())
        reading -= perf_counter()
    reading += perf_counter()
    sifted = Tally.of(sieve, names, outcomes, partitions, idleness)
    sifted = replace(sifted, fail_open_files=fail_open_files, seconds=seconds, read_seconds=reading)
    tally = Tally.merged([Tally.of_unread(unread, len(sieve.runtime_filters), manifest_seconds), sifted])
    stats = stats_of(sieve, names, partitions, tally)
    return Sifted(ScanPlan(sieve, tuple(outcomes), stats, names), tally)


def partition_filter(sieve: Sieve) -> MultiSpecPartitionFilter:
    """The filter with which the funnel begins; strict refuses a condition by which no file can be pruned."""
    if sieve.strict:
        check_all_used(sieve.predicate)
    also = [column for runtime in sieve.runtime_filters for column in runtime.columns]
    return MultiSpecPartitionFilter(sieve.predicate, sieve.specs, strict=sieve.strict, also=also)


def _enter(sieve: Sieve, partitions: MultiSpecPartitionFilter, batch: FileBatch, idleness: Idleness) -> Sifting:
    count = len(batch)
    return Sifting(
        sieve=sieve,
        partitions=partitions,
        notes=partitions.notes,
        batch=batch,
        rows=np.arange(count),
        facts=Facts(count, {}),
        layer=np.full(count, NO_LAYER, np.int8),
        decider=np.full(count, NOBODY, np.int32),
        certain=np.zeros(count, np.bool_),
        basis=np.full(count, NO_LAYER, np.int8),
        idleness=idleness,
        groups=None if batch.group is None else Groups.of(batch.group),
    )


def _outcome(state: Sifting) -> Outcome:
    _state(state)
    kept = np.zeros(len(state.batch), np.bool_)
    kept[state.rows] = True
    # A join's keys select files, not rows: which rows of a file meet them, nobody knows before the join.
    holds = state.certain & kept
    if state.groups is not None:
        holds[state.rows] = state.groups.whole(state.rows, holds[state.rows])
    certain = holds & (not state.sieve.runtime_filters)
    return Outcome(
        state.batch,
        kept,
        certain,
        state.layer,
        state.decider,
        _unknown(state),
        holds,
        state.basis,
        state.together,
        _fail_open(state),
    )


def _fail_open(state: Sifting) -> Mask | None:
    keyed = state.keyed
    return keyed.fail_open[keyed.codes] if keyed is not None and keyed.fail_open.any() else None


def _unknown(state: Sifting) -> Mask:
    """Kept files of which nothing is known about the column that decided."""
    unknown = np.zeros(len(state.batch), np.bool_)
    for place, conjunct in enumerate(state.sieve.predicate.conjuncts):
        if isinstance(conjunct, Leaf):
            decided = state.decider[state.rows] == place
            if decided.any():
                unknown[state.rows[decided & state.facts.of(conjunct.column).unknown()]] = True
    return unknown


def _has_spec(state: Sifting) -> bool:
    """Whether the batch has a spec: one by its id, or the only one of a format without ids."""
    return state.batch.spec_id is not None or any(spec.spec_id is None for spec in state.sieve.specs)


def _keyed(state: Sifting) -> KeyedTrial:
    if state.keyed is None:
        batch = state.batch
        state.keyed = state.partitions.judge(batch.spec_id, batch.partition, len(batch), batch.undecoded)
        if state.groups is not None and (stray := state.groups.astray(state.keyed.codes)) is not None:
            raise ValueError(
                f"{batch.path[stray]} stands or falls with files of another partition, group {batch.group[stray]}: "  # type: ignore[index] # there are groups
                "a group is of one partition"
            )
    return state.keyed


def _not_zero(rows: pa.Array) -> Mask:
    return np.asarray(rows.fill_null(-1).to_numpy(zero_copy_only=False) != 0)


def _take(stats: ColumnStats, rows: pa.Array) -> ColumnStats:
    parts = (stats.lower, stats.upper, stats.null_count, stats.nan_count, stats.value_count)
    return ColumnStats(*(None if part is None else part.take(rows) for part in parts))
