"""The front door: a table, and the jobs that it can be given.

Opening reads the metadata file and nothing else. Planning and explaining need no Spark; only a job that is told to
run reaches for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from os import PathLike, fspath
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

from tamis.arguments import (
    check_dataframe,
    check_executors,
    check_filters,
    check_names,
    check_session,
    check_target,
    check_type,
    condition,
    kind,
    moment_ms,
)
from tamis.errors import ExecutorError
from tamis.explain.brief import page_part, plan_line
from tamis.formats import At, FormatTable, TableFormat, open_table
from tamis.formats.iceberg.inspection import Inspection
from tamis.predicate.bind import bind
from tamis.predicate.build import Expression
from tamis.predicate.schema import Schema
from tamis.predicate.type_names import type_name
from tamis.predicate.zones import Ask
from tamis.printable import printable
from tamis.sieve.outcome import Sieve
from tamis.sieve.plan import ScanPlan
from tamis.sieve.runtime import RuntimeFilter

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table as PyIcebergTable
    from pyspark.sql import DataFrame, SparkSession

    from tamis.spark.join import Join

__all__ = ["JoinOptions", "JoinPlan", "Table", "TablePlan", "open"]

DEFAULT_ZONE = "UTC"
"""The time zone of a plan that names no session."""


@dataclass(frozen=True, slots=True, repr=False)
class TablePlan(ScanPlan):
    """A plan that knows its table, and so can be run."""

    source: FormatTable

    def __repr__(self) -> str:
        return f"<tamis plan of {printable(self.source.name)}: {plan_line(self)}>"

    def read(
        self, spark: SparkSession, *, columns: Sequence[str] | None = None, metadata_columns: Sequence[str] = ()
    ) -> DataFrame:
        """Exactly the rows that match, with the table's deletes applied, through Spark's own readers.

        columns are those to read, in their order; all of them if not given. metadata_columns come after them: of
        `_file`, `_pos`, `_spec_id` and `_partition`. The plan's files are fixed: what happens to the table later does
        not change what is read.
        """
        check_session(spark)
        check_names("columns", columns)
        check_names("metadata_columns", metadata_columns)
        from tamis.spark.read import read_plan

        return read_plan(self, self.source, spark, columns=columns, metadata_columns=metadata_columns)


class JoinOptions(TypedDict, total=False):
    """How a join's keys are collected."""

    max_keys: int
    """Most distinct keys to list, by default 100,000: with more, only their range prunes."""
    bloom: bool | None
    """Whether more keys than that go into a bloom filter. None, the default: if a partition can be asked by it."""
    pin: bool
    """Whether the other side is materialised, by default True: else it must be known not to change."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class JoinPlan:
    """A plan of the table's side of a join, and the other side, pinned if its keys were collected."""

    plan: TablePlan
    other: DataFrame
    on: Join
    keys: RuntimeFilter | None
    """None if keys could not prune: a note of the plan says why."""

    def __repr__(self) -> str:
        return f"<tamis {self.on.how} join of {printable(self.plan.source.name)}: {plan_line(self.plan)}>"

    def _repr_html_(self) -> str:
        return page_part(self.explain())

    def explain(self, form: Literal["text", "json"] = "text", *, timing: bool = False) -> str:
        """The funnel of the table's side: what its WHERE and the keys removed."""
        return self.plan.explain(form, timing=timing)

    def read(self, *, columns: Sequence[str] | None = None) -> DataFrame:
        """The joined rows, with all columns of the table or with these and the join's."""
        from tamis.spark.join import joined

        if columns is not None:
            columns = list(dict.fromkeys([*columns, *(path[0] for path in self.on.columns)]))
        return joined(self.plan.read(self.other.sparkSession, columns=columns), self.other, self.on)


