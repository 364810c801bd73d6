"""Update: rows that a condition matches get new values, in one commit.

Copy-on-write writes files with such rows anew, without a row changed that does not match. Merge-on-read writes the
changed rows alone, and deletes beside the files that they were in; a file of which every row matches is replaced. New
files have the table's current spec: a row whose partition changes moves there. Law: each row of the table is there
afterwards, once, with the new values if the condition is true of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tamis.formats.edit import Edit, NewFile, Planned, WritableTable
from tamis.jobs.marking import marked
from tamis.jobs.work import Change, Changed, Work, drops, keeps, run, size_of, total
from tamis.predicate.assigning import Assignment
from tamis.predicate.names import called
from tamis.predicate.type_names import is_fixed

if TYPE_CHECKING:
    from tamis.formats import FormatTable

__all__ = ["Updating", "update"]


@dataclass(frozen=True, slots=True)
class Updating(Change):
    """What an update is to do, and how."""

    values: Callable[[FormatTable], tuple[Assignment, ...]]
    """What is assigned, in terms of the table as it is when it is run."""


def update(table: WritableTable, job: Updating) -> Changed:
    """Plan, read what has to be read, write, and commit. A lost race that it does not survive is CommitConflict."""
    return run(table, lambda newest: _Work(newest, job))


class _Work(Work):
    """One run: from a plan to a commit."""

    command: ClassVar[str] = "update"
    job: Updating

    def __init__(self, table: WritableTable, job: Updating) -> None:
        super().__init__(table, job)
        self.values = job.values(self.source)
        files = self.planned(keeps)
        self.need_spark(sum(map(len, files)), "or a condition that no file can match")
        self.has_read = bool(files)
        if self.mode == "merge-on-read":
            table.stage_deletes((), None)  # refused early where the table cannot have deletes

    def _is_short(self) -> bool:
        """Whether rows are short, and stay so: what is assigned to a text may be of any length."""
        schema = self.source.schema
        kinds = (schema.find(one.path, case_sensitive=True).type for one in self.values)
        return all(map(is_fixed, kinds)) and self.has_short_rows()

    def edit(self) -> tuple[Edit | None, Changed]:
        if not self.has_read:
            return self.edited(), self.nothing()
        from tamis.spark.changes import named, touched
        from tamis.spark.updating import Update, check_update, updated_rows
        from tamis.spark.write import write_changes

        table, marks = self.table, self.mode == "merge-on-read"
        stage = table.stage(moved=True)
        alias = (called(table.name) or ("t",))[-1]
        asked = Update(self.source, self.plan, self.values, alias, stage, table.lineage)
        check_update(self.spark, asked)
        hit: frozenset[str] | None = None
        if not marks and self.plan.stats.kept - self.plan.stats.kept_whole > 1:
            hit = touched(self.spark, self.source, self.plan)
        whole = self.planned(drops)
        if hit is not None and not hit and not whole:
            return self.edited(), self.nothing()
        frame, told = updated_rows(self.spark, asked, self.mode, hit)
        done = write_changes(frame, told, stage, self.token, short=self._is_short())
        added = self.kept(done.files)
        updated = done.counts[1]
        removed: tuple[Planned, ...] = whole
        deletes: tuple[NewFile, ...] = ()
        referenced: tuple[Planned, ...] = ()
        replaced: frozenset[tuple[str, int | None]] = frozenset()
        if not updated:  # no row has changed: files may stay as they are
            self.unwrite(added)
            return self.edited(), self.nothing()
        if marks:
            new = marked(self, done.places)
            deletes, referenced, replaced = new.deletes.files, new.referenced, new.deletes.replaced
        else:
            removed = self.planned(
                lambda one: one.kept & (one.certain | named(one, hit)) if hit is not None else one.kept
            )
        edit = self.edited(
            added=added, removed=removed, deletes=deletes, referenced=referenced, replaced=replaced, moved=True
        )
        return edit, Changed(
            self.source,
            self.base,
            files_rewritten=sum(map(len, removed)),
            files_added=len(added),
            delete_files_added=len(deletes),
            rows_updated=updated,
            size_removed=total(removed, "size"),
            size_added=size_of((*added, *deletes)),
        )
