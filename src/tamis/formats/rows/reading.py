"""A data file's rows with Arrow, whatever its format: the columns that are asked for, as the table has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import BinaryIO

import pyarrow as pa
from pyarrow import types as pt

from tamis.formats.rows.avro import AvroRows, read_avro
from tamis.formats.rows.conform import Misread, absent, conformed, found, shown_type
from tamis.formats.rows.orc import OrcRows, read_orc
from tamis.formats.rows.parquet import ParquetRows, read_parquet
from tamis.formats.scan import FileFormat, ReadField

__all__ = ["Columns", "read_rows"]

Columns = list[pa.Array]
"""As many arrays as were asked for, of one length."""


def read_rows(
    path: str, stream: BinaryIO, file_format: FileFormat, fields: Sequence[ReadField]
) -> Iterator[tuple[int, list[pa.Array | None]]]:
    """All rows of the file in order, some at a time: how many, and a column for each of the fields.

    A column that the file does not have is None, if no default stands in.
    """
    rows = _opened(path, stream, file_format)
    places = [found(field, rows.schema) for field in fields]
    wanted = [place for place in places if place is not None]
    if isinstance(rows, OrcRows):
        asked = [field for field, place in zip(fields, places, strict=True) if place is not None]
        if any(_is_of_utc(field) for field in asked):
            rows.check_zone()
        nanos = {place for field, place in zip(asked, wanted, strict=True) if _is_nanos(path, field)}
        batches = rows.batches(wanted, nanos)
    else:
        batches = rows.batches(wanted)
    for batch in batches:
        read = iter(batch.columns)
        columns: list[pa.Array | None] = []
        for field, place in zip(fields, places, strict=True):
            if place is not None:
                columns.append(_column(path, next(read), rows.schema.field(place), field))
            else:
                columns.append(None if field.default is None else absent(field, len(batch)))
        yield len(batch), columns


def _is_nanos(path: str, field: ReadField) -> bool:
    """Whether the times in a column are nanoseconds; ValueError if some are, and others may be of any year."""
    units = set(_units(field))
    if len(units) > 1:
        raise ValueError(
            f"{path} cannot be read: column {field.name!r} has times in nanoseconds beside others, in an ORC file. "
            "Read without this column, or rewrite such files as Parquet with the table's own engine."
        )
    return units == {"ns"}


def _units(field: ReadField) -> Iterator[str]:
    kind = field.type if field.counts is None else field.counts
    if pt.is_timestamp(kind):
        yield kind.unit
    for child in field.children:
        yield from _units(child)


def _is_of_utc(field: ReadField) -> bool:
    """Whether there are times in a column that are read only if a writer in UTC has written them."""
    return field.utc_alone or any(map(_is_of_utc, field.children))


def _opened(path: str, stream: BinaryIO, file_format: FileFormat) -> AvroRows | OrcRows | ParquetRows:
    if file_format == "avro":
        return read_avro(path, stream.read())
    return read_orc(path, stream) if file_format == "orc" else read_parquet(path, stream)


def _column(path: str, array: pa.Array, column: pa.Field, field: ReadField) -> pa.Array:
    try:
        made = conformed(array, column, field)
    except (Misread, pa.ArrowException) as error:
        raise ValueError(f"{path} cannot be read: {error}") from error
    kind = shown_type(field)
    return made if made.type == kind else made.cast(kind)
