"""Checkpoints: all actions that are left at a version, as Parquet, or as JSON on top of Parquet sidecars.

Of a Parquet file only the columns that are asked for are read. Remove actions in a checkpoint are tombstones for
whoever vacuums: what they removed is in no checkpoint, so that they are not read here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tamis.formats.delta.actions import VECTOR, check_names, check_spelling, file_actions, named_actions
from tamis.formats.delta.int96 import as_instants, int96_columns
from tamis.formats.delta.keys import file_path
from tamis.formats.delta.log import Checkpoint
from tamis.formats.errors import unreadable
from tamis.formats.storage import Storage
from tamis.sieve.order import mask_of

__all__ = ["AddColumns", "Sidecar", "Top", "add_chunks", "check_vectors", "read_adds", "read_top", "vectors_of"]

Actions = list[tuple[str, Mapping[str, Any]]]
"""Actions by their names, in the order of the file."""
_TOP: Final = ("protocol", "metaData", "sidecar", "domainMetadata")
_ALWAYS: Final = ("sidecar", "domainMetadata")
_LEAST_ROWS: Final = 2
"""A protocol and a metaData action are in every checkpoint."""
_BYTES_OF_A_FILE: Final = 150
"""About what a file takes in a checkpoint, to tell how many a sidecar has before it is read."""
CHUNK: Final = 1 << 14
"""Actions that are decoded at a time: their texts are some megabytes, and are gone when they are judged."""
_TOLD: Final = {"path": pa.string(), "size": pa.int64()}
_NO_ADDS: Final = pa.struct([("path", pa.string()), ("size", pa.int64())])


@dataclass(frozen=True, slots=True)
class Sidecar:
    """A Parquet file that holds a part of a checkpoint's file actions."""

    location: str
    size: int


@dataclass(frozen=True, slots=True)
class Top:
    """What a checkpoint says beside its files; what is not asked for, or not there, is None."""

    protocol: Mapping[str, Any] | None
    metadata: Mapping[str, Any] | None
    sidecars: tuple[Sidecar, ...]
    files: int
    """About how many files it tells of."""
    domains: Mapping[str, Mapping[str, Any]]
    """What features keep of their own, by the domain's name."""


def read_top(storage: Storage, checkpoint: Checkpoint, log: str, *, described: bool) -> Top:
    """A checkpoint's sidecars, and, unless the commits after it have described the table, protocol and metadata."""
    found: dict[str, Mapping[str, Any]] = {}
    domains: dict[str, Mapping[str, Any]] = {}
    sidecars: list[Sidecar] = []
    files = 0
    for location in checkpoint.locations:
        if location.endswith(".json"):
            text = {location: storage(location)}
            check_names(text)
            actions: Actions = [(name, one) for _, name, one in named_actions(text, _TOP)]
            if not {"protocol", "metaData"} <= {name for name, _ in actions}:
                raise unreadable(location, "it has no protocol or no metaData action, which every checkpoint has")
        else:
            # Sidecars are told by a file that is the whole checkpoint; parts tell of files themselves.
            names = [name for name in _TOP if not (name == "sidecar" and len(checkpoint.locations) > 1)]
            wanted = [name for name in names if name in _ALWAYS or not (described or name in found)]
            actions, rows = _parquet_actions(storage, location, wanted)
            files += rows
        for name, action in actions:
            match name:
                case "sidecar":
                    sidecars.append(_sidecar(location, action, log))
                case "domainMetadata":
                    domains[str(action.get("domain"))] = action
                case _:
                    found[name] = action
    if files < _LEAST_ROWS and not checkpoint.locations[0].endswith(".json"):
        raise unreadable(
            checkpoint.locations[0], "it has no protocol or no metaData action, which every checkpoint has"
        )
    files += sum(one.size for one in sidecars) // _BYTES_OF_A_FILE
    return Top(found.get("protocol"), found.get("metaData"), tuple(sidecars), files, domains)


def _sidecar(location: str, action: Mapping[str, Any], log: str) -> Sidecar:
    path = action.get("path")
    if not isinstance(path, str) or not path:
        raise unreadable(location, "it names a sidecar without a path")
    size = action.get("sizeInBytes")
    return Sidecar(file_path(f"{log}/_sidecars", path), size if isinstance(size, int) else 0)


def _parquet_actions(storage: Storage, location: str, names: Sequence[str]) -> tuple[Actions, int]:
    """The actions of these names in a Parquet file, and how many rows it has."""
    with closing(storage.open(location)) as stream, _readable(location):
        file = pq.ParquetFile(stream)
        check_spelling(location, file.schema_arrow.names)
        there = [name for name in names if _has_action(location, file.schema_arrow, name)]
        found: Actions = []
        table = file.read(columns=there)
        for name in there:
            column = table[name].combine_chunks()
            actions = column.filter(_is_there(column)).to_pylist()
            found += [(name, {key: value for key, value in one.items() if value is not None}) for one in actions]
        return found, int(file.metadata.num_rows)


