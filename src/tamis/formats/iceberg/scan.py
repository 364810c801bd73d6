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
from numpy import typing as npt

from tamis.formats.errors import unreadable
from tamis.formats.iceberg.fields import own_names, read_field, read_fields
from tamis.formats.iceberg.manifest_list import DELETES, read_manifest_list
from tamis.formats.iceberg.manifests import live_manifests
from tamis.formats.iceberg.ordinary import Ordinary, ordinary_columns
from tamis.formats.iceberg.scan_deletes import ScanDeletes, deletes_of
from tamis.formats.iceberg.unified import shown_values, unified_partitions
from tamis.formats.iceberg.written import Written, file_format, has_column, size_of, written_fields
from tamis.formats.scan import FileFormat, FileGroup, ReadField, Scan
from tamis.formats.sizes import unknown_sizes
from tamis.sieve.order import Mask
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
        return Scan(fields, files, ())
    deletes = _deletes(table, outcomes)
    hidden = () if deletes is None else tuple(read_field(one) for one in deletes.hidden)
    wanted = (*fields, *hidden)
    constants, partitioned = _constants(table, outcomes, wanted)
    hidden_fields = () if deletes is None else deletes.hidden
    written = written_fields(table.metadata, table.fetch, files, [*top, *hidden_fields])
    ordinary = ordinary_columns(plan.sieve, outcomes)
    groups = _groups(files, outcomes, wanted, partitioned, deletes, written, ordinary)
    sized = files.select(["path", "size"])
    if deletes is not None:
        sized = pa.concat_tables([sized, deletes.files])
    sizes = partial(unknown_sizes, sized, partial(size_of, table.fetch), _is_local)
    scan = Scan(
        fields, files, tuple(groups), hidden, constants, own=own_names(table.metadata.schemas), unknown_sizes=sizes
    )
    if deletes is None:
        return scan
    return replace(scan, positions=deletes.positions, vectors=deletes.vectors, equality=deletes.equality)


def _is_local(path: str) -> bool:
    return "://" not in path or path.startswith("file:")


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
        empty = pa.schema([*names.items(), ("sequence_number", pa.int64()), ("partition", partition.type)])
        return empty.empty_table()
    counts = [int(outcome.kept.sum()) for outcome in outcomes]
    spec_ids = np.repeat([outcome.batch.spec_id or 0 for outcome in outcomes], counts).astype(np.int32)
    return pa.table(
        {
            "path": _taken(outcomes, "path"),
            "size": _taken(outcomes, "size"),
            "spec_id": pa.array(spec_ids),
            "file_format": pc.utf8_lower(_taken(outcomes, "file_format")),
            "sequence_number": _taken(outcomes, "sequence_number").fill_null(0),
            "partition": partition,
        }
    )


def _deletes(table: IcebergTable, outcomes: Sequence[Outcome]) -> ScanDeletes | None:
    counted = [outcome.batch.deletes for outcome in outcomes]
    if all(counts is not None and not pc.sum(counts).as_py() for counts in counted):
        return None
    assert table.selection.snapshot is not None  # noqa: S101 - for the type checker: there are files
    manifests = live_manifests(read_manifest_list(table.selection.snapshot, table.fetch), DELETES)
    return deletes_of(table, table.delete_index(manifests), outcomes)


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
        for _place, source in _identities(table, outcome, by_id):
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
    """The identity fields of a batch's spec whose source is wanted: their places, and the sources."""
    batch = outcome.batch
    if batch.spec_id is None or batch.partition is None:
        return []
    spec = table.metadata.layout(batch.spec_id).spec
    return [
        (place, field.source)
        for place, field in enumerate(spec.fields)
        if field.transform.name == "identity" and isinstance(field.source, int) and field.source in by_id
    ]


