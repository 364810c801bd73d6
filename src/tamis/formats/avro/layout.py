"""Which columns an Avro writer's schema has, flat, and which of them a decoder is asked for.

Records that stand in records add no byte to the encoding, so their fields can be described as columns of one flat
record. Two things follow. A decoder that projects whole columns then skips what nobody asked for. And a record
without fields, the partition of an unpartitioned table, does not come up at all. Logical types are left out: the
decoder gives plain numbers and bytes, and the table's own metadata says what they mean.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

__all__ = ["AvroColumn", "Layout", "Path", "flat_layout", "least_bytes"]

Path = tuple[int, ...]
"""Field ids from the outermost record inwards."""

_PRIMITIVES: Final[Mapping[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_DEEPEST: Final = 20
_MOST_TYPES: Final = 100_000
"""Most types of a schema, references followed. A few types that each name the last one twice are millions."""


@dataclass(frozen=True, slots=True)
class AvroColumn:
    """A column of the flat record."""

    name: str
    """Unique in the flat record; not the writer's."""
    path: Path
    written_as: str
    """The writer's own name."""
    type: pa.DataType | None
    """What it decodes to; None for what tamis never asks for."""
    logical: str | None = None
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """A writer's schema, made flat."""

    schema: str
    """As JSON: the same bytes, described as one flat record."""
    columns: Mapping[Path, AvroColumn] = field(default_factory=dict)
    least: int = 0
    """Bytes that the shortest record takes."""


def flat_layout(schema: Any, names: Mapping[str, int]) -> Layout:  # noqa: ANN401 - JSON
    """The layout of a record schema; names give ids to fields that carry none.

    Raises ValueError if the schema is no record, or is not one that Avro allows.
    """
    try:
        return _flat_layout(json.dumps(schema, sort_keys=True), tuple(sorted(names.items())))
    except RecursionError as error:
        raise ValueError("its schema is nested too deep") from error


@lru_cache(maxsize=64)
def _flat_layout(text: str, names: tuple[tuple[str, int], ...]) -> Layout:
    """Many manifests have one schema: work it out once."""
    builder = _Builder(dict(names))
    try:
        schema = json.loads(text)
        if schema["type"] != "record":
            raise ValueError("its schema is not a record")
        builder.record(schema, ())
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"its schema is not an Avro schema ({error!r})") from error
    flat = {"type": "record", "name": "entry", "fields": builder.fields}
    least = least_bytes(flat)
    if not least:
        raise ValueError("its records take no bytes")
    return Layout(json.dumps(flat), builder.columns, least)


