"""Why files are kept, summed up: the question when a query reads too much.

A file that is kept has one reason: every row matches, or the first part of the predicate that is not surely true of
it, together with what is known of that part's column.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.errors import UnevaluableError
from tamis.predicate.arrays import Mask
from tamis.predicate.bound import Bound, BoundPredicate, Leaf, Unclear
from tamis.sieve.files import FileBatch
from tamis.sieve.outcome import Outcome
from tamis.sieve.sieve import Sieve
from tamis.sieve.trial import NOBODY

__all__ = ["KeptBecause", "NotUsed", "added_kept", "check_all_used", "count_kept", "not_used"]

Why = Literal["fully match", "bounds", "partition", "no statistics", "not used", "may match", "join keys", "bucket"]
_ORDER: Final[tuple[Why, ...]] = (
    "fully match",
    "bounds",
    "partition",
    "no statistics",
    "not used",
    "may match",
    "join keys",
    "bucket",
)


@dataclass(frozen=True, slots=True)
class KeptBecause:
    """Kept files that have one reason."""

    why: Why
    part: str | None
    """The deciding part of the predicate; None if no single part decides."""
    column: str | None
    """The column that the part is about, if it is about one."""
    files: int
    bytes: int
    place: int = NOBODY
    """Of the part among the predicate's conjuncts."""

    @property
    def text(self) -> str:
        """The reason in words, after a number of files."""
        match self.why:
            case "fully match":
                return "every row matches"
            case "bounds":
                return f"{self.part} overlaps their bounds"
            case "partition":
                return f"{self.part} is not ruled out by their partition"
            case "no statistics":
                return f"no statistics for {self.column}: {self.part}"
            case "not used":
                return f"not used for pruning: {self.part}"
            case "join keys":
                return "they may hold a join key"
            case "bucket":
                return "another file of their bucket may match"
            case _:
                return f"{self.part} is not ruled out"


@dataclass(frozen=True, slots=True)
class NotUsed:
    """A part of the predicate that only Spark can evaluate."""

    part: str
    why: str

    @property
    def text(self) -> str:
        """The part and the reason, in a line."""
        return f"{self.part} ({self.why})"


def not_used(predicate: BoundPredicate) -> tuple[NotUsed, ...]:
    """The parts by which no file can be pruned, in their order."""
    return tuple(NotUsed(unclear.text, unclear.why) for unclear in predicate.unclear)


def check_all_used(predicate: BoundPredicate) -> None:
    """UnevaluableError if a part of the predicate cannot be used to prune."""
    for unused in not_used(predicate):
        reason = f"{unused.part} is not used for pruning ({unused.why})"
        raise UnevaluableError(
            f"cannot judge files by the whole condition: {reason}. Compare a column with a value instead, or plan "
            "without strict=True: Spark will evaluate that part on the rows.",
            reason=reason,
        )


def count_kept(sieve: Sieve, outcomes: Iterable[Outcome]) -> tuple[KeptBecause, ...]:
    """The reasons of all kept files, with the number of files and bytes of each."""
    return added_kept(_of_batch(sieve, outcome) for outcome in outcomes)


def added_kept(batches: Iterable[Sequence[KeptBecause]]) -> tuple[KeptBecause, ...]:
    """Reasons of several batches as one list: a reason once, its numbers added."""
    reasons: dict[tuple[int, int], KeptBecause] = {}
    for reason in (reason for batch in batches for reason in batch):
        rank = _rank(reason)
        sum_ = reasons.get(rank, replace(reason, files=0, bytes=0))
        reasons[rank] = replace(sum_, files=sum_.files + reason.files, bytes=sum_.bytes + reason.bytes)
    return tuple(reasons[rank] for rank in sorted(reasons))


def _rank(reason: KeptBecause) -> tuple[int, int]:
    """Files that fully match come first, then the predicate's parts in their order, then what no part decides."""
    why = _ORDER.index(reason.why)
    if reason.place != NOBODY:
        return reason.place, why
    return (-1 if reason.why == "fully match" else sys.maxsize), why


def _of_batch(sieve: Sieve, outcome: Outcome) -> list[KeptBecause]:
    sizes = pc.fill_null(outcome.batch.size, 0).to_numpy(zero_copy_only=False)
    reasons: list[KeptBecause] = []

    def count(mask: Mask, why: Why, place: int = NOBODY, part: str | None = None, column: str | None = None) -> None:
        files = int(mask.sum())
        if files:
            reasons.append(KeptBecause(why, part, column, files, int(sizes[mask].sum()), place))

    count(outcome.kept & outcome.certain, "fully match")
    undecided = outcome.kept & ~outcome.certain
    if outcome.together is not None:
        count(undecided & outcome.together, "bucket")
        undecided &= ~outcome.together
    conjuncts = sieve.predicate.conjuncts
    for position in np.unique(outcome.decider[undecided]).tolist():
        mask = undecided & (outcome.decider == position)
        if position == NOBODY or position >= len(conjuncts):
            count(mask, "join keys" if sieve.runtime_filters else "may match", part=sieve.predicate.root.text)
            continue
        conjunct = conjuncts[position]
        for why, chosen in _whys(conjunct, outcome, mask):
            count(chosen, why, position, conjunct.text, conjunct.column.name if isinstance(conjunct, Leaf) else None)
    return reasons


def _whys(conjunct: Bound, outcome: Outcome, mask: Mask) -> list[tuple[Why, Mask]]:
    """Which of the files that a conjunct leaves undecided have which reason."""
    if isinstance(conjunct, Unclear):
        return [("not used", mask)]
    if not isinstance(conjunct, Leaf):
        return [("may match", mask)]
    bounded = _has_bounds(outcome.batch, conjunct)
    return [
        ("no statistics", mask & outcome.unknown),
        ("bounds", mask & ~outcome.unknown & bounded),
        ("partition", mask & ~outcome.unknown & ~bounded),
    ]


def _has_bounds(batch: FileBatch, leaf: Leaf) -> Mask:
    stats = batch.stats.get(leaf.column.id)
    bounded = np.zeros(len(batch), np.bool_)
    for bound in () if stats is None else (stats.lower, stats.upper):
        if bound is not None:
            bounded |= _valid(bound)
    return bounded


def _valid(array: pa.Array) -> Mask:
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False))
