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
import pyarrow.compute as pc
from pyarrow import types as pt

from tamis.errors import UnreadableMetadataError, UnsupportedFormatError
from tamis.formats.errors import shown, unreachable, unreadable
from tamis.formats.iceberg.fields import promoted_ids, read_field
from tamis.formats.iceberg.fileio import FileIOFetch
from tamis.formats.iceberg.shapes import Shape, avro_reader_schema, named, named_alike, read_shape
from tamis.formats.iceberg.types import Field
from tamis.formats.scan import Calendar, FileFormat, OwnNames, ReadField
from tamis.formats.storage import Fetch
from tamis.formats.storage.local import is_local, local_file, local_path
from tamis.formats.storage.ordered import in_order
from tamis.formats.storage.sizes import local_size
from tamis.predicate.arrays import Int64s

if TYPE_CHECKING:
    from tamis.formats.iceberg.metadata import TableMetadata

__all__ = ["BY_ID", "Projection", "Written", "file_format", "has_column", "size_of", "written_fields"]

THREADS: Final = 16
"""Files that are asked at a time: each answer is one or two small requests."""
KINDS: Final = 16
"""Kinds of files' names of which one is asked whether it carries field ids: as many at once, whatever the table."""
ABSENT: Final = "absent_{}"
"""A nested field that a file does not have, by a name that no file has."""


@dataclass(frozen=True, slots=True)
class Projection:
    """How a reader finds the columns: None for by field id, else each by its name; and what to tell the reader."""

    fields: tuple[ReadField, ...] | None = None
    options: tuple[tuple[str, str], ...] = ()
    unread_by_spark: str | None = None
    """Why Spark's reader fails on such files, whichever columns are read; None if it does not."""
    twins: bool = False
    """Whether names in the files, side by side, differ in case alone."""
    unknown: frozenset[str] = frozenset()
    """Columns of which nobody knows what is inside them in these files: with structs, and found by position."""


JAVA: Final = "ORC_JAVA"
ZONED: Final = "times with a zone in ORC files"
FORMATS: Final[Mapping[str, FileFormat]] = {"parquet": "parquet", "orc": "orc", "avro": "avro"}
BY_ID: Final = Projection()


@dataclass(frozen=True, slots=True)
class Written:
    """For each file, one of a few projections."""

    codes: Int64s
    """Which of the projections each file takes."""
    projections: tuple[Projection, ...]


def written_fields(metadata: TableMetadata, fetch: Fetch, files: pa.Table, fields: Sequence[Field]) -> Written:
    """How each of these files (their path and file_format) has the fields."""
    formats = files["file_format"].to_pylist()
    may_lack_ids = metadata.name_mapping is not None or _lack_ids(fetch, files, formats)
    asked = [index for index, file_format in enumerate(formats) if file_format != "parquet" or may_lack_ids]
    codes = np.zeros(len(files), np.int64)
    if not asked:
        return Written(codes, (BY_ID,))
    paths = files["path"].take(pa.array(asked)).to_pylist()

    def ask(index: int) -> Shape:
        with _opened(fetch, paths[index]) as stream:
            return read_shape(stream, paths[index], formats[asked[index]])

    projections: dict[Projection, int] = {BY_ID: 0}
    known: dict[tuple[str, Shape], Projection] = {}
    for index, shape in enumerate(in_order(ask, range(len(asked)), THREADS)):
        key = (formats[asked[index]], shape)
        if key not in known:
            known[key] = _projection(metadata, key[0], shape, fields)
        codes[asked[index]] = projections.setdefault(known[key], len(projections))
    return Written(codes, tuple(projections))


def _lack_ids(fetch: Fetch, files: pa.Table, formats: Sequence[str]) -> bool:
    """Whether one of a few Parquet files carries no field ids, of a table without a name mapping.

    Files without ids came from another writer, which names its files in its own way: the first and the last file of
    each kind of name are asked. To ask all would cost every table a request or two a file. Of one that is not found
    so, Spark's reader says that it has no ids.
    """
    parquet = pa.array([index for index, name in enumerate(formats) if name == "parquet"], pa.int64())
    if not len(parquet):
        return False
    paths = files["path"].take(parquet)
    names = pc.replace_substring_regex(pc.replace_substring_regex(paths, "^.*/", ""), "[0-9a-fA-F]+", "0")
    codes = names.combine_chunks().dictionary_encode().indices.to_numpy()
    _, first = np.unique(codes, return_index=True)
    _, last = np.unique(codes[::-1], return_index=True)
    asked = sorted({*np.sort(first)[:KINDS].tolist(), *np.sort(len(codes) - 1 - last)[-KINDS:].tolist()})

    def lacks(index: int) -> bool:
        path = paths[index].as_py()
        try:
            with _opened(fetch, path) as stream:
                return not read_shape(stream, path, "parquet").has_ids
        except UnreadableMetadataError:
            return False  # Spark says it better: missing, or damaged

    return any(in_order(lacks, asked, THREADS))


