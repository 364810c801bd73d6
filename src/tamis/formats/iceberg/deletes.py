"""Which delete files and deletion vectors apply to which data files.

By Iceberg's rules of scope: a position delete or vector applies to data of its own spec and partition that is not
newer than it; an equality delete to strictly older data of its spec and partition, or, under an unpartitioned spec,
to all older data. A file with a deletion vector has no other position deletes. Law: whatever applies is found; a
delete file may be listed that in the end removes no row.

Nothing is done for each pair of a file and a delete: partitions, paths and sequence numbers become numbers, and
deletes are sorted by them, so that those of a file are a run that two searches find. Runs are counted. Position
deletes alone are listed file by file, for a reader; equality deletes reach whole scopes, and stay that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy import typing as npt

from tamis.errors import UnreadableMetadataError
from tamis.formats.errors import shown, unreadable
from tamis.formats.iceberg.delete_runs import Line, Pairs, Run
from tamis.formats.iceberg.manifests import DeleteBatch
from tamis.formats.iceberg.metadata import TableMetadata
from tamis.predicate.arrays import Int64s, Mask
from tamis.predicate.keys import INT64_MAX
from tamis.sieve.files import FileBatch
from tamis.sieve.partitions import PartitionKey, Undecoded, distinct

__all__ = ["EQUALITY", "EVERYWHERE", "DeleteIndex", "Scoped"]

POSITION: Final = 1
EQUALITY: Final = 2
GLOBAL: Final = PartitionKey(-1)
"""Where equality deletes of unpartitioned specs stand: they reach every file."""
EVERYWHERE: Final = 0
"""The number of that scope. No data file is in it."""
MOST_PAIRS: Final = 1 << 22
"""Most pairs of a file and a delete to look at together: some hundred megabytes. One file's own are never split."""
_FOREVER: Final = INT64_MAX


@dataclass(frozen=True, slots=True)
class _Ranges:
    """Position deletes that name the least and the greatest path of the data files that they concern."""

    deletes: Int64s
    groups: Int64s
    reach: Int64s
    cuts: npt.NDArray[np.object_]
    """All bounds, each once, in order. Cut i is mark 2i + 1; what lies between it and the one before is mark 2i."""
    low: Int64s
    high: Int64s
    """The marks of each delete's bounds; the first and the last if it has none."""

    @classmethod
    def of(
        cls, deletes: Int64s, groups: Int64s, reach: Int64s, low: list[bytes | None], high: list[bytes | None]
    ) -> _Ranges:
        cuts = sorted({bound for bound in (*low, *high) if bound is not None})
        marks = {cut: 2 * number + 1 for number, cut in enumerate(cuts)}
        lows = [0 if bound is None else marks[bound] for bound in low]
        highs = [2 * len(cuts) if bound is None else marks[bound] for bound in high]
        return cls(deletes, groups, reach, _objects(cuts), np.array(lows, np.int64), np.array(highs, np.int64))

    def find(self, files: _Files, but_not: Mask) -> Iterator[Pairs]:
        """Files, each with the deletes of its partition that reach it and have its path in between, in chunks."""
        if not len(self.deletes):
            return
        width = 2 * len(self.cuts) + 1
        paths = _objects(files.paths.to_pylist())
        marks = np.searchsorted(self.cuts, paths) + np.searchsorted(self.cuts, paths, "right")
        marks = np.where((files.partitions < 0) | but_not, -1, files.partitions * width + marks)
        order = np.argsort(marks, kind="stable")
        marks = marks[order]
        run = Run(
            np.searchsorted(marks, self.groups * width + self.low),
            np.searchsorted(marks, self.groups * width + self.high, "right"),
            order,
        )
        for chunk in _chunks(run.counts):
            ranges, rows = run.pairs(chunk)
            reached = self.reach[ranges] >= files.sequences[rows]
            yield rows[reached], self.deletes[ranges[reached]]


@dataclass(frozen=True, slots=True)
class _Files:
    """Data files, as the index looks at them."""

    keys: list[PartitionKey]
    codes: Int64s
    """Which of the keys each file has."""
    partitions: Int64s
    """The index's number of each file's partition; -1 if no delete lies in it."""
    sequences: Int64s
    paths: pa.Array
    """As bytes."""


@dataclass(frozen=True, slots=True)
class Scoped:
    """Files, or equality deletes: the number of the scope that each is in, and its sequence number.

    A delete reaches the data of its scope, and of EVERYWHERE all data, that has a lesser sequence number.
    """

    scopes: Int64s
    sequences: Int64s


