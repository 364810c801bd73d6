"""Stripes of ORC files, inflated by zlib-ng: pyarrow's own zlib takes half of the time in which it reads a stripe.

What is inflated becomes a file of its own, in memory: one stripe, the columns that are asked for, no compression.
All else that pyarrow goes by is as in the file: types, encodings, the writer's version and zone. Law: where anything
is not plainly understood, or does not inflate to what may be there, no such file is made. Then pyarrow reads the
stripe itself, and says what is wrong with it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO, Final, cast

import numpy as np
import pyarrow as pa

from tamis.formats.rows.orc_footer import PS_MAGIC, OrcFooter, fields, put
from tamis.formats.storage.inflate import ZLIB, Inflater, quick_inflater

__all__ = ["QuickStripes", "quick_stripes"]

LEAST_BYTES: Final = 1 << 20
"""Compressed bytes of a stripe's columns from which on it is worth while: less is read in some milliseconds."""
_MOST_BYTES: Final = 128 << 20
"""Most bytes of a stripe, inflated. They are held beside the rows."""
_KEPT_BYTES: Final = 48 << 20
"""Most that a thread keeps for the next stripe. Writers make stripes of up to 64 MB, few of which take more."""
_FOOTER_BYTES: Final = 4 << 20
"""Room for what follows the stripe, which is mostly some kilobytes."""
_LARGEST_BLOCK: Final = 1 << 19
"""Most bytes that a chunk says it may inflate to. One that lies inflates to a thousand times its own bytes."""
_NO_CODEC, _ZLIB, _RAW = 0, 1, -15
_STRUCT: Final = 12
_DATA_STREAMS: Final = range(6)
"""Which values there are, the values, lengths, texts of dictionaries, how many, nanoseconds: none is an index."""
_MAGIC: Final = b"ORC"
_USUAL_BLOCK: Final = 1 << 18
_QUICK: Final = quick_inflater()


@dataclass(frozen=True, slots=True)
class QuickStripes:
    """The stripes of a file."""

    stream: BinaryIO
    footer: OrcFooter
    quick: Inflater
    block: int
    """Most bytes of a chunk, inflated."""
    stripes: tuple[dict[int, int], ...]
    """What the footer says of each, by the numbers of the fields."""
    columns: tuple[frozenset[int], ...]
    """The numbers that ORC gives to each column and what is in it."""

    def alone(self, stripe: int, places: Sequence[int]) -> pa.Buffer | None:
        """A file of these columns of one stripe; None if pyarrow is to read it from the file itself.

        It stays as it is until this thread asks for the next, of any file.
        """
        try:
            wanted = frozenset[int]({0}).union(*(self.columns[place] for place in places))
            told = self.stripes[stripe]
            end, length = told[1] + told.get(2, 0) + told[3], told[4]
            self.stream.seek(end)
            chunks = self._chunks(self.stream.read(length))
            parts = [chunk if plain else self.quick.decompress(chunk, _RAW, self.block) for plain, chunk in chunks]
            listed = list(fields(b"".join(parts)))
            if not {number for number, _ in listed} <= {1, 2, 3}:
                return None  # some of it is encrypted
            at = told[1]
            chosen = []
            for number, value in listed:
                if number == 1:
                    kind, column, size = (_number(cast("bytes", value), part) for part in (1, 2, 3))
                    if column in wanted and kind in _DATA_STREAMS:
                        chosen.append((kind, column, at, size))
                    at += size
            if at != end or sum(size for _, _, _, size in chosen) < LEAST_BYTES:
                return None
            return self._file(chosen, [field for field in listed if field[0] != 1], told[5])
        except (IndexError, KeyError, ValueError, TypeError, AttributeError, OverflowError, OSError):
            return None
        except self.quick.errors:
            return None

    def _file(
        self, chosen: Sequence[tuple[int, int, int, int]], others: Sequence[tuple[int, int | bytes]], rows: int
    ) -> pa.Buffer | None:
        streams = []
        for kind, column, at, size in chosen:
            self.stream.seek(at)
            streams.append((kind, column, self._chunks(self.stream.read(size))))
        most = sum(len(chunk) if plain else self.block for _, _, chunks in streams for plain, chunk in chunks)
        if most > _MOST_BYTES:
            return None
        room = _room(most + _FOOTER_BYTES)
        at = self._put(room, 0, _MAGIC)
        listed: list[tuple[int, int | bytes]] = []
        for kind, column, chunks in streams:
            start = at
            for plain, chunk in chunks:
                at = self._put(room, at, chunk if plain else self.quick.decompress(chunk, _RAW, self.block))
            listed.append((1, _message([(1, kind), (2, column), (3, at - start)])))
        last = _message([*listed, *others])
        stripe = _message([(1, len(_MAGIC)), (2, 0), (3, at - len(_MAGIC)), (4, len(last)), (5, rows)])
        head: list[tuple[int, int | bytes]] = [(1, len(_MAGIC)), (2, at + len(last)), (3, stripe)]
        # Not its statistics and row indexes: nothing is skipped by them.
        kept = [field for field in fields(self.footer.content) if field[0] not in {1, 2, 3, 6, 7, 8}]
        content = _message([*head, *kept, (6, rows)])
        told: list[tuple[int, int | bytes]] = [(1, len(content)), (2, _NO_CODEC)]
        told += [field for field in fields(self.footer.postscript) if field[0] in {3, 4, 6}]
        script = _message(told) + PS_MAGIC
        for part in (last, content, script, bytes([len(script)])):
            at = self._put(room, at, part, _FOOTER_BYTES)
        return pa.py_buffer(room[:at])

    def _chunks(self, stream: bytes) -> list[tuple[bool, memoryview]]:
        """The chunks of a stream, and whether each is as it was. ValueError if they are not what chunks are."""
        view, at = memoryview(stream), 0
        chunks = []
        while at < len(stream):
            head = int.from_bytes(view[at : at + 3], "little")
            start, at = at + 3, at + 3 + (head >> 1)
            if at > len(stream) or head >> 1 > self.block:
                raise ValueError("a chunk ends beyond its stream, or its block")
            chunks.append((bool(head & 1), view[start:at]))
        return chunks

    def _put(self, room: memoryview, at: int, part: bytes | memoryview, most: int | None = None) -> int:
        """Write a part, and give where it ends. ValueError if it is longer than it may be."""
        end = at + len(part)
        if len(part) > (self.block if most is None else most) or end > len(room):
            raise ValueError("a chunk inflates to more than there may be")
        room[at:end] = part
        return end


