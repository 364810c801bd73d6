"""A table's metadata file: its schemas, specs, snapshots, branches and tags, as frozen values.

Plain JSON, no library: it opens in a millisecond. What a newer format version may mean differently is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, Final, Literal

import pyarrow as pa

from tamis.errors import UnknownSpecError
from tamis.formats.errors import NoSuchSnapshotError, UnsupportedFormatError, shown, unreadable
from tamis.formats.iceberg.inflate import inflate_gzip
from tamis.formats.iceberg.types import TableSchema, parse_schema
from tamis.sieve.partitions import PartitionField, PartitionSpec
from tamis.sieve.transforms import Transform, parse_transform

__all__ = ["Ref", "Selection", "Snapshot", "SpecLayout", "TableMetadata", "parse_metadata"]

NEWEST_VERSION: Final = 3
NAME_MAPPING: Final = "schema.name-mapping.default"
MAIN: Final = "main"
FIRST_PARTITION_ID: Final = 1000
"""Where version 1 counts partition field ids from, in every spec anew."""
_GZIP: Final = b"\x1f\x8b"
_MOST_KNOWN: Final = 20


@dataclass(frozen=True, slots=True)
class SpecLayout:
    """A partition spec, and how manifests store its values."""

    spec: PartitionSpec
    field_ids: tuple[int, ...]
    types: tuple[pa.DataType | None, ...]
    """What each field's values are; None where no schema knows the source, or the transform is unknown."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One state of the table."""

    id: int
    timestamp_ms: int
    parent_id: int | None = None
    sequence_number: int = 0
    manifest_list: str | None = None
    manifests: tuple[str, ...] = ()
    """In place of a manifest list, in old version 1 tables."""
    schema_id: int | None = None
    first_row_id: int | None = None
    summary: Mapping[str, str] | None = None

    @property
    def operation(self) -> str | None:
        """What made it: append, replace, overwrite or delete."""
        return None if self.summary is None else self.summary.get("operation")


@dataclass(frozen=True, slots=True)
class Ref:
    """A branch or a tag."""

    name: str
    snapshot_id: int
    kind: Literal["branch", "tag"]


@dataclass(frozen=True, slots=True)
class Selection:
    """The snapshot to plan over, None for a table that has none yet, and the schema to read it with."""

    snapshot: Snapshot | None
    schema: TableSchema


