"""The codecs in which ORC files have their ends: what each chunk of one holds.

Law: a chunk that is damaged is an error, of one of the kinds in DAMAGED, and costs no more than it may hold.
"""

from __future__ import annotations

import zlib
from typing import Final

import pyarrow as pa

__all__ = ["DAMAGED", "LARGEST_CHUNK", "LZ4", "LZO", "inflated_chunk"]

ZLIB, SNAPPY, LZO, LZ4, ZSTD = 1, 2, 3, 4, 5
LARGEST_CHUNK: Final = 1 << 23
_MOST: Final = 256 << 20
DAMAGED: Final = (OSError, ValueError, IndexError, pa.ArrowException, zlib.error)


def inflated_chunk(chunk: bytes, codec: int) -> bytes | None:
    """What one chunk holds; None for another codec."""
    if codec == ZLIB:
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(chunk, _MOST)
    if codec == ZSTD:
        return bytes(pa.CompressedInputStream(pa.BufferReader(chunk), "zstd").read(_MOST))
    if codec == SNAPPY:
        length = _snappy_length(chunk)
        return bytes(pa.decompress(chunk, length, "snappy", asbytes=True)) if length <= LARGEST_CHUNK else None
    if codec == LZO:
        return _lzo(chunk)
    return _lz4(chunk) if codec == LZ4 else None


def _snappy_length(chunk: bytes) -> int:
    """How many bytes come out of it: what it begins with, seven bits a byte."""
    length = shift = 0
    for byte in chunk:
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:  # noqa: PLR2004 - the bit that says: more bytes follow
            break
    return length


def _lz4(chunk: bytes) -> bytes:
    """A block of LZ4: literals, then a piece of what is there already, again and again. ValueError if it is none.

    Arrow takes such a block only with its length, which ORC does not tell.
    """
    made, at = bytearray(), 0
    while at < len(chunk):
        token = chunk[at]
        literals, at = _length(chunk, token >> 4, at + 1)
        made += chunk[at : at + literals]
        at += literals
        if at >= len(chunk):
            break
        back = int.from_bytes(chunk[at : at + 2], "little")
        again, at = _length(chunk, token & 15, at + 2)
        again += 4
        _repeat(made, back, again)
    return bytes(made)


def _length(chunk: bytes, nibble: int, at: int) -> tuple[int, int]:
    """A length of LZ4's: of four bits, and if all are set of bytes that follow, up to the first that is not full."""
    more = 255 if nibble == 15 else 0  # noqa: PLR2004 - four bits
    while more == 255:  # noqa: PLR2004 - a full byte
        more = chunk[at]
        nibble, at = nibble + more, at + 1
    return nibble, at


def _repeat(made: bytearray, back: int, count: int) -> None:
    """Add bytes again that stand so far back. They may be those that are added."""
    if not 0 < back <= len(made) or len(made) + count > LARGEST_CHUNK:
        raise ValueError("not a block of LZ4 or LZO")
    start = len(made) - back
    for place in range(start, start + count):
        made.append(made[place])


def _lzo(chunk: bytes) -> bytes:
    """A block of LZO1X: instructions, each a piece of what is there already, or literals, and up to three more.

    What the smallest instruction means depends on how many literals came before it: none, up to three, or a run.
    """
    made, at, before = bytearray(), 0, 0
    if chunk[0] > 17:  # noqa: PLR2004 - the first byte alone may be a count of literals
        made += chunk[1 : chunk[0] - 16]
        at, before = chunk[0] - 16, min(chunk[0] - 17, 4)
    while at < len(chunk):
        token = chunk[at]
        if token < 16 and not before:  # noqa: PLR2004
            count, at = _lzo_length(chunk, token, 15, at + 1)
            made += chunk[at : at + count + 3]
            at, before = at + count + 3, 4
            continue
        if token >= 64:  # noqa: PLR2004 - 1LLDDDSS or 01LDDDSS, and eight more bits of the distance
            count = (token >> 5) + 1
            back, last, at = (chunk[at + 1] << 3) + (token >> 2 & 7) + 1, token, at + 2
        elif token >= 16:  # noqa: PLR2004 - 001LLLLL or 0001HLLL, and 16 bits of distance and literals
            most = 31 if token >= 32 else 7  # noqa: PLR2004
            count, at = _lzo_length(chunk, token & most, most, at + 1)
            count, last = count + 2, chunk[at]
            back = int.from_bytes(chunk[at : at + 2], "little") >> 2
            at += 2
            if most == 7:  # noqa: PLR2004
                back += (token & 8) << 11
                if not back:
                    break  # the end
                back += 16384
            else:
                back += 1
        else:  # 0000DDSS
            count, far = (3, 2049) if before == 4 else (2, 1)  # noqa: PLR2004 - after a run of literals
            back, last, at = (chunk[at + 1] << 2) + (token >> 2) + far, token, at + 2
        _repeat(made, back, count)
        before = last & 3
        made += chunk[at : at + before]
        at += before
    return bytes(made)


def _lzo_length(chunk: bytes, bits: int, most: int, at: int) -> tuple[int, int]:
    """A length of LZO's: of a few bits, and if none is set of bytes that follow, up to the first that is not zero."""
    if bits:
        return bits, at
    while not chunk[at]:
        most, at = most + 255, at + 1
    return most + chunk[at], at + 1
