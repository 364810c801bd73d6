"""Avro container files: the header and the blocks, checked byte by byte; their records are decoded elsewhere.

A file is walked from block to block before anything decodes it. So a truncated or damaged one is found, with the
place, also where a decoder would quietly return the records before it.
"""

from __future__ import annotations

import bz2
import json
import lzma
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from tamis.formats.errors import unreadable

__all__ = ["AvroFile", "Block", "as_one_block", "join_files", "parse_avro", "parse_header"]

_MAGIC: Final = b"Obj\x01"
_ENCRYPTED: Final = b"AGS1"
_SYNC: Final = 16
_MOST_VARINT: Final = 10
"""Bytes of the longest 64-bit number."""

_MORE_RECORDS: Final = 1 << 40

Block = tuple[int, int, int]
"""Where it begins, where its records end and the sync marker begins, and how many records it has."""


@dataclass(frozen=True, slots=True)
class AvroFile:
    """A whole Avro file in memory, header parsed and blocks found."""

    path: str
    data: bytes
    metadata: Mapping[str, str]
    """The header's own entries, such as partition-spec-id; avro.schema and avro.codec among them."""
    schema: Any
    """The writer's schema, as JSON."""
    sync: bytes
    start: int
    """Where the first block begins."""
    blocks: tuple[Block, ...]

    @property
    def codec(self) -> str:
        """How blocks are compressed; "null" for not at all."""
        return self.metadata.get("avro.codec", "null")

    @property
    def records(self) -> int:
        """How many records the blocks have."""
        return sum(count for _, _, count in self.blocks)


def parse_avro(path: str, data: bytes) -> AvroFile:
    """The file's header and blocks. UnreadableMetadataError with the place if any byte of the frame is wrong."""
    metadata, schema, at = parse_header(path, data)
    sync = data[at - _SYNC : at]
    blocks = _walk(path, data, at, sync)
    return AvroFile(path, data, metadata, schema, sync, at, blocks)


def parse_header(path: str, data: bytes) -> tuple[dict[str, str], Any, int]:
    """The header's entries, the writer's schema as JSON, and where the first block begins, after the sync marker."""
    if data[:4] != _MAGIC:
        why = "it is encrypted" if data[:4] == _ENCRYPTED else "it is empty" if not data else "it is no Avro file"
        raise unreadable(path, why, 0)
    reader = _Reader(path, data, 4)
    metadata: dict[str, str] = {}
    while count := reader.number():
        if count < 0:
            # A negative count is followed by the entries' length in bytes.
            count = -count
            reader.number()
        for _ in range(count):
            key = reader.text()
            metadata[key] = reader.text()
    reader.take(_SYNC)
    try:
        schema = json.loads(metadata["avro.schema"])
    except (KeyError, ValueError) as error:
        raise unreadable(path, f"its header has no readable schema ({error})", 0) from error
    return metadata, schema, reader.at


def _walk(path: str, data: bytes, at: int, sync: bytes) -> tuple[Block, ...]:
    """Every block, its frame checked. One entry a block is common, so this loop is kept tight."""
    blocks = []
    end = len(data)
    while at < end:
        begin = at
        count, at = _number(path, data, at)
        size, at = _number(path, data, at)
        stop = at + size
        if count < 0 or size < 0:
            raise unreadable(path, "the block's length is negative", begin)
        if stop + _SYNC > end:
            raise unreadable(path, f"it ends inside the block that begins here: {end} bytes, truncated", begin)
        if data[stop : stop + _SYNC] != sync:
            raise unreadable(path, "no sync marker where the block should end", stop)
        blocks.append((begin, stop, count))
        at = stop + _SYNC
    return tuple(blocks)


