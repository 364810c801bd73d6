"""The files that a plan keeps, as a reader needs them: columns by each file's schema, vectors, versions of rows.

Law: rows are those that Java's batch read gives. A partition column's value is that of the metadata, whatever a file
has; a column that a file's schema lacks is NULL; versions of a row are merged before anything is filtered by value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast, get_args

import numpy as np
import pyarrow as pa
from pyarrow import types as pt

from tamis.errors import UnreadableFileError, UnsupportedFormatError
from tamis.formats.errors import shown
from tamis.formats.paimon import files as f
from tamis.formats.paimon.deletions import Placed, file_keys, index_file, read_vectors, vectors_of
from tamis.formats.paimon.merging import KIND, SEQUENCE, merging_rule
from tamis.formats.paimon.partition_values import Partitions, partition_folders
from tamis.formats.paimon.reading import has_zone, read_field, read_type, refused
from tamis.formats.paimon.schema import PaimonSchema, parse_schema
from tamis.formats.paimon.sections import Versions, version_sections
from tamis.formats.scan import FileFormat, FileGroup, MetadataColumn, OwnNames, ReadField, Scan, Vectors
from tamis.formats.storage.sizes import unknown_sizes
from tamis.sieve.outcome import Outcome
from tamis.sieve.plan import ScanPlan

if TYPE_CHECKING:
    from tamis.formats.paimon.table import PaimonTable

__all__ = ["METADATA_COLUMNS", "scan_plan"]

METADATA_COLUMNS: Final = (
    MetadataColumn("_file", "path"),
    MetadataColumn("_pos", None),
    MetadataColumn("_partition", "partition"),
    MetadataColumn("_bucket", "bucket"),
)
"""Of append tables. A row of a primary-key table may be put together of rows of several files."""
_HIDDEN: Final = (
    ReadField(SEQUENCE, pa.int64(), None, SEQUENCE, described="BIGINT"),
    ReadField(KIND, pa.int8(), None, KIND, described="TINYINT"),
)


@dataclass(frozen=True, slots=True)
class _Kept:
    """The kept files, a row each."""

    columns: Mapping[str, pa.Array]
    path: list[str]
    """Where each file is."""
    holds: np.ndarray[Any, np.dtype[np.bool_]]

    def __len__(self) -> int:
        return len(self.path)


def scan_plan(table: PaimonTable, plan: ScanPlan) -> Scan:
    """What to read for a plan that was made of this table."""
    schema = table.table_schema
    outcomes = [outcome for outcome in plan.outcomes if outcome.kept.any()]
    schemas = _schemas(table, outcomes)
    known = [schema, *schemas.values()]
    own = OwnNames.beside(name for one in known for path, _ in one.walk() for name in path)
    # A type that is not decoded is read from the files.
    opaque = {one.name for one in schema.partition_fields if pt.is_null(read_type(one))}
    places = {one.name: place for place, one in enumerate(schema.partition_fields) if one.name not in opaque}
    constants = {name: _constant(outcomes, place, name) for name, place in places.items()}
    kept = _kept(table, outcomes)
    files = _files(kept, constants)
    finder = _Finder(schema, schemas, frozenset(places), own)
    if not outcomes:
        return Scan(finder.shown(()), files, (), own=own, second_way=True)
    placed = _placed(table, kept)
    versions = _versions(table, kept)
    groups = _groups(kept, placed, versions, finder)
    return Scan(
        finder.shown(groups),
        files,
        groups,
        hidden=_HIDDEN if schema.primary_keys else (),
        constants=constants,
        vectors=_vectors(table, kept, placed),
        merging=merging_rule(table.name, schema, versions.sections, _ints(kept.columns["rows"]))
        if versions
        else None,
        own=own,
        second_way=True,
        unknown_sizes=partial(unknown_sizes, files.select(["path", "size"]), table.storage.size),
    )


def _schemas(table: PaimonTable, outcomes: Sequence[Outcome]) -> dict[int, PaimonSchema]:
    """The schemas that kept files were written with, by their ids."""
    ids = {
        id_ for outcome in outcomes for id_ in set(outcome.batch.extra[f.SCHEMA_ID].filter(outcome.kept).to_pylist())
    }
    found = {}
    for id_ in sorted(ids):
        path = f"{table.schema_folder}/schema-{id_}"
        mine = id_ == table.table_schema.id
        found[id_] = table.table_schema if mine else parse_schema(path, table.storage(path))
    return found


@dataclass(frozen=True, slots=True)
class _Finder:
    """Finds the table's columns in files."""

    schema: PaimonSchema
    schemas: Mapping[int, PaimonSchema]
    constant: frozenset[str]
    """Columns whose values are the partition's."""
    own: OwnNames

    def fields(
        self, schema_id: int, file_format: FileFormat, written: frozenset[str] | None
    ) -> tuple[ReadField, ...]:
        """How each column is found in files of that schema, which have these of its columns, or all."""
        then = {one.id: one for one in self.schemas[schema_id].fields if written is None or one.name in written}
        found = []
        for now in self.schema.fields:
            field = read_field(now, then.get(now.id), file_format, self.own)
            if now.name in self.constant and not refused(field):
                field = replace(field, written_as=None, stored=None)
            found.append(field)
        return tuple(found)

    def unread(self, schema_id: int, file_format: FileFormat) -> str | None:
        """Why Spark's reader fails on files of that schema, whichever columns are read; None if it does not."""
        zoned = next((one for one in self.schemas[schema_id].fields if has_zone(one)), None)
        if file_format != "orc" or zoned is None:
            return None
        return f"column {zoned.name!r}: times with a zone in ORC files"

    def shown(self, groups: Sequence[FileGroup]) -> tuple[ReadField, ...]:
        """The table's columns; those that some group cannot give are of no type, and say why."""
        found = []
        for place, now in enumerate(self.schema.fields):
            mine = [group.fields[place] for group in groups]
            wrong = next((field for field in mine if refused(field)), None)
            found.append(wrong or read_field(now, now, "parquet", self.own))
        return tuple(found)


