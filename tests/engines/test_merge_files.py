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
    after = set(done.table.plan().files["path"].to_pylist())
    assert len(before & after) == 3
    spark.sql(f"refresh table {table}")
    counted = spark.sql(f"select region, n, count(*) from {table} group by 1, 2 order by 1").collect()
    assert [tuple(row) for row in counted] == [(0, 0, 100), (1, 0, 100), (2, 1, 150), (3, 0, 100)]
