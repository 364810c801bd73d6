"""Records of Avro files in one block that a decoder cannot misread unnoticed.

Blocks say how many records they hold, and may lie. DataFusion's reader never ends on a block that holds more than it
announces, and inflates whatever it is given. So blocks are inflated here, within limits that follow from what they
announce, and go to the decoder as one block, which announces more than there is. A mark that nobody can foresee, a
record of its own, follows the records of each file. Law: if every mark comes out where the announced counts put it,
each file holds exactly the records that it announces; and the decoder ends whatever the bytes are, for each record
takes a byte at least and it is stopped after as many as are announced.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyarrow import types as pt

from tamis.formats.errors import unreadable
from tamis.formats.iceberg.avro import AvroFile, header, varint
from tamis.formats.iceberg.inflate import TooLarge, inflate, inflation_limit, too_large
from tamis.formats.iceberg.records import AvroColumn, Layout, Path

__all__ = ["Body", "Framed", "body_of", "framed"]

_BATCH_ROWS: Final = 1 << 16
"""Records a batch: most manifests come out as one."""
_MORE_RECORDS: Final = 1 << 40
_BLOCK_BYTES: Final = 64 << 20
_RECORD_BYTES: Final = 1 << 20
"""What a block may inflate to, and more for each record that it announces. Bounds of 10,000 columns, cut to sixteen
characters as writers do, take some hundred kilobytes."""
_FREE_RECORDS: Final = 1 << 20
"""So many records a file may announce whatever its size; beyond them, one for each byte. Entries name different
files, and no codec stores a name in less."""
_LONG_RUN: Final = 128
"""Records of a file, on average, from which on slices cost less than a filter of all columns: a fifth for files of
some thousands; for many files of a few records it is ten times as much."""
_TEXT_MARK: Final = secrets.token_hex(16)
_NUMBER_MARK: Final = secrets.randbits(62)


@dataclass(frozen=True, slots=True)
class Body:
    """The records of one file, inflated: so many, in these bytes."""

    count: int
    parts: tuple[bytes | memoryview, ...]
    size: int


def body_of(file: AvroFile, layout: Layout) -> Body:
    """All that the file's blocks hold. UnreadableMetadataError with the place where they hold less than they say."""
    limit = room = inflation_limit()
    least, codec = layout.least, file.codec
    view = memoryview(file.data)
    parts = []
    for begin, at, stop, count in file.blocks:
        announced = _BLOCK_BYTES + count * _RECORD_BYTES
        try:
            part = inflate(codec, view[at:stop], min(room, announced))
        except TooLarge:
            if room <= announced:
                raise too_large(file.path, limit, begin) from None
            reason = f"the block announces {count} records, and inflates to more than {announced} bytes"
            raise unreadable(file.path, reason, begin) from None
        except ValueError as error:
            raise unreadable(file.path, str(error), begin) from error
        size = len(part)
        if count * least > size or (size and not count):
            reason = f"the block announces {count} records, which do not take the {size} bytes that it has"
            raise unreadable(file.path, reason, begin)
        room -= size
        parts.append(part)
    if file.records > _FREE_RECORDS + len(file.data):
        raise unreadable(file.path, f"its {len(file.data)} bytes announce {file.records} records", file.start)
    return Body(file.records, tuple(parts), limit - room)


