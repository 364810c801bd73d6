"""Paimon's BinaryRows, decoded in columns: partition values, and the bounds of statistics.

A serialised row is four bytes for the number of its fields, big-endian, and then the row itself, all little-endian: a
header byte and the null bits, `((fields + 71) // 64) * 8` bytes, with the bit of field i at 8 + i; eight bytes for
each field; and a variable part, with offsets from the row's start. Law: nothing outside its own row is ever read; a
row that does not have the shape it says is damaged, and its value is not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy import typing as npt
from pyarrow import types as pt

from tamis.formats.paimon.schema import PaimonField
from tamis.predicate.arrays import Int64s, Mask
from tamis.predicate.keys import INT64_MAX, INT64_MIN, LONG_DECIMAL_DIGITS
from tamis.predicate.type_names import is_bytes, is_text
from tamis.sieve.order import mask_of

__all__ = ["BinaryRows", "Decoded"]

Bytes = npt.NDArray[np.uint8]
_PREFIX: Final = 4
_WORD: Final = 8
_HEADER_BITS: Final = 8
_MOST_INLINE: Final = 7
_COMPACT_TIMESTAMP: Final = 3
_WIDE: Final = 16
_NANOS_OF_MILLI: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Decoded:
    """One field of many rows."""

    values: pa.Array
    """Null where the row has NULL, and where it is damaged."""
    damaged: Mask
    """Rows whose bytes say no value of the type."""


@dataclass(frozen=True, slots=True, eq=False)
class BinaryRows:
    """Rows in one run of bytes."""

    data: Bytes
    start: Int64s
    """Where each row begins, behind its number of fields."""
    size: Int64s
    """Bytes of each row; -1 if there is none."""
    arity: Int64s
    """Fields of each row, as it says itself; -1 if there is none."""

    @classmethod
    def of(cls, rows: pa.Array | pa.ChunkedArray) -> BinaryRows:
        """Serialised rows; null is no row."""
        array = rows.combine_chunks() if isinstance(rows, pa.ChunkedArray) else rows
        if not pt.is_binary(array.type):
            array = array.cast(pa.binary())
        _, offsets, content = array.buffers()
        count = len(array)
        if not count:
            nothing = np.zeros(0, np.int64)
            return cls(np.zeros(_WORD, np.uint8), nothing, nothing, nothing)
        ends = np.frombuffer(offsets, np.int32, count + 1, array.offset * 4).astype(np.int64)
        data = np.zeros(0, np.uint8) if content is None else np.frombuffer(content, np.uint8)
        # Words are gathered by place: some bytes more let the last place of an empty run be one.
        data = np.concatenate([data[: int(ends[-1])], np.zeros(_PREFIX + _WORD, np.uint8)])
        start, size = ends[:-1], np.diff(ends)
        there = mask_of(array.is_valid()) & (size >= _PREFIX)
        arity = _gathered(data, np.where(there, start, 0), _PREFIX).view(">i4").ravel().astype(np.int64)
        arity[~there] = -1
        needed = _fixed(arity, arity)
        fits = there & (arity >= 0) & (size - _PREFIX >= needed)
        return cls(data, start + _PREFIX, np.where(fits, size - _PREFIX, -1), np.where(fits, arity, -1))

    def __len__(self) -> int:
        return len(self.start)

    def take(self, rows: Int64s | Mask) -> BinaryRows:
        """Some of the rows."""
        return BinaryRows(self.data, self.start[rows], self.size[rows], self.arity[rows])

    def field(self, place: int | Int64s, field: PaimonField) -> Decoded:
        """The field at that place of each row. Rows that have no such place say nothing, and are not damaged."""
        places = np.broadcast_to(np.asarray(place, np.int64), (len(self),))
        has = (self.arity > places) & (places >= 0)
        safe = np.where(has, places, 0)
        start = np.where(has, self.start, 0)
        bit = _HEADER_BITS + safe
        null = (self.data[start + bit // 8] >> (bit % 8).astype(np.uint8)) & 1
        valid = has & (null == 0)
        at = np.where(has, start + _fixed(self.arity, safe), 0)
        values, good = self._values(field, at, np.where(has, self.start, 0), np.where(has, self.size, 0), valid)
        return Decoded(values, valid & ~good)

    def _values(
        self, field: PaimonField, at: Int64s, start: Int64s, size: Int64s, valid: Mask
    ) -> tuple[pa.Array, Mask]:
        type_ = field.type
        words = _gathered(self.data, at, _WORD)
        if is_text(type_) or is_bytes(type_):
            return self._bytes(words, at, start, size, valid, type_)
        if pt.is_decimal(type_):
            if type_.precision > LONG_DECIMAL_DIGITS:
                return self._wide(words, start, size, valid, type_)
            return _narrow(words.view("<i8").ravel(), valid, type_)
        if pt.is_timestamp(type_):
            return self._moments(words, start, size, valid, field)
        return _plain(words, valid, type_)

    def _variable(self, words: Bytes, start: Int64s, size: Int64s, valid: Mask) -> tuple[Int64s, Int64s, Mask]:
        """Where the variable part of a field is, what its word says beside it, and whether that is in the row."""
        word = words.view("<u8").ravel()
        offset, said = (word >> np.uint64(32)).astype(np.int64), (word & np.uint64(0xFFFFFFFF)).astype(np.int64)
        return start + offset, said, valid & (offset <= size)

    def _bytes(
        self, words: Bytes, at: Int64s, start: Int64s, size: Int64s, valid: Mask, type_: pa.DataType
    ) -> tuple[pa.Array, Mask]:
        last = words[:, _WORD - 1]
        inline = last >= 0x80  # noqa: PLR2004 - the bit that says: here, not in the variable part
        short = (last & 0x7F).astype(np.int64)
        where, length, within = self._variable(words, start, size, valid & ~inline)
        within &= (where - start) + length <= size
        good = (valid & inline & (short <= _MOST_INLINE)) | within
        lengths = np.where(good, np.where(inline, short, length), 0)
        begin = np.where(good, np.where(inline, at, where), 0)
        ends = np.concatenate([[0], np.cumsum(lengths)])
        taken = np.arange(int(ends[-1])) + np.repeat(begin - ends[:-1], lengths)
        content = np.ascontiguousarray(self.data[taken])
        mask = pa.array(~(good & valid))
        found = pa.Array.from_buffers(
            pa.large_binary(), len(words), [None, pa.py_buffer(ends.astype(np.int64)), pa.py_buffer(content)]
        )
        found = pa.compute.if_else(mask, pa.scalar(None, pa.large_binary()), found).cast(pa.binary())
        if not is_text(type_):
            return found, good
        try:
            return found.cast(type_), good
        except pa.ArrowInvalid:
            texts, bad = _texts(found)
            return texts.cast(type_), good & ~bad

    def _wide(
        self, words: Bytes, start: Int64s, size: Int64s, valid: Mask, type_: pa.DataType
    ) -> tuple[pa.Array, Mask]:
        """A decimal of more than 18 digits: big-endian bytes, as few as hold it."""
        where, length, good = self._variable(words, start, size, valid)
        good &= (length > 0) & (length <= _WIDE) & ((where - start) + length <= size)
        number = np.zeros((len(words), _WIDE), np.uint8)
        safe, sizes = np.where(good, where, 0), np.where(good, length, 1)
        sign = np.where(self.data[safe] >= 0x80, 0xFF, 0).astype(np.uint8)  # noqa: PLR2004 - the sign bit
        for place in range(_WIDE):  # little-endian, as Arrow has it: the last byte first
            inside = place < sizes
            number[:, place] = np.where(inside, self.data[np.where(inside, safe + sizes - 1 - place, 0)], sign)
        return _decimals(number, good, type_)

    def _moments(
        self, words: Bytes, start: Int64s, size: Int64s, valid: Mask, field: PaimonField
    ) -> tuple[pa.Array, Mask]:
        """Milliseconds; beyond three digits these are in the variable part, and nanoseconds in the field."""
        type_ = field.type
        per_milli = 1000 if type_.unit == "us" else _NANOS_OF_MILLI
        if (field.precision or 0) <= _COMPACT_TIMESTAMP:
            millis, rest, good = words.view("<i8").ravel(), np.zeros(len(words), np.int64), valid
        else:
            where, nanos, good = self._variable(words, start, size, valid)
            good = good & ((where - start) + _WORD <= size) & (nanos < _NANOS_OF_MILLI)
            millis = _gathered(self.data, np.where(good, where, 0), _WORD).view("<i8").ravel()
            rest = np.where(good, nanos, 0) * per_milli // _NANOS_OF_MILLI
        # A moment that 64 bits of the unit do not hold is not known.
        fits = (millis > INT64_MIN // per_milli) & (millis < INT64_MAX // per_milli)
        counts = np.where(fits, millis, 0) * per_milli + rest
        good = good & fits
        return pa.array(counts, mask=~good).view(type_), good


def _fixed(arity: Int64s, place: Int64s) -> Int64s:
    """Where the eight bytes of a field are, from the row's start."""
    return np.asarray((np.maximum(arity, 0) + 71) // 64 * 8 + _WORD * np.maximum(place, 0), np.int64)


def _gathered(data: Bytes, at: Int64s, count: int) -> Bytes:
    """So many bytes at each place, a row each."""
    return np.ascontiguousarray(data[at[:, None] + np.arange(count)])


_INTS: Final[dict[pa.DataType, Any]] = {
    pa.int8(): "<i1",
    pa.int16(): "<i2",
    pa.int32(): "<i4",
    pa.int64(): "<i8",
    pa.date32(): "<i4",
    pa.float32(): "<f4",
    pa.float64(): "<f8",
}
_DAY_MILLIS: Final = 86_400_000


def _plain(words: Bytes, valid: Mask, type_: pa.DataType) -> tuple[pa.Array, Mask]:
    """What stands in the low bytes of the field."""
    if pt.is_boolean(type_):
        return pa.array(words[:, 0] != 0, mask=~valid), valid & (words[:, 0] <= 1)
    if pt.is_time(type_):
        millis = words.view("<i4")[:, 0].astype(np.int64)
        good = valid & (millis >= 0) & (millis < _DAY_MILLIS)
        return pa.array(np.where(good, millis, 0) * 1000, mask=~good).view(type_), good
    if type_ not in _INTS:
        return pa.nulls(len(words), type_), np.zeros(len(words), np.bool_)
    kind = np.dtype(_INTS[type_])
    found = np.ascontiguousarray(words[:, : kind.itemsize]).view(kind).ravel()
    array = pa.array(found, mask=~valid)
    return (array.view(type_) if pt.is_date32(type_) else array), valid


def _narrow(unscaled: Int64s, valid: Mask, type_: pa.DataType) -> tuple[pa.Array, Mask]:
    number = np.zeros((len(unscaled), 2), "<i8")
    number[:, 0] = unscaled
    number[:, 1] = unscaled >> 63
    return _decimals(number.view(np.uint8), valid, type_)


def _decimals(number: Bytes, good: Mask, type_: pa.DataType) -> tuple[pa.Array, Mask]:
    """Numbers of 16 little-endian bytes; those of more digits than the type has are no values of it."""
    wide = pa.decimal128(38, type_.scale)
    buffers = [pa.array(good).buffers()[1], pa.py_buffer(np.ascontiguousarray(number))]
    found = pa.Array.from_buffers(wide, len(good), buffers)
    try:
        return found.cast(type_), good
    except pa.ArrowInvalid:
        most = pa.scalar(10**type_.precision - 1, pa.decimal128(38, 0))
        plain = pa.Array.from_buffers(pa.decimal128(38, 0), len(good), buffers)
        fits = pa.compute.less_equal(pa.compute.abs(plain), most)
        keep = mask_of(fits.fill_null(False)) & good  # noqa: FBT003 - what is no value
        kept = pa.compute.if_else(pa.array(keep), found, pa.scalar(None, wide))
        return kept.cast(type_), keep


def _texts(found: pa.Array) -> tuple[pa.Array, Mask]:
    """Bytes as text where they are UTF-8; which are not."""
    texts: list[str | None] = []
    bad = np.zeros(len(found), np.bool_)
    for place, value in enumerate(found.to_pylist()):
        try:
            texts.append(None if value is None else value.decode())
        except UnicodeDecodeError:
            texts.append(None)
            bad[place] = True
    return pa.array(texts, pa.string()), bad
