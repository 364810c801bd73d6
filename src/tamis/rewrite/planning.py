"""From a table's files to groups that are worth rewriting, in columns and in one pass over the metadata.

    entries ▸ partition filter and statistics ▸ deletes, if a rule asks for them ▸ candidates ▸ keys ▸ packing ▸
    minimum thresholds ▸ order ▸ the groups' delete files

The first two are the sieve's: each file judged with its own spec, each partition key once, what cannot be judged
included and counted. Law: the same files and options give the same plan, in whatever order the files come.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter

import numpy as np
import pyarrow as pa

from tamis.predicate.arrays import Int64s
from tamis.predicate.bound import Known
from tamis.rewrite.candidates import Bits, Candidate, Considered, choose, needs_deletes
from tamis.rewrite.deletes import FileDeletes, ListedDeletes
from tamis.rewrite.groups import LATER, TOO_LITTLE, Groups, expected_outputs, group
from tamis.rewrite.keys import number_keys
from tamis.rewrite.options import RewriteOptions
from tamis.rewrite.plan import RewriteDataFilesPlanningResult, RewritePlan
from tamis.rewrite.stats import RewriteStats, warnings_of
from tamis.rewrite.terms import RewriteTerms
from tamis.sieve.groups import Groups as Together
from tamis.sieve.outcome import Outcome
from tamis.sieve.partitions import FilterStats
from tamis.sieve.plan import ScanPlan

__all__ = ["plan_rewrite"]


def plan_rewrite(scan: ScanPlan, options: RewriteOptions, terms: RewriteTerms) -> RewriteDataFilesPlanningResult:
    """The groups to rewrite of what a scan's condition leaves."""
    start = perf_counter()
    outcomes = _considered(scan, whole_keys=terms.whole_keys)
    deletes = terms.deletes(scan)
    files = _facts(outcomes, options, deletes)
    keys = number_keys(scan.sieve, outcomes)
    items, shared = (keys.codes, True) if terms.whole_keys else _items(outcomes)
    rules = _with_others(choose(files, options), items, shared=shared)
    grouped = group(files, rules, keys.codes, _places(outcomes, terms.order), items, options)
    listed = _deletes_of(grouped, outcomes, deletes, files.deletes)
    filter_stats = replace(scan.stats.filter_stats, fail_open_files=_fail_open(outcomes, rules))
    alone = sum(1 for code in np.unique(keys.codes[rules > 0]).tolist() if keys.keys[code].alone is not None)
    oversized = int(((files.size > options.max_file_group_size_bytes) & (rules > 0)).sum())
    warnings = warnings_of(scan.stats, filter_stats, alone, oversized)
    took = perf_counter() - start
    stats = _stats(scan, files, rules, grouped, listed, options)
    stats = replace(stats, filter_stats=filter_stats, warnings=warnings, seconds=took)
    plan = RewritePlan(scan, options, stats, outcomes, files, keys, rules, grouped, listed)
    return RewriteDataFilesPlanningResult(plan, filter_stats)


def _considered(scan: ScanPlan, *, whole_keys: bool) -> tuple[Outcome, ...]:
    """The scan's files that may be rewritten.

    Without a condition these are all, also those without rows, which no query has to read. Of files that hold
    versions of the same rows all are, if one of them is: what is merged must be merged with all that it replaces.
    """
    every = tuple(replace(one, kept=np.ones(len(one.batch), np.bool_)) for one in scan.outcomes)
    if scan.sieve.predicate.root == Known(value=True, text="true"):
        return every
    if not whole_keys:
        return tuple(_with_groups(one) for one in scan.outcomes)
    codes = number_keys(scan.sieve, every).codes
    kept = np.concatenate([np.zeros(0, np.bool_), *(one.kept for one in scan.outcomes)])
    with_kept = np.isin(codes, codes[kept])
    ends = np.cumsum([len(one.batch) for one in every])
    return tuple(
        replace(one, kept=with_kept[end - len(one.batch) : end])
        for one, end in zip(every, ends.tolist(), strict=True)
    )


def _with_groups(outcome: Outcome) -> Outcome:
    if outcome.batch.group is None:
        return outcome
    together = Together.of(outcome.batch.group)
    kept = np.zeros(together.count, np.bool_)
    kept[together.codes[outcome.kept]] = True
    return replace(outcome, kept=kept[together.codes])


def _facts(outcomes: Sequence[Outcome], options: RewriteOptions, deletes: FileDeletes) -> Considered:
    """What the rules look at; deletes only if one of them asks."""
    sizes, rows = (_column(outcomes, name) for name in ("size", "rows"))
    old = [np.full(int(outcome.kept.sum()), outcome.batch.spec_id != options.output_spec_id) for outcome in outcomes]
    is_old = np.concatenate([np.zeros(0, np.bool_), *old])
    if not needs_deletes(options):
        return Considered(sizes, rows, is_old)
    weights = deletes.weigh(outcomes)
    nothing = np.zeros(0, np.int64)
    return Considered(
        sizes,
        rows,
        is_old,
        np.concatenate([nothing, *(weight.files for weight in weights)]),
        np.concatenate([nothing, *(weight.rows for weight in weights)]),
    )


