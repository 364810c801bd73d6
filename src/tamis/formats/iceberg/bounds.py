"""Iceberg's single-value binary encoding, decoded for a whole column of files at once.

A bound may have been written when the column was narrower: an int for what is a long by now, a float for a double,
a date for a timestamp. Bytes that are no value of the column's type, or of one that it can have grown from, say
nothing: they become null.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy import typing as npt
from pyarrow import types as pt

from tamis.predicate.arrays import Int64s, Mask, UInt64s
from tamis.predicate.keys import INT64_MAX
from tamis.predicate.type_names import is_text
from tamis.predicate.units import DAY_SECONDS, PER_SECOND

__all__ = ["MapColumn", "decode_values"]


_DECIMAL_BYTES: Final = 16
_DAY: Final = {unit: DAY_SECONDS * PER_SECOND[unit] for unit in ("us", "ns")}
_MOST_DAYS: Final = {unit: INT64_MAX // size for unit, size in _DAY.items()}


@dataclass(frozen=True, slots=True)
class MapColumn:
    """A map from field ids to values for each file, as manifests store it: a list of keys and values."""

    count: int
    keys: Int64s
    values: pa.Array
    ends: Int64s
    """Where each file's entries end; they begin where those of the file before end."""
    first: int
    present: Mask
    """Which files have the map at all."""

    @classmethod
    def of(cls, column: pa.ListArray) -> MapColumn:
        """From list<struct<key, value>>. What has no key is nobody's."""
        offsets = column.offsets.to_numpy()
        keys, values = column.values.flatten()
        return cls(
            len(column),
            np.asarray(keys.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)),
            values,
            np.asarray(offsets[1:], np.int64),
            int(offsets[0]) if len(offsets) else 0,
            np.asarray(column.is_valid().to_numpy(zero_copy_only=False)),
        )

    def indices(self, field_id: int) -> Int64s:
        """Where each file's entry for the field is among values; -1 if it has none, or more than one."""
        last = int(self.ends[-1]) if self.count else 0
        matching = np.flatnonzero(self.keys[self.first : last] == field_id) + self.first
        one_each = (
            len(matching) == self.count and (matching < self.ends).all() and (matching[1:] >= self.ends[:-1]).all()
        )
        if one_each and self.present.all():
            return np.asarray(matching, np.int64)  # as most tables have it: no need to search
        files = np.searchsorted(self.ends, matching, "right")
        indices = np.full(self.count, -1, np.int64)
        indices[files] = matching
        twice = files[1:][files[1:] == files[:-1]]
        indices[twice] = -1
        indices[~self.present] = -1
        return indices

    def numbers(self, field_id: int) -> pa.Array:
        """The field's count in each file; null if it has none."""
        indices = self.indices(field_id)
        return self.values.take(pa.array(indices, mask=indices < 0))

    def bounds(self, field_id: int, type_: pa.DataType) -> pa.Array:
        """The field's bound in each file, as type_; null where there is none or where it cannot be read."""
        return decode_values(self.values, self.indices(field_id), type_)


def decode_values(values: pa.Array, indices: Int64s, type_: pa.DataType) -> pa.Array:
    """The values of those indices of a binary array, as type_; null where the index is negative.

    Strings that are no UTF-8 stay binary: they compare byte by byte all the same.
    """
    bits = _Bits.of(values, indices)
    if pt.is_boolean(type_):
        bytes_, ok = bits.read("u1")
        return pa.array(bytes_ != 0, mask=~(ok & (bytes_ <= 1)))
    if pt.is_decimal128(type_):
        return _decimals(bits, type_)
    if pt.is_integer(type_) or pt.is_floating(type_) or pt.is_temporal(type_):
        return _numbers(bits, type_)
    if type_ == pa.uuid() or pt.is_fixed_size_binary(type_):
        return _fixed(bits, type_)
    if is_text(type_) or pt.is_binary(type_):
        raw = values.take(pa.array(indices, mask=indices < 0))
        return _as_text(raw) if is_text(type_) else raw
    return pa.nulls(len(indices), type_)


