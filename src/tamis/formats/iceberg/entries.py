"""Manifest entries as columns: what every use of a manifest has in common.

Law: an entry that is not marked deleted comes out once, with what it inherits from its manifest, whatever wrote it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from tamis.formats.avro.container import AvroFile, parse_avro
from tamis.formats.avro.layout import AvroColumn, Path
from tamis.formats.avro.reading import Decoded, decode_columns
from tamis.formats.errors import unreadable
from tamis.formats.iceberg.bounds import MapColumn, decode_values
from tamis.formats.iceberg.checks import (
    ADDED,
    DELETED,
    Checked,
    check_counts,
    check_empty,
    check_entries,
    check_header,
    check_sequences,
    check_whole,
    statuses,
)
from tamis.formats.iceberg.kinds import COUNTS, NUMBER, NUMBERS, TEXT, VALUES, Kind, check_kinds
from tamis.formats.iceberg.manifest_list import Manifest
from tamis.formats.iceberg.metadata import SpecLayout
from tamis.formats.storage import Fetch
from tamis.predicate.arrays import Int64s, Mask
from tamis.predicate.keys import has_order
from tamis.sieve.domain import ColumnStats
from tamis.sieve.partitions import Undecoded

__all__ = ["ALL_NAMES", "Entries", "read_entries", "whole_entries"]

STATUS: Final[Path] = (0,)
SNAPSHOT: Final[Path] = (1,)
SEQUENCE: Final[Path] = (3,)
FILE_SEQUENCE: Final[Path] = (4,)
FILE_PATH: Final[Path] = (2, 100)
FILE_FORMAT: Final[Path] = (2, 101)
PARTITION: Final[Path] = (2, 102)
RECORDS: Final[Path] = (2, 103)
SIZE: Final[Path] = (2, 104)
NULL_COUNTS: Final[Path] = (2, 110)
LOWER: Final[Path] = (2, 125)
UPPER: Final[Path] = (2, 128)
CONTENT: Final[Path] = (2, 134)
EQUALITY_IDS: Final[Path] = (2, 135)
NAN_COUNTS: Final[Path] = (2, 137)
SORT_ORDER: Final[Path] = (2, 140)
FIRST_ROW_ID: Final[Path] = (2, 142)
REFERENCED: Final[Path] = (2, 143)
OFFSET: Final[Path] = (2, 144)
CONTENT_SIZE: Final[Path] = (2, 145)

NAMES: Final = {
    "status": 0,
    "snapshot_id": 1,
    "data_file": 2,
    "sequence_number": 3,
    "file_sequence_number": 4,
    "file_path": 100,
    "file_format": 101,
    "partition": 102,
    "record_count": 103,
    "file_size_in_bytes": 104,
    "null_value_counts": 110,
    "lower_bounds": 125,
    "upper_bounds": 128,
    "content": 134,
    "equality_ids": 135,
    "nan_value_counts": 137,
    "sort_order_id": 140,
    "first_row_id": 142,
    "referenced_data_file": 143,
    "content_offset": 144,
    "content_size_in_bytes": 145,
}
"""Field ids by name, for writers that leave the ids out."""
ALL_NAMES: Final = {
    **NAMES,
    "block_size_in_bytes": 105,
    "column_sizes": 108,
    "value_counts": 109,
    "key_metadata": 131,
    "split_offsets": 132,
}
"""The same, with what nobody reads and a manifest that is written anew has to keep."""

_NEEDED: Final = (STATUS, FILE_PATH, RECORDS, SIZE)
_ALWAYS: Final = frozenset({*_NEEDED, SNAPSHOT, SEQUENCE, FILE_SEQUENCE, FILE_FORMAT, CONTENT})

_KINDS: Final[Mapping[Path, Kind]] = {
    **dict.fromkeys((STATUS, SNAPSHOT, SEQUENCE, FILE_SEQUENCE, RECORDS, SIZE, CONTENT, FIRST_ROW_ID), NUMBER),
    **dict.fromkeys((SORT_ORDER, OFFSET, CONTENT_SIZE), NUMBER),
    **dict.fromkeys((FILE_PATH, FILE_FORMAT, REFERENCED), TEXT),
    **dict.fromkeys((NULL_COUNTS, NAN_COUNTS), COUNTS),
    **dict.fromkeys((LOWER, UPPER), VALUES),
    EQUALITY_IDS: NUMBERS,
}

Types = Mapping[int, pa.DataType]
"""The columns whose statistics are wanted, by field id, with the types that they have by now."""


@dataclass(frozen=True, slots=True)
class Entries:
    """Live entries of manifests that have one spec and one layout."""

    layout: SpecLayout
    manifest: Int64s
    """Which of the given manifests each entry is from."""
    position: Int64s
    """Its position in that manifest, deleted entries counted."""
    columns: Mapping[Path, pa.Array]
    written: Mapping[Path, AvroColumn]
    inherited: Mapping[str, pa.Array]
    """snapshot_id, sequence_number, file_sequence_number and first_row_id, after inheritance."""

    @property
    def count(self) -> int:
        """How many entries."""
        return len(self.manifest)

    def column(self, path: Path, type_: pa.DataType) -> pa.Array:
        """A column, null throughout if the writer has it not."""
        column = self.columns.get(path)
        return pa.nulls(self.count, type_) if column is None else column.cast(type_)

    def stats(self, wanted: Types) -> dict[int | str, ColumnStats]:
        """The statistics of the wanted columns."""
        maps = {
            path: MapColumn.of(self.columns[path])
            for path in (LOWER, UPPER, NULL_COUNTS, NAN_COUNTS)
            if path in self.columns
        }
        rows = self.columns[RECORDS]
        stats: dict[int | str, ColumnStats] = {}
        for id_, type_ in wanted.items():
            ordered = has_order(type_)
            stats[id_] = ColumnStats(
                lower=maps[LOWER].bounds(id_, type_) if ordered and LOWER in maps else None,
                upper=maps[UPPER].bounds(id_, type_) if ordered and UPPER in maps else None,
                null_count=maps[NULL_COUNTS].numbers(id_) if NULL_COUNTS in maps else None,
                nan_count=maps[NAN_COUNTS].numbers(id_) if pt.is_floating(type_) and NAN_COUNTS in maps else None,
                # Outside lists and maps a column has a value for each row, so the row count serves: one map less.
                value_count=rows,
            )
        return stats

    def partition(self) -> tuple[pa.StructArray | None, tuple[Undecoded, ...]]:
        """Partition values in the spec's order, each field of one type, and those that could not be read."""
        fields = self.layout.spec.fields
        if not fields:
            return None, ()
        children, undecoded = [], []
        for position, (field, id_, type_) in enumerate(
            zip(fields, self.layout.field_ids, self.layout.types, strict=True)
        ):
            path = _partition_path(self.written, id_, field.name)
            if path is None or path not in self.columns:
                children.append(pa.nulls(self.count, type_ or pa.null()))
                if field.transform.name != "void":
                    every = np.ones(self.count, np.bool_)
                    undecoded.append(Undecoded(position, every, "the manifest has no value for this field"))
                continue
            values, unread = _typed(self.columns[path], self.written[path], type_)
            children.append(values)
            if unread.any():
                text = f"the value cannot be read as {type_}"
                undecoded.append(Undecoded(position, unread, text, _as_text(self.columns[path], unread)))
        named = [pa.field(field.name, child.type) for field, child in zip(fields, children, strict=True)]
        return pa.StructArray.from_arrays(children, fields=named), tuple(undecoded)


