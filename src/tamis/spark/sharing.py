"""Columns that are one column in files: a struct, and what was dropped from it but is still named by deletes.

Spark's readers want each column of a file once. So such columns are read as one, and taken apart again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import Column
from pyspark.sql import functions as f

from tamis.formats.scan import ReadField
from tamis.spark.types import read_name, rebuilt

__all__ = ["shared", "taken"]

ADDED = "_tamis_field_{}"
"""The name of a field that is read beside the ones that the table has, by its id."""


def shared(fields: Sequence[ReadField]) -> tuple[list[ReadField], list[int]]:
    """What to read for these fields, each column of a file once; and for each of the fields which of these it is."""
    found: dict[object, int] = {}
    read: list[ReadField] = []
    places = []
    for field in fields:
        key = _key(field)
        if key in found:
            read[found[key]] = _joined(read[found[key]], field)
        else:
            found[key] = len(read)
            read.append(field)
        places.append(found[key])
    return read, places


def taken(column: Column, read: ReadField, field: ReadField) -> Column:
    """The field as users see it, out of what was read for it."""
    if read.children == field.children:
        return rebuilt(column, field)
    by_key = {_key(one): one for one in read.children}
    parts = []
    for child in field.children:
        one = by_key[_key(child)]
        parts.append(taken(column.getField(read_name(one)), one, child).alias(child.name, metadata={}))
    return f.when(column.isNotNull(), f.struct(*parts))


def _key(field: ReadField) -> object:
    """What files know a field by; its own name if they do not have it."""
    return field.id if field.id is not None else (field.written_as or "", field.name if not field.written_as else "")


def _joined(a: ReadField, b: ReadField) -> ReadField:
    """A struct with the fields of both."""
    children = {_key(one): one for one in a.children}
    for one in b.children:
        key = _key(one)
        if key in children:
            children[key] = _joined(children[key], one)
        else:
            children[key] = one if one.id is None else replace(one, name=ADDED.format(one.id))
    return replace(a, children=tuple(children.values()))
