"""Which rows of the kept files are deleted: by position files, by vectors, by values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy import typing as npt

from tamis.formats.errors import UnreadableMetadataError, shown
from tamis.formats.iceberg.deletes import EQUALITY, DeleteIndex
from tamis.formats.iceberg.fields import read_field
from tamis.formats.iceberg.types import Field, TableSchema
from tamis.formats.iceberg.vectors import decode_vector
from tamis.formats.iceberg.written import file_format, written_fields
from tamis.formats.scan import DeleteGroup, EqualityDeletes, PositionDeletes, Vectors
from tamis.sieve.order import Mask
from tamis.sieve.outcome import Outcome

if TYPE_CHECKING:
    from tamis.formats.iceberg.table import IcebergTable

__all__ = ["ScanDeletes", "deletes_of"]

HIDDEN: Final = "_tamis_deleted_by_{}"
"""The name of a column that the table has no more and its deletes still name, by the field's id."""
EVERYWHERE: Final = -1
"""The scope of equality deletes of unpartitioned specs."""

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ScanDeletes:
    """The deletes of a scan, and which files have some."""

    has_positions: Mask
    has_equality: Mask
    positions: PositionDeletes | None
    vectors: Vectors | None
    equality: tuple[EqualityDeletes, ...]
    hidden: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class _Pairs:
    """A data file and a delete file that applies to it, by their places, and the delete files themselves."""

    data: Numbers
    delete: Numbers
    files: pa.Table

    def where(self, chosen: Mask) -> _Pairs:
        return _Pairs(self.data[chosen], self.delete[chosen], self.files)

    def of(self, column: str) -> pa.Array:
        """A column of the delete file of each pair."""
        return self.files[column].combine_chunks().take(pa.array(self.delete))


def deletes_of(table: IcebergTable, index: DeleteIndex, outcomes: Sequence[Outcome]) -> ScanDeletes | None:
    """The deletes of the kept files, which are numbered in the order of the outcomes; None if none applies."""
    count = sum(int(outcome.kept.sum()) for outcome in outcomes)
    pairs = _pairs(index, outcomes)
    if pairs is None or not len(pairs.data):
        return None
    is_equality = pairs.of("content").to_numpy() == EQUALITY
    is_vector = pairs.of("content_offset").is_valid().to_numpy(zero_copy_only=False)
    by_value = pairs.where(is_equality)
    sequences = np.concatenate([_sequences(outcome) for outcome in outcomes])
    equality, hidden = _equality(table, by_value, sequences)
    return ScanDeletes(
        _mask(count, pairs.data[~is_equality]),
        _mask(count, by_value.data),
        _positions(pairs.where(~is_equality & ~is_vector)),
        _vectors(table, pairs.where(is_vector)),
        equality,
        hidden,
    )


def _pairs(index: DeleteIndex, outcomes: Iterable[Outcome]) -> _Pairs | None:
    if index.files is None:
        return None
    data, delete = [], []
    first = 0
    for outcome in outcomes:
        rows = np.flatnonzero(outcome.kept)
        places = index.assign(outcome.batch, rows)
        data.append(first + np.repeat(np.arange(len(rows)), places.value_lengths().to_numpy()))
        delete.append(places.flatten().to_numpy().astype(np.int64))
        first += len(rows)
    return _Pairs(np.concatenate(data), np.concatenate(delete), index.files)


def _sequences(outcome: Outcome) -> Numbers:
    taken = outcome.batch.extra["sequence_number"].filter(pa.array(outcome.kept))
    return np.asarray(taken.fill_null(0).to_numpy())


def _mask(count: int, numbers: Numbers) -> Mask:
    found = np.zeros(count, np.bool_)
    found[numbers] = True
    return found


