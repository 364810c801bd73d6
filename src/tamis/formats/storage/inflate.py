"""Compressed metadata, inflated up to a limit.

A few kilobytes can inflate to gigabytes. Law: no more than the limit and one buffer is ever held, whatever the bytes
say; what would be more is an error that names the limit, never a shorter result.
"""

from __future__ import annotations

import bz2
import lzma
import os
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Final

import pyarrow as pa

from tamis.errors import SettingError, UnreadableMetadataError
from tamis.formats.errors import unreadable

__all__ = [
    "LIMIT_VARIABLE",
    "ZLIB",
    "Inflater",
    "TooLarge",
    "inflate",
    "inflate_gzip",
    "inflation_limit",
    "quick_inflater",
    "too_large",
]

LIMIT_VARIABLE: Final = "TAMIS_METADATA_BYTES"
LIMIT: Final = 512 << 20
"""Most bytes of one metadata file, inflated. Iceberg aims at manifests of 8 MB; one of 100,000 files of a table of
100 columns inflates to some 200 MB."""
_OLDER: Final = "Restore the file, or open an older one."
_STEP: Final = 1 << 20
_GUESS: Final = 1 << 16
"""Bytes to begin with: what Avro writers put into a block before they compress it."""
_USUAL_RATIO: Final = 8
_MOST_RATIO: Final = 1032
"""Bytes that a byte of deflate can stand for: two bits, a code for a length and one for a distance, repeat 258."""
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_ZSTD_RATIO: Final = 64
"""Bytes for each byte of zstd up to which a frame is believed how long its content is, and memory made for it."""
_SNAPPY_SIZE_BYTES: Final = 5
_CHECKSUM: Final = 4
_DICTIONARY: Final = 128 << 20
"""Most memory for xz to work in: twice what its highest level takes."""
_RAW: Final = -zlib.MAX_WBITS
_GZIP: Final = 16 + zlib.MAX_WBITS


@dataclass(frozen=True, slots=True)
class Inflater:
    """Inflates a whole block in one call: its bytes, its kind, and a guess of what it takes."""

    decompress: Callable[[memoryview, int, int], bytes]
    errors: tuple[type[Exception], ...]


ZLIB: Final = Inflater(zlib.decompress, (zlib.error,))


def quick_inflater() -> Inflater:
    """zlib-ng, which takes two thirds of zlib's time and rejects what zlib rejects; zlib where it is not installed.

    Executors may lack it: only what they are sent is certain to be there.
    """
    try:
        found = import_module("zlib_ng.zlib_ng")
    except ImportError:
        return ZLIB
    return Inflater(found.decompress, (found.error,))


_QUICK: Final = quick_inflater()


class TooLarge(ValueError):
    """The bytes inflate to more than is allowed."""


def inflation_limit() -> int:
    """Most bytes that one metadata file may inflate to. SettingError if the environment says no number of bytes."""
    text = os.environ.get(LIMIT_VARIABLE, "").strip()
    if not text:
        return LIMIT
    if not (text.isascii() and text.isdigit() and int(text)):
        raise SettingError(
            f"{LIMIT_VARIABLE} is {text!r}, not a number of bytes. Set it to one, such as {LIMIT}, or unset it.",
            variable=LIMIT_VARIABLE,
            value=text,
        )
    return int(text)


def too_large(path: str, limit: int, offset: int | None = None) -> UnreadableMetadataError:
    """The error for a metadata file that is larger than allowed."""
    reason = f"it inflates to more than {limit} bytes, the limit for one metadata file"
    return unreadable(
        path, reason, offset, cure=f"If the file is sound, set {LIMIT_VARIABLE} to a greater number of bytes."
    )


def inflate_gzip(path: str, data: bytes) -> bytes:
    """A gzipped file's content, all its members. Errors name the file, and the limit if that is passed."""
    limit = inflation_limit()
    parts: list[bytes] = []
    try:
        while data:
            stream = zlib.decompressobj(_GZIP)
            parts.append(_all_of(stream, data, limit - sum(map(len, parts))))
            # Zeros may follow the last member, as padding.
            data = stream.unused_data.lstrip(b"\0")
    except TooLarge:
        raise too_large(path, limit) from None
    except (ValueError, zlib.error) as error:
        raise unreadable(path, f"it cannot be decompressed ({error})", cure=_OLDER) from error
    return b"".join(parts)


