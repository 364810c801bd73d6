"""A plan file by file, as lines: the kept files, or every file with its reason. What is not known is a dash."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from tamis.explain.text import aligned, readable_bytes, readable_files
from tamis.sieve.plan import ScanPlan

__all__ = ["file_lines", "verdict_lines"]

NOTHING = "-"


def file_lines(files: pa.Table) -> list[str]:
    """A line for each kept file: its verdict, rows, size, deletes, spec, partition and path."""
    rows: list[Sequence[str]] = [("verdict", "rows", "size", "deletes", "spec", "partition", "path")]
    rows += [
        (
            one["verdict"],
            _number(one["rows"]),
            NOTHING if one["size"] is None else readable_bytes(one["size"]),
            _number(one["deletes"]),
            _number(one["spec_id"]),
            one["partition"] or NOTHING,
            one["path"],
        )
        for one in files.to_pylist()
    ]
    return aligned(rows, left=(0, 5, 6)) if len(rows) > 1 else ["no file is kept"]


def verdict_lines(plan: ScanPlan, verdicts: pa.Table) -> list[str]:
    """A line for each file considered, and how many more lie in manifests that were pruned unread."""
    rows: list[Sequence[str]] = [("verdict", "layer", "spec", "partition", "reason", "path")]
    rows += [
        (
            one["verdict"],
            one["layer"] or NOTHING,
            _number(one["spec_id"]),
            one["partition"] or NOTHING,
            one["reason"],
            one["path"],
        )
        for one in verdicts.to_pylist()
    ]
    lines = aligned(rows, left=(0, 1, 3, 4, 5)) if len(rows) > 1 else ["no file was looked at"]
    unread = plan.stats.files - verdicts.num_rows
    if unread:
        lines.append(f"and {readable_files(unread)} in manifests that were pruned unread")
    return lines


def _number(value: int | None) -> str:
    return NOTHING if value is None else f"{value:,}"
