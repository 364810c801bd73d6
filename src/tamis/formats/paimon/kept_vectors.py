"""How many deletion vectors apply to kept files. A snapshot's index manifest is read when that is first asked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tamis.formats.paimon.deletions import read_vectors
from tamis.formats.storage import Fetch
from tamis.sieve.outcome import Outcome

__all__ = ["KeptVectors"]


@dataclass(frozen=True, slots=True)
class KeptVectors:
    """The vectors of a snapshot."""

    path: str | None
    """Its index manifest; None if it has none, and so no vector."""
    fetch: Fetch

    def count(self, outcome: Outcome) -> pa.Array:
        """For each kept file of a batch 1 if it has a vector, else 0."""
        rows = np.flatnonzero(outcome.kept)
        if self.path is None or not len(rows):
            return pa.array(np.zeros(len(rows), np.int32))
        known = read_vectors(self.path, self.fetch(self.path))
        taken = pa.array(rows)
        paths = outcome.batch.path.take(taken).to_pylist()
        assert outcome.batch.bucket is not None  # noqa: S101 - for the type checker: every file has a bucket
        buckets = outcome.batch.bucket.take(taken).to_pylist()
        names = (path.rpartition("/")[2] for path in paths)
        return pa.array([int(key in known) for key in zip(buckets, names, strict=True)], pa.int32())
