"""What every job that changes rows is: from a plan to a commit, and what it says of it.

Law: what a run has written is named before anything may fail, and removed again unless the table may have it: the
commit has happened, or nobody knows. A run that has read no row is made anew where the table has changed so that it
does not fit; others raise the CommitConflict.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Final
from uuid import uuid4

import pyarrow.compute as pc

from tamis import __version__
from tamis.errors import CommitConflict, CommitStateUnknown, ExecutorError
from tamis.formats import FormatTable
from tamis.formats.edit import Edit, Isolation, Mode, NewFile, Operation, Planned, WritableTable, new_snapshot_id
from tamis.jobs.auditing import check_audit
from tamis.jobs.retrying import committed
from tamis.predicate.arrays import Mask
from tamis.sieve.outcome import Outcome
from tamis.sieve.plan import ScanPlan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Change", "Changed", "Plan", "Work", "drops", "keeps", "reads", "run", "size_of", "total"]

Plan = Callable[[FormatTable], ScanPlan]
SHORT: Final = 512
"""Bytes of a file for each of its rows up to which rows are short: ten thousand take some megabytes there, and some
ten times that in memory."""


def keeps(outcome: Outcome) -> Mask:
    """Files of which some rows may match."""
    return outcome.kept


def drops(outcome: Outcome) -> Mask:
    """Files of which every row matches."""
    return outcome.kept & outcome.certain


def reads(outcome: Outcome) -> Mask:
    """Files of which some rows may match, and some may not."""
    return outcome.kept & ~outcome.certain


@dataclass(frozen=True, slots=True)
class Change:
    """What every change of rows is told."""

    plan: Plan
    spark: SparkSession | None
    branch: str
    mode: Mode | None
    isolation: Isolation | None
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Changed:
    """What a change of rows has done."""

    source: FormatTable
    """The table as it is now."""
    snapshot_id: int | None
    """The snapshot that it made; the head that there was if there was nothing to change."""
    files_dropped: int = 0
    """Files that left by metadata alone."""
    files_rewritten: int = 0
    """Files that left, and whose rows, as they stay, were written again."""
    files_added: int = 0
    """Data files that came."""
    delete_files_added: int = 0
    """Delete files and vectors that came."""
    rows_deleted: int = 0
    """Of files that are gone, less those written again; and those that new deletes name."""
    rows_updated: int = 0
    rows_added: int = 0
    size_removed: int = 0
    size_added: int = 0
    """Bytes."""
    attempts: int = 0
    """How often the commit was tried; 0 if there was nothing to commit."""


class Work(ABC):
    """One run of a change."""

    command: ClassVar[str]
    """What the table's `write.<command>.*` properties call it."""

    def __init__(self, table: WritableTable, job: Change) -> None:
        self.table, self.job = table, job
        check_audit(table, job.spark, job.branch)
        self.base = table.head(job.branch)
        self.source = table.table(job.branch)
        self.plan = job.plan(self.source)
        self.token = str(uuid4())
        self.mode: Mode = job.mode or table.mode(self.command)
        self.written: list[str] = []
        self.has_read = True
        """Whether rows of the table are read: if not, it can be run again on what the table is by then."""

    @abstractmethod
    def edit(self) -> tuple[Edit | None, Changed]:
        """What is to be committed, None for nothing, and what that will have done. Files are written here."""

    def done(self) -> Changed:
        """Write, commit, and say what was done."""
        try:
            edit, told = self.edit()
            if edit is None:
                return told
            done, attempts = committed(self.table, edit)
        except CommitStateUnknown:
            raise  # the files may be the table's by now
        except BaseException as error:
            self.table.remove(self.written)
            if isinstance(error, CommitConflict) and not error.retryable and not self.has_read:
                raise _Stale(error) from error
            raise
        # Nothing may fail inside that try once it has happened: the files are the table's.
        return replace(told, source=done.table, snapshot_id=done.snapshot_id, attempts=attempts)

    def has_short_rows(self) -> bool:
        """Whether the rows of every file of the plan take few bytes there; False where that is not known."""
        return all(
            pc.all(
                pc.less_equal(one.batch.size, pc.multiply(one.batch.rows, SHORT)).filter(one.kept), skip_nulls=False
            ).as_py()
            is True
            for one in self.plan.outcomes
        )

    def planned(self, chosen: Callable[[Outcome], Mask]) -> tuple[Planned, ...]:
        """The files of the plan that are chosen."""
        return self.table.planned(self.source, self.plan, chosen)

    def live(self, files: Sequence[Planned], chosen: Callable[[Outcome], Mask]) -> int:
        """How many rows these files of the plan, which are the chosen ones, have: less those known to be deleted.

        Deletes of several files at once, and by value, do not say how many rows of one they take: these count.
        """
        outcomes = [replace(one, kept=mask) for one in self.plan.outcomes if (mask := chosen(one)).any()]
        weights = self.source.rewrite_terms.deletes(self.plan).weigh(outcomes)
        return total(files, "rows") - sum(int(one.rows.sum()) for one in weights)

    def edited(
        self,
        *,
        added: Sequence[NewFile] = (),
        removed: Sequence[Planned] = (),
        deletes: Sequence[NewFile] = (),
        referenced: Sequence[Planned] = (),
        replaced: frozenset[tuple[str, int | None]] = frozenset(),
        moved: bool = False,
    ) -> Edit | None:
        """The edit of these files; None if there is nothing to commit."""
        job = self.job
        if not (added or removed or deletes or job.properties):
            return None
        return Edit(
            _operation(added, removed, deletes),
            self.base,
            self.table.schema_id,
            new_snapshot_id(),
            tuple(added),
            tuple(removed),
            tuple(deletes),
            tuple(referenced) if deletes else (),
            replaced,
            self.plan.sieve,
            job.isolation or self.table.isolation(self.command),
            job.branch,
            {**self._made_by(), **job.properties},
            moved=moved,
        )

    def nothing(self) -> Changed:
        """What a change has done that has changed nothing."""
        return Changed(self.source, self.base)

    def kept(self, files: Sequence[NewFile]) -> tuple[NewFile, ...]:
        """The files, which this run has written: removed again if it fails."""
        self.written += [file.path for file in files]
        return tuple(files)

    def unwrite(self, files: Sequence[NewFile]) -> None:
        """Remove files of this run that are not needed after all."""
        self.table.remove([file.path for file in files])

    @property
    def spark(self) -> SparkSession:
        """The session; it was asked for."""
        assert self.job.spark is not None  # noqa: S101 - for the type checker: need_spark has been asked
        return self.job.spark

    def need_spark(self, count: int, cure: str) -> None:
        """ExecutorError if there are files to read, and no session to read them with."""
        if not count or self.job.spark is not None:
            return
        raise ExecutorError(
            f"cannot {self.command} rows of {self.table.name} without Spark: of {count} file{'s' * (count != 1)} "
            f"some rows may match, so they have to be read. Give spark=..., {cure}.",
            needs="a SparkSession",
            reason="files to read",
        )

    def _made_by(self) -> dict[str, str]:
        """What a snapshot's summary says of who made it."""
        spark = self.job.spark
        engine = {} if spark is None else {"engine-name": "spark", "engine-version": str(spark.version)}
        return {**engine, "tamis-version": __version__}


class _Stale(Exception):
    """The table has changed, and nothing was read yet: plan again."""

    def __init__(self, conflict: CommitConflict) -> None:
        super().__init__(str(conflict))
        self.conflict = conflict


def run(table: WritableTable, work: Callable[[WritableTable], Work]) -> Changed:
    """Do the work; anew, up to the table's own limit, while it is stale and has read nothing."""
    for tries in range(table.retries.most, -1, -1):
        try:
            return work(table).done()
        except _Stale as stale:
            if not tries:
                raise stale.conflict from stale
            table = table.newest()
    raise AssertionError  # the last try has raised


def total(files: Sequence[Planned], column: str) -> int:
    """The sum of a column of planned files."""
    return sum(int(pc.sum(one.column(column)).as_py() or 0) for one in files)


def size_of(files: Sequence[NewFile]) -> int:
    """The bytes of new files; of a vector those that it takes of its file."""
    return sum(file.size if file.content_size is None else file.content_size for file in files)


def _operation(added: Sequence[NewFile], removed: Sequence[Planned], deletes: Sequence[NewFile]) -> Operation:
    """What Iceberg's own library calls such a change."""
    if not added:
        return "delete"
    return "overwrite" if removed or deletes else "append"
