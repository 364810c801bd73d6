# ruff: noqa: S608 - SQL made of the tests' own names
"""Which files a copy-on-write MERGE writes anew: those of which a row matches, and no others."""

from __future__ import annotations

import pytest

import tamis
from tests.engines.conftest import Warehouse
from tests.engines.tables import execute

pytestmark = pytest.mark.engine


def test_many_keys_in_one_of_several_files_rewrite_that_file_alone(warehouse: Warehouse) -> None:
    """Ranges of keys say nothing: every file has them all. The source has many more keys than there are files."""
    spark, table = warehouse.spark, "ice.db.merge_few"
    execute(
        spark,
        f"create table {table} (id bigint, region int, n bigint) using iceberg partitioned by (region)",
        f"insert into {table} select id, id % 4, 0 from range(400)",
    )
    before = set(tamis.open(warehouse.path("merge_few")).plan().files["path"].to_pylist())
    assert len(before) == 4
    rows = spark.range(2, 600, 4).selectExpr("id", "int(id % 4) region", "1L n")
    merge = tamis.open(warehouse.path("merge_few"), cache=False).merge(rows, on="t.id = s.id", mode="copy-on-write")
    done = merge.when_matched_update_all().when_not_matched_insert_all().run(spark)
    assert (done.rows_updated, done.rows_inserted, done.files_rewritten) == (100, 50, 1)
    assert done.files_added == 1  # new rows lie beside the changed ones of their partition
    after = set(done.table.plan().files["path"].to_pylist())
    assert len(before & after) == 3
    spark.sql(f"refresh table {table}")
    counted = spark.sql(f"select region, n, count(*) from {table} group by 1, 2 order by 1").collect()
    assert [tuple(row) for row in counted] == [(0, 0, 100), (1, 0, 100), (2, 1, 150), (3, 0, 100)]


@pytest.mark.parametrize(("name", "known", "told"), [("told", 10**6, 10**6), ("large", 0, 10**6), ("larger", 0, 0)])
def test_matches_to_which_no_clause_applies_are_no_new_rows(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, name: str, known: int, told: int
) -> None:
    """However many rows a source has, and so wherever it comes to be known which of them have matched."""
    monkeypatch.setattr("tamis.spark.merge_rows.MOST_SET", known)
    monkeypatch.setattr("tamis.spark.merge_rows.LARGE", told)
    spark, table = warehouse.spark, f"ice.db.merge_applies_{name}"
    execute(
        spark,
        f"create table {table} (id bigint, region int, n bigint) using iceberg partitioned by (region)",
        f"insert into {table} select id, id % 4, 0 from range(80)",
    )
    path = warehouse.path(f"merge_applies_{name}")
    rows = spark.range(1, 100).where("id % 4 in (1, 2)").selectExpr("id", "int(id % 4) region", "1L n")
    for condition, files, changed in (("t.region = 2", 1, 20), ("t.region = 3", 0, 0)):
        merge = tamis.open(path, cache=False).merge(rows, on="t.id = s.id", mode="copy-on-write")
        done = merge.when_matched_update({"n": "t.n + s.n"}, condition).when_not_matched_insert_all().run(spark)
        assert (done.rows_updated, done.rows_inserted) == (changed, 10 if changed else 0)
        assert done.files_rewritten == files if known else files <= done.files_rewritten <= 2
        assert done.table.snapshot_id == done.snapshot_id
    spark.sql(f"refresh table {table}")
    counted = spark.sql(f"select region, n, count(*) from {table} group by 1, 2 order by 1, 2").collect()
    assert [tuple(row) for row in counted] == [(0, 0, 20), (1, 0, 20), (1, 1, 5), (2, 1, 25), (3, 0, 20)]
