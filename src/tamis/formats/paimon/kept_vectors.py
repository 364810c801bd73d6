"""How many deletion vectors apply to kept files. A snapshot's index manifest is read when that is first asked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tamis.formats.paimon.deletions import file_keys, read_vectors
from tamis.formats.paimon.files import PARTITION_ROW
from tamis.formats.paimon.schema import PaimonSchema
from tamis.formats.storage import Fetch
from tamis.sieve.outcome import Outcome

__all__ = ["KeptVectors"]


@dataclass(frozen=True, slots=True)
class KeptVectors:
    """The vectors of a snapshot."""

    path: str | None
    """Its index manifest; None if it has none, and so no vector."""
    fetch: Fetch
    schema: PaimonSchema

    def count(self, outcome: Outcome) -> pa.Array:
        """For each kept file of a batch 1 if it has a vector, else 0."""
        rows = np.flatnonzero(outcome.kept)
        if self.path is None or not len(rows):
            return pa.array(np.zeros(len(rows), np.int32))
        known = read_vectors(self.path, self.fetch(self.path), self.schema)
        taken = pa.array(rows)
        batch = outcome.batch
        assert batch.bucket is not None  # noqa: S101 - for the type checker: every file has a bucket
        partition, bucket = (column.take(taken) for column in (batch.extra[PARTITION_ROW], batch.bucket))
        keys = file_keys(partition, bucket, batch.path.take(taken).to_pylist(), self.schema)
        return pa.array([int(key in known) for key in keys], pa.int32())
