"""The files that a plan keeps, as a reader needs them: columns by field id, values of metadata, deletes.

Law: a value that is in a file is read from the file; one that is not there comes from the metadata that has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from posixpath import normpath
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.formats.errors import unreadable
from tamis.formats.iceberg.fields import own_names, promoted_ids, read_field, read_fields
from tamis.formats.iceberg.kept_deletes import KeptDeletes
from tamis.formats.iceberg.ordinary import Ordinary, ordinary_columns
from tamis.formats.iceberg.scan_deletes import ScanDeletes, deletes_of
from tamis.formats.iceberg.unified import shown_values, unified_partitions
from tamis.formats.iceberg.written import Written, file_format, has_column, size_of, written_fields
from tamis.formats.scan import FileFormat, FileGroup, ReadField, Scan
from tamis.formats.storage.sizes import unknown_sizes
from tamis.predicate.arrays import Int64s, Mask
from tamis.sieve.outcome import Outcome
from tamis.sieve.plan import ScanPlan

if TYPE_CHECKING:
    from tamis.formats.iceberg.table import IcebergTable

__all__ = ["scan_plan"]

_STORE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(//[^/]*)?")


def scan_plan(table: IcebergTable, plan: ScanPlan) -> Scan:
    """What to read for a plan that was made of this table."""
    outcomes = [outcome for outcome in plan.outcomes if outcome.kept.any()]
    top = table.selection.schema.fields
    fields = read_fields(table.selection.schema, table.metadata.schemas)
    files = _files(table, outcomes)
    if not outcomes:
        return Scan(fields, files, (), second_way=True)
    deletes = _deletes(table, plan, outcomes)
    promoted = promoted_ids(table.metadata.schemas)
    hidden = () if deletes is None else tuple(read_field(one, promoted) for one in deletes.hidden)
    wanted = (*fields, *hidden)
    constants, partitioned = _constants(table, outcomes, wanted)
    hidden_fields = () if deletes is None else deletes.hidden
    written = written_fields(table.metadata, table.fetch, files, [*top, *hidden_fields])
    ordinary = ordinary_columns(plan.sieve, outcomes)
    groups = _groups(files, outcomes, wanted, partitioned, deletes, written, ordinary)
    sized = files.select(["path", "size"])
    if deletes is not None:
        sized = pa.concat_tables([sized, deletes.files])
    sizes = partial(unknown_sizes, sized, partial(size_of, table.fetch))
    scan = Scan(
        fields,
        files,
        tuple(groups),
        hidden,
        constants,
        own=own_names(table.metadata.schemas),
        second_way=True,
        unknown_sizes=sizes,
    )
    if deletes is None:
        return scan
    return replace(scan, positions=deletes.positions, vectors=deletes.vectors, equality=deletes.equality)


def _taken(outcomes: Iterable[Outcome], column: str) -> pa.ChunkedArray:
    """A column of all kept files; one of a batch, or of its extra ones."""
    chunks = []
    for outcome in outcomes:
        array = outcome.batch.extra[column] if column in outcome.batch.extra else getattr(outcome.batch, column)
        chunks.append(array.filter(pa.array(outcome.kept)))
    return pa.chunked_array(chunks)


def _files(table: IcebergTable, outcomes: Sequence[Outcome]) -> pa.Table:
    """A row for each kept file, in the plan's order: path, size, spec_id, file_format, sequence_number, partition."""
    partition = unified_partitions(table.metadata, outcomes)
    if not outcomes:
        names = {"path": pa.string(), "size": pa.int64(), "spec_id": pa.int32(), "file_format": pa.string()}
        more = [("sequence_number", pa.int64()), ("partition", partition.type), ("first_row_id", pa.int64())]
        empty = pa.schema([*names.items(), *more])
        return empty.empty_table()
    counts = [int(outcome.kept.sum()) for outcome in outcomes]
    spec_ids = np.repeat([outcome.batch.spec_id or 0 for outcome in outcomes], counts).astype(np.int32)
    files = pa.table(
        {
            "path": _taken(outcomes, "path"),
            "size": _taken(outcomes, "size"),
            "spec_id": pa.array(spec_ids),
            "file_format": pc.utf8_lower(_taken(outcomes, "file_format")),
            "sequence_number": _taken(outcomes, "sequence_number").fill_null(0),
            "partition": partition,
        }
    )
    return files.append_column("first_row_id", _first_row_ids(outcomes))


