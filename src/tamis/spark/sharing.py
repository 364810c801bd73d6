"""Columns under other names than their own, where Spark would be led astray by them; and two columns read as one.

Spark finds the columns of a file by id, but pushes filters down, and looks types up, by name: a name that had two
meanings must not reach it. And it wants each column of a file once: a struct, and what was dropped from it but is
still named by deletes, are read together and taken apart again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pyarrow import types as pt
from pyspark.sql import Column
from pyspark.sql import functions as f

from tamis.formats.scan import OwnNames, ReadField
from tamis.spark.types import read_name, rebuilt

__all__ = ["read_names", "shared", "taken"]

OTHER_NAME: Final = "column_{}"
"""What no file calls a column, by its id."""
ADDED: Final = "field_{}"
"""The name of a field that is read beside the ones that the table has, by its id."""


def read_names(fields: Sequence[ReadField], own: OwnNames) -> list[str]:
    """Names to read by: the columns' own, by which Spark then pushes filters down, where that cannot go wrong.

    Columns are found by id, so that one whose name had two meanings, or differs from another in case alone, can have
    another name meanwhile.
    """
    used: set[str] = set()
    names = []
    for field in fields:
        name = field.name if field.own_name or field.id is None else own(OTHER_NAME.format(field.id))
        while name.lower() in used:
            name = f"{name}_{field.id}"
        used.add(name.lower())
        names.append(name)
    return names


def shared(fields: Sequence[ReadField], own: OwnNames) -> tuple[list[ReadField], list[int]]:
    """What to read for these fields, each column of a file once; and for each of the fields which of these it is."""
    by_key: dict[object, int] = {}
    read: list[ReadField] = []
    indices = []
    for field in fields:
        key = _key(field)
        safe = field if field.own_name or field.id is None else _renamed(field, own)
        if key in by_key:
            read[by_key[key]] = _joined(read[by_key[key]], safe, own)
        else:
            by_key[key] = len(read)
            read.append(safe)
        indices.append(by_key[key])
    return read, indices


def _renamed(field: ReadField, own: OwnNames) -> ReadField:
    """A column with names inside that no file has: Spark takes the type of a field by name, whatever its id is."""
    inside = [_renamed(child, own) for child in field.children]
    if pt.is_struct(field.type):
        inside = [replace(child, name=own(ADDED.format(child.id))) for child in inside]
    return replace(field, children=tuple(inside))


def taken(column: Column, read: ReadField, field: ReadField) -> Column:
    """The field as users see it, out of what was read for it."""
    if read.children == field.children:
        return rebuilt(column, field)
    if pt.is_map(field.type):
        (key, value), (key_read, value_read) = field.children, read.children
        values = f.transform_values(column, lambda _, element: taken(element, value_read, value))
        return f.transform_keys(values, lambda element, _: taken(element, key_read, key))
    if not pt.is_struct(field.type):
        return f.transform(column, lambda element: taken(element, read.children[0], field.children[0]))
    by_key = {_key(child): child for child in read.children}
    fields = []
    for child in field.children:
        inner = by_key[_key(child)]
        fields.append(taken(column.getField(read_name(inner)), inner, child).alias(child.name, metadata={}))
    return f.when(column.isNotNull(), f.struct(*fields))


def _key(field: ReadField) -> object:
    """What files know a field by; its own name if they do not have it."""
    return field.id if field.id is not None else (field.written_as or "", field.name if not field.written_as else "")


def _joined(a: ReadField, b: ReadField, own: OwnNames) -> ReadField:
    """A struct with the fields of both, of which one is not all of the column."""
    children = {_key(child): child for child in a.children}
    for child in b.children:
        key = _key(child)
        if key in children:
            children[key] = _joined(children[key], child, own)
        else:
            children[key] = child if child.id is None else replace(child, name=own(ADDED.format(child.id)))
    return replace(a, children=tuple(children.values()), own_path=False)