class _Builder:
    """Walks a schema once, defining every named type anew where it is used."""

    def __init__(self, names: Mapping[str, int]) -> None:
        self._names = names
        self._defined: dict[str, Any] = {}
        self._count = 0
        self._visited = 0
        self.fields: list[dict[str, Any]] = []
        self.columns: dict[Path, AvroColumn] = {}

    def record(self, schema: Mapping[str, Any], parents: Path) -> None:
        """The record's fields as columns; those of records in it, too."""
        self._visit(len(parents))
        self._define(schema)
        for written in schema["fields"]:
            id_ = written.get("field-id", self._names.get(written["name"]))
            path = (*parents, int(id_)) if id_ is not None else (*parents, -1 - len(self.fields))
            type_ = (
                self._defined.get(written["type"], written["type"])
                if isinstance(written["type"], str)
                else written["type"]
            )
            if isinstance(type_, dict) and type_.get("type") == "record":
                self.record(type_, path)
                continue
            stripped = self._strip(type_, 0)
            name = f"c{len(self.fields)}"
            self.fields.append({"name": name, "type": stripped})
            plain, nullable = _without_null(type_)
            logical = plain.get("logicalType") if isinstance(plain, dict) else None
            arrow = _arrow(stripped)
            self.columns[path] = AvroColumn(name, path, str(written["name"]), arrow, logical, nullable)

    def _define(self, schema: Mapping[str, Any]) -> None:
        name = str(schema["name"])
        self._defined[name] = schema
        self._defined[name.rpartition(".")[2]] = schema
        if schema.get("namespace"):
            self._defined[f"{schema['namespace']}.{name}"] = schema

    def _strip(self, type_: Any, depth: int) -> Any:  # noqa: ANN401 - JSON
        """The type without documentation, ids, logical types and references."""
        self._visit(depth)
        match type_:
            case str(name):
                return self._strip(self._defined[name], depth + 1) if name in self._defined else name
            case list(choices):
                return [self._strip(choice, depth + 1) for choice in choices]
            case {"type": "array", "items": items}:
                stripped = self._strip(items, depth + 1)
                if not least_bytes(stripped):
                    # Any number of them takes no bytes: a decoder would count for years.
                    raise ValueError("its schema has a list of items that take no bytes")
                return {"type": "array", "items": stripped}
            case {"type": "map", "values": values}:
                return {"type": "map", "values": self._strip(values, depth + 1)}
            case {"type": "record", "fields": fields}:
                self._define(type_)
                stripped_fields = [
                    {"name": field["name"], "type": self._strip(field["type"], depth + 1)} for field in fields
                ]
                return {"type": "record", "name": self._fresh(), "fields": stripped_fields}
            case {"type": "fixed", "size": int(size)}:
                self._define(type_)
                return {"type": "fixed", "name": self._fresh(), "size": size}
            case {"type": "enum", "symbols": symbols}:
                self._define(type_)
                return {"type": "enum", "name": self._fresh(), "symbols": symbols}
            case {"type": inner}:
                return self._strip(inner, depth + 1)
        raise ValueError(f"its schema is not an Avro schema ({type_!r})")

    def _visit(self, depth: int) -> None:
        self._visited += 1
        if depth > _DEEPEST:
            raise ValueError("its schema is recursive")
        if self._visited > _MOST_TYPES:
            raise ValueError(f"its schema has more than {_MOST_TYPES} types")

    def _fresh(self) -> str:
        self._count += 1
        return f"t{self._count}"


def least_bytes(stripped: Any) -> int:  # noqa: ANN401 - JSON
    """The fewest bytes that a value of a type takes in Avro's encoding."""
    match stripped:
        case "null":
            return 0
        case "float":
            return 4
        case "double":
            return 8
        case [_, *_] as choices:
            return 1 + min(map(least_bytes, choices))
        case {"type": "record", "fields": fields}:
            return sum(least_bytes(field["type"]) for field in fields)
        case {"type": "fixed", "size": int(size)}:
            return max(size, 0)
    # Numbers, lengths, the number of a choice and the end of a list take a byte at least.
    return 1


def _without_null(type_: Any) -> tuple[Any, bool]:  # noqa: ANN401 - JSON
    """A union of null and one other type as that type."""
    if isinstance(type_, list):
        choices = [choice for choice in type_ if choice != "null"]
        return (choices[0] if len(choices) == 1 else type_), len(choices) < len(type_)
    return type_, False


def _arrow(stripped: Any) -> pa.DataType | None:  # noqa: ANN401 - JSON
    """What the decoder makes of the type; None for unions and whatever else manifests have no use for."""
    plain, _ = _without_null(stripped)
    match plain:
        case str(name):
            return _PRIMITIVES.get(name)
        case {"type": "fixed", "size": int(size)}:
            return pa.binary(size)
        case {"type": "array", "items": items}:
            inner = _arrow(items)
            return None if inner is None else pa.list_(pa.field("item", inner, _without_null(items)[1]))
        case {"type": "record", "fields": [_, *_] as fields}:
            children = [(field["name"], _arrow(field["type"]), _without_null(field["type"])[1]) for field in fields]
            if any(type_ is None for _, type_, _ in children):
                return None
            return pa.struct([pa.field(name, type_, nullable) for name, type_, nullable in children])
    return None
