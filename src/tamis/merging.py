"""MERGE, put together clause by clause, and run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, TypedDict, TypeVar

import pyarrow as pa

from tamis.arguments import check_session
from tamis.checks import check_form, check_type
from tamis.errors import BindError
from tamis.formats import FormatTable, writable_table
from tamis.formats.edit import Isolation, Mode, WritableTable
from tamis.predicate.assigning import Assignment, assignments
from tamis.predicate.clauses import BY_SOURCE, MATCHED, NOT_MATCHED, Clause, Rows, check_order, of
from tamis.printable import printable
from tamis.results import told, with_action
from tamis.sieve.plan import ScanPlan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tamis.predicate.matching import Matching
    from tamis.spark.merge_source import MergeSource

__all__ = ["MergeBuilder", "MergeOptions", "MergePlan", "Merged"]

TableT = TypeVar("TableT")


class MergeOptions(TypedDict, total=False):
    """How a merge is done."""

    target_alias: str
    source_alias: str
    """What the condition and the clauses call the table, by default t, and the source, by default s."""
    mode: Mode | None
    """"copy-on-write" or "merge-on-read"; if not given, as the table's `write.merge.mode` says."""
    isolation: Isolation | None
    """"serializable" or "snapshot"; if not given, as `write.merge.isolation-level` says, and else serializable."""
    branch: str
    snapshot_properties: Mapping[str, str] | None
    storage: Literal["session", "catalog"]
    """As for delete."""


