# ruff: noqa: S608 - SQL made of our own names
"""Claim: a selective join of a Delta table opens the files that it needs, and takes a fifth of the connector's time.

The fact table is TPC-H's lineitem: the older half of its orders sorted by order key, the newer one by day of
shipping, in as many files each. Runtime filters prune by statistics, which the connector does not do for a join's
keys. Both sides run the same join on one session with defaults; ours counts from opening the folder to the result.
Results are compared, and so are the files that we open with those that hold a matching row. A whole scan may take ten
per cent more than the connector's.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.harness import Claim, main
from bench.star.session import DELTA, WAREHOUSE, star_session
from bench.star.tables import FILES, KEYS, SCALE, generate, raw
from bench.star_join import Query, Star, joined, scanned

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NEWER: Final = KEYS // 2
QUERIES: Final = (
    Query(
        "delta-orders",
        "Delta: join the orders of one customer",
        f"select o_orderkey, o_orderdate from orders where o_custkey = (select min(o_custkey) from orders) "
        f"and o_orderkey <= {NEWER}",
        {"l_orderkey": "o_orderkey"},
    ),
    Query(
        "delta-days",
        "Delta: join three days, in the newer orders",
        "select day from values (date'1995-03-15'), (date'1997-06-01'), (date'1998-02-02') as days(day)",
        {"l_shipdate": "day"},
        where=f"l_orderkey > {NEWER}",
    ),
)


def fact_folder() -> Path:
    """The folder of the table."""
    return WAREHOUSE / f"delta-lineitem-{SCALE}"


def make(spark: SparkSession) -> None:
    """Generate what is not there yet."""
    folder = fact_folder()
    done = folder.with_suffix(".done")
    if done.exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    generate()
    rows = spark.read.parquet(str(raw("lineitem")))
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    for condition, sort in ((f"l_orderkey <= {NEWER}", "l_orderkey"), (f"l_orderkey > {NEWER}", "l_shipdate")):
        part = rows.where(condition).repartitionByRange(FILES, sort).sortWithinPartitions(sort)
        part.write.format("delta").mode("append").save(str(folder))
    spark.conf.unset("spark.sql.adaptive.enabled")
    done.touch()


def run() -> list[Claim]:
    """Two selective joins on both sides, and a scan of everything."""
    with star_session(DELTA) as spark:
        make(spark)
        spark.read.parquet(str(raw("orders"))).createOrReplaceTempView("orders")
        folder = fact_folder()

        def rows() -> DataFrame:
            return spark.read.format("delta").load(str(folder))

        star = Star(folder, rows, "Delta's connector", 5.0, "_metadata.file_path")
        whole = replace(scanned(spark, star), name="delta_scan", says="Delta: read the whole table")
        return [*(claim for query in QUERIES for claim in joined(spark, star, query)), whole]


if __name__ == "__main__":
    main(run)