_KEPT: Final = threading.local()


def _room(size: int) -> memoryview:
    """Memory for so many bytes. Threads keep theirs for the next stripe: new memory costs half of what is won."""
    kept: memoryview | None = getattr(_KEPT, "room", None)
    if kept is None or len(kept) < size:
        kept = np.empty(size, np.uint8).data
        _KEPT.room = kept if size <= _KEPT_BYTES else None
    return kept


def quick_stripes(stream: BinaryIO, footer: OrcFooter | None) -> QuickStripes | None:
    """The stripes of a file that zlib has compressed; None for any other, and where zlib-ng is not installed."""
    if footer is None or _QUICK is ZLIB:
        return None
    try:
        script = dict(fields(footer.postscript))
        block = cast("int", script.get(3, _USUAL_BLOCK))
        told = list(fields(footer.content))
        if script.get(2) != _ZLIB or not 0 < block <= _LARGEST_BLOCK or any(number == 10 for number, _ in told):  # noqa: PLR2004 - Footer.encryption
            return None
        stripes = [_numbers(cast("bytes", value)) for number, value in told if number == 3]  # noqa: PLR2004 - Footer.stripes
        columns = _columns([cast("bytes", value) for number, value in told if number == 4])  # noqa: PLR2004 - Footer.types
    except (IndexError, KeyError, ValueError, TypeError, AttributeError):
        return None
    return QuickStripes(stream, footer, _QUICK, block, tuple(stripes), columns)


def _columns(types: Sequence[bytes]) -> tuple[frozenset[int], ...]:
    """Types are numbered as they are written: a column has its own number, and those up to the next column."""
    if _number(types[0], 1) != _STRUCT:
        raise ValueError("the rows are no structs")
    inside: list[int] = []
    for number, value in fields(types[0]):
        if number == 2:  # noqa: PLR2004 - Type.subtypes, packed or one by one
            inside += [value] if isinstance(value, int) else _packed(value)
    ends = [*inside[1:], len(types)]
    if not all(first < end for first, end in zip([0, *inside], [*inside, len(types)], strict=True)):
        raise ValueError("columns are not numbered in their order")
    return tuple(frozenset(range(first, end)) for first, end in zip(inside, ends, strict=True))


def _packed(text: bytes) -> list[int]:
    """Numbers one after the other, each as the value of a field would be."""
    found, value, shift = [], 0, 0
    for byte in text:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:  # noqa: PLR2004 - the bit that says: more bytes follow
            found.append(value)
            value = shift = 0
    return found


def _numbers(message: bytes) -> dict[int, int]:
    """The fields of a message that has numbers alone, each once. ValueError for any other."""
    told = dict(fields(message))
    if not set(told) <= {1, 2, 3, 4, 5} or not all(isinstance(value, int) for value in told.values()):
        raise ValueError("a stripe of which more is told")
    return cast("dict[int, int]", told)


def _number(message: bytes, number: int) -> int:
    return cast("int", dict(fields(message)).get(number, 0))


def _message(parts: Sequence[tuple[int, int | bytes]]) -> bytes:
    return b"".join(
        put(number << 3) + put(value) if isinstance(value, int) else put(number << 3 | 2) + put(len(value)) + value
        for number, value in parts
    )
