"""What a table can be changed by: its methods, and what they give back. Only a job that runs reaches for Spark."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self, TypedDict, Unpack

from tamis.arguments import check_dataframe, check_session, check_storage
from tamis.checks import check_choice, check_known, check_type, shown
from tamis.formats import FormatTable, writable_table
from tamis.formats.edit import Evolution, Isolation, Mode
from tamis.merging import MergeBuilder, MergeOptions
from tamis.predicate.assigning import Assignment, assignments
from tamis.predicate.build import Expression
from tamis.predicate.names import called
from tamis.results import Appended, Deleted, DeletePlan, Evolved, EvolvePlan, Updated, UpdatePlan
from tamis.sieve.plan import ScanPlan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Changeable", "DeleteOptions", "check_options"]


class DeleteOptions(TypedDict, total=False):
    """How rows are deleted."""

    mode: Mode | None
    """"copy-on-write" or "merge-on-read"; if not given, as the table's `write.delete.mode` says."""
    isolation: Isolation | None
    """"serializable": no row may have come meanwhile that matches; "snapshot": only files that are changed here must
    not have changed. If not given, as `write.delete.isolation-level` says, and else serializable."""
    branch: str
    """The branch to change; if not given, the one that the table was opened at with ref=, and else main."""
    snapshot_properties: Mapping[str, str] | None
    """What else the snapshot's summary says."""
    case_sensitive: bool | None
    time_zone: str | None
    """As for plan."""
    storage: Literal["session", "catalog"]
    """Whose settings of an object store files are read and written with: the session's, and those that each machine
    that writes has, or, as "catalog", those that the table was opened with."""