class DeleteIndex:
    """All live delete files of a snapshot, found by the data files that they may concern."""

    def __init__(self, metadata: TableMetadata, batches: Iterable[DeleteBatch]) -> None:
        self._metadata = metadata
        listed = list(batches)
        # A bound that is no UTF-8 makes its column one of bytes, and then it is that in all batches.
        tables = [batch.files for batch in listed]
        self.files = pa.concat_tables(tables, promote_options="permissive") if listed else None
        """A row for each delete file, as DeleteBatch has them; None if there are none."""
        self._numbers: dict[PartitionKey, int] = {GLOBAL: EVERYWHERE}
        self._partitions: Int64s = np.concatenate([np.empty(0, np.int64), *map(self._number, listed)])
        self._paths: dict[bytes, int] = {}
        self.equality = Scoped(np.empty(0, np.int64), np.empty(0, np.int64))
        """The scope and the sequence number of each equality delete, by its row in `files`; scope -1 for others."""
        if self.files is not None:
            self._sort(self.files)

    def __len__(self) -> int:
        return 0 if self.files is None else int(self.files.num_rows)

    def count(self, batch: FileBatch, rows: Int64s) -> Int64s:
        """How many deletes apply to each of these files of a batch; none of them is listed."""
        return self.weigh(batch, rows)[0]

    def weigh(self, batch: FileBatch, rows: Int64s) -> tuple[Int64s, Int64s]:
        """How many deletes apply to each of these files, and how many rows those list that concern it alone.

        Deletes that concern several files, or hold keys, do not say how many rows of one they remove.
        """
        if self.files is None or batch.spec_id is None:
            return np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
        files = self._located(batch, batch.spec_id, rows)
        runs, has_vector = self._position_runs(files)
        vectors, named, *_ = runs
        listed = self.files["rows"].fill_null(0).to_numpy()
        removed = vectors.sums(listed) + named.sums(listed)
        everywhere = np.full(len(rows), EVERYWHERE)
        runs += [self._equality.find(scopes, files.sequences) for scopes in (files.partitions, everywhere)]
        counts = sum((run.counts for run in runs), np.zeros(len(rows), np.int64))
        for numbers, _ in self._ranges.find(files, has_vector):
            counts += np.bincount(numbers, minlength=len(rows))
        return counts, removed

    def positions(self, batch: FileBatch, rows: Int64s) -> pa.ListArray:
        """For each of these files of a batch, the rows in `files` of its position deletes or vector, in order."""
        if self.files is None or batch.spec_id is None:
            return pa.array([[]] * len(rows), pa.list_(pa.int32()))
        self._check_readable(batch, rows)
        files = self._located(batch, batch.spec_id, rows)
        runs, has_vector = self._position_runs(files)
        pairs = [(np.empty(0, np.int64), np.empty(0, np.int64)), *self._ranges.find(files, has_vector)]
        numbers, deletes = (np.concatenate(side) for side in zip(*pairs, strict=True))
        order = np.argsort(numbers, kind="stable")
        return _listed(runs, (numbers[order], deletes[order]), len(self))

    def reached(self, batch: FileBatch, rows: Int64s) -> Scoped:
        """The scope and the sequence number of each of these files, as equality deletes reach them."""
        if self.files is None or batch.spec_id is None:
            return Scoped(np.full(len(rows), -1, np.int64), np.zeros(len(rows), np.int64))
        self._check_readable(batch, rows)
        files = self._located(batch, batch.spec_id, rows)
        return Scoped(files.partitions, files.sequences)

    def _position_runs(self, files: _Files) -> tuple[list[Run], Mask]:
        """What applies by position, but for deletes that name a range of paths; and which files have a vector."""
        found = pc.index_in(files.paths, value_set=self._named_paths)
        named = found.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        vectors = np.where(named < 0, -1, self._vectors[named])
        has_vector = vectors >= 0
        self._check_vectors(files, vectors, has_vector)
        runs = [
            Run(vectors, np.where(has_vector, vectors + 1, vectors)),
            self._named.find(self._pair(named, files.partitions), files.sequences).but_not(has_vector),
            self._positions.find(files.partitions, files.sequences).but_not(has_vector),
        ]
        return runs, has_vector

    def _check_readable(self, batch: FileBatch, rows: Int64s) -> None:
        """An error for a file whose partition cannot be read, where deletes of its spec are those of partitions."""
        if any(key.spec_id == batch.spec_id for key in self._numbers):
            _check_read(batch.undecoded, rows, batch.path)

    def _number(self, batch: DeleteBatch) -> Int64s:
        """The number of each delete's partition; equal keys have one number."""
        _check_read(batch.undecoded, np.arange(len(batch)), batch.files["path"])
        keys, codes = _keys_of(self._metadata, batch.spec_id, batch.partition, len(batch))
        numbers = [self._numbers.setdefault(key, len(self._numbers)) for key in keys]
        return np.array(numbers, np.int64)[codes]

    def _sort(self, files: pa.Table) -> None:
        """Put each delete where it will be looked for: each is found in one way only."""
        content = files["content"].fill_null(0).to_numpy()
        sequence = files["sequence_number"].fill_null(_FOREVER).to_numpy()
        referenced, low, high = (
            files[name].cast(pa.binary()) for name in ("referenced_data_file", "path_lower", "path_upper")
        )
        only_path = pc.if_else(pc.fill_null(pc.equal(low, high), fill_value=False), low, pa.scalar(None, pa.binary()))
        path = pc.coalesce(referenced, only_path)
        position, equality = content == POSITION, content == EQUALITY
        is_vector = position & _mask(files["content_offset"].is_valid()) & _mask(referenced.is_valid())
        stray = np.flatnonzero(position & _mask(files["content_offset"].is_valid()) & ~_mask(referenced.is_valid()))
        if len(stray):
            where = files["path"][int(stray[0])].as_py().encode()
            raise _corrupt(where, "names no data file", "a deletion vector without its file")
        is_named = position & _mask(path.is_valid())
        # Bounds the wrong way round say nothing: the delete may concern every file of its partition.
        inverted = _mask(pc.fill_null(pc.greater(low, high), fill_value=False))
        is_ranged = position & ~is_named & ~inverted & (_mask(low.is_valid()) | _mask(high.is_valid()))

        names = path.filter(pa.array(is_named)).to_pylist()
        named = np.full(len(content), -1, np.int64)
        named[is_named] = [self._paths.setdefault(name, len(self._paths)) for name in names]
        self._named_paths = pa.array(list(self._paths), pa.binary())
        self._vectors = np.full(len(self._paths) + 1, -1, np.int64)
        """The row of the vector of each path that a delete names; -1 for those without one, and for no path."""
        self._vectors[named[is_vector]] = np.flatnonzero(is_vector)
        self._sequences = sequence
        twice = np.flatnonzero(is_vector & (self._vectors[named] != np.arange(len(content))))
        if len(twice):
            raise _corrupt(path[int(twice[0])].as_py(), "is not the only one", "several deletion vectors for a file")

        rows = np.flatnonzero(is_named & ~is_vector)
        both = named[rows] * len(self._numbers) + self._partitions[rows]
        self._pairs, groups = np.unique(both, return_inverse=True)
        self._named = Line.of(rows, groups, sequence[rows])
        rows = np.flatnonzero(position & ~is_named & ~is_ranged)
        self._positions = Line.of(rows, self._partitions[rows], sequence[rows])
        rows = np.flatnonzero(is_ranged)
        bounds = [side.take(pa.array(rows)).to_pylist() for side in (low, high)]
        self._ranges = _Ranges.of(rows, self._partitions[rows], sequence[rows], *bounds)
        rows = np.flatnonzero(equality)
        scopes = self._scopes()[self._partitions]
        self._equality = Line.of(rows, scopes[rows], sequence[rows] - 1)
        self.equality = Scoped(np.where(equality, scopes, -1), sequence)

    def _scopes(self) -> Int64s:
        """Of each partition the number of that in which its equality deletes apply: its own, or everywhere."""
        everywhere = {
            spec_id: spec_id == GLOBAL.spec_id or self._metadata.layout(spec_id).spec.is_unpartitioned
            for spec_id in {key.spec_id for key in self._numbers}
        }
        return np.array(
            [EVERYWHERE if everywhere[key.spec_id] else number for key, number in self._numbers.items()], np.int64
        )

    def _located(self, batch: FileBatch, spec_id: int, rows: Int64s) -> _Files:
        partition, sequence, path = batch.partition, batch.extra["sequence_number"], batch.path
        if len(rows) < len(batch) or (rows != np.arange(len(batch))).any():  # to copy all is a tenth of a search
            taken = pa.array(rows, pa.int64())
            partition = None if partition is None else partition.take(taken)
            sequence, path = sequence.take(taken), path.take(taken)
        keys, codes = _keys_of(self._metadata, spec_id, partition, len(rows))
        numbers = np.array([self._numbers.get(key, -1) for key in keys], np.int64)
        sequences = sequence.fill_null(0).to_numpy(zero_copy_only=False)
        return _Files(keys, codes, numbers[codes], sequences, path.cast(pa.binary()))

    def _pair(self, named: Int64s, partitions: Int64s) -> Int64s:
        """The number of a path in a partition; -1 if no delete names it there."""
        if not len(self._pairs):
            return np.full(len(named), -1, np.int64)
        both = named * len(self._numbers) + partitions
        at = np.minimum(np.searchsorted(self._pairs, both), len(self._pairs) - 1)
        return np.where((self._pairs[at] == both) & (named >= 0) & (partitions >= 0), at, -1)

    def _check_vectors(self, files: _Files, vectors: Int64s, has_vector: Mask) -> None:
        """A vector lies in the partition of its file, and is not older than it."""
        having = np.flatnonzero(has_vector)
        elsewhere = having[self._partitions[vectors[having]] != files.partitions[having]]
        if len(elsewhere):
            row = int(elsewhere[0])
            key = list(self._numbers)[self._partitions[vectors[row]]]
            own = files.keys[files.codes[row]]
            why = f"lies in another partition ({key}) than the file ({own})"
            raise _corrupt(files.paths[row].as_py(), why, "deletes and data differ in partition")
        older = having[self._sequences[vectors[having]] < files.sequences[having]]
        if len(older):
            row = int(older[0])
            number, own = self._sequences[vectors[row]], files.sequences[row]
            why = f"has sequence number {number}, less than the file's {own}"
            raise _corrupt(files.paths[row].as_py(), why, "a deletion vector is older than its data")


