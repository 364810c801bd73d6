"""What a rewrite would do, in numbers, and what is to be known about it: frozen values, ready for JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

from tamis.sieve.notes import MAX_NOTES
from tamis.sieve.partitions import FilterStats
from tamis.sieve.stats import PlanStats

__all__ = ["RewriteStats", "RewriteWarning", "warnings_of"]


@dataclass(frozen=True, slots=True)
class RewriteWarning:
    """One thing to know about a plan; each once, and no more than twenty of a kind."""

    code: str
    """What kind: unevaluable-spec, undecoded-value, statistics-ignored, not-used, fail-open, partition-unknown,
    oversized-file, or note."""
    text: str
    files: int | None = None
    """How many files it concerns, where that is known."""


@dataclass(frozen=True, slots=True)
class RewriteStats:
    """Totals before and after."""

    files: int
    """In the table."""
    bytes: int
    """Of those that were looked at: a manifest that was pruned unread does not tell the sizes of its files."""
    considered: int
    """Files that the condition leaves."""
    candidates: int
    """Of these, files that a rule chooses."""
    candidate_bytes: int
    groups: int
    rewritten_files: int
    """Candidates in groups."""
    rewritten_bytes: int
    rewritten_rows: int
    expected_outputs: int
    """Files that groups become."""
    expected_files: int
    """In the table afterwards."""
    delete_files: int | None
    """Delete files and vectors that apply to groups, each once; None if the format does not list them."""
    too_little: int
    """Candidates in groups that are not worth rewriting."""
    later: int
    """Candidates that max-files-to-rewrite leaves to a later run."""
    rules: dict[str, int]
    """Candidates by rule; a file may meet several."""
    filter_stats: FilterStats
    """What the partition filter included without a judgement; files are counted if they are candidates."""
    warnings: tuple[RewriteWarning, ...]
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, dicts, numbers and strings, ready for JSON."""
        return {**asdict(self), "warnings": [asdict(one) for one in self.warnings]}


_CODES: Final = {
    "cannot be evaluated, its files are kept": "unevaluable-spec",
    "partition value ignored": "undecoded-value",
    "statistics ignored": "statistics-ignored",
}


def warnings_of(
    stats: PlanStats, filter_stats: FilterStats, alone: int, oversized: int
) -> tuple[RewriteWarning, ...]:
    """What was included without proof and why, then what stands in the way of good groups."""
    return tuple(_warnings(stats, filter_stats, alone, oversized))


def _warnings(stats: PlanStats, filter_stats: FilterStats, alone: int, oversized: int) -> Iterator[RewriteWarning]:
    if filter_stats.fail_open_partitions:
        partitions = (
            f"{filter_stats.fail_open_partitions:,} partition{'s' * (filter_stats.fail_open_partitions != 1)}"
        )
        text = f"files of {partitions} are included because their partition could not be judged"
        yield RewriteWarning("fail-open", text, filter_stats.fail_open_files)
    for note in stats.notes:
        yield RewriteWarning(next((code for mark, code in _CODES.items() if mark in note), "note"), note)
    for part in stats.not_used[:MAX_NOTES]:
        yield RewriteWarning("not-used", f"no file is left out by {part.text}")
    if len(stats.not_used) > MAX_NOTES:
        yield RewriteWarning("not-used", f"nor by {len(stats.not_used) - MAX_NOTES:,} more conditions")
    if alone:
        text = "a partition value cannot be read: nobody knows which files belong together, so each stands alone"
        yield RewriteWarning("partition-unknown", text, alone)
    if oversized:
        yield RewriteWarning("oversized-file", "larger than max-file-group-size-bytes: a group of its own", oversized)
