"""Columns of any name are changed: dots, spaces and backticks are no paths, neither for Spark nor for PySpark."""

from __future__ import annotations

import pytest

import tamis
from tests.engines.changing import ours, rows
from tests.engines.conftest import Warehouse
from tests.engines.tables import execute

pytestmark = pytest.mark.engine


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_columns_of_any_name_are_written(warehouse: Warehouse, mode: str) -> None:
    """PySpark's mapInArrow takes a name with a dot for a path: every write of such a table failed.

    The source of a merge may have columns that are called as metadata columns of the table are.
    """
    spark, name, path = warehouse.spark, f"ice.db.odd_{mode[:4]}", warehouse.path(f"odd_{mode[:4]}")
    execute(
        spark,
        f"create table {name} (`a.b` int, `c d` string, `e``f` struct<`p.q`: int, `r s`: int>) using iceberg "
        f"partitioned by (`c d`, bucket(2, `a.b`)) tblproperties ('format-version' = '{2 + (mode[0] == 'm')}')",
    )
    made = "cast(id as int) `a.b`, 'x' || id % 2 `c d`, named_struct('p.q', cast(id as int), 'r s', 1) `e``f`"
    tamis.open(path, cache=False).append(spark.range(6).selectExpr(*made.split(", ", 2)))
    settings = {"spark": spark, "mode": mode}
    tamis.open(path, cache=False).update({"`e``f`.`p.q`": "`a.b` + 10"}, where="`a.b` = 1", **settings)
    tamis.open(path, cache=False).delete("`a.b` = 3", **settings)
    source = spark.range(4, 8).selectExpr(*made.split(", ", 2), "'x' _file", "id _pos", "id _row_id")
    (
        tamis.open(path, cache=False)
        .merge(source, "t.`a.b` = s.`a.b`", mode=mode)
        .when_matched_update({"`e``f`.`r s`": "s.`e``f`.`p.q`"})
        .when_not_matched_insert_all()
        .run()
    )
    wanted = [(0, 0, 1), (1, 11, 1), (2, 2, 1), (4, 4, 4), (5, 5, 5), (6, 6, 1), (7, 7, 1)]
    spark.sql(f"refresh table {name}")
    assert sorted((row[0], row[2][0], row[2][1]) for row in spark.table(name).collect()) == wanted
    assert ours(spark, path) == rows(spark, name)
