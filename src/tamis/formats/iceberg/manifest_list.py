"""The manifest list of a snapshot: which manifests it has, and what their partition summaries say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from tamis.formats.avro.container import parse_avro
from tamis.formats.avro.layout import Path
from tamis.formats.avro.reading import decode_columns
from tamis.formats.errors import unreadable
from tamis.formats.iceberg.bounds import decode_values
from tamis.formats.iceberg.kinds import NUMBER, SUMMARIES, TEXT, Kind, check_kinds
from tamis.formats.iceberg.metadata import Snapshot, SpecLayout
from tamis.formats.storage import Fetch

__all__ = ["DATA", "DELETES", "FieldSummary", "Manifest", "parse_manifest_list", "read_manifest_list", "summaries"]

DATA: Final = 0
DELETES: Final = 1

PATH: Final[Path] = (500,)
LENGTH: Final[Path] = (501,)
SPEC: Final[Path] = (502,)
SNAPSHOT: Final[Path] = (503,)
ADDED_FILES: Final[Path] = (504,)
EXISTING_FILES: Final[Path] = (505,)
DELETED_FILES: Final[Path] = (506,)
PARTITIONS: Final[Path] = (507,)
ADDED_ROWS: Final[Path] = (512,)
EXISTING_ROWS: Final[Path] = (513,)
SEQUENCE: Final[Path] = (515,)
MIN_SEQUENCE: Final[Path] = (516,)
CONTENT: Final[Path] = (517,)
FIRST_ROW_ID: Final[Path] = (520,)
_ALL: Final = (
    *(PATH, LENGTH, SPEC, SNAPSHOT, ADDED_FILES, EXISTING_FILES, DELETED_FILES, PARTITIONS),
    *(ADDED_ROWS, EXISTING_ROWS, SEQUENCE, MIN_SEQUENCE, CONTENT, FIRST_ROW_ID),
)
_KINDS: Final[Mapping[Path, Kind]] = {**dict.fromkeys(_ALL, NUMBER), PATH: TEXT, PARTITIONS: SUMMARIES}
_NOT_NEGATIVE: Final = {
    LENGTH: "manifest_length",
    ADDED_FILES: "added_files_count",
    EXISTING_FILES: "existing_files_count",
    DELETED_FILES: "deleted_files_count",
    ADDED_ROWS: "added_rows_count",
    EXISTING_ROWS: "existing_rows_count",
    SEQUENCE: "sequence_number",
    FIRST_ROW_ID: "first_row_id",
}

NAMES: Final = {
    "manifest_path": 500,
    "manifest_length": 501,
    "partition_spec_id": 502,
    "added_snapshot_id": 503,
    "added_data_files_count": 504,
    "added_files_count": 504,
    "existing_data_files_count": 505,
    "existing_files_count": 505,
    "deleted_data_files_count": 506,
    "deleted_files_count": 506,
    "partitions": 507,
    "added_rows_count": 512,
    "existing_rows_count": 513,
    "sequence_number": 515,
    "min_sequence_number": 516,
    "content": 517,
    "first_row_id": 520,
}
"""Field ids by name, for writers that leave the ids out."""

_Summary = tuple[bool | None, bool | None, bytes | None, bytes | None]


@dataclass(frozen=True, slots=True)
class Manifest:
    """One manifest of a snapshot. What an old writer left out is None; its entries inherit the rest."""

    path: str
    length: int | None
    spec_id: int
    content: int
    """DATA or DELETES."""
    sequence_number: int = 0
    min_sequence_number: int = 0
    snapshot_id: int | None = None
    """The snapshot that added the manifest."""
    added_files: int | None = None
    existing_files: int | None = None
    deleted_files: int | None = None
    added_rows: int | None = None
    existing_rows: int | None = None
    first_row_id: int | None = None
    summaries: tuple[_Summary, ...] | None = None
    """A field of the spec each: may it be null, may it be NaN, its bounds as bytes."""

    @property
    def live_files(self) -> int | None:
        """Files that it adds or keeps; None if an old writer did not say."""
        if self.added_files is None or self.existing_files is None:
            return None
        return self.added_files + self.existing_files

    @property
    def has_rows(self) -> bool:
        """Whether it counts rows of live files: then there are such files, however many are counted."""
        return bool(self.added_rows or self.existing_rows)


@dataclass(frozen=True, slots=True)
class FieldSummary:
    """What manifests of one spec say of one partition field, an entry for each manifest; null is unknown.

    A bound that is null where `known` is true says that the field has no value but NULL (or NaN).
    """

    known: pa.BooleanArray
    contains_null: pa.BooleanArray
    contains_nan: pa.BooleanArray
    lower: pa.Array
    upper: pa.Array


def read_manifest_list(snapshot: Snapshot, fetch: Fetch) -> list[Manifest]:
    """The snapshot's manifests in the list's order, also where an old table lists them in its metadata."""
    if snapshot.manifest_list is not None:
        return parse_manifest_list(snapshot.manifest_list, fetch(snapshot.manifest_list), snapshot.sequence_number)
    return [_listed_in_metadata(path, fetch) for path in snapshot.manifests]


def _listed_in_metadata(path: str, fetch: Fetch) -> Manifest:
    data = fetch(path)
    header = parse_avro(path, data).metadata
    spec_id = header.get("partition-spec-id", "0")
    if not (spec_id.isascii() and spec_id.isdigit()):
        raise unreadable(path, f"its partition-spec-id is {spec_id!r}, no number", 0)
    return Manifest(path, len(data), int(spec_id), DATA)


def parse_manifest_list(path: str, data: bytes, newest: int = 0) -> list[Manifest]:
    """The manifests that a manifest list has, of any format version.

    newest is the sequence number of its snapshot; 0 if it has none, as in version 1, or is not known.
    """
    (decoded,) = decode_columns([parse_avro(path, data)], _ALL, NAMES)
    for needed in (PATH, SPEC):
        if needed not in decoded.columns:
            raise unreadable(path, f"it lacks field {needed[0]}: it is not a manifest list", 0)
    check_kinds(path, _KINDS, decoded.columns)
    values: dict[Path, list[Any]] = {id_: column.to_pylist() for id_, column in decoded.columns.items()}
    _check(path, values)
    absent = [None] * decoded.count
    if newest:
        _check_sequences(path, newest, values.get(SEQUENCE, absent), values.get(CONTENT, absent))

    def column(id_: Path) -> list[Any]:
        return values.get(id_, absent)

    return [
        Manifest(
            path=row[0],
            length=row[1],
            spec_id=row[2],
            content=row[3] or DATA,
            sequence_number=row[4] or 0,
            min_sequence_number=row[5] or 0,
            snapshot_id=row[6],
            added_files=row[7],
            existing_files=row[8],
            deleted_files=row[9],
            added_rows=row[10],
            existing_rows=row[11],
            first_row_id=row[12],
            summaries=_summaries(row[13]),
        )
        for row in zip(
            *(values[PATH], column(LENGTH), values[SPEC], column(CONTENT), column(SEQUENCE), column(MIN_SEQUENCE)),
            *(column(SNAPSHOT), column(ADDED_FILES), column(EXISTING_FILES), column(DELETED_FILES)),
            *(column(ADDED_ROWS), column(EXISTING_ROWS), column(FIRST_ROW_ID), column(PARTITIONS)),
            strict=True,
        )
    ]


def _check(path: str, values: Mapping[Path, Sequence[Any]]) -> None:
    """An error for an entry that names no manifest, or says what no manifest can be."""

    def refuse(id_: Path, wrong: Callable[[Any], bool], why: str) -> None:
        entry = next((entry for entry, value in enumerate(values.get(id_, ())) if wrong(value)), None)
        if entry is not None:
            raise unreadable(path, f"entry {entry}: {why.format(values[id_][entry])}")

    refuse(PATH, lambda value: not value or "\0" in value, "its manifest_path is {!r}")
    first: dict[str, int] = {}
    for entry, name in enumerate(values[PATH]):
        if first.setdefault(name, entry) != entry:
            raise unreadable(path, f"entry {entry}: it names the same manifest as entry {first[name]}")
    refuse(SPEC, lambda value: value is None, "it names no partition spec")
    refuse(
        CONTENT, lambda value: value not in (None, DATA, DELETES), "its content is {}, not 0 (data) or 1 (deletes)"
    )
    for id_, name in _NOT_NEGATIVE.items():
        refuse(id_, lambda value: value is not None and value < 0, f"its {name} is {{}}")


def _check_sequences(path: str, newest: int, sequences: Sequence[int | None], contents: Sequence[int | None]) -> None:
    """No manifest is newer than the snapshot. If one were taken for newer, deletes would pass its files by.

    Where there are deletes, each says how old it is: else they would reach all of its files, or none.
    """
    for entry, sequence in enumerate(sequences):
        if sequence is not None and sequence > newest:
            reason = f"entry {entry}: its sequence_number is {sequence}, but that of the snapshot is {newest}"
            raise unreadable(path, reason)
        if sequence is None and DELETES in contents:
            raise unreadable(path, f"entry {entry}: it has no sequence_number, which tells what deletes its files")


def _summaries(items: Sequence[dict[str, object] | None] | None) -> tuple[_Summary, ...] | None:
    if items is None or None in items:
        return None
    names = ("contains_null", "contains_nan", "lower_bound", "upper_bound")
    return tuple(tuple(item.get(name) for name in names) for item in items if item)  # type: ignore[misc] # four of them


def summaries(
    manifests: Sequence[Manifest], layout: SpecLayout, positions: Sequence[int] | None = None
) -> tuple[FieldSummary, ...]:
    """What manifests of one spec say of its fields, typed; unknown where a manifest has no summary.

    positions are those of the fields that are wanted, of all if not given: a spec may keep hundreds of dropped ones.
    """
    width = len(layout.types)
    rows = [
        manifest.summaries if manifest.summaries and len(manifest.summaries) == width else None
        for manifest in manifests
    ]
    fields = []
    for position in range(width) if positions is None else positions:
        type_ = layout.types[position]
        items: list[_Summary | None] = [None if row is None else row[position] for row in rows]
        lower, upper = (_bounds(items, side, type_) for side in (2, 3))
        # A bound that is there and cannot be read is unknown; one that is not there says: no value.
        known = [
            item is not None
            and all(bound.is_valid == (raw is not None) for bound, raw in zip(pair, item[2:], strict=True))
            for item, pair in zip(items, zip(lower, upper, strict=True), strict=True)
        ]
        fields.append(
            FieldSummary(
                pa.array(known, pa.bool_()),
                pa.array([None if item is None else item[0] for item in items], pa.bool_()),
                pa.array([None if item is None else item[1] for item in items], pa.bool_()),
                lower,
                upper,
            )
        )
    return tuple(fields)


def _bounds(items: Sequence[_Summary | None], side: int, type_: pa.DataType | None) -> pa.Array:
    if type_ is None:
        return pa.nulls(len(items))
    values = pa.array([None if item is None else item[side] for item in items], pa.binary())
    return decode_values(values, np.arange(len(items)), type_)
