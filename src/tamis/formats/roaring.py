"""Roaring bitmaps of positions, in the portable serialisation that the formats' deletion vectors share.

A bitmap is a number of 32-bit bitmaps, each under the high half of its positions; a 32-bit one is a number of
containers, each under the high half of its own. https://github.com/RoaringBitmap/RoaringFormatSpec
"""

from __future__ import annotations

import struct
from typing import Final

import numpy as np
from numpy import typing as npt

from tamis.predicate.arrays import Int64s

__all__ = ["bitmap", "positions", "positions32"]

NO_RUNS: Final = 12346
RUNS: Final = 12347
FEWEST_OFFSETS: Final = 4
"""With runs and fewer containers than this, there is no table of offsets."""
LARGEST_ARRAY: Final = 4096
"""A container with more values is a bitmap of 65,536 bits."""
BITMAP_BYTES: Final = 8192


def positions(data: bytes | memoryview) -> Int64s:
    """The positions in ascending order. ValueError if the bytes are no such bitmap, or end too early."""
    view = memoryview(data)
    try:
        (bitmaps,) = struct.unpack_from("<Q", view)
        at, values = 8, []
        for _ in range(bitmaps):
            (high,) = struct.unpack_from("<I", view, at)
            low, at = _bitmap32(view, at + 4)
            values.append(low + (high << 32))
    except struct.error as error:
        raise ValueError(f"it ends too early ({error})") from error
    return np.concatenate(values) if values else np.zeros(0, np.int64)


def positions32(data: bytes | memoryview) -> Int64s:
    """The positions of one 32-bit bitmap, ascending. ValueError if the bytes are not one bitmap, and no more."""
    view = memoryview(data)
    try:
        values, end = _bitmap32(view, 0)
    except struct.error as error:
        raise ValueError(f"it ends too early ({error})") from error
    if end != len(view):
        raise ValueError(f"{len(view) - end} bytes follow the bitmap")
    return values


def bitmap(places: Int64s) -> bytes:
    """Positions, ascending and each once, in the same serialisation.

    >>> positions(bitmap(np.array([0, 7, 70_000, 1 << 40]))).tolist()
    [0, 7, 70000, 1099511627776]
    """
    if not len(places):
        return struct.pack("<Q", 0)
    highs, starts = np.unique(places >> 32, return_index=True)
    parts = [struct.pack("<Q", len(highs))]
    for high, low in zip(highs.tolist(), np.split(places, starts[1:]), strict=True):
        parts += [struct.pack("<I", high), _encoded32(low & 0xFFFFFFFF)]
    return b"".join(parts)


def _encoded32(values: Int64s) -> bytes:
    """A 32-bit bitmap without runs: keys and counts, where each container begins, then the containers."""
    keys, starts = np.unique(values >> 16, return_index=True)
    counts = np.diff(np.append(starts, len(values)))
    header = np.stack([keys, counts - 1], axis=1).astype("<u2").tobytes()
    containers = [_encoded(part & 0xFFFF) for part in np.split(values, starts[1:])]
    first = 8 + len(header) + 4 * len(keys)
    offsets = first + np.cumsum([0, *map(len, containers[:-1])])
    return b"".join([struct.pack("<II", NO_RUNS, len(keys)), header, offsets.astype("<u4").tobytes(), *containers])


def _encoded(low: Int64s) -> bytes:
    if len(low) <= LARGEST_ARRAY:
        return low.astype("<u2").tobytes()
    bits = np.zeros(8 * BITMAP_BYTES, np.uint8)
    bits[low] = 1
    return np.packbits(bits, bitorder="little").tobytes()


def _bitmap32(view: memoryview, at: int) -> tuple[Int64s, int]:
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
    containers = []
    for (high, fewer), runs in zip(header.tolist(), flags.tolist(), strict=True):
        values, at = _container(view, at, fewer + 1, runs=runs)
        containers.append(values + (high << 16))
    return (np.concatenate(containers) if containers else np.zeros(0, np.int64)), at


def _container(view: memoryview, at: int, count: int, *, runs: bool) -> tuple[Int64s, int]:
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
