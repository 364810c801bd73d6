"""Puffin files of deletion vectors, written: blobs one after the other, and a footer that says what they are.

https://iceberg.apache.org/puffin-spec/
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tamis.formats.iceberg.vectors import MAGIC as VECTOR_MAGIC

__all__ = ["Vector", "puffin_file", "vector_blob"]

MAGIC: Final = b"PFA1"
ROW_POSITION: Final = 2147483645
"""The field that deletion vectors are of: the position of a row in its file."""


@dataclass(frozen=True, slots=True)
class Vector:
    """A vector, and the data file whose rows it says are gone."""

    referenced: str
    rows: int
    blob: bytes


def vector_blob(bitmap: bytes) -> bytes:
    """A bitmap as Iceberg frames it: its length, the magic, and a checksum of both behind it."""
    body = VECTOR_MAGIC + bitmap
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def puffin_file(vectors: Sequence[Vector], made_by: str) -> tuple[bytes, tuple[int, ...]]:
    """The file, and where each vector begins in it."""
    parts, offsets, at = [MAGIC], [], len(MAGIC)
    for one in vectors:
        offsets.append(at)
        parts.append(one.blob)
        at += len(one.blob)
    blobs = [
        {
            "type": "deletion-vector-v1",
            "fields": [ROW_POSITION],
            # Both are inherited from the commit.
            "snapshot-id": -1,
            "sequence-number": -1,
            "offset": offset,
            "length": len(one.blob),
            "properties": {"referenced-data-file": one.referenced, "cardinality": str(one.rows)},
        }
        for one, offset in zip(vectors, offsets, strict=True)
    ]
    payload = json.dumps({"blobs": blobs, "properties": {"created-by": made_by}}, separators=(",", ":")).encode()
    parts += [MAGIC, payload, struct.pack("<i", len(payload)), b"\0\0\0\0", MAGIC]
    return b"".join(parts), tuple(offsets)
