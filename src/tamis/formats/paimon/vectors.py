"""Deletion vectors: which rows of a data file are gone, as index files hold them.

At its offset a vector has its length, a magic number, a bitmap and a checksum. There are two kinds, told apart by the
magic number, and a file may hold both:

    32 bits     magic 5e43f2d0, a 32-bit bitmap;                metadata gives the length of magic and bitmap
    64 bits     magic d1d33964, a count and 32-bit bitmaps;     metadata gives the length of all of it

Law: damage is an error, never fewer deleted rows.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final

from tamis.formats.roaring import positions, positions32
from tamis.predicate.arrays import Int64s

__all__ = ["FRAME", "decode_vector"]

MAGIC_32: Final = bytes.fromhex("5e43f2d0")
MAGIC_64: Final = bytes.fromhex("d1d33964")
FRAME: Final = 8
"""The length before a vector, and the checksum after it. Metadata counts them for the one kind and not for the
other, so whoever cuts a vector out of its file takes so many bytes more than metadata says."""


def decode_vector(blob: bytes) -> Int64s:
    """The deleted positions, ascending. ValueError if the vector is damaged.

    The blob begins at the vector's offset and has FRAME bytes more than metadata announces, or ends with the file.
    """
    if len(blob) < FRAME + len(MAGIC_32):
        raise ValueError(f"a deletion vector of {len(blob)} bytes is too short")
    (length,) = struct.unpack_from(">I", blob)
    magic = blob[4:8]
    if magic not in (MAGIC_32, MAGIC_64):
        raise ValueError(f"a deletion vector begins with {magic.hex()}, not {MAGIC_32.hex()} or {MAGIC_64.hex()}")
    beyond = len(blob) - FRAME - length
    if beyond < 0 or beyond > (0 if magic == MAGIC_32 else FRAME):
        raise ValueError(f"a deletion vector announces {length} bytes, and metadata says {len(blob) - FRAME}")
    body = blob[4 : 4 + length]
    (checksum,) = struct.unpack_from(">I", blob, 4 + length)
    if zlib.crc32(body) != checksum:
        raise ValueError("a deletion vector's checksum is wrong")
    return positions32(body[4:]) if magic == MAGIC_32 else positions(body[4:])
