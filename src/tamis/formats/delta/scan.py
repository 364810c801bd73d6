"""The files that a plan keeps, as a reader needs them: columns by physical name or id, partition values, vectors.

Law: a partition column's value is the log's, of every file; a column that a file lacks is NULL; the rows that a
file's deletion vector names are gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy import typing as npt

from tamis.errors import UnreadableFileError
from tamis.formats.delta.files import VECTOR_COLUMN, wall_column
from tamis.formats.delta.keys import file_path
from tamis.formats.delta.partition_values import instants, is_zoned
from tamis.formats.delta.schema import DeltaField
from tamis.formats.delta.session_values import read_texts
from tamis.formats.delta.types import padded_length
from tamis.formats.delta.vectors import FRAME, decode_vector, inline_vector, vector_location
from tamis.formats.errors import shown, unreadable
from tamis.formats.scan import FileGroup, MetadataColumn, OwnNames, ReadField, Scan, Vectors
from tamis.formats.storage.sizes import unknown_sizes
from tamis.predicate.bound import Known
from tamis.predicate.compare.zones import Zone
from tamis.predicate.keys import has_order
from tamis.sieve.order import mask_of
from tamis.sieve.outcome import Outcome
from tamis.sieve.plan import ScanPlan
from tamis.sieve.sieve import Sieve

if TYPE_CHECKING:
    from tamis.formats.delta.table import DeltaTable

__all__ = ["METADATA_COLUMNS", "scan_plan"]

_VOID: Final = frozenset({"void", "null"})
METADATA_COLUMNS: Final = (
    MetadataColumn("_file", "path"),
    MetadataColumn("_pos", None),
    MetadataColumn("_partition", "partition"),
)


def scan_plan(table: DeltaTable, plan: ScanPlan) -> Scan:
    """What to read for a plan that was made of this table."""
    schema = table.snapshot.schema
    by_id = table.snapshot.metadata.column_mapping == "id"
    partition = {field.name: place for place, field in enumerate(schema.partition_fields)}
    fields = tuple(_column(field, by_id=by_id, constant=field.name in partition) for field in schema.fields)
    own = OwnNames.beside(name for path, field in schema.walk() for name in (*path, field.physical_name))
    outcomes = [outcome for outcome in plan.outcomes if outcome.kept.any()]
    constants = {name: _constant(table, outcomes, place, plan.sieve.zone) for name, place in partition.items()}
    files = _files(table, outcomes, constants)
    if not outcomes:
        return Scan(fields, files, (), own=own)
    vectors = _vectors(table, outcomes)
    holds = np.concatenate([outcome.holds[outcome.kept] for outcome in outcomes])
    deleted = np.zeros(len(files), np.bool_)
    if vectors is not None:
        deleted[vectors.data] = True
    kinds, members = np.unique(np.stack([~holds, deleted, _repeats(files["path"])]), axis=1, return_inverse=True)
    groups = [
        FileGroup("parquet", np.flatnonzero(members == number), fields, tuple(partition), not filtered, bool(gone))
        for number, (filtered, gone, _) in enumerate(kinds.T.tolist())
    ]
    sizes = partial(unknown_sizes, files.select(["path", "size"]), table.storage.size)
    return Scan(
        fields,
        files,
        tuple(groups),
        constants=constants,
        vectors=vectors,
        own=own,
        unknown_sizes=sizes,
        zone_dependent=partial(_is_zone_dependent, table, plan.sieve),
    )


def _is_zone_dependent(table: DeltaTable, sieve: Sieve) -> bool:
    """Whether files were judged by times of partitions that say no zone. The log is read again for it."""
    asked = {column.id for column in sieve.columns}
    fields = enumerate(table.snapshot.schema.partition_fields)
    places = [wall_column(place) for place, field in fields if is_zoned(field) and field.id in asked]
    if not places:
        return False
    everything = replace(sieve, predicate=replace(sieve.predicate, root=Known(value=True)), runtime_filters=())
    batches = table.list(everything).batches(None)
    return any(place in batch.extra for batch in batches for place in places)


def _column(field: DeltaField, *, by_id: bool, constant: bool) -> ReadField:
    """A column of the table: a partition column is in no file, whatever a file may have under its name."""
    found = _void(field) if field.spark_type in _VOID else _read_field(field, by_id=by_id)
    return replace(found, id=None, written_as=None) if constant else found


def _void(field: DeltaField) -> ReadField:
    """Of which no value was ever seen, is in no file: Parquet has no such type."""
    return ReadField(field.name, field.type, described=field.spark_type, spark_type="void")


def _read_field(field: DeltaField, *, by_id: bool) -> ReadField:
    """A column, or what is inside one. Readers that go by ids take nothing inside a column that has none."""
    if field.spark_type in _VOID and not by_id:
        return _void(field)
    padded = padded_length(field.spark_type)
    return ReadField(
        field.name,
        pa.string() if padded else field.type,
        field.field_id if by_id else None,
        None if by_id else field.physical_name,
        tuple(_read_field(one, by_id=by_id) for one in (*field.children, *field.items)),
        described=field.spark_type,
        spark_type=field.spark_type if field.spark_type.startswith("string collate ") else "",
        variant=field.spark_type == "variant",
        padded=padded,
    )


def _files(table: DeltaTable, outcomes: Sequence[Outcome], constants: Mapping[str, pa.Array]) -> pa.Table:
    """A row for each kept file, in the plan's order: path (where the file is), size, partition."""
    paths, sizes = (_taken(outcomes, name, kind) for name, kind in (("path", pa.string()), ("size", pa.int64())))
    type_ = pa.struct([pa.field(name, values.type) for name, values in constants.items()])
    partition = (
        pa.StructArray.from_arrays(list(constants.values()), fields=list(type_))
        if constants
        else pa.array([{}] * len(paths), type_)
    )
    located = pa.array([_located_file(table.location, path) for path in paths.to_pylist()], pa.string())
    return pa.table({"path": located, "size": sizes, "partition": partition})


