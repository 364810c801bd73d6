"""Generated conditions on Paimon tables: the rows that a plan reads are those that Spark finds among Java's rows."""

from __future__ import annotations

import random
from functools import reduce
from typing import TYPE_CHECKING, Any

import pytest

import tamis
from tests.engines.paimon_engine import PaimonEngine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.engine

COLUMNS = {
    "id": "INT NOT NULL",
    "day": "STRING NOT NULL",
    "k": "STRING NOT NULL",
    "n": "BIGINT",
    "x": "DOUBLE",
    "s": "STRING",
}
TYPES = "id int, day string, k string, n bigint, x double, s string"
VALUES = {
    "id": [str(one) for one in (-3, 0, 7, 20, 33, 39, 99)],
    "day": ["'d0'", "'d1'", "'d2'", "'zz'"],
    "k": ["'k0'", "'k1'", "'k2'", "''"],
    "n": ["-5", "0", "3", "12", "4000000000"],
    "x": ["-0.5D", "0.0D", "1.5D", "double('NaN')", "double('-0.0')"],
    "s": ["'a'", "'b'", "''", "'ä'"],
}
A_SHARE = 16
"""Conditions of one job: each is a read of its own."""


def condition(chance: random.Random, deep: int = 2) -> str:
    """A condition on a few columns, with everything that may go wrong beside a NULL."""
    if deep and chance.random() < 0.6:
        parts = [condition(chance, deep - 1) for _ in range(2)]
        joined = f" {chance.choice(['and', 'or'])} ".join(parts)
        return f"not ({joined})" if chance.random() < 0.2 else f"({joined})"
    name = chance.choice(list(VALUES))
    one, other = chance.sample(VALUES[name], 2)
    return chance.choice(
        [
            f"{name} = {one}",
            f"{name} <> {one}",
            f"{name} >= {one}",
            f"{name} < {one}",
            f"{name} in ({one}, {other})",
            f"{name} not in ({one})",
            f"{name} between {min(one, other)} and {max(one, other)}",
            f"{name} is null",
            f"{name} is not null",
            f"{name} <=> {one}",
        ]
    )


def rows(chance: random.Random, ids: range) -> list[dict[str, Any]]:
    return [
        {
            "id": row,
            "day": f"d{row % 3}",
            "k": f"k{row % 2}",
            "n": chance.choice([None, -5, 0, 3, 12, 4_000_000_000]),
            "x": chance.choice([None, "NaN", 0.0, "-0.0", 1.5, -0.5]),
            "s": chance.choice([None, "", "a", "b", "ä"]),
        }
        for row in ids
    ]


@pytest.mark.parametrize("kind", ["keys", "vectors", "append"])
def test_every_matching_row_is_read_and_no_other(spark: SparkSession, paimon: PaimonEngine, kind: str) -> None:
    """Of a key table with removals and several versions of rows, one with deletion vectors, and an append table."""
    from pyspark.sql import functions as f

    chance, table = random.Random(kind), f"asked_{kind}"  # noqa: S311 - the same in every run
    options = {"bucket": "3", "write-only": "true", "bucket-key": "id"}
    options |= {"deletion-vectors.enabled": "true", "write-only": "false"} if kind == "vectors" else {}
    keys = [] if kind == "append" else ["id", "k", "day"]
    listed = [list(one) for one in COLUMNS.items()]
    paimon("create_table", table, columns=listed, partition_keys=["day"], primary_keys=keys, options=options)
    paimon("write", table, rows=rows(chance, range(40)))
    paimon("write", table, rows=rows(chance, range(15, 30)))
    if keys:
        paimon("delete", table, rows=rows(chance, range(20, 26)))
        paimon("write", table, rows=rows(chance, range(24, 34)))
        paimon("compact", table, full=kind == "vectors", dynamic={"num-sorted-run.compaction-trigger": "3"})
        paimon("write", table, rows=rows(chance, range(5)))
    opened = tamis.open(str(paimon.path(table)))
    told = [tuple(_float(name, row[name]) for name in COLUMNS) for row in paimon("read", table)["rows"]]
    truth = spark.createDataFrame(told, TYPES).cache()
    conditions = [condition(chance) for _ in range(A_SHARE)]
    for start in range(0, len(conditions), A_SHARE):
        share = conditions[start : start + A_SHARE]
        tagged = [
            opened.plan(where).read(spark, columns=["id"]).withColumn("asked", f.lit(number))
            for number, where in enumerate(share)
        ]
        expected = [truth.filter(where).select("id").withColumn("asked", f.lit(n)) for n, where in enumerate(share)]
        found, wanted = (sorted(map(tuple, _united(frames).collect())) for frames in (tagged, expected))
        for number, where in enumerate(share):
            assert [row for row in found if row[1] == number] == [row for row in wanted if row[1] == number], where


def _united(frames: list[DataFrame]) -> DataFrame:
    return reduce(lambda a, b: a.union(b), frames)


def _float(name: str, value: Any) -> Any:  # noqa: ANN401 - JSON
    return float(value) if name == "x" and value is not None else value