def _check_read(undecoded: Iterable[Undecoded], rows: Int64s, paths: pa.Array) -> None:
    """An error for one of these files if its partition is not known: it tells which deletes reach which data."""
    for fault in undecoded:
        unread = rows[fault.rows[rows]]
        if len(unread):
            reason = (
                f"nobody can tell which deletes reach which files: a partition value cannot be read ({fault.text})"
            )
            raise unreadable(paths[int(unread[0])].as_py(), reason)


def _corrupt(path: bytes, why: str, reason: str) -> UnreadableMetadataError:
    name = shown(path.decode(errors="replace"))
    return UnreadableMetadataError(
        f"a deletion vector of {name} {why}. The metadata is corrupt: restore an older snapshot.",
        path=name,
        offset=None,
        place=None,
        reason=reason,
    )


def _listed(runs: list[Run], more: Pairs, deletes: int) -> pa.ListArray:
    """The members of each file, from runs and from pairs that are in the order of files."""
    count = len(runs[0].begin)
    begins = np.searchsorted(more[0], np.arange(count + 1))
    every = [*runs, Run(begins[:-1], begins[1:], more[1])]
    counts = sum((run.counts for run in every), np.zeros(count, np.int64))
    lists = []
    for chunk in _chunks(counts):
        files, members = (np.concatenate(side) for side in zip(*(run.pairs(chunk) for run in every), strict=True))
        # One number for both is sorted several times as fast as two.
        lists.append((np.sort(files * deletes + members) % deletes).astype(np.int32))
    ends = np.cumsum(counts, dtype=np.int64)
    offsets = pa.array(np.concatenate([[0], ends]), pa.int32())
    return pa.ListArray.from_arrays(offsets, pa.array(np.concatenate(lists), pa.int32()))


