"""Iceberg's types as Arrow types, and a table's schema as columns that a predicate may name.

A type that tamis does not know, or that has no order, becomes an Arrow type without an order: such a column can be
named, and its files are kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import pyarrow as pa

from tamis.formats.iceberg.defaults import default_scalar
from tamis.formats.iceberg.document import (
    Document,
    Misfit,
    boolean,
    each,
    integer,
    mapping,
    may,
    need,
    text,
    within,
)
from tamis.predicate.keys import MAX_DIGITS
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
DEEPEST: Final = 64
"""Most types inside one another. Each is a few calls deep, in tamis and in Arrow."""


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
    write_default: object = None
    """What new rows get that do not have the column, as the metadata spells it."""
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

    def columns(self, schemas: tuple[TableSchema, ...] = ()) -> Schema:
        """What a predicate may name: columns and fields of structs, known by their field ids.

        With the schemas that the table has had, a field is required that is so in all of them: of one that was once
        optional, or was added without a default, older files may hold NULLs.
        """
        known = {field_.id for _, field_ in self.walk() if _always_required(field_, schemas)}
        columns: list[Column] = []
        inside: dict[tuple[str, ...], bool] = {(): True}
        for path, field_ in self.walk():
            around = inside[path[:-1]]
            inside[path] = around and field_.id in known
            columns.append(Column(field_.id, path, field_.type, inside[path], around))
        return Schema(tuple(columns))


def _always_required(field_: Field, schemas: tuple[TableSchema, ...]) -> bool:
    if not field_.required or not schemas:
        return False
    for schema in schemas:
        then = next((one for _, one in schema.walk() if one.id == field_.id), None)
        if not (field_.initial_default is not None if then is None else then.required):
            return False
    return True


def _walk(fields: tuple[Field, ...], parents: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Field]]:
    for field_ in fields:
        path = (*parents, field_.name)
        yield path, field_
        yield from _walk(field_.children, path)


def parse_schema(value: object, *, numbered: bool = False) -> TableSchema:
    """A schema from the metadata's JSON; Misfit if it is none. numbered: it has to say its own id."""
    document = mapping(value)
    schema_id = need(document, "schema-id", integer) if numbered else may(document, "schema-id", integer) or 0
    ids: set[int] = set()
    return TableSchema(
        schema_id,
        need(document, "fields", partial(_fields, ids, DEEPEST)),
        may(document, "identifier-field-ids", each(integer)) or (),
    )


def _fields(ids: set[int], deep: int, value: object) -> tuple[Field, ...]:
    """The fields of a struct; Misfit if two have one name, which no path could tell apart."""
    fields = each(partial(_field, ids, deep))(value)
    names: set[str] = set()
    for position, field_ in enumerate(fields):
        if field_.name in names:
            raise Misfit("the name stands twice in its struct", f"[{position}].name")
        names.add(field_.name)
    return fields


def _field(ids: set[int], deep: int, value: object) -> Field:
    document = mapping(value)
    id_ = _new(ids, document, "id")
    name = need(document, "name", text)
    inside = need(document, "type", partial(_type, ids, deep))
    default = document.get("initial-default")
    if default is not None:
        within("initial-default", partial(_default, inside.type), default)
    return replace(
        inside,
        id=id_,
        name=name,
        required=may(document, "required", boolean) or False,
        initial_default=default,
        write_default=document.get("write-default"),
    )


def _new(ids: set[int], document: Document, key: str) -> int:
    """A field's id; Misfit if it is another's as well: statistics and columns are found by it."""
    id_ = need(document, key, integer)
    if id_ in ids:
        raise Misfit(f"field id {id_} stands twice in the schema", key)
    ids.add(id_)
    return id_


def _type(ids: set[int], deep: int, value: object) -> Field:
    """A field that has the type, and what is nested in it, but no name yet."""
    if deep == 0:
        raise Misfit(f"types are nested more than {DEEPEST} deep")
    if isinstance(value, str):
        return Field(0, "", _primitive(text(value).strip()), written_type=value)
    document = mapping(value)
    match need(document, "type", text):
        case "struct":
            children = need(document, "fields", partial(_fields, ids, deep - 1))
            return Field(
                0, "", pa.struct([pa.field(child.name, child.type) for child in children]), children=children
            )
        case "list":
            element = _item(ids, deep, document, "element")
            return Field(0, "", pa.list_(element.type), items=(element,))
        case "map":
            key, item = (_item(ids, deep, document, role) for role in ("key", "value"))
            # Arrow has no map with keys of a type that it does not know: then the map is of no known type either.
            unknown = pa.types.is_null(key.type)
            type_ = pa.null() if unknown else pa.map_(key.type, item.type)
            return Field(0, "", type_, items=(key, item), written_type="map" if unknown else "")
    return Field(0, "", pa.null())


def _item(ids: set[int], deep: int, document: Document, role: str) -> Field:
    id_ = _new(ids, document, f"{role}-id")
    required = role == "key" or may(document, f"{role}-required", boolean) or False
    return replace(need(document, role, partial(_type, ids, deep - 1)), id=id_, name=role, required=required)


def _default(type_: pa.DataType, value: object) -> None:
    try:
        default_scalar(type_, value)
    except ValueError as error:
        raise Misfit(str(error)) from error


def arrow_type(document: object) -> pa.DataType:
    """The Arrow type of an Iceberg type as JSON has it; pa.null() for types that tamis does not know.

    >>> arrow_type("timestamptz"), arrow_type("decimal(9, 2)"), arrow_type("geometry(srid:4326)")
    (TimestampType(timestamp[us, tz=UTC]), Decimal128Type(decimal128(9, 2)), DataType(null))
    """
    return _type(set(), DEEPEST, document).type


def _primitive(text: str) -> pa.DataType:
    if text in _PRIMITIVES:
        return _PRIMITIVES[text]
    if match := _DECIMAL.fullmatch(text):
        precision, scale = int(match[1]), int(match[2])
        if 1 <= precision <= MAX_DIGITS:
            return pa.decimal128(precision, scale)
    if match := _FIXED.fullmatch(text):
        return pa.binary(int(match[1]))
    return pa.null()
