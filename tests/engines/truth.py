"""What Spark says of a table's files: which rows they hold, and how many of them a condition is true of.

Conditions stand in the select list of one pass over rows that were read without a filter. So neither Iceberg's
pruning nor Spark's pushing down of filters can take part in the answer, and a hundred conditions cost one job.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Matches", "java_files", "live_rows", "matches", "session_zone"]

BATCH: Final = 80
"""Conditions in one query: Spark compiles a whole stage only up to 100 columns."""


@dataclass(frozen=True, slots=True)
class Matches:
    """Of one condition: the files that hold a live matching row, and those whose live rows all match."""

    some: frozenset[str]
    every: frozenset[str]


@contextmanager
def live_rows(spark: SparkSession, table: str) -> Iterator[DataFrame]:
    """All rows that are left after deletes, each with its file, held in memory."""
    rows = spark.table(table).selectExpr("*", "_file as path_").coalesce(2).cache()
    try:
        yield rows
    finally:
        rows.unpersist()


@contextmanager
def session_zone(spark: SparkSession, zone: str) -> Iterator[None]:
    """The session, with its clock in another zone for a while."""
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        yield
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def matches(rows: DataFrame, conditions: Sequence[str]) -> list[Matches]:
    """For each condition, where it is true."""
    found: list[Matches] = []
    for start in range(0, len(conditions), BATCH):
        batch = conditions[start : start + BATCH]
        flags = rows.selectExpr("path_", *(f"({condition}) as p{place}" for place, condition in enumerate(batch)))
        counts = [f"count_if(p{place}) as c{place}" for place in range(len(batch))]
        flags.createOrReplaceTempView("flags_")
        table = rows.sparkSession.sql(f"select path_, count(*) as n, {', '.join(counts)} from flags_ group by path_")  # noqa: S608 - made of places
        files = table.toArrow().to_pydict()
        for place in range(len(batch)):
            each = list(zip(files["path_"], files["n"], files[f"c{place}"], strict=True))
            found.append(
                Matches(
                    frozenset(path for path, _, hits in each if hits),
                    frozenset(path for path, rows_, hits in each if hits == rows_),
                )
            )
    return found


def java_files(spark: SparkSession, table: str, condition: str | None = None) -> dict[str, int] | None:
    """Iceberg's own plan: the paths that planFiles gives, each with the number of its delete files.

    None if Iceberg cannot translate the condition, in which case Spark's scan would read everything.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import IllegalArgumentException

    jvm: Any = spark._jvm
    scan = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, table).newScan()
    scan = scan.caseSensitive(False)
    if condition is not None:
        converter = jvm.org.apache.spark.sql.execution.datasources.SparkExpressionConverter
        try:
            resolved = converter.collectResolvedSparkExpression(spark._jsparkSession, table, condition)
            scan = scan.filter(converter.convertToIcebergExpression(resolved))
        except (Py4JJavaError, IllegalArgumentException):
            return None
    found: dict[str, int] = {}
    tasks = scan.planFiles()
    try:
        iterator = tasks.iterator()
        while iterator.hasNext():
            task = iterator.next()
            found[task.file().location()] = task.deletes().size()
    finally:
        tasks.close()
    return found
