"""Metadata files to columns: checked, joined where they are small, decoded, counted.

Every record that the files' blocks announce comes out, or an error names the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
from pyarrow import types as pt

from tamis.formats.avro.container import AvroFile
from tamis.formats.avro.decoder import DecodeError
from tamis.formats.avro.forked import decode
from tamis.formats.avro.framing import Framed, framed
from tamis.formats.avro.layout import AvroColumn, Layout, Path, flat_layout
from tamis.formats.avro.sheet import Sheet, new_sheet
from tamis.formats.errors import unreadable
from tamis.predicate.arrays import Int64s

__all__ = ["Decoded", "decode_checked", "decode_columns"]

CHUNK_BYTES: Final = 64 << 20
"""Most bytes, inflated, of small files that are decoded together."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """Columns of files that have one layout."""

    files: Int64s
    """Which of the given files each record is from; records of one file stand together, in its order."""
    columns: Mapping[Path, pa.Array]
    """Those that were asked for and that the writer's schema has."""
    written: Mapping[Path, AvroColumn]
    """All columns of the writer's schema."""
    given: Sequence[int] = ()
    """Which of the given files have this layout, also those without records."""

    @property
    def count(self) -> int:
        """How many records."""
        return len(self.files)


Wanted = Iterable[Path] | Callable[[Path], bool]


def decode_columns(files: Sequence[AvroFile], wanted: Wanted, names: Mapping[str, int]) -> list[Decoded]:
    """The wanted columns of all files; those that share a layout are decoded as one."""
    groups: dict[str, list[int]] = {}
    layouts: dict[str, Layout] = {}
    known: dict[str, Layout] = {}
    for index, file in enumerate(files):
        written = file.metadata["avro.schema"]
        if written not in known:
            try:
                known[written] = flat_layout(file.schema, names)
            except ValueError as error:
                raise unreadable(file.path, str(error), 0) from error
        layout = known[written]
        layouts[layout.schema] = layout
        groups.setdefault(layout.schema, []).append(index)
    chosen = wanted if callable(wanted) else frozenset(wanted).__contains__
    return [_decode_group(files, indices, layouts[schema], chosen) for schema, indices in groups.items()]


def _decode_group(
    files: Sequence[AvroFile], indices: Sequence[int], layout: Layout, wanted: Callable[[Path], bool]
) -> Decoded:
    columns = {path: column for path, column in layout.columns.items() if wanted(path)}
    for path, column in columns.items():
        if column.type is None:
            raise unreadable(
                files[indices[0]].path, f"field {path[-1]}, {column.written_as}, has a type of its own", 0
            )
    group = [files[index] for index in indices]
    table = pa.concat_tables(decode_checked(group, layout, columns))
    counts = [file.records for file in group]
    maps = any(_is_map(column.type) for column in columns.values())
    return Decoded(
        np.repeat(np.array(indices, np.int64), counts),
        {path: _joined(table.column(column.name), alone=maps) for path, column in columns.items()},
        layout.columns,
        indices,
    )


def _is_map(type_: pa.DataType | None) -> bool:
    """Maps, as Avro has those whose keys are no texts: lists of records."""
    return type_ is not None and bool(pt.is_list(type_)) and bool(pt.is_struct(type_.value_type))


def decode_checked(
    files: Sequence[AvroFile], layout: Layout, columns: Mapping[Path, AvroColumn]
) -> Iterator[pa.Table]:
    """Exactly the records that the files announce. If they hold others the error names the file, and the block."""
    schema = pa.schema([pa.field(column.name, column.type, column.nullable) for column in columns.values()])
    while files:
        with new_sheet() as sheet:
            frame = framed(files, sheet, layout, columns, CHUNK_BYTES)
            records = _records(frame, sheet, schema)
        done = len(frame.counts)
        if not isinstance(records, str):
            yield records
        elif halves := _halves(files[:done]):
            for half in halves:
                yield from decode_checked(half, layout, columns)
        else:
            raise unreadable(files[0].path, records, files[0].blocks[0][0])
        files = files[done:]


def _records(frame: Framed, sheet: Sheet, schema: pa.Schema) -> pa.Table | str:
    """What the sheet's files hold, or what is wrong with it."""
    if not any(frame.counts):
        return schema.empty_table()
    try:
        return frame.records(decode(sheet, schema, frame.batch_rows, frame.rows))
    except DecodeError as error:
        return f"its blocks do not hold the {sum(frame.counts)} records that they announce ({error})"


def _halves(files: Sequence[AvroFile]) -> list[list[AvroFile]]:
    """The same records in two parts: half of the files each, or half of a file's blocks; none of a single block.

    They are inflated once more, to find what is wrong with them: that is not counted against their file.
    """
    again = [replace(file, whole=None) for file in files]
    middle = len(again) // 2
    if middle:
        return [again[:middle], again[middle:]]
    (file,) = again
    middle = len(file.blocks) // 2
    return [[replace(file, blocks=blocks)] for blocks in (file.blocks[:middle], file.blocks[middle:]) if middle]


def _joined(column: pa.ChunkedArray, *, alone: bool) -> pa.Array:
    """One array. Any column keeps the decoder's whole batch in memory: alone, it has memory of its own.

    That matters beside maps: they hold bounds of every column, of which one or two are taken and the rest is let go.
    """
    if column.num_chunks != 1:
        return column.combine_chunks()
    return pa.concat_arrays(column.chunks) if alone and not pt.is_list(column.type) else column.chunk(0)
