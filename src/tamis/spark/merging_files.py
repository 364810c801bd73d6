"""Sections of Parquet files, merged on the executors without Spark's sort.

Which version of a row counts is told by keys, order and kind alone: these columns of a section are read first, and
each distinct key becomes a number. Files are then gone through one after the other; for each number the row of the
best version so far is kept, in one step for all rows of a file. What is left is a mask for each file, by which its
other columns are read, a part at a time. So no row is sorted or shuffled, and memory holds the keys of one section.

Law: the rows are those of tamis.spark.merging, in some other order.

This module runs on executors: it imports only what they have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy import typing as npt

from tamis.predicate.arrays import Int64s, Mask

__all__ = ["Rule", "Section", "VersionFile", "chosen_versions", "merge_sections"]

BATCH_ROWS: Final = 1 << 17
_LARGEST_CODE: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class VersionFile:
    """A file of versions: where it is, and what its columns are called there."""

    path: str
    rows: int
    written: Mapping[str, str]
    """Its columns by the table's names; those that it does not have are NULL."""
    constants: Mapping[str, pa.Scalar]
    """Values of all its rows, of columns that are not read from it."""


Section = tuple[VersionFile, ...]
"""Files that hold versions of the same rows; of equal versions the one in the last file counts."""


@dataclass(frozen=True, slots=True)
class Rule:
    """How versions become rows, and which columns are wanted."""

    wanted: pa.Schema
    keys: pa.Schema
    order: tuple[tuple[str, pa.DataType, bool], ...]
    """What tells the newer version, the most important first: a column, its type, whether it is descending."""
    kind: str
    removing: tuple[int, ...]
    oldest: bool
    ignores_removals: bool
    refused: str | None
    """Why a removal cannot be merged with other versions; None if it can."""

    @property
    def head(self) -> pa.Schema:
        """What is read first."""
        columns = {field.name: field.type for field in self.keys}
        columns |= {name: kind for name, kind, _ in self.order}
        return pa.schema([*columns.items(), (self.kind, pa.int8())])


def merge_sections(
    batches: Iterable[pa.RecordBatch], tasks: Sequence[Sequence[Section]], rule: Rule
) -> Iterator[pa.RecordBatch]:
    """The rows of the tasks whose numbers come in, one number a row."""
    for batch in batches:
        for task in batch.column(0).to_pylist():
            for section in tasks[task]:
                yield from _merged(section, rule)


def _merged(section: Section, rule: Rule) -> Iterator[pa.RecordBatch]:
    opened = [pq.ParquetFile(file.path, memory_map=True, coerce_int96_timestamp_unit="us") for file in section]
    heads = []
    for file, parquet in zip(section, opened, strict=True):
        if parquet.metadata.num_rows != file.rows:
            raise ValueError(
                f"{file.path} has {parquet.metadata.num_rows} rows, and the table's metadata says {file.rows}: it is "
                "not the file that was written"
            )
        heads.append(_read(file, parquet, rule.head))
    masks = chosen_versions(heads, rule)
    for file, parquet, head, mask in zip(section, opened, heads, masks, strict=True):
        yield from _taken(file, parquet, head, mask, rule)


def _read(file: VersionFile, parquet: pq.ParquetFile, schema: pa.Schema) -> pa.Table:
    """These columns of a whole file, in these types."""
    names = [file.written[name] for name in schema.names if name in file.written]
    table = parquet.read(columns=names, use_threads=False)
    return pa.table([_column(file, table, field, len(table)) for field in schema], schema=schema)


def _column(
    file: VersionFile, table: pa.Table | pa.RecordBatch, field: pa.Field, rows: int
) -> pa.Array | pa.ChunkedArray:
    if field.name in file.constants:
        return pa.repeat(file.constants[field.name], rows)
    if field.name not in file.written:
        return pa.nulls(rows, field.type)
    values = table.column(file.written[field.name])
    return values if values.type == field.type else values.cast(field.type)


