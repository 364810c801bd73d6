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
from typing import TYPE_CHECKING, Literal, Unpack

from tamis.arguments import (
    Context,
    bound,
    check_dataframe,
    check_executors,
    check_filters,
    check_session,
    check_storage,
    check_target,
    check_types,
    moment_ms,
)
from tamis.changing import Changeable
from tamis.checks import check_flag, check_known, check_names, check_progress, check_type
from tamis.errors import ExecutorError
from tamis.explain.brief import page_part
from tamis.formats import At, FormatTable, format_names, open_table, state_of
from tamis.formats.inspection import Inspection
from tamis.formats.listing import Held, sift_here
from tamis.plans import JoinOptions, JoinPlan, TablePlan
from tamis.predicate.build import Expression
from tamis.predicate.compare.zones import Ask, find_zone
from tamis.predicate.names import called
from tamis.predicate.schema import Schema
from tamis.predicate.type_names import type_name
from tamis.printable import printable
from tamis.sieve.join.runtime import RuntimeFilter
from tamis.sieve.sieve import Sieve

if TYPE_CHECKING:
    from deltalake import DeltaTable as DeltaLakeTable
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table as PyIcebergTable
    from pyspark.sql import DataFrame, SparkSession

    from tamis.jobs.rewrite import RewriteJob

__all__ = ["JoinOptions", "JoinPlan", "Table", "TablePlan", "open"]

