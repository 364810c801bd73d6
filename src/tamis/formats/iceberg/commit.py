"""Commits to an Iceberg table: what has happened since is checked, metadata is written, and one swap publishes it.

Law: nothing that a reader can see changes before the swap, and everything with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tamis.errors import CommitConflict, CommitRefused, CommitStateUnknown, MissingDependency, UnwritableFileError
from tamis.formats.edit import (
    Committed,
    DeleteStage,
    Edit,
    Evolution,
    Isolation,
    Mode,
    Planned,
    Retries,
    Stage,
    WriteField,
)
from tamis.formats.iceberg.attempt import Attempt, Missing
from tamis.formats.iceberg.by_spec import check_specs
from tamis.formats.iceberg.catalog_home import home_of
from tamis.formats.iceberg.changes import why_no_home, why_unfit
from tamis.formats.iceberg.conflicts import why_conflict
from tamis.formats.iceberg.evolving import evolved
from tamis.formats.iceberg.homes import Home, Lost, State
from tamis.formats.iceberg.metadata import MAIN, Snapshot, TableMetadata
from tamis.formats.iceberg.snapshots import RESERVED
from tamis.formats.iceberg.stage import check_supported, data_folder, number, stage_of
from tamis.formats.iceberg.stage_deletes import delete_stage
from tamis.formats.iceberg.table import LINEAGE, ROWS_WITHOUT_IDS, IcebergTable
from tamis.formats.scan import MetadataColumn
from tamis.formats.storage.access import access_of, not_handed
from tamis.formats.storage.sinks import DataStore, is_hosted
from tamis.predicate.arrays import Mask
from tamis.sieve.outcome import Outcome
from tamis.sieve.plan import DeleteCounts, ScanPlan

if TYPE_CHECKING:
    from tamis.formats import FormatTable

__all__ = ["WritableIceberg"]


@dataclass(frozen=True, slots=True)
class WritableIceberg:
    """The newest state of an Iceberg table, and where to put another."""

    opened: IcebergTable
    home: Home
    state: State
    hands_access: bool = False
    """Whether who writes data files is told who may enter their store."""

    @classmethod
    def of(cls, table: IcebergTable, hands_access: bool = False) -> WritableIceberg:  # noqa: FBT001, FBT002 - as FORMATS has it
        """The table, read anew. CommitRefused if it was opened so that it cannot be changed.

        CommitConflict if another table has its name by now: nobody has asked for that one to be changed.
        """
        home = home_of(table.name, table.origin)
        return cls(table, home, _same_table(table.name, table.metadata, home.read()), hands_access)

    @property
    def name(self) -> str:
        """The name that it was opened by."""
        return self.opened.name

    @property
    def schema_id(self) -> int:
        """The schema that new files are written with."""
        return self.state.metadata.current_schema_id

    @property
    def retries(self) -> Retries:
        """What `commit.retry.*` say."""
        said = self.state.metadata.properties
        usual = Retries()
        text = said.get("commit.retry.num-retries", "").strip()
        return Retries(
            int(text) if text.isascii() and text.isdigit() else usual.most,
            number(said, "commit.retry.min-wait-ms", usual.min_wait_ms),
            number(said, "commit.retry.max-wait-ms", usual.max_wait_ms),
            number(said, "commit.retry.total-timeout-ms", usual.total_ms),
        )

    @property
    def branch(self) -> str:
        """The branch, or the tag, that it was opened at; a tag does not move, and is refused by name."""
        return self.opened.ref or MAIN

    @property
    def audits(self) -> bool:
        """What `write.wap.enabled` says."""
        return self.state.metadata.properties.get("write.wap.enabled", "").strip().lower() == "true"

    def head(self, branch: str) -> int | None:
        """The snapshot at the head of the branch; None if there is none yet."""
        found = _parent(self.name, self.state.metadata, branch)
        return None if found is None else found.id

    def mode(self, command: str) -> Mode:
        """What `write.<command>.mode` says; version 1 has no deletes to write."""
        said = self.state.metadata.properties.get(f"write.{command}.mode", "").strip().lower()
        merges = said == "merge-on-read" and self.state.metadata.format_version > 1
        return "merge-on-read" if merges else "copy-on-write"

    def isolation(self, command: str) -> Isolation:
        """What `write.<command>.isolation-level` says."""
        said = self.state.metadata.properties.get(f"write.{command}.isolation-level", "").strip().lower()
        return "snapshot" if said == "snapshot" else "serializable"

    @property
    def lineage(self) -> tuple[str, ...]:
        """Version 3: the id of a row, and when it was last changed."""
        return tuple(one.name for one in self._lineage)

    @property
    def _lineage(self) -> tuple[MetadataColumn, ...]:
        return LINEAGE if self.state.metadata.format_version > ROWS_WITHOUT_IDS else ()

    def stage_deletes(self, files: Sequence[Planned], deletes: DeleteCounts | None) -> DeleteStage:
        """How rows of these data files are marked as gone."""
        return delete_stage(self.name, self.state, self.home, self._data_store(), files, deletes)

    def stage(self, *, moved: bool = False) -> Stage:
        """How new rows are to be written; moved ones have their lineage with them."""
        lineage = [
            WriteField(one.stored, one.name, pa.int64()) for one in self._lineage if moved and one.stored is not None
        ]
        return stage_of(self.name, self.state.document, self.state.metadata, self._data_store(), lineage)

    def _data_store(self) -> DataStore:
        """Where data files go, and how whoever writes them gets there."""
        settings, folder = dict(self.home.settings), data_folder(self.state.metadata)
        if not self.hands_access or is_hosted(folder):
            return DataStore(settings)
        access = access_of(self.home.fetch)
        fault = not_handed(folder, access)
        if fault is not None:
            raise fault
        return DataStore(settings, access.for_arrow())

    def evolve(self, wanted: Evolution) -> tuple[IcebergTable, int, bool]:
        """Try once to change the default spec."""
        state = _same_table(self.name, self.state.metadata, self.home.read())
        check_supported(self.name, state.document, state.metadata)
        found = evolved(self.name, state, wanted)
        if found is None:
            return self._table(state, MAIN), state.metadata.default_spec_id, False
        after = State.of(state.path, found.document)
        try:
            path = self.home.swap(state, found.document, found.requirements, found.updates)
        except Lost as lost:
            raise CommitConflict(
                f"cannot change how {self.name} is partitioned: another commit came first. Nothing was committed. "
                "Try again.",
                table=self.name,
                base=state.metadata.current_snapshot_id,
                head=None,
                reason=str(lost),
                retryable=True,
            ) from lost
        return self._table(State.of(path, found.document), MAIN), after.metadata.default_spec_id, True

    def evolution(self, wanted: Evolution) -> tuple[IcebergTable, int, bool]:
        """What evolve would make of the table as it is now."""
        state = _same_table(self.name, self.state.metadata, self.home.read())
        check_supported(self.name, state.document, state.metadata)
        found = evolved(self.name, state, wanted)
        after = state if found is None else State.of(state.path, found.document)
        return self._table(after, MAIN), after.metadata.default_spec_id, found is not None

    def newest(self) -> WritableIceberg:
        """The table as it is now, read anew. CommitConflict if another has its name."""
        state = _same_table(self.name, self.state.metadata, self.home.read())
        return replace(self, state=state)

    def table(self, branch: str = MAIN) -> IcebergTable:
        """This state of the branch, to be planned over."""
        _parent(self.name, self.state.metadata, branch)
        return self._table(self.state, branch)

    def planned(self, source: FormatTable, plan: ScanPlan, chosen: Callable[[Outcome], Mask]) -> tuple[Planned, ...]:
        """The files that are chosen of each outcome of a plan of that table, with the manifests that list them."""
        sources = {
            index: manifest.path
            for unit in source.list(plan.sieve).units
            for index, manifest in zip(unit.about.indices, unit.about.manifests, strict=True)
        }
        found = ((outcome.batch, np.flatnonzero(chosen(outcome))) for outcome in plan.outcomes)
        return tuple(Planned(batch, rows, sources) for batch, rows in found if len(rows))

    def remove(self, paths: Sequence[str]) -> None:
        """Delete files that nobody refers to."""
        for path in paths:
            self.home.remove(path)

    def commit(self, edit: Edit) -> Committed:
        """Try once. The state that it is tried on is read anew."""
        state = self.home.read()
        metadata = state.metadata
        if any(one.id == edit.snapshot_id for one in metadata.snapshots):
            return Committed(self._table(state, edit.branch), edit.snapshot_id)  # an answer had been lost
        self._check(edit, state)
        attempt = Attempt(self.home, self.name, edit, state, _parent(self.name, metadata, edit.branch))
        attempt.read()
        unfit = why_conflict(edit, metadata, attempt.parent, attempt.manifests, self.home.fetch)
        if unfit is not None:
            raise self._conflict(edit, state, unfit, retryable=False)
        try:
            document, snapshot = attempt.written()
            path = self._publish(attempt, document, snapshot)
        except CommitStateUnknown:
            raise
        except Missing as missing:
            attempt.clean()
            raise self._conflict(edit, state, str(missing), retryable=False) from missing
        except BaseException:
            attempt.clean()
            raise
        try:
            return Committed(self._table(State.of(path, document), edit.branch), edit.snapshot_id)
        except BaseException as error:  # an interrupt as well: it has happened, and nobody may remove its files
            raise self._unknown(edit, type(error).__name__) from error

    def _publish(self, attempt: Attempt, document: Mapping[str, Any], snapshot: Mapping[str, Any]) -> str:
        edit = attempt.edit
        try:
            return self.home.publish(attempt.state, document, snapshot, edit.branch)
        except Lost as lost:
            raise self._conflict(edit, attempt.state, f"another commit came first: {lost}", retryable=True) from lost
        except UnwritableFileError as error:
            if not error.unknown:
                raise
            raise self._unknown(edit, error.reason) from error
        except (CommitRefused, MissingDependency):
            raise
        except BaseException as error:
            # Whatever a client or a file system raises, and an interrupt as well: the request may have been carried
            # out, and then the files are the table's.
            reason = type(error).__name__
            found = self._found(edit) if isinstance(error, Exception) else None
            if found is not None:
                return found
            raise self._unknown(edit, reason) from error

    def _unknown(self, edit: Edit, reason: str) -> CommitStateUnknown:
        return CommitStateUnknown(
            f"nobody knows whether the {edit.operation} to {self.name} has happened: {reason} as it was published. "
            f"Its files were left as they are. Look whether the table has snapshot {edit.snapshot_id}: if it has, "
            "the change is there; if not, it may be made again once the catalog answers.",
            table=self.name,
            snapshot_id=edit.snapshot_id,
            reason=reason,
        )

    def _found(self, edit: Edit) -> str | None:
        """The newest metadata file, if it has the snapshot; None also if nobody answers."""
        try:
            state = self.home.read()
        except Exception:  # noqa: BLE001 - the first error is the one to report
            return None
        return state.path if any(one.id == edit.snapshot_id for one in state.metadata.snapshots) else None

    def _check(self, edit: Edit, state: State) -> None:
        """CommitConflict if the table is no longer one that the edit fits."""
        before = self.state.metadata
        if before.uuid != state.metadata.uuid:
            raise self._conflict(edit, state, "another table has its name now", retryable=False)
        check_supported(self.name, state.document, state.metadata)
        reserved = sorted(RESERVED & edit.properties.keys())
        if reserved:
            raise CommitRefused(
                f"cannot commit to {self.name}: a snapshot says {reserved[0]!r} itself. Choose another name for the "
                "property.",
                table=self.name,
                feature=reserved[0],
            )
        new = (*edit.added, *edit.deletes)
        check_specs(self.name, before, new)
        unfit = why_no_home(before, state.metadata, new)
        if edit.added and unfit is None:
            old = next(one for one in before.schemas if one.schema_id == edit.schema_id)
            unfit = why_unfit(old, state.metadata.schema)
        if edit.read is not None and unfit is None and before.schema != state.metadata.schema:
            unfit = "its schema has changed, and the condition was read with the old one"
        unfit = unfit or _outdated(edit, before.format_version, state.metadata.format_version)
        if unfit is not None:
            raise self._conflict(edit, state, unfit, retryable=False)

    def _conflict(self, edit: Edit, state: State, reason: str, *, retryable: bool) -> CommitConflict:
        head = next((ref.snapshot_id for ref in state.metadata.refs if ref.name == edit.branch), None)
        return CommitConflict(
            f"cannot commit {edit.operation} to {self.name}: {reason}. Nothing was committed. Open the table again, "
            "and repeat the job.",
            table=self.name,
            base=edit.base,
            head=head,
            reason=reason,
            retryable=retryable,
        )

    def _table(self, state: State, branch: str) -> IcebergTable:
        selection = state.metadata.select(ref=branch)
        opened = self.opened
        return replace(opened, metadata=state.metadata, selection=selection, ref=None if branch == MAIN else branch)


def _outdated(edit: Edit, old: int, new: int) -> str | None:
    """Why what was written for one version of the format does not do for another; None if it does."""
    if edit.deletes and old != new:
        return "its format version has changed, and with it how rows are deleted"
    if edit.added and edit.removed and old <= ROWS_WITHOUT_IDS < new:
        return (
            "its format version has changed, and rows that were written again would lose the ids that they have now"
        )
    return None


def _same_table(name: str, before: TableMetadata, state: State) -> State:
    """The state, if it is one of the same table."""
    now = state.metadata
    if before.uuid is None or now.uuid is None or before.uuid == now.uuid:
        return state  # version 1 may leave it out, and gets one with its upgrade
    raise CommitConflict(
        f"cannot change {name}: it was dropped since it was opened, and another table has its name now. Nothing was "
        "committed. Open it again, if that is the one to be changed.",
        table=name,
        base=before.current_snapshot_id,
        head=now.current_snapshot_id,
        reason="another table has its name now",
        retryable=False,
    )


def _parent(name: str, metadata: TableMetadata, branch: str) -> Snapshot | None:
    """The head of the branch. CommitRefused if there is no such branch."""
    ref = next((one for one in metadata.refs if one.name == branch), None)
    if ref is not None and ref.kind == "branch":
        return next(one for one in metadata.snapshots if one.id == ref.snapshot_id)
    if ref is None and branch == MAIN:
        return None
    known = ", ".join(one.name for one in metadata.refs if one.kind == "branch") or "none"
    what = "is a tag, which does not move" if ref is not None else "is not there"
    raise CommitRefused(
        f"cannot change branch {branch!r} of {name}: it {what}. Its branches: {known}.",
        table=name,
        feature=f"branch {branch}",
    )
