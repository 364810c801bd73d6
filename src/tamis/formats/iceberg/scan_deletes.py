"""Which rows of the kept files are deleted: by position files, by vectors, by values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.errors import UnreadableMetadataError
from tamis.formats.errors import shown
from tamis.formats.iceberg.deletes import EVERYWHERE, DeleteIndex, Scoped
from tamis.formats.iceberg.fields import own_names, promoted_ids, read_field
from tamis.formats.iceberg.types import Field, TableSchema
from tamis.formats.iceberg.vectors import decode_vector
from tamis.formats.iceberg.written import file_format, written_fields
from tamis.formats.scan import DeleteGroup, EqualityDeletes, PositionDeletes, Vectors
from tamis.predicate.arrays import Int64s, Mask
from tamis.predicate.keys import INT64_MAX
from tamis.sieve.outcome import Outcome

if TYPE_CHECKING:
    from tamis.formats.iceberg.table import IcebergTable

__all__ = ["ScanDeletes", "deletes_of"]

HIDDEN: Final = "deleted_by_{}"
"""The name of a column that the table has no more and its deletes still name, by the field's id."""


@dataclass(frozen=True, slots=True)
class ScanDeletes:
    """The deletes of a scan, and which files have some."""

    has_positions: Mask
    has_equality: Mask
    positions: PositionDeletes | None
    vectors: Vectors | None
    equality: tuple[EqualityDeletes, ...]
    hidden: tuple[Field, ...]
    files: pa.Table
    """path and size of the delete files."""


@dataclass(frozen=True, slots=True)
class _Pairs:
    """A data file and a delete file that applies to it, by their numbers, and the delete files themselves."""

    data: Int64s
    delete: Int64s
    files: pa.Table

    def where(self, chosen: Mask) -> _Pairs:
        return _Pairs(self.data[chosen], self.delete[chosen], self.files)

    def of(self, column: str) -> pa.Array:
        """A column of the delete file of each pair."""
        return self.files[column].combine_chunks().take(pa.array(self.delete))


def deletes_of(table: IcebergTable, index: DeleteIndex, outcomes: Sequence[Outcome]) -> ScanDeletes | None:
    """The deletes of the kept files, which are numbered in the order of the outcomes; None if none applies."""
    if index.files is None:
        return None
    rows = [np.flatnonzero(outcome.kept) for outcome in outcomes]
    count = sum(map(len, rows))
    pairs = _pairs(index, index.files, outcomes, rows)
    equality, by_value_files, hidden = _equality(table, index, index.files, _reached(index, outcomes, rows))
    if not len(pairs.data) and not equality:
        return None
    is_vector = pairs.of("content_offset").is_valid().to_numpy(zero_copy_only=False)
    by_value = [deletes.data["number"].to_numpy() for deletes in equality]
    return ScanDeletes(
        _mask(count, pairs.data),
        _mask(count, np.concatenate([np.empty(0, np.int64), *by_value])),
        _positions(pairs.where(~is_vector)),
        _vectors(table, pairs.where(is_vector)),
        equality,
        hidden,
        index.files.take(pa.array(np.union1d(pairs.delete, by_value_files))).select(["path", "size"]),
    )


def _pairs(index: DeleteIndex, files: pa.Table, outcomes: Iterable[Outcome], rows: Sequence[Int64s]) -> _Pairs:
    """Each kept file with the deletes that name positions in it."""
    data, delete = [], []
    first = 0
    for outcome, chosen in zip(outcomes, rows, strict=True):
        deletes = index.positions(outcome.batch, chosen)
        data.append(first + np.repeat(np.arange(len(chosen)), deletes.value_lengths().to_numpy()))
        delete.append(deletes.flatten().to_numpy().astype(np.int64))
        first += len(chosen)
    return _Pairs(np.concatenate(data), np.concatenate(delete), files)


def _reached(index: DeleteIndex, outcomes: Iterable[Outcome], rows: Sequence[Int64s]) -> Scoped:
    """The scopes and sequence numbers of all kept files."""
    batches = [index.reached(outcome.batch, chosen) for outcome, chosen in zip(outcomes, rows, strict=True)]
    return Scoped(
        np.concatenate([batch.scopes for batch in batches]), np.concatenate([batch.sequences for batch in batches])
    )


def _mask(count: int, numbers: Int64s) -> Mask:
    mask = np.zeros(count, np.bool_)
    mask[numbers] = True
    return mask