@dataclass(frozen=True, slots=True, repr=False)
class Table:
    """One state of a table, opened: later changes of the table do not change it.

    It can be pickled. Credentials are left out: where it is unpickled, the environment's are used.
    """

    source: FormatTable

    def __repr__(self) -> str:
        return f"<tamis table {printable(self.name)}: {self.format}, {self._state}>"

    def _repr_html_(self) -> str:
        columns = "\n".join(
            f"  {column.name} {type_name(column.type)}" for column in self.schema.columns if not column.nested
        )
        return page_part(f"{self.name}\n{self.format}, {self._state}\n{columns}")

    @property
    def _state(self) -> str:
        return "no snapshot yet" if self.snapshot_id is None else f"snapshot {self.snapshot_id}"

    @property
    def name(self) -> str:
        """The name that it was opened by."""
        return self.source.name

    @property
    def format(self) -> str:
        """The format and its version."""
        return self.source.format

    @property
    def location(self) -> str:
        """The folder that its metadata names as its own."""
        return self.source.location

    @property
    def schema(self) -> Schema:
        """The columns that a predicate may name."""
        return self.source.schema

    @property
    def snapshot_id(self) -> int | None:
        """The snapshot that jobs work on; None if the table never had one."""
        return self.source.snapshot_id

    def plan(  # noqa: PLR0913 - each is a choice of its own, with a default
        self,
        where: str | Expression | None = None,
        *,
        runtime_filters: Sequence[RuntimeFilter] = (),
        case_sensitive: bool | None = None,
        time_zone: str | None = None,
        strict: bool = False,
        progress: Callable[[int, int], None] | None = None,
        spark: SparkSession | None = None,
        executors: Literal["auto", "always", "never"] = "auto",
    ) -> TablePlan:
        """Which files can hold a row that matches, and why.

        where is SQL as Spark reads it, or a condition built with tamis.col; everything without one. time_zone is that
        of the session that will filter the rows: if not given, that of spark, and else UTC. case_sensitive is taken
        from spark likewise, else names are found in any case. What cannot be judged is kept and counted, or with
        strict=True an UnevaluableError. progress is told how many of how many files have come in. With spark, its
        rules of the time zone are asked for if the condition depends on them, where other plans leave some hours for
        what may be different there, and a table of very much metadata is planned on the executors: see executors.
        """
        schema = self.schema
        node, sql = condition(where, schema)
        check_filters(runtime_filters)
        check_executors(executors)
        check_type("case_sensitive", case_sensitive, bool, type(None), expected="True or False")
        check_type("strict", strict, bool, expected="True or False")
        if progress is not None and not callable(progress):
            raise TypeError(f"progress is {kind(progress)}: give a function of two numbers.")
        check_type("time_zone", time_zone, str, type(None), expected="the name of a time zone, such as 'UTC'")
        ask: Ask | None = None
        if spark is not None:
            check_session(spark)
            from tamis.spark.session import is_case_sensitive, session_zone
            from tamis.spark.zones import session_rules

            time_zone = time_zone or session_zone(spark)
            ask = partial(session_rules, spark)
            case_sensitive = is_case_sensitive(spark) if case_sensitive is None else case_sensitive
        case_sensitive = bool(case_sensitive)
        zone = time_zone or DEFAULT_ZONE
        predicate = bind(node, schema, case_sensitive=case_sensitive, time_zone=zone, ask=ask, sql=sql)
        filters = tuple(keys.bind(schema, case_sensitive=case_sensitive) for keys in runtime_filters)
        sieve = Sieve(predicate, self.source.specs, filters, strict=strict)
        plan = self._sifted(sieve, progress, spark, executors)
        return TablePlan(plan.sieve, plan.outcomes, plan.stats, plan.layer_names, self.source)

    def _sifted(
        self,
        sieve: Sieve,
        progress: Callable[[int, int], None] | None,
        spark: SparkSession | None,
        executors: Literal["auto", "always", "never"],
    ) -> ScanPlan:
        if spark is None:
            if executors == "always":
                raise ExecutorError(
                    "cannot plan on executors without a session: give spark=..., or leave executors='always' out.",
                    needs="a SparkSession",
                    reason="no session",
                )
            return self.source.sift(sieve, progress)
        from tamis.spark.planning import sift_with

        return sift_with(spark, self.source, sieve, progress, executors)

    def join(
        self,
        other: DataFrame,
        on: str | Sequence[str] | Mapping[str, str],
        *,
        where: str | Expression | None = None,
        how: str = "inner",
        null_safe: bool = False,
        columns: Sequence[str] | None = None,
        runtime_filters: Sequence[RuntimeFilter] = (),
        **options: Unpack[JoinOptions],
    ) -> DataFrame:
        """The table, filtered by where, joined with a DataFrame whose keys prune the table's files.

        As Spark's `table.join(other, on, how)`: on is a column or several, which then stand in the result once, or a
        dict of the table's columns to the other's. null_safe compares by `<=>`. A join that keeps rows of the table
        without a match (left, full, anti) prunes nothing by keys. columns are those to read of the table, beside the
        join's own. The other side is materialised before its keys are collected, so that it cannot change: a few
        thousand rows on the driver, more on the executors. Give it the columns that are needed, no more, or say
        pin=False if it is known not to change. plan_join does the same and tells what was pruned.
        """
        plan = self.plan_join(
            other, on, where=where, how=how, null_safe=null_safe, runtime_filters=runtime_filters, **options
        )
        return plan.read(columns=columns)

    def plan_join(
        self,
        other: DataFrame,
        on: str | Sequence[str] | Mapping[str, str],
        *,
        where: str | Expression | None = None,
        how: str = "inner",
        null_safe: bool = False,
        runtime_filters: Sequence[RuntimeFilter] = (),
        **options: Unpack[JoinOptions],
    ) -> JoinPlan:
        """What join does, up to the files that have to be read: explain it, then read it.

        runtime_filters are further ones, from the sides of other joins that will follow. They must be sound there.
        """
        check_dataframe("other", other)
        check_type("how", how, str, expected="a kind of join, such as 'inner'")
        check_type("null_safe", null_safe, bool, expected="True or False")
        check_filters(runtime_filters)
        from tamis.spark.join import Join, KeyOptions, join_keys
        from tamis.spark.session import is_case_sensitive

        join = Join.of(on, how, null_safe=null_safe)
        sensitive, spark = is_case_sensitive(other.sparkSession), other.sparkSession

        def planned(*filters: RuntimeFilter) -> TablePlan:
            every = (*runtime_filters, *filters)
            return self.plan(where, runtime_filters=every, case_sensitive=sensitive, spark=spark)

        def saved(keys: RuntimeFilter) -> float:
            stats = planned(keys).stats
            mine = stats.filters[-1]
            # Of manifests that were pruned unread the number of files is known, and not their bytes.
            return max(
                mine.bytes / max(stats.kept_bytes + mine.bytes, 1), mine.files / max(stats.kept + mine.files, 1)
            )

        keys, note = join_keys(self.source, other, join, KeyOptions(**options), saved)
        plan = planned(*([] if keys is None else [keys]))
        if note is not None:
            stats = replace(plan.stats, notes=(*plan.stats.notes, note))
            plan = replace(plan, stats=stats)
        return JoinPlan(plan, other if keys is None else keys.dataframe, join, keys)

    def inspect(self, progress: Callable[[int, int], None] | None = None) -> Inspection:
        """What the table is made of: specs, files, rows, bytes, deletes and small files, from metadata alone."""
        return self.source.inspect(progress)


