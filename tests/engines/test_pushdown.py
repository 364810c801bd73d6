# ruff: noqa: S608 - SQL made of the tests' own names
"""Filters that Spark pushes into files lose no row: NaN, zeros, NULL structs, dates of the old calendar.

The truth is the same condition over rows in memory, which no statistics can take part in. Iceberg's connector is not
asked: on NaN and on zeros it loses rows itself.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import tamis
from tests.engines import hostile
from tests.engines.conftest import Warehouse
from tests.engines.reading import fingerprints, make, true_fingerprints
from tests.making.cli_tables import catalog

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


def pushed(frame: DataFrame) -> list[str]:
    """What the readers of files are asked to filter by, relation by relation."""
    plan = frame._jdf.queryExecution().executedPlan().toString()
    return re.findall(r"PushedFilters: \[(.*?)\], ReadSchema", plan)


def test_floats_that_hold_neither_nan_nor_zero_are_pushed_down(warehouse: Warehouse) -> None:
    """Statistics prove it of one file and not of the other; the rest of a struct is pushed down in both."""
    struct = "id int, d double, st struct<p: double, q: int>"
    row = "cast(id as int), id {0}, named_struct('p', id {0}, 'q', cast(id as int))"
    inserts = [f"insert into {{t}} select {row.format(one)} from range(0, 9, 1, 1)" for one in ("+ 1D", "- 4D")]
    table = tamis.open(warehouse.path(make(warehouse, "some_ordinary", struct, *inserts)))
    for column in ("d", "st.p"):
        both = pushed(table.plan(f"{column} > 1.5 and id > 2").read(warehouse.spark))
        assert sorted(f"GreaterThan({column},1.5)" in one for one in both) == [False, True], both
        assert all("GreaterThan(id,2)" in one for one in both), both
    (beside,) = pushed(table.plan("st.q > 2").read(warehouse.spark))
    assert "GreaterThan(st.q,2)" in beside


def test_orc_columns_that_the_condition_names_are_pushed_down(warehouse: Warehouse) -> None:
    """But not where a list may have a NULL in it, on which Spark's ORC reader fails."""
    columns = "id int, t date, s string"
    rows = "select cast(id as int), date_add(date'2020-01-01', cast(id as int)), 'a' from range(0, 9, 1, 1)"
    name = make(warehouse, "some_orc", columns, f"insert into {{t}} {rows}", write_format_default="orc")
    plan = tamis.open(warehouse.path(name)).plan
    for where, found in {
        "id > 3 and t > date'2020-01-02'": ("GreaterThan(id,3)", "GreaterThan(t,2020-01-02)"),
        "id in (3, 4, 5)": ("In(id, [3,4,5])",),
        "id in (3, null, 5)": (),
    }.items():
        (told,) = pushed(plan(where).read(warehouse.spark))
        assert all(one in told for one in found), told
        assert bool(found) or not told


@pytest.mark.parametrize("mode", ["LEGACY", "EXCEPTION"])
def test_old_dates_and_times_are_what_was_written_whatever_the_session_says(warehouse: Warehouse, mode: str) -> None:
    """Iceberg's files know one calendar. Spark goes by settings, where a file says nothing of old Sparks."""
    values = "(date'1582-10-04', timestamp'1582-10-04 01:02:03', timestamp_ntz'0001-01-01 00:00:00')"
    spark = warehouse.spark
    kinds = ("parquet.datetimeRebaseModeInRead", "parquet.int96RebaseModeInRead", "avro.datetimeRebaseModeInRead")
    tables = []
    for kind in ("parquet", "avro"):
        name = f"old_{kind}_{mode.lower()}"
        insert = f"insert into {{t}} values {values}"
        make(warehouse, name, "t date, at timestamp, naive timestamp_ntz", insert, write_format_default=kind)
        tables.append(tamis.open(warehouse.path(name)))
    for kind in kinds:
        spark.conf.set(f"spark.sql.{kind}", mode)
    try:
        for table in tables:
            for where in (None, "t = date'1582-10-04'", "at <= timestamp'1582-10-04 01:02:03'"):
                frame = table.plan(where, time_zone="UTC").read(spark)
                rows = frame.selectExpr("cast(t as string)", "cast(at as string)", "cast(naive as string)").collect()
                assert [tuple(row) for row in rows] == [("1582-10-04", "1582-10-04 01:02:03", "0001-01-01 00:00:00")]
    finally:
        for kind in kinds:
            spark.conf.unset(f"spark.sql.{kind}")


def test_orc_dates_of_the_old_calendar_are_what_was_written(warehouse: Warehouse) -> None:
    """Two days of most centuries are one to Spark's reader: the files of such a row are read with Arrow."""
    days = "date_from_unix_date(cast(id as int))"
    insert = f"insert into {{t}} select {days}, array({days}) from range(-800000, -140000, 97)"
    name = make(warehouse, "old_orc", "t date, li array<date>", insert, write_format_default="orc")
    spark, table = warehouse.spark, tamis.open(warehouse.path(name))
    numbers = ("unix_date(t)", "unix_date(li[0])")
    expected = Counter(map(tuple, spark.table(f"ice.db.{name}").selectExpr(*numbers).collect()))
    assert Counter(map(tuple, table.plan().read(spark).selectExpr(*numbers).collect())) == expected
    both = make(
        warehouse, "both_orc", "t date", "insert into {t} values (date'1500-03-10')", write_format_default="orc"
    )
    (row,) = tamis.open(warehouse.path(both)).plan().read(spark).selectExpr("unix_date(t)").collect()
    assert row == spark.sql("select unix_date(date'1500-03-10')").first()
