"""The deletes of the files that a plan keeps, read when they are first asked for, and once.

Law: no delete that applies to a kept file is left out. Delete manifests are pruned by the plan's own sieve: a delete
file applies to data of its own partition, or of all, and a partition that cannot match has no kept file.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from threading import Lock
from typing import Final

import numpy as np
import pyarrow as pa

from tamis.formats.iceberg.delete_runs import Line
from tamis.formats.iceberg.deletes import EVERYWHERE, DeleteIndex
from tamis.formats.iceberg.manifest_list import Manifest
from tamis.formats.iceberg.manifests import THREADS, read_delete_files
from tamis.formats.iceberg.metadata import TableMetadata
from tamis.formats.iceberg.pruning import may_match
from tamis.formats.storage import Fetch
from tamis.formats.storage.ordered import in_order
from tamis.predicate.arrays import Int64s
from tamis.predicate.keys import INT64_MAX
from tamis.rewrite.deletes import DeleteWeights, ListedDeletes
from tamis.sieve.files import FileBatch, rows_of
from tamis.sieve.outcome import Outcome
from tamis.sieve.sieve import Sieve

__all__ = ["KeptDeletes"]

MERGED_FILES: Final = 1 << 18
"""Files to look up in one call: several calls go side by side, and one hashes all paths that deletes name."""


class KeptDeletes:
    """The deletes that may apply to files which a sieve keeps."""

    def __init__(self, metadata: TableMetadata, manifests: tuple[Manifest, ...], fetch: Fetch, sieve: Sieve) -> None:
        self._metadata = metadata
        self._manifests = manifests
        self._fetch = fetch
        self._sieve = sieve
        self._lock = Lock()
        self._index: DeleteIndex | None = None

    def __reduce__(self) -> tuple[object, ...]:
        """Without what was read: who unpickles it reads again."""
        return KeptDeletes, (self._metadata, self._manifests, self._fetch, self._sieve)

    @property
    def index(self) -> DeleteIndex:
        """The live deletes of manifests that may concern kept files."""
        with self._lock:
            if self._index is None:
                kept = may_match(self._sieve, self._metadata, self._manifests)
                chosen = [manifest for manifest, keep in zip(self._manifests, kept, strict=True) if keep]
                self._index = DeleteIndex(self._metadata, read_delete_files(self._metadata, chosen, self._fetch, {}))
            return self._index

    def count(self, outcome: Outcome) -> pa.Array:
        """How many apply to each kept file of a batch."""
        rows = np.flatnonzero(outcome.kept)
        if not self._manifests or not len(rows):
            return pa.array(np.zeros(len(rows), np.int32))
        return pa.array(self.index.count(outcome.batch, rows).astype(np.int32))

    def weigh(self, outcomes: Sequence[Outcome]) -> list[DeleteWeights]:
        """How many apply to each kept file, and how many of its rows they are known to remove."""
        counts = [int(outcome.kept.sum()) for outcome in outcomes]
        found = [DeleteWeights(np.zeros(count, np.int64), np.zeros(count, np.int64)) for count in counts]
        if not self._manifests or not any(counts):
            return found
        for numbers, files, removed in in_order(
            partial(self._weigh, self.index, outcomes), _alike(outcomes), THREADS
        ):
            ends = np.cumsum([counts[number] for number in numbers])[:-1]
            for number, *parts in zip(numbers, np.split(files, ends), np.split(removed, ends), strict=True):
                found[number] = DeleteWeights(*parts)
        return found

    @staticmethod
    def _weigh(
        index: DeleteIndex, outcomes: Sequence[Outcome], numbers: Sequence[int]
    ) -> tuple[Sequence[int], Int64s, Int64s]:
        """The weights of outcomes of one shape, one behind the other."""
        batch = _merged(outcomes, numbers)
        return numbers, *index.weigh(batch, np.arange(len(batch)))

    def listed(self, outcomes: Sequence[Outcome], groups: Sequence[Int64s]) -> ListedDeletes:
        """The delete files of each group of kept files, each once."""
        if not self._manifests or self.index.files is None:
            return ListedDeletes.none()
        count = len(self.index)
        merged = [
            (_merged(outcomes, numbers), np.concatenate([groups[number] for number in numbers]))
            for numbers in _alike(outcomes)
        ]
        pairs = np.unique(np.concatenate([self._by_position(merged), self._by_key(merged)]))
        return ListedDeletes.of(pairs // count, self.index.files["path"].take(pa.array(pairs % count)))

    def _by_position(self, merged: Sequence[tuple[FileBatch, Int64s]]) -> Int64s:
        """Groups and their position deletes or vectors, as one number each."""
        found = [np.zeros(0, np.int64)]
        for batch, groups in merged:
            lists = self.index.positions(batch, np.arange(len(batch)))
            counts = lists.value_lengths().to_numpy(zero_copy_only=False)
            deletes = lists.flatten().to_numpy(zero_copy_only=False).astype(np.int64)
            found.append(np.unique(np.repeat(groups, counts) * len(self.index) + deletes))
        return np.concatenate(found)

    def _by_key(self, merged: Sequence[tuple[FileBatch, Int64s]]) -> Int64s:
        """Groups and their equality deletes: a group is in one scope, and what reaches its oldest file reaches it."""
        equality = self.index.equality
        rows = np.flatnonzero(equality.scopes >= 0)
        if not len(rows):
            return np.zeros(0, np.int64)
        many = max(int(groups.max(initial=-1)) for _, groups in merged) + 1
        scopes, oldest = np.full(many, -1, np.int64), np.full(many, INT64_MAX, np.int64)
        for batch, groups in merged:
            reached = self.index.reached(batch, np.arange(len(batch)))
            scopes[groups] = reached.scopes
            np.minimum.at(oldest, groups, reached.sequences)
        line = Line.of(rows, equality.scopes[rows], equality.sequences[rows] - 1)
        found = [
            line.find(where, oldest).pairs(slice(0, many)) for where in (scopes, np.full(many, EVERYWHERE, np.int64))
        ]
        return np.concatenate([groups * len(self.index) + deletes for groups, deletes in found])


def _alike(outcomes: Sequence[Outcome]) -> list[list[int]]:
    """The numbers of outcomes that are of one shape, so many together that they have MERGED_FILES files.

    What is looked up is hashed once for each call, so that few large calls are several times as fast as many small.
    """
    shapes: dict[object, list[list[int]]] = {}
    sizes: dict[object, int] = {}
    for number, outcome in enumerate(outcomes):
        batch = outcome.batch
        shape = batch.spec_id, None if batch.partition is None else str(batch.partition.type)
        runs = shapes.setdefault(shape, [])
        if not runs or sizes[shape] >= MERGED_FILES:
            runs.append([])
            sizes[shape] = 0
        runs[-1].append(number)
        sizes[shape] += len(batch)
    return [run for runs in shapes.values() for run in runs]


def _merged(outcomes: Sequence[Outcome], numbers: Sequence[int]) -> FileBatch:
    """The kept files of these outcomes as one batch."""
    kept = [_kept(outcomes[number]) for number in numbers]
    return kept[0] if len(kept) == 1 else _one_behind_the_other(kept)


def _kept(outcome: Outcome) -> FileBatch:
    """The kept files, with what an index looks at; nothing is copied if all are kept."""
    batch = outcome.batch
    extra = {"sequence_number": batch.extra["sequence_number"]}
    looked_at = FileBatch(batch.path, batch.size, batch.rows, batch.spec_id, batch.partition, extra=extra)
    return looked_at if outcome.kept.all() else rows_of(looked_at, np.flatnonzero(outcome.kept))


def _one_behind_the_other(batches: Sequence[FileBatch]) -> FileBatch:
    path, size, rows = (
        pa.concat_arrays([getattr(one, name) for one in batches]) for name in ("path", "size", "rows")
    )
    partition = None if batches[0].partition is None else pa.concat_arrays([one.partition for one in batches])
    sequence = pa.concat_arrays([one.extra["sequence_number"] for one in batches])
    return FileBatch(path, size, rows, batches[0].spec_id, partition, extra={"sequence_number": sequence})
