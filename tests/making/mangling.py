"""Metadata in which one value is another: of JSON one of any kind, of Avro one that its field does not expect."""

from __future__ import annotations

import copy
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import fastavro
from hypothesis import strategies as st

__all__ = ["mangled"]

Place = tuple[int | str, ...]
DEEP: Final = "[" * 5000 + "]" * 5000
TEXTS: Final = (
    "",
    "x",
    "0",
    "-1",
    "NaN",
    "\0",
    "/",
    "..",
    "s3://b/k",
    "2024-13-45",
    "bucket[0]",
    "decimal(400,3)",
    "é",
)
NUMBERS: Final = (0, 1, 2, -1, 7, 2**31 - 1, -(2**31), 2**31, 2**53 + 1, 2**63 - 1, -(2**63))
ODD: Final = (
    *(None, True, False, *NUMBERS, 2**63, 10**400, 1.5, -0.0, float("nan"), float("inf"), *TEXTS, "a" * 5000),
    *([], {}, [None], [[]], {"a": 1}, {"": None}, "struct<a:int>", '{"a":'),
)
"""What may stand for a value of JSON."""
MARK: Final = "here stands what nobody can parse"


def mangled(data: st.DataObject, content: bytes) -> bytes:
    """The metadata file with one value changed; with one byte, if it is neither JSON nor Avro."""
    if content[:4] == b"Obj\1":
        return _avro(data, content)
    if content[:1] == b"{":
        lines = content.splitlines() if content.count(b"\n{") else [content]
        place = data.draw(st.integers(0, len(lines) - 1))
        return b"\n".join((*lines[:place], _json(data, lines[place]), *lines[place + 1 :]))
    place = data.draw(st.integers(0, len(content) - 1))
    return content[:place] + bytes([data.draw(st.integers(0, 255))]) + content[place + 1 :]


def _json(data: st.DataObject, line: bytes) -> bytes:
    document = json.loads(line)
    place = data.draw(st.sampled_from([one for one in _places(document) if one]))
    around = _at(document, place[:-1])
    match data.draw(st.sampled_from(["another", "none", "twice", "deep", "text"])):
        case "another":
            around[place[-1]] = data.draw(st.sampled_from(ODD))
        case "none":
            del around[place[-1]]
        case "twice":
            around[place[-1]] = copy.deepcopy(_at(document, data.draw(st.sampled_from([*_places(document)]))))
        case "deep":
            around[place[-1]] = MARK
        case _:
            around[place[-1]] = json.dumps(around[place[-1]])
    return json.dumps(document).replace(f'"{MARK}"', DEEP).encode()


def _avro(data: st.DataObject, content: bytes) -> bytes:
    reader = fastavro.reader(io.BytesIO(content))
    records: list[Any] = [*reader]
    schema = _nullable({name: part for name, part in dict(reader.writer_schema).items() if name[:2] != "__"})
    metadata = {key: value for key, value in reader.metadata.items() if not key.startswith("avro.")}
    if not records:
        return content
    place = data.draw(st.sampled_from([one for one in _places(records) if one]))
    around = _at(records, place[:-1])
    old = around[place[-1]]
    around[place[-1]] = data.draw(st.sampled_from(_others(old)))
    stream = io.BytesIO()
    try:
        fastavro.writer(stream, schema, [one for one in records if one], metadata=metadata)
    except (ValueError, TypeError, OverflowError, AttributeError):  # of a type that the field cannot have
        return content[: data.draw(st.integers(0, len(content) - 1))]
    return stream.getvalue()


def _others(old: object) -> Sequence[object]:
    match old:
        case bool():
            return (None, not old)
        case int():
            return (None, *NUMBERS, old + 1, old - 1, -old)
        case str():
            return (None, *TEXTS, old + "x", old[:-1], f"file:{old}")
        case bytes():
            return (None, b"", old[:-1], old + b"\0", b"\xff" * len(old), old[::-1], b"\x7f" * 40)
        case list():
            return (None, [], old * 2, old[:-1], old[::-1])
    return (None, 0, "x", b"", True)


def _nullable(schema: Any) -> Any:  # noqa: ANN401 - an Avro schema
    """The schema with all fields of records nullable."""
    if isinstance(schema, list):
        return [_nullable(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {**schema}
    if schema["type"] == "record":
        found["fields"] = [_field(one) for one in schema["fields"]]
    elif "items" in schema:
        found["items"] = _nullable(schema["items"])
    return found


def _field(field: Mapping[str, Any]) -> dict[str, Any]:
    type_ = _nullable(field["type"])
    rest = {name: part for name, part in field.items() if name != "default"}
    return rest | {"type": type_ if isinstance(type_, list) else ["null", type_]}


def _places(value: object, before: Place = ()) -> Iterator[Place]:
    yield before
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inside:
        yield from _places(part, (*before, key))


def _at(value: Any, place: Place) -> Any:  # noqa: ANN401 - parsed JSON or Avro
    for key in place:
        value = value[key]
    return value
