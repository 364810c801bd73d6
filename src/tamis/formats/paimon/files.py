"""Live entries as batches of files: partition values, buckets, statistics, and what a reader needs to know of them.

Files of a primary-key table are versions of the same rows. Which facts may drop one of them alone is said in
tamis.sieve.groups; which files stand together, and whose statistics of values say anything, is decided here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.formats.paimon import entries as e
from tamis.formats.paimon.binary_row import BinaryRows
from tamis.formats.paimon.buckets import placement
from tamis.formats.paimon.options import POSTPONE, Options
from tamis.formats.paimon.partition_values import Partitions, bucket_folder
from tamis.formats.paimon.schema import PaimonField, PaimonSchema
from tamis.formats.paimon.sheets import Names, Sheet, taken
from tamis.formats.paimon.statistics import Source, column_stats, numbered
from tamis.predicate.arrays import Int64s, Mask
from tamis.predicate.schema import Column, ColumnId
from tamis.sieve.domain import ColumnStats
from tamis.sieve.files import FileBatch, Stated
from tamis.sieve.order import mask_of
from tamis.sieve.partition_keys import PartitionField, PartitionSpec
from tamis.sieve.partitions import Undecoded
from tamis.sieve.transforms import Transform

__all__ = [
    "DELETE_ROWS",
    "EXTERNAL",
    "EXTRA_FILES",
    "FILE_SOURCE",
    "FIRST_ROW_ID",
    "LEVEL",
    "MAX_SEQUENCE",
    "MIN_SEQUENCE",
    "PARTITION_ROW",
    "SCHEMA_ID",
    "TOTAL_BUCKETS",
    "WRITE_COLUMNS",
    "FileMaker",
    "partition_spec",
]

LEVEL: Final = "level"
SCHEMA_ID: Final = "schema_id"
"""The schema that the file was written with."""
MIN_SEQUENCE: Final = "min_sequence_number"
MAX_SEQUENCE: Final = "max_sequence_number"
FIRST_ROW_ID: Final = "first_row_id"
DELETE_ROWS: Final = "delete_row_count"
"""Rows of a primary-key table's file that remove a row; null if its writer did not count them."""
WRITE_COLUMNS: Final = "write_cols"
"""The columns that the file has, by their names in its schema; null if it has all of them."""
EXTRA_FILES: Final = "extra_files"
FILE_SOURCE: Final = "file_source"
"""0 for files of rows that were appended, 1 for those of a compaction; null if nobody says."""
EXTERNAL: Final = "external"
"""Whether the path is the file's own location, and not one below the table's folder."""
PARTITION_ROW: Final = "partition_row"
"""The serialised partition: files of equal rows and buckets are merged with one another."""
TOTAL_BUCKETS: Final = "total_buckets"
"""What a batch carries for whoever reads its files, beside FileBatch.bucket and its partition."""

MOST_FILES: Final = 1 << 18
"""Files of one batch, where they stand alone: what is judged at a time."""


def partition_spec(schema: PaimonSchema) -> PartitionSpec:
    """How the table is partitioned: by columns themselves, in one way, which has no id."""
    identity = Transform("identity")
    return PartitionSpec(None, tuple(PartitionField(one.name, one.id, identity) for one in schema.partition_fields))