def _positions(pairs: _Pairs) -> PositionDeletes | None:
    if not len(pairs.data):
        return None
    used, indices = np.unique(pairs.delete, return_inverse=True)
    files = pairs.files.take(pa.array(used))
    listed = pa.table({"path": files["path"], "file_format": pc.utf8_lower(files["file_format"])})
    return PositionDeletes(listed, pairs.data, indices, int(pc.sum(files["rows"]).as_py() or 0))


def _vectors(table: IcebergTable, pairs: _Pairs) -> Vectors | None:
    if not len(pairs.data):
        return None
    return Vectors(
        pairs.data,
        tuple(pairs.of("path").to_pylist()),
        pairs.of("content_offset").to_numpy(),
        pairs.of("content_size").to_numpy(),
        decode_vector,
        table.fetch,
        int(pc.sum(pairs.of("rows")).as_py() or 0),
        counts=dict(enumerate(pairs.of("rows").to_pylist())),
    )


def _equality(
    table: IcebergTable, index: DeleteIndex, files: pa.Table, data: Scoped
) -> tuple[tuple[EqualityDeletes, ...], Int64s, tuple[Field, ...]]:
    """Those of each set of columns, what reaches one partition apart from what reaches the whole table.

    With them the numbers of their files, and the columns that only they know.

    Data and deletes meet by scope and sequence number alone: no pair of them is listed.
    """
    deletes = index.equality
    rows = np.flatnonzero(deletes.scopes >= 0)
    ids = files["equality_ids"].take(pa.array(rows)).to_pylist()
    everywhere = (deletes.scopes[rows] == EVERYWHERE).tolist()
    members: dict[tuple[tuple[int, ...], bool], list[int]] = {}
    for row, field_ids, reach in zip(rows.tolist(), ids, everywhere, strict=True):
        members.setdefault((tuple(sorted(field_ids or ())), reach), []).append(row)
    by_columns: list[EqualityDeletes] = []
    hidden: dict[str, Field] = {}
    numbers = [np.empty(0, np.int64)]
    for (columns, reach), group in members.items():
        scopes = np.full(len(data.scopes), EVERYWHERE) if reach else data.scopes
        met = _met(Scoped(scopes, data.sequences), deletes, np.array(group, np.int64))
        if met is None:
            continue
        numbers.append(met[1])
        used = files.take(pa.array(met[1]))
        if not columns:
            raise _unusable(used["path"][0].as_py(), "deletes by value, and names no column")
        located = [_located(table, field_id, used) for field_id in columns]
        hidden |= {column.hidden.name: column.hidden for column in located if column.hidden is not None}
        concerned = pa.table(
            {"number": met[0], "sequence": data.sequences[met[0]], "scope": scopes[met[0]].astype(np.int64)}
        )
        by_columns.append(_equality_deletes(table, located, concerned, used, deletes.scopes[met[1]]))
    return tuple(by_columns), np.concatenate(numbers), tuple(hidden.values())


def _met(data: Scoped, deletes: Scoped, rows: Int64s) -> tuple[Int64s, Int64s] | None:
    """The data files that any of these deletes reaches, and the deletes that reach any; None if there are none.

    A file is reached if the youngest delete of its scope is younger, a delete reaches if the oldest file is older.
    """
    scopes, sequences = deletes.scopes[rows], deletes.sequences[rows]
    numbers = int(max(data.scopes.max(initial=-1), scopes.max(initial=-1))) + 1
    youngest, oldest = np.full(numbers + 1, -1, np.int64), np.full(numbers + 1, INT64_MAX, np.int64)
    np.maximum.at(youngest, scopes, sequences)
    youngest[-1] = -1  # where data stands that is in no scope
    np.minimum.at(oldest, data.scopes, data.sequences)
    reached = np.flatnonzero(youngest[data.scopes] > data.sequences)
    used = rows[oldest[scopes] < sequences]
    return (reached, used) if len(reached) else None


def _equality_deletes(
    table: IcebergTable, located: Sequence[_Located], data: pa.Table, files: pa.Table, scopes: Int64s
) -> EqualityDeletes:
    merged = _merged(located)
    listed = pa.table(
        {
            "path": files["path"],
            "file_format": pc.utf8_lower(files["file_format"]),
            "sequence": files["sequence_number"].fill_null(INT64_MAX),
            "scope": scopes,
        }
    )
    return EqualityDeletes(
        tuple(column.path for column in located),
        tuple(_names(merged, column.ids) for column in located),
        tuple(_delete_groups(table, listed, merged)),
        data,
        int(pc.sum(files["rows"]).as_py() or 0),
    )


