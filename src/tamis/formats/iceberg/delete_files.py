"""Places of deleted rows to files, on executors: position delete files, and bitmaps for deletion vectors.

Law: a delete lies in the spec and partition of the data file that it is of. Rows of one data file come to one task,
so that a data file gets one vector. It imports only what every executor has: pyarrow, numpy and tamis itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tamis.formats.edit import POSITION_DELETES, Marked, NewFile
from tamis.formats.iceberg.data_files import FIELD_ID, ParquetOptions
from tamis.formats.iceberg.data_paths import Place
from tamis.formats.iceberg.single_values import encoded
from tamis.formats.roaring import bitmap
from tamis.formats.storage.local import is_local, local_file
from tamis.formats.storage.sinks import DataStore
from tamis.predicate.arrays import Int64s

__all__ = ["Bitmaps", "PositionFiles"]

FILE_PATH: Final = 2147483546
POSITION: Final = 2147483545
"""The field ids that Iceberg reserves for the columns of position delete files."""
_SCHEMA: Final = pa.schema(
    [
        pa.field("file_path", pa.string(), nullable=False, metadata={FIELD_ID: str(FILE_PATH)}),
        pa.field("pos", pa.int64(), nullable=False, metadata={FIELD_ID: str(POSITION)}),
    ]
)
_ROWS_AT_ONCE: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class PositionFiles:
    """Parquet files of (file_path, pos), in order: for each partition one from a task, or for each data file."""

    partitions: Mapping[str, tuple[int, tuple[object, ...]]]
    """Spec and partition values of each data file."""
    places: Mapping[int, Place]
    """Where files of each spec lie."""
    storage: DataStore
    options: ParquetOptions
    by_file: bool
    """Whether every data file gets a delete file of its own (`write.delete.granularity`)."""

    def __call__(self, batches: Iterable[pa.RecordBatch], name: str) -> Iterator[Marked]:
        """The delete files of one task; name is a part of their names."""
        groups: dict[tuple[object, ...], list[tuple[str, Int64s]]] = {}
        for path, places in _by_file(batches):
            spec_id, values = self.partitions[path]
            key = (spec_id, repr(values), path if self.by_file else None)
            groups.setdefault(key, []).append((path, places))
        written: list[str] = []
        try:
            for number, members in enumerate(groups.values(), start=1):
                spec_id, values = self.partitions[members[0][0]]
                path = self.places[spec_id].path(values, f"{name}-{number:05d}-deletes.parquet")
                written.append(path)
                yield self._written(path, spec_id, values, members)
        except BaseException:
            for path in written:
                self.storage.remove(path)
            raise

    def _written(
        self, path: str, spec_id: int, values: tuple[object, ...], members: list[tuple[str, Int64s]]
    ) -> Marked:
        members.sort(key=lambda member: member[0].encode())
        sink = self.storage.create(path)
        try:
            writer = pq.ParquetWriter(
                sink.stream,
                _SCHEMA,
                version="2.6",
                compression=self.options.codec,
                compression_level=self.options.level,
                store_schema=False,
            )
            for file, places in members:
                for start in range(0, len(places), _ROWS_AT_ONCE):
                    chunk = pa.array(places[start : start + _ROWS_AT_ONCE])
                    writer.write_batch(
                        pa.RecordBatch.from_arrays([_repeated(file, len(chunk)), chunk], schema=_SCHEMA)
                    )
            writer.close()
            size = sink.close()
        except BaseException:
            with suppress(Exception):
                writer.close()
            sink.abandon()
            raise
        rows = sum(len(places) for _, places in members)
        least = min(int(places[0]) for _, places in members)
        most = max(int(places[-1]) for _, places in members)
        made = NewFile(
            path,
            size,
            rows,
            spec_id,
            values,
            lower={FILE_PATH: members[0][0].encode(), POSITION: encoded(pa.int64(), least)},
            upper={FILE_PATH: members[-1][0].encode(), POSITION: encoded(pa.int64(), most)},
            content=POSITION_DELETES,
            referenced=members[0][0] if len(members) == 1 else None,
        )
        return Marked(tuple(file for file, _ in members), rows, made)

    def discard(self, token: str) -> None:
        """Remove the files that have the token in their names: on local disk, where they can be listed."""
        for folder in {place.folder for place in self.places.values() if is_local(place.folder)}:
            for path in Path(local_file(folder)).rglob(f"*-{token}-*.parquet"):
                self.storage.remove(str(path))


@dataclass(frozen=True, slots=True)
class Bitmaps:
    """A bitmap for each data file, to be merged with what it had: they are small, and go back to the driver."""

    def __call__(self, batches: Iterable[pa.RecordBatch], name: str) -> Iterator[Marked]:  # noqa: ARG002 - no file
        """The bitmaps of one task."""
        for path, places in _by_file(batches):
            yield Marked((path,), len(places), bitmap=bitmap(places))

    def discard(self, token: str) -> None:
        """Nothing was written."""


def _repeated(text: str, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(text, pa.string()), count)


def _by_file(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, Int64s]]:
    """Each data file with its places, ascending and each once. Batches are (path, place), rows of a file together."""
    current: str | None = None
    parts: list[Int64s] = []
    for batch in batches:
        if not batch.num_rows:
            continue
        encoded_paths = batch.column(0).cast(pa.string()).dictionary_encode()
        codes = np.asarray(encoded_paths.indices.to_numpy(zero_copy_only=False), np.int64)
        places = np.asarray(batch.column(1).to_numpy(zero_copy_only=False), np.int64)
        starts = np.flatnonzero(np.diff(codes, prepend=-1))
        for start, stop in zip(starts, [*starts[1:], len(codes)], strict=True):
            path = str(encoded_paths.dictionary[int(codes[start])].as_py())
            if path != current:
                if current is not None:
                    yield current, np.unique(np.concatenate(parts))
                current, parts = path, []
            parts.append(places[start:stop])
    if current is not None:
        yield current, np.unique(np.concatenate(parts))
