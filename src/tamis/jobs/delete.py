"""Delete, and overwrite: rows that a condition matches leave the table, and others may come in the same commit.

A file of which every row matches is dropped by metadata alone, unread. One of which some rows may match is read: its
other rows are written again (copy-on-write), or deletes are written beside it (merge-on-read). Law: afterwards the
table has exactly the rows for which the condition is not true, and the new ones. A row for which it is NULL stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tamis.formats.edit import Edit, NewDeletes, NewFile, Planned, WritableTable
from tamis.jobs.work import Change, Changed, Work, drops, keeps, reads, run, size_of, total

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tamis.predicate.arrays import Mask
    from tamis.sieve.outcome import Outcome

__all__ = ["Deletion", "delete"]


@dataclass(frozen=True, slots=True)
class Deletion(Change):
    """What a delete is to do, and how."""

    rows: DataFrame | None = None
    """Rows that come in the same commit: an overwrite."""


def delete(table: WritableTable, job: Deletion) -> Changed:
    """Plan, read what has to be read, write, and commit.

    A delete that has read no row is planned anew if the table has changed so that it does not fit; others raise the
    CommitConflict, with all their files removed.
    """
    return run(table, lambda newest: _Work(newest, job))


class _Work(Work):
    """One run: from a plan to a commit."""

    command: ClassVar[str] = "delete"
    job: Deletion

    def __init__(self, table: WritableTable, job: Deletion) -> None:
        super().__init__(table, job)
        self.dropped = self.planned(drops)
        self.read = self.planned(reads)
        self.has_read = bool(self.read) or job.rows is not None
        self.need_spark(sum(map(len, self.read)), "or a condition that covers whole files")

    def edit(self) -> tuple[Edit | None, Changed]:
        dropped, read = self.dropped, self.read
        # What only Spark understands may be none of its conditions, also where other parts settle every file.
        if read or (self.job.spark is not None and self.plan.sieve.predicate.unclear):
            self._check_condition()
        added, removed, marked = self._new_rows(), list(dropped), 0
        leaves: Callable[[Outcome], Mask] = drops
        deletes: tuple[NewFile, ...] = ()
        replaced: frozenset[tuple[str, int | None]] = frozenset()
        survivors: tuple[NewFile, ...] = ()
        if read and self.mode == "copy-on-write":
            only = self._touched(read)
            read = read if only is None else self.planned(_read_of(only))
            survivors = self._survivors(only) if read else ()
            if sum(file.rows for file in survivors) != total(read, "rows"):
                removed += read
                leaves = keeps if only is None else _dropped_or(_read_of(only))
            else:  # no row of them has left: they may stay as they are
                self.unwrite(survivors)
                survivors = ()
        elif read:
            new, of, marked = self._marks(read)
            deletes, replaced = new.files, new.replaced
            read = self.planned(_read_of(of))
        every = (*added, *survivors)
        edit = self.edited(added=every, removed=removed, deletes=deletes, referenced=read, replaced=replaced)
        if edit is None:
            return None, self.nothing()
        return edit, Changed(
            self.source,
            self.base,
            files_dropped=sum(map(len, dropped)),
            files_rewritten=sum(map(len, removed)) - sum(map(len, dropped)),
            files_added=len(every),
            delete_files_added=len(deletes),
            rows_deleted=self.live(removed, leaves) - sum(file.rows for file in survivors) + marked,
            rows_added=sum(file.rows for file in added),
            size_removed=total(removed, "size"),
            size_added=size_of((*every, *deletes)),
        )

    def _check_condition(self) -> None:
        """BindError before anything is written, if Spark does not take the condition."""
        from tamis.spark.changes import check_condition

        check_condition(self.spark, self.source, self.plan, "DELETE" if self.job.rows is None else "OVERWRITE")

    def _new_rows(self) -> tuple[NewFile, ...]:
        if self.job.rows is None:
            return ()
        from tamis.spark.write import write_rows

        return self.kept(write_rows(self.job.rows, self.table.stage(), self.token))

    def _touched(self, read: Sequence[Planned]) -> frozenset[str] | None:
        """Of the files to read, those that lose a row; None if there is but one, of which writing it anew tells.

        That reads the compared columns once more, a small part of what writing all of the others anew would cost.
        """
        from tamis.spark.changes import touched

        return touched(self.spark, self.source, self.plan) if sum(map(len, read)) > 1 else None

    def _survivors(self, only: frozenset[str] | None) -> tuple[NewFile, ...]:
        """The rows of these files for which the condition is not true, written by the table's default spec."""
        from tamis.spark.changes import rows_left
        from tamis.spark.write import write_rows

        frame = rows_left(self.spark, self.source, self.plan, only=only, lineage=self.table.lineage)
        stage, short = self.table.stage(moved=True), self.has_short_rows()
        return self.kept(write_rows(frame, stage, f"{self.token}-rewritten", short=short))

    def _marks(self, read: Sequence[Planned]) -> tuple[NewDeletes, frozenset[str], int]:
        """Deletes of the rows for which the condition is true, the files that they are of, and how many rows go."""
        from tamis.spark.changes import rows_left, rows_taken
        from tamis.spark.write import mark_rows

        stage = self.table.stage_deletes(read, self.plan.deletes)
        frame = rows_taken(self.spark, self.source, self.plan, stage.whole)
        if stage.whole:
            # Of these every row is named that is gone, however: so those that stay are told.
            frame = frame.union(rows_left(self.spark, self.source, self.plan, only=stage.whole, places=True))
        marks = mark_rows(frame, stage, self.token)
        self.written += [mark.file.path for mark in marks if mark.file is not None]
        new = stage.finish(marks, self.token)
        self.written += dict.fromkeys(file.path for file in new.files if file.path not in self.written)
        told = sum(mark.rows for mark in marks if mark.paths[0] not in stage.whole)
        of = {path for mark in marks if mark.file is not None for path in mark.paths}
        of |= {file.referenced for file in new.files if file.referenced is not None}
        return new, frozenset(of), told + sum(file.rows for file in new.files if file.referenced in stage.whole)


def _read_of(paths: frozenset[str]) -> Callable[[Outcome], Mask]:
    """Of files of which some rows may match, those with these paths."""
    from tamis.spark.changes import named

    return lambda one: reads(one) & named(one, paths)


def _dropped_or(others: Callable[[Outcome], Mask]) -> Callable[[Outcome], Mask]:
    """Files of which every row matches, and these."""
    return lambda one: drops(one) | others(one)