def read_entries(
    manifests: Sequence[Manifest], layout: SpecLayout, fetch: Fetch, wanted: Types, also: Collection[Path] = ()
) -> list[Entries]:
    """The live entries of manifests of one spec: what all need, statistics for the wanted, and what is asked for."""
    files = [_avro_file(manifest, fetch(manifest.path)) for manifest in manifests]
    chosen = _ALWAYS | _stats_columns(wanted) | frozenset(also)
    decoded = decode_columns(files, lambda path: path in chosen or path[:-1] == PARTITION, NAMES)
    return [_live(batch, manifests, layout) for batch in decoded]


def whole_entries(
    manifests: Sequence[Manifest], layout: SpecLayout, data: Sequence[bytes]
) -> list[tuple[Entries, AvroFile]]:
    """The live entries of manifests of one spec with every column that their writers have.

    Manifests of one writer's schema stand together, with the first file of them.
    """
    files = [_avro_file(manifest, content) for manifest, content in zip(manifests, data, strict=True)]
    decoded = decode_columns(files, lambda _: True, ALL_NAMES)
    return [(_live(batch, manifests, layout), files[batch.given[0]]) for batch in decoded]


def _avro_file(manifest: Manifest, data: bytes) -> AvroFile:
    """The manifest's file, if it is what the manifest list says."""
    file = parse_avro(manifest.path, data)
    check_header(manifest, file)
    check_whole(manifest, file)
    return file