def _chunks(counts: Int64s) -> Iterator[slice]:
    """Slices, at least one, that together are all; each counts no more than MOST_PAIRS, or has one entry."""
    ends = np.cumsum(counts)
    begin = 0
    while True:
        so_far = 0 if begin == 0 else int(ends[begin - 1])
        end = max(int(np.searchsorted(ends, so_far + MOST_PAIRS, "right")), begin + 1)
        yield slice(begin, min(end, len(counts)))
        begin = end
        if begin >= len(counts):
            return


def _keys_of(
    metadata: TableMetadata, spec_id: int, partition: pa.StructArray | None, count: int
) -> tuple[list[PartitionKey], Int64s]:
    """The partition keys of files, and which of them each file has."""
    spec = metadata.layout(spec_id).spec
    if partition is None or spec.is_unpartitioned:
        return [PartitionKey(spec_id)], np.zeros(count, np.int64)
    values = [child.storage if isinstance(child, pa.ExtensionArray) else child for child in partition.flatten()]
    codes, first = distinct(values, count)
    return PartitionKey.of_columns(spec, [child.take(pa.array(first)) for child in values]), codes


def _mask(array: pa.ChunkedArray) -> Mask:
    return np.asarray(array.to_numpy(), np.bool_)


def _objects(values: list[bytes]) -> npt.NDArray[np.object_]:
    array = np.empty(len(values), np.object_)
    array[:] = values
    return array