def _has_action(location: str, schema: pa.Schema, name: str) -> bool:
    """Whether a file has actions of that name: not if the column is not there, or has a type that holds none."""
    if name not in schema.names:
        return False
    type_ = schema.field(name).type
    if not (pa.types.is_struct(type_) or pa.types.is_null(type_)):
        raise unreadable(location, f"its column {name} is {type_}, and the action is a struct")
    return bool(pa.types.is_struct(type_))


def _is_there(column: pa.Array) -> pa.Array:
    """Rows that have the action: some writers give a struct of nulls to those that have not.

    Of those that have none a required field has a value all the same, which is none: both are asked.
    """
    first = {"protocol": "minReaderVersion", "metaData": "schemaString", "sidecar": "path", "domain": "domain"}
    names = {one.name for one in column.type}
    key = next((name for name in first.values() if name in names), None)
    return column.is_valid() if key is None else pc.and_(column.is_valid(), column.field(key).is_valid())


@contextmanager
def _readable(location: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, KeyError, UnicodeDecodeError) as error:
        raise unreadable(location, f"it is no checkpoint that Parquet readers can read ({error})") from error


def read_adds(location: str, data: bytes, columns: AddColumns) -> pa.StructArray:
    """The files that a checkpoint's file tells of, as a struct with the columns that are asked for and are there."""
    chunks = list(add_chunks(location, pa.BufferReader(data), columns))
    wide = max((chunk.type for chunk in chunks), key=lambda type_: type_.num_fields, default=_NO_ADDS)
    return pa.chunked_array([_spread(chunk, wide) for chunk in chunks], wide).combine_chunks()


def _spread(add: pa.StructArray, type_: pa.StructType) -> pa.StructArray:
    """The same with all fields of the type: those from where statistics were taken as text may have another one."""
    names = {one.name for one in add.type}
    arrays = [add.field(one.name) if one.name in names else pa.nulls(len(add), one.type) for one in type_]
    return pa.StructArray.from_arrays(arrays, fields=list(type_))


def add_chunks(location: str, stream: BinaryIO | pa.NativeFile, columns: AddColumns) -> Iterator[pa.StructArray]:
    """The same, some files at a time, in their order: no more than these are held at once."""
    if location.endswith(".json"):
        add = file_actions({location: bytes(stream.read())}, columns.partition)["add"].combine_chunks()
        yield add.filter(add.is_valid())
        return
    with _readable(location):
        # From afar all that is wanted is fetched at once; on this machine it is read when it is decoded.
        remote = isinstance(stream, pa.NativeFile) and not isinstance(stream, pa.BufferReader)
        file = pq.ParquetFile(stream, memory_map=False, pre_buffer=remote, coerce_int96_timestamp_unit="us")
        check_spelling(location, file.schema_arrow.names)
        if _has_action(location, file.schema_arrow, "add"):
            type_ = file.schema_arrow.field("add").type
            if _child(type_, "path") is None:
                raise unreadable(location, "its files have no path")
            yield from (_as_told(location, add) for add in _chunks(location, file, columns, type_, 0))


def _chunks(
    location: str, file: pq.ParquetFile, columns: AddColumns, type_: pa.StructType, start: int
) -> Iterator[pa.StructArray]:
    """From this row on. Where a file has no statistics in columns, those of all that follow are taken as text."""
    row, int96 = 0, int96_columns(file)
    for batch in file.iter_batches(CHUNK, columns=columns.chosen(type_)):
        row += len(batch)
        new = min(row - start, len(batch))
        if new <= 0:
            continue
        add = _present(location, batch.column("add").slice(len(batch) - new))
        if columns.fall_back(add, type_):
            yield from _chunks(location, file, columns.with_text(), type_, row - new)
            return
        if int96:
            add = as_instants(add, "add", int96)
        if len(add):
            yield add


def _as_told(location: str, add: pa.StructArray) -> pa.StructArray:
    """The same with the types that the protocol tells: a writer's Parquet may have wider ones, or encoded ones."""
    names, arrays = [one.name for one in add.type], []
    for name in names:
        values = add.field(name)
        if name in _TOLD:
            values = values if values.type == _TOLD[name] else values.cast(_TOLD[name])
            values.validate(full=True)  # text that is no UTF-8
        elif name == "stats" and not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
            values = values.cast(pa.string())
        elif name == "partitionValues":
            if not pa.types.is_map(values.type):
                raise unreadable(location, f"its partitionValues are {values.type}, and a map belongs there")
            values.validate(full=True)
        elif name == "deletionVector":
            if not (pa.types.is_struct(values.type) or pa.types.is_null(values.type)):
                raise unreadable(location, f"its deletionVector is {values.type}, and a struct belongs there")
            check_vectors(location, add)
            told = vectors_of(add)
            values = pa.nulls(len(add), VECTOR) if told is None else told
        arrays.append(values)
    return pa.StructArray.from_arrays(arrays, names=names)


