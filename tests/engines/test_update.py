# ruff: noqa: S608 - SQL made of the tests' own names
"""Updates of evolved tables, beside Spark's own: the same rows, and each reads what the other has written."""

from __future__ import annotations

import pytest

import tamis
from tests.engines.appending import entries
from tests.engines.changing import KINDS, LINEAGE, SOAK, check_manifests, lineage, ours, rows, twins
from tests.engines.conftest import Warehouse
from tests.engines.tables import execute

pytestmark = pytest.mark.engine

ROUNDS: tuple[tuple[dict[str, object], str], ...] = (
    ({"amount": "amount * 1.1", "info.n": "info.n + 1"}, "region = 'eu' and id < 130"),
    ({"region": "'moved'", "x": "id", "info.city": "'new'"}, "id between 40 and 70 or x <= 2"),
    ({"ts": "ts + interval 40 days", "info.city": "region", "tags": "array(region)"}, "id % 7 = 3"),
    ({"info": "null", "id": "id + 1000"}, "not (region = 'us') and amount > 30"),
)
"""Columns of old and new partitions, parts of structs that may be NULL, and no comparison that NaN satisfies."""


@pytest.mark.parametrize(("version", "mode"), KINDS if SOAK else KINDS[2:4])
def test_updates_leave_the_rows_that_sparks_own_leave(warehouse: Warehouse, version: int, mode: str) -> None:
    """Round by round, by turns: tamis and Spark update one table, Spark alone the other."""
    spark = warehouse.spark
    mixed, path, alone = twins(warehouse, f"upd_{version}_{mode[:4]}", version, mode)
    for number, (values, where) in enumerate(ROUNDS):
        assigned = ", ".join(f"{column} = {value}" for column, value in values.items())
        execute(spark, f"update {alone} set {assigned} where {where}")
        if number == 2:
            spark.sql(f"refresh table {mixed}")
            execute(spark, f"update {mixed} set {assigned} where {where}")
        else:
            done = tamis.open(path, cache=False).update(values, where=where, spark=spark)
            assert done.rows > 0
            assert done.table.snapshot_id == done.snapshot_id
            check_manifests(path)
            assert (done.delete_files_added > 0) == (mode == "merge-on-read")
        assert rows(spark, mixed) == rows(spark, alone), where
        assert ours(spark, path) == rows(spark, alone), where
        if version > 2:
            mine, theirs = lineage(spark, mixed), lineage(spark, alone)
            assert {id_: one[0] for id_, one in mine.items()}.keys() == theirs.keys()


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_changed_rows_keep_their_id_and_others_the_time_of_their_change(warehouse: Warehouse, mode: str) -> None:
    """Version 3: as the connector has it, row by row; told by its reader and by tamis's."""
    spark = warehouse.spark
    mixed, path, alone = twins(warehouse, f"upd_lineage_{mode[:4]}", 3, mode)
    before = lineage(spark, mixed)
    done = tamis.open(path, cache=False).update({"x": "1"}, where="region = 'eu' and id % 3 = 0", spark=spark)
    execute(spark, f"update {alone} set x = 1 where region = 'eu' and id % 3 = 0")
    after, theirs = lineage(spark, mixed), lineage(spark, alone)
    changed = {id_ for id_ in after if after[id_] != before[id_]}
    assert changed == {id_ for id_ in theirs if theirs[id_][1] == max(one[1] for one in theirs.values())}
    assert len(changed) == done.rows
    assert {id_: one[0] for id_, one in after.items()} == {id_: one[0] for id_, one in before.items()}
    mine = done.table.plan().read(spark, columns=["id"], metadata_columns=list(LINEAGE)).collect()
    assert {row[0]: (row[1], row[2]) for row in mine} == after


def test_update_with_partition_evolution_writes_new_files_with_the_default_spec(warehouse: Warehouse) -> None:
    """Migrate forward: new rows lie in the current spec, deletes in that of the file that they are of."""
    spark = warehouse.spark
    _, path, _ = twins(warehouse, "upd_migrate", 2, "merge-on-read")
    table = tamis.open(path, cache=False)
    current = max(spec.spec_id or 0 for spec in table.source.specs)
    before = {one["file_path"] for one in entries(table)}
    done = table.update({"x": "5"}, where="id in (5, 65, 125, 165)", spark=spark)
    new = [one for one in entries(done.table) if one["file_path"] not in before]
    specs = {content: set() for content in (0, 1)}
    for one in new:
        specs[one["content"]].add(one["list"]["partition_spec_id"])
    assert specs[0] == {current}
    assert len(specs[1]) > 1
    assert done.rows == 4


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_position_deletes_from_version_2_are_taken_over(warehouse: Warehouse, mode: str) -> None:
    """A table that was upgraded: a file with position delete files gets a vector, which says all of it."""
    spark = warehouse.spark
    mixed, path, alone = twins(warehouse, f"upd_mixed_{mode[:4]}", 3, "merge-on-read", first=2)
    done = tamis.open(path, cache=False).update({"x": "7"}, where="id < 90 and id % 2 = 0", spark=spark, mode=mode)  # type: ignore[arg-type]
    execute(spark, f"update {alone} set x = 7 where id < 90 and id % 2 = 0")
    assert done.rows > 0
    assert rows(spark, mixed) == rows(spark, alone)
    assert ours(spark, path) == rows(spark, alone)
    check_manifests(path)