@dataclass(frozen=True, slots=True)
class FileMaker:
    """Makes files of live entries, with statistics of the wanted columns. It is pickled."""

    schema: PaimonSchema
    """What the table is read with."""
    schemas: Mapping[int, PaimonSchema] = field(default_factory=dict, hash=False)
    """Every schema by which files may have been written; only where statistics are wanted."""
    wanted: tuple[Column, ...] = ()
    level: int | None = None
    """The one level that is read, where each row has one version; None for all."""

    @property
    def in_files(self) -> tuple[Column, ...]:
        """Those of the wanted columns whose values are in files: a partition column's are the metadata's."""
        partition = {one.id for one in self.schema.partition_fields}
        return tuple(column for column in self.wanted if column.id not in partition)

    @property
    def of_keys(self) -> tuple[Column, ...]:
        """Those of them that are parts of the primary key: their statistics hold of every version of a row."""
        keys = {one.id for one in self.schema.key_fields}
        return tuple(column for column in self.in_files if column.id in keys)

    @property
    def of_values(self) -> tuple[Column, ...]:
        """All others; none if no version of a row has all its values."""
        if self.level is None and values_in_versions(self.options) == "none":
            return ()
        keys = {one.id for one in self.schema.key_fields}
        return tuple(column for column in self.in_files if column.id not in keys)

    @property
    def whole_buckets(self) -> bool:
        """Whether all files of a bucket have to be known together."""
        return self.options.has_key and self.level is None and bool(self.of_values)

    @property
    def options(self) -> Options:
        """What the table's options say."""
        return Options.of(self.schema)

    def batches(self, sheet: Sheet) -> Iterator[FileBatch]:
        """The files of these entries, in their order, but for those that a batch read does not see."""
        sheet, notes = self._visible(sheet)
        if (self.whole_buckets and len(sheet)) or (notes and not len(sheet)):
            yield self._batch(sheet, notes)  # without files it says at least why there are none
            return
        for start in range(0, len(sheet), MOST_FILES):
            columns = {name: column.slice(start, MOST_FILES) for name, column in sheet.columns.items()}
            yield self._batch(Sheet(sheet.files[start : start + MOST_FILES], columns), notes if start == 0 else ())

    def _visible(self, sheet: Sheet) -> tuple[Sheet, tuple[str, ...]]:
        """What Java's batch read sees: no postponed rows, no level 0 where compaction decides on rows."""
        options = self.options
        notes: list[str] = []
        if options.bucket == POSTPONE:
            real = _numbers(sheet[e.BUCKET]) >= 0
            sheet, notes = _seen(sheet, real, notes, "in bucket-postpone", "no reader sees")
        if options.skips_level_0:
            compacted = _numbers(sheet[e.LEVEL]) > 0
            sheet, notes = _seen(sheet, compacted, notes, "of level 0", "no batch read sees")
        if self.level is not None:
            top = _numbers(sheet[e.LEVEL]) == self.level
            sheet, notes = _seen(sheet, top, notes, f"below level {self.level}", "no read-optimized read sees")
        return sheet, tuple(notes)

    def _batch(self, sheet: Sheet, notes: tuple[str, ...]) -> FileBatch:
        partitions = Partitions.of(sheet[e.PARTITION], self.schema)
        bucket = _numbers(sheet[e.BUCKET])
        partition, undecoded = self._partition(partitions)
        external = mask_of(sheet[e.EXTERNAL].is_valid())
        placed = placement(self.schema, self.schemas)
        stats: dict[ColumnId, ColumnStats] = {}
        unused: list[str] = []
        group: pa.Array | None = None
        if self.whole_buckets:
            stats, unused = self._stats(sheet)
            stats, group = self._grouped(sheet, stats, partitions.codes, bucket)
        late = partial(self._stated, sheet) if self.in_files and not self.whole_buckets else None
        return FileBatch(
            path=_paths(sheet, partitions, bucket),
            size=sheet[e.SIZE],
            rows=sheet[e.ROWS],
            partition=partition,
            buckets=(placed.of(sheet[e.BUCKET], sheet[e.TOTAL]),),
            stats=stats,
            group=group,
            keys=frozenset(one.id for one in (*self.schema.key_fields, *self.schema.partition_fields)),
            undecoded=undecoded,
            notes=(*notes, *unused, *placed.notes(column.id for column in self.wanted)),
            late=late,
            extra={
                LEVEL: sheet[e.LEVEL],
                SCHEMA_ID: sheet[e.SCHEMA],
                MIN_SEQUENCE: sheet[e.MIN_SEQUENCE],
                MAX_SEQUENCE: sheet[e.MAX_SEQUENCE],
                FIRST_ROW_ID: sheet[e.FIRST_ROW_ID],
                DELETE_ROWS: sheet[e.DELETE_ROWS],
                WRITE_COLUMNS: sheet[e.WRITE_COLUMNS],
                EXTRA_FILES: sheet[e.EXTRA],
                FILE_SOURCE: sheet[e.SOURCE],
                EXTERNAL: pa.array(external),
                PARTITION_ROW: sheet[e.PARTITION],
                TOTAL_BUCKETS: sheet[e.TOTAL],
            },
        )

    def _stated(self, sheet: Sheet, rows: Int64s) -> Stated:
        """The statistics of some of these files: partitions and buckets leave few of them."""
        if len(rows) == len(sheet):
            stats, unused = self._stats(sheet)
            return Stated(sheet[e.ROWS], stats, tuple(unused))
        if not len(rows):
            return Stated(sheet[e.ROWS], {})
        left = Sheet(sheet.files[rows], {name: taken(sheet.columns[name], rows) for name in self._statistics_columns})
        stats, unused = self._stats(left)
        places = np.full(len(sheet), -1, np.int64)
        places[rows] = np.arange(len(rows))
        back = pa.array(places, mask=places < 0)
        return Stated(sheet[e.ROWS], {id_: _placed(one, back) for id_, one in stats.items()}, tuple(unused))

    @property
    def _statistics_columns(self) -> tuple[Names, ...]:
        """What statistics are made of."""
        keys = (e.KEY_LOWER, e.KEY_UPPER, e.KEY_NULLS) if self.of_keys else ()
        values = (e.VALUE_LOWER, e.VALUE_UPPER, e.VALUE_NULLS, e.STATS_COLUMNS) if self.of_values else ()
        return (e.SCHEMA, e.ROWS, e.WRITE_COLUMNS, *keys, *values)

    def _stats(self, sheet: Sheet) -> tuple[dict[ColumnId, ColumnStats], list[str]]:
        found: dict[ColumnId, ColumnStats] = {}
        notes: list[str] = []
        ids, rows = _numbers(sheet[e.SCHEMA]), sheet[e.ROWS]
        if self.of_keys:
            lower, upper = (BinaryRows.of(sheet[name]) for name in (e.KEY_LOWER, e.KEY_UPPER))
            source = Source(lower, upper, sheet[e.KEY_NULLS], ids, None, _key_fields)
            keys, unused = column_stats(self.schema, self.schemas, self.of_keys, source, rows)
            found, notes = {**found, **keys}, [*notes, *unused]
        if self.of_values:
            lower, upper = (BinaryRows.of(sheet[name]) for name in (e.VALUE_LOWER, e.VALUE_UPPER))
            listed, written = sheet[e.STATS_COLUMNS], sheet[e.WRITE_COLUMNS]
            source = Source(lower, upper, sheet[e.VALUE_NULLS], ids, listed, _all_fields, written)
            values, unused = column_stats(self.schema, self.schemas, self.of_values, source, rows)
            found, notes = {**found, **values}, [*notes, *unused]
        return found, notes

    def _grouped(
        self, sheet: Sheet, stats: Mapping[ColumnId, ColumnStats], partitions: Int64s, bucket: Int64s
    ) -> tuple[dict[ColumnId, ColumnStats], pa.Array]:
        """Which files stand or fall together, and the statistics that may be used then.

        A file stands alone in a bucket of one sorted run: all of one level that is not 0, where no key is twice; and
        where vectors, or the first-row engine, have done away with other versions, if no row removes another. If it
        does not, and rows are put together of several versions, no statistics of values are stated.
        """
        least = int(bucket.min(initial=0))
        span = int(bucket.max(initial=0)) - least + 1
        found, buckets = numbered(partitions * span + (bucket - least))
        count = len(found)
        if values_in_versions(self.options) == "alone":
            removals = sheet[e.DELETE_ROWS].fill_null(1).to_numpy(zero_copy_only=False) != 0
            together = np.bincount(buckets[removals], minlength=count) > 0
        else:
            level = _numbers(sheet[e.LEVEL])
            first = np.zeros(count, np.int64)
            first[buckets[::-1]] = level[::-1]
            other = (level != first[buckets]) | (level <= 0)
            together = np.bincount(buckets[other], minlength=count) > 0
        shared = together[buckets]
        group = pa.array(buckets, mask=~shared)
        if self.options.merge_engine == "deduplicate" or not shared.any():
            return dict(stats), group
        keep, keys = pa.array(~shared), {one.id for one in self.of_keys}
        return {id_: one if id_ in keys else _masked(one, keep) for id_, one in stats.items()}, group

    def _partition(self, partitions: Partitions) -> tuple[pa.StructArray | None, tuple[Undecoded, ...]]:
        if not self.schema.partition_keys:
            return None, ()
        codes = pa.array(partitions.codes)
        columns = [values.take(codes) for values in partitions.values]
        fields = [
            pa.field(name, column.type) for name, column in zip(self.schema.partition_keys, columns, strict=True)
        ]
        undecoded = [
            Undecoded(place, lost[partitions.codes], "its bytes are no value of the column's type")
            for place, lost in enumerate(partitions.undecoded)
            if lost.any()
        ]
        return pa.StructArray.from_arrays(columns, fields=fields), tuple(undecoded)


