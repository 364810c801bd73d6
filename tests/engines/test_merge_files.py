# ruff: noqa: S608 - SQL made of the tests' own names
"""Which files a copy-on-write MERGE writes anew: those of which a row matches, and no others."""

from __future__ import annotations

import re
from typing import Any

import pytest

import tamis
from tamis.spark.session import with_settings
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


def test_files_whose_names_do_not_tell_them_apart_are_known_by_their_addresses(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Spark calls a file becomes its path once the rows have met, and by no other file's name."""
    monkeypatch.setattr("tamis.spark.relation._PLAIN_NAME", re.compile("(?!)"))
    spark, table = warehouse.spark, "ice.db.merge_addresses"
    execute(
        spark,
        f"create table {table} (id bigint, region string) using iceberg partitioned by (region)",
        f"insert into {table} select id, 'region ' || id % 4 from range(40)",
    )
    path = warehouse.path("merge_addresses")
    rows = spark.range(2, 40, 8).selectExpr("id", "'region 2' region")
    merge = tamis.open(path, cache=False).merge(rows, on="t.id = s.id", mode="copy-on-write")
    done = merge.when_matched_delete().run(spark)
    assert (done.rows_deleted, done.files_rewritten) == (5, 1)
    left = tamis.open(path, cache=False).update({"id": "id + 100"}, where="id % 4 = 3", spark=spark)
    assert (left.rows, left.files_rewritten) == (10, 1)
    spark.sql(f"refresh table {table}")
    counted = spark.sql(f"select region, count(*), max(id) from {table} group by 1 order by 1").collect()
    assert [tuple(row) for row in counted] == [
        ("region 0", 10, 36),
        ("region 1", 10, 37),
        ("region 2", 5, 38),
        ("region 3", 10, 139),
    ]


def test_keys_that_are_beyond_what_older_files_hold_match_what_they_equal(warehouse: Warehouse) -> None:
    """The ends of the keys are asked of the files' own statistics, of which some are of a narrower type."""
    spark, table = warehouse.spark, "ice.db.merge_widened"
    execute(
        spark,
        f"create table {table} (id int, day date) using iceberg",
        f"insert into {table} select int(id), date_from_unix_date(int(id)) from range(-50, 50)",
        f"alter table {table} alter column id type bigint",
        f"insert into {table} select id + 5000000000, date_from_unix_date(int(id)) from range(0, 10)",
    )
    rows = spark.sql("select explode(array(-9223372036854775808, -50, 7, 5000000003)) as id")
    merge = tamis.open(warehouse.path("merge_widened"), cache=False).merge(rows, on="t.id = s.id")
    assert merge.when_matched_delete().run(spark).rows_deleted == 3
    days = spark.sql("select explode(array(date'-0044-03-15', date'1969-12-01', date'9999-12-31')) as day")
    merge = tamis.open(warehouse.path("merge_widened"), cache=False).merge(days, on="t.day = s.day")
    assert merge.when_matched_delete().run(spark).rows_deleted == 1


def test_only_rows_that_are_known_to_be_short_go_to_python_uncounted(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else ten thousand rows with long values would come at once, and be more than a task can hold."""
    given: list[bool] = []

    def noted(spark: Any, settings: dict[str, str]) -> Any:  # noqa: ANN401
        given.append("spark.sql.execution.arrow.maxBytesPerBatch" in settings)
        return with_settings(spark, settings)

    monkeypatch.setattr("tamis.spark.write.with_settings", noted)
    spark, table = warehouse.spark, "ice.db.merge_short"
    execute(
        spark,
        f"create table {table} (id bigint, s string) using iceberg",
        f"insert into {table} select id, 'a' from range(1000)",
    )
    path = warehouse.path("merge_short")

    def merged(value: str) -> None:
        rows = spark.sql(f"select 5L as id, {value} as s")
        merge = tamis.open(path, cache=False).merge(rows, on="t.id = s.id")
        merge.when_matched_update_all().run(spark)

    merged("'b'")
    tamis.open(path, cache=False).update({"id": "id + 1"}, where="id > 900", spark=spark)
    assert given == [True, True]
    tamis.open(path, cache=False).update({"s": "repeat(s, 5)"}, where="id > 900", spark=spark)
    merged("repeat('c', 3000)")
    assert given[2:] == [False, False]
    spark.conf.set("spark.sql.execution.arrow.maxBytesPerBatch", "8MB")
    try:
        tamis.open(path, cache=False).update({"id": "id + 1"}, where="id > 950", spark=spark)
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxBytesPerBatch")
    assert given[4:] == [False]
