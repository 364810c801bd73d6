"""A checkpoint's files as the cache keeps them: what they are on one shelf, each column's statistics on another.

A checkpoint's file is kept in chunks, one pack each. Law: what comes back is what was decoded from the same file. It
is the same if its place, its size and its time are, and, on this machine, its number; and the table that it is read
for has to have the same id, schema and partition columns. A chunk of whose statistics something could not be read is
not kept: it is told each time.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa

from tamis.errors import UnreadableMetadataError
from tamis.formats.delta.chunks import Chunk
from tamis.formats.delta.files import FileMaker
from tamis.formats.listing import Unit
from tamis.formats.storage import Storage
from tamis.formats.storage.cache import MetadataCache, code_stamp
from tamis.formats.storage.local import local_file, local_path
from tamis.formats.storage.packs import Shelf
from tamis.predicate.schema import ColumnId
from tamis.sieve.domain import ColumnStats
from tamis.sieve.files import FileBatch
from tamis.sieve.partitions import Undecoded

__all__ = ["Keeper", "file_stamp"]

_STATS: Final = ("lower", "upper", "null_count", "nan_count")
_EXTRA: Final = "extra."
_ABOUT: Final = b"about"


class Keeper:
    """A cache, as one plan over one table uses it. Threads share it."""

    def __init__(self, cache: MetadataCache, storage: Storage, table: str, maker: FileMaker) -> None:
        """For the table of that id. The schema, and the zone of partition values, are the maker's."""
        self._cache = cache
        self._storage = storage
        facts = repr((_stamp(), table, maker.schema, maker.zone))
        self._table = hashlib.blake2b(facts.encode("utf-8", "surrogatepass")).hexdigest()
        self._wanted = maker.ids
        self._shelves: dict[ColumnId | None, Shelf | None] = {}
        self._digests: dict[str, bytes | None] = {}

    def find(self, unit: Unit) -> list[Chunk] | None:
        """The unit's chunks with what is kept of the wanted columns; None unless what the files are is there."""
        digest = self._digest(unit)
        first = self._load(None, digest, 0)
        if first is None:
            return None
        chunks: list[Chunk] = []
        count = json.loads(first.schema.metadata[_ABOUT])["chunks"]
        for place in range(count):
            files = first if place == 0 else self._load(None, digest, place)
            if files is None:
                return None
            chunk = _chunk(files)
            for id_ in self._wanted:
                stats = self._load(id_, digest, place)
                if stats is not None and (stats.num_rows == len(chunk.files) or not stats.num_columns):
                    columns = dict(zip(stats.schema.names, stats.columns, strict=True))
                    chunk.columns[id_] = ColumnStats(**columns, value_count=chunk.rows)
            chunks.append(chunk)
        return chunks

    def save(self, unit: Unit, chunks: Sequence[Chunk]) -> None:
        """Keep what was decoded of all files of the unit."""
        digest = self._digest(unit)
        if digest is None or any(chunk.rows is None for chunk in chunks):
            return
        if not chunks:  # that there is nothing is to be known as well
            nothing = pa.schema([], {_ABOUT: json.dumps({"chunks": 0})})
            self._save(None, digest, 0, pa.RecordBatch.from_arrays([], schema=nothing))
        for place, chunk in enumerate(chunks):
            self._save(None, digest, place, _records(chunk, len(chunks)))
        for id_ in self._wanted:
            if all(id_ in chunk.columns for chunk in chunks):
                for place, chunk in enumerate(chunks):
                    self._save(id_, digest, place, _statistics(chunk.columns[id_]))

    def close(self) -> None:
        """Keep the cache within its size."""
        self._cache.trim()

    def _shelf(self, id_: ColumnId | None) -> Shelf | None:
        if id_ not in self._shelves:
            name = "files" if id_ is None else f"column {id_}"
            self._shelves[id_] = self._cache.shelf(f"delta {self._table} {name}", 1)
        return self._shelves[id_]

    def _digest(self, unit: Unit) -> bytes | None:
        """What a unit is known by; None if a file of it cannot be told from another in its place."""
        (location,) = unit.locations
        if location not in self._digests:
            stamp = file_stamp(self._storage, location, unit.size)
            self._digests[location] = None if stamp is None else hashlib.blake2b(stamp, digest_size=32).digest()
        return self._digests[location]

    def _load(self, id_: ColumnId | None, digest: bytes | None, place: int) -> pa.RecordBatch | None:
        shelf = self._shelf(id_)
        if shelf is None or digest is None:
            return None
        extent = shelf.find(_of_chunk(digest, place))
        if extent is None:
            return None
        batch = shelf.load(extent.pack)
        if batch is None:
            shelf.discard(extent.pack)
        return batch

    def _save(self, id_: ColumnId | None, digest: bytes, place: int, batch: pa.RecordBatch) -> None:
        shelf, name = self._shelf(id_), _of_chunk(digest, place)
        if shelf is not None and shelf.find(name) is None:
            self._cache.save(shelf, [name], [batch.num_rows], batch)