@dataclass(frozen=True, slots=True)
class _Bits:
    """Pieces of one buffer: where each begins and how long it is; -1 for none."""

    data: npt.NDArray[np.uint8]
    begins: Int64s
    sizes: Int64s

    @classmethod
    def of(cls, values: pa.Array, indices: Int64s) -> _Bits:
        _, offset_buffer, data_buffer = values.buffers()
        data = np.frombuffer(data_buffer if data_buffer is not None else b"", np.uint8)
        if not len(values):
            nowhere = np.full(len(indices), -1, np.int64)
            return cls(data, nowhere, nowhere)
        offsets = np.frombuffer(offset_buffer, np.int32)[values.offset : values.offset + len(values) + 1]
        begins = offsets[indices].astype(np.int64)
        sizes = offsets[indices + 1] - begins
        absent = indices < 0
        if values.null_count:
            absent |= ~np.asarray(values.is_valid().to_numpy(zero_copy_only=False))[indices]
        sizes[absent] = -1
        return cls(data, begins, sizes)

    def read(self, code: str) -> tuple[npt.NDArray[Any], Mask]:
        """Every piece of exactly that width as a little-endian number, and which pieces those are."""
        dtype = np.dtype(f"<{code}")
        ok = self.sizes == dtype.itemsize
        room = len(self.data) - dtype.itemsize + 1
        if room <= 0:
            return np.zeros(len(ok), dtype), np.zeros(len(ok), np.bool_)
        # A number may begin at any byte: see the buffer as overlapping numbers, one a byte.
        overlapping: npt.NDArray[Any] = np.ndarray((room,), dtype, self.data, strides=(1,))
        return overlapping[np.where(ok, self.begins, 0)], ok


def _numbers(bits: _Bits, type_: pa.DataType) -> pa.Array:
    if pt.is_floating(type_):
        wide, narrow, factor = ("f8", "f4", 1) if pt.is_float64(type_) else ("f4", "", 1)
    elif pt.is_timestamp(type_):
        # A date may have become a timestamp without a zone.
        wide, narrow, factor = "i8", "" if type_.tz else "i4", _DAY[type_.unit]
    elif type_.bit_width == 64:  # noqa: PLR2004 - bits of a long, a time or a timestamp
        wide, narrow, factor = "i8", "i4" if pt.is_integer(type_) else "", 1
    else:
        wide, narrow, factor = "i4", "", 1
    numbers, ok = bits.read(wide)
    if narrow:
        small, is_small = bits.read(narrow)
        if is_small.any():
            if factor != 1:
                is_small &= np.abs(small.astype(np.int64)) <= _MOST_DAYS[type_.unit]
            numbers = np.where(is_small, np.where(is_small, small, 0).astype(numbers.dtype) * factor, numbers)
            ok |= is_small
    return pa.Array.from_buffers(type_, len(ok), [_validity(ok), pa.py_buffer(np.ascontiguousarray(numbers))])


def _decimals(bits: _Bits, type_: pa.DataType) -> pa.Array:
    """Unscaled values in big-endian two's complement, as short as they can be."""
    ok = (bits.sizes >= 1) & (bits.sizes <= _DECIMAL_BYTES)
    begins, sizes = np.where(ok, bits.begins, 0), np.where(ok, bits.sizes, 0)
    data = bits.data if len(bits.data) else np.zeros(1, np.uint8)
    sign = np.where(data[begins] >= 0x80, 0xFF, 0).astype(np.uint8)  # noqa: PLR2004 - the sign bit
    wide = np.empty((len(ok), _DECIMAL_BYTES), np.uint8)
    for byte in range(_DECIMAL_BYTES):
        # From the right: the last byte of each value, then the one before, and the sign before the first.
        at = begins + sizes - 1 - byte
        within = byte < sizes
        wide[:, _DECIMAL_BYTES - 1 - byte] = np.where(within, data[np.where(within, at, 0)], sign)
    words = wide.view(">i8").astype(np.int64)
    high, low = words[:, 0], words[:, 1].view(np.uint64)
    ok &= _within(high, low, type_.precision)
    stored = np.stack([low.view(np.int64), high], axis=1)
    return pa.Array.from_buffers(type_, len(ok), [_validity(ok), pa.py_buffer(np.ascontiguousarray(stored))])


def _within(high: Int64s, low: UInt64s, precision: int) -> Mask:
    """Where -10**precision < value < 10**precision, compared word by word."""

    def below(high: Int64s, low: UInt64s, limit: int) -> Mask:
        top, bottom = limit >> 64, np.uint64(limit & ((1 << 64) - 1))
        return np.asarray((high < top) | ((high == top) & (low < bottom)))

    limit = 10**precision
    return below(high, low, limit) & ~below(high, low, 1 - limit)


def _fixed(bits: _Bits, type_: pa.DataType) -> pa.Array:
    storage = pa.binary(16) if type_ == pa.uuid() else type_
    width = storage.byte_width
    ok = bits.sizes == width
    begins = np.where(ok, bits.begins, 0)
    if width and len(bits.data) >= width:
        rows = np.lib.stride_tricks.sliding_window_view(bits.data, width)[begins]
    else:
        rows = np.zeros((len(ok), width), np.uint8)
    stored = pa.Array.from_buffers(storage, len(ok), [_validity(ok), pa.py_buffer(np.ascontiguousarray(rows))])
    return pa.ExtensionArray.from_storage(type_, stored) if type_ == pa.uuid() else stored


def _as_text(raw: pa.Array) -> pa.Array:
    try:
        return raw.cast(pa.string())
    except pa.ArrowInvalid:
        return raw


def _validity(ok: Mask) -> pa.Buffer | None:
    return None if ok.all() else pa.array(ok).buffers()[1]