def _first_row_ids(outcomes: Sequence[Outcome]) -> pa.ChunkedArray:
    """The id of each file's first row; NULL before version 3, and of files that nobody has touched since."""
    name = "first_row_id"
    return pa.chunked_array(
        [
            outcome.batch.extra[name].filter(pa.array(outcome.kept))
            if name in outcome.batch.extra
            else pa.nulls(int(outcome.kept.sum()), pa.int64())
            for outcome in outcomes
        ],
        pa.int64(),
    )


def _deletes(table: IcebergTable, plan: ScanPlan, outcomes: Sequence[Outcome]) -> ScanDeletes | None:
    """The deletes of the kept files: those that the plan has found, which are not read again."""
    kept = plan.deletes if isinstance(plan.deletes, KeptDeletes) else table.list(plan.sieve).deletes
    return deletes_of(table, kept.index, outcomes) if isinstance(kept, KeptDeletes) else None


def _constants(
    table: IcebergTable, outcomes: Sequence[Outcome], wanted: Sequence[ReadField]
) -> tuple[dict[str, pa.Array], dict[str, Mask]]:
    """Identity partition values by column, and which files have such a value.

    It stands in wherever the file does not have the column: an imported file has its partition values in its path
    alone, and some writers leave such columns out. Metrics do not tell which: they may count what is not there.
    """
    by_id = {field.id: field for field in wanted if not field.children}
    total = sum(int(outcome.kept.sum()) for outcome in outcomes)
    partitioned: dict[str, Mask] = {}
    first = 0
    for outcome in outcomes:
        count = int(outcome.kept.sum())
        for _position, source in _identities(table, outcome, by_id):
            name = by_id[source].name
            partitioned.setdefault(name, np.zeros(total, np.bool_))[first : first + count] = True
        first += count
    values = {
        field.name: pa.chunked_array([_values(table, outcome, field) for outcome in outcomes]).combine_chunks()
        for field in by_id.values()
        if field.name in partitioned
    }
    return values, partitioned


def _identities(
    table: IcebergTable, outcome: Outcome, by_id: Mapping[int | None, ReadField]
) -> list[tuple[int, int]]:
    """The identity fields of a batch's spec whose source is wanted: their positions, and the sources."""
    batch = outcome.batch
    if batch.spec_id is None or batch.partition is None:
        return []
    spec = table.metadata.layout(batch.spec_id).spec
    return [
        (position, field.source)
        for position, field in enumerate(spec.fields)
        if field.transform.name == "identity" and isinstance(field.source, int) and field.source in by_id
    ]


def _values(table: IcebergTable, outcome: Outcome, field: ReadField) -> pa.Array:
    """A file's partition value for a column, NULL where its spec has none."""
    batch, kept = outcome.batch, pa.array(outcome.kept)
    type_ = pa.string() if field.type == pa.uuid() else field.type
    for position, source in _identities(table, outcome, {field.id: field}):
        if source == field.id and batch.partition is not None:
            _check_decoded(table, outcome, position, field)
            return shown_values(batch.partition.field(position).filter(kept)).cast(type_)
    return pa.nulls(int(outcome.kept.sum()), type_)


def _check_decoded(table: IcebergTable, outcome: Outcome, position: int, field: ReadField) -> None:
    """A partition value that could not be decoded keeps its file, which must have the column: NULL would be wrong."""
    for fault in outcome.batch.undecoded:
        for row in np.flatnonzero(fault.rows & outcome.kept).tolist() if fault.field == position else ():
            path = outcome.batch.path[row].as_py()
            name = outcome.batch.extra["file_format"][row].as_py().lower()
            if not has_column(table.metadata, table.fetch, path, file_format(name, path), field.id):
                raise unreadable(path, f"its partition value cannot be read, and it lacks the column: {fault.text}")


