"""A plan of a rewrite: its groups, a row for each file considered, and the totals.

A frozen value: nothing has been rewritten, nothing will change in it. Its tables are made when they are asked for.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.predicate.arrays import Int64s
from tamis.rewrite.candidates import Bits, Considered, why
from tamis.rewrite.deletes import ListedDeletes
from tamis.rewrite.groups import LATER, TOO_LITTLE, Groups, expected_outputs, split_sizes
from tamis.rewrite.keys import Keys
from tamis.rewrite.options import RewriteOptions
from tamis.rewrite.stats import RewriteStats
from tamis.rewrite.values import size_text
from tamis.sieve.outcome import Outcome
from tamis.sieve.partitions import FilterStats
from tamis.sieve.plan import ScanPlan
from tamis.sieve.reasons import partition_texts

__all__ = ["RewriteDataFilesPlanningResult", "RewritePlan"]

GROUPS_SCHEMA: Final = pa.schema(
    [
        pa.field("group_id", pa.int32(), nullable=False),
        pa.field("spec_id", pa.int32()),
        pa.field("partition", pa.string()),
        pa.field("bucket", pa.int32()),
        pa.field("files", pa.list_(pa.string()), nullable=False),
        pa.field("bytes", pa.int64(), nullable=False),
        pa.field("rows", pa.int64(), nullable=False),
        pa.field("delete_files", pa.list_(pa.string()), nullable=False),
        pa.field("expected_outputs", pa.int64(), nullable=False),
        pa.field("split_size", pa.int64(), nullable=False),
        pa.field("output_spec_id", pa.int32()),
    ]
)
CANDIDATES_SCHEMA: Final = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("size", pa.int64()),
        pa.field("rows", pa.int64()),
        pa.field("spec_id", pa.int32()),
        pa.field("partition", pa.string()),
        pa.field("bucket", pa.int32()),
        pa.field("deletes", pa.int32()),
        pa.field("deleted_rows", pa.int64()),
        pa.field("candidate", pa.bool_(), nullable=False),
        pa.field("group_id", pa.int32()),
        pa.field("reason", pa.string(), nullable=False),
    ]
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RewritePlan:
    """Which files would be rewritten, and which of them together."""

    scan: ScanPlan
    """What the condition leaves, and by which layer the rest was left out."""
    options: RewriteOptions
    stats: RewriteStats
    outcomes: tuple[Outcome, ...]
    """The scan's, with the files kept that are considered."""
    considered: Considered
    keys: Keys
    rules: Bits
    """For each file considered, the rules that make it a candidate."""
    grouped: Groups
    deletes: ListedDeletes

    def __repr__(self) -> str:
        stats = self.stats
        return (
            f"<tamis rewrite plan: {stats.groups:,} groups, {stats.rewritten_files:,} files into about "
            f"{stats.expected_outputs:,}>"
        )

    def _repr_html_(self) -> str:
        """The explanation, for a notebook."""
        from tamis.explain.brief import page_part

        return page_part(self.explain())

    @property
    def groups(self) -> pa.Table:
        """A row for each group, in the order in which they are to be rewritten."""
        grouped, keys = self.grouped, [self.keys.keys[code] for code in self.grouped.keys.tolist()]
        columns = [
            pa.array(np.arange(len(grouped)), pa.int32()),
            pa.array([key.key.spec_id for key in keys], pa.int32()),
            self._partitions(),
            pa.array([key.bucket for key in keys], pa.int32()),
            _lists(grouped.starts, self._paths().take(pa.array(grouped.members))),
            pa.array(grouped.bytes),
            pa.array(grouped.rows),
            _lists(np.searchsorted(self.deletes.groups, np.arange(len(grouped) + 1)), self.deletes.paths),
            pa.array(expected_outputs(grouped.bytes, self.options), pa.int64()),
            pa.array(split_sizes(grouped.bytes, self.options)),
            pa.array([self.options.output_spec_id] * len(grouped), pa.int32()),
        ]
        return pa.Table.from_arrays(columns, schema=GROUPS_SCHEMA)

    @property
    def candidates(self) -> pa.Table:
        """A row for each file that was looked at: whether it is a candidate, its group, and why, or why not."""
        reasons = self._reasons()
        tables, start = [], 0
        for original, outcome in zip(self.scan.outcomes, self.outcomes, strict=True):
            end = start + int(outcome.kept.sum())
            tables.append(self._candidates(original, outcome, slice(start, end), reasons))
            start = end
        return pa.concat_tables(tables) if tables else CANDIDATES_SCHEMA.empty_table()

    def explain(self, form: Literal["text", "json"] = "text", *, timing: bool = False) -> str:
        """The groups, the totals and what is to be known, for people or for programs."""
        from tamis.explain.rewrite import render_rewrite

        return render_rewrite(self, form, timing=timing)

    def to_dict(self, *, candidates: bool = True) -> dict[str, Any]:
        """Plain lists, dicts, numbers and strings, ready for JSON; with candidates a dict for each file looked at."""
        found = {
            "options": self.options.to_dict(),
            "totals": self.stats.to_dict(),
            "filter_stats": asdict(self.stats.filter_stats),
            "groups": self.groups.to_pylist(),
        }
        return {**found, "candidates": self.candidates.to_pylist()} if candidates else found

    def _paths(self) -> pa.Array:
        paths = [outcome.batch.path.filter(pa.array(outcome.kept)) for outcome in self.outcomes]
        return pa.chunked_array(paths, pa.string()) if paths else pa.array([], pa.string())

    def _partitions(self) -> pa.Array:
        """The partition of each group, by its first file."""
        first = self.grouped.members[self.grouped.starts[:-1]]
        texts = np.full(len(first), None, object)
        start = 0
        for outcome in self.outcomes:
            rows = np.flatnonzero(outcome.kept)
            mine = np.flatnonzero((first >= start) & (first < start + len(rows)))
            if len(mine):
                texts[mine] = _partition(self.scan, outcome, rows[first[mine] - start]).to_pylist()
            start += len(rows)
        return pa.array(texts, pa.string())

    def _reasons(self) -> pa.Array:
        """Why each file considered is a candidate or not, and why it is in no group."""
        options = self.options
        few = (
            f"; left as it is: such files of its partition are fewer than min-input-files "
            f"({options.min_input_files}) and no more than target-file-size-bytes "
            f"({size_text(options.target_file_size_bytes)}) together"
        )
        later = f"; left to a later run: max-files-to-rewrite is {options.max_files_to_rewrite}"
        more = np.full(int(max(TOO_LITTLE, LATER)) + 1, "", object)
        more[TOO_LITTLE], more[LATER] = few, later
        suffix = pa.array(more, pa.string()).take(pa.array(self.grouped.fate))
        return pc.binary_join_element_wise(why(self.rules, options), suffix, "")

    def _candidates(self, original: Outcome, outcome: Outcome, part: slice, reasons: pa.Array) -> pa.Table:
        batch, count = outcome.batch, len(outcome.batch)
        rows = np.flatnonzero(outcome.kept)
        numbers = self.grouped.numbers[part]
        told = np.array(_verdicts(self.scan, original), object)
        told[rows] = reasons[part.start : part.stop].to_pylist()
        chosen = np.zeros(count, np.bool_)
        chosen[rows] = self.rules[part] > 0
        columns = [
            batch.path,
            batch.size,
            batch.rows,
            pa.array([batch.spec_id] * count, pa.int32()),
            _partition(self.scan, outcome, np.arange(count)),
            pa.nulls(count, pa.int32()) if batch.bucket is None else batch.bucket,
            _spread(self.considered.deletes, part, rows, count),
            _spread(self.considered.deleted, part, rows, count),
            pa.array(chosen),
            _spread(np.where(numbers < 0, -1, numbers), slice(0, len(rows)), rows, count),
            pa.array(told, pa.string()),
        ]
        cast = [column.cast(field.type) for column, field in zip(columns, CANDIDATES_SCHEMA, strict=True)]
        return pa.Table.from_arrays(cast, schema=CANDIDATES_SCHEMA)