def file_stamp(storage: Storage, location: str, size: int) -> bytes | None:
    """What tells a file from another that was put in its place; None if it has not this size, or nobody can tell."""
    modified = number = 0
    if local_path(location) is not None:
        try:
            status = os.stat(local_file(location))  # noqa: PTH116 - there may be thousands
        except (OSError, ValueError):
            return None
        if status.st_size != size:
            return None
        modified, number = status.st_mtime_ns, status.st_ino
    else:
        try:
            modified = storage.modified_ms(location) or 0
        except UnreadableMetadataError:
            return None
        if not modified:
            return None
    return f"{size} {modified} {number} {location}".encode("utf-8", "surrogatepass")


@lru_cache(maxsize=1)
def _stamp() -> str:
    return code_stamp("delta")


def _of_chunk(digest: bytes, place: int) -> bytes:
    return hashlib.blake2b(digest + place.to_bytes(8, "little"), digest_size=32).digest()


def _records(chunk: Chunk, chunks: int) -> pa.RecordBatch:
    batch = chunk.files
    columns: dict[str, pa.Array] = {"path": batch.path, "size": batch.size, "rows": chunk.rows}
    if batch.partition is not None:
        columns["partition"] = batch.partition
    if batch.deletes is not None:
        columns["deletes"] = batch.deletes
    columns |= {f"undecoded.{number}": pa.array(fault.rows) for number, fault in enumerate(batch.undecoded)}
    columns |= {
        f"written.{number}": fault.written
        for number, fault in enumerate(batch.undecoded)
        if fault.written is not None
    }
    columns |= {_EXTRA + name: values for name, values in batch.extra.items()}
    about = {"chunks": chunks, "undecoded": [[one.field, one.text, one.empty] for one in batch.undecoded]}
    schema = pa.schema([(name, values.type) for name, values in columns.items()], {_ABOUT: json.dumps(about)})
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=schema)


def _statistics(stats: ColumnStats) -> pa.RecordBatch:
    arrays = {name: getattr(stats, name) for name in _STATS if getattr(stats, name) is not None}
    return pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))


def _chunk(files: pa.RecordBatch) -> Chunk:
    columns: Mapping[str, pa.Array] = dict(zip(files.schema.names, files.columns, strict=True))
    faults = json.loads(files.schema.metadata[_ABOUT])["undecoded"]
    batch = FileBatch(
        path=columns["path"],
        size=columns["size"],
        rows=pa.nulls(files.num_rows, pa.int64()),
        partition=columns.get("partition"),
        deletes=columns.get("deletes"),
        undecoded=tuple(
            Undecoded(
                field,
                np.asarray(columns[f"undecoded.{number}"].to_numpy(zero_copy_only=False)),
                text,
                columns.get(f"written.{number}"),
                empty,
            )
            for number, (field, text, empty) in enumerate(faults)
        ),
        extra={name.removeprefix(_EXTRA): values for name, values in columns.items() if name.startswith(_EXTRA)},
    )
    return Chunk(batch, None, columns["rows"])