def has_column(
    metadata: TableMetadata, fetch: Fetch, path: str, file_format: FileFormat, field_id: int | None
) -> bool:
    """Whether a file has the column of that id, as the file itself says."""
    with _opened(fetch, path) as stream:
        shape = read_shape(stream, path, file_format)
    shape = _with_ids(metadata, file_format, shape, metadata.schema.fields)
    return any(column.id == field_id for column in shape.children)


def _projection(
    metadata: TableMetadata, file_format: FileFormat, shape: Shape, fields: Sequence[Field]
) -> Projection:
    had_ids = shape.has_ids
    if had_ids and file_format == "parquet":
        return BY_ID
    shape = _with_ids(metadata, file_format, shape, fields)
    zoned = file_format == "orc" and any(column.zoned for column in shape.walk())
    options = (("avroSchema", avro_reader_schema(shape)),) if file_format == "avro" else ()
    promoted = promoted_ids(metadata.schemas)
    projected = tuple(_by_name(read_field(field, promoted), shape.children) for field in fields)
    if file_format == "orc":
        # Iceberg's own library, as its ids tell: it writes days of one calendar into files that say nothing of it.
        calendar: Calendar = "taken for julian" if had_ids and shape.writer == JAVA else "unknown"
        projected = tuple(_dated(field, shape.children, calendar) for field in projected)
    unknown = frozenset[str]()
    if file_format == "parquet" and metadata.name_mapping is None:
        nested = {column.name for column in shape.children if column.children}
        unknown = frozenset(field.name for field in projected if field.written_as in nested and _has_struct(field))
    return Projection(projected, options, ZONED if zoned else None, any(map(_has_twins, shape.walk())), unknown)


def _has_struct(field: ReadField) -> bool:
    """Whether there are fields in it that only an id or a name would tell: elements, keys and values need neither."""
    return bool(pt.is_struct(field.type)) or any(map(_has_struct, field.children))


def _has_twins(shape: Shape) -> bool:
    """Whether two of the fields right inside have names that differ in case alone."""
    return len({inner.name.lower() for inner in shape.children}) < len(shape.children)


def _dated(field: ReadField, shapes: Sequence[Shape], calendar: Calendar) -> ReadField:
    """The field; those of its dates that may be old are of that calendar."""
    if field.written_as is None:
        return field
    match = next(shape for shape in shapes if shape.name == field.written_as)
    return _dated_as(field, match, calendar)


def _dated_as(field: ReadField, shape: Shape, calendar: Calendar) -> ReadField:
    if pt.is_date32(field.type):
        return replace(field, calendar=calendar) if shape.old else field
    if pt.is_struct(field.type):
        names = {inner.name: inner for inner in shape.children}
        inside = tuple(
            _dated_as(child, names[child.written_as], calendar) if child.written_as in names else child
            for child in field.children
        )
    elif len(shape.children) == len(field.children):
        below = zip(field.children, shape.children, strict=True)
        inside = tuple(_dated_as(child, inner, calendar) for child, inner in below)
    else:
        return field
    return replace(field, children=inside) if inside != field.children else field


def _with_ids(metadata: TableMetadata, file_format: FileFormat, shape: Shape, fields: Sequence[Field]) -> Shape:
    """The shape, with ids by the table's name mapping if the file carries none.

    Without a mapping it is as with Iceberg's own readers: the names of ORC and Avro files are those of the table's
    columns as they are now, and the columns of a Parquet file are counted from 1. What is inside a column has no id
    then.
    """
    if shape.has_ids:
        return shape
    if metadata.name_mapping is None and file_format == "parquet":
        counted = (replace(column, id=position) for position, column in enumerate(shape.children, start=1))
        return replace(shape, children=tuple(counted))
    if metadata.name_mapping is None:
        return named_alike(shape, fields)
    try:
        return named(shape, metadata.name_mapping)
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        raise unreadable(metadata.path, f"its name mapping is malformed ({error})") from error


def _by_name(field: ReadField, shapes: Sequence[Shape]) -> ReadField:
    """The field by the name that a file has for it; without one if the file does not have it."""
    match = next((shape for shape in shapes if shape.id is not None and shape.id == field.id), None)
    return replace(field, id=None, written_as=None if match is None else match.name, children=_inside(field, match))


def _inside(field: ReadField, shape: Shape | None) -> tuple[ReadField, ...]:
    inner = () if shape is None else shape.children
    if pt.is_struct(field.type):
        children = [_by_name(child, inner) for child in field.children]
        own = OwnNames.beside(shape.name for shape in inner)
        return tuple(
            child if child.written_as is not None else replace(child, written_as=own(ABSENT.format(id_)))
            for child, id_ in zip(children, (child.id for child in field.children), strict=True)
        )
    # The element of a list, the key and the value of a map stand where they stand.
    below: list[Shape | None] = [*inner] if len(inner) == len(field.children) else [None] * len(field.children)
    return tuple(
        replace(child, id=None, children=_inside(child, nested))
        for child, nested in zip(field.children, below, strict=True)
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
    if is_local(location):
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
