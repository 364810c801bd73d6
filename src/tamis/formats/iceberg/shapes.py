"""What a data file says of its own columns: names, nesting, and field ids where it carries them.

Read from the file's footer or header, a few kilobytes. Only files that cannot be read by field ids need it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, Final

import pyarrow as pa
from pyarrow import orc
from pyarrow import parquet as pq
from pyarrow import types as pt

from tamis.formats.errors import unreadable
from tamis.formats.iceberg.avro import parse_header
from tamis.formats.scan import FileFormat

__all__ = ["Shape", "avro_reader_schema", "named", "read_shape"]

HEADER_BYTES: Final = 1 << 20
"""As much of an Avro file as its header may take."""
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
        return any(one.id is not None for one in self.walk())


def read_shape(stream: BinaryIO, location: str, file_format: FileFormat) -> Shape:
    """The shape of a file. UnreadableMetadataError if it is damaged."""
    try:
        if file_format == "avro":
            _, schema, _ = parse_header(location, stream.read(HEADER_BYTES))
            return replace(_avro("", schema), schema=json.dumps(schema, sort_keys=True))
        file = None if file_format == "parquet" else orc.ORCFile(stream)
        found = pq.read_schema(stream) if file is None else file.schema
    except (pa.ArrowException, OSError) as error:
        raise unreadable(location, str(error).partition("\n")[0]) from error
    fields = tuple(_arrow(found.field(place)) for place in range(len(found)))
    return Shape("", None, fields, writer="" if file is None else str(file.writer))


def _arrow(field: pa.Field, name: str | None = None) -> Shape:
    kind = field.type
    children: tuple[Shape, ...] = ()
    if pt.is_struct(kind):
        children = tuple(_arrow(kind.field(place)) for place in range(kind.num_fields))
    elif pt.is_map(kind):
        children = (_arrow(kind.key_field, "key"), _arrow(kind.item_field, "value"))
    elif pt.is_list(kind) or pt.is_large_list(kind):
        children = (_arrow(kind.value_field, "element"),)
    zoned = pt.is_timestamp(kind) and kind.tz is not None
    return Shape(name or field.name, _arrow_id(field), children, zoned=zoned)


def _arrow_id(field: pa.Field) -> int | None:
    metadata = field.metadata or {}
    return next((int(metadata[key]) for key in _ID_KEYS if key in metadata), None)


def _avro(name: str, schema: Any, id_: int | None = None) -> Shape:  # noqa: ANN401 - JSON
    schema = _not_null(schema)
    match schema:
        case {"type": "record", "fields": fields}:
            children = tuple(_avro(one["name"], one["type"], one.get("field-id")) for one in fields)
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
        others = [one for one in schema if one != "null"]
        return others[0] if len(others) == 1 else schema
    return schema


def avro_reader_schema(shape: Shape) -> str:
    """The writer's schema as Spark's reader understands it: a time without a zone is called so, not flagged so."""

    def adjusted(part: Any) -> Any:  # noqa: ANN401 - JSON
        if isinstance(part, list):
            return [adjusted(one) for one in part]
        if not isinstance(part, dict):
            return part
        found = {key: adjusted(value) for key, value in part.items()}
        if found.get("logicalType") == "timestamp-micros" and found.get("adjust-to-utc") is False:
            found["logicalType"] = "local-timestamp-micros"
        return found

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
