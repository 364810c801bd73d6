"""The rows of an Avro data file as Arrow, by the decoder that reads metadata.

Each block is checked as those of metadata are: every record that it announces comes out, or an error names the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from tamis.formats.avro.container import AvroFile, Block, parse_avro
from tamis.formats.avro.layout import AvroColumn, Layout, Path, least_bytes
from tamis.formats.avro.reading import decode_checked
from tamis.formats.errors import unreadable

__all__ = ["FIELD_ID", "AvroRows", "read_avro"]

CHUNK_BYTES: Final = 4 << 20
CHUNK_RECORDS: Final = 1 << 18
"""What is decoded at a time: compressed bytes, and records."""
FIELD_ID: Final = b"field-id"
_DEEPEST: Final = 64
_MARKABLE: Final = (pa.string(), pa.binary(), pa.int64())
_PRIMITIVES: Final[Mapping[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_LOGICAL: Final[Mapping[tuple[str, str], pa.DataType]] = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("ms", "+00:00"),
    ("long", "timestamp-micros"): pa.timestamp("us", "+00:00"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
}
"""What the decoder makes of a number by its logical type; of others the number is left."""


@dataclass(frozen=True, slots=True)
class AvroRows:
    """An Avro file whose frame was checked."""

    file: AvroFile
    schema: pa.Schema
    """The writer's columns, each with its field id if it has one; of no type, NULL, where it is not understood."""
    layout: Layout

    def batches(self, wanted: Sequence[int]) -> Iterator[pa.RecordBatch]:
        """These columns, by their places, of all records in order, some at a time."""
        columns = {path: column for path, column in self.layout.columns.items() if path[0] in wanted}
        lost = next((column for column in columns.values() if column.type is None), None)
        if lost is not None:
            raise unreadable(self.file.path, f"column {lost.written_as!r} has a type that is not read", 0)
        if not any(column.type in _MARKABLE for column in columns.values()):
            # That a block holds other records than it announces is told by a column that can hold a mark.
            can = [(path, column) for path, column in self.layout.columns.items() if column.type in _MARKABLE]
            columns |= dict(can[:1])
        names = [self.layout.columns[(place,)].name for place in wanted]
        schema = pa.schema([self.schema.field(place) for place in wanted])
        for blocks in _chunks(self.file):
            part = replace(self.file, blocks=blocks)
            for table in decode_checked([part], self.layout, columns) if columns else ():
                for batch in table.to_batches():
                    arrays = [batch.column(name) for name in names]
                    yield pa.RecordBatch.from_arrays(arrays, schema=schema) if arrays else _rows(len(batch))
            if not columns:
                yield _rows(part.records)


def read_avro(path: str, data: bytes) -> AvroRows:
    """The file, its header and blocks checked. UnreadableMetadataError if it is damaged."""
    file = parse_avro(path, data)
    try:
        schema, layout = _described(json.dumps(file.schema))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise unreadable(path, f"its schema cannot be read ({error})", 0) from error
    return AvroRows(file, schema, layout)


def _rows(count: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(count)], names=[""])


def _chunks(file: AvroFile) -> Iterator[tuple[Block, ...]]:
    chunk: list[Block] = []
    size = records = 0
    for block in file.blocks:
        _, at, stop, count = block
        if chunk and (size + stop - at > CHUNK_BYTES or records + count > CHUNK_RECORDS):
            yield tuple(chunk)
            chunk, size, records = [], 0, 0
        chunk.append(block)
        size, records = size + stop - at, records + count
    if chunk:
        yield tuple(chunk)


@lru_cache(maxsize=64)
def _described(text: str) -> tuple[pa.Schema, Layout]:
    """The Arrow types of a writer's schema, and the same schema under names that are all different."""
    schema = json.loads(text)
    if schema["type"] != "record":
        raise ValueError("it is not a record")
    builder = _Builder()
    builder.define(schema)
    fields, written = [], []
    columns: dict[Path, AvroColumn] = {}
    for place, one in enumerate(schema["fields"]):
        plain, type_, nullable = builder.described(one["type"], 0)
        name = f"c{place}"
        written.append({"name": name, "type": plain})
        columns[(place,)] = AvroColumn(name, (place,), str(one["name"]), type_, None, nullable)
        fields.append(_field(one["name"], pa.null() if type_ is None else type_, one.get("field-id"), nullable=True))
    record = {"type": "record", "name": "r", "fields": written}
    return pa.schema(fields), Layout(json.dumps(record), columns, least_bytes(record))


