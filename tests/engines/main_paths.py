"""The main paths on whatever Spark this is run on: plan here and there, read with deletes, collect keys, join.

A script: its argument is the metadata file of `tests.making.evolved_tables.evolved`, its last line of output JSON.
"""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from shutil import which
from typing import TYPE_CHECKING, Any

import tamis
from tamis.spark.planning import NOTE
from tests.making.clusters import open_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WHERE = "area = 'eu' and id < 250"


def main(metadata: str) -> None:
    spark = open_session()
    table = tamis.open(metadata)
    found = {
        "planning": planning(spark, table),
        "reading": reading(spark, table),
        "keys": keys(spark, table),
        "joining": joining(spark, table),
        "jvm": any(map(find_spec, ("py4j", "pyspark.core"))) or which("java") is not None,
    }
    print(json.dumps(found), flush=True)  # noqa: T201 - what the test reads
    spark.stop()


def planning(spark: SparkSession, table: tamis.Table) -> dict[str, Any]:
    here = table.plan(WHERE)
    told: list[tuple[int, int]] = []
    there = table.plan(WHERE, spark=spark, executors="always", progress=lambda *args: told.append(args))
    return {
        "same": there.files.equals(here.files) and there.stats.specs == here.stats.specs,
        "elsewhere": NOTE in there.stats.notes,
        "kept": there.stats.kept,
        "told": told[-1],
    }


def reading(spark: SparkSession, table: tamis.Table) -> dict[str, Any]:
    plan = table.plan(WHERE, spark=spark, executors="always")
    everything = table.plan(spark=spark)
    return {"some": ids(plan.read(spark)), "all": ids(everything.read(spark)), "again": plan.read(spark).count()}


def keys(spark: SparkSession, table: tamis.Table) -> dict[str, Any]:
    few = spark.createDataFrame([(4,), (205,), (9999,)], "key int")
    exact = tamis.RuntimeFilter.from_dataframe(few, "key", names="id")
    many = spark.range(1000, 3000)
    bloom = tamis.RuntimeFilter.from_dataframe(many, "id", max_keys=10, bloom=True)
    plans = [table.plan(runtime_filters=[one], spark=spark, executors="always") for one in (exact, bloom)]
    return {"kept": [plan.stats.kept for plan in plans], "files": plans[0].stats.files, "bloom": bloom.text}


def joining(spark: SparkSession, table: tamis.Table) -> dict[str, Any]:
    other = spark.createDataFrame(
        [(4, "four"), (205, "many"), (7, "deleted"), (9999, "nowhere")], "id bigint, name string"
    )
    joined = table.join(other, "id", where="score is not null or id = 205")
    return {"rows": sorted([row["id"], row["name"]] for row in joined.select("id", "name").collect())}


def ids(frame: DataFrame) -> list[int]:
    return sorted(row[0] for row in frame.select("id").collect())


if __name__ == "__main__":
    main(sys.argv[1])
