# ruff: noqa: S608 - SQL made of the tests' own names
"""Merges into evolved tables, beside Spark's own: the same rows, and each reads what the other has written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tamis
from tamis.errors import BindError, CommitConflict, CommitRefused, ExecutorError, MergeMatchError, UnwritableRowsError
from tamis.formats.edit import Committed, Edit
from tamis.formats.iceberg.commit import WritableIceberg
from tests.engines.appending import entries
from tests.engines.changing import KINDS, LINEAGE, SOAK, check_manifests, lineage, ours, rows, twins
from tests.engines.conftest import Warehouse
from tests.engines.tables import execute

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tamis.predicate.clauses import Clause

pytestmark = pytest.mark.engine

SOURCE = (
    "cast(id as int) id",
    "element_at(array('eu', 'zz', null), cast(1 + id % 3 as int)) region",
    "timestamp_micros(id * 30000000001) ts",
    "case when id % 4 > 0 then id / 2 end x",
    "cast(id as decimal(9, 2)) amount",
    "named_struct('city', 's' || id % 2, 'n', cast(-id as int)) info",
    "array('s') tags",
    "id % 5 op",
)


NESTED = ("info.city = s.region", "info = named_struct('city', s.region, 'n', t.info.n)")
"""With Delta's extension in the session, no MERGE into any table may assign a part of a struct."""


def source(spark: SparkSession, where: str) -> DataFrame:
    """Rows that match some of the table's ids, and some that are new."""
    return spark.range(0, 230, 1, 2).where(where).selectExpr(*SOURCE)


def merged(table: tamis.Table, frame: DataFrame, on: str, clauses: Sequence[Clause], **options: Any) -> tamis.Merged:  # noqa: ANN401
    """The merge by tamis."""
    builder = table.merge(frame, on, **options)
    for one in clauses:
        values = {value.name: value.sql for value in one.values}
        match one.rows, one.action, one.every:
            case "matched", "update", True:
                builder = builder.when_matched_update_all(one.condition)
            case "matched", "update", _:
                builder = builder.when_matched_update(values, one.condition)
            case "matched", "delete", _:
                builder = builder.when_matched_delete(one.condition)
            case "not matched", _, True:
                builder = builder.when_not_matched_insert_all(one.condition)
            case "not matched", _, _:
                builder = builder.when_not_matched_insert(values, one.condition)
            case _, "update", _:
                builder = builder.when_not_matched_by_source_update(values, one.condition)
            case _:
                builder = builder.when_not_matched_by_source_delete(one.condition)
    return builder.run()


def clause(rows_: Any, action: Any, values: dict[str, str] | None = None, condition: str | None = None) -> Clause:  # noqa: ANN401
    """A clause; without values it is of all columns."""
    from tamis.predicate.assigning import Assignment
    from tamis.predicate.clauses import Clause

    made = tuple(Assignment(tuple(name.split(".")), sql) for name, sql in (values or {}).items())
    return Clause(rows_, action, made, every=action != "delete" and not made, condition=condition)


def by_spark(spark: SparkSession, table: str, frame: DataFrame, on: str, clauses: Sequence[Clause]) -> None:
    """The same by the connector."""
    frame.createOrReplaceTempView("merge_source")
    spark.sql(f"refresh table {table}")
    said = " ".join(map(str, clauses)).replace(*NESTED)
    execute(spark, f"merge into {table} t using merge_source s on {on} {said}")


ROUNDS = (
    (
        "id % 3 = 0 and id > 20",
        "t.id = s.id",
        (
            clause("matched", "delete", condition="s.op = 1"),
            clause("matched", "update", {"x": "t.x + s.x", "info.city": "s.region"}, "t.region = 'eu' or s.op = 2"),
            clause("matched", "update"),
            clause("not matched", "insert", condition="s.op > 0"),
        ),
    ),
    (
        "id between 50 and 80",
        "s.id = t.id and t.region <=> s.region",
        (
            clause("matched", "update", {"region": "'merged'", "id": "t.id + 2000"}),
            clause("not matched by source", "delete", condition="t.id % 10 = 4 and t.id < 100"),
            clause("not matched by source", "update", {"amount": "t.amount * 1.5"}, "t.region = 'uk'"),
        ),
    ),
    (
        "id % 2 = 0",
        "t.id = s.id and t.id > 100",
        (
            clause("matched", "delete", condition="s.op = 0"),
            clause("not matched", "insert", {"id": "s.id + 5000", "region": "s.region"}, "s.op = 3"),
        ),
    ),
)


