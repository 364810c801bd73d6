"""Bucket keys as the BinaryRows that Paimon's writers hash: many rows at once, byte for byte as Java writes them.

A row is a header byte and null bits, 8 bytes for each field, and behind them what is longer than that:

    null bits      ((fields + 71) // 64) * 8 bytes; field i is NULL if bit 8 + i is set
    numbers        little-endian in the low bytes of the field; decimals of up to 18 digits are their unscaled long,
                   timestamps of up to 3 digits are milliseconds
    bytes, text    up to 7 bytes inline, and 0x80 | length as the eighth; else offset << 32 | length, and the bytes
                   behind the fields, filled up with zeros to a multiple of 8
    wide decimals  offset << 32 | length, and the fewest big-endian bytes of the unscaled value in 16
    timestamps     offset << 32 | nanoseconds of the millisecond, and the milliseconds in 8

Law: what Java hashes for a row is what stands here. Writers differ in three points, and a `Dialect` says whose bytes
are meant: pypaimon keeps no room for a wide NULL, spends a byte too many on the decimals -2**(8k-1), and hashes
timestamps in whole microseconds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy import typing as npt
from pyarrow import types as pt

from tamis.predicate.arrays import SIGN_BIT, Int64s, Mask, UInt64s
from tamis.predicate.keys import LONG_DECIMAL_DIGITS
from tamis.sieve.order import KeyArray
from tamis.sieve.transforms.partition_values import byte_pieces

__all__ = ["BinaryRows", "Dialect", "KeyType", "Root", "binary_rows", "decimal_digits", "key_type", "pieces"]

MILLISECOND_DIGITS: Final = 3
"""Timestamps of up to this precision are milliseconds alone."""
INLINE: Final = 7
"""Bytes that stand in the field itself."""
LONG_TEXT: Final = 512
"""Text of more bytes is copied value by value: it is rare, and word by word it would hold up the short ones."""
_PER_MILLI: Final = {"s": 0.001, "ms": 1, "us": 1_000, "ns": 1_000_000}


class Root(Enum):
    """How a type's values are laid out; FLOAT and nested types, which no bucket is told of, are not here."""

    BOOLEAN = "BOOLEAN"
    TINYINT = "TINYINT"
    SMALLINT = "SMALLINT"
    INT = "INT"
    BIGINT = "BIGINT"
    DATE = "DATE"
    TIME = "TIME"
    DECIMAL = "DECIMAL"
    TIMESTAMP = "TIMESTAMP"
    TEXT = "STRING"
    BYTES = "BYTES"


class Dialect(Enum):
    """Whose bytes a row has."""

    JAVA = "java"
    PYTHON = "pypaimon"


@dataclass(frozen=True, slots=True)
class KeyType:
    """The type of a bucket-key column as it is hashed: precision is that of decimals and timestamps, else 0."""

    root: Root
    precision: int = 0

    @property
    def is_wide(self) -> bool:
        """Whether the value stands behind the fields however small it is: of these writers hash NULL differently."""
        most = {Root.DECIMAL: LONG_DECIMAL_DIGITS, Root.TIMESTAMP: MILLISECOND_DIGITS}
        return self.precision > most.get(self.root, self.precision)


_NAMES: Final = {
    **dict.fromkeys(("CHAR", "VARCHAR", "STRING"), Root.TEXT),
    **dict.fromkeys(("BINARY", "VARBINARY", "BYTES"), Root.BYTES),
    **dict.fromkeys(("DECIMAL", "NUMERIC", "DEC"), Root.DECIMAL),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_LTZ"), Root.TIMESTAMP),
    "INTEGER": Root.INT,
    **{root.value: root for root in Root if root not in (Root.TEXT, Root.BYTES)},
}
_DEFAULT_PRECISION: Final = {Root.DECIMAL: 10, Root.TIMESTAMP: 6}
_TYPE: Final = re.compile(r"([A-Z_]+)\s*(?:\(\s*(\d+)\s*(?:,\s*\d+\s*)?\))?[A-Z ]*")


def key_type(text: object) -> KeyType | None:
    """The type that a schema writes so; None for one whose buckets are not told: floats, and nested types.

    >>> key_type("DECIMAL(20, 2) NOT NULL")
    KeyType(root=<Root.DECIMAL: 'DECIMAL'>, precision=20)
    """
    found = _TYPE.fullmatch(text.strip().upper()) if isinstance(text, str) else None
    root = _NAMES.get(found[1]) if found is not None else None
    if found is None or root is None:
        return None
    if root not in _DEFAULT_PRECISION:
        return KeyType(root)
    return KeyType(root, int(found[2] or _DEFAULT_PRECISION[root]))


@dataclass(frozen=True, slots=True, eq=False)
class BinaryRows:
    """Rows one behind the other, as words of 8 bytes."""

    words: UInt64s
    starts: Int64s
    """The word at which each row begins."""
    sizes: Int64s
    """How many words it has."""

    def to_bytes(self, row: int) -> bytes:
        """The bytes of one row."""
        start = int(self.starts[row])
        return self.words[start : start + int(self.sizes[row])].astype("<u8").tobytes()


