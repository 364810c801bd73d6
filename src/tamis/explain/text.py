"""A plan as text: what was asked, where the files went, why the rest is kept, and what had to be kept unproved.

It leads with sentences. What dropped nothing is left out, lines fit 80 columns, and everything that a table's writer
chose, names, values and paths, is printable.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tamis.explain.words import (
    WIDTH,
    aligned,
    readable_bytes,
    readable_files,
    readable_seconds,
    shortened,
    wrapped,
)
from tamis.sieve.plan import PlanStats, RuntimeFilterStats, ScanPlan, SpecStats

__all__ = ["plan_text"]

LONGEST: Final = 400
"""Characters of a condition to show: a list of ten thousand ids tells nobody more than its beginning."""
MOST_SPECS: Final = 20
"""Most specs to show one by one. JSON has all of them."""
MOST_REASONS: Final = 12
"""Most reasons to show one by one."""
_PRUNED_BY: Final = {
    "manifest": "in manifests whose partition summaries rule them out",
    "partition": "by partition value",
    "bucket": "by bucket",
    "stats": "by column statistics",
    "runtime": "that hold none of the join keys",
}
_FACTS: Final = {"stats": "column statistics"}


def plan_text(plan: ScanPlan, *, timing: bool = False) -> str:
    """The funnel for people. Everything in it is also in plan.stats."""
    stats = plan.stats
    lines = wrapped(_condition(plan), "WHERE  ")
    for runtime in plan.sieve.runtime_filters:
        lines += wrapped(shortened(runtime.text, LONGEST), "JOIN   ")
    lines += ["", *wrapped(_headline(stats), rest="  "), *_sums(stats)]
    lines += _kept_because(stats)
    lines += _not_used(stats)
    if len(stats.specs) > 1:
        lines += ["", *_specs(stats)]
    for keys in stats.runtime_filters:
        lines += ["", *_join_keys(keys)]
    lines += _kept_unproved(stats)
    if timing:
        lines += ["", *_times(stats)]
    return "\n".join(lines)


def _condition(plan: ScanPlan) -> str:
    """The condition in the user's words; if they are long, with its lists cut."""
    predicate = plan.sieve.predicate
    return predicate.sql if len(predicate.sql) <= LONGEST else shortened(predicate.root.text, LONGEST)


def _headline(stats: PlanStats) -> str:
    share = f" ({stats.kept / stats.files:.1%})" if stats.files else ""
    # A manifest that was pruned unread tells how many files it has, but in most formats not how large they are.
    unread = any(
        layer.layer == "manifest"
        and layer.files_before > layer.files_after
        and layer.bytes_before == layer.bytes_after
        for layer in stats.layers
    )
    at_least = "at least " if unread else ""
    return (
        f"would read {stats.kept:,} of {readable_files(stats.files)}{share}: "
        f"{readable_bytes(stats.kept_bytes)} of {at_least}{readable_bytes(stats.bytes)}"
    )


def _sums(stats: PlanStats) -> list[str]:
    """From all files to those that are left, a line for each layer that dropped some."""
    dropped = [(layer.layer, layer.files_before - layer.files_after) for layer in stats.layers]
    dropped = [(name, count) for name, count in dropped if count]
    if not dropped:
        return []
    rows = [("", stats.files, "in the table")]
    rows += [("-", count, _PRUNED_BY.get(name, f"by {name}")) for name, count in dropped]
    rows.append(("=", stats.kept, "to read"))
    width = max(len(f"{count:,}") for _, count, _ in rows)
    return ["", *(f"{sign:>3} {count:>{width},} {what}" for sign, count, what in rows)]


def _kept_because(stats: PlanStats) -> list[str]:
    """What keeps the files that are left: the answer to why a query reads so much."""
    reasons = stats.kept_because
    if not reasons:
        return []
    width = max(len(f"{reason.files:,}") for reason in reasons)
    lines = ["", "why files are kept"]
    for reason in reasons[:MOST_REASONS]:
        lines += wrapped(shortened(reason.text, LONGEST), f"    {reason.files:>{width},}  ")
    rest = reasons[MOST_REASONS:]
    if rest:
        count = sum(reason.files for reason in rest)
        lines.append(f"    {count:>{width},}  for {len(rest):,} more reasons (JSON lists them)")
    return lines


