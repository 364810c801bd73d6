"""Iceberg's types as Arrow types, and a table's schema as columns that a predicate may name.

A type that tamis does not know, or that has no order, becomes an Arrow type without an order: such a column can be
named, and its files are kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from tamis.predicate.schema import Column, Schema

__all__ = ["Field", "TableSchema", "arrow_type", "parse_schema"]

_PRIMITIVES: Final[Mapping[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
    "timestamp_ns": pa.timestamp("ns"),
    "timestamptz_ns": pa.timestamp("ns", "UTC"),
    "string": pa.string(),
    "uuid": pa.uuid(),
    "binary": pa.binary(),
}
_DECIMAL: Final = re.compile(r"decimal\(\s*(\d{1,2})\s*,\s*(-?\d{1,2})\s*\)")
_FIXED: Final = re.compile(r"fixed\[\s*(\d{1,9})\s*\]")
_WIDEST_DECIMAL: Final = 38


@dataclass(frozen=True, slots=True)
class Field:
    """A column or a nested field, as one schema of the table has it."""

    id: int
    name: str
    type: pa.DataType
    required: bool = False
    children: tuple[Field, ...] = ()
    """The fields of a struct; none for what lies inside a list or a map."""
    initial_default: object = None
    """What rows have that were written before the column was added, as the metadata spells it."""
    items: tuple[Field, ...] = ()
    """The element of a list, or the key and the value of a map. They have ids, and no path that SQL could name."""
    written_type: str = ""
    """A type that has no Arrow type, as the metadata spells it."""


@dataclass(frozen=True, slots=True)
class TableSchema:
    """One schema of the table, current or historical."""

    schema_id: int
    fields: tuple[Field, ...]
    identifier_ids: tuple[int, ...] = ()
    _types: dict[int, pa.DataType] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        types = {field.id: field.type for _, field in self.walk()}
        object.__setattr__(self, "_types", types)

    @property
    def types(self) -> Mapping[int, pa.DataType]:
        """The type of every field that columns() has, by its id."""
        return self._types

    def walk(self) -> Iterator[tuple[tuple[str, ...], Field]]:
        """Every field outside lists and maps with its path, parents first."""
        yield from _walk(self.fields, ())

    def columns(self) -> Schema:
        """What a predicate may name: columns and fields of structs, known by their field ids."""
        return Schema(tuple(Column(field.id, path, field.type) for path, field in self.walk()))


def _walk(fields: tuple[Field, ...], parents: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Field]]:
    for one in fields:
        path = (*parents, one.name)
        yield path, one
        yield from _walk(one.children, path)


def parse_schema(document: Mapping[str, Any]) -> TableSchema:
    """A schema from the metadata's JSON. KeyError, TypeError or ValueError if it is none."""
    return TableSchema(
        int(document.get("schema-id", 0)),
        tuple(_field(one) for one in document["fields"]),
        tuple(int(one) for one in document.get("identifier-field-ids") or ()),
    )


def _field(document: Mapping[str, Any]) -> Field:
    type_ = document["type"]
    nested = isinstance(type_, Mapping) and type_["type"] == "struct"
    return Field(
        int(document["id"]),
        str(document["name"]),
        arrow_type(type_),
        bool(document.get("required", False)),
        tuple(_field(one) for one in type_["fields"]) if nested else (),
        document.get("initial-default"),
        _items(type_),
        type_ if isinstance(type_, str) else "",
    )


def _items(type_: Any) -> tuple[Field, ...]:  # noqa: ANN401 - JSON
    match type_:
        case {"type": "list"}:
            return (_item(type_, "element"),)
        case {"type": "map"}:
            return (_item(type_, "key"), _item(type_, "value"))
    return ()


def _item(type_: Mapping[str, Any], part: str) -> Field:
    document = {"id": type_[f"{part}-id"], "name": part, "type": type_[part]}
    return _field(document)


def arrow_type(document: object) -> pa.DataType:
    """The Arrow type of an Iceberg type as JSON has it; pa.null() for types that tamis does not know.

    >>> arrow_type("timestamptz"), arrow_type("decimal(9, 2)"), arrow_type("geometry(srid:4326)")
    (TimestampType(timestamp[us, tz=UTC]), Decimal128Type(decimal128(9, 2)), DataType(null))
    """
    match document:
        case str(text):
            return _primitive(text.strip())
        case {"type": "struct", "fields": fields}:
            return pa.struct([pa.field(str(one["name"]), arrow_type(one["type"])) for one in fields])
        case {"type": "list", "element": element}:
            return pa.list_(arrow_type(element))
        case {"type": "map", "key": key, "value": value}:
            return pa.map_(arrow_type(key), arrow_type(value))
    return pa.null()


def _primitive(text: str) -> pa.DataType:
    if text in _PRIMITIVES:
        return _PRIMITIVES[text]
    if found := _DECIMAL.fullmatch(text):
        precision, scale = int(found[1]), int(found[2])
        if 1 <= precision <= _WIDEST_DECIMAL:
            return pa.decimal128(precision, scale)
    if found := _FIXED.fullmatch(text):
        return pa.binary(int(found[1]))
    return pa.null()
