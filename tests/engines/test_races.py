"""Statements of eight processes on one table: what is there afterwards is what some serial order of them gives.

The order is that of the snapshots, each of which names its statement. It is replayed in plain Python, and compared
row by row with what tamis, Spark's own connector and PyIceberg read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from tamis.errors import CommitConflict
from tamis.formats.edit import Mode
from tests.engines.conftest import Warehouse
from tests.engines.lakes import Lake, lakes, read_by_all, seeded
from tests.making.racing import PROCESSES, Outcome, Racer, raced
from tests.making.referred import files_in, referred
from tests.making.statements import COLUMNS, IDS, MARK, MORE, REGIONS, SEEDED, Condition, Row, Statement, replayed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tamis.formats.iceberg.metadata import TableMetadata

pytestmark = pytest.mark.engine

SOAK = os.environ.get("TAMIS_HYPOTHESIS_PROFILE") == "soak"
STATEMENTS = 170 if SOAK else 6
"""Of each process: more than a thousand commits in all, or some forty."""
PATIENCE = {"num-retries": "200", "min-wait-ms": "5", "max-wait-ms": "100"}
PROPERTIES = {f"commit.retry.{key}": one for key, one in PATIENCE.items()}
PROPERTIES["commit.manifest.min-count-to-merge"] = "5"  # merging is part of the race
if SOAK:  # all metadata files stay in the log, or those of the first hundreds of commits would look like left ones
    PROPERTIES["write.metadata.previous-versions-max"] = "10000"
SPARK_TURNS = 10 if SOAK else 1
ON_SPARK: list[tuple[str, int, Mode]] = [
    ("folder", 2, "merge-on-read"),
    ("folder", 3, "copy-on-write"),
    ("rest", 3, "merge-on-read"),
]
KINDS = [("folder", 2), ("folder", 3), ("sqlite", 3), ("postgresql", 2), ("rest", 3)]


@pytest.fixture(scope="module")
def lake(warehouse: Warehouse, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Lake]]:
    with lakes(warehouse.spark, tmp_path_factory.mktemp, "race") as start:
        yield start


@pytest.mark.parametrize(("kind", "version"), KINDS)
def test_statements_at_once_are_as_if_one_came_after_the_other(
    warehouse: Warehouse, lake: Callable[[str], Lake], kind: str, version: int
) -> None:
    """Copy-on-write and merge-on-read, on a table of three specs: none is lost, and none comes twice."""
    found, name = lake(kind), f"t{version}"
    seeded(warehouse.spark, found, name, version, PROPERTIES)
    racers = [Racer(found.target(name), found.properties, number, STATEMENTS) for number in range(PROCESSES)]
    outcomes = raced(racers)
    checked(warehouse, found, name, SEEDED, outcomes)
    assert max(one.attempts for one in outcomes) > 1  # else nobody has raced


@pytest.mark.parametrize(("kind", "version", "mode"), ON_SPARK if SOAK else ON_SPARK[:1])
def test_updates_and_merges_on_spark_are_in_that_order_too(
    warehouse: Warehouse, lake: Callable[[str], Lake], kind: str, version: int, mode: Mode
) -> None:
    """Two threads on Spark among processes that delete rows which they change, and append and overwrite others.

    Both merge rows of the same ids, which were not there: one inserts them, and the other finds them.
    """
    found, name, spark = lake(kind), f"u{version}_{mode[:4]}", warehouse.spark
    seeded(spark, found, name, version, PROPERTIES)
    high = tuple(Row(IDS + number, REGIONS[number % 3], number, "seed") for number in range(IDS))
    spark.createDataFrame(list(high), COLUMNS).coalesce(1).writeTo(f"{found.name}.db.{name}").append()
    racers = [Racer(found.target(name), found.properties, number, STATEMENTS, high=0.2) for number in range(6)]

    def changes(number: int) -> list[Outcome]:
        done = []
        for turn in range(SPARK_TURNS):
            this, low = f"spark {number}-{turn}", IDS + 20 * number
            rows = tuple(Row(3 * IDS + 10 * turn + more, "eu", 0, this) for more in range(3))
            merge = Statement(this, "merge", rows=rows, mode=mode)
            update = Statement(f"{this} update", "update", Condition(low, low + 15), mode=mode)
            done += [changed(spark, found, name, one) for one in (merge, update)]
        return done

    with ThreadPoolExecutor(3) as pool:
        others = pool.submit(raced, racers)
        threads = [pool.submit(changes, number) for number in range(2)]
        outcomes = [*others.result(), *(one for each in threads for one in each.result())]
    assert {"update", "merge"} <= {one.statement.kind for one in outcomes if one.attempts}
    checked(warehouse, found, name, (*SEEDED, *high), outcomes)


def changed(spark: SparkSession, lake: Lake, name: str, one: Statement) -> Outcome:
    """Its outcome; another try for one that has lost, as a script would."""
    marks = {MARK: one.name}
    reason = ""
    for _ in range(20):
        table = lake.open(name)
        try:
            if one.kind == "update":
                done = table.update(
                    {"n": f"n + {MORE}"}, where=one.where.sql, spark=spark, mode=one.mode, snapshot_properties=marks
                )
                return Outcome(one, done.attempts)
            rows = spark.createDataFrame(list(one.rows), COLUMNS)
            merge = table.merge(rows, on="t.id = s.id", mode=one.mode, snapshot_properties=marks)
            merge = merge.when_matched_update({"n": f"t.n + {MORE}"}).when_not_matched_insert_all()
            return Outcome(one, merge.run(spark).attempts)
        except CommitConflict as conflict:
            reason = conflict.reason
    return Outcome(one, 0, lost=reason)


def checked(warehouse: Warehouse, lake: Lake, name: str, before: Sequence[Row], outcomes: Sequence[Outcome]) -> None:
    """Each statement is there once or not at all, as it was told; all read what the replay gives; no file is left."""
    table = lake.open(name)
    metadata: TableMetadata = table.source.metadata  # type: ignore[attr-defined] # an IcebergTable
    order = [one.summary[MARK] for one in metadata.snapshots if one.summary and MARK in one.summary]
    committed = {one.statement.name for one in outcomes if one.attempts}
    unknown = {one.statement.name for one in outcomes if one.unknown}
    assert len(order) == len(set(order))
    assert committed <= set(order) <= committed | unknown
    assert len(order) > len(outcomes) // 3
    by_name = {one.statement.name: one.statement for one in outcomes}
    expected = sorted(map(repr, replayed(before, [by_name[one] for one in order])))
    for reader, rows in read_by_all(warehouse.spark, lake, name).items():
        assert rows == expected, reader
    if metadata.format_version > 2:  # no two rows are one, however often they were moved
        ids = warehouse.spark.table(f"{lake.name}.db.{name}").select("_row_id").collect()
        assert len({row[0] for row in ids}) == len(expected)
    left = files_in(metadata.location) - referred(metadata.path)
    if "rest" in lake.name:  # the server writes these, and leaves those of commits that it refuses
        left = {path for path in left if not path.name.endswith(".metadata.json")}
    assert left == set() or unknown  # who has lost, has taken its files away
