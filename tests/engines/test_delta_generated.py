"""Delta tables whose history is made by chance: files that hold a row are kept, and rows are the connector's."""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest

import tamis
from tests.engines.delta_stories import DeltaStory
from tests.making.sparks import Started

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.engine

LONG = os.environ.get("TAMIS_HYPOTHESIS_PROFILE") == "soak"
SEEDS = [random.SystemRandom().randrange(1 << 30) for _ in range(40)] if LONG else [3, 8]
CONDITIONS = 6 if LONG else 2
STEPS = (5, 10) if LONG else (4, 5)


@pytest.fixture(scope="module")
def spark(started_spark: Started) -> SparkSession:
    if started_spark.missing:
        pytest.skip(started_spark.missing)
    return started_spark.session


def bag(rows: DataFrame) -> Counter[str]:
    return Counter(map(str, rows.collect()))


def _names(paths: list[str]) -> set[str]:
    """Files by their names, which no two share: paths are written in several ways."""
    return {unquote(path).rpartition("/")[2] for path in paths}


@pytest.mark.parametrize("seed", SEEDS)
def test_tables_of_any_history_read_as_the_connector_reads_them(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    """Names that come back, types that widen, vectors, checkpoints and older states, in any order."""
    story = DeltaStory.of(spark, str(tmp_path / "t"), seed, STEPS)
    opened = tamis.open(tmp_path / "t")
    newest = opened.snapshot_id
    assert newest is not None
    for where in ("true", *(story.condition() for _ in range(CONDITIONS))):
        theirs = story.frame().where(where)
        plan = opened.plan(where, spark=spark)
        assert bag(plan.read(spark)) == bag(theirs), (where, story.log)
        holding = [row[0] for row in theirs.select("_metadata.file_path").distinct().collect()]
        assert _names(holding) <= _names(plan.files["path"].to_pylist()), (where, story.log)
    by_partition = story.partition_condition()
    if by_partition is not None:
        kept = opened.plan(by_partition, spark=spark).files["path"].to_pylist()
        assert _names(kept) == _names(story.frame().where(by_partition).inputFiles()), (by_partition, story.log)
    version = story.chance.randint(1, newest)
    older = tamis.open(tmp_path / "t", version=version).plan(spark=spark)
    assert bag(older.read(spark)) == bag(story.frame(version)), (version, story.log)