@pytest.mark.parametrize(("version", "mode"), KINDS if SOAK else [KINDS[0], KINDS[4]])
def test_merges_leave_the_rows_that_sparks_own_leave(warehouse: Warehouse, version: int, mode: str) -> None:
    """Round by round, by turns: tamis and Spark merge into one table, Spark alone into the other."""
    spark = warehouse.spark
    mixed, path, alone = twins(warehouse, f"mrg_{version}_{mode[:4]}", version, mode)
    for number, (where, on, clauses) in enumerate(ROUNDS):
        frame = source(spark, where)
        by_spark(spark, alone, frame, on, clauses)
        if number == 2 and version != 2:
            by_spark(spark, mixed, frame, on, clauses)
        else:
            done = merged(tamis.open(path, cache=False), frame, on, clauses)
            assert done.rows_updated + done.rows_deleted > 0
            assert done.table.snapshot_id == done.snapshot_id
            check_manifests(path)
            assert (done.delete_files_added > 0) == (mode == "merge-on-read")
        assert rows(spark, mixed) == rows(spark, alone), on
        assert ours(spark, path) == rows(spark, alone), on


def small(warehouse: Warehouse, name: str, version: int = 2, **properties: str) -> tuple[str, str]:
    """A table of two specs, with three files of 20 rows each, and its path."""
    spark, table = warehouse.spark, f"ice.db.{name}"
    said = {"format-version": str(version), **{key.replace("_", "-"): value for key, value in properties.items()}}
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in said.items())
    execute(spark, f"create table {table} (id bigint, n int, region string) using iceberg tblproperties ({listed})")
    for first in (0, 20, 40):
        rows_ = spark.range(first, first + 20, 1, 1)
        rows_.selectExpr("id", "cast(id as int) n", "if(id % 2 = 0, 'eu', null) region").writeTo(table).append()
        if first == 0:
            execute(spark, f"alter table {table} add partition field bucket(2, id)")
    return table, warehouse.path(name)


def pairs(spark: SparkSession, *rows_: tuple[int | None, int]) -> DataFrame:
    return spark.createDataFrame(list(rows_), "id bigint, n int")


def test_two_rows_of_the_source_for_one_of_the_table_are_an_error_where_it_matters(warehouse: Warehouse) -> None:
    """As Spark checks it: not where all that match are deleted, nor where nothing is done to them."""
    spark = warehouse.spark
    _, path = small(warehouse, "mrg_twice")
    table = tamis.open(path, cache=False)
    twice = pairs(spark, (5, 1), (5, 2), (77, 3), (77, 4), (None, 5))
    before = sorted(ours(spark, path))
    for builder in (
        table.merge(twice, "t.id = s.id").when_matched_update({"n": "s.n"}),
        table.merge(twice, "t.id = s.id").when_matched_delete("s.n = 1"),
        table.merge(twice, "t.id = s.id", mode="merge-on-read").when_matched_update({"n": "s.n"}, "s.n = 9"),
    ):
        with pytest.raises(MergeMatchError, match="matches 2 rows") as caught:
            builder.run()
        assert (caught.value.matches, caught.value.position) == (2, 5)
        assert sorted(ours(spark, path)) == before
    # A key that is there twice and matches no row is no error.
    fresh = pairs(spark, (77, 3), (77, 4), (6, 1))
    done = table.merge(fresh, "t.id = s.id").when_matched_update({"n": "s.n"}).run()
    assert (done.rows_updated, done.rows_inserted) == (1, 0)
    for mode in ("copy-on-write", "merge-on-read"):
        builder = tamis.open(path, cache=False).merge(twice, "t.id = s.id", mode=mode)  # type: ignore[typeddict-item]
        done = (
            builder.when_matched_delete()
            .when_not_matched_insert({"id": "s.id", "n": "s.n"}, "s.id is not null")
            .when_not_matched_by_source_update({"n": "-1"}, "t.id = 59")
            .run()
        )
        # The second round finds two rows 77, each of which matches twice, and no row 5 any more.
        assert (done.rows_deleted, done.rows_updated, done.rows_inserted) == (1 + (mode[0] == "m"), 1, 2)
    left = done.table.plan().read(spark).collect()
    assert (len(left), sum(row.id == 5 for row in left), sum(row.id == 77 for row in left)) == (61, 2, 0)
    assert {row.n for row in left if row.id == 59} == {-1}


