"""Files that one listing of a table has read, for the next listing of the same job.

A join lists a table for several sets of keys. Each set may prune other manifests unread, so that units differ from
listing to listing; what they are made of, the files of each manifest, does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from threading import Lock

import numpy as np
import pyarrow as pa
from numpy import typing as npt

from tamis.sieve.files import FileBatch, rows_of

__all__ = ["HeldFiles", "ReadFiles"]


@dataclass(slots=True)
class ReadFiles:
    """The batches that were read with the statistics of some columns, and the manifests that they are of.

    Manifests go by their numbers among all of the table; in `extra` of these batches, too.
    """

    batches: list[FileBatch] = field(default_factory=list)
    manifests: set[int] = field(default_factory=set)
    lock: Lock = field(default_factory=Lock)


@dataclass(frozen=True, slots=True)
class HeldFiles:
    """What has been read, as one listing sees it, whose manifests have indices of their own."""

    read: ReadFiles
    numbers: npt.NDArray[np.int32]
    """The number of the manifest of each index. Ascending, as manifests keep their order."""

    def find(self, indices: Sequence[int]) -> list[FileBatch] | None:
        """The files of the manifests of these indices; None unless all of them have been read."""
        wanted = self.numbers[list(indices)]
        with self.read.lock:
            if not self.read.manifests.issuperset(wanted.tolist()):
                return None
            batches = list(self.read.batches)
        files = []
        for batch in batches:
            numbers = batch.extra["manifest"].to_numpy()
            rows = np.flatnonzero(np.isin(numbers, wanted))
            if len(rows):
                chosen = batch if len(rows) == len(batch) else rows_of(batch, rows)
                files.append(_numbered(chosen, np.searchsorted(self.numbers, numbers[rows])))
        return sorted(files, key=_first)

    def add(self, indices: Sequence[int], batches: Sequence[FileBatch]) -> None:
        """Hold the files of the manifests of these indices."""
        with self.read.lock:
            held = np.array(sorted(self.read.manifests), np.int32)
            for batch in batches:
                numbers = self.numbers[batch.extra["manifest"].to_numpy()]
                # A unit may have manifests that are held beside others that are not: no file is held twice.
                rows = np.flatnonzero(~np.isin(numbers, held))
                if len(rows):
                    new = batch if len(rows) == len(batch) else rows_of(batch, rows)
                    self.read.batches.append(_numbered(new, numbers[rows]))
            self.read.manifests.update(self.numbers[list(indices)].tolist())


def _numbered(batch: FileBatch, manifests: npt.NDArray[np.integer]) -> FileBatch:
    return replace(batch, extra={**batch.extra, "manifest": pa.array(manifests.astype(np.int32), pa.int32())})


def _first(batch: FileBatch) -> tuple[int, int]:
    """Batches of neighbours, of which some share manifests, in the order of their first file."""
    return batch.extra["manifest"][0].as_py(), batch.extra["entry"][0].as_py()
