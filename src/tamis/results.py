"""What changes of a table have done, and what they would do to which files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

import numpy as np
import pyarrow as pa

from tamis.checks import check_form
from tamis.explain.words import readable_files, wrapped
from tamis.formats.edit import Mode
from tamis.printable import printable
from tamis.sieve.plan import ScanPlan

__all__ = ["Appended", "DeletePlan", "Deleted", "EvolvePlan", "Evolved", "UpdatePlan", "Updated"]

TableT = TypeVar("TableT")
ACTIONS = {"copy-on-write": "rewrite", "merge-on-read": "mark rows"}
"""What becomes of a file of which some rows match."""


@dataclass(frozen=True, slots=True)
class Appended(Generic[TableT]):
    """What an append has done."""

    table: TableT
    """The table with the rows."""
    snapshot_id: int | None
    """The snapshot that was made; if there was nothing to append, the one that there was."""
    files: int
    rows: int
    bytes: int
    """Of the new files."""
    attempts: int
    """How often the commit was tried; 0 if there was nothing to append."""


@dataclass(frozen=True, slots=True)
class Deleted(Generic[TableT]):
    """What a delete, or an overwrite, has done."""

    table: TableT
    """The table without the rows."""
    snapshot_id: int | None
    """The snapshot that was made; if no row matched, the one that there was."""
    rows: int
    """Rows that left: of files that are gone, less those written again; and rows that new deletes name. Of files that
    are gone, rows count that were deleted before by value, or together with those of other files."""
    rows_added: int
    """Rows of an overwrite's DataFrame."""
    files_dropped: int
    """Files of which every row matched: they left unread."""
    files_rewritten: int
    """Files that left, and whose other rows were written again."""
    files_added: int
    delete_files_added: int
    """Delete files, or deletion vectors."""
    bytes_removed: int
    bytes_added: int
    attempts: int
    """How often the commit was tried; 0 if there was nothing to commit."""


@dataclass(frozen=True, slots=True)
class Updated(Generic[TableT]):
    """What an update has done."""

    table: TableT
    """The table with the new values."""
    snapshot_id: int | None
    """The snapshot that was made; if no row matched, the one that there was."""
    rows: int
    """Rows for which the condition was true."""
    files_rewritten: int
    """Files that left, and whose rows were written again, those that matched with their new values."""
    files_added: int
    delete_files_added: int
    """Delete files, or deletion vectors: of merge-on-read, in place of rows that were written anew."""
    bytes_removed: int
    bytes_added: int
    attempts: int
    """How often the commit was tried; 0 if there was nothing to commit."""


@dataclass(frozen=True, slots=True)
class Evolved(Generic[TableT]):
    """What became of a table's partition spec."""

    table: TableT
    """The table with it."""
    spec_id: int
    """The spec of new files."""
    changed: bool
    """False if it was so before."""


@dataclass(frozen=True, slots=True)
class EvolvePlan:
    """What would become of a table's partition spec."""

    spec_id: int
    """The spec that new files would have."""
    fields: tuple[str, ...]
    """Its fields, as `name (transform)`; none if new files would be unpartitioned."""
    changed: bool
    """False if it is so already."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DeletePlan:
    """What a delete would do to which files."""

    plan: ScanPlan
    mode: Mode

    def __repr__(self) -> str:
        return f"<tamis delete: {self._line}>"

    @property
    def files(self) -> pa.Table:
        """The files that would be touched, as plan.files has them, and `action`: drop, rewrite, or mark rows."""
        return with_action(self.plan.files, "drop", ACTIONS[self.mode])

    @property
    def _line(self) -> str:
        whole, some = _by_verdict(self.files)
        rest = "rewritten without the rows that match" if self.mode == "copy-on-write" else "given deletes"
        return _joined(
            (len(whole), f"with {_rows(whole):,} rows dropped by metadata alone"),
            (len(some), f"read and {rest}"),
            (self.plan.stats.files - len(whole) - len(some), "not touched"),
        )

    def explain(self, form: Literal["text", "json"] = "text") -> str:
        """The funnel of the plan; as text, with what would be done."""
        check_form(form)
        if form == "json":
            return self.plan.explain("json")
        return told(self.plan, f"DELETE ({self.mode}): {self._line}.")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class UpdatePlan:
    """What an update would do to which files."""

    plan: ScanPlan
    mode: Mode
    columns: tuple[str, ...]
    """Those that would be assigned."""

    def __repr__(self) -> str:
        return f"<tamis update of {printable(', '.join(self.columns))}: {self._line}>"

    @property
    def files(self) -> pa.Table:
        """The files that would be touched, as plan.files has them, and `action`: rewrite, or mark rows."""
        return with_action(self.plan.files, "rewrite", ACTIONS[self.mode])

    @property
    def _line(self) -> str:
        whole, some = _by_verdict(self.files)
        rest = (
            "read and rewritten if a row matches"
            if self.mode == "copy-on-write"
            else "read, matching rows written anew and deletes beside them"
        )
        return _joined(
            (len(whole), f"with {_rows(whole):,} rows rewritten whole (every row matches)"),
            (len(some), rest),
            (self.plan.stats.files - len(whole) - len(some), "not touched"),
        )

    def explain(self, form: Literal["text", "json"] = "text") -> str:
        """The funnel of the plan; as text, with what would be done."""
        check_form(form)
        if form == "json":
            return self.plan.explain("json")
        return told(self.plan, f"UPDATE of {', '.join(self.columns)} ({self.mode}): {self._line}.")


def told(plan: ScanPlan, *texts: str) -> str:
    """The funnel of a plan, and below it what would be done."""
    return "\n".join([plan.explain(), "", *(line for text in texts for line in wrapped(text, "", "  "))])


def with_action(files: pa.Table, whole: str, some: str) -> pa.Table:
    """Files of a plan with what would be done to each: to those of which every row matches, and to others."""
    is_whole = np.asarray([verdict == "all" for verdict in files["verdict"].to_pylist()], np.bool_)
    return files.append_column("action", pa.array(np.where(is_whole, whole, some).tolist(), pa.string()))


def _by_verdict(files: pa.Table) -> tuple[pa.Table, pa.Table]:
    is_whole = [verdict == "all" for verdict in files["verdict"].to_pylist()]
    return files.filter(pa.array(is_whole, pa.bool_())), files.filter(
        pa.array([not one for one in is_whole], pa.bool_())
    )


def _rows(files: pa.Table) -> int:
    return sum(filter(None, files["rows"].to_pylist()))


def _joined(*parts: tuple[int, str]) -> str:
    """How many files, and what becomes of them; what would happen to none is left out."""
    return ", ".join(f"{readable_files(count)} {what}" for count, what in parts if count) or "no file is touched"