@dataclass(frozen=True, slots=True, eq=False)
class RewriteDataFilesPlanningResult:
    """A plan, and what its partition filter had to include without a judgement."""

    plan: RewritePlan
    filter_stats: FilterStats

    def to_dict(self) -> dict[str, Any]:
        """As the plan's own."""
        return self.plan.to_dict()


def _spread(values: Int64s | None, part: slice, rows: Int64s, count: int) -> pa.Array:
    """The values of some of a batch's files; null for the others, and for negative ones."""
    spread = np.full(count, -1, np.int64)
    if values is not None:
        spread[rows] = values[part]
    return pa.array(spread, mask=spread < 0)


def _lists(starts: Int64s, values: pa.Array | pa.ChunkedArray) -> pa.Array:
    flat = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if isinstance(flat, pa.ChunkedArray):
        flat = pa.concat_arrays(flat.chunks)
    return pa.ListArray.from_arrays(pa.array(starts, pa.int32()), flat.cast(pa.string()))


def _partition(scan: ScanPlan, outcome: Outcome, rows: Int64s) -> pa.Array:
    spec = next((spec for spec in scan.sieve.specs if spec.spec_id == outcome.batch.spec_id), None)
    return partition_texts(outcome.batch, spec, rows)


def _verdicts(scan: ScanPlan, outcome: Outcome) -> list[str]:
    """Why the condition leaves files out."""
    told = scan.told(outcome)
    layer = pc.fill_null(told["layer"], "")
    return list(pc.binary_join_element_wise("pruned by ", layer, ": ", told["reason"], "").to_pylist())
