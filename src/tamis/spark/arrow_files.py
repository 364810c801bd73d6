"""Files that Spark's readers cannot read right, read with Arrow in Spark's tasks.

Each file's rows come out in its order, with the columns of the plan, with what its metadata has for all of them, and
with their places in it. What is deleted by position is not among them.

This module runs on executors: it imports only what they have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import pyarrow as pa

from tamis.formats.rows.conform import shown_type
from tamis.formats.rows.reading import read_rows
from tamis.formats.scan import FileFormat, ReadField, counted_positions
from tamis.predicate.arrays import Int64s
from tamis.spark.paths import canonical

__all__ = ["POSITION_FIELDS", "ArrowFile", "Asked", "Bitmap", "Deleted", "read_contents", "read_files"]

BATCH_ROWS: Final = 1 << 16
"""Rows that are handed to Spark at a time."""
RUN_ROWS: Final = 1 << 13
"""Rows between two deleted ones, on average, from which on they are handed over without a copy."""
POSITION_FIELDS: Final = (
    ReadField("file_path", pa.string(), written_as="file_path"),
    ReadField("pos", pa.int64(), written_as="pos"),
)
"""The columns of position delete files."""
LISTS: Final = 4
"""Position delete files that a task remembers: one may name rows of many data files."""
_NOTHING: Final = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Bitmap:
    """A bitmap of deleted rows."""

    where: bytes | tuple[str, int, int]
    """The bitmap itself, or the file that holds it, its offset and its length."""
    count: int | None = None
    """How many rows it has to name, if the metadata says so."""


@dataclass(frozen=True, slots=True)
class Deleted:
    """What names rows of a file by their places in it, where this machine can open it."""

    called: str
    """The file, as position delete files call it."""
    listed: tuple[tuple[str, FileFormat], ...]
    """Position delete files."""
    vectors: tuple[Bitmap, ...]
    decode: Callable[[bytes], Int64s] | None
    """The positions in a bitmap."""


@dataclass(frozen=True, slots=True)
class ArrowFile:
    """A file, and what its rows have of it."""

    path: str
    size: int | None
    """None if it is not to be compared."""
    constants: Mapping[str, Any]
    """By column: what stands in where the file does not have it, an Arrow scalar."""
    attached: Mapping[str, Any]
    """What all its rows have, by the name of an added column: an Arrow scalar."""
    deleted: Deleted | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """What is read of files that are read alike."""

    file_format: FileFormat
    fields: tuple[ReadField, ...]
    attached: tuple[str, ...]
    positions: tuple[str, ...]
    """Names of columns that have a row's place in its file."""


def read_files(
    batches: Iterable[pa.RecordBatch], files: Sequence[ArrowFile], asked: Asked
) -> Iterator[pa.RecordBatch]:
    """The rows of the files whose numbers come in, and which this machine can open."""
    named_in = lru_cache(LISTS)(_named_in)
    for batch in batches:
        for number in batch.column(0).to_pylist():
            file = files[number]
            gone = _NOTHING if file.deleted is None else _gone(file.deleted, named_in)
            with _opened(file.path) as stream:
                yield from _rows(file, stream, stream.size(), asked, gone)


def read_contents(
    batches: Iterable[pa.RecordBatch], files: Mapping[str, ArrowFile], asked: Asked
) -> Iterator[pa.RecordBatch]:
    """The rows of files whose paths and contents come in, as Spark reads them from wherever they lie."""
    for batch in batches:
        for path, content in zip(batch.column("path").to_pylist(), batch.column("content"), strict=True):
            data = content.as_buffer()
            with pa.BufferReader(data) as stream:
                yield from _rows(files[canonical(path)], stream, data.size, asked, _NOTHING)


def _opened(path: str) -> pa.NativeFile:
    """The file, mapped; nothing cannot be."""
    return pa.memory_map(path) if Path(path).stat().st_size else pa.BufferReader(b"")


