"""Iceberg's bucket hash over keys: murmur3 for 32 bits, seed 0, as the specification's appendix B defines it.

Law: two values that Iceberg treats as the same bucket input hash alike here, whatever type the column has by now.
A type that Iceberg does not hash has no buckets, and text that its writers have hashed in two ways lies in any.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy import typing as npt
from pyarrow import types as pt

from tamis.predicate.arrays import SIGN_BIT, Int64s, Mask, UInt32s
from tamis.predicate.keys import has_order, uses_bytes
from tamis.predicate.type_names import is_text
from tamis.predicate.values import Cuts
from tamis.sieve.hashing import ANY_BUCKET
from tamis.sieve.murmur import finish, mix, scramble
from tamis.sieve.order import KeyArray
from tamis.sieve.transforms.partition_values import byte_pieces

__all__ = ["ICEBERG", "IcebergHash", "bucket_of_keys", "can_hash"]


_MICROS: Final = {"s": 1_000_000, "ms": 1_000, "us": 1}
FOUR_BYTES: Final = 0xF0
"""First byte of a character beyond 16 bits. Iceberg up to 0.13 hashed such text wrongly: it may lie in any bucket."""


@dataclass(frozen=True, slots=True)
class IcebergHash:
    """The hash of `bucket[N]`, of one column. A NULL has a partition of its own, and no bucket."""

    def buckets(self, keys: Sequence[KeyArray], types: Sequence[pa.DataType], total: int, /) -> Int64s | str:
        """As BucketHash has it."""
        if len(keys) != 1:
            return f"Iceberg hashes one column, not {len(keys)}"
        found = bucket_of_keys(keys[0].keys, types[0], total)
        if found is None:
            return f"Iceberg has no bucket hash for {types[0]}"
        found[~keys[0].valid] = ANY_BUCKET
        if is_text(types[0]):
            found[_beyond_16_bits(keys[0].keys)] = ANY_BUCKET
        return found


ICEBERG: Final = IcebergHash()


def _beyond_16_bits(keys: pa.LargeBinaryArray) -> Mask:
    """Where a text has a character that UTF-8 writes as four bytes."""
    starts, lengths, data = byte_pieces(keys)
    before = np.concatenate([[0], np.cumsum(data >= FOUR_BYTES)])
    return np.asarray(before[starts + lengths] > before[starts])


def can_hash(source: pa.DataType) -> bool:
    """Whether Iceberg buckets columns of this type: not booleans, not floats, nothing nested."""
    return has_order(source) and not pt.is_boolean(source) and not pt.is_floating(source)


def bucket_of_keys(keys: Cuts | pa.LargeBinaryArray, source: pa.DataType, count: int) -> Int64s | None:
    """The bucket of each key of a column of type source; None if the type has no hash or count is not positive.

    >>> bucket_of_keys(np.array([34]), pa.int64(), 100)
    array([79])
    """
    if not can_hash(source) or count <= 0:
        return None
    if isinstance(keys, np.ndarray) and uses_bytes(source):
        keys = pa.array(keys, pa.large_binary())
    if pt.is_decimal128(source):
        hashes = _hash_decimals(keys)
    elif isinstance(keys, np.ndarray):
        hashes = _hash_longs(_as_stored(keys.astype(np.int64, copy=False), source))
    else:
        hashes = _hash_pieces(*byte_pieces(keys))
    return (hashes & np.uint32(0x7FFFFFFF)).astype(np.int64) % count


def _as_stored(keys: Int64s, source: pa.DataType) -> Int64s:
    """What Iceberg hashes: times and timestamps in microseconds, all other keys as they are."""
    if not pt.is_timestamp(source) and not pt.is_time(source):
        return keys
    return keys // 1000 if source.unit == "ns" else keys * _MICROS[source.unit]


def _hash_longs(values: Int64s) -> UInt32s:
    """Eight little-endian bytes each: two blocks, no tail."""
    bits = values.view(np.uint64)
    state = np.zeros(len(values), np.uint32)
    for block in (bits & np.uint64(0xFFFFFFFF), bits >> np.uint64(32)):
        state = mix(state, block.astype(np.uint32))
    return finish(state, np.uint32(8))


def _hash_decimals(keys: Cuts | pa.LargeBinaryArray) -> UInt32s:
    """The fewest big-endian two's complement bytes that hold the unscaled value, as BigInteger.toByteArray."""
    if isinstance(keys, np.ndarray):
        low = keys.astype(np.int64, copy=False)
        words = np.stack([low >> 63, low], axis=1).view(np.uint64).astype(">u8")
    else:
        starts, _, data = byte_pieces(keys)
        words = data[:-4].view(">u8").reshape(len(starts), 2).copy()
        words[:, 0] ^= SIGN_BIT  # the key is biased by 2**127
    digits = words.view(np.uint8).reshape(-1, 16)
    sign = (digits[:, :1] >> 7) * np.uint8(0xFF)
    # A leading byte is spare if it and all before it only repeat the sign, and the next byte still shows the sign.
    repeats = np.logical_and.accumulate(digits[:, :15] == sign, axis=1)
    spare = (repeats & ((digits[:, 1:] ^ sign) >> 7 == 0)).sum(axis=1)
    data = np.concatenate([digits.reshape(-1), np.zeros(4, np.uint8)])
    return _hash_pieces(np.arange(len(digits)) * 16 + spare, 16 - spare, data)


def _hash_pieces(starts: Int64s, lengths: Int64s, data: npt.NDArray[np.uint8]) -> UInt32s:
    """All pieces at once, a block of four bytes at a time, the longest first so that the finished ones fall away."""
    order = np.argsort(-lengths, kind="stable")
    starts, lengths = starts[order], lengths[order]
    # Every address as the start of a little-endian word; the zeros behind the data keep the last ones inside.
    words: npt.NDArray[Any] = np.ndarray((len(data) - 3,), "<u4", data, 0, (1,))
    state = np.zeros(len(starts), np.uint32)
    blocks = lengths // 4
    ascending = -blocks
    for block in range(int(blocks[0]) if len(blocks) else 0):
        live = int(np.searchsorted(ascending, -block, "left"))
        state[:live] = mix(state[:live], words[starts[:live] + 4 * block].astype(np.uint32))
    tail = (lengths % 4).astype(np.uint32)
    rest = words[np.minimum(starts + 4 * blocks, len(words) - 1)].astype(np.uint32)
    rest &= (np.uint32(1) << (np.uint32(8) * tail)) - np.uint32(1)
    state ^= scramble(rest)  # without a tail the rest is zero, and zero changes nothing
    hashes = np.empty(len(state), np.uint32)
    hashes[order] = finish(state, lengths.astype(np.uint32))
    return hashes
