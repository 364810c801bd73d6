"""Reads equal the connector's on tables whose history is made by chance."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

import pytest

import tamis
from tests.engines.conftest import Warehouse
from tests.engines.generated import Story

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = pytest.mark.engine

STORIES = 4
OTHERS = 12 if os.environ.get("TAMIS_HYPOTHESIS_PROFILE") == "soak" else 1
CONDITIONS = 3


def bag(rows: DataFrame) -> Counter[str]:
    return Counter(map(str, rows.collect()))


@pytest.mark.parametrize("version", [1, 2, 3])
def test_tables_of_any_history_read_as_the_connector_reads_them(warehouse: Warehouse, version: int) -> None:
    """Names that come back, types that widen, specs that change and deletes of every kind, in any order."""
    kept = every = 0
    for seed in range(STORIES):
        story = Story.told(warehouse, f"story_v{version}_{seed}", version, 100 * version + seed)
        opened = tamis.open(warehouse.path(story.name))
        for where in (None, *(story.condition() for _ in range(CONDITIONS))):
            theirs = warehouse.spark.table(story.table)
            plan = opened.plan(where)
            expected = bag(theirs if where is None else theirs.where(where))
            assert bag(plan.read(warehouse.spark)) == expected, (where, story.log)
            kept, every = kept + plan.stats.kept, every + plan.stats.files
    assert kept < every, "nothing was ever pruned"


@pytest.mark.parametrize(("file_format", "version"), [("orc", 2), ("avro", 2), ("orc", 3), ("avro", 3)])
def test_tables_of_any_history_in_other_formats_read_as_the_connector_reads_them(
    warehouse: Warehouse, file_format: str, version: int
) -> None:
    """The same where Spark's readers go by names and know no places.

    The connector's rows are filtered by Spark: what it lets ORC's reader filter, it loses rows of.
    """
    for seed in range(OTHERS):
        name = f"story_{file_format}_v{version}_{seed}"
        story = Story.told(warehouse, name, version, 1000 * version + seed, file_format)
        opened = tamis.open(warehouse.path(story.name))
        theirs = warehouse.spark.table(story.table).localCheckpoint()
        metadata = warehouse.spark.table(story.table).select("id", "_file", "_pos")
        for where in (None, story.condition()):
            expected = bag(theirs if where is None else theirs.where(where))
            assert bag(opened.plan(where).read(warehouse.spark)) == expected, (where, story.log)
        found = opened.plan().read(warehouse.spark, columns=["id"], metadata_columns=["_file", "_pos"])
        assert bag(found) == bag(metadata), story.log
