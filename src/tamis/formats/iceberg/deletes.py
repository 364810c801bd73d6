"""Which delete files and deletion vectors apply to which data files.

By Iceberg's rules of scope: a position delete or vector applies to data of its own spec and partition that is not
newer than it; an equality delete to strictly older data of its spec and partition, or, under an unpartitioned spec,
to all older data. A file with a deletion vector has no other position deletes. Law: whatever applies is found; a
delete file may be listed that in the end removes no row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy import typing as npt

from tamis.formats.errors import UnreadableMetadataError, shown
from tamis.formats.iceberg.manifests import DeleteBatch
from tamis.formats.iceberg.metadata import TableMetadata
from tamis.sieve.files import FileBatch
from tamis.sieve.partitions import PartitionKey, distinct, plain_values

__all__ = ["DeleteIndex"]

POSITION: Final = 1
EQUALITY: Final = 2
Numbers = npt.NDArray[np.int64]
GLOBAL: Final = PartitionKey(-1)
"""Where equality deletes of unpartitioned specs stand: they reach every file."""


@dataclass(frozen=True, slots=True)
class _Group:
    """Deletes of one partition: their places in the index, and the sequence numbers up to which they reach."""

    places: Numbers
    reach: Numbers
    """The greatest sequence number of data that each applies to."""
    low: list[str | None]
    high: list[str | None]

    def of(self, sequence: int, path: str) -> list[int]:
        """The places of those that apply to a data file."""
        return [
            place
            for place, low, high in zip(
                self.places[self.reach >= sequence].tolist(),
                np.array(self.low, object)[self.reach >= sequence],
                np.array(self.high, object)[self.reach >= sequence],
                strict=True,
            )
            if (low is None or low <= path) and (high is None or path <= high)
        ]


class DeleteIndex:
    """All live delete files of a snapshot, found by the data files that they may concern."""

    def __init__(self, metadata: TableMetadata, batches: Iterable[DeleteBatch]) -> None:
        self._metadata = metadata
        found = list(batches)
        self.files = pa.concat_tables([batch.files for batch in found]) if found else None
        """A row for each delete file, as DeleteBatch has them; None if there are none."""
        self._vectors: dict[str, int] = {}
        self._keys: list[PartitionKey] = []
        for batch in found:
            self._keys += _keys_of(metadata, batch.spec_id, batch.partition, len(batch))
        self._groups = self._grouped()

    def __len__(self) -> int:
        return 0 if self.files is None else int(self.files.num_rows)

    def assign(self, batch: FileBatch, rows: Numbers) -> pa.ListArray:
        """For each of these files of a batch, the places of its deletes in `files`."""
        if self.files is None or batch.spec_id is None:
            return pa.array([[]] * len(rows), pa.list_(pa.int32()))
        taken = pa.array(rows)
        partition = None if batch.partition is None else batch.partition.take(taken)
        keys = _keys_of(self._metadata, batch.spec_id, partition, len(rows))
        sequences = batch.extra["sequence_number"].take(taken).to_pylist()
        paths = batch.path.take(taken).to_pylist()
        places = [
            self._of(key, sequence or 0, path) for key, sequence, path in zip(keys, sequences, paths, strict=True)
        ]
        return pa.array(places, pa.list_(pa.int32()))

    def _of(self, key: PartitionKey, sequence: int, path: str) -> list[int]:
        found: list[int] = []
        vector = self._vectors.get(path)
        if vector is not None:
            self._check_scope(vector, key, path)
            found.append(vector)
        for scope, kind in ((key, POSITION), (key, EQUALITY), (GLOBAL, EQUALITY)):
            group = self._groups.get((scope, kind))
            if group is not None and not (kind == POSITION and vector is not None):
                found += group.of(sequence, path)
        return sorted(set(found))

    def _check_scope(self, place: int, key: PartitionKey, path: str) -> None:
        if self._keys[place] != key:
            raise UnreadableMetadataError(
                f"the deletes of {shown(path)} lie in another partition ({self._keys[place]}) than the file ({key}). "
                "The metadata is corrupt: restore an older snapshot.",
                path=shown(path),
                offset=None,
                reason="deletes and data differ in partition",
            )

    def _grouped(self) -> dict[tuple[PartitionKey, int], _Group]:
        if self.files is None:
            return {}
        members: dict[tuple[PartitionKey, int], list[int]] = {}
        content = self.files["content"].to_pylist()
        referenced = self.files["referenced_data_file"].to_pylist()
        vectors = self.files["content_offset"].to_pylist()
        for place, (key, kind) in enumerate(zip(self._keys, content, strict=True)):
            if kind == POSITION and vectors[place] is not None and referenced[place] is not None:
                self._vectors[referenced[place]] = place
                continue
            reaches_all = kind == EQUALITY and self._metadata.layout(key.spec_id).spec.is_unpartitioned
            members.setdefault((GLOBAL if reaches_all else key, kind), []).append(place)
        return {scope: self._group(places, scope[1], referenced) for scope, places in members.items()}

    def _group(self, places: Sequence[int], kind: int, referenced: Sequence[str | None]) -> _Group:
        assert self.files is not None  # noqa: S101 - for the type checker: _grouped has looked
        chosen = self.files.take(pa.array(places))
        sequence = chosen["sequence_number"].fill_null(np.iinfo(np.int64).max).to_numpy()
        low, high = chosen["path_lower"].to_pylist(), chosen["path_upper"].to_pylist()
        for row, place in enumerate(places):
            if referenced[place] is not None:
                low[row] = high[row] = referenced[place]
        if kind == EQUALITY:
            low = high = [None] * len(places)
        return _Group(np.array(places), sequence - 1 if kind == EQUALITY else sequence, low, high)


def _keys_of(
    metadata: TableMetadata, spec_id: int, partition: pa.StructArray | None, count: int
) -> list[PartitionKey]:
    """The partition key of each file; equal ones are one object."""
    spec = metadata.layout(spec_id).spec
    if partition is None or spec.is_unpartitioned:
        return [PartitionKey(spec_id)] * count
    values = [child.storage if isinstance(child, pa.ExtensionArray) else child for child in partition.flatten()]
    codes, first = distinct(values, count)
    rows = zip(*(plain_values(child.take(pa.array(first))) for child in values), strict=True)
    keys = [PartitionKey.of(spec, row) for row in rows]
    return [keys[code] for code in codes.tolist()]
