"""A table's metadata: its schemas, specs, snapshots, branches and tags, as frozen values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Final, Literal

import pyarrow as pa

from tamis.errors import NoSuchSnapshotError, UnknownSpecError
from tamis.formats.errors import shown
from tamis.formats.iceberg.document import Misfit, damaged
from tamis.formats.iceberg.types import TableSchema
from tamis.formats.opening import StateError
from tamis.sieve.partitions import PartitionSpec

__all__ = ["MAIN", "Ref", "Selection", "Snapshot", "SpecLayout", "TableMetadata"]

NAME_MAPPING: Final = "schema.name-mapping.default"
MAIN: Final = "main"
_MOST_KNOWN: Final = 20


@dataclass(frozen=True, slots=True)
class SpecLayout:
    """A partition spec, and how manifests store its values."""

    spec: PartitionSpec
    field_ids: tuple[int, ...]
    types: tuple[pa.DataType | None, ...]
    """What each field's values are; None where no schema knows the source, or the transform is unknown."""

    @property
    def spec_id(self) -> int:
        """The spec's id: every spec of Iceberg has one."""
        assert self.spec.spec_id is not None  # noqa: S101 - for the type checker
        return self.spec.spec_id


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
        return next(schema for schema in self.schemas if schema.schema_id == self.current_schema_id)

    @property
    def name_mapping(self) -> str | None:
        """The JSON that gives field ids to data files without any; None if the table has none."""
        return self.properties.get(NAME_MAPPING)

    def layout(self, spec_id: int | None) -> SpecLayout:
        """The spec of that id; UnknownSpecError if the metadata does not know it."""
        for layout in self.specs:
            if layout.spec.spec_id == spec_id:
                return layout
        known = tuple(layout.spec_id for layout in self.specs)
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
        if sum(choice is not None for choice in (snapshot_id, ref, as_of_ms)) > 1:
            raise StateError("give one of snapshot_id, ref and as_of_ms")
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
        for ref in self.refs:
            if ref.name == name:
                selection = self._at(ref.snapshot_id, f"{ref.kind} {name}")
                return selection if ref.kind == "tag" else Selection(selection.snapshot, self.schema)
        if name == MAIN and self.current_snapshot_id is None:
            return Selection(None, self.schema)
        raise self._no_such(f"branch or tag {name!r}", (ref.name for ref in self.refs), "branches and tags")

    def _as_of(self, as_of_ms: int) -> Selection:
        log = self.snapshot_log or tuple((snapshot.timestamp_ms, snapshot.id) for snapshot in self._ancestors())
        past = [snapshot_id for timestamp, snapshot_id in log if timestamp <= as_of_ms]
        wanted = f"snapshot as of {_iso(as_of_ms)}"
        if not past:
            raise self._no_such(wanted, (_iso(timestamp) for timestamp, _ in log), "times in its log")
        return self._at(past[-1], wanted)

    def _ancestors(self) -> list[Snapshot]:
        """The current snapshot and those it grew from, oldest first."""
        by_id = {snapshot.id: snapshot for snapshot in self.snapshots}
        ancestors: list[Snapshot] = []
        snapshot_id = self.current_snapshot_id
        while snapshot_id in by_id and len(ancestors) < len(by_id):
            ancestors.append(by_id[snapshot_id])
            snapshot_id = by_id[snapshot_id].parent_id
        return ancestors[::-1]

    def _at(self, snapshot_id: int, wanted: str) -> Selection:
        snapshot = self._snapshot(snapshot_id, wanted)
        if snapshot.schema_id is None:
            return Selection(snapshot, self.schema)
        for schema in self.schemas:
            if schema.schema_id == snapshot.schema_id:
                return Selection(snapshot, schema)
        place = f"snapshots[{self.snapshots.index(snapshot)}].schema-id"
        raise damaged(self.path, Misfit(f"it is {snapshot.schema_id}, which is none of the table's schemas", place))

    def _snapshot(self, snapshot_id: int, wanted: str) -> Snapshot:
        for snapshot in self.snapshots:
            if snapshot.id == snapshot_id:
                return snapshot
        raise self._no_such(wanted, (str(snapshot.id) for snapshot in self.snapshots), "snapshots")

    def _no_such(self, wanted: str, known: Iterable[str], what: str) -> NoSuchSnapshotError:
        names = tuple(known)
        listed = ", ".join(names[-_MOST_KNOWN:]) + (" and older ones" if len(names) > _MOST_KNOWN else "")
        return NoSuchSnapshotError(
            f"{shown(self.location)} has no {wanted}. Its {what}: {listed or 'none'}.", wanted=wanted, known=names
        )


def _iso(milliseconds: int) -> str:
    """A time in UTC as people write it; a count of milliseconds where the calendar has no such year."""
    try:
        time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return f"{milliseconds} ms"
    return f"{time.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"