@dataclass(frozen=True)
class TableMetadata:
    """All that the metadata file says which planning or a commit needs."""

    path: str
    """Of the metadata file."""
    format_version: int
    uuid: str | None
    location: str
    schemas: tuple[TableSchema, ...]
    current_schema_id: int
    specs: tuple[SpecLayout, ...]
    default_spec_id: int
    snapshots: tuple[Snapshot, ...]
    current_snapshot_id: int | None
    refs: tuple[Ref, ...]
    snapshot_log: tuple[tuple[int, int], ...]
    """Which snapshot became current when: pairs of milliseconds and snapshot id, oldest first."""
    properties: Mapping[str, str]
    last_updated_ms: int | None = None
    last_sequence_number: int = 0
    next_row_id: int | None = None

    @cached_property
    def schema(self) -> TableSchema:
        """The current schema."""
        return next(one for one in self.schemas if one.schema_id == self.current_schema_id)

    @property
    def name_mapping(self) -> str | None:
        """The JSON that gives field ids to data files without any; None if the table has none."""
        return self.properties.get(NAME_MAPPING)

    def layout(self, spec_id: int) -> SpecLayout:
        """The spec of that id; UnknownSpecError if the metadata does not know it."""
        for one in self.specs:
            if one.spec.spec_id == spec_id:
                return one
        known = tuple(one.spec.spec_id for one in self.specs)
        raise UnknownSpecError(
            f"a manifest has partition spec {spec_id}, but {shown(self.path)} knows only {known}. "
            "The metadata is corrupt: do not change the table, restore it from an older metadata file.",
            spec_id=spec_id,
            known=known,
        )

    def select(
        self, *, snapshot_id: int | None = None, ref: str | None = None, as_of_ms: int | None = None
    ) -> Selection:
        """The snapshot that is asked for, the current one by default.

        A branch is read with the current schema, as writers see it; an older state with the schema of its time.
        """
        if sum(one is not None for one in (snapshot_id, ref, as_of_ms)) > 1:
            raise ValueError("give one of snapshot_id, ref and as_of_ms")
        if snapshot_id is not None:
            return self._at(snapshot_id, f"snapshot {snapshot_id}")
        if ref is not None:
            return self._by_ref(ref)
        if as_of_ms is not None:
            return self._as_of(as_of_ms)
        if self.current_snapshot_id is None:
            return Selection(None, self.schema)
        return Selection(self._snapshot(self.current_snapshot_id, "the current snapshot"), self.schema)

    def _by_ref(self, name: str) -> Selection:
        for one in self.refs:
            if one.name == name:
                found = self._at(one.snapshot_id, f"{one.kind} {name}")
                return found if one.kind == "tag" else Selection(found.snapshot, self.schema)
        if name == MAIN and self.current_snapshot_id is None:
            return Selection(None, self.schema)
        raise self._no_such(f"branch or tag {name!r}", (one.name for one in self.refs), "branches and tags")

    def _as_of(self, as_of_ms: int) -> Selection:
        log = self.snapshot_log or tuple((one.timestamp_ms, one.id) for one in self._ancestors())
        past = [snapshot_id for timestamp, snapshot_id in log if timestamp <= as_of_ms]
        wanted = f"snapshot as of {_iso(as_of_ms)}"
        if not past:
            raise self._no_such(wanted, (_iso(timestamp) for timestamp, _ in log), "times in its log")
        return self._at(past[-1], wanted)

    def _ancestors(self) -> list[Snapshot]:
        """The current snapshot and those it grew from, oldest first."""
        by_id = {one.id: one for one in self.snapshots}
        found: list[Snapshot] = []
        at = self.current_snapshot_id
        while at in by_id and len(found) < len(by_id):
            found.append(by_id[at])
            at = by_id[at].parent_id
        return found[::-1]

    def _at(self, snapshot_id: int, wanted: str) -> Selection:
        snapshot = self._snapshot(snapshot_id, wanted)
        of_its_time = (one for one in self.schemas if one.schema_id == snapshot.schema_id)
        return Selection(snapshot, next(of_its_time, self.schema))

    def _snapshot(self, snapshot_id: int, wanted: str) -> Snapshot:
        for one in self.snapshots:
            if one.id == snapshot_id:
                return one
        raise self._no_such(wanted, (str(one.id) for one in self.snapshots), "snapshots")

    def _no_such(self, wanted: str, known: Iterable[str], what: str) -> NoSuchSnapshotError:
        names = tuple(known)
        listed = ", ".join(names[-_MOST_KNOWN:]) + (" and older ones" if len(names) > _MOST_KNOWN else "")
        return NoSuchSnapshotError(
            f"{shown(self.location)} has no {wanted}. Its {what}: {listed or 'none'}.", wanted=wanted, known=names
        )


def parse_metadata(data: bytes, path: str) -> TableMetadata:
    """The metadata file's content, plain or gzipped. UnreadableMetadataError if it is damaged, v4 is refused."""
    try:
        document = json.loads(inflate_gzip(path, data) if data[:2] == _GZIP else data)
    except ValueError as error:
        raise unreadable(path, f"it is no JSON ({error})", getattr(error, "pos", None)) from error
    try:
        version = int(document["format-version"])
        if not 1 <= version <= NEWEST_VERSION:
            raise UnsupportedFormatError(
                f"{shown(path)} has format version {version}; tamis knows 1 to {NEWEST_VERSION}. "
                "Use a newer tamis, or keep the table at a version that it knows.",
                path=shown(path),
                feature=f"format version {version}",
            )
        return _table(document, version, path)
    except KeyError as error:
        raise unreadable(path, f"it lacks {error}") from error
    except (TypeError, ValueError, AttributeError) as error:
        raise unreadable(path, f"it is no table metadata ({error})") from error


