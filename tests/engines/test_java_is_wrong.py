# ruff: noqa: S608 - SQL made of the tests' own names
"""Where Iceberg's own planner loses a row, or takes one too many: tamis does not follow it.

Each test first shows the fault in the version of Iceberg that the tests pin, so that the day it is mended is noticed.
"""

from __future__ import annotations

import pytest

import tamis
from tests.engines.conftest import Warehouse
from tests.engines.tables import execute

pytestmark = pytest.mark.engine


def make(warehouse: Warehouse, name: str, column: str, partition: str, *rows: str) -> tamis.Table:
    """A table of one column and a number for each row; one commit, or without partitions one for each row."""
    table = f"ice.db.{name}"
    layout = f"partitioned by ({partition})" if partition else ""
    execute(warehouse.spark, f"create table {table} ({column}, n int) using iceberg {layout}")
    values = [f"({row}, {n})" for n, row in enumerate(rows)]
    for commit in [", ".join(values)] if partition else values:
        execute(warehouse.spark, f"insert into {table} values {commit}")
    return tamis.open(warehouse.path(name))


def verdicts(table: tamis.Table, where: str) -> dict[str, str]:
    """The verdict on each partition: a file that is not kept has the verdict none, its manifest read or not."""
    plan = table.plan(where)
    kept = plan.files.to_pydict()
    assert plan.stats.files == plan.stats.kept + sum(sum(spec.dropped.values()) for spec in plan.stats.specs)
    everything = table.plan().files["partition"].to_pylist()
    return dict.fromkeys(everything, "none") | dict(zip(kept["partition"], kept["verdict"], strict=True))


def numbers(warehouse: Warehouse, name: str, where: str) -> set[int]:
    """The rows that Spark finds, by their number."""
    return {row.n for row in warehouse.spark.table(f"ice.db.{name}").where(where).select("n").collect()}


def test_a_null_partition_is_never_taken_whole_by_a_comparison(warehouse: Warehouse) -> None:
    """Java orders NULL before all values: DELETE WHERE x < 5 drops the NULL partition, and its rows are gone."""
    table = make(warehouse, "null_partition", "x int", "x", "null", "1", "7")
    assert verdicts(table, "x < 5") == {"x=null": "none", "x=1": "all", "x=7": "none"}
    assert verdicts(table, "x <= 5 or x > 6") == {"x=null": "none", "x=1": "all", "x=7": "all"}
    assert verdicts(table, "not x > 6") == {"x=null": "none", "x=1": "all", "x=7": "none"}
    assert numbers(warehouse, "null_partition", "x < 5") == {1}
    execute(warehouse.spark, "delete from ice.db.null_partition where x < 5")
    assert numbers(warehouse, "null_partition", "true") == {2}  # row 0, whose x is NULL, should still be there


def test_a_prefix_with_an_emoji_keeps_the_file_that_holds_it(warehouse: Warehouse) -> None:
    """Java takes the prefix '😀a' for three characters long, by UTF-16, and misses the partition '😀ab'."""
    table = make(warehouse, "emoji", "s string", "truncate(3, s)", "'😀abc'", "'plain'")
    assert numbers(warehouse, "emoji", "s like '😀a%'") == set()  # row 0 should be found
    assert verdicts(table, "s like '😀a%'") == {"s_trunc=😀ab": "all", "s_trunc=pla": "none"}
    assert verdicts(table, "s like '😀abcd%'") == {"s_trunc=😀ab": "none", "s_trunc=pla": "none"}


def test_the_least_integer_is_found_below_zero(warehouse: Warehouse) -> None:
    """truncate[10] of -2147483648 wraps around to 2147483646, which Java then takes for a large number."""
    table = make(warehouse, "least", "x int", "truncate(10, x)", "-2147483648", "-5", "5")
    assert numbers(warehouse, "least", "x < 0") == {1}  # and row 0 should be found
    found = table.plan("x < 0").files
    assert found.num_rows == 2
    assert not any("x_trunc=0" in partition for partition in found["partition"].to_pylist())
    assert table.plan("x = -2147483648").files.num_rows == 1


def test_nan_is_above_every_number_as_spark_has_it(warehouse: Warehouse) -> None:
    """To Spark NaN is the greatest number; Java drops files that hold nothing but NaN from every comparison."""
    table = make(warehouse, "nan", "f double", "", "double('NaN')", "1", "2")
    assert numbers(warehouse, "nan", "f > 1.5") == {2}  # and row 0 should be found
    assert numbers(warehouse, "nan", "f + 0 > 1.5") == {0, 2}
    assert table.plan("f > 1.5").files.num_rows == 2
    assert table.plan("f < 1.5").files.num_rows == 1
    assert table.plan("not f <= 1.5").files.num_rows == 2
