"""Roaring bitmaps of 64-bit positions, in the portable serialisation that Iceberg's and Delta's vectors share.

A bitmap is a number of 32-bit bitmaps, each under the high half of its positions; a 32-bit one is a number of
containers, each under the high half of its own. https://github.com/RoaringBitmap/RoaringFormatSpec
"""

from __future__ import annotations

import struct
from typing import Final

import numpy as np
from numpy import typing as npt

__all__ = ["positions"]

NO_RUNS: Final = 12346
RUNS: Final = 12347
FEWEST_OFFSETS: Final = 4
"""With runs and fewer containers than this, there is no table of offsets."""
LARGEST_ARRAY: Final = 4096
"""A container with more values is a bitmap of 65,536 bits."""
BITMAP_BYTES: Final = 8192

Numbers = npt.NDArray[np.int64]


def positions(data: bytes | memoryview) -> Numbers:
    """The positions in ascending order. ValueError if the bytes are no such bitmap, or end too early."""
    view = memoryview(data)
    try:
        (bitmaps,) = struct.unpack_from("<Q", view)
        at, found = 8, []
        for _ in range(bitmaps):
            (high,) = struct.unpack_from("<I", view, at)
            low, at = _bitmap32(view, at + 4)
            found.append(low + (high << 32))
    except struct.error as error:
        raise ValueError(f"it ends too early ({error})") from error
    return np.concatenate(found) if found else np.zeros(0, np.int64)


def _bitmap32(view: memoryview, at: int) -> tuple[Numbers, int]:
    """The values of a 32-bit bitmap, and where it ends."""
    (cookie,) = struct.unpack_from("<I", view, at)
    at += 4
    if cookie & 0xFFFF == RUNS:
        count = (cookie >> 16) + 1
        flags = np.unpackbits(_bytes(view, at, (count + 7) // 8), bitorder="little")[:count].astype(bool)
        at += (count + 7) // 8
    elif cookie == NO_RUNS:
        (count,) = struct.unpack_from("<I", view, at)
        at += 4
        flags = np.zeros(count, bool)
    else:
        raise ValueError(f"it is not a roaring bitmap (cookie {cookie:#x})")
    header = _bytes(view, at, 4 * count).view("<u2").reshape(-1, 2)
    at += 4 * count
    if cookie == NO_RUNS or count >= FEWEST_OFFSETS:
        at += 4 * count
    found = []
    for (high, fewer), runs in zip(header.tolist(), flags.tolist(), strict=True):
        values, at = _container(view, at, fewer + 1, runs=runs)
        found.append(values + (high << 16))
    return (np.concatenate(found) if found else np.zeros(0, np.int64)), at


def _container(view: memoryview, at: int, count: int, *, runs: bool) -> tuple[Numbers, int]:
    if runs:
        (number,) = struct.unpack_from("<H", view, at)
        pairs = _bytes(view, at + 2, 4 * number).view("<u2").reshape(-1, 2).astype(np.int64)
        lengths = pairs[:, 1] + 1
        # Each run counts up from its start: one ramp over all runs, less where each began.
        ramp = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return np.repeat(pairs[:, 0], lengths) + ramp, at + 2 + 4 * number
    if count > LARGEST_ARRAY:
        bits = np.unpackbits(_bytes(view, at, BITMAP_BYTES), bitorder="little")
        return np.flatnonzero(bits), at + BITMAP_BYTES
    return _bytes(view, at, 2 * count).view("<u2").astype(np.int64), at + 2 * count


def _bytes(view: memoryview, at: int, count: int) -> npt.NDArray[np.uint8]:
    if at + count > len(view):
        raise ValueError(f"it ends too early ({at + count - len(view)} bytes are missing)")
    return np.frombuffer(view, np.uint8, count, at)