@dataclass(frozen=True, slots=True)
class Framed:
    """Bodies as one Avro file, in pieces, and how to tell that they were decoded as announced."""

    pieces: list[bytes | memoryview]
    counts: tuple[int, ...]
    mark: AvroColumn | None
    """The column in which the marks can be told; None if none of those decoded can hold one."""
    batch_rows: int
    """Records a batch: a divisor of rows. The decoder fails on a batch that it cannot fill."""
    rows: int
    """All that must come out, marks included."""

    def records(self, table: pa.Table) -> pa.Table | str:
        """The files' own records of what was decoded, or what is wrong with them."""
        ends = np.cumsum(self.counts) + np.arange(len(self.counts))
        last = int(ends[-1])
        if table.num_rows != self.rows or not self._marked(table, [*ends.tolist(), *range(last + 1, self.rows)]):
            return self._miscounted(table)
        if len(ends) == 1 or last >= _LONG_RUN * len(ends):
            runs = zip(ends.tolist(), self.counts, strict=True)
            return pa.concat_tables([table.slice(end - count, count) for end, count in runs])
        own = np.ones(self.rows, np.bool_)
        own[ends] = False
        own[last:] = False
        return table.filter(pa.array(own))

    def _marked(self, table: pa.Table, places: Sequence[int]) -> bool:
        if self.mark is None:
            return True
        found = table.column(self.mark.name).take(pa.array(places, pa.int64())).to_pylist()
        return all(one == _mark(self.mark) for one in found)

    def _miscounted(self, table: pa.Table) -> str:
        announced = sum(self.counts)
        if len(self.counts) == 1 and self.mark is not None:
            values = table.column(self.mark.name).to_pylist()
            if _mark(self.mark) in values:
                return f"its blocks announce {announced} records, but hold {values.index(_mark(self.mark))}"
        return f"its blocks do not hold the {announced} records that they announce"


def framed(bodies: Sequence[Body], sync: bytes, layout: Layout, columns: Mapping[Path, AvroColumn]) -> Framed:
    """The bodies, a mark after each, as one block of a file that needs no codec."""
    mark = _mark_column(columns.values())
    filler = _filler(layout.schema, mark)
    counts = tuple(body.count for body in bodies)
    rows = sum(counts) + len(counts)
    batches = -(-rows // _BATCH_ROWS)
    batch_rows = -(-rows // batches)
    spare = batches * batch_rows - rows
    size = sum(body.size for body in bodies) + (len(bodies) + spare) * len(filler)
    pieces: list[bytes | memoryview] = [
        header({"avro.schema": layout.schema, "avro.codec": "null"}, sync),
        varint(_MORE_RECORDS),
        varint(size),
    ]
    for body in bodies:
        pieces += (*body.parts, filler)
    pieces += [filler] * spare
    pieces.append(sync)
    return Framed(pieces, counts, mark, batch_rows, rows + spare)


def _mark_column(columns: Iterable[AvroColumn]) -> AvroColumn | None:
    """The first column that can hold a mark: a text if there is one."""
    kinds = (pa.string(), pa.binary(), pa.int64())
    found = [one for one in columns if one.type in kinds]
    return min(found, key=lambda one: kinds.index(one.type), default=None)


def _mark(column: AvroColumn) -> str | bytes | int:
    if pt.is_integer(column.type):
        return _NUMBER_MARK
    return _TEXT_MARK if pt.is_string(column.type) else _TEXT_MARK.encode()


@lru_cache(maxsize=64)
def _filler(schema: str, mark: AvroColumn | None) -> bytes:
    """A record of zeros, nulls and empty values, but for the mark."""
    return b"".join(
        _encoded(one["type"], _mark(mark)) if mark is not None and one["name"] == mark.name else _zero(one["type"])
        for one in json.loads(schema)["fields"]
    )


def _encoded(type_: Any, value: str | bytes | int) -> bytes:  # noqa: ANN401 - JSON
    if isinstance(type_, list):
        place = next(place for place, one in enumerate(type_) if one != "null")
        return varint(place) + _encoded(type_[place], value)
    if isinstance(value, int):
        return varint(value)
    raw = value.encode() if isinstance(value, str) else value
    return varint(len(raw)) + raw


def _zero(type_: Any) -> bytes:  # noqa: ANN401 - JSON
    match type_:
        case "null":
            return b""
        case "float":
            return bytes(4)
        case "double":
            return bytes(8)
        case list(choices):
            place = choices.index("null") if "null" in choices else 0
            return varint(place) + _zero(choices[place])
        case {"type": "record", "fields": fields}:
            return b"".join(_zero(one["type"]) for one in fields)
        case {"type": "fixed", "size": int(size)}:
            return bytes(size)
    # The number 0, a text of no length, the first symbol, the end of a list.
    return b"\0"
