"""The rows of an UPDATE: what becomes of those that match, and, where files are written anew, all the others.

Law: a row for which the condition is true gets the new values, all of them of the row as it was; any other stays what
it is. A changed row keeps its id, and loses the time of its last change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql import types as t

from tamis.formats import FormatTable
from tamis.formats.edit import Mode, Stage
from tamis.predicate.assigning import Assignment
from tamis.predicate.names import backticked
from tamis.sieve.plan import ScanPlan
from tamis.spark.assigned import check_conditions, new_value, value_types
from tamis.spark.changes import FILE, POSITION, narrowed
from tamis.spark.fitting import Fit
from tamis.spark.meaning import check_meaning
from tamis.spark.read import read_plan
from tamis.spark.session import is_case_sensitive
from tamis.spark.telling import KEPT, KIND, UPDATED, WAS_AT, WAS_IN
from tamis.spark.zones import check_zone

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Update", "check_update", "updated_rows"]

STATEMENT = "UPDATE"
_HIT = "__tamis_hit"


@dataclass(frozen=True, slots=True)
class Update:
    """An UPDATE that meets its table."""

    source: FormatTable
    plan: ScanPlan
    values: tuple[Assignment, ...]
    alias: str
    """What the values may call the table."""
    stage: Stage
    lineage: tuple[str, ...]
    """Metadata columns that a row keeps, the time of its last change behind its id."""


def check_update(spark: SparkSession, update: Update) -> None:
    """BindError for a condition or a value that Spark does not take, or that is not deterministic. No row is read."""
    nothing = narrowed(update.plan, only=frozenset(), certain=None)
    rows = read_plan(nothing, update.source, spark).alias(update.alias)
    check_conditions(spark, rows, [update.plan.sieve.predicate.sql], STATEMENT)
    value_types(rows, update.values, STATEMENT)


def updated_rows(
    spark: SparkSession, update: Update, mode: Mode, only: frozenset[str] | None
) -> tuple[DataFrame, tuple[str, ...]]:
    """The rows to write, as write_changes takes them, and the columns to tell.

    only are the files to take of those of which some rows may match; None is all. Of those of which every row does,
    no condition is asked, and no deletes are to be written: such files are replaced.
    """
    plan, source = update.plan, update.source
    check_zone(plan.sieve.predicate, spark)
    check_meaning(plan.sieve.predicate, source.schema, spark)
    marks = mode == "merge-on-read"
    frames = []
    some = narrowed(plan, only=only, unfiltered=not marks)
    if any(outcome.kept.any() for outcome in some.outcomes):
        places = [FILE, POSITION] if marks else []
        rows = read_plan(some, source, spark, metadata_columns=[*places, *update.lineage])
        condition = plan.sieve.predicate.sql
        hit = f.lit(True) if marks else f.expr(f"coalesce(({condition}\n), false)")  # noqa: FBT003 - a literal
        frames.append(_rows(update, rows, hit, places=marks))
    whole = narrowed(plan, certain=True, unfiltered=True)
    if any(outcome.kept.any() for outcome in whole.outcomes):
        rows = read_plan(whole, source, spark, metadata_columns=[*update.lineage])
        frames.append(_rows(update, rows, f.lit(True), places=False, as_if=marks))  # noqa: FBT003 - a literal
    first, *rest = frames
    for frame in rest:
        first = first.union(frame)
    return first, (KIND, WAS_IN, WAS_AT) if marks else (KIND,)


def _rows(update: Update, rows: DataFrame, hit: Column, *, places: bool, as_if: bool = False) -> DataFrame:
    """Rows of files that are read alike, with what is told of them."""
    spark = rows.sparkSession
    types = {field.name: field.dataType for field in rows.schema.fields}
    rows = rows.withColumn(_HIT, hit).alias(update.alias)
    values = value_types(rows, update.values, STATEMENT)
    fit = Fit.of(update.stage, is_case_sensitive(spark), assigning=True)
    is_hit = f.col(_HIT)
    columns = []
    for one in update.stage.fields:
        old = f.col(backticked(one.name))
        mine = [value for value in values if value[0].path[0] == one.name]
        if one.name in update.lineage:
            changed = one.name == update.lineage[-1]
            column = f.when(~is_hit, old) if changed else old
        else:
            column = fit.fitted(old, types[one.name], one, one.name)
            if mine:
                new = new_value(fit, one, (old, types[one.name]), mine)
                column = f.when(is_hit, new).otherwise(column)
        columns.append(column.alias(one.name, metadata={}))
    told = [f.when(is_hit, UPDATED).otherwise(KEPT).cast(t.ByteType()).alias(KIND)]
    if places:
        told += [f.col(FILE).alias(WAS_IN), f.col(POSITION).alias(WAS_AT)]
    elif as_if:
        told += [f.lit(None).cast("string").alias(WAS_IN), f.lit(None).cast("bigint").alias(WAS_AT)]
    return rows.select(*columns, *told)
