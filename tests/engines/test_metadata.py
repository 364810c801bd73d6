# ruff: noqa: S608 - SQL made of the tests' own names
"""Snapshots, branches, tags, files and deletes are what Spark and Iceberg's own planner say they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

import tamis
from tests.engines.conftest import Warehouse
from tests.engines.reading import delete_rows
from tests.engines.tables import create, execute
from tests.engines.truth import java_files, live_rows, matches

pytestmark = pytest.mark.engine


@pytest.mark.parametrize("version", [1, 2, 3])
def test_without_where_the_plan_is_the_files_table(
    warehouse: Warehouse, evolved: Callable[[int], str], version: int
) -> None:
    name = evolved(version)
    files = warehouse.spark.table(f"ice.db.{name}.files").where("content = 0")
    wanted = files.selectExpr("file_path", "file_size_in_bytes", "record_count", "spec_id").toArrow().to_pydict()
    found = tamis.open(warehouse.path(name)).plan().files.to_pydict()
    columns = [found[name] for name in ("path", "size", "rows", "spec_id")]
    assert sorted(zip(*columns, strict=True)) == sorted(zip(*wanted.values(), strict=True))
    assert len(set(found["spec_id"])) >= 9


@pytest.mark.parametrize("version", [1, 2, 3])
def test_each_file_has_the_deletes_that_iceberg_would_apply(
    warehouse: Warehouse, evolved: Callable[[int], str], version: int
) -> None:
    """Position delete files in version 2, deletion vectors in version 3."""
    name = evolved(version)
    found = tamis.open(warehouse.path(name)).plan().files.to_pydict()
    assert dict(zip(found["path"], found["deletes"], strict=True)) == java_files(warehouse.spark, f"ice.db.{name}")
    deletes = warehouse.spark.table(f"ice.db.{name}.delete_files").count()
    assert (sum(found["deletes"]) > 0) == (deletes > 0) == (version > 1)


def test_equality_deletes_reach_older_files_of_their_partition_or_of_the_whole_table(warehouse: Warehouse) -> None:
    """As streaming writers leave them: planned and counted, where others refuse the table."""
    spark, table = warehouse.spark, "ice.db.equality"
    create(spark, table, 2, "id int, region string")
    one_task = f"insert into {table} select /*+ coalesce(1) */ * from values"
    execute(spark, f"{one_task} (1, 'eu'), (2, 'us')")
    delete_rows(warehouse, "equality", [{"id": 2}])
    execute(spark, f"alter table {table} add partition field region")
    execute(spark, f"{one_task} (2, 'eu'), (3, 'us'), (4, 'eu'), (5, 'us')")
    delete_rows(warehouse, "equality", [{"id": 3}, {"id": 4}], like="region=us")
    execute(spark, f"{one_task} (3, 'us')")
    found = tamis.open(warehouse.path("equality")).plan().files.to_pydict()
    assert dict(zip(found["path"], found["deletes"], strict=True)) == java_files(spark, table)
    assert Counter(zip(found["partition"], found["deletes"], strict=True)) == {
        (None, 1): 1,
        ("region=eu", 0): 1,
        ("region=us", 0): 1,
        ("region=us", 1): 1,
    }
    where = ["id = 2", "id = 3", "id = 4", "id in (1, 2) and region = 'eu'"]
    with live_rows(spark, table) as rows:
        for condition, truth in zip(where, matches(rows, where), strict=True):
            assert truth.some <= set(tamis.open(warehouse.path("equality")).plan(condition).files["path"].to_pylist())


def test_snapshots_branches_tags_and_times_are_those_of_spark(warehouse: Warehouse) -> None:
    """Among them a state that was rolled back, which the log of times knows and the line of parents does not."""
    spark, table, folder = warehouse.spark, "ice.db.travel", warehouse.path("travel")
    create(spark, table, 2, "id int, cat string")
    execute(
        spark,
        f"insert into {table} values (1, 'a')",
        f"insert into {table} values (2, 'b')",
        f"alter table {table} create tag two",
        f"alter table {table} add partition field cat",
        f"insert into {table} values (3, 'c')",
        f"alter table {table} create branch side",
        f"insert into {table}.branch_side values (30, 'side')",
        f"alter table {table} rename column cat to region",
        f"insert into {table} values (4, 'd')",
    )
    snapshots = [
        row[0] for row in spark.sql(f"select snapshot_id from {table}.snapshots order by committed_at").collect()
    ]
    execute(spark, f"call ice.system.rollback_to_snapshot('db.travel', {snapshots[1]})")
    execute(spark, f"insert into {table} values (5, 'e')")
    history = spark.sql(f"select unix_millis(made_current_at), snapshot_id from {table}.history").collect()
    assert len(history) == 6

    def files(clause: str) -> list[str]:
        return sorted(row[0] for row in spark.sql(f"select distinct _file from {table} {clause}").collect())

    def planned(table: tamis.Table, where: str | None = None) -> list[str]:
        return sorted(table.plan(where).files["path"].to_pylist())

    for snapshot in snapshots:
        assert planned(tamis.open(folder, snapshot_id=snapshot)) == files(f"version as of {snapshot}")
    for name in ("two", "side", "main"):
        assert planned(tamis.open(folder, ref=name)) == files(f"version as of '{name}'")
    for millis, snapshot in history:
        for at in (millis, millis + 1):
            opened = tamis.open(folder, as_of_ms=at)
            assert opened.snapshot_id == snapshot
            assert planned(opened) == files(f"timestamp as of timestamp_millis({at})")
    # An old state is read with the column names of its time, a branch with those of today.
    assert len(planned(tamis.open(folder, ref="two"), "cat = 'b'")) == 1
    assert len(planned(tamis.open(folder, ref="side"), "region = 'side'")) == 1
    assert planned(tamis.open(folder)) == files("")


def test_a_table_without_data_has_an_empty_plan(warehouse: Warehouse) -> None:
    create(warehouse.spark, "ice.db.empty", 2, "id int")
    table = tamis.open(warehouse.path("empty"))
    assert table.snapshot_id is None
    assert table.plan("id > 5").files.num_rows == 0
    assert table.plan().stats.files == 0