def _column(outcomes: Sequence[Outcome], name: str) -> Int64s:
    """A number of each file considered; -1 where it is not known."""
    parts = [
        getattr(outcome.batch, name).filter(pa.array(outcome.kept)).fill_null(-1).to_numpy(zero_copy_only=False)
        for outcome in outcomes
    ]
    return np.concatenate([np.zeros(0, np.int64), *parts]).astype(np.int64)


def _items(outcomes: Sequence[Outcome]) -> tuple[Int64s, bool]:
    """A number for each file considered: those of one number are rewritten together or not at all."""
    parts, start, shared = [np.zeros(0, np.int64)], 0, False
    for outcome in outcomes:
        rows = np.flatnonzero(outcome.kept)
        codes = np.arange(len(rows))
        if outcome.batch.group is not None:
            together = Together.of(outcome.batch.group.take(pa.array(rows)))
            codes, shared = together.codes, shared or bool(together.shared.any())
        parts.append(codes + start)
        start += len(rows)
    return np.concatenate(parts), shared


def _with_others(rules: Bits, items: Int64s, *, shared: bool) -> Bits:
    """The rules, and one more for files that another file of their item takes along."""
    if not shared:
        return rules
    chosen = np.zeros(int(items.max(initial=-1)) + 1, np.bool_)
    chosen[items[rules > 0]] = True
    return np.where((rules == 0) & chosen[items], np.uint8(Candidate.TOGETHER), rules)


def _places(outcomes: Sequence[Outcome], order: Sequence[str]) -> Int64s:
    """Each file's rank in the table's own order: where it stands in the metadata, else by its path."""
    count = sum(int(outcome.kept.sum()) for outcome in outcomes)
    if not count:
        return np.zeros(0, np.int64)
    columns = []
    for name in order:
        parts = [outcome.batch.extra[name].filter(pa.array(outcome.kept)) for outcome in outcomes]
        columns.append(pa.chunked_array(parts))
    if not columns:
        columns = [
            pa.chunked_array([outcome.batch.path.filter(pa.array(outcome.kept)) for outcome in outcomes], pa.string())
        ]
    table = pa.table(columns, names=[str(place) for place in range(len(columns))])
    ranks = np.empty(count, np.int64)
    keys = [(name, "ascending") for name in table.column_names]
    ranks[pa.compute.sort_indices(table, sort_keys=keys).to_numpy()] = np.arange(count)
    return ranks


def _deletes_of(
    grouped: Groups, outcomes: Sequence[Outcome], deletes: FileDeletes, counts: Int64s | None
) -> ListedDeletes:
    """The delete files of each group. Files that are known to have none are not asked again."""
    if not len(grouped):
        return ListedDeletes.none()
    numbers = grouped.numbers if counts is None else np.where(counts > 0, grouped.numbers, -1)
    members, groups, start = [], [], 0
    for outcome in outcomes:
        rows = np.flatnonzero(outcome.kept)
        mine = numbers[start : start + len(rows)]
        start += len(rows)
        if (mine >= 0).any():
            kept = np.zeros(len(outcome.batch), np.bool_)
            kept[rows[mine >= 0]] = True
            members.append(replace(outcome, kept=kept))
            groups.append(mine[mine >= 0])
    return deletes.listed(members, groups) if members else ListedDeletes.none()


def _fail_open(outcomes: Sequence[Outcome], rules: Bits) -> int:
    """Candidates in partitions that were included without a judgement."""
    count = start = 0
    for outcome in outcomes:
        rows = np.flatnonzero(outcome.kept)
        if outcome.fail_open is not None:
            count += int((outcome.fail_open[rows] & (rules[start : start + len(rows)] > 0)).sum())
        start += len(rows)
    return count


def _stats(
    scan: ScanPlan,
    files: Considered,
    rules: Bits,
    grouped: Groups,
    listed: ListedDeletes,
    options: RewriteOptions,
) -> RewriteStats:
    chosen = rules > 0
    outputs = int(expected_outputs(grouped.bytes, options).sum())
    return RewriteStats(
        files=scan.stats.files,
        bytes=scan.stats.bytes,
        considered=len(rules),
        candidates=int(chosen.sum()),
        candidate_bytes=int(np.maximum(files.size[chosen], 0).sum()),
        groups=len(grouped),
        rewritten_files=len(grouped.members),
        rewritten_bytes=int(grouped.bytes.sum()),
        rewritten_rows=int(grouped.rows.sum()),
        expected_outputs=outputs,
        expected_files=scan.stats.files - len(grouped.members) + outputs,
        delete_files=len(listed.paths.unique()),
        too_little=int((grouped.fate == TOO_LITTLE).sum()),
        later=int((grouped.fate == LATER).sum()),
        rules={
            str(rule.name).lower().replace("_", "-"): int(((rules & np.uint8(rule)) > 0).sum())
            for rule in Candidate
            if ((rules & np.uint8(rule)) > 0).any()
        },
        filter_stats=FilterStats(),
        warnings=(),
        seconds=0.0,
    )