def _positions(pairs: _Pairs) -> PositionDeletes | None:
    if not len(pairs.data):
        return None
    used, places = np.unique(pairs.delete, return_inverse=True)
    files = pairs.files.take(pa.array(used))
    listed = pa.table({"path": files["path"], "file_format": pc.utf8_lower(files["file_format"])})
    return PositionDeletes(listed, pairs.data, places, int(pc.sum(files["rows"]).as_py() or 0))


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
    )


def _equality(
    table: IcebergTable, pairs: _Pairs, sequences: Numbers
) -> tuple[tuple[EqualityDeletes, ...], tuple[Field, ...]]:
    """A part for each set of columns, and for what reaches one partition and what reaches the whole table."""
    if not len(pairs.data):
        return (), ()
    unpartitioned = [one.spec.spec_id for one in table.metadata.specs if one.spec.is_unpartitioned]
    everywhere = np.isin(pairs.of("spec_id").to_numpy(), unpartitioned)
    ids = pairs.of("equality_ids").to_pylist()
    keys = [(tuple(sorted(one or ())), reach) for one, reach in zip(ids, everywhere.tolist(), strict=True)]
    parts: list[EqualityDeletes] = []
    hidden: dict[str, Field] = {}
    for columns, reach in dict.fromkeys(keys):
        if not columns:
            nameless = next(place for place, key in enumerate(keys) if not key[0])
            raise _unusable(pairs.of("path")[nameless].as_py(), "deletes by value, and names no column")
        mine = pairs.where(np.fromiter((key == (columns, reach) for key in keys), np.bool_, len(keys)))
        found = [_located(table, field_id, mine) for field_id in columns]
        hidden |= {one.hidden.name: one.hidden for one in found if one.hidden is not None}
        parts.append(_part(table, mine, found, sequences, everywhere=reach))
    return tuple(parts), tuple(hidden.values())


def _part(
    table: IcebergTable, pairs: _Pairs, found: Sequence[_Located], sequences: Numbers, *, everywhere: bool
) -> EqualityDeletes:
    by_data, by_delete = _scopes(pairs, everywhere=everywhere)
    used = np.array(sorted(by_delete), np.int64)
    files = pairs.files.take(pa.array(used))
    numbers = np.array(sorted(by_data), np.int64)
    merged = _merged(found)
    listed = pa.table(
        {
            "path": files["path"],
            "file_format": pc.utf8_lower(files["file_format"]),
            "sequence": files["sequence_number"].fill_null(np.iinfo(np.int64).max),
            "scope": pa.array([by_delete[place] for place in used.tolist()], pa.int64()),
        }
    )
    return EqualityDeletes(
        tuple(one.path for one in found),
        tuple(_names(merged, one.ids) for one in found),
        tuple(_delete_groups(table, listed, merged)),
        pa.table(
            {
                "number": numbers,
                "sequence": sequences[numbers],
                "scope": pa.array([by_data[number] for number in numbers.tolist()], pa.int64()),
            }
        ),
        int(pc.sum(files["rows"]).as_py() or 0),
    )


def _delete_groups(table: IcebergTable, files: pa.Table, fields: Sequence[Field]) -> Iterator[DeleteGroup]:
    """The delete files by the way in which their columns are found: by id, or by the names that they have."""
    written = written_fields(table.metadata, table.fetch, files, fields)
    formats = files["file_format"].to_pylist()
    by_id = tuple(read_field(one) for one in fields)
    members: dict[tuple[str, int], list[int]] = {}
    for place, key in enumerate(zip(formats, written.kinds.tolist(), strict=True)):
        members.setdefault(key, []).append(place)
    for (name, kind), places in members.items():
        way = written.ways[kind]
        found = way.fields or by_id
        chosen = files.take(pa.array(places))
        absent = next((one for one in found if one.id is None and one.written_as is None), None)
        if absent is not None:
            raise _unusable(chosen["path"][0].as_py(), f"deletes by {absent.name!r}, a column that it does not have")
        yield DeleteGroup(file_format(name, chosen["path"][0].as_py()), found, chosen, way.options)