DEFAULT_ZONE = "UTC"
"""The time zone of a plan that names no session."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Table(Changeable):
    """One state of a table, opened: later changes of the table do not change it.

    It equals itself alone: compare `name` and `snapshot_id`. It can be pickled. Credentials are left out: where it is
    unpickled, the environment's are used.
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
        return state_of(self.format, self.snapshot_id)

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
        alias: str | None = None,
        case_sensitive: bool | None = None,
        time_zone: str | None = None,
        strict: bool = False,
        progress: Callable[[int, int], None] | None = None,
        spark: SparkSession | None = None,
        executors: Literal["auto", "always", "never"] = "auto",
        storage: Literal["session", "catalog"] = "session",
    ) -> TablePlan:
        """Which files can hold a row that matches, and why.

        where is SQL as Spark reads it, or a condition built with tamis.col; everything without one. The table's name,
        or alias, may stand in front of a column. `now()`, `current_date()` and their like are taken once, for the
        plan and for the rows that are read by it, and its notes say how. time_zone is that of the session that will
        filter the rows: if not given, that of spark, and else UTC. case_sensitive is taken from spark likewise, else
        names are found in any case. What cannot be judged is kept and counted, or with strict=True an
        UnevaluableError. progress is told how many of how many files have come in. With spark, its rules of the time
        zone are asked for if the condition depends on them, where other plans leave some hours for what may be
        different there, and a table of very much metadata is planned on the executors: see executors.
        storage="catalog" has Spark read the table's files, those of its metadata and those of plan.read, with the
        endpoint, region and credentials that the table was opened with; "session" with the session's own.
        """
        check_executors(executors)
        check_storage(storage)
        check_progress(progress)
        check_type("alias", alias, str, type(None), expected="the name that the condition has for the table")
        sieve = self._sieve(
            where,
            runtime_filters,
            spark,
            case_sensitive=case_sensitive,
            time_zone=time_zone,
            strict=strict,
            alias=alias,
        )
        return self._sifted(sieve, progress, spark, executors, storage)

    def _sieve(
        self,
        where: str | Expression | None,
        runtime_filters: Sequence[RuntimeFilter],
        spark: SparkSession | None,
        *,
        case_sensitive: bool | None = None,
        time_zone: str | None = None,
        strict: bool = False,
        alias: str | None = None,
    ) -> Sieve:
        """What files are judged by, with what a session has to say of names and times."""
        schema = self.schema
        check_filters(runtime_filters)
        check_type("case_sensitive", case_sensitive, bool, type(None), expected="True or False")
        check_flag("strict", strict)
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
        names = called(self.name)
        context = Context(case_sensitive=case_sensitive, time_zone=zone, ask=ask, names=names, alias=alias)
        predicate = bound(where, schema, context)
        filters = tuple(keys.bind(schema, case_sensitive=case_sensitive) for keys in runtime_filters)
        named = None if time_zone is None else find_zone(time_zone, ask)
        return Sieve(predicate, self.source.specs, filters, strict=strict, zone=named)

    def _sifted(
        self,
        sieve: Sieve,
        progress: Callable[[int, int], None] | None,
        spark: SparkSession | None,
        executors: Literal["auto", "always", "never"],
        storage: Literal["session", "catalog"],
        held: Held | None = None,
    ) -> TablePlan:
        if spark is None and executors == "always":
            raise ExecutorError(
                "cannot plan on executors without a session: give spark=..., or leave executors='always' out.",
                needs="a SparkSession",
                reason="no session",
            )
        listing = self.source.list(sieve, held)
        if spark is None:
            plan = sift_here(listing, sieve, progress)
        else:
            from tamis.spark.planning import sift_with
            from tamis.spark.stores import reach_of

            plan = sift_with(reach_of(spark, self.source, storage), self.name, listing, sieve, progress, executors)
        parts = (plan.sieve, plan.outcomes, plan.stats, plan.layer_names, plan.deletes)
        return TablePlan(*parts, source=self.source, storage=storage)

    def join(  # noqa: PLR0913 - each is a choice of its own, with a default
        self,
        other: DataFrame,
        on: str | Sequence[str] | Mapping[str, str],
        *,
        where: str | Expression | None = None,
        how: str = "inner",
        null_safe: bool = False,
        columns: Sequence[str] | None = None,
        types: Mapping[str, str] | None = None,
        runtime_filters: Sequence[RuntimeFilter] = (),
        storage: Literal["session", "catalog"] = "session",
        **options: Unpack[JoinOptions],
    ) -> DataFrame:
        """The table, filtered by where, joined with a DataFrame whose keys prune the table's files.

        As Spark's `table.join(other, on, how)`: on is a column or several, which then stand in the result once, or a
        dict of the table's columns to the other's. null_safe compares by `<=>`. A join that keeps rows of the table
        without a match (left, full, anti) prunes nothing by keys. columns are those to read of the table, beside the
        join's own; types say as what some are shown, as for a plan's read. The other side is materialised before its
        keys are collected, so that it cannot change: a few thousand rows on the driver, more on the executors. Give
        it the columns that are needed, no more, or say pin=False if it is known not to change. storage is as for
        plan. plan_join does the same and tells what was pruned.
        """
        check_types(types)
        check_names("columns", columns)
        plan = self.plan_join(
            other,
            on,
            where=where,
            how=how,
            null_safe=null_safe,
            runtime_filters=runtime_filters,
            storage=storage,
            **options,
        )
        return plan.read(columns=columns, types=types)

    def plan_join(
        self,
        other: DataFrame,
        on: str | Sequence[str] | Mapping[str, str],
        *,
        where: str | Expression | None = None,
        how: str = "inner",
        null_safe: bool = False,
        runtime_filters: Sequence[RuntimeFilter] = (),
        storage: Literal["session", "catalog"] = "session",
        **options: Unpack[JoinOptions],
    ) -> JoinPlan:
        """What join does, up to the files that have to be read: explain it, then read it.

        runtime_filters are further ones, from the sides of other joins that will follow. They must be sound there.
        storage says with whose settings of the store the table is read, as for plan.
        """
        check_dataframe("other", other)
        check_type("how", how, str, expected="a kind of join, such as 'inner'")
        check_flag("null_safe", null_safe)
        check_filters(runtime_filters)
        check_storage(storage)
        check_known(options, JoinOptions.__annotations__)
        from tamis.spark.join import Join, KeyOptions, join_keys
        from tamis.spark.session import is_case_sensitive

        join, collecting = Join.of(on, how, null_safe=null_safe), KeyOptions(**options)
        spark = other.sparkSession
        sieve = self._sieve(where, runtime_filters, spark)
        held = Held()

        def planned(*keys: RuntimeFilter) -> TablePlan:
            more = tuple(one.bind(self.schema, case_sensitive=is_case_sensitive(spark)) for one in keys)
            asked = replace(sieve, runtime_filters=(*sieve.runtime_filters, *more))
            return self._sifted(asked, None, spark, "auto", storage, held)

        def saved(keys: RuntimeFilter) -> float:
            stats = planned(keys).stats
            mine = stats.runtime_filters[-1]
            # Of manifests that were pruned unread the number of files is known, and not their bytes.
            return max(
                mine.bytes / max(stats.kept_bytes + mine.bytes, 1), mine.files / max(stats.kept + mine.files, 1)
            )

        keys, note = join_keys(self.source, other, join, collecting, saved)
        plan = planned(*([] if keys is None else [keys]))
        if note is not None:
            stats = replace(plan.stats, notes=(*plan.stats.notes, note))
            plan = replace(plan, stats=stats)
        return JoinPlan(plan, other if keys is None else keys.dataframe, join, keys)

    def rewrite(
        self,
        where: str | Expression | None = None,
        *,
        case_sensitive: bool | None = None,
        time_zone: str | None = None,
        strict: bool = False,
        spark: SparkSession | None = None,
        options: Mapping[str, object] | None = None,
        **more: object,
    ) -> RewriteJob:
        """Files that are too small, too large, full of deletes or of an old spec, in groups to be written anew.

        Every file that where cannot rule out is rewritten whole; all others stay. Options are those of Iceberg's
        rewrite_data_files, as keywords (`target_file_size_bytes="512MB"`) or by any name in options. where,
        case_sensitive, time_zone, strict and spark are as in plan. Ask the job for its `plan()`.
        """
        check_type("options", options, Mapping, type(None), expected="a dict of options")
        from tamis.jobs.rewrite import RewriteJob
        from tamis.rewrite.options import parse_options

        sieve = self._sieve(where, (), spark, case_sensitive=case_sensitive, time_zone=time_zone, strict=strict)
        return RewriteJob(self.source, sieve, parse_options(options or {}, self.source.rewrite_terms, more))

    def inspect(self, progress: Callable[[int, int], None] | None = None) -> Inspection:
        """What the table is made of: specs, files, rows, bytes, deletes and small files, from metadata alone."""
        check_progress(progress)
        return self.source.inspect(progress)