def binary_rows(
    keys: Sequence[KeyArray], arrow: Sequence[pa.DataType], types: Sequence[KeyType], dialect: Dialect
) -> BinaryRows:
    """A row for each row of keys, which are of these Arrow types and were written as these types of Paimon's."""
    count, fields = len(keys[0].valid), len(types)
    header = (fields + 71) // 64
    parts = [_part(*each, dialect) for each in zip(keys, arrow, types, strict=True)]
    sizes = np.full(count, header + fields, np.int64)
    offsets = []
    for part in parts:
        offsets.append(sizes.copy())
        if part.size is not None:
            sizes += part.size
    starts = np.cumsum(sizes) - sizes
    words = np.zeros(int(sizes.sum()), np.uint64)
    for place, (part, key, offset) in enumerate(zip(parts, keys, offsets, strict=True)):
        word, bit = divmod(8 + place, 64)
        words[starts[~key.valid] + word] |= np.uint64(1 << bit)
        field = part.field
        if part.size is not None and part.outside is not None:
            field = np.where(part.outside, field | (offset.astype(np.uint64) << np.uint64(35)), field)  # 8 * offset
            part.write(words, starts + offset)
        words[starts + header + place] = field
    return BinaryRows(words, starts, sizes)


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """One column: the field of each row, and what stands behind the fields."""

    field: UInt64s
    size: Int64s | None = None
    """Words behind the fields; None if no row has any."""
    outside: Mask | None = None
    """Where the field begins with the offset of those words."""
    tail: UInt64s | None = None
    """The words of each row, a column each, of types that always have as many."""
    text: tuple[Int64s, Int64s, npt.NDArray[np.uint8]] | None = None

    def write(self, words: UInt64s, at: Int64s) -> None:
        """Put what stands behind the fields where it belongs: at is the first word of each row."""
        assert self.size is not None  # noqa: S101 - asked of columns that have something there
        if self.tail is not None:
            rows = np.flatnonzero(self.size)
            for column in range(self.tail.shape[1]):
                words[at[rows] + column] = self.tail[rows, column]
        if self.text is not None:
            _write_text(words, at, *self.text)


def _part(keys: KeyArray, arrow: pa.DataType, type_: KeyType, dialect: Dialect) -> _Part:
    match type_.root:
        case Root.TEXT | Root.BYTES:
            return _text(keys)
        case Root.DECIMAL if type_.is_wide:
            return _wide_decimal(keys, dialect)
        case Root.TIMESTAMP if type_.is_wide:
            return _wide_timestamp(keys, arrow, dialect)
    values = np.where(keys.valid, _numbers(keys, arrow), 0)
    if type_.root in _LOW_BITS:
        return _Part(values.view(np.uint64) & np.uint64((1 << _LOW_BITS[type_.root]) - 1))
    return _Part(values.view(np.uint64))


_LOW_BITS: Final = {
    Root.BOOLEAN: 8,
    Root.TINYINT: 8,
    Root.SMALLINT: 16,
    Root.INT: 32,
    Root.DATE: 32,
    Root.TIME: 32,
}
"""A negative number fills the low bytes alone; the rest of its field is zero."""


def _numbers(keys: KeyArray, arrow: pa.DataType) -> Int64s:
    """The numbers that are hashed: times and timestamps in milliseconds, all else as it is."""
    numbers: Int64s = keys.keys
    if pt.is_timestamp(arrow) or pt.is_time(arrow):
        return numbers * 1000 if arrow.unit == "s" else numbers // int(_PER_MILLI[arrow.unit])
    return numbers