class Changeable:
    """What every table can be asked to change."""

    __slots__ = ()
    source: FormatTable

    def plan(
        self,
        where: str | Expression | None = None,
        *,
        case_sensitive: bool | None = None,
        time_zone: str | None = None,
        spark: SparkSession | None = None,
        storage: Literal["session", "catalog"] = "session",
    ) -> ScanPlan:
        """Which files can hold a row that matches, and why."""
        raise NotImplementedError

    def append(
        self,
        rows: DataFrame,
        *,
        branch: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        storage: Literal["session", "catalog"] = "session",
    ) -> Appended[Self]:
        """Add the rows of a DataFrame to the table as it is now, on Spark, in one commit.

        Columns are matched by name, and widened where that loses nothing; a column that the rows lack gets its write
        default, or NULL. New files are partitioned by the table's current spec, whatever its older files have. A
        commit that loses a race is tried again, as the table's `commit.retry.*` say. This value stays what it is:
        the result's `table` has the rows. branch is the one to change: if not given, the one that the table was
        opened at with ref=, and else main. snapshot_properties go into the snapshot's summary. No rows, and no
        properties: no snapshot. storage="catalog" has executors write to the table's store by the access that it was
        opened with; else each of them does by its own environment's.
        """
        check_dataframe("rows", rows)
        check_type("branch", branch, str, type(None), expected="the name of a branch")
        check_storage(storage)
        properties = _properties(snapshot_properties)
        from tamis.jobs.append import append

        table = writable_table(self.source, hands_access=storage == "catalog")
        done = append(table, rows, branch=table.branch if branch is None else branch, properties=properties)
        return Appended(self._at(done.source), done.snapshot_id, done.files, done.rows, done.size, done.attempts)

    def delete(
        self, where: str | Expression, *, spark: SparkSession | None = None, **options: Unpack[DeleteOptions]
    ) -> Deleted[Self]:
        """Delete the rows for which the condition is true from the table as it is now, in one commit.

        A file of which every row matches is dropped by metadata alone: a condition that covers whole files needs no
        Spark. Of other files that may match, the other rows are written again by the table's current spec
        (mode="copy-on-write"), or deletes are written in the file's own spec and partition ("merge-on-read"): as
        `write.delete.mode` says, if no mode is given. A row for which the condition is NULL stays. "true" deletes
        everything. If another commit has changed what this one rests on, CommitConflict, and nothing has happened.
        """
        return self._deleted(where, spark, None, options)

    def overwrite(self, rows: DataFrame, where: str | Expression, **options: Unpack[DeleteOptions]) -> Deleted[Self]:
        """Delete the rows for which the condition is true, and add those of a DataFrame, in one commit.

        As delete and append together. The new rows need not match the condition.
        """
        check_dataframe("rows", rows)
        return self._deleted(where, rows.sparkSession, rows, options)

    def update(
        self,
        set: Mapping[str, object],  # noqa: A002 - as SQL calls it
        *,
        where: str | Expression,
        spark: SparkSession | None = None,
        **options: Unpack[DeleteOptions],
    ) -> Updated[Self]:
        """Give new values to the rows for which the condition is true, in the table as it is now, in one commit.

        set maps columns, or fields inside them (`"info.city"`), to SQL over the row as it was: `{"price": "price *
        1.1"}`. A value that is not text is taken as it is; DEFAULT is the column's write default. Values are cast to
        the column's type by Spark's ANSI rules of store assignment; one that does not fit is an error. Files that may
        hold a matching row are written anew by the table's current spec (mode="copy-on-write"), or only the changed
        rows are, with deletes beside their files ("merge-on-read"): as `write.update.mode` says, if no mode is given.
        "true" updates every row. If another commit has changed what this one rests on, CommitConflict, and nothing
        has happened.
        """
        _check(where, options, "update")
        _check_set("set", set)
        if spark is not None:
            check_session(spark)
        from tamis.jobs.update import Updating, update

        table = writable_table(self.source, hands_access=options.get("storage") == "catalog")
        job = Updating(
            lambda source: self._judged(source, where, spark, options),
            spark,
            options.get("branch", table.branch),
            options.get("mode"),
            options.get("isolation"),
            _properties(options.get("snapshot_properties")),
            lambda source: self._assigned(source, set, spark, options),
        )
        done = update(table, job)
        return Updated(
            self._at(done.source),
            done.snapshot_id,
            done.rows_updated,
            done.files_rewritten,
            done.files_added,
            done.delete_files_added,
            done.size_removed,
            done.size_added,
            done.attempts,
        )

    def plan_update(
        self,
        set: Mapping[str, object],  # noqa: A002 - as SQL calls it
        *,
        where: str | Expression,
        spark: SparkSession | None = None,
        **options: Unpack[DeleteOptions],
    ) -> UpdatePlan:
        """What update would do to which files of the table as it is now; nothing is written, and no row is read."""
        _check(where, options, "update")
        _check_set("set", set)
        table = writable_table(self.source)
        source = table.table(options.get("branch", table.branch))
        columns = tuple(one.name for one in self._assigned(source, set, spark, options))
        mode = options.get("mode") or table.mode("update")
        return UpdatePlan(self._judged(source, where, spark, options), mode, columns)

    def merge(self, source: DataFrame, on: str, **options: Unpack[MergeOptions]) -> MergeBuilder[Self]:
        """A MERGE of the rows of a DataFrame into the table as it is when it is run: put its clauses together.

        on is the condition by which rows match, in SQL: the table is called t there, and the source s, unless
        target_alias and source_alias say otherwise. `table.merge(rows, on="t.id = s.id").when_matched_update_all()
        .when_not_matched_insert_all().run()`. Of the clauses for a row the first whose condition is true applies.
        The source is materialised first, so that it cannot change; its keys prune the table's files. mode and
        isolation are as `write.merge.mode` and `write.merge.isolation-level` say, if they are not given.
        """
        check_dataframe("source", source)
        check_type("on", on, str, expected="a condition in SQL, such as 't.id = s.id'")
        check_options(options, MergeOptions.__annotations__, "its plan() shows what a merge would do")
        if source.isStreaming:
            raise ValueError("source is a stream, which has no last row: merge each batch of it (foreachBatch).")
        builder = MergeBuilder(self, source, on, options)
        for name, alias in (("target_alias", builder.target_alias), ("source_alias", builder.source_alias)):
            check_type(name, alias, str, expected="a name, such as 't'")
            if not alias.isidentifier():
                raise ValueError(f"{name} is {shown(alias)}: give a plain name, such as 't'.")
        if builder.target_alias.lower() == builder.source_alias.lower():
            raise ValueError(f"the table and the source are both called {builder.source_alias!r}: give two names.")
        return builder

    def _assigned(
        self, source: FormatTable, values: Mapping[str, object], spark: SparkSession | None, options: DeleteOptions
    ) -> tuple[Assignment, ...]:
        sensitive = options.get("case_sensitive")
        if sensitive is None and spark is not None:
            check_session(spark)
            from tamis.spark.session import is_case_sensitive

            sensitive = is_case_sensitive(spark)
        alias = (called(source.name) or (None,))[-1]
        return assignments(values, source.schema, alias=alias, case_sensitive=bool(sensitive))

    def plan_delete(
        self, where: str | Expression, *, spark: SparkSession | None = None, **options: Unpack[DeleteOptions]
    ) -> DeletePlan:
        """What delete would do to which files of the table as it is now; nothing is written, and no row is read."""
        _check(where, options)
        table = writable_table(self.source)
        source = table.table(options.get("branch", table.branch))
        return DeletePlan(self._judged(source, where, spark, options), options.get("mode") or table.mode("delete"))

    def evolve(
        self, *, add: Sequence[str] = (), drop: Sequence[str] = (), replace: Mapping[str, str] | None = None
    ) -> Evolved[Self]:
        """Change how new files are partitioned; files that there are keep their spec, and nothing is rewritten.

        add are fields as Spark's DDL writes them: "region", "bucket(8, id)", "truncate(4, sku)", "days(ts)", each
        with `as name` behind it if it is to have a name of its own. drop are names of fields, or what they are made
        of; replace maps such to new ones. The result's `table` has the new spec, or the old one if that is it.
        """
        wanted = _evolution(add, drop, replace)
        from tamis.jobs.evolve import evolve

        source, spec_id, changed = evolve(writable_table(self.source), wanted)
        return Evolved(self._at(source), spec_id, changed)

    def plan_evolve(
        self, *, add: Sequence[str] = (), drop: Sequence[str] = (), replace: Mapping[str, str] | None = None
    ) -> EvolvePlan:
        """How evolve would partition new files of the table as it is now; nothing is changed."""
        wanted = _evolution(add, drop, replace)
        source, spec_id, changed = writable_table(self.source).evolution(wanted)
        spec = next(spec for spec in source.specs if spec.spec_id == spec_id)
        return EvolvePlan(spec_id, tuple(f"{field.name} ({field.transform})" for field in spec.fields), changed)

    def _deleted(
        self,
        where: str | Expression,
        spark: SparkSession | None,
        rows: DataFrame | None,
        options: DeleteOptions,
    ) -> Deleted[Self]:
        _check(where, options)
        if spark is not None:
            check_session(spark)
        from tamis.jobs.delete import Deletion, delete

        table = writable_table(self.source, hands_access=options.get("storage") == "catalog")
        job = Deletion(
            lambda source: self._judged(source, where, spark, options),
            spark,
            options.get("branch", table.branch),
            options.get("mode"),
            options.get("isolation"),
            _properties(options.get("snapshot_properties")),
            rows,
        )
        done = delete(table, job)
        return Deleted(
            self._at(done.source),
            done.snapshot_id,
            done.rows_deleted,
            done.rows_added,
            done.files_dropped,
            done.files_rewritten,
            done.files_added,
            done.delete_files_added,
            done.size_removed,
            done.size_added,
            done.attempts,
        )

    def _judged(
        self, source: FormatTable, where: str | Expression, spark: SparkSession | None, options: DeleteOptions
    ) -> ScanPlan:
        return self._at(source).plan(
            where,
            spark=spark,
            case_sensitive=options.get("case_sensitive"),
            time_zone=options.get("time_zone"),
            storage=options.get("storage") or "session",
        )

    def _at(self, source: FormatTable) -> Self:
        """The table in another state."""
        made: Any = dataclasses.replace(self, source=source)  # type: ignore[type-var] # every table is a dataclass
        return made  # type: ignore[no-any-return]


