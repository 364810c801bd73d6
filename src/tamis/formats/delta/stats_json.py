"""The statistics strings of a log's Add actions, read as columns.

Law: a string, or a value in it, that cannot be read is lost alone: never its neighbours', never with a guess.

All strings are read by Arrow's JSON parser at once, with the wanted fields alone. Each is wrapped, `{"s":...}`, and
stands on a line of its own. So whatever the string is, at the end of each line the parser is between two objects, or
it fails: behind the closing brace the next line's `{` is allowed nowhere else. Every line then has an object or more,
and as many rows as lines mean that each line has one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
from pyarrow import types as pt

from tamis.predicate.arrays import Mask
from tamis.sieve.order import mask_of

__all__ = ["StatsRead", "read_stats"]

AT_ONCE: Final = 1 << 17
"""Strings that are copied and parsed at a time: some tens of megabytes, enough for every core."""
BLOCKS: Final = (8192, 256)
"""What cannot be read at once is read in blocks of so many strings, and in smaller ones; then string by string."""
_LEAST_BLOCK: Final = 4 << 20
"""Bytes that a thread parses at a time."""
_NOT_NUMBERS: Final = r':\s*"(?:NaN|[+-]?Inf(?:inity)?)"(\s*[,}])'
"""Floats that JSON does not have. In a JSON string its quotes would have backslashes before them."""
_UNQUOTED: Final = r":null\1"


@dataclass(frozen=True, slots=True)
class StatsRead:
    """What was read of each string, and where something in it could not be."""

    values: pa.StructArray
    failed: Mask


def read_stats(texts: pa.Array, type_: pa.StructType, *, floats: bool) -> StatsRead:
    """The fields of type_ in each string, null where there is none. floats: some of them are floats.

    NaN and infinities, which are written as texts, become null: bounds that say nothing.
    """
    given = mask_of(texts.is_valid())
    lines = texts.drop_null().cast(pa.large_string()) if not given.all() else texts.cast(pa.large_string())
    if floats:
        odd = mask_of(pc.match_substring_regex(lines, r'"(?:NaN|[+-]?Inf(?:inity)?)"')) if len(lines) else given
        if odd.any():
            plain = pc.replace_substring_regex(lines, _NOT_NUMBERS, _UNQUOTED)
            lines = pc.if_else(pa.array(odd), plain, lines)
    parts = [part for start in range(0, len(lines), AT_ONCE) for part in _read(lines.slice(start, AT_ONCE), type_, 0)]
    values = pa.concat_arrays([part.values for part in parts] or [pa.nulls(0, type_)])
    failed = np.concatenate([part.failed for part in parts]) if parts else np.zeros(0, np.bool_)
    if given.all():
        return StatsRead(values, failed)
    places = np.where(given, np.cumsum(given) - 1, 0)
    spread = np.zeros(len(texts), np.bool_)
    spread[given] = failed
    return StatsRead(values.take(pa.array(places, mask=~given)), spread)


def _read(lines: pa.Array, type_: pa.StructType, level: int) -> Iterator[StatsRead]:
    if not len(lines):
        return
    found = _parsed(lines, type_)
    if found is not None:
        yield StatsRead(found, np.zeros(len(lines), np.bool_))
    elif level < len(BLOCKS):
        for start in range(0, len(lines), BLOCKS[level]):
            yield from _read(lines.slice(start, BLOCKS[level]), type_, level + 1)
    else:
        yield _read_each(lines, type_)


def _parsed(lines: pa.Array, type_: pa.StructType) -> pa.StructArray | None:
    """All strings at once; None if one of them cannot be read."""
    begin, end, between = (pa.scalar(part, pa.large_string()) for part in ('{"s":', "}\n", ""))
    wrapped = pc.binary_join_element_wise(begin, lines, end, between)
    _, offsets, data = wrapped.buffers()
    ends = np.frombuffer(offsets, np.int64)[wrapped.offset : wrapped.offset + len(wrapped) + 1]
    block = min(max(_LEAST_BLOCK, int(np.diff(ends).max()) + 1), (1 << 31) - 1)
    source = pa.BufferReader(data.slice(int(ends[0]), int(ends[-1] - ends[0])))
    options = pj.ParseOptions(explicit_schema=pa.schema([("s", type_)]), unexpected_field_behavior="ignore")
    try:
        found = pj.read_json(source, pj.ReadOptions(block_size=block), options)
    except pa.ArrowInvalid:
        return None
    if found.num_rows != len(lines):
        return None
    column = found.column("s")
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _read_each(lines: pa.Array, type_: pa.StructType) -> StatsRead:
    """The strings one by one, and of each what fits: few, since a whole table is hardly ever damaged."""
    failed = np.zeros(len(lines), np.bool_)
    cleaned: list[str] = []
    for row, line in enumerate(lines.cast(pa.large_binary()).to_pylist()):
        misfits: list[object] = []
        try:
            text = line.decode()  # of a damaged checkpoint, it may be no UTF-8
            document = json.loads(text, object_pairs_hook=_once, parse_float=Decimal, parse_constant=_no_constant)
            kept = _fitting(document, type_, misfits)
        except (ValueError, RecursionError) as error:
            misfits.append(error)
            kept = None
        failed[row] = bool(misfits)
        cleaned.append(json.dumps(kept))
    found = _parsed(pa.array(cleaned, pa.large_string()), type_)
    if found is None:  # what Python reads and Arrow does not: none is known
        return StatsRead(pa.nulls(len(lines), type_), np.ones(len(lines), np.bool_))
    return StatsRead(found, failed)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise ValueError("a key stands twice")
    return document


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _fitting(value: object, type_: pa.DataType, misfits: list[object]) -> object:
    """The value if it is one of the type, as Arrow reads it; None, and a misfit, if it is not."""
    if value is None:
        return None
    match value:
        case dict() if pt.is_struct(type_):
            return {part.name: _fitting(value.get(part.name), part.type, misfits) for part in type_}
        case bool() if pt.is_boolean(type_):
            return value
        case str() if pt.is_string(type_) and _writable(value):
            return value
        case int() | Decimal() if not isinstance(value, bool) and _is_number(value, type_):
            return str(value) if pt.is_decimal(type_) else float(value) if pt.is_floating(type_) else int(value)
        case str() if pt.is_decimal(type_) and _is_decimal(value, type_):
            return value
    misfits.append(value)
    return None


def _writable(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_number(value: int | Decimal, type_: pa.DataType) -> bool:
    if pt.is_decimal(type_):
        return _is_decimal(str(value), type_)
    if pt.is_floating(type_):
        return abs(Decimal(value)) < Decimal("1e38" if pt.is_float32(type_) else "1e308")
    if pt.is_integer(type_) and isinstance(value, int):
        return bool(-(1 << type_.bit_width - 1) <= value < 1 << type_.bit_width - 1)
    return False


def _is_decimal(text: str, type_: pa.Decimal128Type) -> bool:
    try:
        number = Decimal(text)
        pa.scalar(number, type_)
    except (InvalidOperation, pa.ArrowInvalid, pa.ArrowTypeError):
        return False
    return number.is_finite()