@dataclass(frozen=True, slots=True)
class _GroupKey:
    """What files must share to be read as one group."""

    file_format: FileFormat
    written: int
    constants: tuple[str, ...]
    holds: bool
    positions: bool
    equality: bool
    ordinary: int
    repeat: int
    """How often the table has named the file before. Each time its rows count, and Spark lists a path once."""


def _groups(
    files: pa.Table,
    outcomes: Sequence[Outcome],
    wanted: tuple[ReadField, ...],
    partitioned: Mapping[str, Mask],
    deletes: ScanDeletes | None,
    written: Written,
    ordinary: Ordinary,
) -> list[FileGroup]:
    count = len(files)
    holds = np.concatenate([outcome.holds[outcome.kept] for outcome in outcomes])
    positions = np.zeros(count, np.bool_) if deletes is None else deletes.has_positions
    equality = np.zeros(count, np.bool_) if deletes is None else deletes.has_equality
    members: dict[_GroupKey, list[int]] = {}
    formats = [file_format(name, path) for name, path in _distinct_formats(files)]
    codes = files["file_format"].combine_chunks().dictionary_encode().indices.to_numpy()
    names = list(partitioned)
    flags = np.stack([holds, positions, equality, *(partitioned[name] for name in names)])
    columns = (_repeats(files["path"]), ordinary.kinds, codes, written.codes, *flags)
    rows, inverse = np.unique(
        np.stack([np.asarray(column, np.int64) for column in columns]), axis=1, return_inverse=True
    )
    order = _first_seen(inverse)
    for group in order:
        repeat, common, code, projection, hold, position, equal, *valued = rows[:, group].tolist()
        constants = tuple(name for name, has_value in zip(names, valued, strict=True) if has_value)
        key = _GroupKey(formats[code], projection, constants, bool(hold), bool(position), bool(equal), common, repeat)
        members[key] = np.flatnonzero(inverse == group).tolist()
    return [
        FileGroup(
            key.file_format,
            np.array(numbers, np.int64),
            written.projections[key.written].fields or wanted,
            key.constants,
            key.holds,
            key.positions,
            key.equality,
            written.projections[key.written].options,
            ordinary.columns[key.ordinary],
            unread_by_spark=written.projections[key.written].unread_by_spark,
            twins=written.projections[key.written].twins,
            unknown=written.projections[key.written].unknown,
        )
        for key, numbers in members.items()
    ]


def _repeats(paths: pa.ChunkedArray) -> Int64s:
    """For each path how many of the same file come before it: nearly always none.

    One file may be spelled in several ways. Files of two stores under one path are taken for one: that costs nothing
    but a relation of its own.
    """
    bare = [_bare_path(path) for path in paths.to_pylist()]
    repeats = np.zeros(len(bare), np.int64)
    if len(set(bare)) < len(bare):
        seen: dict[str, int] = {}
        for number, path in enumerate(bare):
            repeats[number] = seen.get(path, 0)
            seen[path] = repeats[number] + 1
    return repeats


def _bare_path(path: str) -> str:
    """The path without scheme and authority, as Spark makes it: without empty parts, `.` and `..`."""
    store = _STORE.match(path)
    bare = path[store.end() :] if store else path
    return re.sub("^//+", "/", normpath(bare)) if "//" in bare or "/." in bare or bare.endswith("/") else bare


def _first_seen(inverse: Int64s) -> list[int]:
    """The groups in the order of their first file, so that the same plan is read in the same order."""
    groups, first = np.unique(inverse, return_index=True)
    return [int(groups[index]) for index in np.argsort(first, kind="stable")]


def _distinct_formats(files: pa.Table) -> list[tuple[str, str]]:
    """Each file format with one file that has it, in the order of dictionary encoding."""
    encoded = files["file_format"].combine_chunks().dictionary_encode()
    first = partial(pc.index, encoded.indices)
    return [
        (name, files["path"][first(code).as_py()].as_py()) for code, name in enumerate(encoded.dictionary.to_pylist())
    ]
