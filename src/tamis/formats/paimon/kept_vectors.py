"""The deletion vectors of kept files. A snapshot's index manifest is read when one is first asked for, and once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from threading import Lock

import numpy as np
import pyarrow as pa

from tamis.formats.paimon.deletions import Key, Placed, file_keys, index_file, read_vectors
from tamis.formats.paimon.files import EXTERNAL, PARTITION_ROW
from tamis.formats.paimon.schema import PaimonSchema
from tamis.formats.storage import Fetch
from tamis.predicate.arrays import Int64s
from tamis.rewrite.deletes import DeleteWeights, ListedDeletes
from tamis.sieve.outcome import Outcome

__all__ = ["KeptVectors"]


class KeptVectors:
    """The vectors of a snapshot."""

    def __init__(
        self, path: str | None, fetch: Fetch, schema: PaimonSchema, location: str, *, beside: bool = False
    ) -> None:
        """Path is the index manifest, if there is one; index files lie under the location, or beside data files."""
        self._path = path
        self._fetch = fetch
        self._schema = schema
        self._location = location
        self._beside = beside
        self._lock = Lock()
        self._known: Mapping[Key, Placed] | None = None

    def __reduce__(self) -> tuple[object, ...]:
        """Without what was read: who unpickles it reads again."""
        return partial(KeptVectors, beside=self._beside), (self._path, self._fetch, self._schema, self._location)

    def count(self, outcome: Outcome) -> pa.Array:
        """For each kept file of a batch 1 if it has a vector, else 0."""
        return pa.array([int(one is not None) for one in self._placed(outcome)], pa.int32())

    def weigh(self, outcomes: Sequence[Outcome]) -> list[DeleteWeights]:
        """One or none for each kept file, and the rows that it deletes; 0 if its writer did not count them."""
        found = [self._placed(outcome) for outcome in outcomes]
        return [
            DeleteWeights(
                np.array([one is not None for one in placed], np.int64),
                np.array([0 if one is None else one.rows or 0 for one in placed], np.int64),
            )
            for placed in found
        ]

    def listed(self, outcomes: Sequence[Outcome], groups: Sequence[Int64s]) -> ListedDeletes:
        """The index files that hold vectors of each group, each once."""
        pairs: set[tuple[int, str]] = set()
        for outcome, numbers in zip(outcomes, groups, strict=True):
            kept, placed = pa.array(outcome.kept), self._placed(outcome)
            paths, external = (
                column.filter(kept).to_pylist() for column in (outcome.batch.path, outcome.batch.extra[EXTERNAL])
            )
            pairs |= {
                (number, self._index_file(one, path if apart else f"{self._location}/{path}"))
                for number, path, apart, one in zip(numbers.tolist(), paths, external, placed, strict=True)
                if one is not None
            }
        ordered = sorted(pairs)
        return ListedDeletes(
            np.array([group for group, _ in ordered], np.int64), pa.array([path for _, path in ordered], pa.string())
        )

    def _index_file(self, placed: Placed, path: str) -> str:
        return index_file(placed, path, self._location, beside=self._beside)

    def _placed(self, outcome: Outcome) -> list[Placed | None]:
        """The vector of each kept file of a batch."""
        rows = np.flatnonzero(outcome.kept)
        known = self._vectors() if len(rows) else {}
        if not known:
            return [None] * len(rows)
        taken, batch = pa.array(rows), outcome.batch
        assert batch.bucket is not None  # noqa: S101 - for the type checker: every file has a bucket
        partition, bucket = (column.take(taken) for column in (batch.extra[PARTITION_ROW], batch.bucket))
        return list(map(known.get, file_keys(partition, bucket, batch.path.take(taken).to_pylist(), self._schema)))

    def _vectors(self) -> Mapping[Key, Placed]:
        with self._lock:
            if self._known is None:
                path = self._path
                self._known = {} if path is None else read_vectors(path, self._fetch(path), self._schema)
            return self._known
