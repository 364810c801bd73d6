"""Add actions as batches of files: typed partition values and deletion vectors; statistics when asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.formats.delta.actions import map_of
from tamis.formats.delta.checkpoints import AddColumns, vectors_of
from tamis.formats.delta.chunks import Chunk, LateStatistics, Source
from tamis.formats.delta.generated import partition_spec
from tamis.formats.delta.partition_values import partition_columns, wall_times
from tamis.formats.delta.schema import DeltaSchema
from tamis.predicate.arrays import Int64s
from tamis.predicate.compare.zones import Zone
from tamis.predicate.schema import Column, ColumnId
from tamis.sieve.files import FileBatch, rows_of
from tamis.sieve.order import mask_of
from tamis.sieve.partitions import Undecoded

__all__ = ["VECTOR_COLUMN", "FileMaker", "wall_column"]

VECTOR_COLUMN: Final = "deletionVector"
"""What a batch carries for whoever reads its files; not there if none of them has a vector."""
MOST_FILES: Final = 1 << 18
"""Files of one batch: what is judged at a time."""


@dataclass(frozen=True, slots=True)
class FileMaker:
    """Makes files of add actions, with statistics of the wanted columns. It is pickled."""

    schema: DeltaSchema
    wanted: tuple[Column, ...]
    zone: Zone | None = None
    """The zone of timestamps in partition values that have none; None if nobody said: then they say nothing."""

    @property
    def zone_name(self) -> str | None:
        """The name of the zone, if there is one."""
        return None if self.zone is None else self.zone.name

    @property
    def columns(self) -> AddColumns:
        """What to read of a checkpoint."""
        partition = tuple(field.physical_name for field in self.schema.partition_fields)
        paths = dict.fromkeys(_physical_path(self.schema, column) for column in self._in_files)
        return AddColumns(partition, tuple(paths))

    @property
    def ids(self) -> tuple[ColumnId, ...]:
        """The columns whose statistics are wanted."""
        return tuple(column.id for column in self._in_files)

    @property
    def _in_files(self) -> tuple[Column, ...]:
        """Those of the wanted columns whose values are in files.

        A partition column's are the log's, whatever a file, and so its statistics, may have under its name.
        """
        partition = {field.id for field in self.schema.partition_fields}
        return tuple(column for column in self.wanted if column.id not in partition)

    def chunk(self, add: pa.StructArray) -> Chunk:
        """The files of these add actions, in their order, with their statistics still as the log has them."""
        count, names = len(add), {one.name for one in add.type}
        vectors = vectors_of(add)
        partition: pa.StructArray | None = None
        undecoded: tuple[Undecoded, ...] = ()
        extra = {} if vectors is None else {VECTOR_COLUMN: vectors}
        if self.schema.partition_fields:
            spec = partition_spec(self.schema, spec_id=None)
            values = _maps(add, names)
            partition, undecoded = spec.partition(*partition_columns(values, self.schema, self.zone))
            walls = wall_times(values, self.schema)
            extra |= {wall_column(place): times for place, times in walls.items()}
        has_vector = np.zeros(count, np.bool_) if vectors is None else mask_of(vectors.is_valid())
        files = FileBatch(
            path=add.field("path"),
            size=add.field("size") if "size" in names else pa.nulls(count, pa.int64()),
            rows=pa.nulls(count, pa.int64()),
            partition=partition,
            deletes=pa.array(has_vector.astype(np.int32)),
            undecoded=undecoded,
            extra=extra,
        )
        return Chunk(files, Source(_child(add, "stats"), _child(add, "stats_parsed"), self.columns.statistics))

    def late(self, chunk: Chunk, kept: Int64s | None = None, *, thorough: bool = False) -> FileBatch:
        """A chunk's files, or some of them by their places: their statistics are decoded when they are asked for."""
        files = chunk.files if kept is None else rows_of(chunk.files, kept)
        return replace(files, late=LateStatistics(self.schema, self._in_files, chunk, chunk.source, kept, thorough))

    def batches(self, add: pa.StructArray) -> Iterator[FileBatch]:
        """The files of these add actions, in their order, in batches that are judged at a time."""
        for start in range(0, len(add), MOST_FILES):
            yield self.late(self.chunk(add.slice(start, MOST_FILES)))


def wall_column(place: int) -> str:
    """What a batch carries of a partition column whose times say no zone; not there if all of them say one."""
    return f"wallTime.{place}"


def _maps(add: pa.StructArray, names: Iterable[str]) -> pa.Array:
    if "partitionValues" not in names:
        return pa.nulls(len(add), pa.map_(pa.string(), pa.string()))
    values = add.field("partitionValues")
    return map_of(values) if pa.types.is_struct(values.type) else values


def _child(add: pa.StructArray, name: str) -> pa.Array | None:
    """A part of the actions with the nulls of its parent, which a child does not have by itself."""
    if name not in {one.name for one in add.type}:
        return None
    return pc.struct_field(add, name)


def _physical_path(schema: DeltaSchema, column: Column) -> tuple[str, ...]:
    """The names by which files and statistics know a column."""
    fields, path = schema.fields, []
    for name in column.path:
        field = next(one for one in fields if one.name == name)
        path.append(field.physical_name)
        fields = field.children
    return tuple(path)
