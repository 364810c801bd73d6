"""Paimon's bucket functions over keys: default, mod and hive, each equal to Java's for every row.

| function | bucket of a row |
|---|---|
| default | abs(h % n), the remainder truncated, of murmur3 (seed 42) over the BinaryRow of its bucket key |
| mod | the key modulo n, never negative; one INT or BIGINT, NULL as 0 |
| hive | Hive's hash, h = 31 * h + hash of the field, masked to 31 bits, modulo n; NULL as 0 |

Law: a row that any writer placed in a bucket is looked for there. Writers disagree: pypaimon ignores the function,
and lays some keys out otherwise than Java does. So what is stated of files is each of the hashes that may have placed
their rows, as one `EitherHash`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from pyarrow import types as pt

from tamis.formats.paimon.bucket_keys import (
    BinaryRows,
    Dialect,
    KeyType,
    Root,
    binary_rows,
    decimal_digits,
    pieces,
)
from tamis.predicate.arrays import Int64s, UInt32s
from tamis.predicate.keys import uses_bytes
from tamis.sieve.hashing import BucketHash, EitherHash
from tamis.sieve.murmur import finish, mix
from tamis.sieve.order import KeyArray

__all__ = ["DefaultHash", "HiveHash", "ModHash", "bucket_hash"]

SEED: Final = 42
_HIVE_INTS: Final = (Root.BOOLEAN, Root.TINYINT, Root.SMALLINT, Root.INT, Root.DATE, Root.TIME)


@dataclass(frozen=True, slots=True)
class DefaultHash:
    """`bucket-function.type` = default, over keys of these types, as one of the writers lays them out."""

    types: tuple[KeyType, ...]
    dialect: Dialect = Dialect.JAVA

    def buckets(self, keys: Sequence[KeyArray], types: Sequence[pa.DataType], total: int, /) -> Int64s | str:
        """As BucketHash has it."""
        return _misfit(self.types, types) or np.abs(self.hashes(keys, types)) % total

    def hashes(self, keys: Sequence[KeyArray], types: Sequence[pa.DataType]) -> Int64s:
        """Java's hashCode of each row."""
        found = _hash_rows(binary_rows(keys, types, self.types, self.dialect))
        return found.view(np.int32).astype(np.int64)


@dataclass(frozen=True, slots=True)
class ModHash:
    """`bucket-function.type` = mod: of one INT or BIGINT."""

    types: tuple[KeyType, ...]

    def buckets(self, keys: Sequence[KeyArray], types: Sequence[pa.DataType], total: int, /) -> Int64s | str:
        """As BucketHash has it."""
        if len(self.types) != 1 or self.types[0].root not in (Root.INT, Root.BIGINT):
            return "Paimon's bucket function mod takes one INT or BIGINT"
        return _misfit(self.types, types) or np.where(keys[0].valid, np.asarray(keys[0].keys, np.int64), 0) % total


@dataclass(frozen=True, slots=True)
class HiveHash:
    """`bucket-function.type` = hive."""

    types: tuple[KeyType, ...]

    def buckets(self, keys: Sequence[KeyArray], types: Sequence[pa.DataType], total: int, /) -> Int64s | str:
        """As BucketHash has it."""
        if any(type_.root is Root.TIMESTAMP for type_ in self.types):
            return "Paimon's bucket function hive takes no TIMESTAMP"
        if (why := _misfit(self.types, types)) is not None:
            return why
        state = np.zeros(len(keys[0]), np.uint32)
        for key, arrow, type_ in zip(keys, types, self.types, strict=True):
            field = np.where(key.valid, _hive_field(key, arrow, type_), np.uint32(0))
            state = state * np.uint32(31) + field
        return (state & np.uint32(0x7FFFFFFF)).astype(np.int64) % total


def bucket_hash(function: str, histories: Sequence[tuple[KeyType, ...]]) -> BucketHash | str:
    """The hash that placed rows whose bucket key has had these types over time; or why none is told.

    pypaimon 2.1 places rows by the default function whatever the table says, and nothing in a table tells its files
    from Java's once manifests have been merged: under another function a row may lie where either of the two says.
    """
    made: list[BucketHash] = []
    for types in histories:
        match function.lower():
            case "mod":
                made.append(ModHash(types))
            case "hive":
                made.append(HiveHash(types))
            case "default":
                pass
            case unknown:
                return f"bucket-function.type {unknown!r} is not known"
        made.append(DefaultHash(types))
        if any(type_.is_wide for type_ in types):
            made.append(DefaultHash(types, Dialect.PYTHON))
    distinct = tuple(dict.fromkeys(made))
    return distinct[0] if len(distinct) == 1 else EitherHash(distinct)