def _field(name: str, type_: pa.DataType, id_: object, *, nullable: bool) -> pa.Field:
    metadata = {} if id_ is None else {FIELD_ID: str(id_).encode()}
    return pa.field(name, type_, nullable, metadata)


Described = tuple[Any, pa.DataType | None, bool]
"""A type as JSON, what the decoder makes of it, None if that is not known, and whether it may be NULL."""


@dataclass(slots=True)
class _Builder:
    """Walks a schema once, and gives every named type a name of its own wherever it is used."""

    defined: dict[str, Any] = field(default_factory=dict)
    count: int = 0

    def define(self, schema: Mapping[str, Any]) -> None:
        name = str(schema["name"])
        for known in (name, name.rpartition(".")[2], f"{schema.get('namespace')}.{name}"):
            self.defined[known] = schema

    def described(self, type_: Any, depth: int) -> Described:  # noqa: ANN401 - JSON, a case for each type
        if depth > _DEEPEST:
            raise ValueError("it is nested too deep")
        match type_:
            case str(name) if name in self.defined:
                return self.described(self.defined[name], depth + 1)
            case str(name):
                return name, _PRIMITIVES.get(name), False
            case list(choices):
                return self._union([(choice, self.described(choice, depth + 1)) for choice in choices])
            case {"type": "array", "items": items}:
                return self._array(type_, self.described(items, depth + 1))
            case {"type": "map", "values": values}:
                plain, inner, nullable = self.described(values, depth + 1)
                value = None if inner is None else _field("value", inner, type_.get("value-id"), nullable=nullable)
                key = _field("key", pa.string(), type_.get("key-id"), nullable=False)
                return {"type": "map", "values": plain}, None if value is None else pa.map_(key, value), False
            case {"type": "record", "fields": fields}:
                self.define(type_)
                return self._record([(one, self.described(one["type"], depth + 1)) for one in fields])
            case {"type": "fixed", "size": int(size)}:
                self.define(type_)
                plain = {"type": "fixed", "name": self._fresh(), "size": size}
                return self._decimal(type_, plain, pa.binary(size))
            case {"type": "enum", "symbols": symbols}:
                self.define(type_)
                return {"type": "enum", "name": self._fresh(), "symbols": symbols}, None, False
            case {"type": "bytes"}:
                return self._decimal(type_, {"type": "bytes"}, pa.binary())
            case {"type": str(name), "logicalType": str(logical)} if (name, logical) in _LOGICAL:
                return {"type": name, "logicalType": logical}, _LOGICAL[name, logical], False
            case {"type": inner}:
                return self.described(inner, depth + 1)
        raise ValueError(f"{type_!r} is no type of Avro's")

    def _union(self, choices: Sequence[tuple[Any, Described]]) -> Described:
        plain = [described[0] for _, described in choices]
        others = [described for choice, described in choices if choice != "null"]
        known = others[0][1] if len(others) == 1 and len(choices) <= 2 else None  # noqa: PLR2004 - with NULL
        return plain, known, len(others) < len(choices)

    def _array(self, written: Mapping[str, Any], item: Described) -> Described:
        plain, inner, nullable = item
        array = {"type": "array", "items": plain}
        if not least_bytes(plain):
            raise ValueError("it has a list of items that take no bytes")
        return (
            array,
            None if inner is None else pa.list_(_field("item", inner, written.get("element-id"), nullable=nullable)),
            False,
        )

    def _record(self, fields: Sequence[tuple[Mapping[str, Any], Described]]) -> Described:
        plain = {
            "type": "record",
            "name": self._fresh(),
            "fields": [{"name": one["name"], "type": inner} for one, (inner, _, _) in fields],
        }
        if not fields or any(type_ is None for _, (_, type_, _) in fields):
            return plain, None, False
        parts = [
            _field(one["name"], type_, one.get("field-id"), nullable=nullable) for one, (_, type_, nullable) in fields
        ]
        return plain, pa.struct(parts), False

    def _decimal(self, written: Mapping[str, Any], plain: dict[str, Any], otherwise: pa.DataType) -> Described:
        precision, scale = written.get("precision"), written.get("scale", 0)
        if written.get("logicalType") != "decimal" or not isinstance(precision, int) or precision > 38:  # noqa: PLR2004
            return plain, otherwise, False
        return (
            plain | {"logicalType": "decimal", "precision": precision, "scale": scale},
            pa.decimal128(precision, scale),
            False,
        )

    def _fresh(self) -> str:
        self.count += 1
        return f"t{self.count}"