def _table(document: Mapping[str, Any], version: int, path: str) -> TableMetadata:
    schemas = [parse_schema(one) for one in document.get("schemas") or [document["schema"]]]
    current_schema = int(document.get("current-schema-id", schemas[-1].schema_id))
    if all(one.schema_id != current_schema for one in schemas):
        raise unreadable(path, f"it lacks the current schema, {current_schema}")
    types: dict[int, pa.DataType] = {}
    # The newest schema that knows a column says its type: promotions only widen. The current one has the last word.
    for one in sorted(schemas, key=lambda one: (one.schema_id == current_schema, one.schema_id)):
        types |= one.types
    specs = document.get("partition-specs")
    if specs is None:
        specs = [{"spec-id": 0, "fields": document["partition-spec"]}]
    current = document.get("current-snapshot-id")
    current = None if current in (None, -1) else int(current)
    refs = document.get("refs") or ({} if current is None else {MAIN: {"snapshot-id": current, "type": "branch"}})
    return TableMetadata(
        path=path,
        format_version=version,
        uuid=document.get("table-uuid"),
        location=str(document["location"]),
        schemas=tuple(schemas),
        current_schema_id=current_schema,
        specs=tuple(_layout(one, types) for one in specs),
        default_spec_id=int(document.get("default-spec-id", 0)),
        snapshots=tuple(_snapshot(one) for one in document.get("snapshots") or ()),
        current_snapshot_id=current,
        refs=tuple(
            Ref(name, int(one["snapshot-id"]), "tag" if one.get("type") == "tag" else "branch")
            for name, one in refs.items()
        ),
        snapshot_log=tuple(
            (int(one["timestamp-ms"]), int(one["snapshot-id"])) for one in document.get("snapshot-log") or ()
        ),
        properties=dict(document.get("properties") or {}),
        last_updated_ms=document.get("last-updated-ms"),
        last_sequence_number=int(document.get("last-sequence-number") or 0),
        next_row_id=document.get("next-row-id"),
    )


def _snapshot(document: Mapping[str, Any]) -> Snapshot:
    return Snapshot(
        id=int(document["snapshot-id"]),
        timestamp_ms=int(document["timestamp-ms"]),
        parent_id=document.get("parent-snapshot-id"),
        sequence_number=int(document.get("sequence-number") or 0),
        manifest_list=document.get("manifest-list"),
        manifests=tuple(document.get("manifests") or ()),
        schema_id=document.get("schema-id"),
        first_row_id=document.get("first-row-id"),
        summary=document.get("summary"),
    )


def _layout(document: Mapping[str, Any], types: Mapping[int, pa.DataType]) -> SpecLayout:
    fields, field_ids, results = [], [], []
    for place, one in enumerate(document["fields"]):
        transform = parse_transform(str(one["transform"]))
        sources = [int(source) for source in one.get("source-ids") or [one["source-id"]]]
        source = sources[0] if len(sources) == 1 and sources[0] in types else None
        fields.append(PartitionField(str(one["name"]), source, transform))
        field_ids.append(int(one.get("field-id", FIRST_PARTITION_ID + place)))
        results.append(_result(transform, None if source is None else types[source]))
    return SpecLayout(PartitionSpec(int(document["spec-id"]), tuple(fields)), tuple(field_ids), tuple(results))


def _iso(milliseconds: int) -> str:
    """A time in UTC as people write it; a count of milliseconds where the calendar has no such year."""
    try:
        found = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return f"{milliseconds} ms"
    return f"{found.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


def _result(transform: Transform, source: pa.DataType | None) -> pa.DataType | None:
    """The type of a transform's values; None if that cannot be known."""
    match transform.name:
        case "bucket" | "year" | "month" | "hour":
            return pa.int32()
        case "day":
            return pa.date32()
        case "identity" | "truncate" | "void":
            return None if source is None or pa.types.is_null(source) else source
    return None