def _gone(deleted: Deleted, named_in: Callable[[str, FileFormat], Mapping[str, Int64s]]) -> Int64s:
    """The places of deleted rows, ascending, each of them once."""
    places = [named_in(path, file_format).get(deleted.called, _NOTHING) for path, file_format in deleted.listed]
    if deleted.decode is not None:
        places += [_decoded(vector, deleted.decode) for vector in deleted.vectors]
    return np.unique(np.concatenate([_NOTHING, *places]))


def _decoded(vector: Bitmap, decode: Callable[[bytes], Int64s]) -> Int64s:
    if isinstance(vector.where, bytes):
        return counted_positions(decode, vector.where, vector.count)
    path, start, length = vector.where
    with _opened(path) as stream:
        stream.seek(start)
        content = stream.read(length)
    try:
        return counted_positions(decode, content, vector.count)
    except ValueError as error:
        raise ValueError(f"{path}, at byte {start}: {error}") from error


def _named_in(path: str, file_format: FileFormat) -> dict[str, Int64s]:
    """The places that a position delete file names, by data file."""
    with _opened(path) as stream:
        read = [columns for _, columns in read_rows(path, stream, file_format, POSITION_FIELDS)]
    parts = {field.name: [columns[number] for columns in read] for number, field in enumerate(POSITION_FIELDS)}
    if not read:
        return {}
    if any(column is None or column.null_count for columns in parts.values() for column in columns):
        raise ValueError(f"{path} is no position delete file: it lacks a path or a place")
    files = pa.chunked_array(parts["file_path"]).combine_chunks().dictionary_encode()
    codes = files.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    places = pa.chunked_array(parts["pos"]).to_numpy()[order]
    cuts = np.cumsum(np.bincount(codes, minlength=len(files.dictionary)))[:-1]
    return dict(zip(files.dictionary.to_pylist(), np.split(places, cuts), strict=True))


def _rows(file: ArrowFile, stream: BinaryIO, size: int, asked: Asked, gone: Int64s) -> Iterator[pa.RecordBatch]:
    if file.size is not None and size != file.size:
        raise ValueError(
            f"{file.path} has {size} bytes, and the table's metadata says {file.size}: it is not the file that was "
            "written"
        )
    start = 0
    for rows, columns in read_rows(file.path, stream, asked.file_format, asked.fields):
        arrays = [
            _valued(column, rows, field, file.constants) for column, field in zip(columns, asked.fields, strict=True)
        ]
        arrays += [pa.repeat(file.attached[name], rows) for name in asked.attached]
        if asked.positions:
            places = pa.array(np.arange(start, start + rows, dtype=np.int64))
            arrays += [places] * len(asked.positions)
        names = [*(field.name for field in asked.fields), *asked.attached, *asked.positions]
        whole = pa.RecordBatch.from_arrays(arrays, names=names) if names else _counted(rows)
        places = gone[np.searchsorted(gone, start) : np.searchsorted(gone, start + rows)] - start
        for left in _without(whole, places):
            for at in range(0, len(left), BATCH_ROWS):
                yield left.slice(at, BATCH_ROWS)
        start += rows


def _without(rows: pa.RecordBatch, places: Int64s) -> Iterator[pa.RecordBatch]:
    """The rows but those in these places. Where these are far apart, what lies between them is not copied."""
    if len(places) * RUN_ROWS <= len(rows):
        begin = 0
        for place in (*places.tolist(), len(rows)):
            if place > begin:
                yield rows.slice(begin, place - begin)
            begin = place + 1
        return
    kept = np.ones(len(rows), np.bool_)
    kept[places] = False
    yield rows.filter(pa.array(kept))


def _counted(rows: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(rows)], names=["nothing"])


def _valued(column: pa.Array | None, rows: int, field: ReadField, constants: Mapping[str, Any]) -> pa.Array:
    """What the file has, else the partition's value. A partition that is not NULL holds no NULL."""
    constant = constants.get(field.name)
    if column is None:
        if constant is None or not constant.is_valid:
            return pa.nulls(rows, shown_type(field))
        return pa.repeat(constant, rows).cast(shown_type(field))
    if constant is None or not constant.is_valid or not column.null_count:
        return column
    return column.fill_null(constant.cast(column.type))
