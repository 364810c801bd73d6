"""Murmur3 for 32 bits, the steps of it, over arrays: Iceberg's and Paimon's bucket hashes are made of them.

Every step takes and gives unsigned 32-bit words, which overflow as the algorithm wants it.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tamis.predicate.arrays import UInt32s

__all__ = ["finish", "mix", "scramble"]

_C1: Final = np.uint32(0xCC9E2D51)
_C2: Final = np.uint32(0x1B873593)


def scramble(block: UInt32s) -> UInt32s:
    """A block of four bytes, as it goes into the state; zero stays zero."""
    return _rotate(block * _C1, 15) * _C2


def mix(state: UInt32s, block: UInt32s) -> UInt32s:
    """The state after one more whole block."""
    return _rotate(state ^ scramble(block), 13) * np.uint32(5) + np.uint32(0xE6546B64)


def finish(state: UInt32s, length: UInt32s | np.uint32) -> UInt32s:
    """The hash of so many bytes."""
    state = state ^ length
    state = (state ^ (state >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    state = (state ^ (state >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return state ^ (state >> np.uint32(16))


def _rotate(word: UInt32s, bits: int) -> UInt32s:
    return (word << np.uint32(bits)) | (word >> np.uint32(32 - bits))