def open(  # noqa: PLR0913 - each is a choice of its own, with a default
    target: str | PathLike[str] | PyIcebergTable,
    *,
    snapshot_id: int | None = None,
    ref: str | None = None,
    as_of: datetime | str | None = None,
    as_of_ms: int | None = None,
    catalog: str | Mapping[str, str] | Catalog | None = None,
    format: TableFormat | None = None,  # noqa: A002 - as it is called everywhere
    cache: bool | None = None,
) -> Table:
    """Open a table: by its folder, its metadata file, its name `catalog.namespace.table`, or as PyIceberg's Table.

    snapshot_id, ref (a branch or tag) or as_of (a datetime, or ISO 8601 text; in UTC if it has no zone; as_of_ms is
    the same in milliseconds since 1970) choose an older state. catalog is the name of a configured PyIceberg catalog,
    its properties, or PyIceberg's Catalog; target is then `namespace.table`. format chooses "iceberg", "delta" or
    "paimon" for a folder that is a table of several (only Iceberg is read yet). cache=False reads all metadata anew;
    otherwise decoded manifests are kept on local disk, unless TAMIS_CACHE=off.
    """
    name = fspath(target) if isinstance(target, PathLike) else target
    check_target(name, catalog)
    check_type("snapshot_id", snapshot_id, int, type(None), expected="a snapshot's id, a number")
    check_type("ref", ref, str, type(None), expected="the name of a branch or tag")
    check_type("format", format, str, type(None), expected="'iceberg', 'delta' or 'paimon'")
    check_type("cache", cache, bool, type(None), expected="True, False or None")
    at = At(snapshot_id, ref, moment_ms(as_of, as_of_ms))
    return Table(open_table(name, at, catalog, format=format, cache=cache))
