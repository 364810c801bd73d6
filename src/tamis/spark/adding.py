"""Parts of a plan put together: what each unit of metadata gave, as if one process had judged them all.

Counts are added. What may have been counted by several units, partition keys that could not be judged, notes, idle
filters, comes as sets, and is counted here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tamis.formats.spread import Spread
from tamis.sieve.filterstats import Idleness, RuntimeFilterStats, count_filters
from tamis.sieve.funnel import LAYERS, partition_filter
from tamis.sieve.kept import added_kept, not_used
from tamis.sieve.notes import Notes
from tamis.sieve.outcome import Sieve
from tamis.sieve.partitions import FilterStats
from tamis.sieve.plan import LayerStats, PlanStats, ScanPlan, SpecStats, count
from tamis.spark.judging import Answer

__all__ = ["added"]


def added(sieve: Sieve, answers: Sequence[Answer], spread: Spread) -> ScanPlan:
    """The plan of all units, in their order, and of what was pruned before them."""
    names = tuple(layer.name for layer in LAYERS)
    start = partition_filter(sieve)
    filtered = FilterStats(
        start.stats.unevaluable_specs,
        len(frozenset().union(*(one.errors for one in answers))),
        len(frozenset().union(*(one.open for one in answers))),
        sum(one.stats.filter.fail_open_files for one in answers),
    )
    seconds = {"manifest": spread.seconds, **dict.fromkeys(names, 0.0)}
    total = count(seconds, (), spread.unread, filtered, _notes(start.notes, answers).to_list())
    for answer in answers:
        total = _plus(total, answer.stats)
    filters = count_filters(sieve, (), spread.unread, _idleness(answers))
    for answer in answers:
        filters = tuple(_plus_filter(*pair) for pair in zip(filters, answer.stats.filters, strict=True))
    kept = added_kept(answer.stats.kept_because for answer in answers)
    total = replace(total, filters=filters, kept_because=kept, not_used=not_used(sieve.predicate))
    outcomes = tuple(outcome for answer in answers for outcome in answer.outcomes)
    return ScanPlan(sieve, outcomes, total, names)


def _notes(start: Notes, answers: Iterable[Answer]) -> Notes:
    """The notes as they would have come one after the other; every unit repeats those that a plan starts with."""
    begun = start.to_list()[: len(start.to_list()) - bool(start.omitted)]
    found = Notes()
    for text in begun:
        found.add(text)
    found.omitted = start.omitted
    for answer in answers:
        for text, times in answer.notes.items():
            for _ in range(times - (text in begun)):
                found.add(text)
        # A text that a unit had no room for comes after twenty others, and so after twenty in all.
        found.omitted += answer.omitted - start.omitted
    return found


def _idleness(answers: Iterable[Answer]) -> Idleness:
    found = Idleness()
    for answer in answers:
        for place in answer.useful:
            found.note(place, None)
        for place, why in answer.idle.items():
            found.note(place, why)
    return found


def _plus(total: PlanStats, part: PlanStats) -> PlanStats:
    return replace(
        total,
        files=total.files + part.files,
        kept=total.kept + part.kept,
        kept_whole=total.kept_whole + part.kept_whole,
        bytes=total.bytes + part.bytes,
        kept_bytes=total.kept_bytes + part.kept_bytes,
        layers=tuple(_plus_layer(*pair) for pair in zip(total.layers, part.layers, strict=True)),
        specs=_plus_specs(total.specs, part.specs),
    )


def _plus_layer(one: LayerStats, other: LayerStats) -> LayerStats:
    return LayerStats(
        one.layer,
        one.files_before + other.files_before,
        one.files_after + other.files_after,
        one.bytes_before + other.bytes_before,
        one.bytes_after + other.bytes_after,
        one.seconds + other.seconds,
    )


def _plus_specs(some: Sequence[SpecStats], others: Sequence[SpecStats]) -> tuple[SpecStats, ...]:
    found = {spec.spec_id: spec for spec in some}
    for spec in others:
        known = found.get(spec.spec_id)
        found[spec.spec_id] = spec if known is None else _plus_spec(known, spec)
    return tuple(found[id_] for id_ in sorted(found, key=lambda id_: -1 if id_ is None else id_))


def _plus_spec(one: SpecStats, other: SpecStats) -> SpecStats:
    return SpecStats(
        one.spec_id,
        one.files + other.files,
        one.kept + other.kept,
        one.kept_whole + other.kept_whole,
        one.bytes + other.bytes,
        one.kept_bytes + other.kept_bytes,
        _sums(one.dropped, other.dropped),
    )


def _plus_filter(one: RuntimeFilterStats, other: RuntimeFilterStats) -> RuntimeFilterStats:
    files = one.files + other.files
    return replace(
        one,
        files=files,
        bytes=one.bytes + other.bytes,
        dropped=_sums(one.dropped, other.dropped),
        dropped_bytes=_sums(one.dropped_bytes, other.dropped_bytes),
        idle=None if files else one.idle,
    )


def _sums(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}