@dataclass(frozen=True, slots=True)
class Merged(Generic[TableT]):
    """What a merge has done."""

    table: TableT
    """The table as the clauses have made it."""
    snapshot_id: int | None
    """The snapshot that was made; if nothing was to change, the one that there was."""
    rows_updated: int
    rows_deleted: int
    rows_inserted: int
    files_rewritten: int
    """Files that left, and whose rows, as they stay, were written again."""
    files_added: int
    delete_files_added: int
    """Delete files, or deletion vectors."""
    bytes_removed: int
    bytes_added: int
    attempts: int
    """How often the commit was tried; 0 if there was nothing to commit."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MergePlan:
    """What a merge would do to which files."""

    plan: ScanPlan
    mode: Mode
    clauses: tuple[Clause, ...]
    source_rows: int
    note: str | None
    """Why keys of the source prune nothing; None if they may."""

    def __repr__(self) -> str:
        return f"<tamis merge: {self._line}>"

    @property
    def files(self) -> pa.Table:
        """The files that would be read, as plan.files has them, and `action`: rewrite, mark rows, or read."""
        if all(clause.rows == NOT_MATCHED for clause in self.clauses):
            return with_action(self.plan.files, "read", "read")
        action = "rewrite" if self.mode == "copy-on-write" else "mark rows"
        return with_action(self.plan.files, action, action)

    @property
    def _line(self) -> str:
        files = self.files
        kinds = {"rewrite": "read, and rewritten if a row changes", "read": "read for its keys alone"}
        what = kinds.get(
            files["action"][0].as_py() if len(files) else "", "read, and given deletes where a row changes"
        )
        rest = self.plan.stats.files - len(files)
        return (
            f"{self.source_rows:,} row{'s' * (self.source_rows != 1)} of the source; "
            f"{len(files):,} file{'s' * (len(files) != 1)} {what}, {rest:,} not touched"
        )

    def explain(self, form: Literal["text", "json"] = "text") -> str:
        """The funnel of the plan; as text, with the clauses and what would be done."""
        check_form(form)
        if form == "json":
            return self.plan.explain("json")
        texts = [f"MERGE ({self.mode}): {self._line}.", *(f"  {clause}" for clause in self.clauses)]
        if self.note is not None and not any(clause.rows == BY_SOURCE for clause in self.clauses):
            texts.append(f"The source prunes no file: {self.note}.")
        return told(self.plan, *texts)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MergeBuilder(Generic[TableT]):
    """A MERGE that is put together: each method gives a new one with one clause more. run() runs it."""

    table: TableT
    source: DataFrame
    on: str
    options: MergeOptions
    clauses: tuple[Clause, ...] = ()

    def __repr__(self) -> str:
        clauses = "; ".join(map(str, self.clauses)) or "no clause yet"
        return f"<tamis merge on {printable(self.on)}: {printable(clauses)}>"

    @property
    def target_alias(self) -> str:
        """What the table is called."""
        return self.options.get("target_alias", "t")

    @property
    def source_alias(self) -> str:
        """What the source is called."""
        return self.options.get("source_alias", "s")

    def when_matched_update(
        self,
        set: Mapping[str, object],  # noqa: A002 - as SQL calls it
        condition: str | None = None,
    ) -> MergeBuilder[TableT]:
        """Rows that match get new values: columns, or fields in them, with SQL over both: `{"n": "t.n + s.n"}`."""
        return self._with(MATCHED, "update", condition, self._values("set", set))

    def when_matched_update_all(self, condition: str | None = None) -> MergeBuilder[TableT]:
        """Rows that match get the source's values for all columns, which it must have."""
        return self._with(MATCHED, "update", condition, every=True)

    def when_matched_delete(self, condition: str | None = None) -> MergeBuilder[TableT]:
        """Rows that match leave the table."""
        return self._with(MATCHED, "delete", condition)

    def when_not_matched_insert(
        self, values: Mapping[str, object], condition: str | None = None
    ) -> MergeBuilder[TableT]:
        """Rows of the source that match none are inserted: columns, and SQL over the source. Others get defaults."""
        return self._with(NOT_MATCHED, "insert", condition, self._values("values", values, nested=False))

    def when_not_matched_insert_all(self, condition: str | None = None) -> MergeBuilder[TableT]:
        """Rows of the source that match none are inserted, with its values for all columns."""
        return self._with(NOT_MATCHED, "insert", condition, every=True)

    def when_not_matched_by_source_update(
        self,
        set: Mapping[str, object],  # noqa: A002 - as SQL calls it
        condition: str | None = None,
    ) -> MergeBuilder[TableT]:
        """Rows of the table that no row of the source matches get new values, of SQL over the table."""
        return self._with(BY_SOURCE, "update", condition, self._values("set", set))

    def when_not_matched_by_source_delete(self, condition: str | None = None) -> MergeBuilder[TableT]:
        """Rows of the table that no row of the source matches leave it. Only with a condition are files pruned."""
        return self._with(BY_SOURCE, "delete", condition)

    def plan(self) -> MergePlan:
        """What run would do to which files of the table as it is now.

        The source is read for its keys; of the table no row is read, and nothing is written.
        """
        writable = self._writable()
        branch = self.options.get("branch", writable.branch)
        source = writable.table(branch)
        prepared = self._prepared(source)
        mode = self.options.get("mode") or writable.mode("merge")
        return MergePlan(self._planned(source, prepared), mode, self.clauses, prepared.rows, prepared.note)

    def explain(self, form: Literal["text", "json"] = "text") -> str:
        """As plan().explain() has it."""
        check_form(form)
        return self.plan().explain(form)

    def run(self, spark: SparkSession | None = None) -> Merged[TableT]:
        """Merge, in one commit, into the table as it is now.

        spark, if given, has to be the session of the source. MergeMatchError if a row of the table matches several
        rows of the source, unless it makes no difference which; CommitConflict if another commit has changed what
        this one rests on. Then nothing has happened.
        """
        if spark is not None:
            check_session(spark)
            if type(spark) is not type(self.source.sparkSession):
                raise ValueError("spark is another session than that of the source: leave it out.")
        from tamis.jobs.merge import Merging, merge

        writable, options = self._writable(), self.options
        branch = options.get("branch", writable.branch)
        prepared = self._prepared(writable.table(branch))
        job = Merging(
            lambda source: self._planned(source, prepared),
            self.source.sparkSession,
            branch,
            options.get("mode"),
            options.get("isolation"),
            dict(options.get("snapshot_properties") or {}),
            prepared,
            self.on,
            self.clauses,
            (self.target_alias, self.source_alias),
        )
        done = merge(writable, job)
        at: Any = self.table
        return Merged(
            at._at(done.source),  # noqa: SLF001 - of the same package
            done.snapshot_id,
            done.rows_updated,
            done.rows_deleted,
            done.rows_added,
            done.files_rewritten,
            done.files_added,
            done.delete_files_added,
            done.size_removed,
            done.size_added,
            done.attempts,
        )

    def _with(
        self,
        rows: Rows,
        action: Literal["update", "delete", "insert"],
        condition: str | None,
        values: tuple[Assignment, ...] = (),
        *,
        every: bool = False,
    ) -> MergeBuilder[TableT]:
        check_type(
            "condition", condition, str, type(None), expected="SQL text, such as 's.op = 1'; None for all rows"
        )
        if condition is not None and not condition.strip():
            raise ValueError("condition is empty: leave it out for all rows.")
        clause = Clause(rows, action, values, every, condition)
        check_order(self.clauses, clause)
        return replace(self, clauses=(*self.clauses, clause))

    def _values(self, name: str, given: Mapping[str, object], *, nested: bool = True) -> tuple[Assignment, ...]:
        from tamis.spark.session import is_case_sensitive

        check_type(name, given, Mapping, expected="a dict of columns to their values, such as {'n': 's.n'}")
        if not given:
            raise ValueError(f"{name} is empty: name at least one column, such as {{'n': 's.n'}}.")
        table: Any = self.table
        sensitive = is_case_sensitive(self.source.sparkSession)
        found = assignments(given, table.schema, alias=self.target_alias, case_sensitive=sensitive)
        inside = next((one for one in found if len(one.path) > 1), None)
        if inside is not None and not nested:
            raise BindError(
                f"cannot insert a value into {inside.name} alone: a new row has no struct yet. Give the whole column "
                f"{inside.path[0]}, as in named_struct(...).",
                column=inside.name,
                nearest=(inside.path[0],),
            )
        return found

    def _writable(self) -> WritableTable:
        if not self.clauses:
            raise ValueError(
                "the merge has no clause: say what becomes of rows, as in .when_matched_update_all()"
                ".when_not_matched_insert_all()."
            )
        table: Any = self.table
        return writable_table(table.source, hands_access=self.options.get("storage") == "catalog")

    def _matching(self, source: FormatTable) -> Matching:
        from tamis.predicate.matching import Sides, matching

        sides = Sides(source.schema, tuple(self.source.columns), self.target_alias, self.source_alias)
        return matching(self.on, sides)

    def _prepared(self, source: FormatTable) -> MergeSource:
        """The source, pinned, with the keys that may prune this state of the table."""
        from tamis.spark.merge_source import merge_source

        by_source = [clause for _, clause in of(self.clauses, BY_SOURCE)]
        others = len(by_source) < len(self.clauses)
        return merge_source(
            self.source,
            self.source_alias,
            self._matching(source),
            source,
            prunes=others and all(clause.condition is not None for clause in by_source),
            must_be_unique=any(clause.rows != NOT_MATCHED for clause in self.clauses),
        )

    def _planned(self, source: FormatTable, prepared: MergeSource) -> ScanPlan:
        """The files that may hold a row that matches, or that a clause for rows without a match may change."""
        table: Any = self.table
        plan = partial(
            table._at(source).plan,  # noqa: SLF001 - of the same package
            alias=self.target_alias,
            spark=self.source.sparkSession,
            storage=self.options.get("storage") or "session",
        )
        alone = self._matching(source).target_only
        mine = _all(alone) if alone else None
        keys = [] if prepared.keys is None else [prepared.keys]
        by_source = [clause.condition for _, clause in of(self.clauses, BY_SOURCE)]
        if not by_source:
            return plan(mine, runtime_filters=keys)  # type: ignore[no-any-return]
        if None in by_source:
            return plan(None)  # type: ignore[no-any-return]
        theirs = " OR ".join(f"({one}\n)" for one in by_source)
        if len(by_source) == len(self.clauses):
            return plan(theirs)  # type: ignore[no-any-return]
        if mine is None and not keys:
            return plan(None)  # type: ignore[no-any-return]
        wide: ScanPlan = plan(None if mine is None else f"({mine}\n) OR {theirs}")
        if not keys:
            return wide
        from tamis.spark.changes import narrowed

        needed = _paths(plan(mine, runtime_filters=keys)) | _paths(plan(theirs))
        return narrowed(wide, only=needed, certain=None)


def _all(conditions: tuple[str, ...]) -> str:
    return " AND ".join(f"({one}\n)" for one in conditions)


def _paths(plan: ScanPlan) -> frozenset[str]:
    """The files that a plan keeps."""
    kept = (outcome.batch.path.filter(pa.array(outcome.kept)) for outcome in plan.outcomes)
    return frozenset(path for paths in kept for path in paths.to_pylist())