def values_in_versions(options: Options) -> Literal["alone", "bucket", "none"]:
    """Whether a row has its values in one file, whatever other versions there are; in its bucket's files; or in none.

    Alone: without a key; and where a read passes over level 0, since in what has been compacted vectors, or the
    first-row engine, have done away with all other versions. In none: partial updates and aggregation put a row
    together of several versions.
    """
    if not options.has_key or options.skips_level_0:
        return "alone"
    return "bucket" if options.merge_engine == "deduplicate" else "none"


def _key_fields(schema: PaimonSchema) -> tuple[PaimonField, ...]:
    return schema.key_fields


def _all_fields(schema: PaimonSchema) -> tuple[PaimonField, ...]:
    return schema.fields


def _masked(stats: ColumnStats, keep: pa.Array) -> ColumnStats:
    """The same where keep is true; unknown elsewhere."""

    def known(column: pa.Array | None) -> pa.Array | None:
        return None if column is None else pc.if_else(keep, column, pa.scalar(None, column.type))

    return ColumnStats(known(stats.lower), known(stats.upper), known(stats.null_count))


def _placed(stats: ColumnStats, places: pa.Array) -> ColumnStats:
    """The same at other places; nothing is said where there is no place."""
    parts = (stats.lower, stats.upper, stats.null_count)
    return ColumnStats(*(None if part is None else part.take(places) for part in parts))