def _kept(table: PaimonTable, outcomes: Sequence[Outcome]) -> _Kept:
    names = (f.LEVEL, f.SCHEMA_ID, f.DELETE_ROWS, f.WRITE_COLUMNS, f.PARTITION_ROW, f.EXTERNAL, f.MAX_SEQUENCE)
    columns: dict[str, pa.Array] = {name: _joined(outcomes, lambda one, n=name: one.batch.extra[n]) for name in names}
    columns["path"] = _joined(outcomes, lambda one: one.batch.path)
    columns["size"] = _joined(outcomes, lambda one: one.batch.size)
    columns["rows"] = _joined(outcomes, lambda one: one.batch.rows)
    columns["bucket"] = _joined(outcomes, lambda one: one.batch.bucket)
    holds = np.concatenate([one.holds[one.kept] for one in outcomes]) if outcomes else np.zeros(0, np.bool_)
    return _Kept(columns, _located(table, columns), holds)


def _joined(outcomes: Sequence[Outcome], column: Any) -> pa.Array:  # noqa: ANN401 - a function of an outcome
    found = [column(one).filter(pa.array(one.kept)) for one in outcomes]
    return pa.concat_arrays(found) if found else pa.nulls(0)


def _located(table: PaimonTable, columns: Mapping[str, pa.Array]) -> list[str]:
    """Where the files are. Of folders that writers name in two ways, the one in which the file is."""
    paths = columns["path"].to_pylist()
    external = columns[f.EXTERNAL].to_pylist()
    found = [path if apart else f"{table.location}/{path}" for path, apart in zip(paths, external, strict=True)]
    schema = table.table_schema
    if not paths or not schema.partition_keys:
        return found
    partitions = Partitions.of(columns[f.PARTITION_ROW], schema)
    others = partition_folders(schema.partition_fields, partitions.values, table.options, python=True)
    for number, code in enumerate(partitions.codes.tolist()):
        java, other = partitions.folders[code], others[code]
        if java != other and not external[number] and table.storage.size(found[number]) is None:
            spelled = f"{table.location}/{other}{paths[number].removeprefix(java)}"
            if table.storage.size(spelled) is not None:
                found[number] = spelled
    return found


def _files(kept: _Kept, constants: Mapping[str, pa.Array]) -> pa.Table:
    """A row for each kept file, in the plan's order."""
    type_ = pa.struct([pa.field(name, values.type) for name, values in constants.items()])
    partition = (
        pa.StructArray.from_arrays(list(constants.values()), fields=list(type_))
        if constants
        else pa.array([{}] * len(kept), type_)
    )
    columns = {"path": pa.array(kept.path, pa.string()), "size": kept.columns["size"].cast(pa.int64())}
    return pa.table({**columns, "partition": partition, "bucket": kept.columns["bucket"].cast(pa.int32())})


