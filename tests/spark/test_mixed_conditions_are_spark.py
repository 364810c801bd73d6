"""Conditions of any kind mean to tamis what they mean to Spark.

No file with a matching row is dropped, none is taken whole that holds another row, and what Spark's analyzer refuses
prunes nothing.

The rows are files of one row each, and of some together, with the statistics that a writer would give them.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import types as pt
from pyspark.errors import PySparkException

from tamis.errors import TamisError
from tamis.predicate.bound import BoundPredicate, Unclear
from tamis.predicate.where import bind_text
from tamis.sieve.domain import ColumnStats
from tamis.sieve.files import FileBatch
from tamis.sieve.funnel import sift
from tamis.sieve.partitions import PartitionSpec
from tamis.sieve.sieve import Sieve
from tests.making.mixed_conditions import mixed_conditions
from tests.making.odd_rows import SCHEMA, odd_rows, refused_by_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.engine

COUNT: Final = int(os.environ.get("TAMIS_MIXED_CONDITIONS", "300"))
SEED: Final = int(os.environ.get("TAMIS_MIXED_SEED", "1"))
BATCH: Final = 20
FILES: Final = (*([row] for row in range(8)), [0, 1], [1, 2], [3, 4], [5, 7], [0, 5, 6])


@pytest.fixture(scope="module", autouse=True)
def quiet() -> Iterator[None]:
    """PySpark logs every query that Spark refuses, with its stack."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> DataFrame:
    return odd_rows(spark)


@pytest.fixture(scope="module")
def files(rows: DataFrame) -> FileBatch:
    return described(rows.drop("st", "arr", "m").toArrow())


def described(table: pa.Table) -> FileBatch:
    """The files, with the bounds and counts of their columns."""
    groups = [table.take(rows) for rows in FILES]
    stats = {}
    for column in SCHEMA.columns:
        if column.path[0] in table.column_names:
            arrays = [group[column.path[0]].combine_chunks() for group in groups]
            stats[column.id] = statistics([array.cast(column.type) for array in arrays], column.type)
    return FileBatch(
        path=pa.array([str(rows) for rows in FILES]),
        size=pa.array([100] * len(FILES), pa.int64()),
        rows=pa.array([len(rows) for rows in FILES], pa.int64()),
        spec_id=0,
        partition=None,
        stats=stats,
    )


def statistics(arrays: Sequence[pa.Array], type_: pa.DataType) -> ColumnStats:
    known = [array.filter(pc.invert(pc.is_nan(array))) if pt.is_floating(type_) else array for array in arrays]
    bounds = [sorted(array.drop_null().to_pylist()) or [None] for array in known]
    nans = [int(pc.sum(pc.is_nan(array)).as_py() or 0) if pt.is_floating(type_) else 0 for array in arrays]
    return ColumnStats(
        pa.array([values[0] for values in bounds], type_),
        pa.array([values[-1] for values in bounds], type_),
        pa.array([array.null_count for array in arrays], pa.int64()),
        pa.array(nans, pa.int64()),
        pa.array([len(array) for array in arrays], pa.int64()),
    )


def answers(rows: DataFrame, texts: Sequence[str]) -> dict[str, list[bool | None]]:
    """What Spark says of each row; nothing for a text that makes it fail."""
    if not texts:
        return {}
    try:
        found = rows.selectExpr(*(f"({text}) AS c{place}" for place, text in enumerate(texts))).collect()
    except PySparkException:
        half = len(texts) // 2
        return answers(rows, texts[:half]) | answers(rows, texts[half:]) if half else {}
    return {text: [row[place] for row in found] for place, text in enumerate(texts)}


def bound(text: str) -> BoundPredicate | str:
    try:
        return bind_text(text, SCHEMA, instant=0)
    except TamisError as error:
        return str(error).splitlines()[0]


def test_conditions_made_by_chance_prune_as_spark_filters(rows: DataFrame, files: FileBatch) -> None:
    """Several thousand are asked with TAMIS_MIXED_CONDITIONS=5000, others with TAMIS_MIXED_SEED."""
    texts = list(dict.fromkeys(mixed_conditions(COUNT, SEED)))
    ours, refused = {text: bound(text) for text in texts}, {text: refused_by_spark(rows, text) for text in texts}
    said = {}
    accepted = [text for text in texts if not refused[text]]
    for first in range(0, len(accepted), BATCH):
        said |= answers(rows, accepted[first : first + BATCH])
    assert len(said) > len(texts) / 2
    wrong, pruned = [], 0
    for text, mine in ours.items():
        if isinstance(mine, str):
            if text in said and "cannot read" not in mine and "a string" not in mine:
                wrong.append(f"refused: {text}: {mine}")
            continue
        if refused[text] == "parser":
            wrong.append(f"accepted: {text}")
        if text in said:
            verdicts = sift(Sieve(mine, (PartitionSpec(0, ()),)), [files]).plan.verdicts["verdict"].to_pylist()
            pruned += len(verdicts) - verdicts.count("some")
            wrong += [f"{verdict} of {held}: {text}" for verdict, held in zip(verdicts, FILES, strict=True)
                      if contradicts(verdict, [said[text][row] for row in held])]  # fmt: skip
        elif refused[text] and not isinstance(mine.root, Unclear) and not leaked(text):
            wrong.append(f"prunes: {text}")
    assert wrong == []
    assert pruned > COUNT


def contradicts(verdict: str, held: Sequence[bool | None]) -> bool:
    """Whether a file of such rows must not get the verdict."""
    matching = sum(answer is True for answer in held)
    return (verdict == "none" and matching > 0) or (verdict == "all" and matching < len(held))


def leaked(text: str) -> bool:
    """Whether Spark may have refused a function whose types tamis does not know."""
    return "UNKNOWN" in text or any(
        name in text for name in ("contains(", "concat(", "round(", "LIKE ANY", "LIKE ALL")
    )
