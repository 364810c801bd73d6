"""Some files of a log, decoded as far as somebody has asked.

Partition values are decoded at once, statistics late: of the wanted columns, for the files that partitions leave.
What was decoded of all files is kept beside them. Law: decoded late, earlier or in parts, statistics are the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.formats.delta.schema import DeltaSchema
from tamis.formats.delta.statistics import FileStatistics, column_stats
from tamis.predicate.arrays import Int64s
from tamis.predicate.schema import Column, ColumnId
from tamis.sieve.domain import ColumnStats
from tamis.sieve.files import FileBatch, Stated

__all__ = ["Chunk", "LateStatistics", "Source"]

_PARTS: Final = ("lower", "upper", "null_count", "nan_count", "value_count")
_MOST: Final = 0.5
"""Where more of the files than this are asked for, all are decoded: then they are known to whoever asks next."""


@dataclass(frozen=True, slots=True)
class Source:
    """Statistics as the log has them: texts, or columns of a checkpoint, or both."""

    json: pa.Array | None
    parsed: pa.StructArray | None
    paths: tuple[tuple[str, ...], ...]
    """The physical paths of the columns that were read of a checkpoint."""

    @property
    def nbytes(self) -> int:
        """About what it takes in memory."""
        return sum(one.nbytes for one in (self.json, self.parsed) if one is not None)

    def knows(self, paths: Sequence[tuple[str, ...]]) -> bool:
        """Whether statistics of these columns can be decoded from it. Texts have all of them."""
        return (self.json is not None and self.parsed is None) or set(paths) <= set(self.paths)

    def take(self, rows: Int64s) -> Source:
        """Those of some files."""
        chosen = pa.array(rows)
        json, parsed = (None if one is None else one.take(chosen) for one in (self.json, self.parsed))
        return Source(json, parsed, self.paths)


@dataclass(slots=True)
class Chunk:
    """Files, and what is known of their statistics."""

    files: FileBatch
    """Without row counts and statistics."""
    source: Source | None
    """None when it was given up: then there is what was decoded before."""
    rows: pa.Array | None = None
    """Row counts, when all of them were decoded."""
    columns: dict[ColumnId, ColumnStats] = field(default_factory=dict)
    """Statistics of columns that were decoded of all files."""

    def count(self) -> None:
        """Have the row counts of all files decoded, unless they are, or something in them cannot be read."""
        if self.rows is None and self.source is not None:
            none = np.zeros(len(self.files), np.bool_)
            found = column_stats(None, (), json=self.source.json, parsed=self.source.parsed, has_vector=none)
            self.rows = None if found.notes else found.num_records

    def knows(self, wanted: Sequence[ColumnId], paths: Sequence[tuple[str, ...]]) -> bool:
        """Whether statistics of the wanted columns, whose physical paths these are, need nothing to be read."""
        if self.rows is not None and self.columns.keys() >= set(wanted):
            return True
        return self.source is not None and self.source.knows(paths)


@dataclass(frozen=True, slots=True)
class LateStatistics:
    """Decodes statistics of a chunk's files, of those that are asked for."""

    schema: DeltaSchema
    wanted: tuple[Column, ...]
    chunk: Chunk
    source: Source | None
    """The chunk's own, which may give it up before this is asked."""
    kept: Int64s | None = None
    """Which of the chunk's files the batch has; None if it has all of them."""
    thorough: bool = False
    """Whether all files are decoded, however few are asked for."""

    def __call__(self, rows: Int64s) -> Stated:
        """Row counts and statistics of these files of the batch."""
        chunk = self.chunk
        missing = tuple(column for column in self.wanted if column.id not in chunk.columns)
        if not missing and chunk.rows is not None:
            return self._known(chunk.rows, chunk.columns, rows)
        places = rows if self.kept is None else self.kept[rows]
        # Columns of a checkpoint are decoded in no time, texts are parsed.
        texts = self.source is not None and self.source.json is not None
        if texts and not self.thorough and len(places) <= _MOST * len(chunk.files):
            return self._some(self._decoded(missing, places), rows)
        found = self._decoded(missing, None)
        columns = {**chunk.columns, **found.columns}
        if found.notes:  # what cannot be read is told each time
            return self._known(found.num_records, columns, rows, found.notes)
        chunk.columns.update(found.columns)
        chunk.rows = found.num_records
        return self._known(found.num_records, columns, rows)

    def _decoded(self, missing: tuple[Column, ...], places: Int64s | None) -> FileStatistics:
        source, vectors = self.source, self.chunk.files.deletes
        assert source is not None  # noqa: S101 - for the type checker: whoever made this has looked
        assert vectors is not None  # noqa: S101 - the same
        has_vector = vectors.to_numpy() > 0
        if places is not None:
            source, has_vector = source.take(places), has_vector[places]
        return column_stats(self.schema, missing, json=source.json, parsed=source.parsed, has_vector=has_vector)

    def _known(
        self, counts: pa.Array, columns: Mapping[ColumnId, ColumnStats], rows: Int64s, notes: tuple[str, ...] = ()
    ) -> Stated:
        """What is known of all files of the chunk, for those of the batch.

        Row counts are told of the files that are asked for alone: else a plan would show what happens to be known.
        """
        found = {column.id: columns[column.id] for column in self.wanted if column.id in columns}
        if self.kept is not None:
            chosen = pa.array(self.kept)
            counts, found = counts.take(chosen), {id_: _taken(stats, chosen) for id_, stats in found.items()}
        if len(rows) < len(counts):
            asked = np.zeros(len(counts), np.bool_)
            asked[rows] = True
            counts = pc.if_else(pa.array(asked), counts, pa.scalar(None, counts.type))
        return Stated(counts, found, notes)

    def _some(self, found: FileStatistics, rows: Int64s) -> Stated:
        """What was decoded of some files, at their places in the batch, beside what is known of all."""
        at = np.full(len(self.chunk.files if self.kept is None else self.kept), -1, np.int64)
        at[rows] = np.arange(len(rows))
        spread = pa.array(at, mask=at < 0)
        known = {} if self.chunk.rows is None else self._known(self.chunk.rows, self.chunk.columns, rows).stats
        new = {id_: _taken(stats, spread) for id_, stats in found.columns.items()}
        return Stated(found.num_records.take(spread), {**known, **new}, found.notes)


def _taken(stats: ColumnStats, rows: pa.Array) -> ColumnStats:
    arrays = (getattr(stats, name) for name in _PARTS)
    return ColumnStats(*(None if one is None else one.take(rows) for one in arrays))
