"""What the end of an ORC file says that pyarrow does not tell: what types there are, least and greatest values.

Law: what cannot be understood is not known, and nothing is concluded from it.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO, Final, cast

from tamis.formats.rows.orc_codecs import DAMAGED, LARGEST_CHUNK, inflated_chunk

__all__ = [
    "LONG",
    "PS_MAGIC",
    "TIMES",
    "Extent",
    "OrcFooter",
    "fields",
    "patched",
    "put",
    "read_footer",
    "writer_zones",
]

TAIL: Final = 1 << 16
"""Bytes to read at first, from the end: a footer is mostly smaller."""
TIMES: Final = frozenset({9, 18})
"""The kinds of columns that are times: without a zone, and with one."""
DATE: Final = 15
LONG: Final = 4
_NONE: Final = 0
_UTC: Final = 3
"""Bounds of times in UTC, where older writers have those in their own zone."""
_MAGIC: Final = b"ORC"

Extent = tuple[int, int]
"""The least and the greatest value: days of dates, milliseconds of times."""


@dataclass(frozen=True, slots=True)
class OrcFooter:
    """The types and statistics of a file, each by the number that ORC gives to every column and field."""

    kinds: tuple[int, ...]
    extents: Mapping[int, Extent | None]
    """Of dates and times: None for those without a value; what is not here is not known."""
    content: bytes = field(repr=False)
    """The footer itself, inflated."""
    start: int
    """Where it begins in the file."""
    postscript: bytes = field(repr=False)

    def may_be_before(self, number: int, day: int) -> bool:
        """Whether the column of that number has dates, and its statistics do not rule out one before that day."""
        if not number < len(self.kinds) or self.kinds[number] != DATE:
            return number >= len(self.kinds)
        extent = self.extents.get(number, (day - 1, day))
        return extent is not None and extent[0] < day


def read_footer(stream: BinaryIO) -> OrcFooter | None:
    """The footer; None for what is not understood: an odd codec, or bytes that are no footer."""
    size = stream.seek(0, io.SEEK_END)
    tail = _tail(stream, size, min(size, TAIL))
    try:
        script = tail[-1 - tail[-1] : -1]
        told = dict(fields(script))
        length, codec = cast("int", told[1]), cast("int", told.get(2, _NONE))
        if not script.endswith(_MAGIC) or length + len(script) + 1 > size:
            return None
        end = len(script) + 1
        if length + end > len(tail):
            tail = _tail(stream, size, length + end)
        content = _inflated(tail[len(tail) - end - length : len(tail) - end], codec)
        if content is None:
            return None
        kinds, statistics = [], []
        for number, value in fields(content):
            if number == 4:  # noqa: PLR2004 - Footer.types
                kinds.append(cast("int", dict(fields(cast("bytes", value))).get(1, 0)))
            elif number == 7:  # noqa: PLR2004 - Footer.statistics
                statistics.append(cast("bytes", value))
        known = {
            place: extent
            for place, (kind, text) in enumerate(zip(kinds, statistics, strict=False))
            if (kind in TIMES or kind == DATE) and (extent := _extent(kind, text)) != ()
        }
    except (IndexError, KeyError, ValueError, TypeError):
        return None
    extents = {place: cast("Extent | None", extent) for place, extent in known.items()}
    return OrcFooter(tuple(kinds), extents, content, size - end - length, script)


def writer_zones(stream: BinaryIO, footer: OrcFooter) -> frozenset[str] | None:
    """The zones that the clocks of a file's writers showed, as its stripes say; None if that is not understood."""
    zones = set()
    try:
        codec = cast("int", dict(fields(footer.postscript)).get(2, _NONE))
        for number, value in fields(footer.content):
            if number != 3:  # noqa: PLR2004 - Footer.stripes
                continue
            told = dict(fields(cast("bytes", value)))
            start, index, data, length = (cast("int", told.get(place, 0)) for place in (1, 2, 3, 4))
            stream.seek(start + index + data)
            content = _inflated(stream.read(length), codec)
            if content is None:
                return None
            zone = dict(fields(content)).get(3, b"")  # StripeFooter.writerTimezone
            zones.add(cast("bytes", zone).decode())
    except (IndexError, KeyError, ValueError, TypeError, AttributeError):
        return None
    return frozenset(zones)


def _tail(stream: BinaryIO, size: int, length: int) -> bytes:
    stream.seek(size - length)
    return stream.read(length)


