"""Conditions on the clock: files are pruned, and rows filtered, by the moment of planning."""

from __future__ import annotations

import time

import pytest

import tamis
from tests.engines.conftest import Warehouse
from tests.engines.tables import execute

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def clock(warehouse: Warehouse) -> str:
    """Three files: of ten days ago, of just now, and of tomorrow."""
    execute(
        warehouse.spark,
        "create table ice.db.clock (id int, ts timestamp, d date, st struct<p: int>) using iceberg",
        *(
            f"insert into ice.db.clock select {id_}, now() + interval {days} days, "
            f"date(now() + interval {days} days), named_struct('p', {id_})"
            for id_, days in ((1, -10), (2, 0), (3, 1))
        ),
    )
    return warehouse.path("clock")


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ("ts <= now()", [1, 2]),
        ("ts > current_timestamp", [3]),
        ("clock.ts >= now() - INTERVAL 7 DAYS AND clock.ts <= now()", [2]),
        ("d < date_sub(current_date(), 7)", [1]),
        ("clock.d > add_months(curdate(), -1) AND clock.st.p > 1", [2, 3]),
        ("ts >= date_trunc('day', now()) AND ts < now()::date + 1 AND id = 2", [2]),
    ],
)
def test_clock_prunes_and_reads_what_spark_reads(
    warehouse: Warehouse, clock: str, where: str, ids: list[int]
) -> None:
    table = tamis.open(clock)
    plan = table.plan(where, spark=warehouse.spark)
    assert sorted(row.id for row in plan.read(warehouse.spark).collect()) == ids
    theirs = warehouse.spark.table("ice.db.clock").where(where)
    assert sorted(row.id for row in theirs.collect()) == ids
    assert plan.files.num_rows == len(ids)
    assert any("is taken as" in note for note in plan.stats.notes)
    assert "is taken as" in plan.explain()


def test_rows_are_those_of_the_moment_of_planning(warehouse: Warehouse, clock: str) -> None:
    """A row that is due after the plan is made, and before it is read: its file was dropped, and so is the row."""
    execute(
        warehouse.spark,
        "insert into ice.db.clock select /*+ coalesce(1) */ * from values "
        "(8, now() - interval 1 hour, current_date(), named_struct('p', 8)), "
        "(9, now() + interval 15 seconds, current_date(), named_struct('p', 9))",
    )
    due = warehouse.spark.table("ice.db.clock").where("id = 9").first()
    assert due is not None
    plan = tamis.open(clock).plan("v.ts <= now() AND v.id > 7", alias="v", spark=warehouse.spark)
    late = time.time() > due.ts.timestamp()
    while time.time() <= due.ts.timestamp():
        time.sleep(0.2)
    expected = [8, 9] if late else [8]  # on a machine that took longer than that to plan
    assert sorted(row.id for row in plan.read(warehouse.spark).collect()) == expected
