"""How the columns of a table are found in data files that Spark cannot read by field ids.

Those are Parquet files without ids, which a name mapping explains, and all ORC and Avro files: their ids are in the
file, but Spark's readers go by names. So each such file is asked what its columns are called, and files that call
them alike are read together. Law: columns are tied by id; a name ties nothing but through the table's name mapping.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

import numpy as np
import pyarrow as pa
from numpy import typing as npt
from pyarrow import types as pt

from tamis.errors import UnreadableMetadataError, UnsupportedFormatError
from tamis.formats.errors import shown, unreachable, unreadable
from tamis.formats.iceberg.catalogs import FileIOFetch
from tamis.formats.iceberg.fields import read_field
from tamis.formats.iceberg.locate import local_path
from tamis.formats.iceberg.reading import Fetch, in_order, local_file
from tamis.formats.iceberg.shapes import Shape, avro_reader_schema, named, read_shape
from tamis.formats.iceberg.types import Field
from tamis.formats.scan import Calendar, FileFormat, OwnNames, ReadField
from tamis.formats.sizes import local_size

if TYPE_CHECKING:
    from tamis.formats.iceberg.metadata import TableMetadata

__all__ = ["BY_ID", "Way", "Written", "file_format", "has_column", "size_of", "written_fields"]

THREADS: Final = 16
"""Files that are asked at a time: each answer is one or two small requests."""
ABSENT: Final = "absent_{}"
"""A nested field that a file does not have, by a name that no file has."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way to find the columns: None for by field id, else each by its name; and what to tell the reader."""

    fields: tuple[ReadField, ...] | None = None
    options: tuple[tuple[str, str], ...] = ()


JAVA: Final = "ORC_JAVA"
FORMATS: Final[Mapping[str, FileFormat]] = {"parquet": "parquet", "orc": "orc", "avro": "avro"}
BY_ID: Final = Way()


@dataclass(frozen=True, slots=True)
class Written:
    """For each file, one of a few ways to find the columns."""

    kinds: npt.NDArray[np.int64]
    ways: tuple[Way, ...]


def written_fields(metadata: TableMetadata, fetch: Fetch, files: pa.Table, fields: Sequence[Field]) -> Written:
    """How each of these files (their path and file_format) has the fields."""
    formats = files["file_format"].to_pylist()
    may_lack_ids = metadata.name_mapping is not None or _lack_ids(fetch, files, formats)
    asked = [place for place, one in enumerate(formats) if one != "parquet" or may_lack_ids]
    kinds = np.zeros(len(files), np.int64)
    if not asked:
        return Written(kinds, (BY_ID,))
    paths = files["path"].take(pa.array(asked)).to_pylist()

    def ask(place: int) -> Shape:
        with _opened(fetch, paths[place]) as stream:
            return read_shape(stream, paths[place], formats[asked[place]])

    ways: dict[Way, int] = {BY_ID: 0}
    known: dict[tuple[str, Shape], Way] = {}
    for place, shape in enumerate(in_order(ask, range(len(asked)), THREADS)):
        key = (formats[asked[place]], shape)
        if key not in known:
            known[key] = _way(metadata, key[0], shape, fields, paths[place])
        kinds[asked[place]] = ways.setdefault(known[key], len(ways))
    return Written(kinds, tuple(ways))


def _lack_ids(fetch: Fetch, files: pa.Table, formats: Sequence[str]) -> bool:
    """Whether the first or the last Parquet file carries no field ids, of a table without a name mapping.

    Files without ids are of a table that was made around them, and stand together: asking two tells nearly always,
    and asking all would cost every table a request or two a file. Of one that is not found so, Spark's reader says
    that it has no ids.
    """
    places = [place for place, one in enumerate(formats) if one == "parquet"]
    for place in {places[0], places[-1]} if places else set():
        path = files["path"][place].as_py()
        try:
            with _opened(fetch, path) as stream:
                if not read_shape(stream, path, "parquet").has_ids:
                    return True
        except UnreadableMetadataError:
            continue  # Spark says it better: missing, or damaged
    return False


def has_column(
    metadata: TableMetadata, fetch: Fetch, path: str, file_format: FileFormat, field_id: int | None
) -> bool:
    """Whether a file has the column of that id, as the file itself says."""
    with _opened(fetch, path) as stream:
        shape = read_shape(stream, path, file_format)
    return any(one.id == field_id for one in _with_ids(metadata, file_format, shape, path).children)