def _delete_groups(table: IcebergTable, files: pa.Table, fields: Sequence[Field]) -> Iterator[DeleteGroup]:
    """The delete files by their projections: by id, or by the names that they have."""
    written = written_fields(table.metadata, table.fetch, files, fields)
    formats = files["file_format"].to_pylist()
    promoted = promoted_ids(table.metadata.schemas)
    by_id = tuple(read_field(field, promoted) for field in fields)
    members: dict[tuple[str, int], list[int]] = {}
    for row, key in enumerate(zip(formats, written.codes.tolist(), strict=True)):
        members.setdefault(key, []).append(row)
    for (name, code), rows in members.items():
        projection = written.projections[code]
        columns = projection.fields or by_id
        chosen = files.take(pa.array(rows))
        absent = next((field for field in columns if field.id is None and field.written_as is None), None)
        if absent is not None:
            raise _unusable(chosen["path"][0].as_py(), f"deletes by {absent.name!r}, a column that it does not have")
        if projection.unknown:
            raise _unusable(
                chosen["path"][0].as_py(),
                f"deletes by what is inside {min(projection.unknown)!r}, carries no field ids, and the table has no "
                "name mapping",
            )
        yield DeleteGroup(
            file_format(name, chosen["path"][0].as_py()),
            columns,
            chosen,
            projection.options,
            projection.unread_by_spark,
            projection.twins,
        )


def _unusable(path: str, why: str) -> UnreadableMetadataError:
    return UnreadableMetadataError(
        f"{shown(path)} {why}. The metadata is corrupt: restore an older snapshot.",
        path=shown(path),
        offset=None,
        place=None,
        reason="unusable equality deletes",
    )


@dataclass(frozen=True, slots=True)
class _Located:
    """A column that deletes name: where it is in the table, hidden if need be, and how delete files have it."""

    path: tuple[str, ...]
    ids: tuple[int, ...]
    """Of the fields from the column down to the compared one."""
    written: Field
    hidden: Field | None = None


def _located(table: IcebergTable, field_id: int, files: pa.Table) -> _Located:
    schemas = [table.selection.schema, *sorted(table.metadata.schemas, key=lambda version: -version.schema_id)]
    for schema in schemas:
        fields = _path_to(schema, field_id)
        if fields is None:
            continue
        written = _only(fields)
        path, ids = tuple(field.name for field in fields), tuple(field.id for field in fields)
        if schema is table.selection.schema:
            return _Located(path, ids, written)
        hidden = replace(written, name=own_names(table.metadata.schemas)(HIDDEN.format(field_id)))
        return _Located((hidden.name, *path[1:]), ids, written, hidden)
    raise _unusable(files["path"][0].as_py(), f"deletes by field {field_id}, which no schema of the table has")


def _path_to(schema: TableSchema, field_id: int) -> list[Field] | None:
    """The fields from a column down to the field of that id."""

    def search(fields: Iterable[Field]) -> list[Field] | None:
        for field in fields:
            if field.id == field_id:
                return [field]
            below = search(field.children)
            if below is not None:
                return [field, *below]
        return None

    return search(schema.fields)


def _only(fields: Sequence[Field]) -> Field:
    """The outermost field, with nothing in it but the path to the innermost."""
    inner = fields[-1]
    for outer in reversed(fields[:-1]):
        inner = replace(outer, children=(inner,), type=pa.struct([pa.field(inner.name, inner.type)]))
    return inner


def _names(fields: Sequence[Field], ids: Sequence[int]) -> tuple[str, ...]:
    """The path down to a field, by name."""
    names = []
    for id_ in ids:
        inner = next(field for field in fields if field.id == id_)
        names.append(inner.name)
        fields = inner.children
    return tuple(names)


def _merged(located: Sequence[_Located]) -> tuple[Field, ...]:
    merged: dict[int, Field] = {}
    for column in located:
        written = column.written
        merged[written.id] = _joined(merged[written.id], written) if written.id in merged else written
    return tuple(merged.values())


def _joined(a: Field, b: Field) -> Field:
    """Two paths into one struct, as one struct."""
    children: dict[int, Field] = {child.id: child for child in a.children}
    for child in b.children:
        children[child.id] = _joined(children[child.id], child) if child.id in children else child
    type_ = pa.struct([pa.field(child.name, child.type) for child in children.values()])
    return replace(a, children=tuple(children.values()), type=type_)