def _unusable(path: str, why: str) -> UnreadableMetadataError:
    return UnreadableMetadataError(
        f"{shown(path)} {why}. The metadata is corrupt: restore an older snapshot.",
        path=shown(path),
        offset=None,
        reason="unusable equality deletes",
    )


def _scopes(pairs: _Pairs, *, everywhere: bool) -> tuple[dict[int, int], dict[int, int]]:
    """A number for each partition that deletes and data share, by data file and by delete file.

    All data of a partition that has any delete has its newest one: that one names the partition.
    """
    if everywhere:
        return dict.fromkeys(pairs.data.tolist(), EVERYWHERE), dict.fromkeys(pairs.delete.tolist(), EVERYWHERE)
    age = pairs.of("sequence_number").fill_null(np.iinfo(np.int64).max).to_numpy()
    order = np.lexsort((-pairs.delete, age))
    # The last one given to a data file stays: the newest, and of several the first.
    scope = dict(zip(pairs.data[order].tolist(), pairs.delete[order].tolist(), strict=True))
    data = pairs.data.tolist()
    return scope, {place: scope[number] for number, place in zip(data, pairs.delete.tolist(), strict=True)}


@dataclass(frozen=True, slots=True)
class _Located:
    """A column that deletes name: where it is in the table, hidden if need be, and how delete files have it."""

    path: tuple[str, ...]
    ids: tuple[int, ...]
    """Of the fields from the column down to the compared one."""
    written: Field
    hidden: Field | None = None


def _located(table: IcebergTable, field_id: int, pairs: _Pairs) -> _Located:
    schemas = [table.selection.schema, *sorted(table.metadata.schemas, key=lambda one: -one.schema_id)]
    for schema in schemas:
        fields = _way(schema, field_id)
        if fields is None:
            continue
        written = _only(fields)
        path, ids = tuple(one.name for one in fields), tuple(one.id for one in fields)
        if schema is table.selection.schema:
            return _Located(path, ids, written)
        hidden = replace(written, name=HIDDEN.format(field_id))
        return _Located((hidden.name, *path[1:]), ids, written, hidden)
    raise _unusable(pairs.of("path")[0].as_py(), f"deletes by field {field_id}, which no schema of the table has")


def _way(schema: TableSchema, field_id: int) -> list[Field] | None:
    """The fields from a column down to the field of that id."""

    def search(fields: Iterable[Field]) -> list[Field] | None:
        for one in fields:
            if one.id == field_id:
                return [one]
            below = search(one.children)
            if below is not None:
                return [one, *below]
        return None

    return search(schema.fields)


def _only(fields: Sequence[Field]) -> Field:
    """The outermost field, with nothing in it but the way to the innermost."""
    inner = fields[-1]
    for outer in reversed(fields[:-1]):
        inner = replace(outer, children=(inner,), type=pa.struct([pa.field(inner.name, inner.type)]))
    return inner


def _names(fields: Sequence[Field], ids: Sequence[int]) -> tuple[str, ...]:
    """The way down to a field, by name."""
    names = []
    for id_ in ids:
        one = next(field for field in fields if field.id == id_)
        names.append(one.name)
        fields = one.children
    return tuple(names)


def _merged(found: Sequence[_Located]) -> tuple[Field, ...]:
    merged: dict[int, Field] = {}
    for one in found:
        way = one.written
        merged[way.id] = _joined(merged[way.id], way) if way.id in merged else way
    return tuple(merged.values())


def _joined(a: Field, b: Field) -> Field:
    """Two ways into one struct, as one struct."""
    children: dict[int, Field] = {one.id: one for one in a.children}
    for one in b.children:
        children[one.id] = _joined(children[one.id], one) if one.id in children else one
    type_ = pa.struct([pa.field(one.name, one.type) for one in children.values()])
    return replace(a, children=tuple(children.values()), type=type_)
