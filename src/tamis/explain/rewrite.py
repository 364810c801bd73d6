"""A plan of a rewrite as text and as JSON: the totals first, then its groups, and what is to be known about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import pyarrow as pa

from tamis.checks import check_form
from tamis.explain.json import SCHEMA_VERSION, json_text, plan_document
from tamis.explain.listing import relative
from tamis.explain.words import WIDTH, aligned, readable_bytes, readable_files, readable_seconds, shortened, wrapped
from tamis.printable import printable
from tamis.rewrite.options import RewriteOptions
from tamis.rewrite.plan import RewritePlan
from tamis.rewrite.stats import RewriteStats
from tamis.rewrite.values import size_text

__all__ = ["candidate_lines", "render_rewrite", "rewrite_document"]

LONGEST: Final = 400
MOST_GROUPS: Final = 20
"""Most groups to show one by one, the first in order. JSON has all of them."""
_LAYERS: Final = {
    "manifest": "in manifests whose partition summaries rule them out",
    "partition": "by partition value",
    "bucket": "by bucket",
    "stats": "by column statistics",
}
_RULES: Final = {
    "small": "smaller than {low}",
    "large": "larger than {high}",
    "many-deletes": "with {deletes:,} or more delete files",
    "delete-ratio": "with {ratio:.0%} or more of their rows deleted",
    "all": "because every file is rewritten (rewrite-all)",
    "old-spec": "of specs other than {spec} (only-old-specs)",
    "together": "that hold versions of the rows of another candidate",
}


def render_rewrite(plan: RewritePlan, form: Literal["text", "json"], *, timing: bool = False) -> str:
    """The plan in the form asked for; ValueError names the forms."""
    check_form(form, timing=timing)
    return rewrite_text(plan, timing=timing) if form == "text" else json_text(rewrite_document(plan))


def rewrite_document(plan: RewritePlan, *, candidates: bool = False) -> dict[str, Any]:
    """The plan for programs: its condition and funnel, its options, totals, groups and, on request, candidates."""
    scan = plan_document(plan.scan)
    return {
        "version": SCHEMA_VERSION,
        "predicate": scan["predicate"],
        **plan.to_dict(candidates=candidates),
        "stats": scan["stats"],
    }


def rewrite_text(plan: RewritePlan, *, groups: int | None = MOST_GROUPS, timing: bool = False) -> str:
    """The plan for people; groups says how many of them are shown, None all."""
    stats = plan.stats
    predicate = plan.scan.sieve.predicate
    where = predicate.sql if len(predicate.sql) <= LONGEST else shortened(predicate.root.text, LONGEST)
    lines = [*wrapped(where, "WHERE  "), "", *wrapped(_headline(stats), rest="  ")]
    lines += _funnel(plan)
    lines += _candidates(stats, plan.options)
    if stats.groups:
        lines += ["", *_groups(plan, groups)]
    if stats.warnings:
        lines += ["", "to be known"]
        for warning in stats.warnings:
            many = "" if warning.files is None else f"{readable_files(warning.files)}: "
            lines += wrapped(shortened(many + warning.text, LONGEST), "  ", "    ")
    if timing:
        layers = [(layer.layer, readable_seconds(layer.seconds)) for layer in plan.scan.stats.layers]
        read = ("reading", readable_seconds(plan.scan.stats.read_seconds))
        lines += ["", *aligned([("step", "time"), read, *layers, ("grouping", readable_seconds(stats.seconds))])]
    return "\n".join(lines)


def _headline(stats: RewriteStats) -> str:
    if not stats.groups:
        return f"nothing to rewrite in {readable_files(stats.files)}"
    deletes = f", and apply {_many(stats.delete_files, 'delete file')}" if stats.delete_files else ""
    return (
        f"would rewrite {stats.rewritten_files:,} of {readable_files(stats.files)} in "
        f"{_many(stats.groups, 'group')}, {readable_bytes(stats.rewritten_bytes)}, into about "
        f"{readable_files(stats.expected_outputs)}{deletes}: the table would have about "
        f"{readable_files(stats.expected_files)}"
    )


def _funnel(plan: RewritePlan) -> list[str]:
    """From all files to those in groups, a line for each step that left some out."""
    stats = plan.stats
    rows = [("", stats.files, "in the table")]
    for layer in plan.scan.stats.layers:
        gone = layer.files_before - layer.files_after
        if layer.layer == "stats" and stats.considered > plan.scan.stats.kept:
            gone -= stats.considered - plan.scan.stats.kept
        if gone > 0:
            rows.append(("-", gone, _LAYERS.get(layer.layer, f"by {layer.layer}")))
    fine = stats.considered - stats.candidates
    what = "of the output spec already" if plan.options.only_old_specs else "of a good size, with few deletes"
    rows += [("-", fine, what)] if fine else []
    rows += [("-", stats.too_little, "too few in their partition to be worth it")] if stats.too_little else []
    rows += [("-", stats.later, "left to a later run (max-files-to-rewrite)")] if stats.later else []
    if len(rows) == 1:
        return []
    rows.append(("=", stats.rewritten_files, "to rewrite"))
    width = max(len(f"{count:,}") for _, count, _ in rows)
    return ["", *(f"{sign:>3} {count:>{width},} {text}" for sign, count, text in rows)]


def _candidates(stats: RewriteStats, options: RewriteOptions) -> list[str]:
    if not stats.candidates:
        return []
    facts = {
        "low": size_text(options.min_file_size_bytes),
        "high": size_text(options.max_file_size_bytes),
        "deletes": options.delete_file_threshold,
        "ratio": options.delete_ratio_threshold,
        "spec": options.output_spec_id,
    }
    width = max(len(f"{count:,}") for count in stats.rules.values())
    title = f"candidates: {readable_files(stats.candidates)}, {readable_bytes(stats.candidate_bytes)}"
    lines = ["", title]
    for rule, count in stats.rules.items():
        lines += wrapped(_RULES.get(rule, rule).format(**facts), f"    {count:>{width},}  ")
    return lines


def _groups(plan: RewritePlan, most: int | None) -> list[str]:
    """A row for each group: how much of it there is, then its key."""
    table = plan.groups.slice(0, most) if most is not None else plan.groups
    shown = table.to_pylist()
    specs, buckets = (table[name].null_count < len(shown) for name in ("spec_id", "bucket"))
    deletes = any(group["delete_files"] for group in shown)
    head = ["group", "files", "size", *(["deletes"] if deletes else []), "new files"]
    head += [*(["spec"] if specs else []), *(["bucket"] if buckets else []), "partition"]
    rows: list[Sequence[str]] = [head]
    for group in shown:
        row = [str(group["group_id"]), f"{len(group['files']):,}", readable_bytes(group["bytes"])]
        row += [f"{len(group['delete_files']):,}"] if deletes else []
        row += [f"{group['expected_outputs']:,}"]
        row += [str(group["spec_id"])] if specs else []
        row += [str(group["bucket"])] if buckets else []
        rows.append([*row, group["partition"] or "-"])
    lines = _fitted(rows)
    left = plan.stats.groups - len(shown)
    return [*lines, *([f"and {_many(left, 'more group')} (--groups N shows more, JSON all)"] if left else [])]


def _fitted(rows: Sequence[Sequence[str]]) -> list[str]:
    """Aligned lines; a partition that does not fit the width has a line of its own."""
    last = [printable(row[-1]) for row in rows]
    narrow = aligned([row[:-1] for row in rows])
    lines = []
    for line, cell in zip(narrow, last, strict=True):
        whole = f"{line}  {cell}"
        lines += [whole] if len(whole) <= WIDTH else [line, f"    {cell}"]
    return lines


def candidate_lines(candidates: pa.Table, location: str = "", *, limit: int | None = None) -> list[str]:
    """Each file that was looked at: whether it is a candidate, its group and size, then the reason and its path."""
    listed = candidates if limit is None else candidates.slice(0, limit)
    rows: list[Sequence[str]] = [("candidate", "group", "size", "deletes", "spec", "partition")]
    rows += [_candidate_row(file) for file in listed.to_pylist()]
    if len(rows) == 1:
        return ["no file was looked at"]
    header, *lines = _fitted_rows(rows)
    found = [*header]
    for row, reason, path in zip(lines, *(listed[name].to_pylist() for name in ("reason", "path")), strict=True):
        found += [*row, *wrapped(reason, "    "), f"    {printable(relative(path, location))}"]
    more = candidates.num_rows - listed.num_rows
    return [*found, *([f"and {more:,} more"] if more else [])]


def _candidate_row(file: Mapping[str, Any]) -> Sequence[str]:
    def number(value: int | None) -> str:
        return "-" if value is None else f"{value:,}"

    size = "-" if file["size"] is None else readable_bytes(file["size"])
    return (
        "yes" if file["candidate"] else "no",
        number(file["group_id"]),
        size,
        number(file["deletes"]),
        number(file["spec_id"]),
        file["partition"] or "-",
    )


def _fitted_rows(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    last = [printable(row[-1]) for row in rows]
    narrow = aligned([row[:-1] for row in rows])
    return [
        [f"{line}  {cell}"] if len(line) + 2 + len(cell) <= WIDTH else [line, f"    {cell}"]
        for line, cell in zip(narrow, last, strict=True)
    ]


def _many(count: int | None, word: str) -> str:
    return f"{count or 0:,} {word}{'s' * (count != 1)}"