def _check(where: object, options: Mapping[str, object], command: str = "delete") -> None:
    """TypeError or ValueError for what cannot be meant; an option that nobody knows would be passed over."""
    check_options(options, DeleteOptions.__annotations__, f"plan_{command} shows what {command} would do")
    verb = f"{command}s"
    check_type("where", where, str, Expression, expected=f"a condition; 'true' {verb} every row")


def check_options(options: Mapping[str, object], known_options: Collection[str], dry_run: str) -> None:
    """TypeError or ValueError for an option that is not known, or has a value that it cannot have."""
    check_known(options, known_options, dry_run if "dry_run" in options else None)
    for name, known in (("mode", ("copy-on-write", "merge-on-read")), ("isolation", ("serializable", "snapshot"))):
        check_choice(name, options.get(name), known, or_none=True)
    check_type("branch", options.get("branch", "main"), str, expected="the name of a branch")
    check_storage(options.get("storage"))
    check_type("case_sensitive", options.get("case_sensitive"), bool, type(None), expected="True or False")
    time_zone = options.get("time_zone")
    check_type("time_zone", time_zone, str, type(None), expected="the name of a time zone, such as 'UTC'")
    _properties(options.get("snapshot_properties"))  # type: ignore[arg-type] # checked there


def _evolution(add: Sequence[str], drop: Sequence[str], replace: Mapping[str, str] | None) -> Evolution:
    """The change of a spec; TypeError for what is none."""
    check_type("replace", replace, Mapping, type(None), expected="a dict of old partition fields to new ones")
    for name, texts in (("add", add), ("drop", drop), ("replace", [*(replace or {}), *(replace or {}).values()])):
        check_type(name, texts, list, tuple, expected="a list of partition fields")
        for text in texts:
            check_type(f"a member of {name}", text, str, expected="a partition field, such as 'bucket(8, id)'")
    return Evolution(tuple(add), tuple(drop), dict(replace or {}))


def _check_set(name: str, values: object) -> None:
    """TypeError, or ValueError, unless columns are mapped to values."""
    check_type(
        name, values, Mapping, expected="a dict of columns to their new values, such as {'price': 'price * 2'}"
    )
    if not values:
        raise ValueError(f"{name} is empty: name at least one column, such as {{'price': 'price * 2'}}.")


def _properties(said: Mapping[str, str] | None) -> dict[str, str]:
    check_type("snapshot_properties", said, Mapping, type(None), expected="a dict of texts")
    properties = dict(said or {})
    for key, value in properties.items():
        for part in (key, value):
            check_type("a member of snapshot_properties", part, str, expected="text")
    return properties
