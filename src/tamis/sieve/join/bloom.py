"""A bloom filter over keys: what a join's build side ships when its keys are too many to list.

Law: never a false negative. A key that was added, here or in a filter that was merged in, is always found; another
one is found too, about as rarely as was asked for. Equal keys set equal bits in every process and on every machine.

The bits are split into blocks of 256. A key chooses one block, and one bit in each of its eight 32-bit words, so
that a look-up touches one cache line (Putze, Sanders, Singler: Cache-, Hash- and Space-Efficient Bloom Filters, 2007;
the layout is that of Parquet's split-block filter, the hash is not).
"""

from __future__ import annotations

import math
import struct
import zlib
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy import typing as npt

from tamis.errors import FilterInputError
from tamis.predicate.arrays import Int64s, Mask, UInt32s, UInt64s
from tamis.sieve.order import mask_of, windows

__all__ = ["Bloom", "Keys"]

Keys: TypeAlias = Int64s | pa.LargeBinaryArray
"""Keys as KeyArray holds them: 64-bit numbers, or a large_binary array. A null is no key."""

MAX_BYTES: Final = 64 << 20
"""Largest filter in bytes. Beyond it shipping costs more than the files that it saves; more keys only blur it."""
MAX_PER_BLOCK: Final = 512
"""Keys in a block at which all its bits are as good as set; where the search for the right size ends."""
WORDS: Final = 8
LONG: Final = 64
"""Bytes up to which strings are hashed all at once; longer ones, one by one. Part of the format."""

_SALTS: Final = np.array(
    (0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31), np.uint32
)
_SEED: Final = np.uint64(0x9E3779B97F4A7C15)
_MAGIC: Final = b"tamisbf"
_VERSION: Final = 1
_HEADER: Final = struct.Struct("<7sBBQQI")
"""Magic, version, 1 for byte keys or 0, items added, blocks, CRC-32 of the words that follow, all little-endian."""


