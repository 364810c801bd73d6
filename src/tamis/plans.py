"""Plans that know their table, and so can be run: of a scan, and of the table's side of a join."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypedDict

from tamis.arguments import check_session, check_storage, check_types
from tamis.checks import check_names
from tamis.explain.brief import page_part, plan_line
from tamis.formats import FormatTable
from tamis.predicate.names import backticked
from tamis.printable import printable
from tamis.sieve.join.runtime import RuntimeFilter
from tamis.sieve.plan import ScanPlan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tamis.spark.join import Join

__all__ = ["JoinOptions", "JoinPlan", "TablePlan"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TablePlan(ScanPlan):
    """A plan that knows its table, and so can be run."""

    source: FormatTable = field(kw_only=True)
    storage: Literal["session", "catalog"] = field(kw_only=True, default="session")
    """Whose settings of the table's store Spark reads with."""

    def __repr__(self) -> str:
        return f"<tamis plan of {printable(self.source.name)}: {plan_line(self)}>"

    def read(
        self,
        spark: SparkSession,
        *,
        columns: Sequence[str] | None = None,
        metadata_columns: Sequence[str] = (),
        types: Mapping[str, str] | None = None,
        storage: Literal["session", "catalog"] | None = None,
    ) -> DataFrame:
        """Exactly the rows that match, with the table's deletes applied, through Spark's own readers.

        columns are those to read, in their order; all of them if not given. metadata_columns come after them: of
        `_file`, `_pos`, `_spec_id` and `_partition`. The plan's files are fixed: what happens to the table later does
        not change what is read. types says as what columns are shown that Spark has no type for: "time" as "time",
        "bigint" (microseconds since midnight) or "string", "timestamp_ns" as "timestamp_ntz" and "timestamptz_ns" as
        "timestamp", to the microsecond, of two the earlier. storage="catalog" has Spark enter the table's store by
        the endpoint, region and credentials that its catalog or the environment gave when it was opened, for these
        files alone; "session" by the session's own. If not given, as the plan was made.
        """
        check_session(spark)
        check_storage(storage)
        check_names("columns", columns)
        check_names("metadata_columns", metadata_columns)
        check_types(types)
        from tamis.spark.read import read_plan

        return read_plan(
            self,
            self.source,
            spark,
            columns=columns,
            metadata_columns=metadata_columns,
            types=types,
            storage=storage or self.storage,
        )


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

    def read(self, *, columns: Sequence[str] | None = None, types: Mapping[str, str] | None = None) -> DataFrame:
        """The joined rows, with all columns of the table or with these and the join's; types as for a plan."""
        check_names("columns", columns)
        check_types(types)
        from tamis.spark.join import joined
        from tamis.spark.read import read_plan
        from tamis.spark.session import is_case_sensitive
        from tamis.spark.within import UNASKED, within

        if isinstance(columns, str):
            columns = [columns]
        if columns is not None:
            columns = list(dict.fromkeys([*columns, *(path[0] for path in self.on.columns)]))
        plan, spark = self.plan, self.other.sparkSession
        told = within(self.keys, plan.source, backticked, sensitive=is_case_sensitive(spark))
        options = {} if told is None else UNASKED
        rows = read_plan(
            plan, plan.source, spark, columns=columns, types=types, storage=plan.storage, options=options
        )
        return joined(rows if told is None else rows.where(told), self.other, self.on)