def _way(metadata: TableMetadata, file_format: FileFormat, shape: Shape, fields: Sequence[Field], path: str) -> Way:
    had_ids = shape.has_ids
    if had_ids and file_format == "parquet":
        return BY_ID
    shape = _with_ids(metadata, file_format, shape, path)
    zoned = next((one for one in shape.walk() if one.zoned), None) if file_format == "orc" else None
    if zoned is not None:
        raise UnsupportedFormatError(
            f"{shown(path)} is an ORC file with a time with a zone, {zoned.name!r}: Spark's ORC reader fails on such "
            "files, whichever columns are read. Rewrite them as Parquet with the table's own engine.",
            path=shown(path),
            feature="ORC files with timestamptz",
        )
    options = (("avroSchema", avro_reader_schema(shape)),) if file_format == "avro" else ()
    found = tuple(_found(read_field(one), shape.children) for one in fields)
    if file_format == "orc":
        # Iceberg's own library, as its ids tell: it writes days of one calendar into files that say nothing of it.
        calendar: Calendar = "taken for julian" if had_ids and shape.writer == JAVA else "unknown"
        found = tuple(field if field.written_as is None else _dated(field, calendar) for field in found)
    return Way(found, options)


def _dated(field: ReadField, calendar: Calendar) -> ReadField:
    if pt.is_date32(field.type):
        return replace(field, calendar=calendar)
    inside = tuple(_dated(child, calendar) for child in field.children)
    return replace(field, children=inside) if inside else field


def _with_ids(metadata: TableMetadata, file_format: FileFormat, shape: Shape, path: str) -> Shape:
    """The shape, with ids by the table's name mapping if the file carries none.

    Without a mapping the columns of a Parquet file are counted from 1, as Iceberg's own readers do. What is inside a
    column has no id then, so that nested columns are refused.
    """
    if shape.has_ids:
        return shape
    if metadata.name_mapping is None and file_format == "parquet" and not any(one.children for one in shape.children):
        counted = (replace(one, id=place) for place, one in enumerate(shape.children, start=1))
        return replace(shape, children=tuple(counted))
    if metadata.name_mapping is None:
        raise UnsupportedFormatError(
            f"{shown(path)} carries no field ids, and the table has no name mapping: which column is which cannot be "
            "known. Set the table property schema.name-mapping.default.",
            path=shown(path),
            feature="data files without field ids",
        )
    try:
        return named(shape, metadata.name_mapping)
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        raise unreadable(metadata.path, f"its name mapping is malformed ({error})") from error


def _found(field: ReadField, shapes: Sequence[Shape]) -> ReadField:
    """The field by the name that a file has for it; without one if the file does not have it."""
    match = next((one for one in shapes if one.id is not None and one.id == field.id), None)
    return replace(field, id=None, written_as=None if match is None else match.name, children=_inside(field, match))


def _inside(field: ReadField, shape: Shape | None) -> tuple[ReadField, ...]:
    inner = () if shape is None else shape.children
    if pt.is_struct(field.type):
        found = [_found(child, inner) for child in field.children]
        own = OwnNames.beside(one.name for one in inner)
        return tuple(
            one if one.written_as is not None else replace(one, written_as=own(ABSENT.format(child.id)))
            for one, child in zip(found, field.children, strict=True)
        )
    # The element of a list, the key and the value of a map stand where they stand.
    below: list[Shape | None] = [*inner] if len(inner) == len(field.children) else [None] * len(field.children)
    return tuple(
        replace(child, id=None, children=_inside(child, one))
        for child, one in zip(field.children, below, strict=True)
    )


def _opened(fetch: Fetch, location: str) -> BinaryIO:
    if local_path(location) is not None:
        try:
            return Path(local_file(location)).open("rb")
        except OSError as error:
            raise unreachable(location, error) from error
    if isinstance(fetch, FileIOFetch):
        return fetch.open(location)
    return BytesIO(fetch(location))


def size_of(fetch: Fetch, location: str) -> int | None:
    """The size of a file; None if it cannot be asked from here. IsADirectoryError for a folder."""
    if "://" not in location or location.startswith("file:"):
        return local_size(local_file(location))
    return fetch.size(location) if isinstance(fetch, FileIOFetch) else None


def file_format(name: str, path: str) -> FileFormat:
    """The format of a data or delete file; UnsupportedFormatError for one that Spark has no reader for."""
    if name not in FORMATS:
        raise UnsupportedFormatError(
            f"{shown(path)} is a data file of format {name!r}; Parquet, ORC and Avro can be read.",
            path=shown(path),
            feature=name,
        )
    return FORMATS[name]
