"""Arrow arrays as keys, and where each key stands among the cuts of a set.

Law: the key of an array's element is the key that predicate/keys.py defines for that value; a rank counts the cuts
at or below it exactly, whatever the type. All is done for a whole column of files at once.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy import typing as npt
from pyarrow import types as pt

from tamis.predicate.arrays import SIGN_BIT, Int64s, Mask, UInt64s
from tamis.predicate.keys import INT64_MAX, LONG_DECIMAL_DIGITS, NAN_KEY, uses_bytes
from tamis.predicate.values import Cuts

__all__ = ["KeyArray", "Mask", "Ranks", "encode", "from_words", "mask_of", "ranks", "windows"]

Ranks = Int64s
Side = Literal["left", "right"]

FEW_CUTS = 8
"""Up to so many cuts, one comparison of the column with each cut beats a search of each value among the cuts."""
MANY_CUTS = 1 << 14
"""Beyond so many cuts, which no longer fit a processor's nearest cache, keys are sorted before they are searched."""
_PLAIN_INTS = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
WINDOW = 8
"""Bytes of a string that are compared as one 64-bit number."""


@dataclass(frozen=True, slots=True)
class KeyArray:
    """A key for each file: int64 numbers, or a large_binary array; what is not valid has no meaning."""

    keys: Int64s | pa.LargeBinaryArray
    valid: Mask

    def __len__(self) -> int:
        return len(self.valid)

    def take(self, rows: npt.NDArray[Any]) -> KeyArray:
        """The keys of these rows, in this order."""
        if isinstance(self.keys, np.ndarray):
            return KeyArray(self.keys[rows], self.valid[rows])
        return KeyArray(self.keys.take(pa.array(rows)), self.valid[rows])

    def keep(self, mask: Mask) -> KeyArray:
        """The same keys, valid only where mask is true as well."""
        return KeyArray(self.keys, self.valid & mask)

    def above(self, other: KeyArray) -> Mask:
        """Where both are valid and this key is the greater one."""
        if isinstance(self.keys, np.ndarray):
            return np.asarray(self.valid & other.valid & (self.keys > other.keys))
        greater = pc.fill_null(pc.greater(self.keys, other.keys), fill_value=False)
        return np.asarray(self.valid & other.valid & mask_of(greater))


def mask_of(array: pa.BooleanArray | pa.ChunkedArray) -> Mask:
    """An Arrow boolean array without nulls as a numpy one."""
    return np.asarray(array.to_numpy(zero_copy_only=False) if isinstance(array, pa.Array) else array.to_numpy())


def encode(array: pa.Array | pa.ChunkedArray, type_: pa.DataType) -> KeyArray:
    """The keys of an array whose values are of type_ or of a type that widens to it.

    Raises pa.ArrowInvalid or pa.ArrowNotImplementedError if a value does not fit type_.
    """
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
    valid = mask_of(array.is_valid())
    if pt.is_null(array.type):
        return _no_keys(len(array), type_)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pt.is_decimal128(type_):
        return _decimal_keys(array if array.type == type_ else array.cast(type_), valid)
    if uses_bytes(type_):
        return KeyArray(_as_binary(array), valid)
    if pt.is_floating(type_):
        return KeyArray(_float_keys(_numpy(array.cast(pa.float64()), np.float64)), valid)
    if pt.is_boolean(type_):
        return KeyArray(_numpy(array.cast(pa.int8()), np.int64), valid)
    if array.type != type_:
        array = array.cast(type_)
    return KeyArray(_numpy(array.view(_PLAIN_INTS[type_.bit_width]), np.int64), valid)


def ranks(keys: KeyArray, cuts: Cuts, side: Side) -> Ranks:
    """How many cuts lie at or below ("right"), or strictly below ("left"), each key; any number where not valid."""
    if not len(cuts):
        return np.zeros(len(keys), np.int64)
    if isinstance(keys.keys, np.ndarray):
        return _int_ranks(keys.keys, cuts, side)
    if len(cuts) <= FEW_CUTS:
        reached = pc.greater_equal if side == "right" else pc.greater
        counted = np.zeros(len(keys), np.int64)
        for cut in cuts:
            counted += mask_of(pc.fill_null(reached(keys.keys, pa.scalar(cut, pa.large_binary())), fill_value=False))
        return counted
    return _bytes_ranks(keys.keys, list(cuts), side)


def _int_ranks(keys: Int64s, cuts: Cuts, side: Side) -> Ranks:
    if len(cuts) > MANY_CUTS:
        # Neighbouring keys search neighbouring cuts: in order they find them in the cache.
        order = np.argsort(keys)
        placed = np.empty(len(keys), np.int64)
        placed[order] = np.searchsorted(cuts, keys[order], side)
        return placed
    if len(cuts) > FEW_CUTS:
        return np.searchsorted(cuts, keys, side)
    counted = np.zeros(len(keys), np.int64)
    for cut in cuts:
        counted += (keys >= cut) if side == "right" else (keys > cut)
    return counted


