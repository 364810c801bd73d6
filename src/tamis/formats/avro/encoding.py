"""Arrow columns to Avro records, a whole column at a time.

Law: what comes out are the bytes that Avro's specification defines for each row by the schema, one row after the
other. A column gives a run of bytes for each row; runs of several columns are laid side by side, row by row:

    sizes [1, 2]  data a bb    beside    sizes [2, 0]  data xx    is    sizes [3, 2]  data axx bb

Records, lists, optional values and texts are all made of that one step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy import typing as npt
from pyarrow import types as pt

__all__ = ["Runs", "encode"]

Sizes = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

_MOST_VARINT: Final = 10
_NULL: Final = "null"
_FLOATS: Final = {"float": "<f4", "double": "<f8"}


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """A run of bytes for each row: how long each is, and all of them one after the other."""

    sizes: Sizes
    data: Bytes

    @classmethod
    def of_width(cls, count: int, width: int, data: Bytes) -> Runs:
        """Runs that are all equally long."""
        return cls(np.full(count, width, np.int64), data)


def encode(array: pa.Array, schema: Any) -> Runs:  # noqa: ANN401 - JSON
    """The rows of an array by an Avro schema. ValueError for a null where the schema has none, or an unknown type."""
    if isinstance(schema, list):
        return _optional(array, schema)
    if array.null_count:
        raise ValueError(f"a null where Avro's {_name(schema)} allows none")
    match schema:
        case {"type": "record", "fields": fields}:
            parts = [encode(array.field(part["name"]), part["type"]) for part in fields]
            return _beside(parts, len(array))
        case {"type": "array", "items": items}:
            return _listed(array, items)
        case {"type": "fixed", "size": int(size)}:
            return _fixed(array, size)
        case {"type": (str() | dict() | list()) as inside}:
            return encode(array, inside)
    return _leaf(array, schema)


def _leaf(array: pa.Array, name: object) -> Runs:
    match name:
        case "int" | "long":
            return _numbers(_integers(array))
        case "boolean":
            truths = array.cast(pa.uint8()).to_numpy(zero_copy_only=False)
            return Runs.of_width(len(array), 1, np.asarray(truths, np.uint8))
        case "float" | "double":
            numbers = np.ascontiguousarray(array.to_numpy(zero_copy_only=False), _FLOATS[name])
            return Runs.of_width(len(array), numbers.itemsize, numbers.view(np.uint8))
        case "string" | "bytes":
            pieces = _pieces(array)
            return _beside([_numbers(pieces.sizes), pieces], len(array))
    raise ValueError(f"no way to write Avro's {_name(name)}")


def _optional(array: pa.Array, schema: Sequence[Any]) -> Runs:
    """A union of null and one type: which of the two it is, then the value if there is one."""
    kinds = [part for part in schema if part != _NULL]
    if len(kinds) != 1 or len(schema) != 2:  # noqa: PLR2004 - null, and one type
        raise ValueError(f"no way to write Avro's union of {', '.join(map(_name, schema))}")
    null = schema.index(_NULL)
    valid = np.asarray(array.is_valid().to_numpy(zero_copy_only=False), np.bool_)
    # Zigzag: branch 0 is the byte 0, branch 1 the byte 2.
    branch = Runs.of_width(len(array), 1, np.where(valid, 2 * (1 - null), 2 * null).astype(np.uint8))
    if pt.is_null(array.type) or not valid.any():
        return branch
    there = encode(array.filter(pa.array(valid)) if array.null_count else array, kinds[0])
    sizes = np.zeros(len(array), np.int64)
    sizes[valid] = there.sizes
    return _beside([branch, Runs(sizes, there.data)], len(array))


def _listed(array: pa.Array, items: Any) -> Runs:  # noqa: ANN401 - JSON
    """One block of as many items as there are, then the 0 that ends a list; an empty list is that 0 alone."""
    offsets = array.offsets.to_numpy().astype(np.int64)
    values = array.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0])) if len(offsets) else array.values
    inside = encode(values, items)
    counts = np.diff(offsets)
    ends = np.concatenate([[0], np.cumsum(inside.sizes)])[offsets - offsets[0]]
    heads = _numbers(counts[counts > 0])
    sizes = np.zeros(len(array), np.int64)
    sizes[counts > 0] = heads.sizes
    last = Runs.of_width(len(array), 1, np.zeros(len(array), np.uint8))
    return _beside([Runs(sizes, heads.data), Runs(np.diff(ends), inside.data), last], len(array))


def _beside(parts: Sequence[Runs], count: int) -> Runs:
    """The runs of every part laid side by side, row by row."""
    if len(parts) == 1:
        return parts[0]
    sizes = np.zeros(count, np.int64)
    for part in parts:
        sizes = sizes + part.sizes
    found = np.empty(int(sizes.sum()), np.uint8)
    at = np.cumsum(sizes) - sizes
    for part in parts:
        if len(part.data):
            begins = np.cumsum(part.sizes) - part.sizes
            found[np.repeat(at - begins, part.sizes) + np.arange(len(part.data))] = part.data
        at = at + part.sizes
    return Runs(sizes, found)


def _numbers(values: Sizes) -> Runs:
    """Zigzag, then seven bits a byte, the lowest first; all bytes but the last say that more follow."""
    zigzag = ((values << 1) ^ (values >> 63)).view(np.uint64)
    most = int(zigzag.max(initial=0)).bit_length()
    width = min(max(1, -(-most // 7)), _MOST_VARINT)
    shifts = np.arange(width, dtype=np.uint64) * np.uint64(7)
    groups = zigzag[:, None] >> shifts
    used = groups > 0
    used[:, 0] = True
    bytes_ = (groups & np.uint64(0x7F)).astype(np.uint8)
    bytes_[:, :-1] |= np.where(used[:, 1:], np.uint8(0x80), np.uint8(0))
    return Runs(used.sum(axis=1).astype(np.int64), bytes_[used])


def _integers(array: pa.Array) -> Sizes:
    """Whole numbers, and what is stored as one: days, microseconds."""
    kind = array.type
    if pt.is_date32(kind) or pt.is_time32(kind):
        array = array.view(pa.int32())
    elif pt.is_timestamp(kind) or pt.is_time64(kind):
        array = array.view(pa.int64())
    elif not pt.is_integer(kind):
        raise ValueError(f"{kind} is no whole number to Avro")
    return np.asarray(array.to_numpy(zero_copy_only=False), np.int64)


def _pieces(array: pa.Array) -> Runs:
    wide = array.cast(pa.large_binary())
    _, offsets_, data = wide.buffers()
    offsets = np.frombuffer(offsets_, np.int64)[wide.offset : wide.offset + len(wide) + 1]
    every = np.frombuffer(data if data is not None else b"", np.uint8)
    first, last = (int(offsets[0]), int(offsets[-1])) if len(offsets) else (0, 0)
    return Runs(np.diff(offsets), every[first:last])


def _fixed(array: pa.Array, size: int) -> Runs:
    """Bytes of one length; decimals as their unscaled value, the highest byte first."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        array, kind = array.storage, kind.storage_type
    if pt.is_decimal128(kind):
        words = np.frombuffer(array.buffers()[1], np.uint8)[16 * array.offset : 16 * (array.offset + len(array))]
        rows = words.reshape(-1, 16)[:, ::-1][:, 16 - size :]
    elif pt.is_fixed_size_binary(kind) and kind.byte_width == size:
        rows = np.frombuffer(array.buffers()[1], np.uint8)[size * array.offset : size * (array.offset + len(array))]
    else:
        raise ValueError(f"{kind} is not of {size} bytes")
    return Runs.of_width(len(array), size, np.ascontiguousarray(rows).reshape(-1))


def _name(schema: object) -> str:
    return str(schema.get("name", schema.get("type"))) if isinstance(schema, dict) else str(schema)
