"""The rows of a plan's files that a change takes away, and those that it leaves.

The plan says of each file whether every row matches, or some may. Law: a row is taken if the condition is true of it,
and left if it is false or NULL; rows that are deleted already are neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as f

from tamis.errors import UnreadableFileError
from tamis.formats import FormatTable
from tamis.formats.errors import shown
from tamis.predicate.arrays import Int64s, Mask
from tamis.sieve.outcome import Outcome
from tamis.sieve.plan import ScanPlan
from tamis.spark.assigned import check_conditions
from tamis.spark.meaning import check_meaning
from tamis.spark.read import read_plan
from tamis.spark.zones import check_zone

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "FILE",
    "POSITION",
    "check_condition",
    "named",
    "narrowed",
    "paths_of",
    "places_in",
    "rows_left",
    "rows_taken",
    "touched",
]

FILE: Final = "_file"
POSITION: Final = "_pos"
"""Where a row lies, as the table's metadata columns call it."""


def check_condition(spark: SparkSession, source: FormatTable, plan: ScanPlan, statement: str) -> None:
    """BindError for a condition that Spark does not take, or that is not deterministic. No row is read."""
    nothing = narrowed(plan, only=frozenset(), certain=None)
    check_conditions(spark, read_plan(nothing, source, spark), [plan.sieve.predicate.sql], statement)


def rows_taken(spark: SparkSession, source: FormatTable, plan: ScanPlan, but: frozenset[str]) -> DataFrame:
    """Where the rows lie that match, of files of which some may: their paths and positions. but are left out."""
    chosen = narrowed(plan, but=but)
    return read_plan(chosen, source, spark, columns=[], metadata_columns=[FILE, POSITION])


def rows_left(
    spark: SparkSession,
    source: FormatTable,
    plan: ScanPlan,
    *,
    only: frozenset[str] | None = None,
    places: bool = False,
    lineage: Sequence[str] = (),
) -> DataFrame:
    """The rows that do not match, of files of which some may, with lineage; with places, where they lie instead.

    only are the files to take; None is all.
    """
    predicate = plan.sieve.predicate
    check_zone(predicate, spark)
    check_meaning(predicate, source.schema, spark)
    chosen = narrowed(plan, only=only, unfiltered=True)
    asked = [FILE, POSITION] if places else [*lineage]
    rows = read_plan(chosen, source, spark, metadata_columns=asked)
    # Not true is false or NULL. No reader of files is handed a filter of that shape: each row is looked at.
    rows = rows.filter(f.expr(f"NOT coalesce(({predicate.sql}), false)"))
    return rows.select(FILE, POSITION) if places else rows


def touched(spark: SparkSession, source: FormatTable, plan: ScanPlan) -> frozenset[str]:
    """Of the files of which some rows may match, those of which some do: one job, which reads what it compares."""
    called: dict[str, str] = {}
    rows = read_plan(narrowed(plan), source, spark, columns=[], metadata_columns=[FILE], called=called)
    return paths_of((row[0] for row in rows.distinct().collect()), called)


def paths_of(files: Iterable[str], called: Mapping[str, str]) -> frozenset[str]:
    """The paths of files as Spark calls them. UnreadableFileError for one that nobody asked for."""
    found = list(files)
    for file in found:
        if file not in called:
            raise UnreadableFileError(
                f"Spark gave a row of {shown(file)}, which is none of the files that it was asked for. Nothing was "
                "committed.",
                path=shown(file),
                reason="a file that was not asked for",
            )
    return frozenset(called[file] for file in found)


def places_in(spark: SparkSession, source: FormatTable, plan: ScanPlan, paths: frozenset[str]) -> dict[str, Int64s]:
    """The places of the live rows of these files, ascending, by file."""
    chosen = narrowed(plan, only=paths, certain=None, unfiltered=True)
    found = read_plan(chosen, source, spark, columns=[], metadata_columns=[FILE, POSITION]).toArrow()
    files = found[FILE].combine_chunks().cast(pa.string()).dictionary_encode()
    codes = np.asarray(files.indices.to_numpy(zero_copy_only=False), np.int64)
    numbers = np.asarray(found[POSITION].to_numpy(), np.int64)
    return {path: np.sort(numbers[codes == code]) for code, path in enumerate(files.dictionary.to_pylist())}


def narrowed(
    plan: ScanPlan,
    *,
    but: frozenset[str] = frozenset(),
    only: frozenset[str] | None = None,
    certain: bool | None = False,
    unfiltered: bool = False,
) -> ScanPlan:
    """The plan of some of its files; with unfiltered, all of their rows are read.

    certain chooses those of which every row matches, or, by default, those of which some rows may; None takes both.
    """

    def narrow(outcome: Outcome) -> Outcome:
        kept = outcome.kept
        if certain is not None:
            kept = kept & (outcome.certain if certain else ~outcome.certain)
        if only is not None:
            kept = kept & named(outcome, only)
        if but:
            kept = kept & ~named(outcome, but)
        return replace(outcome, kept=kept, holds=kept if unfiltered else np.zeros(len(kept), np.bool_))

    return replace(plan, outcomes=tuple(map(narrow, plan.outcomes)))


def named(outcome: Outcome, paths: frozenset[str]) -> Mask:
    """Which files of a batch have one of these paths."""
    found = pc.is_in(outcome.batch.path.cast(pa.string()), value_set=pa.array(sorted(paths), pa.string()))
    return np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)
