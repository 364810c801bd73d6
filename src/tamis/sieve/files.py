"""A batch of a table's files, as a format hands them to the sieve.

Columnar: one Arrow array a property, one entry a file. A batch holds files of one partition spec, so that its
partition values have one type; a table whose partitioning has evolved comes as several batches. Files that stand or
fall together come in one batch, all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, TypeVar, cast

import numpy as np
import pyarrow as pa

from tamis.predicate.arrays import Int64s
from tamis.predicate.schema import ColumnId
from tamis.sieve.domain import ColumnStats
from tamis.sieve.file_buckets import FileBuckets
from tamis.sieve.partitions import Undecoded

__all__ = ["FileBatch", "Late", "Stated", "rows_of"]

OfFiles = TypeVar("OfFiles")


@dataclass(frozen=True, slots=True)
class Stated:
    """Row counts and statistics of a batch, of full length: null of the files that were not asked for."""

    rows: pa.Array
    stats: Mapping[ColumnId, ColumnStats]
    notes: tuple[str, ...] = ()


Late = Callable[[Int64s], Stated]
"""What says them of some files of a batch, by their places in it. The same files are always told the same."""


@dataclass(frozen=True, slots=True)
class FileBatch:
    """Files of one spec. What a format does not have stays None and says nothing."""

    path: pa.Array
    """As the metadata has it; never resolved, decoded or trusted."""
    size: pa.Array
    """Bytes."""
    rows: pa.Array
    """Rows, deleted ones included; null or negative if unknown."""
    spec_id: int | None = None
    """The spec that partition is read with; without one there is no partition."""
    partition: pa.StructArray | None = None
    """A child for each field of the spec, in the spec's order; None if the spec is unpartitioned."""
    stats: Mapping[ColumnId, ColumnStats] = field(default_factory=dict)
    deletes: pa.Array | None = None
    """How many delete files or vectors apply."""
    buckets: tuple[FileBuckets, ...] = ()
    """Where the writer's hash placed the files' rows, of formats that keep that apart from partitions."""
    group: pa.Array | None = None
    """Files of one number stand or fall together, as tamis.sieve.groups has it: they hold versions of the same rows,
    by key, such as the files of a primary-key table's bucket. Null: the file stands alone. The numbers mean nothing
    beyond this batch: a group comes whole in one batch, and lies in one partition. The smaller the groups the better:
    files whose keys overlap no others' can be one of their own. Whoever reads a group merges what is kept of it by
    key before it filters by values, and skips the filter only where the verdict is ALL.

    Partition and buckets must hold of every version of a row, removals included, and so must the statistics of keys;
    rows counts removals too. If a row is put together of several versions (partial updates, aggregation), no
    statistics of values may be stated: no single version has all its values."""
    keys: frozenset[ColumnId] = frozenset()
    """Columns whose statistics hold of every version of a row, since versions agree in them; for files in groups."""
    undecoded: tuple[Undecoded, ...] = ()
    notes: tuple[str, ...] = ()
    """What the format has to say of facts that it left out."""
    extra: Mapping[str, pa.Array] = field(default_factory=dict)
    """What a reader or a commit needs later: carried along, shown nowhere."""
    late: Late | None = None
    """Where row counts and statistics take long to decode: they are asked for when partitions and buckets have had
    their say, for the files that these leave. Until then rows may be null, and there are no statistics."""

    def __len__(self) -> int:
        return len(self.path)

    def stated(self, rows: Int64s | None = None) -> FileBatch:
        """The batch with what it says late of these files, of all by default: then nothing is late any more."""
        if self.late is None:
            return self
        found = self.late(np.arange(len(self)) if rows is None else rows)
        return replace(self, rows=found.rows, stats=found.stats, notes=(*self.notes, *found.notes), late=None)

    @property
    def bucket(self) -> pa.Array | None:
        """The bucket of each file, by the first that are stated; None if the format has none."""
        return self.buckets[0].bucket if self.buckets else None


def rows_of(value: OfFiles, rows: Int64s) -> OfFiles:
    """The same for some of the files: of a batch, or of whatever else has an entry for each file of one."""
    return cast("OfFiles", _taken(value, rows))


def _taken(value: Any, rows: Int64s) -> Any:  # noqa: ANN401 - a batch, or any part of one
    match value:
        case np.ndarray():
            return value[rows]
        case pa.Array():
            return value.take(pa.array(rows))
        case FileBuckets():
            return value.take(rows)
        case FileBatch() if value.late is not None:
            return _taken(value.stated(rows), rows)
        case tuple():
            return tuple(_taken(one, rows) for one in value)
        case Mapping():
            return {key: _taken(one, rows) for key, one in value.items()}
        case _ if is_dataclass(value) and not isinstance(value, type):
            return replace(value, **{one.name: _taken(getattr(value, one.name), rows) for one in fields(value)})
        case _:
            return value
