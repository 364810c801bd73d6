"""The table's fields as a reader finds them in files that carry field ids."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa
from pyarrow import types as pt

from tamis.formats.iceberg.defaults import default_scalar
from tamis.formats.iceberg.types import Field, TableSchema
from tamis.formats.scan import OwnNames, ReadField

__all__ = ["UNKNOWN", "own_names", "promoted_ids", "read_field", "read_fields"]

UNKNOWN: Final = "unknown"
"""The type of columns that no file has: all are NULL."""
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""Names that writers put into files as they are; of others they replace characters."""


def read_fields(schema: TableSchema, history: Sequence[TableSchema]) -> tuple[ReadField, ...]:
    """The columns of a schema, each with how far its names are to be trusted: what files had under them, and when.

    A history that is not known from the table's first schema on may hide another meaning: then no name is sure.
    """
    every = (schema, *history)
    meanings: dict[tuple[str, ...], set[tuple[int, int]]] = {}
    paths: dict[int, set[tuple[str, ...]]] = {}
    for path, field in (walked for version in every for walked in _walk(version.fields, ())):
        meanings.setdefault(tuple(name.casefold() for name in path), set()).add((field.id, _width(field.type)))
        paths.setdefault(field.id, set()).add(path)
    many = {path[0] for path, fields in meanings.items() if len(fields) > 1}
    whole, promoted = _is_whole(history), promoted_ids(history)
    return tuple(
        replace(
            read_field(field, promoted),
            own_name=whole and field.name.casefold() not in many,
            own_path=whole and field.name.casefold() not in many and _is_constant(field, paths),
        )
        for field in schema.fields
    )


def promoted_ids(history: Iterable[TableSchema]) -> frozenset[int]:
    """The ids of fields, without others inside them, that had several types in these schemas.

    A type without values is none of them: no file has such a column.
    """
    types: dict[int, pa.DataType] = {}
    found = set()
    for _, field in (walked for version in history for walked in _walk(version.fields, ())):
        if field.children or field.items or field.written_type.strip() == UNKNOWN:
            continue
        if types.setdefault(field.id, field.type) != field.type:
            found.add(field.id)
    return frozenset(found)


def own_names(history: Iterable[TableSchema], more: Iterable[str] = ()) -> OwnNames:
    """Names that no field of these schemas has, and that are none of more."""
    return OwnNames.beside((*(field.name for schema in history for _, field in _walk(schema.fields, ())), *more))


def _walk(fields: Iterable[Field], parents: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Field]]:
    """Every field with its path, those inside lists and maps too."""
    for field in fields:
        path = (*parents, field.name)
        yield path, field
        yield from _walk((*field.children, *field.items), path)


def _is_constant(field: Field, paths: Mapping[int, set[tuple[str, ...]]]) -> bool:
    """Whether the field and all in it were always called so, and by names that writers do not have to change."""
    return all(len(paths[inner.id]) == 1 and _PLAIN.fullmatch(inner.name) for _, inner in _walk((field,), ()))


def _width(type_: pa.DataType) -> int:
    """The bytes that a decimal has in files; 0 for other types.

    Spark cuts a filter's number to the width that the file has: one too long for it becomes another number.
    """
    if not pt.is_decimal(type_):
        return 0
    narrow = next((width for digits, width in ((9, 4), (18, 8)) if type_.precision <= digits), None)
    return narrow or type_.precision


def _is_whole(history: Sequence[TableSchema]) -> bool:
    """Whether these are all schemas since the table was made: writers count them from 0, and a new one's ids from 1.

    Old writers kept the last schema alone, and some maintenance removes those that no snapshot has.
    """
    numbers = sorted(schema.schema_id for schema in history)
    if numbers != list(range(len(numbers))):
        return False
    first = min(history, key=lambda schema: schema.schema_id)
    ids = sorted(field.id for _, field in _walk(first.fields, ()))
    return ids == list(range(1, len(ids) + 1))


def read_field(field: Field, promoted: Container[int] = ()) -> ReadField:
    """A field of the table as it is found in files that carry field ids; promoted are those that had other types."""
    nested = (*field.children, *field.items)
    if field.written_type.strip() == UNKNOWN:
        return ReadField(field.name, field.type, described=UNKNOWN, spark_type="void")
    return ReadField(
        field.name,
        field.type,
        field.id,
        None,
        tuple(read_field(child, promoted) for child in nested),
        default_scalar(field.type, field.initial_default),  # checked when it was parsed
        field.written_type or str(field.type),
        variant=field.written_type.strip() == "variant",
        promoted=field.id in promoted,
    )
