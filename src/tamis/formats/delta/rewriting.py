"""What a Delta table says to the planner of rewrites: OPTIMIZE's words, and deletion vectors as deletes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from tamis.formats.delta.files import VECTOR_COLUMN
from tamis.formats.delta.inspection import target_file_size
from tamis.formats.delta.vectors import vector_location
from tamis.formats.errors import unreadable
from tamis.predicate.arrays import Int64s
from tamis.rewrite.deletes import DeleteWeights, ListedDeletes
from tamis.rewrite.terms import RewriteTerms
from tamis.sieve.outcome import Outcome

if TYPE_CHECKING:
    from tamis.formats.delta.table import DeltaTable

__all__ = ["rewrite_terms"]

_OPTIMIZE: Final = {
    "maxFileSize": "target-file-size-bytes",
    "minFileSize": "min-file-size-bytes",
    "maxDeletedRowsRatio": "delete-ratio-threshold",
    "maxThreads": "max-concurrent-file-group-rewrites",
}
"""Settings of OPTIMIZE. Its maxFileSize is what it aims at."""
WORDS: Final = {
    **_OPTIMIZE,
    **{f"optimize.{word}": name for word, name in _OPTIMIZE.items()},
    **{f"spark.databricks.delta.optimize.{word}": name for word, name in _OPTIMIZE.items()},
    "delta.targetFileSize": "target-file-size-bytes",
    "targetFileSize": "target-file-size-bytes",
    "target_size": "target-file-size-bytes",
    "max_concurrent_tasks": "max-concurrent-file-group-rewrites",
}
"""The words of OPTIMIZE's settings, of table properties and of the deltalake package."""
_NO_SPECS: Final = "a Delta table is partitioned in one way, which has no id"
_NO_FILES: Final = "a deletion vector goes with its file: none is left behind"
_NO_NUMBERS: Final = "Delta's files have no sequence numbers"
_NO_BATCHES: Final = "it has no equal here: use partial-progress.enabled and partial-progress.max-commits"
REFUSED: Final = {
    "output-spec-id": _NO_SPECS,
    "only-old-specs": _NO_SPECS,
    "remove-dangling-deletes": _NO_FILES,
    "use-starting-sequence-number": _NO_NUMBERS,
    "batchSize": _NO_BATCHES,
    "optimize.batchSize": _NO_BATCHES,
    "spark.databricks.delta.optimize.batchSize": _NO_BATCHES,
    "min_commit_interval": _NO_BATCHES,
    "repartition.enabled": "it has no equal here: how rows are moved is not a choice of the plan",
}


def rewrite_terms(table: DeltaTable) -> RewriteTerms:
    """OPTIMIZE's target and words; one partitioning without an id."""
    return RewriteTerms(
        "Delta",
        target_file_size(table.snapshot.metadata),
        words=WORDS,
        refused=REFUSED,
        deletes=lambda _: VectorDeletes(table.location),
    )


class VectorDeletes:
    """The deletion vectors of a table's files, as the log tells of them."""

    def __init__(self, root: str) -> None:
        self._root = root

    def weigh(self, outcomes: Sequence[Outcome]) -> list[DeleteWeights]:
        """One or none for each kept file, and the rows that it marks."""
        return [_weigh(outcome) for outcome in outcomes]

    def listed(self, outcomes: Sequence[Outcome], groups: Sequence[Int64s]) -> ListedDeletes:
        """The files that hold vectors of each group; a vector that stands in the log has none."""
        pairs: dict[tuple[int, str], None] = {}
        for outcome, numbers in zip(outcomes, groups, strict=True):
            vectors = outcome.batch.extra.get(VECTOR_COLUMN)
            if vectors is None:
                continue
            mine = vectors.take(pa.array(np.flatnonzero(outcome.kept)))
            for place in np.flatnonzero(mine.is_valid().to_numpy(zero_copy_only=False)).tolist():
                path = self._path(outcome, place, mine[place].as_py())
                if path is not None:
                    pairs[int(numbers[place]), path] = None
        ordered = sorted(pairs)
        return ListedDeletes(
            np.array([group for group, _ in ordered], np.int64), pa.array([path for _, path in ordered], pa.string())
        )

    def _path(self, outcome: Outcome, place: int, vector: Mapping[str, Any]) -> str | None:
        try:
            return vector_location(self._root, vector)
        except ValueError as error:
            path = outcome.batch.path[int(np.flatnonzero(outcome.kept)[place])].as_py()
            raise unreadable(path, str(error)) from error


def _weigh(outcome: Outcome) -> DeleteWeights:
    kept = pa.array(np.flatnonzero(outcome.kept))
    vectors = outcome.batch.extra.get(VECTOR_COLUMN)
    if vectors is None:
        return DeleteWeights(np.zeros(len(kept), np.int64), np.zeros(len(kept), np.int64))
    mine = vectors.take(kept)
    marked = pa.compute.struct_field(mine, "cardinality").cast(pa.int64()).fill_null(0)
    has = mine.is_valid().to_numpy(zero_copy_only=False)
    return DeleteWeights(has.astype(np.int64), np.where(has, marked.to_numpy(zero_copy_only=False), 0))
