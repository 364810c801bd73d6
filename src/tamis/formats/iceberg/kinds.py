"""What type each field of a manifest, and of a manifest list, has to have.

Law: a field that is read has the type that Iceberg gives it, or one that holds the same values; of another type it is
an error that names the file and the field. A writer may leave nullness, and the width of a whole number, as it likes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import pyarrow as pa
from pyarrow import types as pt

from tamis.formats.avro.layout import Path
from tamis.formats.errors import unreadable

__all__ = ["COUNTS", "NUMBER", "NUMBERS", "SUMMARIES", "TEXT", "VALUES", "Kind", "check_kinds"]

Kind = tuple[str, Callable[[pa.DataType], bool]]
"""What an error calls it, and whether a type is of it."""


def _is_number(type_: pa.DataType) -> bool:
    return bool(pt.is_integer(type_))


def _is_bytes(type_: pa.DataType) -> bool:
    return bool(pt.is_binary(type_) or pt.is_string(type_))


def _is_map(type_: pa.DataType, value: Callable[[pa.DataType], bool]) -> bool:
    """A map with whole numbers as keys, as Avro has it: a list of records of a key and a value."""
    items = type_.value_type if pt.is_list(type_) else None
    if items is None or not pt.is_struct(items):
        return False
    names, types = zip(*((field.name, field.type) for field in items), strict=True)
    return names == ("key", "value") and _is_number(types[0]) and value(types[1])


def _is_list(type_: pa.DataType, item: Callable[[pa.DataType], bool]) -> bool:
    return bool(pt.is_list(type_)) and item(type_.value_type)


def _is_summary(type_: pa.DataType) -> bool:
    known = {"contains_null": pt.is_boolean, "contains_nan": pt.is_boolean}
    known |= dict.fromkeys(("lower_bound", "upper_bound"), pt.is_binary)
    if not pt.is_struct(type_) or not {"contains_null", "lower_bound", "upper_bound"} <= {one.name for one in type_}:
        return False
    return all(known[one.name](one.type) for one in type_ if one.name in known)


NUMBER: Final[Kind] = ("a whole number", _is_number)
TEXT: Final[Kind] = ("a text", lambda type_: bool(pt.is_string(type_)))
NUMBERS: Final[Kind] = ("a list of whole numbers", lambda type_: _is_list(type_, _is_number))
COUNTS: Final[Kind] = ("a map of numbers to numbers", lambda type_: _is_map(type_, _is_number))
VALUES: Final[Kind] = ("a map of numbers to bytes", lambda type_: _is_map(type_, _is_bytes))
SUMMARIES: Final[Kind] = ("a list of summaries of partition fields", lambda type_: _is_list(type_, _is_summary))


def check_kinds(path: str, kinds: Mapping[Path, Kind], columns: Mapping[Path, pa.Array]) -> None:
    """UnreadableMetadataError for a column of the file that is not of its kind."""
    for id_, (name, is_of) in kinds.items():
        column = columns.get(id_)
        if column is not None and not is_of(column.type):
            raise unreadable(path, f"its field {id_[-1]} is of the type {column.type}, and not {name}", 0)
