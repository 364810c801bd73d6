"""Deletion vectors: where they are, and which rows of a file they remove.

A vector stands in the log itself, or in a file with others: at its offset its length, its bytes and a checksum. The
bytes are a magic number and a bitmap of 64-bit positions.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from tamis.formats.delta.keys import file_path
from tamis.formats.roaring import positions
from tamis.predicate.arrays import Int64s

__all__ = ["decode_vector", "from_z85", "inline_vector", "vector_location"]

MAGIC: Final = struct.pack("<I", 1681511377)
_ALPHABET: Final = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_VALUES: Final = {letter: value for value, letter in enumerate(_ALPHABET)}
_UUID: Final = 20
"""Letters of a UUID in base 85."""
FRAME: Final = 8
"""The length before a stored vector, and the checksum after it."""


def from_z85(text: str) -> bytes:
    """The bytes of a text in ZeroMQ's base 85: five letters for four bytes. ValueError if it is none.

    >>> from_z85("HelloWorld").hex()
    '864fd26fb559f75b'
    """
    if len(text) % 5:
        raise ValueError(f"a text in base 85 has {len(text)} letters, which is no multiple of five")
    found = bytearray()
    for start in range(0, len(text), 5):
        number = 0
        for letter in text[start : start + 5]:
            if letter not in _VALUES:
                raise ValueError(f"{letter!r} is no letter of base 85")
            number = number * 85 + _VALUES[letter]
        if number >> 32:
            raise ValueError(f"{text[start : start + 5]!r} is more than four bytes in base 85")
        found += number.to_bytes(4, "big")
    return bytes(found)


def vector_location(root: str, vector: Mapping[str, Any]) -> str | None:
    """The file that holds a vector; None if it stands in the log itself. ValueError if it is nowhere."""
    kind, where = vector["storageType"], str(vector["pathOrInlineDv"] or "")
    match kind:
        case "i":
            return None
        case "p":
            return file_path(root, where)
        case "u" if len(where) < _UUID:
            raise ValueError(f"a deletion vector of storage type 'u' names no file: {where!r} has no uuid in it")
        case "u":
            prefix, name = where[:-_UUID], UUID(bytes=from_z85(where[-_UUID:]))
            folder = f"{root.rstrip('/')}/{prefix}" if prefix else root.rstrip("/")
            return f"{folder}/deletion_vector_{name}.bin"
    raise ValueError(f"a deletion vector has the storage type {kind!r}, which is none of u, i and p")


def inline_vector(vector: Mapping[str, Any]) -> bytes:
    """The vector that stands in the log itself, framed as one in a file is. ValueError if it is damaged."""
    data = from_z85(vector["pathOrInlineDv"] or "")
    size = vector["sizeInBytes"]
    if size is None or not 0 <= size <= len(data) < size + 4:
        raise ValueError(f"a deletion vector of {len(data)} bytes is announced with {size}")
    data = data[:size]
    return struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))


def decode_vector(blob: bytes) -> Int64s:
    """The deleted positions, ascending. ValueError if the blob is damaged."""
    if len(blob) < FRAME + len(MAGIC):
        raise ValueError(f"a deletion vector of {len(blob)} bytes is too short")
    (length,) = struct.unpack_from(">I", blob)
    if length + FRAME != len(blob):
        raise ValueError(f"a deletion vector announces {length} bytes, and the log says {len(blob) - FRAME}")
    body = blob[4:-4]
    (checksum,) = struct.unpack_from(">I", blob, len(blob) - 4)
    if zlib.crc32(body) != checksum:
        raise ValueError("a deletion vector's checksum is wrong")
    if body[:4] != MAGIC:
        raise ValueError(f"a deletion vector begins with {body[:4].hex()}, not {MAGIC.hex()}")
    return positions(body[4:])
