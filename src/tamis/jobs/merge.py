"""Merge: rows of a table are updated, deleted and added by those of a source, in one commit.

The source is pinned first, and its keys prune the table's files. The files that are left are joined with the source:
copy-on-write finds out which of them have a row to change and writes those anew, merge-on-read only the changed rows,
and deletes beside their files. Law: afterwards the table is what the clauses, in their order, make of each row as it
was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from tamis.formats import FormatTable
from tamis.formats.edit import Edit, NewFile, Planned, WritableTable
from tamis.jobs.marking import marked
from tamis.jobs.work import Change, Changed, Work, keeps, run, size_of, total
from tamis.predicate.clauses import BY_SOURCE, Clause, of
from tamis.predicate.type_names import is_fixed
from tamis.sieve.plan import ScanPlan
from tamis.spark.changes import named
from tamis.spark.merge_rows import MergeRows
from tamis.spark.merge_source import MergeSource
from tamis.spark.telling import INSERTED, Changes
from tamis.spark.write import write_changes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Merging", "SourcePlan", "merge"]

SourcePlan = Callable[[FormatTable, MergeSource], ScanPlan]
"""The files of the table that a source needs."""


@dataclass(frozen=True, slots=True)
class Merging(Change):
    """What a merge is to do, and how."""

    source: MergeSource
    on: str
    clauses: tuple[Clause, ...]
    aliases: tuple[str, str]
    """Of the target, and of the source."""


def merge(table: WritableTable, job: Merging) -> Changed:
    """Plan, join, write, and commit. A lost race that it does not survive is CommitConflict."""
    return run(table, lambda newest: _Work(newest, job))


class _Work(Work):
    """One run: from a plan to a commit."""

    command: ClassVar[str] = "merge"
    job: Merging

    def __init__(self, table: WritableTable, job: Merging) -> None:
        super().__init__(table, job)
        self.files = sum(map(len, self.planned(keeps)))
        self.rows = self._merge_rows(None)
        self.rows.check()
        if self.rows.changes and self.mode == "merge-on-read":
            table.stage_deletes((), None)  # refused early where the table cannot have deletes

    def edit(self) -> tuple[Edit | None, Changed]:
        rows = self.rows
        if not rows.changes:
            return self._told(None, self._inserted(None if self.files else pa.array([], pa.int64())))
        if rows.needs_one_match and not self.job.source.unique and self.files:
            rows.check_matches()
        stage, matched = self.table.stage(moved=True), None
        if self.mode == "copy-on-write" and self._may_leave_files():
            met = rows.met()
            rows, matched = self._merge_rows(met.files), met.matched
            self.rows = rows
        if not (self.files if rows.only is None else rows.only):
            matched = pa.array([], pa.int64()) if matched is None else matched
            return self._told(None, self._inserted(matched) if rows.inserts else None)
        if rows.inserts and matched is not None and len(matched) < self.job.source.rows:
            return self._told(self._write(*rows.rows_and_inserted(stage, matched), moved=True), None)
        tells = rows.tells and matched is None
        changed = self._write(*rows.rows(stage, tells=tells), moved=True)
        if not rows.inserts:
            return self._told(changed, None)
        return self._told(changed, self._inserted(pa.array(changed.matched) if tells else matched))

    def _merge_rows(self, only: frozenset[str] | None) -> MergeRows:
        job = self.job
        return MergeRows(
            self.source, self.plan, job.source, job.on, job.clauses, job.aliases, self.mode, self.table.lineage, only
        )

    def _may_leave_files(self) -> bool:
        """Whether to find out which files have a row to change before all are written anew.

        That reads the compared columns once more, a small part of what writing costs; and since it tells which rows
        of the source have matched, those to insert are written along with the others. Keys seldom lie anywhere:
        those of one customer, or of one day, are many in a few files, however many keys there are for each file.
        """
        return self.files > 1 and self.job.source.keys is not None and not of(self.job.clauses, BY_SOURCE)

    def _inserted(self, matches: pa.Array | None) -> Changes | None:
        """Rows of the source that match none, written; None if all of them match."""
        if matches is not None and len(matches) == self.job.source.rows:
            return None
        return self._write(*self.rows.inserted(self.table.stage(), matches), moved=False)

    def _write(self, frame: DataFrame, told: tuple[str, ...], *, moved: bool) -> Changes:
        token = self.token if moved else f"{self.token}-inserted"
        done = write_changes(frame, told, self.table.stage(moved=moved), token, short=self._is_short())
        self.kept(done.files)
        return done

    def _is_short(self) -> bool:
        """Whether rows are short, and stay so: what a clause makes of texts may be of any length."""
        schema = self.source.schema
        values = (one for clause in self.job.clauses if not clause.every for one in clause.values)
        fixed = all(is_fixed(schema.find(one.path, case_sensitive=True).type) for one in values)
        return fixed and self.job.source.short and self.has_short_rows()

    def _told(self, changed: Changes | None, inserted: Changes | None) -> tuple[Edit | None, Changed]:
        """What is to be committed of what was written, and what that will have done."""
        _, updated, added, deleted, _ = (0,) * 5 if changed is None else changed.counts
        added += 0 if inserted is None else inserted.counts[INSERTED]
        files: tuple[NewFile, ...] = () if changed is None else tuple(changed.files)
        removed: tuple[Planned, ...] = ()
        deletes: tuple[NewFile, ...] = ()
        referenced: tuple[Planned, ...] = ()
        replaced: frozenset[tuple[str, int | None]] = frozenset()
        if changed is not None and self.mode == "merge-on-read":
            new = marked(self, changed.places)
            deletes, referenced, replaced = new.deletes.files, new.referenced, new.deletes.replaced
        elif updated or deleted or (changed is not None and changed.counts[INSERTED]):
            only = self.rows.only
            removed = self.planned(keeps if only is None else lambda one: one.kept & named(one, only))
        else:  # no row has changed: files may stay as they are
            self.unwrite(files)
            files = ()
        if inserted is not None:
            files = (*files, *inserted.files)
        edit = self.edited(
            added=files, removed=removed, deletes=deletes, referenced=referenced, replaced=replaced, moved=True
        )
        if edit is None:
            return None, self.nothing()
        return edit, Changed(
            self.source,
            self.base,
            files_rewritten=sum(map(len, removed)),
            files_added=len(files),
            delete_files_added=len(deletes),
            rows_deleted=deleted,
            rows_updated=updated,
            rows_added=added,
            size_removed=total(removed, "size"),
            size_added=size_of((*files, *deletes)),
        )