def _misfit(written: tuple[KeyType, ...], arrow: Sequence[pa.DataType]) -> str | None:
    """Why keys of these Arrow types are none of those that were written."""
    if len(written) != len(arrow):
        return f"the bucket key has {len(written)} columns, not {len(arrow)}"
    for type_, each in zip(written, arrow, strict=True):
        if pt.is_floating(each):
            return "FLOAT and DOUBLE keys are hashed by their bits, of which equal numbers have different ones"
        has_bytes = type_.root in (Root.TEXT, Root.BYTES) or (type_.root is Root.DECIMAL and type_.is_wide)
        if uses_bytes(each) != has_bytes or pt.is_decimal128(each) != (type_.root is Root.DECIMAL):
            return f"{type_.root.value} keys are not hashed as {each}"
    return None


def _hash_rows(rows: BinaryRows) -> UInt32s:
    """Rows of one size a word at a time; of several sizes the longest first, so that the finished ones fall away."""
    words, count = rows.words.astype("<u8").view("<u4"), len(rows.starts)
    state = np.full(count, SEED, np.uint32)
    if not count:
        return state
    width = int(rows.sizes.max()) * 2
    if int(rows.sizes.min()) * 2 == width:
        table = words.reshape(count, width)
        for word in range(width):
            state = mix(state, table[:, word])
        return finish(state, np.uint32(4 * width))
    order = np.argsort(-rows.sizes, kind="stable")
    starts, sizes = rows.starts[order] * 2, rows.sizes[order] * 2
    ascending = -sizes
    for word in range(width):
        live = int(np.searchsorted(ascending, -word, "left"))
        state[:live] = mix(state[:live], words[starts[:live] + word])
    hashes = np.empty(count, np.uint32)
    hashes[order] = finish(state, (4 * sizes).astype(np.uint32))
    return hashes


def _hive_field(keys: KeyArray, arrow: pa.DataType, type_: KeyType) -> UInt32s:
    match type_.root:
        case Root.TEXT | Root.BYTES:
            return _hive_bytes(keys)
        case Root.DECIMAL:
            return _hive_decimals(keys, arrow)
        case Root.BIGINT:
            bits = np.asarray(keys.keys, np.int64).view(np.uint64)
            return (bits ^ (bits >> np.uint64(32))).astype(np.uint32)
        case Root.TIME:
            per = {"s": 1, "ms": 1, "us": 1_000, "ns": 1_000_000}[arrow.unit]
            numbers = np.asarray(keys.keys, np.int64)
            return (numbers * 1000 if arrow.unit == "s" else numbers // per).astype(np.uint32)
    return np.asarray(keys.keys, np.int64).astype(np.uint32)


def _hive_bytes(keys: KeyArray) -> UInt32s:
    """31 * h + each byte, with its sign."""
    starts, lengths, data = pieces(keys)
    order = np.argsort(-lengths, kind="stable")
    begins, ascending = starts[order], -lengths[order]
    signed = data.view(np.int8).astype(np.int32).view(np.uint32)
    state = np.zeros(len(starts), np.uint32)
    for byte in range(-int(ascending[0]) if len(ascending) else 0):
        live = int(np.searchsorted(ascending, -byte, "left"))
        state[:live] = state[:live] * np.uint32(31) + signed[begins[:live] + byte]
    hashes = np.empty(len(starts), np.uint32)
    hashes[order] = state
    return hashes


def _hive_decimals(keys: KeyArray, arrow: pa.DataType) -> UInt32s:
    """BigDecimal.hashCode without trailing zeros behind the point: each distinct decimal once, since Hive is rare."""
    if isinstance(keys.keys, np.ndarray):
        unscaled = keys.keys.astype(np.int64).tolist()
    else:
        digits, _ = decimal_digits(keys)
        unscaled = [int.from_bytes(row.tobytes(), "big", signed=True) for row in digits]
    known = {number: _hive_decimal(number, arrow.scale) for number in set(unscaled)}
    return np.array([known[number] for number in unscaled], np.uint32)


def _hive_decimal(unscaled: int, scale: int) -> int:
    if not unscaled:
        return 0
    while scale > 0 and unscaled % 10 == 0:
        unscaled, scale = unscaled // 10, scale - 1
    if scale < 0:
        unscaled, scale = unscaled * 10**-scale, 0
    # BigInteger.hashCode: 31 * h + each word of the magnitude, the highest first, with the number's sign.
    magnitude, state = abs(unscaled), 0
    for word in range((magnitude.bit_length() + 31) // 32 - 1, -1, -1):
        state = 31 * state + (magnitude >> 32 * word & 0xFFFFFFFF)
    return (31 * (state if unscaled > 0 else -state) + scale) & 0xFFFFFFFF
