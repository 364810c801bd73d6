"""The table's fields as a reader finds them in files that carry field ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
from pyarrow import types as pt

from tamis.formats.errors import UnreadableMetadataError
from tamis.formats.iceberg.defaults import default_scalar
from tamis.formats.iceberg.types import Field, TableSchema
from tamis.formats.scan import ReadField

__all__ = ["read_field", "read_fields"]


def read_fields(schema: TableSchema, history: Sequence[TableSchema]) -> tuple[ReadField, ...]:
    """The columns of a schema, each with whether files may have something else under its name.

    A history that is not known from the table's first schema on may hide such a meaning: then no name is sure.
    """
    meanings: dict[tuple[str, ...], set[tuple[int, int]]] = {}
    for one in (schema, *history):
        for path, field in one.walk():
            meanings.setdefault(_folded(path), set()).add((field.id, _width(field.type)))
    many = {path[0] for path, found in meanings.items() if len(found) > 1}
    whole = _is_whole(history)
    fields = (read_field(field) for field in schema.fields)
    return tuple(replace(field, own_name=whole and field.name.casefold() not in many) for field in fields)


def _width(type_: pa.DataType) -> int:
    """The bytes that a decimal has in files; 0 for other types.

    Spark cuts a filter's number to the width that the file has: one too long for it becomes another number.
    """
    if not pt.is_decimal(type_):
        return 0
    narrow = next((width for digits, width in ((9, 4), (18, 8)) if type_.precision <= digits), None)
    return narrow or type_.precision


def _folded(path: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.casefold() for name in path)


def _is_whole(history: Sequence[TableSchema]) -> bool:
    """Whether these are all schemas since the table was made: writers count them from 0, and a new one's ids from 1.

    Old writers kept the last schema alone, and some maintenance removes those that no snapshot has.
    """
    numbers = sorted(one.schema_id for one in history)
    if numbers != list(range(len(numbers))):
        return False
    first = min(history, key=lambda one: one.schema_id)
    ids = sorted(_ids(first.fields))
    return ids == list(range(1, len(ids) + 1))


def _ids(fields: Sequence[Field]) -> Iterator[int]:
    for field in fields:
        yield field.id
        yield from _ids((*field.children, *field.items))


def _default(field: Field) -> pa.Scalar | None:
    try:
        return default_scalar(field.type, field.initial_default)
    except ValueError as error:
        raise UnreadableMetadataError(
            f"the table's metadata is wrong about column {field.name!r}: {error}.",
            path=field.name,
            offset=None,
            reason="a default of another type",
        ) from error


def read_field(field: Field, *, top: bool = True) -> ReadField:
    """A field of the table as it is found in files that carry field ids."""
    if field.initial_default is not None and not top:
        # Spark's readers know no default inside a struct: the column is one that cannot be read.
        described = f"{field.written_type or field.type} with an initial default, inside another column"
        return ReadField(field.name, pa.null(), field.id, described=described)
    nested = (*field.children, *field.items)
    return ReadField(
        field.name,
        field.type,
        field.id,
        None,
        tuple(read_field(one, top=False) for one in nested),
        None if nested else _default(field),
        field.written_type or str(field.type),
    )