def _seen(sheet: Sheet, mask: Mask, notes: list[str], where: str, who: str) -> tuple[Sheet, list[str]]:
    hidden = int(len(mask) - mask.sum())
    if not hidden:
        return sheet, notes
    files, hold = f"{hidden:,} file{'s' * (hidden != 1)}", "hold" if hidden != 1 else "holds"
    return sheet.filter(mask), [*notes, f"{files} {where} {hold} rows that {who} until a compaction has placed them"]


def _numbers(column: pa.Array) -> Int64s:
    return np.asarray(column.to_numpy(zero_copy_only=False), np.int64)


def _paths(sheet: Sheet, partitions: Partitions, bucket: Int64s) -> pa.Array:
    """Below the table's folder: partition, bucket, name. A file that lies elsewhere has its own location."""
    least = int(bucket.min(initial=0))
    span = int(bucket.max(initial=0)) - least + 1
    codes, members = numbered(partitions.codes * span + (bucket - least))
    # Partitions and buckets have their names once, and each pair that occurs its folder: of files there are far more.
    above = pa.array([f"{one}/" if one else "" for one in partitions.folders], pa.string())
    numbers, places = numbered(codes % span)
    below = pa.array([bucket_folder(number + least) for number in numbers.tolist()], pa.string())
    pairs = (above.take(pa.array(codes // span)), below.take(pa.array(places)))
    folder = pc.binary_join_element_wise(*pairs, "").take(pa.array(members))
    path = pc.binary_join_element_wise(folder, sheet[e.NAME], "/")
    external = sheet[e.EXTERNAL]
    return path if external.null_count == len(external) else pc.coalesce(external, path)