def _present(location: str, add: pa.StructArray) -> pa.StructArray:
    """The rows that have an add action. Writers put them side by side: then nothing is copied."""
    there = mask_of(_is_there(add))
    if _child(add.type, "size") is not None:
        sized = mask_of(pc.and_(add.is_valid(), add.field("size").is_valid()))
        if bool((sized & ~there).any()):
            raise unreadable(location, "an add action in it has no path")
    rows = np.flatnonzero(there)
    if len(rows) and rows[-1] - rows[0] + 1 == len(rows):
        return add.slice(int(rows[0]), len(rows))
    return add.take(pa.array(rows))


@dataclass(frozen=True, slots=True)
class AddColumns:
    """What is asked of the files in a checkpoint."""

    partition: tuple[str, ...]
    """Physical names of the partition columns."""
    statistics: tuple[tuple[str, ...], ...]
    """Physical paths of the columns whose statistics are wanted."""
    text: bool = False
    """Whether statistics are taken as the JSON that writers wrote, also where they are there in columns."""

    def with_text(self) -> AddColumns:
        """The same, with statistics as JSON."""
        return AddColumns(self.partition, self.statistics, text=True)

    def parsed(self, type_: pa.StructType) -> bool:
        """Whether statistics are read from columns."""
        return _child(type_, "stats_parsed") is not None and not (self.text and _child(type_, "stats") is not None)

    def chosen(self, type_: pa.StructType) -> list[str]:
        """The columns to read, by their paths in the Parquet file."""
        names = ["path", "size", "deletionVector", *(["partitionValues"] if self.partition else [])]
        if self.parsed(type_):
            names += ["stats_parsed.numRecords", "stats_parsed.tightBounds"]
            for path in self.statistics:
                inside = ".".join(path)
                names += [f"stats_parsed.{part}.{inside}" for part in ("minValues", "maxValues", "nullCount")]
        else:
            names.append("stats")
        return [f"add.{name}" for name in names]

    def fall_back(self, add: pa.StructArray, type_: pa.StructType) -> bool:
        """Whether some file may have statistics as JSON alone: then those of all are taken from there."""
        if self.text or not self.parsed(type_) or _child(type_, "stats") is None:
            return False
        if "stats_parsed" not in {one.name for one in add.type}:
            return True
        parsed = add.field("stats_parsed")
        counts = parsed.field("numRecords") if "numRecords" in {one.name for one in parsed.type} else None
        return counts is None or parsed.null_count > 0 or counts.null_count > 0


def _child(type_: pa.StructType, name: str) -> pa.Field | None:
    return next((one for one in type_ if one.name == name), None)


def check_vectors(location: str, add: pa.StructArray) -> None:
    """An error for a deletion vector that does not say where it is: passed over, its rows would come back.

    A struct in which nothing stands is none. Some writers of Parquet give that to files without a vector.
    """
    found = add.field("deletionVector") if "deletionVector" in {one.name for one in add.type} else None
    if found is None or not pa.types.is_struct(found.type) or found.null_count == len(found):
        return
    told = {one.name: mask_of(pc.and_(found.is_valid(), found.field(one.name).is_valid())) for one in found.type}
    nowhere = np.zeros(len(found), np.bool_)
    some = np.logical_or.reduce([told.get(one.name, nowhere) for one in VECTOR])
    for name in ("storageType", "pathOrInlineDv"):
        if (some & ~told.get(name, nowhere)).any():
            raise unreadable(location, f"a deletion vector in it has no {name}")


def vectors_of(add: pa.StructArray) -> pa.StructArray | None:
    """The deletion vectors of these files, as the protocol has them; None if none has one."""
    if "deletionVector" not in {one.name for one in add.type}:
        return None
    found = add.field("deletionVector")
    if found.null_count == len(found):
        return None
    names = {one.name for one in found.type}
    if not {"storageType", "pathOrInlineDv"} <= names or not found.field("storageType").is_valid().sum().as_py():
        return None
    arrays = [
        found.field(one.name).cast(one.type) if one.name in names else pa.nulls(len(found), one.type)
        for one in VECTOR
    ]
    there = pc.and_(found.is_valid(), found.field("storageType").is_valid())
    return pa.StructArray.from_arrays(arrays, fields=list(VECTOR), mask=pc.invert(there))