def _constant(outcomes: Sequence[Outcome], place: int, name: str) -> pa.Array:
    """The value of a partition column in each kept file. One that could not be decoded is an error, never NULL."""
    chunks = []
    for outcome in outcomes:
        assert outcome.batch.partition is not None  # noqa: S101 - for the type checker: the table is partitioned
        for fault in outcome.batch.undecoded:
            lost = fault.rows & outcome.kept if fault.field == place else np.zeros(0, np.bool_)
            if lost.any():
                path = outcome.batch.path[int(np.flatnonzero(lost)[0])].as_py()
                raise UnreadableFileError(
                    f"cannot read {shown(path)}: its value of the partition column {name} cannot be decoded "
                    f"({fault.text}). Read it with the engine that wrote it, or plan with a condition that leaves "
                    "it out.",
                    path=shown(path),
                    reason=fault.text,
                )
        chunks.append(outcome.batch.partition.field(place).filter(pa.array(outcome.kept)))
    return pa.concat_arrays(chunks) if chunks else pa.nulls(0)


def _placed(table: PaimonTable, kept: _Kept) -> dict[int, Placed]:
    """The vectors of kept files, by their numbers."""
    snapshot = table.snapshot
    if snapshot is None or snapshot.index_manifest is None or not len(kept):
        return {}
    path = f"{table.manifest_folder}/{snapshot.index_manifest}"
    by_file = read_vectors(path, table.storage(path), table.table_schema)
    if not by_file:
        return {}
    rows = kept.columns["rows"].to_pylist()
    found = {}
    keys = file_keys(kept.columns[f.PARTITION_ROW], kept.columns["bucket"], kept.path, table.table_schema)
    for number, key in enumerate(keys):
        placed = by_file.get(key)
        if placed is not None:
            found[number] = replace(placed, rows=placed.rows if placed.rows is not None else rows[number])
    return found


def _vectors(table: PaimonTable, kept: _Kept, placed: Mapping[int, Placed]) -> Vectors | None:
    beside = table.indices_beside_data
    located = [
        (number, index_file(one, kept.path[number], table.location, beside=beside), one)
        for number, one in placed.items()
    ]
    return vectors_of(located, table.storage)


def _versions(table: PaimonTable, kept: _Kept) -> Versions | None:
    """Which files hold versions of the same rows; None without a primary key."""
    if not table.table_schema.primary_keys:
        return None
    columns = kept.columns
    return version_sections(
        columns[f.PARTITION_ROW],
        _ints(columns["bucket"]),
        _ints(columns[f.LEVEL]),
        columns[f.DELETE_ROWS],
        merged=not table.options.skips_level_0,
    )


def _groups(
    kept: _Kept, placed: Mapping[int, Placed], versions: Versions | None, finder: _Finder
) -> tuple[FileGroup, ...]:
    """Files that are read alike."""
    schema_ids = kept.columns[f.SCHEMA_ID].to_pylist()
    written = kept.columns[f.WRITE_COLUMNS].to_pylist()
    members: dict[tuple[Any, ...], list[int]] = {}
    seen: dict[str, int] = {}
    for number, path in enumerate(kept.path):
        # Spark lists a path once: one that comes again is read apart.
        repeat = seen[path] = seen.get(path, -1) + 1
        columns = None if written[number] is None else frozenset(written[number])
        merged = versions is not None and bool(versions.merged[number])
        removals = versions is not None and bool(versions.removals[number])
        about = (_file_format(path), schema_ids[number], columns, bool(kept.holds[number]), number in placed)
        members.setdefault((*about, merged, removals, repeat), []).append(number)
    groups = []
    for (file_format, schema_id, columns, holds, positions, merged, removals, _), numbers in members.items():
        fields = finder.fields(schema_id, file_format, columns)
        hidden = tuple(_hidden(field, file_format) for field in _HIDDEN) if versions is not None else ()
        groups.append(
            FileGroup(
                file_format,
                np.array(numbers, np.int64),
                (*fields, *hidden),
                tuple(name for name in (one.name for one in fields) if name in finder.constant),
                holds,
                positions,
                merged=merged,
                removals=removals,
                unread_by_spark=finder.unread(schema_id, file_format),
            )
        )
    return tuple(groups)


def _hidden(field: ReadField, file_format: FileFormat) -> ReadField:
    """Avro has no numbers of one byte."""
    return replace(field, stored=pa.int32()) if file_format == "avro" and field.name == KIND else field


def _file_format(path: str) -> FileFormat:
    kind = path.rpartition(".")[2].lower()
    if kind not in get_args(FileFormat):
        raise UnsupportedFormatError(
            f"cannot read {shown(path)} on Spark: this version reads data files of Parquet, ORC and Avro. Read it "
            "with the engine that wrote it.",
            path=shown(path),
            feature=f"data files of the format {kind}",
        )
    return cast("FileFormat", kind)


def _ints(column: pa.Array) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.asarray(column.fill_null(-1).to_numpy(zero_copy_only=False), np.int64)
