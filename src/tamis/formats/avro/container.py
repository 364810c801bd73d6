"""Avro container files: the header and the blocks' frames, checked byte by byte; records are decoded elsewhere.

A file is walked from block to block before anything decodes it. So a truncated or damaged one is found, with the
place, also where a decoder would quietly return the records before it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from tamis.formats.errors import unreadable
from tamis.formats.storage.inflate import inflation_limit

__all__ = ["AvroFile", "Block", "Room", "header", "parse_avro", "parse_header", "pieces", "varint"]

_MAGIC: Final = b"Obj\x01"
_ENCRYPTED: Final = b"AGS1"
_SYNC: Final = 16
_MOST_VARINT: Final = 10
"""Bytes of the longest 64-bit number."""

Block = tuple[int, int, int, int]
"""Where it begins, where its records do, where they end and the sync marker begins, and how many it announces."""


class Room:
    """How many bytes a file may still inflate to: one for all its pieces, which several threads may inflate."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.left = limit
        self._lock = threading.Lock()

    def take(self, size: int) -> None:
        """Some bytes have come out."""
        with self._lock:
            self.left -= size


@dataclass(frozen=True, slots=True)
class Whole:
    """The file that a piece is of: what holds of a file holds of all its pieces together."""

    records: int
    room: Room


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
    whole: Whole | None = None
    """The file of which these blocks are some; None if they are all."""

    @property
    def codec(self) -> str:
        """How blocks are compressed; "null" for not at all."""
        return self.metadata.get("avro.codec", "null")

    @property
    def records(self) -> int:
        """How many records the blocks have."""
        return sum(count for _, _, _, count in self.blocks)


def pieces(file: AvroFile, size: int) -> Iterator[AvroFile]:
    """A file in runs of its blocks, of so many bytes each and one block more at most, to be decoded side by side."""
    if not file.blocks or file.blocks[-1][2] - file.blocks[0][0] < 2 * size:
        yield file
        return
    whole = Whole(file.records, Room(inflation_limit()))
    first = 0
    for place, (_, _, stop, _) in enumerate(file.blocks):
        if stop - file.blocks[first][0] >= size or place == len(file.blocks) - 1:
            yield replace(file, blocks=file.blocks[first : place + 1], whole=whole)
            first = place + 1


def parse_avro(path: str, data: bytes) -> AvroFile:
    """The file's header and blocks. UnreadableMetadataError with the place if any byte of the frame is wrong."""
    metadata, schema, at = _header_of(path, data)
    sync = data[at - _SYNC : at]
    blocks = _walk(path, data, at, sync)
    return AvroFile(path, data, metadata, schema, sync, at, blocks)


_RECENT: Final[list[tuple[tuple[bytes, dict[str, str], Any], ...]]] = [()]
"""Headers parsed last, without their sync markers, in one tuple that is replaced whole: threads share it."""
_MOST_RECENT: Final = 16
_LONGEST_KEPT: Final = 1 << 20


def _header_of(path: str, data: bytes) -> tuple[dict[str, str], Any, int]:
    """As parse_header. Manifests of one table begin alike, and their schema takes longer to parse than one entry.

    A header says itself where it ends: bytes that begin with a whole header have that header and no other.
    """
    for head, metadata, schema in _RECENT[0]:
        if data.startswith(head) and len(data) >= len(head) + _SYNC:
            return metadata, schema, len(head) + _SYNC
    metadata, schema, at = parse_header(path, data)
    if at <= _LONGEST_KEPT:
        _RECENT[0] = ((data[: at - _SYNC], metadata, schema), *_RECENT[0][: _MOST_RECENT - 1])
    return metadata, schema, at


def parse_header(path: str, data: bytes) -> tuple[dict[str, str], Any, int]:
    """The header's entries, the writer's schema as JSON, and where the first block begins, after the sync marker."""
    if data[:4] != _MAGIC:
        why = "it is encrypted" if data[:4] == _ENCRYPTED else "it is empty" if not data else "it is not an Avro file"
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
    except (KeyError, ValueError, RecursionError) as error:
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
        blocks.append((begin, at, stop, count))
        at = stop + _SYNC
    return tuple(blocks)


def _number(path: str, data: bytes, at: int) -> tuple[int, int]:
    """The zigzag number at a place, and where it ends."""
    try:
        byte = data[at]
        if byte < 0x80:  # noqa: PLR2004 - the bit that says: more bytes follow
            return (byte >> 1) ^ -(byte & 1), at + 1
        value = 0
        for index in range(_MOST_VARINT):
            byte = data[at + index]
            value |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:  # noqa: PLR2004 - as above
                return (value >> 1) ^ -(value & 1), at + index + 1
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


def header(metadata: Mapping[str, str], sync: bytes) -> bytes:
    """An Avro file's header."""
    pieces = [_MAGIC, varint(len(metadata))]
    for key, value in metadata.items():
        for text in (key.encode(), value.encode()):
            pieces += (varint(len(text)), text)
    return b"".join([*pieces, varint(0), sync])


def varint(number: int) -> bytes:
    """A number that is not negative, zigzag encoded."""
    value = number << 1
    encoded = bytearray()
    while value > 0x7F:  # noqa: PLR2004 - seven bits a byte
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
