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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyarrow import types as pt

from tamis.formats.avro.container import AvroFile, Room, header, varint
from tamis.formats.avro.layout import AvroColumn, Layout, Path
from tamis.formats.avro.sheet import Sheet
from tamis.formats.errors import unreadable
from tamis.formats.storage.inflate import TooLarge, inflate, inflation_limit, too_large

__all__ = ["Framed", "framed", "inflated"]

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
_SYNC: Final = secrets.token_bytes(16)
_LONG: Final = 9
"""Bytes for a number of any file's size: 62 bits."""
_TEXT_MARK: Final = secrets.token_hex(16)
_NUMBER_MARK: Final = secrets.randbits(62)


def inflated(file: AvroFile, layout: Layout) -> Iterator[bytes | memoryview]:
    """What each of the file's blocks holds. UnreadableMetadataError with the place where that is not what it says."""
    room = Room(inflation_limit()) if file.whole is None else file.whole.room
    least, codec = layout.least, file.codec
    view = memoryview(file.data)
    for begin, at, stop, count in file.blocks:
        announced = _BLOCK_BYTES + count * _RECORD_BYTES
        try:
            block = inflate(codec, view[at:stop], min(max(room.left, 0), announced))
        except TooLarge:
            if room.left <= announced:
                raise too_large(file.path, room.limit, begin) from None
            reason = f"the block announces {count} records, and inflates to more than {announced} bytes"
            raise unreadable(file.path, reason, begin) from None
        except ValueError as error:
            raise unreadable(file.path, str(error), begin) from error
        size = len(block)
        if count * least > size or (size and not count):
            reason = f"the block announces {count} records, which do not take the {size} bytes that it has"
            raise unreadable(file.path, reason, begin)
        room.take(size)
        yield block
    records = file.records if file.whole is None else file.whole.records
    if records > _FREE_RECORDS + len(file.data):
        raise unreadable(file.path, f"its {len(file.data)} bytes announce {records} records", file.start)


@dataclass(frozen=True, slots=True)
class Framed:
    """Files as one Avro file, and how to tell that they were decoded as announced."""

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

    def _marked(self, table: pa.Table, rows: Sequence[int]) -> bool:
        if self.mark is None:
            return True
        values = table.column(self.mark.name).take(pa.array(rows, pa.int64())).to_pylist()
        return all(value == _mark(self.mark) for value in values)

    def _miscounted(self, table: pa.Table) -> str:
        announced = sum(self.counts)
        if len(self.counts) == 1 and self.mark is not None:
            values = table.column(self.mark.name).to_pylist()
            if _mark(self.mark) in values:
                return f"its blocks announce {announced} records, but hold {values.index(_mark(self.mark))}"
        return f"its blocks do not hold the {announced} records that they announce"


def framed(
    files: Iterable[AvroFile], sheet: Sheet, layout: Layout, columns: Mapping[Path, AvroColumn], most: int
) -> Framed:
    """The files' records, a mark after those of each, on the sheet, as one block of a file that needs no codec.

    No file is begun once there are more bytes than most.
    """
    mark = _mark_column(columns.values())
    filler = _filler(layout.schema, mark)
    sheet.write(header({"avro.schema": layout.schema, "avro.codec": "null"}, _SYNC) + varint(_MORE_RECORDS))
    length_at = sheet.size
    sheet.write(_long_varint(0))
    start = sheet.size
    counts = []
    for file in files:
        for block in inflated(file, layout):
            sheet.write(block)
        sheet.write(filler)
        counts.append(file.records)
        if sheet.size > most:
            break
    rows = sum(counts) + len(counts)
    batches = -(-rows // _BATCH_ROWS)
    batch_rows = -(-rows // batches)
    spare = batches * batch_rows - rows
    sheet.write(filler * spare)
    # Only now is it known how long the block is: its length, in as many bytes as any takes, is written over a zero.
    sheet.overwrite(length_at, _long_varint(sheet.size - start))
    sheet.write(_SYNC)
    sheet.finish()
    return Framed(tuple(counts), mark, batch_rows, rows + spare)


def _long_varint(number: int) -> bytes:
    """The number in nine bytes, which is more than it needs: those beyond add zeros."""
    short = varint(number)
    return bytes(byte | 0x80 for byte in short.ljust(_LONG - 1, b"\0")) + b"\0"


def _mark_column(columns: Iterable[AvroColumn]) -> AvroColumn | None:
    """The first column that can hold a mark: a text if there is one."""
    types = (pa.string(), pa.binary(), pa.int64())
    candidates = [column for column in columns if column.type in types]
    return min(candidates, key=lambda column: types.index(column.type), default=None)


def _mark(column: AvroColumn) -> str | bytes | int:
    if pt.is_integer(column.type):
        return _NUMBER_MARK
    return _TEXT_MARK if pt.is_string(column.type) else _TEXT_MARK.encode()


@lru_cache(maxsize=64)
def _filler(schema: str, mark: AvroColumn | None) -> bytes:
    """A record of zeros, nulls and empty values, but for the mark."""
    return b"".join(
        _encoded(field["type"], _mark(mark))
        if mark is not None and field["name"] == mark.name
        else _zero(field["type"])
        for field in json.loads(schema)["fields"]
    )


def _encoded(type_: Any, value: str | bytes | int) -> bytes:  # noqa: ANN401 - JSON
    if isinstance(type_, list):
        branch = next(branch for branch, choice in enumerate(type_) if choice != "null")
        return varint(branch) + _encoded(type_[branch], value)
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
            branch = choices.index("null") if "null" in choices else 0
            return varint(branch) + _zero(choices[branch])
        case {"type": "record", "fields": fields}:
            return b"".join(_zero(field["type"]) for field in fields)
        case {"type": "fixed", "size": int(size)}:
            return bytes(size)
    # The number 0, a text of no length, the first symbol, the end of a list.
    return b"\0"