def test_a_merge_that_only_inserts_is_an_append_and_reads_the_keys(warehouse: Warehouse) -> None:
    spark = warehouse.spark
    table, path = small(warehouse, "mrg_insert", 3)
    before = {one["file_path"] for one in entries(tamis.open(path, cache=False))}
    source_ = pairs(spark, (3, 0), (30, 0), (300, 7), (None, 8), (300, 9))
    done = tamis.open(path, cache=False).merge(source_, "t.id = s.id").when_not_matched_insert({"id": "id"}).run()
    assert (done.rows_inserted, done.rows_updated, done.files_rewritten) == (3, 0, 0)
    assert before < {one["file_path"] for one in entries(done.table)}
    spark.sql(f"refresh table {table}")
    summary = spark.sql(f"select operation from {table}.snapshots order by committed_at desc").first()
    assert summary == ("append",)
    assert len({row[0] for row in lineage(spark, table).values()}) == 62  # one of both rows 300 is told


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_keys_of_the_source_and_conditions_on_the_table_prune(warehouse: Warehouse, mode: Any) -> None:  # noqa: ANN401
    """A sound merge that reads every file passes every other test."""
    spark = warehouse.spark
    _, path = small(warehouse, f"mrg_prune_{mode[:4]}")
    table = tamis.open(path, cache=False)
    keys = table.merge(pairs(spark, (3, 1), (5, 1)), "t.id = s.id", mode=mode).when_matched_delete()
    assert len(keys.plan().files) == 1
    assert "3 join keys" not in keys.explain()
    alone = table.merge(pairs(spark, (3, 1)), "t.n > s.n and t.id >= 50", mode=mode).when_matched_delete()
    assert len(alone.plan().files) == 2  # the second spec's buckets of 40 to 59
    by_source = keys.when_not_matched_by_source_delete("t.id between 40 and 45")
    assert len(by_source.plan().files) == 3
    assert len(keys.when_not_matched_by_source_delete().plan().files) == table.plan().stats.files
    done = by_source.run()
    assert done.rows_deleted == 2 + 6
    assert done.table.plan("id in (3, 5, 40, 45)").read(spark).count() == 0
    assert done.table.plan().read(spark).count() == 52


def test_a_source_that_is_another_each_time_is_taken_once(warehouse: Warehouse) -> None:
    """Rows are matched, and inserted, by the keys that pruned."""
    spark = warehouse.spark
    _, path = small(warehouse, "mrg_random")
    chance = spark.range(0, 40, 1, 2).selectExpr("cast(rand() * 200 as bigint) id", "cast(id as int) n")
    builder = tamis.open(path, cache=False).merge(chance.dropDuplicates(["id"]), "t.id = s.id")
    done = builder.when_matched_update({"n": "-1"}).when_not_matched_insert({"id": "s.id", "n": "1000"}).run()
    found = done.table.plan().read(spark).collect()
    assert len({row.id for row in found}) == len(found) == 60 + done.rows_inserted
    assert sum(row.n == -1 for row in found) == done.rows_updated


def test_null_safe_keys_match_null(warehouse: Warehouse) -> None:
    spark = warehouse.spark
    _, path = small(warehouse, "mrg_null")
    source_ = spark.createDataFrame([(None, 3), ("eu", 4)], "region string, n int")
    builder = tamis.open(path, cache=False).merge(source_, "t.region <=> s.region and t.n = s.n")
    done = builder.when_matched_update({"n": "0"}).run()
    assert done.rows_updated == 2


def test_what_cannot_be_meant_leaves_the_table_untouched(warehouse: Warehouse) -> None:
    spark = warehouse.spark
    _, path = small(warehouse, "mrg_wrong")
    table, one = tamis.open(path, cache=False), pairs(spark, (5, 1))
    before = table.snapshot_id
    merge = table.merge(one, "t.id = s.id")
    wrong: list[tuple[type[Exception], str, Any]] = [
        (TypeError, "source is a list", lambda: table.merge([1], "t.id = s.id")),  # type: ignore[arg-type]
        (TypeError, "on is an int", lambda: table.merge(one, 5)),  # type: ignore[arg-type]
        (TypeError, "no option 'moode'", lambda: table.merge(one, "true", moode="x")),  # type: ignore[call-arg]
        (ValueError, "mode is 'x'", lambda: table.merge(one, "true", mode="x")),  # type: ignore[arg-type]
        (ValueError, "storage is 'x'", lambda: table.merge(one, "true", storage="x")),  # type: ignore[arg-type]
        (ValueError, "two names", lambda: table.merge(one, "true", target_alias="s")),
        (ValueError, "no clause", merge.run),
        (ValueError, "is empty", lambda: merge.when_matched_update({})),
        (TypeError, "condition is a bool", lambda: merge.when_matched_delete(True)),  # type: ignore[arg-type]
        (BindError, "no column idd", lambda: merge.when_matched_update({"idd": "1"})),
        (BindError, "no column region", lambda: merge.when_not_matched_insert_all().run()),
        (BindError, "Spark cannot read", lambda: merge.when_matched_update({"n": "s.nope"}).run()),
        (BindError, "Spark cannot read", lambda: merge.when_not_matched_insert({"n": "t.n"}).run()),
        (BindError, "not deterministic", lambda: merge.when_matched_delete("rand() < 0.5").run()),
        (BindError, "Spark cannot read", lambda: table.merge(one, "t.id = s.nope").when_matched_delete().run()),
        (UnwritableRowsError, "column 'n'", lambda: merge.when_matched_update({"n": "date'2024-01-01'"}).run()),
        (UnwritableRowsError, "does not fit column n", lambda: merge.when_matched_update({"n": "t.id + 1e10"}).run()),
        (BindError, "no column s.n", lambda: merge.when_not_matched_by_source_delete("s.n = 1").run()),
    ]
    for kind, said, act in wrong:
        with pytest.raises(kind, match=said):
            act()
    update = table.update
    for kind, said, act in (
        (ValueError, "set is empty", lambda: update({}, where="true", spark=spark)),
        (BindError, "no column x", lambda: update({"x": 1}, where="true", spark=spark)),
        (BindError, "Spark cannot read", lambda: update({"n": "nope + 1"}, where="id = 5", spark=spark)),
        (BindError, "not deterministic", lambda: update({"n": 1}, where="rand() < 0.5", spark=spark)),
        (UnwritableRowsError, "does not fit column n", lambda: update({"n": 10**12}, where="id = 5", spark=spark)),
        (ExecutorError, "cannot update rows", lambda: update({"n": 1}, where="id = 5")),
    ):
        with pytest.raises(kind, match=said):
            act()
    assert tamis.open(path, cache=False).snapshot_id == before
    referred = {file["file_path"] for file in entries(table)}
    there = {str(file) for file in Path(path, "data").rglob("*.parquet")}
    assert {one.removeprefix("file:") for one in referred} == there, "files of failed jobs are left"


