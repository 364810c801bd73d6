"""What a data file says of its own columns: names, nesting, and field ids where it carries them.

Read from the file's footer or header, a few kilobytes. Only files that cannot be read by field ids need it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, BinaryIO, Final

import pyarrow as pa
from pyarrow import orc
from pyarrow import parquet as pq
from pyarrow import types as pt

from tamis.formats.avro.container import parse_header
from tamis.formats.errors import unreadable
from tamis.formats.iceberg.types import Field
from tamis.formats.rows.orc_footer import OrcFooter, read_footer
from tamis.formats.scan import FileFormat
from tamis.predicate.type_names import is_list

__all__ = ["Shape", "avro_reader_schema", "named", "named_alike", "read_shape"]

HEADER_BYTES: Final = 1 << 20
"""As much of an Avro file as its header may take."""
GREGORIAN: Final = -141_427
"""1582-10-15, the first day of the Gregorian calendar, in days since 1970."""
_ID_KEYS: Final = (b"PARQUET:field_id", b"iceberg.id")


@dataclass(frozen=True, slots=True)
class Shape:
    """A column or nested field of a file; the file itself has an empty name."""

    name: str
    id: int | None = None
    children: tuple[Shape, ...] = ()
    """The fields of a struct, the element of a list, the key and the value of a map."""
    schema: str = ""
    """The writer's schema as JSON, of an Avro file."""
    zoned: bool = False
    """Whether it is a time with a zone."""
    old: bool = False
    """Whether it has dates, in an ORC file, whose statistics do not rule out one before 1582-10-15."""
    writer: str = ""
    """The program that wrote the file, of an ORC file."""

    def walk(self) -> Iterator[Shape]:
        """The field and all that are in it."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def has_ids(self) -> bool:
        """Whether any field carries an id."""
        return any(shape.id is not None for shape in self.walk())


def read_shape(stream: BinaryIO, location: str, file_format: FileFormat) -> Shape:
    """The shape of a file. UnreadableMetadataError if it is damaged."""
    try:
        if file_format == "avro":
            _, schema, _ = parse_header(location, stream.read(HEADER_BYTES))
            return replace(_avro("", schema), schema=json.dumps(schema, sort_keys=True))
        file = None if file_format == "parquet" else orc.ORCFile(stream)
        schema = pq.read_schema(stream) if file is None else file.schema
    except (pa.ArrowException, OSError) as error:
        raise unreadable(location, str(error).partition("\n")[0]) from error
    fields = tuple(_arrow(schema.field(index)) for index in range(len(schema)))
    shape = Shape("", None, fields, writer="" if file is None else str(file.writer))
    return shape if file is None else _dated(shape, count(), read_footer(stream))


def _dated(shape: Shape, numbers: Iterator[int], footer: OrcFooter | None) -> Shape:
    """The shape, its fields numbered as ORC numbers them, and its dates marked that may be old."""
    number = next(numbers)
    inside = tuple(_dated(child, numbers, footer) for child in shape.children)
    return replace(shape, children=inside, old=footer is None or footer.may_be_before(number, GREGORIAN))


def _arrow(field: pa.Field, name: str | None = None) -> Shape:
    type_ = field.type
    children: tuple[Shape, ...] = ()
    if pt.is_struct(type_):
        children = tuple(_arrow(type_.field(index)) for index in range(type_.num_fields))
    elif pt.is_map(type_):
        children = (_arrow(type_.key_field, "key"), _arrow(type_.item_field, "value"))
    elif is_list(type_):
        children = (_arrow(type_.value_field, "element"),)
    zoned = pt.is_timestamp(type_) and type_.tz is not None
    return Shape(name or field.name, _arrow_id(field), children, zoned=zoned)


def _arrow_id(field: pa.Field) -> int | None:
    metadata = field.metadata or {}
    return next((int(metadata[key]) for key in _ID_KEYS if key in metadata), None)


def _avro(name: str, schema: Any, id_: int | None = None) -> Shape:  # noqa: ANN401 - JSON
    schema = _not_null(schema)
    match schema:
        case {"type": "record", "fields": fields}:
            children = tuple(_avro(field["name"], field["type"], field.get("field-id")) for field in fields)
        case {"type": "array", "logicalType": "map", "items": {"fields": [key, value]}}:
            # As Avro has maps whose keys are no texts.
            children = tuple(
                _avro(role, one["type"], one.get("field-id")) for role, one in (("key", key), ("value", value))
            )
        case {"type": "array", "items": items}:
            children = (_avro("element", items, schema.get("element-id")),)
        case {"type": "map", "values": values}:
            key = Shape("key", schema.get("key-id"))
            children = (key, _avro("value", values, schema.get("value-id")))
        case {"type": Mapping() | list() as inner}:
            return _avro(name, inner, id_)
        case _:
            children = ()
    return Shape(name, id_, children)


def _not_null(schema: Any) -> Any:  # noqa: ANN401 - JSON
    """What a union with null is apart from null."""
    if isinstance(schema, list):
        branches = [branch for branch in schema if branch != "null"]
        return branches[0] if len(branches) == 1 else schema
    return schema


def avro_reader_schema(shape: Shape) -> str:
    """The writer's schema as Spark's reader understands it: a time without a zone is called so, not flagged so."""

    def adjusted(node: Any) -> Any:  # noqa: ANN401 - JSON
        if isinstance(node, list):
            return [adjusted(item) for item in node]
        if not isinstance(node, dict):
            return node
        copy = {key: adjusted(value) for key, value in node.items()}
        if copy.get("logicalType") == "timestamp-micros" and copy.get("adjust-to-utc") is False:
            copy["logicalType"] = "local-timestamp-micros"
        return copy

    return json.dumps(adjusted(json.loads(shape.schema)))


def named(shape: Shape, mapping: str) -> Shape:
    """The shape of a file without ids, with those that a name mapping gives to its names."""
    return replace(shape, children=tuple(_mapped(shape.children, json.loads(mapping))))


def _mapped(fields: tuple[Shape, ...], mapping: list[Mapping[str, Any]]) -> Iterator[Shape]:
    by_name = {name: entry for entry in mapping for name in entry.get("names", ())}
    for field in fields:
        entry = by_name.get(field.name, {})
        children = tuple(_mapped(field.children, entry.get("fields") or []))
        yield replace(field, id=entry.get("field-id"), children=children)


def named_alike(shape: Shape, fields: Sequence[Field]) -> Shape:
    """The shape of a file without ids, with those of the table's fields that have its names."""
    by_name = {field.name: field for field in fields}
    children = []
    for inner in shape.children:
        field = by_name.get(inner.name)
        if field is None:
            children.append(inner)
        else:
            children.append(replace(named_alike(inner, (*field.children, *field.items)), id=field.id))
    return replace(shape, children=tuple(children))