def _bytes_ranks(keys: pa.LargeBinaryArray, cuts: list[bytes], side: Side) -> Ranks:
    """Rank by 8 bytes at a time as one number, and compare whole strings only where that number ties.

    If the windows of two strings differ, the strings differ the same way: a shorter one is padded with zeros,
    and no byte is below zero. What all cuts have in common is stripped first, so that the window tells them apart.
    """
    prefix = _common_prefix(cuts[0], cuts[-1])
    window = windows(keys, len(prefix))
    cut_windows = windows(pa.array(cuts, pa.large_binary()), len(prefix))
    low = np.searchsorted(cut_windows, window, "left")
    ranked = np.searchsorted(cut_windows, window, "right")
    tied = low != ranked
    if prefix:
        stray = ~mask_of(pc.fill_null(pc.starts_with(keys, pattern=prefix), fill_value=True))
        over = mask_of(pc.fill_null(pc.greater(keys, pa.scalar(prefix, pa.large_binary())), fill_value=False))
        ranked = np.where(stray, np.where(over, len(cuts), 0), ranked)
        tied &= ~stray
    rows = np.flatnonzero(tied)
    if len(rows):
        encoded = keys.take(pa.array(rows)).dictionary_encode()
        search = bisect_right if side == "right" else bisect_left
        exact = [0 if value is None else search(cuts, value) for value in encoded.dictionary.to_pylist()]
        codes = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)
        ranked[rows] = np.array(exact or [0], np.int64)[codes]
    return np.asarray(ranked, np.int64)


def _common_prefix(first: bytes, last: bytes) -> bytes:
    """What the least and the greatest of sorted strings share, and so all between them."""
    size = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    return first[:size]


def windows(array: pa.LargeBinaryArray, start: int) -> UInt64s:
    """Eight bytes of each string from start on, as a big-endian number; zeros behind its end."""
    count = len(array)
    _, offset_buffer, data_buffer = array.buffers()
    if not count or data_buffer is None or not data_buffer.size:
        return np.zeros(count, np.uint64)
    offsets = np.frombuffer(offset_buffer, np.int64)[array.offset : array.offset + count + 1]
    data = np.frombuffer(data_buffer, np.uint8)
    taken = np.zeros((count, WINDOW), np.uint8)
    for byte in range(WINDOW):
        at = offsets[:-1] + start + byte
        within = at < offsets[1:]
        taken[within, byte] = data[at[within]]
    return taken.view(">u8").reshape(count).astype(np.uint64)


def _numpy(array: pa.Array, dtype: type[np.generic]) -> npt.NDArray[Any]:
    """Values as numpy, with zeros for nulls: their validity is kept apart."""
    if array.null_count:
        array = array.fill_null(0)
    return np.asarray(array.to_numpy(zero_copy_only=False).astype(dtype, copy=False))


def _as_binary(array: pa.Array) -> pa.LargeBinaryArray:
    if pt.is_fixed_size_binary(array.type):
        array = array.cast(pa.binary())
    return array.cast(pa.large_binary())


def _float_keys(values: npt.NDArray[np.float64]) -> Int64s:
    """float_key of every value at once."""
    bits = np.ascontiguousarray(values).view(np.int64)
    keys = np.where(bits >= 0, bits, -(bits & INT64_MAX))
    return np.where(np.isnan(values), NAN_KEY, keys)


def _decimal_keys(array: pa.Array, valid: Mask) -> KeyArray:
    """Unscaled values: the low word where 18 digits do, else 16 biased big-endian bytes."""
    words = np.frombuffer(array.buffers()[1], "<i8").reshape(-1, 2)[array.offset : array.offset + len(array)]
    if array.type.precision <= LONG_DECIMAL_DIGITS:
        return KeyArray(words[:, 0].copy(), valid)
    # Adding 2**127 to a two's complement number flips its sign bit, and nothing else.
    high, low = (words[:, word].astype(np.uint64) for word in (1, 0))
    return KeyArray(from_words(high ^ SIGN_BIT, low), valid)


def from_words(high: UInt64s, low: UInt64s) -> pa.LargeBinaryArray:
    """Keys of 16 bytes from two big-endian numbers of 8."""
    data = np.stack([high, low], axis=1).astype(">u8")
    offsets = np.arange(len(high) + 1, dtype=np.int64) * 16
    buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(data.tobytes())]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(high), buffers)


def _no_keys(count: int, type_: pa.DataType) -> KeyArray:
    keys = pa.nulls(count, pa.large_binary()) if uses_bytes(type_) else np.zeros(count, np.int64)
    return KeyArray(keys, np.zeros(count, np.bool_))