@dataclass(slots=True, eq=False)
class Bloom:
    """A set of keys that may claim to hold too much, never too little. Made by `sized` or `of`; `add` grows it."""

    words: UInt32s
    """A row of eight words for each block."""
    of_bytes: bool
    """Whether the keys are bytes, not numbers."""
    items: int = 0
    """How many keys were added, repeated ones counted again."""

    @classmethod
    def sized(cls, items: int, *, of_bytes: bool = False, false_positives: float = 0.01) -> Bloom:
        """An empty filter for about so many distinct keys, with about this share of wrong hits."""
        if items < 0 or not 0 < false_positives < 1:
            raise FilterInputError(
                f"cannot size a bloom filter for {items} keys and a false-positive rate of {false_positives}: "
                "give a count of at least 0, and a rate between 0 and 1.",
                columns=(),
                reason=f"{items} keys at a rate of {false_positives}",
            )
        blocks = min(max(math.ceil(items / _keys_per_block(false_positives)), 1), MAX_BYTES // 32)
        return cls(np.zeros((blocks, WORDS), np.uint32), of_bytes)

    @classmethod
    def of(cls, keys: Keys, *, false_positives: float = 0.01) -> Bloom:
        """A filter that holds just these keys."""
        bloom = cls.sized(len(keys), of_bytes=not isinstance(keys, np.ndarray), false_positives=false_positives)
        bloom.add(keys)
        return bloom

    def add(self, keys: Keys) -> None:
        """Put keys in, all at once."""
        blocks, low = self._places(self._hashed(keys))
        flat = self.words.reshape(-1)
        for word in range(WORDS):
            np.bitwise_or.at(flat, blocks * WORDS + word, _bit(low, word))
        self.items += len(blocks)

    def contains(self, keys: Keys) -> Mask:
        """False only where the key was never added, and for a null."""
        hashes = self._hashed(keys)
        blocks, low = self._places(hashes)
        found = np.ones(len(blocks), np.bool_)
        flat = self.words.reshape(-1)
        for word in range(WORDS):
            found &= (flat[blocks * WORDS + word] & _bit(low, word)) != 0
        if isinstance(keys, np.ndarray) or not keys.null_count:
            return found
        answer = mask_of(keys.is_valid()).copy()
        answer[answer] = found
        return answer

    def merge(self, other: Bloom) -> Bloom:
        """What either holds. Both must be of the same size and kind: made by `sized` with the same arguments."""
        if self.words.shape != other.words.shape or self.of_bytes != other.of_bytes:
            raise FilterInputError(
                f"cannot merge bloom filters of {len(self.words)} and {len(other.words)} blocks over "
                f"{_kind(of_bytes=self.of_bytes)} and {_kind(of_bytes=other.of_bytes)}: "
                "make both by Bloom.sized with the same arguments.",
                columns=(),
                reason="bloom filters of unlike sizes or kinds",
            )
        return Bloom(self.words | other.words, self.of_bytes, self.items + other.items)

    @property
    def false_positives(self) -> float:
        """The share of foreign keys that are found, by the bits that are set. Near 1 the filter tells nothing."""
        set_bits = np.unpackbits(self.words.view(np.uint8), axis=1).reshape(len(self.words), WORDS, 32).mean(axis=2)
        return float(set_bits.prod(axis=1).mean())

    def to_bytes(self) -> bytes:
        """The filter for shipping: the same bytes for the same keys, whatever the machine."""
        words = self.words.astype("<u4").tobytes()
        header = (_MAGIC, _VERSION, int(self.of_bytes), self.items, len(self.words), zlib.crc32(words))
        return _HEADER.pack(*header) + words

    @classmethod
    def from_bytes(cls, data: bytes) -> Bloom:
        """The filter that to_bytes wrote. A damaged one is an error: a lost bit would be a lost row."""
        if len(data) < _HEADER.size or not data.startswith(_MAGIC):
            raise FilterInputError(
                "these bytes are not a bloom filter of tamis: read what Bloom.to_bytes wrote.",
                columns=(),
                reason="no bloom filter",
            )
        _, version, of_bytes, items, blocks, checksum = _HEADER.unpack_from(data)
        if version != _VERSION:
            raise FilterInputError(
                f"the bloom filter has format version {version}, and this tamis reads version {_VERSION}: "
                "use the same release of tamis on both sides.",
                columns=(),
                reason=f"format version {version}",
            )
        words = memoryview(data)[_HEADER.size :]
        if not blocks or len(words) != blocks * WORDS * 4 or zlib.crc32(words) != checksum:
            raise FilterInputError(
                "the bloom filter is damaged: its length or its checksum is wrong. Ship it again.",
                columns=(),
                reason="a damaged bloom filter",
            )
        read = np.frombuffer(words, "<u4").astype(np.uint32).reshape(blocks, WORDS)
        return cls(read, bool(of_bytes), items)

    def _hashed(self, keys: Keys) -> UInt64s:
        if isinstance(keys, np.ndarray) == self.of_bytes:
            raise FilterInputError(
                f"the bloom filter holds {_kind(of_bytes=self.of_bytes)}, and these keys are "
                f"{_kind(of_bytes=not self.of_bytes)}.",
                columns=(),
                reason="keys of another kind",
            )
        if isinstance(keys, np.ndarray):
            return _mixed(keys.astype(np.int64, copy=False).view(np.uint64) + _SEED)
        return _hash_bytes(keys.drop_null() if keys.null_count else keys)

    def _places(self, hashes: UInt64s) -> tuple[Int64s, UInt32s]:
        """The block that each hash chooses by its high half, and the low half that chooses the bits."""
        high = hashes >> np.uint64(32)
        # high / 2**32 is in [0, 1): times the number of blocks it is a block, without a division.
        blocks = (high * np.uint64(len(self.words))) >> np.uint64(32)
        return blocks.astype(np.int64), hashes.astype(np.uint32)


def _keys_per_block(false_positives: float) -> float:
    """The greatest mean number of keys in a block at which no more foreign keys are found than asked for.

    In a block with k keys a given bit of a word is set with probability 1 - (31/32)^k, and a foreign key is found by
    the eighth power of that. Keys fall into blocks at random: k is Poisson distributed, and crowded blocks count.
    """
    counts = np.arange(1, MAX_PER_BLOCK)
    log_factorials = np.cumsum(np.log(counts))
    found = (1 - (31 / 32) ** counts) ** WORDS
    low, high = 0.0, MAX_PER_BLOCK / 2
    for _ in range(40):
        middle = (low + high) / 2
        share = np.exp(counts * math.log(middle) - middle - log_factorials) @ found
        low, high = (middle, high) if share <= false_positives else (low, middle)
    return max(round(low, 6), 1e-3)  # rounded, so that machines agree on the size


def _bit(low: UInt32s, word: int) -> UInt32s:
    """One bit of 32, chosen by the five highest bits of a multiplicative hash with the word's own salt."""
    return np.asarray(np.uint32(1) << ((low * _SALTS[word]) >> np.uint32(27)), np.uint32)


def _mixed(values: UInt64s) -> UInt64s:
    """The finaliser of splitmix64: a bijection in which every bit depends on every other."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _hash_bytes(keys: pa.LargeBinaryArray) -> UInt64s:
    """Eight bytes at a time, shorter strings falling out as they end; the length goes in last."""
    lengths: npt.NDArray[Any] = pc.binary_length(keys).to_numpy(zero_copy_only=False)
    hashes = np.full(len(keys), _SEED, np.uint64)
    for start in range(0, min(int(lengths.max(initial=0)), LONG), 8):
        rows = np.flatnonzero((lengths > start) & (lengths <= LONG))
        if len(rows):
            hashes[rows] = _mixed((hashes[rows] ^ windows(keys.take(pa.array(rows)), start)) + _SEED)
    for row in np.flatnonzero(lengths > LONG).tolist():
        digest = blake2b(keys[row].as_buffer(), digest_size=8).digest()
        hashes[row] = int.from_bytes(digest, "little")
    return _mixed(hashes ^ lengths.astype(np.uint64))


def _kind(*, of_bytes: bool) -> str:
    return "byte keys" if of_bytes else "64-bit keys"