def open(  # noqa: PLR0913 - each is a choice of its own, with a default
    target: str | PathLike[str] | PyIcebergTable | DeltaLakeTable,
    *,
    snapshot_id: int | None = None,
    ref: str | None = None,
    as_of: datetime | str | None = None,
    as_of_ms: int | None = None,
    version: int | None = None,
    catalog: str | Mapping[str, str] | Catalog | None = None,
    format: str | None = None,  # noqa: A002 - as it is called everywhere
    cache: bool | None = None,
) -> Table:
    """Open a table: by its folder, metadata file or name `catalog.namespace.table`, or as its library has loaded it.

    Libraries are PyIceberg (Table), deltalake (DeltaTable, at its version) and pypaimon; what they know of the store
    is used.

    snapshot_id, ref (a branch or tag) or as_of (a datetime, or ISO 8601 text; in UTC if it has no zone; as_of_ms is
    the same in milliseconds since 1970) choose an older state; of a Delta table, version or as_of do. catalog is the
    name of a configured PyIceberg catalog, its properties, or PyIceberg's Catalog; target is then `namespace.table`.
    Of Paimon tables it is a Catalog of pypaimon's, or with format="paimon" its properties, such as the warehouse.
    format chooses "iceberg", "delta" or "paimon" for a folder that is a table of several. cache=False reads all
    metadata anew; otherwise decoded manifests are kept on local disk, unless TAMIS_CACHE=off.
    """
    name = fspath(target) if isinstance(target, PathLike) else target
    check_target(name, catalog)
    check_type("snapshot_id", snapshot_id, int, type(None), expected="a snapshot's id, a number")
    check_type("version", version, int, type(None), expected="the number of a version")
    check_type("ref", ref, str, type(None), expected="the name of a branch or tag")
    check_type("format", format, str, type(None), expected=f"one of {', '.join(map(repr, format_names()))}")
    check_type("cache", cache, bool, type(None), expected="True, False or None")
    at = At(snapshot_id, ref, moment_ms(as_of, as_of_ms), version)
    return Table(open_table(name, at, catalog, format=format, cache=cache))
