"""Metadata files as columns by the names of their fields, whatever file format they have: Avro, ORC or Parquet.

Writers of different ages have different fields, and their Avro records have different names: columns are found by
the names of the fields alone, and what a writer does not have is null. What a file is, its first bytes say: a table's
`manifest.format` may have changed since.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc
from pyarrow import types as pt

from tamis.formats.avro.container import AvroFile, parse_avro, pieces
from tamis.formats.avro.reading import decode_columns
from tamis.formats.errors import unreadable
from tamis.formats.storage.inflate import inflation_limit, too_large
from tamis.formats.storage.ordered import in_order
from tamis.predicate.arrays import Int64s

__all__ = ["UNSURE", "Kinds", "Names", "Sheet", "is_table", "read_sheets", "read_table", "taken"]

Names = tuple[str, ...]
"""A field by its name, behind those of the records that it stands in."""
Kinds = Mapping[Names, pa.DataType]
"""The columns to read, and the types that they have."""

UNSURE: Final = -(1 << 62)
"""A zero in a list of numbers that had no null: nobody can tell whether it was counted, or is not known."""
_PARQUET: Final = b"PAR1"
_ORC: Final = b"ORC"
PART_BYTES: Final = 2 << 20
"""About so many bytes, inflated, are decoded at a time: to be shared out among threads, and to stay in a processor's
cache. A part costs half a millisecond to set up; a larger one is memory that the system has to make anew each time,
and takes a third more processor time in all."""
_USUAL_RATIO: Final = 10
"""What zstd makes of the entries of a manifest, about."""
THREADS: Final = min(4, os.cpu_count() or 1)
_MOST_RATIO: Final = 4096
"""Rows of an ORC file for each of its bytes: far more than a manifest has."""


@dataclass(frozen=True, slots=True, eq=False)
class Sheet:
    """Columns of some files, joined: records of one file stand together, in its order."""

    files: Int64s
    """Which of the given files each record is from."""
    columns: Mapping[Names, pa.Array | pa.ChunkedArray]
    """All that were asked for; null where a writer does not have them. In chunks those that were asked for so."""

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, names: Names) -> pa.Array:
        column = self.columns[names]
        return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column

    def filter(self, mask: Any) -> Sheet:  # noqa: ANN401 - a mask of NumPy's
        """The records where the mask is true."""
        wanted = pa.array(mask)
        return Sheet(self.files[mask], {name: column.filter(wanted) for name, column in self.columns.items()})


def taken(column: pa.Array | pa.ChunkedArray, rows: Int64s) -> pa.Array:
    """Some of a column, by ascending places; of chunks only what is wanted is put together."""
    if isinstance(column, pa.Array):
        return column.take(pa.array(rows))
    ends = np.cumsum([0, *map(len, column.chunks)])
    cuts = np.searchsorted(rows, ends)
    parts = [
        chunk.take(pa.array(rows[cut:until] - start))
        for chunk, start, cut, until in zip(column.chunks, ends[:-1], cuts[:-1], cuts[1:], strict=True)
        if cut < until
    ]
    return pa.concat_arrays(parts) if parts else pa.nulls(0, column.type)


def read_sheets(
    files: Sequence[tuple[str, bytes]],
    kinds: Kinds,
    needed: Sequence[Names],
    what: str,
    chunked: Collection[Names] = (),
) -> Sheet:
    """The columns of all files, by their paths and contents; what says what each file should be.

    Those in chunked stay in chunks: large ones, of which few values will be wanted.
    """
    parts: list[Sheet] = []
    avro = [number for number, (_, data) in enumerate(files) if not is_table(data)]
    if avro:
        parts += _avro(files, avro, kinds, needed, what)
    for number in sorted(set(range(len(files))) - set(avro)):
        parts.append(_table(files[number], number, kinds, needed, what))
    if len(parts) == 1:
        return parts[0]
    joined = Sheet(
        np.concatenate([part.files for part in parts]) if parts else np.zeros(0, np.int64),
        {
            name: pa.nulls(0, kind)
            if not parts
            else (pa.chunked_array if name in chunked else pa.concat_arrays)([part[name] for part in parts])
            for name, kind in kinds.items()
        },
    )
    order = np.argsort(joined.files, kind="stable")
    if np.array_equal(order, np.arange(len(order))):
        return joined
    places = pa.array(order)
    return Sheet(joined.files[order], {name: column.take(places) for name, column in joined.columns.items()})


def _avro(
    files: Sequence[tuple[str, bytes]], numbers: Sequence[int], kinds: Kinds, needed: Sequence[Names], what: str
) -> list[Sheet]:
    ids = {name: place for place, name in enumerate(sorted({part for names in kinds for part in names}))}
    paths = {names: tuple(ids[part] for part in names) for names in kinds}
    parsed = [parse_avro(*files[number]) for number in numbers]

    def decoded_part(part: Sequence[tuple[int, AvroFile]]) -> list[Sheet]:
        own = np.array([number for number, _ in part], np.int64)
        found = []
        for decoded in decode_columns([file for _, file in part], paths.values(), ids):
            path = files[int(own[decoded.given[0]])][0]
            for names in needed:
                if paths[names] not in decoded.columns:
                    raise _lacks(path, names, what)
            columns = {
                names: _as(path, names, decoded.columns.get(paths[names]), kind, decoded.count)
                for names, kind in kinds.items()
            }
            found.append(Sheet(own[decoded.files], columns))
        return found

    parts = _parts(list(zip(numbers, parsed, strict=True)))
    return [sheet for sheets in in_order(decoded_part, parts, THREADS) for sheet in sheets]


def _parts(files: Sequence[tuple[int, AvroFile]]) -> list[list[tuple[int, AvroFile]]]:
    """The files in parts that are decoded side by side: some small files, or some blocks of a large one."""
    parts: list[list[tuple[int, AvroFile]]] = []
    size = PART_BYTES
    for number, file in files:
        ratio = 1 if file.codec == "null" else _USUAL_RATIO
        for piece in pieces(file, PART_BYTES // ratio):
            if size >= PART_BYTES:
                parts.append([])
                size = 0
            parts[-1].append((number, piece))
            size += (piece.blocks[-1][2] - piece.blocks[0][0]) * ratio if piece.blocks else 0
    return parts


def _table(file: tuple[str, bytes], number: int, kinds: Kinds, needed: Sequence[Names], what: str) -> Sheet:
    """A file of ORC or Parquet."""
    path, data = file
    table = read_table(path, data, {names[0] for names in kinds})
    columns = {}
    for names, kind in kinds.items():
        found = _inside(table, names)
        if found is None and names in needed:
            raise _lacks(path, names, what)
        columns[names] = _as(path, names, found, kind, table.num_rows)
    return Sheet(np.full(table.num_rows, number, np.int64), columns)


def read_table(path: str, data: bytes, wanted: Collection[str] | None = None) -> pa.Table:
    """A file of ORC or Parquet, or the wanted columns of it. An error if it is damaged, or larger than may be."""
    try:
        if data[:4] == _PARQUET:
            file = pq.ParquetFile(BytesIO(data))
            groups = [file.metadata.row_group(one) for one in range(file.metadata.num_row_groups)]
            large, names = sum(group.total_byte_size for group in groups) > inflation_limit(), file.schema_arrow.names
        else:
            file = orc.ORCFile(BytesIO(data))
            large, names = file.nrows > len(data) * _MOST_RATIO, file.schema.names
        if large:
            raise too_large(path, inflation_limit())
        return file.read(columns=[name for name in names if wanted is None or name in wanted])
    except (pa.ArrowException, OSError, ValueError) as error:
        raise unreadable(path, f"it is damaged ({str(error).splitlines()[0]})") from error


def is_table(data: bytes) -> bool:
    """Whether it is a file of ORC or Parquet, by its first bytes."""
    return data[:4] == _PARQUET or data[:3] == _ORC


def _inside(table: pa.Table, names: Names) -> pa.Array | None:
    """A column, or a field of a record; null where a record around it is null."""
    if names[0] not in table.column_names:
        return None
    column = table.column(names[0])
    found = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(found, pa.ChunkedArray):
        found = pa.concat_arrays(found.chunks) if found.num_chunks else pa.nulls(0, found.type)
    for name in names[1:]:
        if not pt.is_struct(found.type) or (place := found.type.get_field_index(name)) < 0:
            return None
        found = pa.compute.struct_field(found, [place])
    return found


def _as(path: str, names: Names, found: pa.Array | None, kind: pa.DataType, count: int) -> pa.Array:
    """The column as the type that it should have; it is damaged if it cannot be."""
    if found is None:
        return pa.nulls(count, kind)
    if found.type == kind:
        return found
    try:
        return found.cast(kind) if not _is_without_nulls(found.type) else _unsure(found).cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise unreadable(path, f"its field {'.'.join(names)} is of the type {found.type}, and not {kind}") from error


def _is_without_nulls(type_: pa.DataType) -> bool:
    return bool(pt.is_list(type_) and pt.is_int64(type_.value_type) and not type_.value_field.nullable)


def _unsure(lists: pa.ListArray) -> pa.ListArray:
    numbers = lists.values
    marked = pa.compute.if_else(pa.compute.equal(numbers, 0), UNSURE, numbers)
    return pa.ListArray.from_arrays(lists.offsets, marked, mask=lists.is_null())


def _lacks(path: str, names: Names, what: str) -> Exception:
    return unreadable(path, f"it lacks the field {'.'.join(names)}: it is not {what}", 0)
