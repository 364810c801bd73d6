"""The deletes of files that may be rewritten: how many apply to each, how many rows they remove, and which they are.

Law: a delete that applies is counted, wherever it is written. Rows are counted of deletes that concern one data file
alone, since only these say how many of its rows they remove.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from tamis.predicate.arrays import Int64s
from tamis.sieve.outcome import Outcome
from tamis.sieve.plan import ScanPlan

__all__ = ["BatchDeletes", "DeleteWeights", "FileDeletes", "ListedDeletes"]


@dataclass(frozen=True, slots=True, eq=False)
class DeleteWeights:
    """The deletes of some files: an entry for each file."""

    files: Int64s
    """Delete files or vectors that apply."""
    rows: Int64s
    """Rows that they remove, as far as the metadata tells: those of deletes that concern this file alone."""


@dataclass(frozen=True, slots=True, eq=False)
class ListedDeletes:
    """Which deletes apply to which groups: pairs, each once, in the order of groups."""

    groups: Int64s
    paths: pa.Array

    @classmethod
    def of(cls, groups: Int64s, paths: pa.Array | pa.ChunkedArray) -> ListedDeletes:
        """Pairs in the order of groups. A path that holds several deletes of a group is listed once."""
        if isinstance(paths, pa.ChunkedArray):
            paths = pa.concat_arrays(paths.chunks) if paths.num_chunks != 1 else paths.chunk(0)
        names = paths.dictionary_encode()
        numbers = names.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        _, first = np.unique(groups * max(len(names.dictionary), 1) + numbers, return_index=True)
        first.sort()
        return cls(groups[first], paths.take(pa.array(first)).cast(pa.string()))

    @classmethod
    def none(cls) -> ListedDeletes:
        """No deletes at all."""
        return cls(np.empty(0, np.int64), pa.array([], pa.string()))


class FileDeletes(Protocol):
    """The deletes of a plan's files. They may be read when they are first asked for."""

    def weigh(self, outcomes: Sequence[Outcome]) -> list[DeleteWeights]:
        """Of each batch, for each kept file, what applies to it."""

    def listed(self, outcomes: Sequence[Outcome], groups: Sequence[Int64s]) -> ListedDeletes:
        """The delete files, by path, of each group; groups has a number for each kept file of each outcome."""


class BatchDeletes:
    """What batches themselves say: how many deletes apply to a file. Which they are, and their rows, is not told."""

    def __init__(self, plan: ScanPlan) -> None:
        self._plan = plan

    def weigh(self, outcomes: Sequence[Outcome]) -> list[DeleteWeights]:
        """By the batches' own counts, or by the plan's; none where nobody says."""
        return [self._weigh(outcome) for outcome in outcomes]

    def _weigh(self, outcome: Outcome) -> DeleteWeights:
        kept = np.flatnonzero(outcome.kept)
        if outcome.batch.deletes is not None:
            counts = outcome.batch.deletes.take(pa.array(kept))
        elif self._plan.deletes is not None:
            counts = self._plan.deletes.count(outcome)
        else:
            counts = pa.array(np.zeros(len(kept), np.int64))
        known = counts.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        return DeleteWeights(known, np.zeros(len(kept), np.int64))

    def listed(self, outcomes: Sequence[Outcome], groups: Sequence[Int64s]) -> ListedDeletes:  # noqa: ARG002 - as asked
        """Nobody says which they are."""
        return ListedDeletes.none()
