"""Avro records as Python values, by the schema that they were written with: nothing is left out, nothing is guessed.

For the few records that have to be carried on whole, fields included that tamis does not know: a snapshot's list of
manifests. What is decoded here and encoded again by the same schema has the same meaning, byte for byte but for how a
list is cut into blocks.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Final

from tamis.formats.avro.container import AvroFile
from tamis.formats.errors import unreadable
from tamis.formats.storage.inflate import TooLarge, inflate, inflation_limit, too_large

__all__ = ["encode_record", "read_records"]

_FLOATS: Final = {"float": "<f", "double": "<d"}


def read_records(file: AvroFile) -> list[dict[str, Any]]:
    """Every record of a file. UnreadableMetadataError with the block at which one fails."""
    room = limit = inflation_limit()
    named: dict[str, Any] = {}
    _collect(file.schema, named)
    found: list[dict[str, Any]] = []
    for begin, at, stop, count in file.blocks:
        try:
            data = bytes(inflate(file.codec, memoryview(file.data)[at:stop], room))
            reader = _Reader(data, named)
            found += [reader.value(file.schema) for _ in range(count)]
        except TooLarge:
            raise too_large(file.path, limit, begin) from None
        except (ValueError, IndexError, struct.error, RecursionError) as error:
            raise unreadable(file.path, f"a record cannot be read: {error}", begin) from error
        if reader.at != len(data):
            raise unreadable(file.path, f"the block has {len(data) - reader.at} bytes too many", begin)
        room -= len(data)
    return found


def encode_record(value: Any, schema: Any, named: Mapping[str, Any] | None = None) -> bytes:  # noqa: ANN401 - JSON
    """A value by an Avro schema. ValueError if it does not fit."""
    if named is None:
        named = {}
        _collect(schema, named)
    out = bytearray()
    _put(out, value, schema, named)
    return bytes(out)


def _collect(schema: Any, named: dict[str, Any]) -> None:  # noqa: ANN401 - JSON
    """The types that have a name, by it: a schema may refer to them later."""
    match schema:
        case list():
            for part in schema:
                _collect(part, named)
        case {"type": ("record" | "enum" | "fixed"), "name": str(name)}:
            named[name] = schema
            for part in schema.get("fields", ()):
                _collect(part["type"], named)
        case {"type": "array", "items": inside} | {"type": "map", "values": inside}:
            _collect(inside, named)
        case {"type": (dict() | list()) as inside}:
            _collect(inside, named)


class _Reader:
    """A place in the records' bytes that moves on."""

    __slots__ = ("at", "data", "named")

    def __init__(self, data: bytes, named: Mapping[str, Any]) -> None:
        self.data, self.at, self.named = data, 0, named

    def number(self) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:  # noqa: PLR2004 - the bit that says: more bytes follow
                return (value >> 1) ^ -(value & 1)
            shift += 7
            if shift > 63:  # noqa: PLR2004 - bits of a long
                raise ValueError("a number is longer than 64 bits")

    def take(self, size: int) -> bytes:
        if size < 0 or self.at + size > len(self.data):
            raise ValueError("it ends inside a value")
        self.at += size
        return self.data[self.at - size : self.at]

    def value(self, schema: Any) -> Any:  # noqa: ANN401 - a type of Avro's each
        match schema:
            case list():
                branch = self.number()
                if not 0 <= branch < len(schema):
                    raise ValueError(f"a union has no branch {branch}")
                return self.value(schema[branch])
            case {"type": "record", "fields": fields}:
                return {part["name"]: self.value(part["type"]) for part in fields}
            case {"type": "array", "items": items}:
                return [self.value(items) for _ in self._blocks()]
            case {"type": "map", "values": values}:
                return {self.take(self.number()).decode(): self.value(values) for _ in self._blocks()}
            case {"type": "fixed", "size": int(size)}:
                return self.take(size)
            case {"type": "enum", "symbols": symbols}:
                return symbols[self.number()]
            case {"type": inside}:
                return self.value(inside)
            case "null":
                return None
            case "boolean":
                return self.take(1) != b"\0"
            case "int" | "long":
                return self.number()
            case "float" | "double":
                code = _FLOATS[schema]
                return struct.unpack(code, self.take(struct.calcsize(code)))[0]
            case "bytes":
                return self.take(self.number())
            case "string":
                return self.take(self.number()).decode()
            case str() if schema in self.named:
                return self.value(self.named[schema])
        raise ValueError(f"{schema!r} is no type of Avro's")

    def _blocks(self) -> Any:  # noqa: ANN401 - an iterator of nothing in particular
        while count := self.number():
            if count < 0:
                count = -count
                self.number()  # the block's length in bytes
            yield from range(count)


def _put(out: bytearray, value: Any, schema: Any, named: Mapping[str, Any]) -> None:  # noqa: ANN401
    match schema:
        case list():
            branch = _branch(value, schema)
            _number(out, branch)
            _put(out, value, schema[branch], named)
        case {"type": "record", "fields": fields}:
            for part in fields:
                try:
                    _put(out, value.get(part["name"]), part["type"], named)
                except (ValueError, TypeError, AttributeError) as error:
                    raise ValueError(f"{part['name']}: {error}") from error
        case {"type": "array", "items": items}:
            if value:
                _number(out, len(value))
                for one in value:
                    _put(out, one, items, named)
            _number(out, 0)
        case {"type": "map", "values": values}:
            if value:
                _number(out, len(value))
                for key, one in value.items():
                    _put(out, key, "string", named)
                    _put(out, one, values, named)
            _number(out, 0)
        case {"type": "fixed", "size": int(size)}:
            if len(value) != size:
                raise ValueError(f"{len(value)} bytes, not {size}")
            out += value
        case {"type": "enum", "symbols": symbols}:
            _number(out, symbols.index(value))
        case {"type": inside}:
            _put(out, value, inside, named)
        case _:
            _put_leaf(out, value, schema, named)


def _put_leaf(out: bytearray, value: Any, schema: Any, named: Mapping[str, Any]) -> None:  # noqa: ANN401 - JSON
    if value is None and schema != "null":
        raise ValueError(f"nothing, where Avro's {schema} belongs")
    match schema:
        case "null":
            pass
        case "boolean":
            out.append(bool(value))
        case "int" | "long":
            _number(out, value)
        case "float" | "double":
            out += struct.pack(_FLOATS[schema], value)
        case "bytes" | "string":
            data = value.encode() if isinstance(value, str) else value
            _number(out, len(data))
            out += data
        case str() if schema in named:
            _put(out, value, named[schema], named)
        case _:
            raise ValueError(f"{schema!r} is no type of Avro's")


def _branch(value: Any, union: list[Any]) -> int:  # noqa: ANN401 - JSON
    """Which type of a union the value has; null, or the first other one."""
    if value is None:
        return union.index("null")
    others = [place for place, part in enumerate(union) if part != "null"]
    if len(others) != 1:
        raise ValueError("a union of several types cannot be told apart")
    return others[0]


def _number(out: bytearray, value: int) -> None:
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"{value} has more than 64 bits")
    rest = (value << 1) ^ (value >> 63)
    while rest > 0x7F:  # noqa: PLR2004 - seven bits a byte
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