def _stats_columns(wanted: Types) -> frozenset[Path]:
    paths: set[Path] = {NULL_COUNTS} if wanted else set()
    if any(has_order(type_) for type_ in wanted.values()):
        paths |= {LOWER, UPPER}
    if any(pt.is_floating(type_) for type_ in wanted.values()):
        paths |= {NAN_COUNTS}
    return frozenset(paths)


def _live(decoded: Decoded, manifests: Sequence[Manifest], layout: SpecLayout) -> Entries:
    example = manifests[decoded.given[0]].path
    for needed in _NEEDED:
        if needed not in decoded.columns:
            raise unreadable(example, f"it lacks field {needed[-1]}: it is not a manifest", 0)
    check_kinds(example, _KINDS, decoded.columns)
    columns, files = decoded.columns, decoded.files
    status = statuses(columns[STATUS], files, manifests)
    live = status != DELETED
    check_counts(files, live, decoded.given, manifests)
    checked = Checked(files, live, manifests)
    path, rows, size = (columns[path] for path in (FILE_PATH, RECORDS, SIZE))
    check_entries(checked, path, rows, size, columns.get(CONTENT), columns.get(EQUALITY_IDS))
    check_empty(checked, rows, decoded.given)
    inherited = _inherit(decoded, manifests, status, live)
    check_sequences(checked, inherited["sequence_number"])
    starts = np.flatnonzero(np.diff(decoded.files, prepend=-1))
    position = np.arange(decoded.count) - np.repeat(starts, np.diff(np.append(starts, decoded.count)))
    if not live.all():
        mask = pa.array(live)
        columns = {path: column.filter(mask) for path, column in columns.items()}
        inherited = {name: column.filter(mask) for name, column in inherited.items()}
        files, position = files[live], position[live]
    return Entries(layout, files, position, columns, decoded.written, inherited)


def _inherit(decoded: Decoded, manifests: Sequence[Manifest], status: Int64s, live: Mask) -> dict[str, pa.Array]:
    """What entries take over from their manifest, by the rules of Iceberg's specification."""
    absent = pa.nulls(decoded.count, pa.int64())
    snapshot, sequence, file_sequence = (
        decoded.columns.get(path, absent).cast(pa.int64()) for path in (SNAPSHOT, SEQUENCE, FILE_SEQUENCE)
    )
    index = pa.array(decoded.files)
    snapshots = pa.array([manifest.snapshot_id for manifest in manifests], pa.int64()).take(index)
    sequences = pa.array([manifest.sequence_number for manifest in manifests], pa.int64()).take(index)
    # Iceberg's rule for every reader: what was carried over has its own number. In version 1 all are 0.
    may = (status == ADDED) | (sequences.to_numpy(zero_copy_only=False) == 0)
    inheritable = pc.if_else(pa.array(may), sequences, pa.scalar(None, pa.int64()))
    inherited = {
        "snapshot_id": pc.coalesce(snapshot, snapshots),
        "sequence_number": pc.coalesce(sequence, inheritable),
        "file_sequence_number": pc.coalesce(file_sequence, inheritable),
    }
    if any(manifest.first_row_id is not None for manifest in manifests):
        inherited["first_row_id"] = _row_ids(decoded, manifests, live)
    return inherited