def inflate(codec: str, data: memoryview, limit: int) -> bytes | memoryview:
    """An Avro block's bytes as they were before compression. TooLarge beyond the limit, ValueError if damaged."""
    try:
        match codec:
            case "null":
                found: bytes | memoryview = data
            case "deflate":
                found = _deflated(data, limit)
            case "snappy":
                found = _snappy(data, limit)
            case "zstandard":
                found = _zstandard(data, limit)
            case "bzip2":
                found = _members(bz2.BZ2Decompressor, data, limit)
            case "xz":
                found = _members(lambda: lzma.LZMADecompressor(memlimit=_DICTIONARY), data, limit)
            case _:
                raise ValueError(f"its codec, {codec}, is not known")
    except (zlib.error, lzma.LZMAError, OSError, EOFError, pa.ArrowException) as error:
        raise ValueError(f"a block cannot be decompressed ({error})") from error
    if len(found) > limit:
        raise TooLarge
    return found


def _deflated(data: memoryview, limit: int) -> bytes:
    """Nearly every block is so short that it cannot pass the limit; then one call does it."""
    guess = max(_GUESS, _USUAL_RATIO * len(data))
    if _MOST_RATIO * len(data) <= limit:
        # Whatever is wrong with it is found once more below, by zlib itself.
        with suppress(*_QUICK.errors):
            # Some writers leave the tail of a zlib stream, three bytes of checksum, behind the data: it is not read.
            return _QUICK.decompress(data, _RAW, guess)
    stream = zlib.decompressobj(_RAW)
    found = stream.decompress(data, min(guess, limit + 1))
    if stream.eof:
        return found
    if len(found) > limit:
        raise TooLarge
    return found + _all_of(stream, stream.unconsumed_tail, limit - len(found))


def _all_of(stream: zlib._Decompress, data: bytes, limit: int) -> bytes:
    parts: list[bytes] = []
    room = limit + 1
    while not stream.eof:
        # For zlib, 0 is no limit at all.
        part = stream.decompress(data, min(room, _STEP))
        data = stream.unconsumed_tail
        room -= len(part)
        parts.append(part)
        if room <= 0:
            raise TooLarge
        if not part and not data and not stream.eof:
            raise ValueError("a block cannot be decompressed (its compressed data ends too early)")
    return b"".join(parts)


def _snappy(data: memoryview, limit: int) -> bytes:
    """Snappy says its size at the start; Avro puts a checksum of what was compressed behind it."""
    size = shift = 0
    for byte in data[:_SNAPPY_SIZE_BYTES]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:  # noqa: PLR2004 - the bit that says: more bytes follow
            break
    else:
        raise ValueError("a block cannot be decompressed (it has no length)")
    if size > limit:
        raise TooLarge
    found = bytes(pa.Codec("snappy").decompress(bytes(data[:-_CHECKSUM]), size))
    if zlib.crc32(found) != int.from_bytes(data[-_CHECKSUM:], "big"):
        raise ValueError("a block's checksum does not fit its data")
    return found


def _zstandard(data: memoryview, limit: int) -> bytes:
    """Nearly every block is one frame that says how long its content is; then one call does it."""
    size = _zstandard_size(data)
    if 0 < size <= min(limit, _GUESS + _ZSTD_RATIO * len(data)):
        # Whatever is wrong with it, or comes after its first frame, is found once more below.
        with suppress(OSError):
            return bytes(pa.Codec("zstd").decompress(data, size, asbytes=True))
    parts: list[bytes] = []
    room = limit + 1
    with pa.CompressedInputStream(pa.BufferReader(pa.py_buffer(data)), "zstd") as stream:
        while part := stream.read(min(room, _STEP)):
            parts.append(part)
            room -= len(part)
            if room <= 0:
                raise TooLarge
    return b"".join(parts)


def _zstandard_size(data: memoryview) -> int:
    """What the first frame says of its content's length; 0 if it says nothing.

    Behind the magic number a byte tells how many bytes have that length, and how many stand before it.
    """
    if bytes(data[:4]) != _ZSTD_MAGIC or len(data) <= len(_ZSTD_MAGIC):
        return 0
    flags = data[4]
    one_segment = flags >> 5 & 1
    width = (one_segment, 2, 4, 8)[flags >> 6]
    at = 5 + (1 - one_segment) + (0, 1, 2, 4)[flags & 3]
    said = int.from_bytes(data[at : at + width], "little")
    return said + 256 if width == 2 else said  # noqa: PLR2004 - lengths below have one byte


def _members(new: Callable[[], bz2.BZ2Decompressor | lzma.LZMADecompressor], data: memoryview, limit: int) -> bytes:
    """One compressed stream after the other, as their own libraries write and read them."""
    parts: list[bytes] = []
    room = limit + 1
    rest = bytes(data)
    while rest:
        stream = new()
        while not stream.eof:
            part = stream.decompress(rest, min(room, _STEP))
            rest = b""
            parts.append(part)
            room -= len(part)
            if room <= 0:
                raise TooLarge
            if not part and not stream.eof:
                raise ValueError("a block cannot be decompressed (its compressed data ends too early)")
        rest = stream.unused_data
    return b"".join(parts)