def test_version_1_has_no_deletes(warehouse: Warehouse) -> None:
    spark = warehouse.spark
    _, path = small(warehouse, "mrg_v1", 1)
    table = tamis.open(path, cache=False)
    with pytest.raises(CommitRefused, match="format version is 1"):
        table.update({"n": 1}, where="id = 5", spark=spark, mode="merge-on-read")
    merge = table.merge(pairs(spark, (5, 1)), "t.id = s.id", mode="merge-on-read").when_matched_delete()
    with pytest.raises(CommitRefused, match="format version is 1"):
        merge.run()


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_rows_of_version_3_keep_their_ids(warehouse: Warehouse, mode: Any) -> None:  # noqa: ANN401
    """Changed ones are of the new snapshot, new ones have new ids, others stay as they are."""
    spark = warehouse.spark
    table, path = small(warehouse, f"mrg_lineage_{mode[:4]}", 3)
    before = lineage(spark, table)
    source_ = pairs(spark, (5, 1), (6, 2), (45, 3), (900, 4))
    merge = tamis.open(path, cache=False).merge(source_, "t.id = s.id", mode=mode)
    done = (
        merge.when_matched_delete("s.n = 2")
        .when_matched_update({"n": "s.n"})
        .when_not_matched_insert({"id": "s.id"})
        .run()
    )
    after = lineage(spark, table)
    assert {id_: row[0] for id_, row in after.items() if id_ != 900} == {
        id_: row[0] for id_, row in before.items() if id_ != 6
    }
    assert {id_ for id_ in before.keys() & after.keys() if before[id_] != after[id_]} == {5, 45}
    assert after[900][0] not in {row[0] for row in before.values()}
    assert after[5][1] == after[45][1] == after[900][1] > max(row[1] for row in before.values())
    mine = done.table.plan().read(spark, columns=["id"], metadata_columns=list(LINEAGE)).collect()
    assert {row[0]: (row[1], row[2]) for row in mine} == after


@pytest.mark.parametrize("statement", ["update", "merge"])
def test_a_row_that_another_deletes_meanwhile_is_a_conflict(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    """Written anew with a new value, it would be there again. Nothing of the job is left behind."""
    spark = warehouse.spark
    _, path = small(warehouse, f"mrg_race_{statement}")
    table, commit = tamis.open(path, cache=False), WritableIceberg.commit

    def late(writable: WritableIceberg, edit: Edit) -> Committed:
        monkeypatch.undo()
        tamis.open(path, cache=False).delete("id = 5", spark=spark, mode="merge-on-read")
        return commit(writable, edit)

    merge = table.merge(pairs(spark, (5, 1)), "t.id = s.id", mode="merge-on-read", isolation="snapshot")
    merge = merge.when_matched_update({"n": "s.n"})
    act = {
        "update": lambda: table.update({"n": 0}, where="id = 5", spark=spark, mode="merge-on-read"),
        "merge": merge.run,
    }[statement]
    monkeypatch.setattr(WritableIceberg, "commit", late)
    with pytest.raises(CommitConflict, match="were deleted meanwhile"):
        act()
    assert tamis.open(path, cache=False).plan("id = 5").read(spark).count() == 0
    referred = {file["file_path"].removeprefix("file:") for file in entries(tamis.open(path, cache=False))}
    assert referred == {str(file) for file in Path(path, "data").rglob("*.parquet")}