def _row_ids(decoded: Decoded, manifests: Sequence[Manifest], live: Mask) -> pa.Array:
    """First row ids: a live entry without one continues where the one before it in its manifest ended.

    A manifest without a first row id is older than row lineage, and its entries have none.
    """
    own = decoded.columns.get(FIRST_ROW_ID, pa.nulls(decoded.count, pa.int64()))
    open_ = live & np.asarray(own.is_null().to_numpy(zero_copy_only=False))
    rows = np.where(open_, decoded.columns[RECORDS].to_numpy(zero_copy_only=False), 0)
    before = np.cumsum(rows) - rows
    firsts = np.flatnonzero(np.diff(decoded.files, prepend=-1))
    before -= np.repeat(before[firsts], np.diff(np.append(firsts, decoded.count)))
    start = pa.array([manifest.first_row_id for manifest in manifests], pa.int64()).take(pa.array(decoded.files))
    assigned = pc.if_else(pa.array(open_), pc.add(start, pa.array(before)), pa.scalar(None, pa.int64()))
    return pc.if_else(start.is_valid(), pc.coalesce(own, assigned), pa.scalar(None, pa.int64()))


def _partition_path(written: Mapping[Path, AvroColumn], field_id: int, name: str) -> Path | None:
    """The writer's column of a partition field: by its id, else by its name; None if there is none."""
    path = (*PARTITION, field_id)
    if path in written:
        return path
    named = [
        column.path for column in written.values() if column.path[:-1] == PARTITION and column.written_as == name
    ]
    return named[0] if len(named) == 1 and named[0][-1] < 0 else None


def _typed(values: pa.Array, column: AvroColumn, type_: pa.DataType | None) -> tuple[pa.Array, Mask]:
    """Partition values as the type that the spec gives them, and which of them cannot be read so."""
    none = np.zeros(len(values), np.bool_)
    if type_ is None:
        return _as_written(values, column), none
    if pt.is_fixed_size_binary(values.type) and not pt.is_fixed_size_binary(type_):
        values = values.cast(pa.binary())
    try:
        if pt.is_binary(values.type):
            # Bytes are encoded as bounds are: decimals, uuids, fixed; strings are strings already.
            typed = decode_values(values, np.arange(len(values)), type_)
        elif pt.is_int32(values.type) and pt.is_timestamp(type_):
            typed = values.view(pa.date32()).cast(type_)
        elif pt.is_temporal(type_) and values.type.bit_width == type_.bit_width:
            typed = values.view(type_)
        else:
            typed = values.cast(type_)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        typed = pa.nulls(len(values), type_)
    unread = np.asarray(pc.and_(values.is_valid(), typed.is_null()).to_numpy(zero_copy_only=False))
    return typed, unread


def _as_text(values: pa.Array, rows: Mask) -> pa.Array:
    """These values as texts that tell them apart; null for all others."""
    texts: list[str | None] = [None] * len(values)
    for row in np.flatnonzero(rows).tolist():
        texts[row] = repr(values[row].as_py())
    return pa.array(texts, pa.string())


_LOGICAL: Final = {
    "date": pa.date32(),
    "time-micros": pa.time64("us"),
    "timestamp-micros": pa.timestamp("us"),
    "timestamp-nanos": pa.timestamp("ns"),
}


def _as_written(values: pa.Array, column: AvroColumn) -> pa.Array:
    """Values whose spec does not say what they are, as the manifest does."""
    logical = _LOGICAL.get(column.logical or "")
    if logical is not None and pt.is_integer(values.type) and logical.bit_width == values.type.bit_width:
        return values.view(logical)
    return values
