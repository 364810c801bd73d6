"""A plan as text: what was asked, the funnel, a row for each spec, and what had to be kept unproved."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tamis.sieve.plan import PlanStats, ScanPlan

__all__ = ["aligned", "plan_text", "readable_bytes", "readable_files"]

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_STEP = 1024


def plan_text(plan: ScanPlan) -> str:
    """The funnel for people. Everything in it is also in plan.stats."""
    stats = plan.stats
    lines = [f"WHERE  {plan.sieve.predicate.sql}"]
    lines += [f"JOIN   {runtime.text}" for runtime in plan.sieve.runtime_filters]
    headline = _headline(stats)
    lines += ["", headline, "", *_layer_rows(stats)]
    if stats.specs:
        lines += ["", *_spec_rows(stats)]
    if stats.filters:
        lines += ["", *_filter_rows(stats)]
    lines += _kept_unproved(stats)
    return "\n".join(lines)


def readable_bytes(count: int) -> str:
    """A size in the unit that leaves at most four digits.

    >>> readable_bytes(0), readable_bytes(1536), readable_bytes(5 * 1024**3)
    ('0 B', '1.5 KiB', '5.0 GiB')
    """
    size = float(count)
    for unit in _UNITS[:-1]:
        if abs(size) < _STEP:
            return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= _STEP
    return f"{size:.1f} {_UNITS[-1]}"


def _headline(stats: PlanStats) -> str:
    share = f" ({stats.kept / stats.files:.1%})" if stats.files else ""
    whole = f", {stats.kept_whole:,} of them whole" if stats.kept_whole else ""
    # A manifest that was pruned unread tells how many files it has, but in most formats not how large they are.
    unread = any(
        layer.layer == "manifest"
        and layer.files_before > layer.files_after
        and layer.bytes_before == layer.bytes_after
        for layer in stats.layers
    )
    at_least = "at least " if unread else ""
    return (
        f"reads {stats.kept:,} of {readable_files(stats.files)}{share}{whole}: "
        f"{readable_bytes(stats.kept_bytes)} of {at_least}{readable_bytes(stats.bytes)}"
    )


def readable_files(count: int) -> str:
    """How many files.

    >>> readable_files(1), readable_files(12000)
    ('1 file', '12,000 files')
    """
    return f"{count:,} file" if count == 1 else f"{count:,} files"


def _layer_rows(stats: PlanStats) -> list[str]:
    rows: list[Sequence[str]] = [("layer", "files in", "dropped", "files out", "bytes out", "time")]
    rows += [
        (
            layer.layer,
            f"{layer.files_before:,}",
            f"{layer.files_before - layer.files_after:,}",
            f"{layer.files_after:,}",
            readable_bytes(layer.bytes_after),
            f"{layer.seconds * 1000:6.1f} ms",
        )
        for layer in stats.layers
    ]
    return aligned(rows)


def _spec_rows(stats: PlanStats) -> list[str]:
    names = [layer.layer for layer in stats.layers]
    rows: list[Sequence[str]] = [("spec", "files", *(f"-{name}" for name in names), "kept", "whole", "bytes kept")]
    rows += [
        (
            "none" if spec.spec_id is None else str(spec.spec_id),
            f"{spec.files:,}",
            *(f"{spec.dropped.get(name, 0):,}" for name in names),
            f"{spec.kept:,}",
            f"{spec.kept_whole:,}",
            readable_bytes(spec.kept_bytes),
        )
        for spec in stats.specs
    ]
    return aligned(rows)


def _filter_rows(stats: PlanStats) -> list[str]:
    """A row for each runtime filter: its keys, the time that they took, and what it removed by which facts."""
    facts = list(stats.filters[0].dropped)
    rows: list[Sequence[str]] = [
        ("join keys of", "keys", "collected in", *(f"-{name}" for name in facts), "files removed", "bytes removed")
    ]
    rows += [
        (
            ", ".join(one.columns),
            "-" if one.keys is None else f"{'' if one.exact else '~'}{one.keys:,}",
            "-" if one.collect_seconds is None else f"{one.collect_seconds * 1000:,.1f} ms",
            *(f"{one.dropped[name]:,}" for name in facts),
            f"{one.files:,}",
            readable_bytes(one.bytes),
        )
        for one in stats.filters
    ]
    idle = [f"{', '.join(one.columns)} cannot prune: {one.idle}" for one in stats.filters if one.idle is not None]
    return [*aligned(rows), *idle]


def _kept_unproved(stats: PlanStats) -> list[str]:
    counted = stats.filter
    lines: list[str] = []
    if counted.unevaluable_specs or counted.eval_errors or counted.fail_open_partitions:
        where = f"{readable_files(counted.fail_open_files)} in {counted.fail_open_partitions:,} partitions"
        why = f"{counted.unevaluable_specs:,} specs not evaluable, {counted.eval_errors:,} values not decoded"
        lines += ["", f"kept without proof: {where} ({why})"]
    if stats.notes:
        lines += ["", "notes", *(f"  {note}" for note in stats.notes)]
    return lines


def aligned(rows: Sequence[Sequence[str]], left: Collection[int] = (0,)) -> list[str]:
    """Columns side by side, those in left to the left, numbers to the right; the last one runs free."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if place in left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
