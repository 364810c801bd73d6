"""Deletion vectors: the blobs of Puffin files that say which rows of a data file are gone."""

from __future__ import annotations

import struct
import zlib
from typing import Final

from tamis.formats.roaring import positions
from tamis.predicate.arrays import Int64s

__all__ = ["decode_vector"]

MAGIC: Final = b"\xd1\xd3\x39\x64"
_FRAME: Final = 12
"""The length and the magic before the bitmap, and the checksum after it."""


def decode_vector(blob: bytes) -> Int64s:
    """The deleted positions, ascending. ValueError if the blob is damaged."""
    if len(blob) < _FRAME:
        raise ValueError(f"a deletion vector of {len(blob)} bytes is too short")
    (length,) = struct.unpack_from(">I", blob)
    if length + 8 != len(blob):
        raise ValueError(f"a deletion vector announces {length} bytes, and has {len(blob) - 8}")
    body = blob[4:-4]
    (checksum,) = struct.unpack_from(">I", blob, len(blob) - 4)
    if zlib.crc32(body) != checksum:
        raise ValueError("a deletion vector's checksum is wrong")
    if body[:4] != MAGIC:
        raise ValueError(f"a deletion vector begins with {body[:4].hex()}, not {MAGIC.hex()}")
    return positions(body[4:])