def _not_used(stats: PlanStats) -> list[str]:
    lines: list[str] = []
    for unused in stats.not_used[:MOST_REASONS]:
        lines += wrapped(shortened(unused.text, LONGEST), "not used for pruning: ", "    ")
    if len(stats.not_used) > MOST_REASONS:
        lines.append(
            f"not used for pruning: {len(stats.not_used) - MOST_REASONS:,} more conditions (JSON lists them)"
        )
    return ["", *lines] if lines else []


def _specs(stats: PlanStats) -> list[str]:
    """A row for each partition spec; as sentences if the numbers are too wide for a table."""
    names = [layer.layer for layer in stats.layers if layer.files_before > layer.files_after]
    shown = stats.specs[:MOST_SPECS]
    full = any(spec.kept_whole for spec in shown)
    head = ["spec", "files", *names, "kept", *(["fully match"] if full else []), "size kept"]
    rows: list[Sequence[str]] = [head]
    rows += [
        (
            _spec_name(spec),
            f"{spec.files:,}",
            *(f"{spec.dropped.get(name, 0):,}" for name in names),
            f"{spec.kept:,}",
            *([f"{spec.kept_whole:,}"] if full else []),
            readable_bytes(spec.kept_bytes),
        )
        for spec in shown
    ]
    table = aligned(rows)
    if max(map(len, table)) > WIDTH:
        table = [line for spec in shown for line in wrapped(_spec_sentence(spec), rest="  ")]
    more = len(stats.specs) - len(shown)
    title = "by partition spec: files, those pruned by each layer, and those kept" if names else "by partition spec"
    return [title, *table, *([f"and {more:,} more specs (JSON lists them)"] if more else [])]


def _spec_name(spec: SpecStats) -> str:
    return "none" if spec.spec_id is None else str(spec.spec_id)


def _spec_sentence(spec: SpecStats) -> str:
    pruned = ", ".join(f"{count:,} by {name}" for name, count in spec.dropped.items() if count)
    return (
        f"spec {_spec_name(spec)}: {readable_files(spec.files)}, pruned {pruned or 'none'}, "
        f"kept {spec.kept:,} ({readable_bytes(spec.kept_bytes)})"
    )


def _join_keys(keys: RuntimeFilterStats) -> list[str]:
    """What a runtime filter's keys did, in a sentence."""
    counted = "" if keys.keys is None else f"{'' if keys.exact else 'about '}{_many(keys.keys, 'key')}"
    taken = "" if keys.collect_seconds is None else f"collected in {readable_seconds(keys.collect_seconds)}"
    told = ", ".join(fact for fact in (counted, taken) if fact)
    start = f"join keys of {', '.join(keys.columns)}{f' ({told})' if told else ''}"
    if keys.idle is not None:
        return wrapped(f"{start} cannot prune: {keys.idle}", rest="  ")
    facts = ", ".join(f"{count:,} by {_FACTS.get(name, name)}" for name, count in keys.dropped.items() if count)
    if not keys.files:
        return wrapped(f"{start} prune no further file", rest="  ")
    pruned = f"{readable_files(keys.files)} ({readable_bytes(keys.bytes)})"
    return wrapped(f"{start} prune {pruned} that the condition leaves: {facts}", rest="  ")


def _kept_unproved(stats: PlanStats) -> list[str]:
    counted = stats.filter_stats
    lines: list[str] = []
    if counted.unevaluable_specs or counted.eval_errors or counted.fail_open_partitions:
        where = f"{readable_files(counted.fail_open_files)} in {_many(counted.fail_open_partitions, 'partition')}"
        specs, values = _many(counted.unevaluable_specs, "spec"), _many(counted.eval_errors, "value")
        why = f"{specs} not evaluable, {values} not decoded"
        lines += ["", *wrapped(f"kept without proof: {where} ({why})", rest="  ")]
    if stats.notes:
        lines += ["", "notes"]
        for note in stats.notes:
            lines += wrapped(note, "  ", "    ")
    return lines


def _times(stats: PlanStats) -> list[str]:
    rows: list[Sequence[str]] = [("step", "time"), ("reading", readable_seconds(stats.read_seconds))]
    rows += [(layer.layer, readable_seconds(layer.seconds)) for layer in stats.layers]
    return aligned(rows)


def _many(count: int, word: str) -> str:
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"