def _number(path: str, data: bytes, at: int) -> tuple[int, int]:
    """The zigzag number at a place, and where it ends."""
    try:
        byte = data[at]
        if byte < 0x80:  # noqa: PLR2004 - the bit that says: more bytes follow
            return (byte >> 1) ^ -(byte & 1), at + 1
        value = 0
        for place in range(_MOST_VARINT):
            byte = data[at + place]
            value |= (byte & 0x7F) << (7 * place)
            if byte < 0x80:  # noqa: PLR2004 - as above
                return (value >> 1) ^ -(value & 1), at + place + 1
    except IndexError:
        raise unreadable(path, f"it ends inside a number: {len(data)} bytes, truncated", at) from None
    raise unreadable(path, "a number is longer than 64 bits", at)


@dataclass(slots=True)
class _Reader:
    """A place in the header that moves on."""

    path: str
    data: bytes
    at: int

    def number(self) -> int:
        value, self.at = _number(self.path, self.data, self.at)
        return value

    def take(self, size: int) -> bytes:
        if size < 0 or self.at + size > len(self.data):
            raise unreadable(self.path, f"it ends inside its header: {len(self.data)} bytes, truncated", self.at)
        self.at += size
        return self.data[self.at - size : self.at]

    def text(self) -> str:
        """Bytes as text; what is no UTF-8 is shown escaped, for no entry that matters holds such."""
        return self.take(self.number()).decode("utf-8", "backslashreplace")


def join_files(files: Sequence[AvroFile], schema: str) -> list[bytes | memoryview]:
    """One Avro file, in pieces, with the blocks of all: they must share the writer's schema and the codec.

    The given schema takes the place of the writer's. It must describe the same bytes.
    """
    first = files[0]
    pieces: list[bytes | memoryview] = [
        header({"avro.schema": schema, "avro.codec": first.codec}, first.sync),
        memoryview(first.data)[first.start :],
    ]
    for file in files[1:]:
        view = memoryview(file.data)
        for begin, stop, _ in file.blocks:
            pieces += (view[begin:stop], first.sync)
    return pieces


def as_one_block(file: AvroFile, schema: str) -> list[bytes | memoryview]:
    """The same records, uncompressed, in one block that announces more than any block can hold.

    A decoder that stops after as many records as the file really announces is then at the block's end, or else
    finds that out. Raises ValueError if a block cannot be decompressed.
    """
    parts = []
    for begin, stop, _ in file.blocks:
        _, at = _number(file.path, file.data, begin)
        _, at = _number(file.path, file.data, at)
        parts.append(_decompressed(file.codec, file.data[at:stop]))
    body = b"".join(parts)
    metadata = {"avro.schema": schema, "avro.codec": "null"}
    return [header(metadata, file.sync), _varint(_MORE_RECORDS), _varint(len(body)), body, file.sync]


def _decompressed(codec: str, data: bytes) -> bytes:
    try:
        match codec:
            case "null":
                return data
            case "deflate":
                return zlib.decompress(data, -zlib.MAX_WBITS)
            case "snappy":
                # Its checksum follows: four bytes.
                size, shift, at = 0, 0, 0
                while True:
                    size |= (data[at] & 0x7F) << shift
                    if data[at] < 0x80:  # noqa: PLR2004 - as above
                        break
                    shift, at = shift + 7, at + 1
                return bytes(pa.Codec("snappy").decompress(data[:-4], size))
            case "zstandard":
                return bytes(pa.CompressedInputStream(pa.BufferReader(data), "zstd").read())
            case "bzip2":
                return bz2.decompress(data)
            case "xz":
                return lzma.decompress(data)
    except (zlib.error, lzma.LZMAError, OSError, IndexError, pa.ArrowException) as error:
        raise ValueError(f"a block cannot be decompressed ({error})") from error
    raise ValueError(f"its codec, {codec}, is not known")


def header(metadata: Mapping[str, str], sync: bytes) -> bytes:
    """An Avro file's header."""
    parts = [_MAGIC, _varint(len(metadata))]
    for key, value in metadata.items():
        for text in (key.encode(), value.encode()):
            parts += (_varint(len(text)), text)
    return b"".join([*parts, _varint(0), sync])


def _varint(number: int) -> bytes:
    """A number that is not negative, zigzag encoded."""
    value = number << 1
    found = bytearray()
    while value > 0x7F:  # noqa: PLR2004 - seven bits a byte
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
