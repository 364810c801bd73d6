"""The actions of commits, in columns.

A commit is a text with an action on each line. File actions are many and become Arrow tables at once; the others
(protocol, metadata, domains) are few, and are found by their names and parsed one by one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.json as pj

from tamis.formats.errors import shown, unreadable

__all__ = ["VECTOR", "check_names", "check_spelling", "file_actions", "map_of", "named_actions"]

VECTOR: Final = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
"""Where a deletion vector is, and how many rows it removes."""
_NAME: Final = re.compile(rb'^[ \t\r]*\{[ \t\r]*"([^"]*)"', re.MULTILINE)
_NAMES: Final = frozenset(
    [
        "add",
        "remove",
        "cdc",
        "metaData",
        "protocol",
        "txn",
        "commitInfo",
        "domainMetadata",
        "sidecar",
        "checkpointMetadata",
    ]
)
_BLOCK: Final = 16 << 20
_GREATEST_BLOCK: Final = (1 << 31) - 1


def _schema(partition_columns: Sequence[str]) -> pa.Schema:
    add = [("path", pa.string()), ("size", pa.int64()), ("modificationTime", pa.int64()), ("stats", pa.string())]
    add += [("baseRowId", pa.int64()), ("defaultRowCommitVersion", pa.int64()), ("clusteringProvider", pa.string())]
    add += [("deletionVector", VECTOR)]
    if partition_columns:
        add.append(("partitionValues", pa.struct([(name, pa.string()) for name in dict.fromkeys(partition_columns)])))
    remove = [("path", pa.string()), ("deletionVector", VECTOR)]
    return pa.schema([("add", pa.struct(add)), ("remove", pa.struct(remove))])


def file_actions(texts: Mapping[str, bytes], partition_columns: Sequence[str]) -> pa.Table:
    """The actions of these commits, in their order: a row for each line, with `add` and `remove`, null where not.

    Partition values are a struct of these columns, by their physical names: what is not in the map is null, as a
    missing key is. UnreadableMetadataError names the file at fault.
    """
    schema = _schema(partition_columns)
    try:
        return _parsed(b"\n".join(texts.values()), schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError):
        # What Arrow does not take, such as a size of 1e3 or a partition value that is a number, or what is no JSON.
        return pa.concat_tables([schema.empty_table(), *(_one(name, text, schema) for name, text in texts.items())])


def _parsed(text: bytes, schema: pa.Schema) -> pa.Table:
    if not text.strip():
        return schema.empty_table()
    parse = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    for block in (_BLOCK, min(len(text) + 1, _GREATEST_BLOCK)):
        try:
            found = pj.read_json(pa.BufferReader(text), pj.ReadOptions(block_size=block), parse)
        except pa.ArrowInvalid as error:
            if "straddl" in str(error) and block == _BLOCK < len(text):
                continue  # a line is longer than a block
            raise
        found.validate(full=True)  # text that is no UTF-8
        return found
    raise pa.ArrowInvalid("a line is too long")


def _one(name: str, text: bytes, schema: pa.Schema) -> pa.Table:
    try:
        return _parsed(text, schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError):
        rows = [_row(name, number, line, schema) for number, line in _lines(text)]
        try:
            return pa.Table.from_pylist(rows, schema)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError) as error:
            raise unreadable(
                name, f"an action has a value of another type than the protocol says ({error})"
            ) from error


def _lines(text: bytes) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(text.split(b"\n"), 1):
        if line.strip():
            yield number, line


def _row(name: str, number: int, line: bytes, schema: pa.Schema) -> dict[str, Any]:
    action = _action(name, number, line)
    for kind in schema.names:
        if not isinstance(action.get(kind), dict | type(None)):
            raise unreadable(name, f"line {number} has an {kind} action that is none")
    return {one.name: _fitted(action.get(one.name), one.type) for one in schema}


def _action(name: str, number: int, line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise unreadable(name, f"line {number} is no JSON ({error})") from error
    if not isinstance(found, dict):
        raise unreadable(name, f"line {number} is no action, but {type(found).__name__}")
    return found


def _fitted(value: Any, type_: pa.DataType) -> Any:  # noqa: ANN401 - JSON
    """A value as its type has it: texts of numbers and booleans, and whole numbers that are written as floats."""
    if value is None:
        return None
    if pa.types.is_struct(type_):
        return (
            {one.name: _fitted(value.get(one.name), one.type) for one in type_} if isinstance(value, dict) else value
        )
    if pa.types.is_string(type_) and isinstance(value, bool | int | float):
        return json.dumps(value)
    if pa.types.is_integer(type_) and isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def named_actions(texts: Mapping[str, bytes], names: Sequence[str]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The actions of these names, in the commits' order: the commit, the name, and what the action says."""
    needles = [f'"{name}"'.encode() for name in names]
    for location, text in texts.items():
        places: set[int] = set()
        for needle in needles:
            at = text.find(needle)
            while at >= 0:
                places.add(text.rfind(b"\n", 0, at) + 1)
                end = text.find(b"\n", at)
                at = text.find(needle, end) if end >= 0 else -1
        for start in sorted(places):
            end = text.find(b"\n", start)
            line = text[start : end if end >= 0 else len(text)]
            number = text.count(b"\n", 0, start) + 1
            action = _action(location, number, line)
            for name in names:
                if action.get(name) is None:
                    continue
                if not isinstance(action[name], dict):
                    raise unreadable(location, f"line {number} has a {name} action that is none")
                yield location, name, action[name]


def check_names(texts: Mapping[str, bytes]) -> None:
    """UnreadableMetadataError if an action's name is one character off a name of the protocol.

    Actions that are unknown are none of ours, and are passed over. But where a bit has flipped in `add` or `remove`,
    that would lose a file in silence, or bring deleted rows back.
    """
    for location, text in texts.items():
        check_spelling(location, [name.decode(errors="replace") for name in set(_NAME.findall(text))])


def check_spelling(location: str, names: Iterable[str]) -> None:
    """The same, of the names of the actions in a file."""
    for name in sorted(set(names) - _NAMES):
        for known in sorted(_NAMES):
            if len(name) == len(known) and sum(a != b for a, b in zip(name, known, strict=True)) == 1:
                raise unreadable(location, f"it has an action {shown(name)}, where {known} must be meant")


def map_of(struct: pa.StructArray) -> pa.MapArray:
    """A map of texts for each row of a struct of texts: every field, those that are null with a null.

    Null where the struct is null, which is no map without entries.
    """
    names, count = [one.name for one in struct.type], len(struct)
    width = len(names)
    if not width:
        return pa.MapArray.from_arrays(
            pa.array(np.zeros(count + 1, np.int32)), pa.array([], pa.string()), pa.array([], pa.string())
        )
    # Fields one after another, then row by row: value f of row r lies at f * count + r.
    order = (np.arange(width)[None, :] * count + np.arange(count)[:, None]).reshape(-1)
    items = pa.chunked_array(struct.flatten(), pa.string()).combine_chunks().take(pa.array(order))
    keys = pa.array(names, pa.string()).take(pa.array(np.tile(np.arange(width), count)))
    starts = pa.array(np.arange(count + 1, dtype=np.int32) * width)
    return pa.MapArray.from_arrays(starts, keys, items, mask=struct.is_null() if struct.null_count else None)