def _values(table: IcebergTable, outcome: Outcome, field: ReadField) -> pa.Array:
    """A file's partition value for a column, NULL where its spec has none."""
    batch, kept = outcome.batch, pa.array(outcome.kept)
    type_ = pa.string() if field.type == pa.uuid() else field.type
    for place, source in _identities(table, outcome, {field.id: field}):
        if source == field.id and batch.partition is not None:
            _check_decoded(table, outcome, place, field)
            return shown_values(batch.partition.field(place).filter(kept)).cast(type_)
    return pa.nulls(int(outcome.kept.sum()), type_)


def _check_decoded(table: IcebergTable, outcome: Outcome, place: int, field: ReadField) -> None:
    """A partition value that could not be decoded keeps its file, which must have the column: NULL would be wrong."""
    for fault in outcome.batch.undecoded:
        for row in np.flatnonzero(fault.rows & outcome.kept).tolist() if fault.field == place else ():
            path = outcome.batch.path[row].as_py()
            name = outcome.batch.extra["file_format"][row].as_py().lower()
            if not has_column(table.metadata, table.fetch, path, file_format(name, path), field.id):
                raise unreadable(path, f"its partition value cannot be read, and it lacks the column: {fault.text}")


@dataclass(frozen=True, slots=True)
class _Kind:
    """What files must share to be read as one."""

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
    members: dict[_Kind, list[int]] = {}
    formats = [file_format(name, path) for name, path in _distinct_formats(files)]
    codes = files["file_format"].combine_chunks().dictionary_encode().indices.to_numpy()
    names = list(partitioned)
    flags = np.stack([holds, positions, equality, *(partitioned[name] for name in names)])
    columns = (_repeats(files["path"]), ordinary.kinds, codes, written.kinds, *flags)
    rows, inverse = np.unique(np.stack([np.asarray(one, np.int64) for one in columns]), axis=1, return_inverse=True)
    order = _first_seen(inverse)
    for kind in order:
        repeat, common, code, way, hold, position, equal, *valued = rows[:, kind].tolist()
        constants = tuple(name for name, has_value in zip(names, valued, strict=True) if has_value)
        key = _Kind(formats[code], way, constants, bool(hold), bool(position), bool(equal), common, repeat)
        members[key] = np.flatnonzero(inverse == kind).tolist()
    return [
        FileGroup(
            kind.file_format,
            np.array(numbers, np.int64),
            written.ways[kind.written].fields or wanted,
            kind.constants,
            kind.holds,
            kind.positions,
            kind.equality,
            written.ways[kind.written].options,
            ordinary.columns[kind.ordinary],
        )
        for kind, numbers in members.items()
    ]


def _repeats(paths: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """For each path how many of the same file come before it: nearly always none.

    One file may be spelled in several ways. Files of two stores under one path are taken for one: that costs nothing
    but a relation of its own.
    """
    places = [_place(path) for path in paths.to_pylist()]
    found = np.zeros(len(places), np.int64)
    if len(set(places)) < len(places):
        seen: dict[str, int] = {}
        for number, place in enumerate(places):
            found[number] = seen.get(place, 0)
            seen[place] = found[number] + 1
    return found


def _place(path: str) -> str:
    """The path without scheme and authority, as Spark makes it: without empty parts, `.` and `..`."""
    store = _STORE.match(path)
    bare = path[store.end() :] if store else path
    return re.sub("^//+", "/", normpath(bare)) if "//" in bare or "/." in bare or bare.endswith("/") else bare


def _first_seen(inverse: npt.NDArray[np.int64]) -> list[int]:
    """The kinds in the order of their first file, so that the same plan is read in the same order."""
    kinds, first = np.unique(inverse, return_index=True)
    return [int(kinds[place]) for place in np.argsort(first, kind="stable")]


def _distinct_formats(files: pa.Table) -> list[tuple[str, str]]:
    """Each file format with one file that has it, in the order of dictionary encoding."""
    encoded = files["file_format"].combine_chunks().dictionary_encode()
    first = partial(pc.index, encoded.indices)
    return [
        (name, files["path"][first(code).as_py()].as_py()) for code, name in enumerate(encoded.dictionary.to_pylist())
    ]