def _wide_timestamp(keys: KeyArray, arrow: pa.DataType, dialect: Dialect) -> _Part:
    numbers: Int64s = keys.keys
    millis = _numbers(keys, arrow)
    if arrow.unit in ("s", "ms"):
        nanos = np.zeros(len(numbers), np.int64)
    else:
        per = int(_PER_MILLI[arrow.unit])
        nanos = (numbers - millis * per) * (1_000_000 // per)
    if dialect is Dialect.PYTHON:
        nanos = nanos // 1000 * 1000
    size, outside = _room(keys.valid, 1, dialect)
    field = np.where(keys.valid, nanos, 0).view(np.uint64)
    return _Part(field, size, outside, np.where(keys.valid, millis, 0).view(np.uint64)[:, None])


def _wide_decimal(keys: KeyArray, dialect: Dialect) -> _Part:
    digits, spare = decimal_digits(keys)
    if dialect is Dialect.PYTHON:
        # (bits of |x| + 8) // 8 bytes: one more than the fewest for -2**(8k-1), which is 0x80 and zeros behind it.
        first = np.take_along_axis(digits, spare[:, None], axis=1)[:, 0]
        places = np.arange(16)
        rest = np.where(places > spare[:, None], digits, 0).any(axis=1)
        spare = spare - ((first == 0x80) & ~rest & (spare > 0))  # noqa: PLR2004 - the sign bit of a byte
    taken = spare[:, None] + np.arange(16)
    moved = np.where(taken < 16, np.take_along_axis(digits, np.minimum(taken, 15), axis=1), 0)  # noqa: PLR2004 - of 128 bits
    moved[~keys.valid] = 0
    size, outside = _room(keys.valid, 2, dialect)
    field = np.where(keys.valid, 16 - spare, 0).astype(np.uint64)
    return _Part(field, size, outside, np.ascontiguousarray(moved, np.uint8).view("<u8").astype(np.uint64))


def decimal_digits(keys: KeyArray) -> tuple[npt.NDArray[np.uint8], Int64s]:
    """The 16 big-endian bytes of each wide decimal, and how many leading ones only repeat the sign."""
    starts, lengths, data = byte_pieces(keys.keys)
    if (lengths != 16).any():  # noqa: PLR2004 - bytes of 128 bits; a NULL may stand as an empty text
        padded = np.zeros((len(starts), 16), np.uint8)
        whole = lengths == 16  # noqa: PLR2004 - as above
        padded[whole] = data[starts[whole, None] + np.arange(16)]
        words = padded.view(">u8").astype(np.uint64)
    else:
        words = data[starts[:, None] + np.arange(16)].view(">u8").astype(np.uint64)
    words[:, 0] ^= SIGN_BIT  # the key is biased by 2**127
    digits = words.astype(">u8").view(np.uint8).reshape(-1, 16)
    sign = (digits[:, :1] >> 7) * np.uint8(0xFF)
    # A leading byte is spare if it and all before it only repeat the sign, and the next byte still shows the sign.
    repeats = np.logical_and.accumulate(digits[:, :15] == sign, axis=1)
    return digits, (repeats & ((digits[:, 1:] ^ sign) >> 7 == 0)).sum(axis=1).astype(np.int64)


def _room(valid: Mask, words: int, dialect: Dialect) -> tuple[Int64s, Mask]:
    """How many words each row has behind its fields, and where its field says so: Java keeps room for NULL too."""
    has = valid if dialect is Dialect.PYTHON else np.ones(len(valid), np.bool_)
    return np.where(has, words, 0).astype(np.int64), has


def pieces(keys: KeyArray) -> tuple[Int64s, Int64s, npt.NDArray[np.uint8]]:
    """Where each text starts, its length (0 for NULL), and the bytes of all, followed by at least eight zeros."""
    starts, lengths, data = byte_pieces(keys.keys)
    return starts, np.where(keys.valid, lengths, 0), np.concatenate([data, np.zeros(4, np.uint8)])


def _text(keys: KeyArray) -> _Part:
    starts, lengths, data = pieces(keys)
    inline = keys.valid & (lengths <= INLINE)
    first = _eight(data)[starts] & _mask(np.minimum(lengths, INLINE))
    marked = first | ((np.uint64(0x80) | lengths.astype(np.uint64)) << np.uint64(56))
    long = lengths > INLINE
    field = np.where(inline, marked, np.where(long, lengths, 0).astype(np.uint64))
    if not long.any():
        return _Part(field)
    rows = np.where(long, lengths, 0)
    return _Part(field, (rows + 7) // 8, long, text=(starts, rows, data))


def _write_text(words: UInt64s, at: Int64s, starts: Int64s, lengths: Int64s, data: npt.NDArray[np.uint8]) -> None:
    eight = _eight(data)
    short = np.flatnonzero((lengths > 0) & (lengths <= LONG_TEXT))
    short = short[np.argsort(-lengths[short], kind="stable")]
    ascending = -lengths[short]
    for word in range(-(-int(lengths[short[0]]) // 8) if len(short) else 0):
        rows = short[: int(np.searchsorted(ascending, -8 * word, "left"))]
        left = np.minimum(lengths[rows] - 8 * word, 8)
        words[at[rows] + word] = eight[starts[rows] + 8 * word] & _mask(left)
    flat = words.view(np.uint8)
    for row in np.flatnonzero(lengths > LONG_TEXT).tolist():
        begin, size = int(starts[row]), int(lengths[row])
        flat[8 * int(at[row]) :][:size] = data[begin : begin + size]


def _eight(data: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
    """Every address as the start of a little-endian word; the zeros behind the data keep the last ones inside."""
    return np.ndarray((len(data) - 7,), "<u8", data, 0, (1,))


def _mask(lengths: Int64s) -> UInt64s:
    """The low bytes of a word: so many of them."""
    bits = (np.uint64(8) * np.minimum(lengths, 7).astype(np.uint64)).astype(np.uint64)
    low = (np.uint64(1) << bits) - np.uint64(1)
    return np.where(lengths >= 8, ~np.uint64(0), low)  # noqa: PLR2004 - bytes of a word