def _extent(kind: int, statistics: bytes) -> Extent | tuple[()] | None:
    """The extent of a column; () if it is not told."""
    told = dict(fields(statistics))
    if told.get(1) == 0:
        return None
    inside = told.get(7 if kind == DATE else 9)
    if not isinstance(inside, bytes):
        return ()
    values = {number: _signed(value) for number, value in fields(inside) if isinstance(value, int)}
    low, high = (1, 2) if kind == DATE or _UTC not in values else (_UTC, _UTC + 1)
    return (values[low], values[high]) if low in values and high in values else ()


def _inflated(content: bytes, codec: int) -> bytes | None:
    """What a compressed footer holds; None if the codec is none of those that writers use for it."""
    if codec == _NONE:
        return content
    pieces, at = [], 0
    while at < len(content):
        head = int.from_bytes(content[at : at + 3], "little")
        chunk = content[at + 3 : at + 3 + (head >> 1)]
        at += 3 + (head >> 1)
        if head & 1:
            pieces.append(chunk)
        else:
            try:
                piece = inflated_chunk(chunk, codec)
            except DAMAGED:
                return None
            if piece is None:
                return None
            pieces.append(piece)
    return b"".join(pieces)


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a protobuf message: numbers as they are, all else as bytes."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        match key & 7:
            case 0:
                value, at = _varint(message, at)
                yield key >> 3, value
            case 1 | 5 as width:
                length = 8 if width == 1 else 4
                yield key >> 3, message[at : at + length]
                at += length
            case 2:
                length, at = _varint(message, at)
                if at + length > len(message):
                    raise ValueError("a field ends beyond its message")
                yield key >> 3, message[at : at + length]
                at += length
            case _:
                raise ValueError("not a protobuf message")


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 - the bit that says: more bytes follow
            return value, at
        shift += 7


def _signed(value: int) -> int:
    return (value >> 1) ^ -(value & 1)


def put(number: int) -> bytes:
    """A number as protobuf has it."""
    encoded = bytearray()
    while number > 0x7F:  # noqa: PLR2004 - seven bits a byte
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def patched(stream: BinaryIO, footer: OrcFooter) -> BinaryIO:
    """The same file, but that its times are whole numbers: the seconds that it stores of each, since 2015 began.

    A time is stored as a number of seconds and a number of nanoseconds, in two streams, of which the first is stored
    as a whole number is. So nothing but the types in the footer has to be another.
    """
    content = bytearray()
    for number, value in fields(footer.content):
        if isinstance(value, int):
            content += put(number << 3) + put(value)
            continue
        inside = value
        if number == 4:  # noqa: PLR2004 - Footer.types
            parts = list(fields(value))
            if any(part == 1 and kind in TIMES for part, kind in parts):
                inside = b"".join(
                    put(part << 3) + put(LONG if part == 1 else what)
                    if isinstance(what, int)
                    else put(part << 3 | 2) + put(len(what)) + what
                    for part, what in parts
                )
        content += put(number << 3 | 2) + put(len(inside)) + inside
    script = bytearray()
    told = list(fields(footer.postscript.removesuffix(PS_MAGIC)))
    codec = dict(told).get(2, _NONE)
    body = bytes(content) if codec == _NONE else _stored(bytes(content))
    for number, value in told:
        if isinstance(value, int):
            script += put(number << 3) + put(len(body) if number == 1 else value)
        else:
            script += put(number << 3 | 2) + put(len(value)) + value
    script += PS_MAGIC
    return cast("BinaryIO", _Tailed(stream, footer.start, body + bytes(script) + bytes([len(script)])))


PS_MAGIC: Final = put(8000 << 3 | 2) + put(len(_MAGIC)) + _MAGIC


def _stored(content: bytes) -> bytes:
    """Bytes as chunks that are not compressed."""
    most = LARGEST_CHUNK - 1
    chunks = (content[at : at + most] for at in range(0, len(content), most))
    return b"".join((len(chunk) << 1 | 1).to_bytes(3, "little") + chunk for chunk in chunks)


class _Tailed(io.RawIOBase):
    """A file that ends otherwise from some place on."""

    def __init__(self, stream: BinaryIO, start: int, tail: bytes) -> None:
        self._stream, self._start, self._tail = stream, start, tail
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._start + len(self._tail)}[whence]
        self._at = base + offset
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        end = self._start + len(self._tail)
        until = end if size is None or size < 0 else min(self._at + size, end)
        pieces = []
        if self._at < min(until, self._start):
            self._stream.seek(self._at)
            pieces.append(self._stream.read(min(until, self._start) - self._at))
        if until > self._start:
            pieces.append(self._tail[max(self._at - self._start, 0) : until - self._start])
        self._at = max(until, self._at)
        return b"".join(pieces)
