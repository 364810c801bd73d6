"""A batch of a table's files, as a format hands them to the sieve.

Columnar: one Arrow array a property, one entry a file. A batch holds files of one partition spec, so that its
partition values have one type; a table whose partitioning has evolved comes as several batches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from tamis.predicate.schema import ColumnId
from tamis.sieve.domain import ColumnStats
from tamis.sieve.partitions import Undecoded

__all__ = ["FileBatch"]


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
    bucket: pa.Array | None = None
    total_buckets: pa.Array | None = None
    undecoded: tuple[Undecoded, ...] = ()
    extra: Mapping[str, pa.Array] = field(default_factory=dict)
    """What a reader or a commit needs later: carried along, shown nowhere."""

    def __len__(self) -> int:
        return len(self.path)