def _taken(
    file: VersionFile, parquet: pq.ParquetFile, head: pa.Table, mask: Mask, rule: Rule
) -> Iterator[pa.RecordBatch]:
    """The chosen rows of a file. Row groups without one are not read again."""
    held = set(head.column_names)
    names = [file.written[name] for name in rule.wanted.names if name in file.written and name not in held]
    start = 0
    for group in range(parquet.metadata.num_row_groups):
        end = start + parquet.metadata.row_group(group).num_rows
        if mask[start:end].any():
            read = (
                parquet.iter_batches(BATCH_ROWS, row_groups=[group], columns=names, use_threads=False)
                if names
                else (None,) * -(-(end - start) // BATCH_ROWS)
            )
            for number, batch in enumerate(read):
                at = start + number * BATCH_ROWS
                until = min(at + BATCH_ROWS, end)
                chosen = pa.array(mask[at:until])
                if batch is not None and len(batch) != until - at:
                    raise ValueError(f"{file.path} gave {len(batch)} rows, where there are {until - at}")
                if mask[at:until].any():
                    kept = None if batch is None else batch.filter(chosen)
                    known = head.slice(at, until - at).filter(chosen)
                    yield _batch(file, kept, known, rule.wanted, int(mask[at:until].sum()))
        start = end


def _batch(
    file: VersionFile, kept: pa.RecordBatch | None, known: pa.Table, wanted: pa.Schema, rows: int
) -> pa.RecordBatch:
    columns = []
    for field in wanted:
        if field.name in known.column_names:
            column = known.column(field.name)
        elif kept is None and field.name in file.written:
            raise AssertionError(field.name)
        else:
            column = _column(file, kept, field, rows) if kept is not None else _column(file, known, field, rows)
        columns.append(column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column)
    return pa.RecordBatch.from_arrays(columns, schema=wanted)


def chosen_versions(heads: Sequence[pa.Table], rule: Rule) -> list[Mask]:
    """For each file of a section which of its versions are rows of the table."""
    table = pa.concat_tables(heads)
    ends = np.cumsum([len(head) for head in heads])
    kinds = table[rule.kind].to_numpy()
    removes = np.isin(kinds, rule.removing)
    codes, count = _coded([table[name] for name in rule.keys.names])
    order = [_ranked(table[name], descending=descending) for name, _, descending in rule.order]
    counted = ~removes if rule.ignores_removals else np.ones(len(table), np.bool_)
    if rule.refused is not None and removes.any() and (np.bincount(codes, minlength=count)[codes[removes]] > 1).any():
        raise ValueError(rule.refused)
    best = np.full(count, -1, np.int64)
    for start, end in zip([0, *ends[:-1]], ends, strict=True):
        rows = start + np.flatnonzero(counted[start:end])
        if not _are_distinct(codes[rows], count):
            best = _by_sorting(codes[counted], np.flatnonzero(counted), order, count, oldest=rule.oldest)
            break
        mine = codes[rows]
        others = best[mine]
        better = (others < 0) | _not_older(order, rows, others, oldest=rule.oldest)
        best[mine[better]] = rows[better]
    chosen = np.zeros(len(table), np.bool_)
    chosen[best[best >= 0]] = True
    chosen &= ~removes
    return np.split(chosen, ends[:-1])


def _coded(columns: Sequence[pa.ChunkedArray]) -> tuple[Int64s, int]:
    """A number for each row, the same where all columns are; and how many there are."""
    if len(columns) == 1 and not columns[0].null_count and pa.types.is_integer(columns[0].type):
        return _coded_numbers(columns[0].to_numpy())
    codes, count = np.zeros(0, np.int64), 0
    for place, column in enumerate(columns):
        if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
            column = column.cast(pa.large_binary())  # noqa: PLW2901 - any number of bytes
        encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        mine, size = encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)
        if not place:
            codes, count = mine, size
            continue
        if count * size >= _LARGEST_CODE:
            raise ValueError(f"a section has too many keys: {count} by {size}")
        pairs = pa.array(codes * size + mine).dictionary_encode()
        codes, count = pairs.indices.to_numpy().astype(np.int64), len(pairs.dictionary)
    return codes, count


def _coded_numbers(keys: npt.NDArray[np.integer]) -> tuple[Int64s, int]:
    """The same for numbers. Files are sorted by key, and a stable sort of sorted runs merges them in linear time."""
    places = np.argsort(keys, kind="stable")
    merged = keys[places]
    codes = np.empty(len(keys), np.int64)
    if len(keys):
        codes[places] = np.concatenate([[0], np.cumsum(merged[1:] != merged[:-1])])
    return codes, int(codes.max(initial=-1)) + 1


def _ranked(column: pa.ChunkedArray, *, descending: bool) -> Int64s:
    """Numbers that are the greater the newer a version is; NULL is the oldest."""
    if pa.types.is_int64(column.type) and not column.null_count:
        ranks = column.to_numpy()
        # -x - 1 reverses the order, and has no overflow.
        return np.asarray(-ranks - 1 if descending else ranks, np.int64)
    keys = "descending" if descending else "ascending"
    ranks = pc.rank(column, sort_keys=keys, null_placement="at_start", tiebreaker="dense").to_numpy()
    return np.asarray(ranks, np.int64)


def _are_distinct(codes: Int64s, count: int) -> bool:
    seen = np.zeros(count, np.bool_)
    seen[codes] = True
    return int(seen.sum()) == len(codes)


def _not_older(order: Sequence[Int64s], rows: Int64s, others: Int64s, *, oldest: bool) -> Mask:
    """Whether the versions in these rows take the place of the others; anything where there is no other."""
    taken, same = np.zeros(len(rows), np.bool_), np.ones(len(rows), np.bool_)
    for ranks in order:
        mine, theirs = ranks[rows], ranks[others]
        taken |= same & (mine < theirs if oldest else mine > theirs)
        same &= mine == theirs
    return taken if oldest else taken | same


def _by_sorting(codes: Int64s, rows: Int64s, order: Sequence[Int64s], count: int, *, oldest: bool) -> Int64s:
    """The same where a file has a key more than once."""
    places = np.lexsort([*(ranks[rows] for ranks in reversed(order)), codes])
    sorted_codes = codes[places]
    changes = np.flatnonzero(np.diff(sorted_codes))
    ends = np.concatenate([[0], changes + 1]) if oldest else np.concatenate([changes, [len(places) - 1]])
    best = np.full(count, -1, np.int64)
    if len(places):
        best[sorted_codes[ends]] = rows[places[ends]]
    return best
