"""Files that Spark's readers cannot read right, read with Arrow in Spark's tasks.

Each file's rows come out in its order, with the columns of the plan, with what its metadata has for all of them, and
with their places in it. What is deleted by position is not among them.

This module runs on executors: it imports only what they have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import pyarrow as pa

from tamis.formats.rows.conform import shown_type
from tamis.formats.rows.reading import read_rows
from tamis.formats.scan import FileFormat, ReadField
from tamis.spark.paths import canonical

__all__ = ["ArrowFile", "Asked", "read_contents", "read_files"]

BATCH_ROWS: Final = 1 << 16
"""Rows that are handed to Spark at a time."""


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
    for batch in batches:
        for number in batch.column(0).to_pylist():
            file = files[number]
            size = Path(file.path).stat().st_size
            # Nothing cannot be mapped.
            with pa.memory_map(file.path) if size else pa.BufferReader(b"") as stream:
                yield from _rows(file, stream, size, asked)


def read_contents(
    batches: Iterable[pa.RecordBatch], files: Mapping[str, ArrowFile], asked: Asked
) -> Iterator[pa.RecordBatch]:
    """The rows of files whose paths and contents come in, as Spark reads them from wherever they lie."""
    for batch in batches:
        for path, content in zip(batch.column("path").to_pylist(), batch.column("content"), strict=True):
            data = content.as_buffer()
            with pa.BufferReader(data) as stream:
                yield from _rows(files[canonical(path)], stream, data.size, asked)


def _rows(file: ArrowFile, stream: BinaryIO, size: int, asked: Asked) -> Iterator[pa.RecordBatch]:
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
        for at in range(0, rows, BATCH_ROWS):
            yield whole.slice(at, BATCH_ROWS)
        start += rows


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