def _located_file(root: str, path: str) -> str:
    found = file_path(root, path)
    if not found.isascii():
        try:
            found.encode()
        except UnicodeEncodeError:
            raise UnreadableFileError(
                f"cannot read {shown(path)}: its path is no UTF-8 once its escapes are undone, and Spark opens no "
                "such file. Plan with a condition that leaves it out.",
                path=shown(path),
                reason="its path is no UTF-8",
            ) from None
    return found


def _taken(outcomes: Sequence[Outcome], column: str, kind: pa.DataType) -> pa.ChunkedArray:
    return pa.chunked_array([getattr(one.batch, column).filter(pa.array(one.kept)) for one in outcomes], kind)


def _constant(table: DeltaTable, outcomes: Sequence[Outcome], place: int, zone: Zone | None) -> pa.Array:
    """The value of a partition column in each kept file. One of which it is not sure what Spark reads is an error.

    Of what engines read in two ways the rows have what Spark's connector gives: an empty text is empty, a time that
    says no zone is one in the zone of the session that reads, and '1' is true.
    """
    field = table.snapshot.schema.partition_fields[place]
    chunks = []
    # A string that does not compare by its bytes has no type here: it stays a text.
    type_ = field.type if has_order(field.type) else pa.string()
    for outcome in outcomes:
        assert outcome.batch.partition is not None  # noqa: S101 - for the type checker: the table is partitioned
        values = outcome.batch.partition.field(place).cast(type_)
        faults = [(one.rows, one.text, one.written) for one in outcome.batch.undecoded if one.field == place]
        if zone is not None and (name := wall_column(place)) in outcome.batch.extra:
            walls = outcome.batch.extra[name]
            bare, taken = mask_of(walls.is_valid()), instants(walls, zone, type_)
            values = pc.if_else(pa.array(bare), taken, values)
            faults = [(rows & ~bare, text, written) for rows, text, written in faults]
            faults.append(
                (bare & mask_of(taken.is_null()), f"its time is beyond the known rules of {zone.name}", None)
            )
        for rows, text, written in faults:
            lost = rows & outcome.kept
            if written is not None and lost.any():
                given, known = read_texts(written, type_, zone)
                told = lost & mask_of(known)
                values, lost = pc.if_else(pa.array(told), given, values), lost & ~told
            if lost.any():
                path = outcome.batch.path[int(np.flatnonzero(lost)[0])].as_py()
                raise UnreadableFileError(
                    f"cannot read {shown(path)}: its value of the partition column {field.name} cannot be decoded "
                    f"({text}), and the file does not have the column. Read it with the engine that wrote it, "
                    "or plan with a condition that leaves it out.",
                    path=shown(path),
                    reason=text,
                )
        chunks.append(values.filter(pa.array(outcome.kept)))
    return pa.chunked_array(chunks, type_).combine_chunks()


def _vectors(table: DeltaTable, outcomes: Sequence[Outcome]) -> Vectors | None:
    """The deletion vectors of the kept files; None if none has one."""
    data: list[int] = []
    vectors: list[dict[str, Any]] = []
    first = 0
    for outcome in outcomes:
        rows = np.flatnonzero(outcome.kept)
        if VECTOR_COLUMN in outcome.batch.extra:
            found = outcome.batch.extra[VECTOR_COLUMN].take(pa.array(rows)).to_pylist()
            for number, vector in enumerate(found, first):
                if vector is not None:
                    data.append(number)
                    vectors.append(vector)
        first += len(rows)
    if not vectors:
        return None
    located = [_located(table, vector) for vector in vectors]
    return Vectors(
        data=np.array(data, np.int64),
        location=tuple(location or "" for location, *_ in located),
        offset=np.array([offset for _, offset, *_ in located], np.int64),
        length=np.array([length for *_, length, _ in located], np.int64),
        decode=decode_vector,
        fetch=table.storage,
        rows=sum(vector["cardinality"] or 0 for vector in vectors),
        held={place: blob for place, (*_, blob) in enumerate(located) if blob is not None},
        counts={n: one["cardinality"] for n, one in enumerate(vectors) if one["cardinality"] is not None},
    )


def _located(table: DeltaTable, vector: Mapping[str, Any]) -> tuple[str | None, int, int, bytes | None]:
    """Where a vector is: its file, offset and length there; or the vector itself."""
    try:
        location = vector_location(table.location, vector)
        if location is None:
            blob = inline_vector(vector)
            return None, 0, len(blob), blob
    except ValueError as error:
        raise unreadable(table.log.folder, str(error)) from error
    if vector["sizeInBytes"] is None:
        raise unreadable(table.log.folder, "a deletion vector does not say its size")
    return location, vector["offset"] or 0, vector["sizeInBytes"] + FRAME, None


def _repeats(paths: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """For each file how often it comes before: nearly never. Spark lists a path once, so each is read apart."""
    found = np.zeros(len(paths), np.int64)
    places = paths.to_pylist()
    if len(set(places)) < len(places):
        seen: dict[str, int] = {}
        for number, place in enumerate(places):
            found[number] = seen.get(place, 0)
            seen[place] = int(found[number]) + 1
    return found
