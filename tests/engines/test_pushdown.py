"""Filters that Spark pushes into files lose no row: NaN, zeros, NULL structs, dates of the old calendar.

The truth is the same condition over rows in memory, which no statistics can take part in. Iceberg's connector is not
asked: on NaN and on zeros it loses rows itself.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import tamis
from tests.engines import hostile
from tests.engines.conftest import Warehouse
from tests.engines.reading import fingerprints, make, true_fingerprints
from tests.unit.cli.tables import catalog

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.engine

FILES = 3
ROWS = 60
CONDITIONS = 10
NAN = "double('NaN')"
FLOAT_CONDITIONS = (
    "{} > 1.5",
    f"{{}} = {NAN}",
    "{} <> 1",
    "{} not in (1, 2)",
    "{} = 0",
    "{} >= 0",
    "{} in (0, 7)",
    "not ({} < 0)",
    "{} > 1.5 and upper(s) = 'A'",
)


def shown(frame: DataFrame) -> Counter[str]:
    """The rows as text, in which -0.0 is not 0.0."""
    return Counter(row[0] for row in frame.selectExpr("to_json(struct(*))").collect())


def held(spark: SparkSession, rows: pa.Table, columns: str | None = None) -> DataFrame:
    """The rows, in memory."""
    return spark.createDataFrame(rows, columns).localCheckpoint()


def arrow_written(folder: Path, *parts: pa.Table) -> tamis.Table:
    """A table whose files Arrow wrote: it leaves NaN out of a file's bounds, and takes dictionaries where it can."""
    table = catalog(folder).create_table("db.t", parts[0].schema)
    for part in parts:
        table.append(part)
    return tamis.open(table.metadata_location)


@pytest.mark.parametrize("column", ["d", "f", "st.p"])
def test_floats_that_equal_and_exceed_by_sparks_rules_are_found_in_files(
    warehouse: Warehouse, tmp_path: Path, column: str
) -> None:
    """NaN is above all numbers and no bound says so; -0.0 is 0.0 and a file's dictionary has one of them."""
    spark = warehouse.spark

    def part(values: list[float | None]) -> pa.Table:
        many = values * 20
        struct = pa.array([{"p": one} for one in many], pa.struct([("p", pa.float64())]))
        columns = {"d": many, "f": pa.array(many, pa.float32()), "s": ["a", "b"] * (len(many) // 2), "st": struct}
        return pa.table(columns)

    parts = [part([1.0, hostile.NAN]), part([-0.0, 5.0]), part([-0.0, -5.0]), part([0.0, -5.0]), part([1.0, None])]
    table = arrow_written(tmp_path, *parts)
    rows = held(spark, pa.concat_tables(parts))
    assert shown(table.plan().read(spark)) == shown(rows)
    for where in (one.format(column) for one in FLOAT_CONDITIONS):
        expected = shown(rows.where(where))
        assert shown(table.plan(where).read(spark)) == expected, where
        assert shown(table.plan().read(spark).where(where)) == expected, where


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro", "arrow"])
def test_no_pushed_filter_loses_a_row(warehouse: Warehouse, tmp_path: Path, file_format: str) -> None:
    """Conditions by chance, in a plan and on its DataFrame, over files of every format and of two Parquet writers."""
    spark, times = warehouse.spark, file_format != "orc"
    parts = [hostile.rows(seed, ROWS, times=times) for seed in range(FILES)]
    columns = hostile.SQL if times else hostile.SQL.partition(", at ")[0]
    if file_format == "arrow":
        table = arrow_written(tmp_path, *parts)
    else:
        name = make(warehouse, f"hostile_{file_format}", columns, write_format_default=file_format)
        for part in parts:
            spark.createDataFrame(part, columns).coalesce(1).writeTo(f"ice.db.{name}").append()
        table = tamis.open(warehouse.path(name))
    rows = held(spark, pa.concat_tables(parts), columns)
    assert shown(table.plan().read(spark)) == shown(rows)
    chance = random.Random(file_format)  # noqa: S311 - the same conditions on every run
    conditions = [hostile.condition(chance, times=times) for _ in range(CONDITIONS)]
    expected = true_fingerprints(rows, conditions)
    whole = table.plan().read(spark)
    planned = fingerprints([table.plan(where, time_zone="UTC").read(spark) for where in conditions])
    later = fingerprints([whole.where(where) for where in conditions])
    for where, wanted, first, second in zip(conditions, expected, planned, later, strict=True):
        assert (first, second) == (wanted, wanted), where
    assert any(wanted[0] for wanted in expected)
