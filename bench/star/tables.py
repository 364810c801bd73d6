"""lineitem as a table that has lived: sorted by key and unpartitioned, then in buckets, then by month and day.

Order keys ascend from era to era, as they do where orders come in over the years. Each era has about as many files.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.star.session import WAREHOUSE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCALE: Final = 6
FACT: Final = "star.db.lineitem"
KEYS: Final = 6_000_000 * SCALE
"""Order keys go up to here; three of four are not used."""
BUCKETED, DATED = KEYS * 2 // 5, KEYS * 7 // 10
"""Where the second and the third era begin."""
FILES: Final = 64
"""Files of the first era, and buckets of the second."""


def raw(name: str) -> Path:
    """One of TPC-H's tables, as a Parquet file."""
    return WAREHOUSE / f"tpch-{SCALE}" / f"{name}.parquet"


def fact_folder() -> Path:
    """The folder of the evolved table."""
    return WAREHOUSE / "warehouse" / "db" / "lineitem"


def generate() -> None:
    """TPC-H's own files, if they are not there."""
    done = raw("x").parent / "done"
    if done.exists():
        return
    tool = Path(sys.executable).with_name("tpchgen-cli")
    tables = "lineitem,orders,part,customer"
    subprocess.run(
        [str(tool), "parquet", "-s", str(SCALE), "--tables", tables, "--output-dir", str(raw("x").parent)],
        check=True,
        capture_output=True,
    )
    done.touch()


def make(spark: SparkSession) -> None:
    """Generate what is not there yet."""
    done = WAREHOUSE / f"made-{SCALE}"
    if done.exists():
        return
    shutil.rmtree(WAREHOUSE / "warehouse", ignore_errors=True)
    generate()
    spark.read.parquet(str(raw("lineitem"))).createOrReplaceTempView("raw_lineitem")
    columns = ", ".join(f"{name} {kind}" for name, kind in spark.table("raw_lineitem").dtypes)
    spark.sql(
        f"create table {FACT} ({columns}) using iceberg tblproperties "
        "('write.distribution-mode' = 'none', 'write.spark.fanout.enabled' = 'true')"
    )
    change = f"alter table {FACT}"
    rows = "select * from raw_lineitem where l_orderkey"
    append(spark, f"{rows} <= {BUCKETED}", f"repartitionByRange({FILES}, l_orderkey)", sort="l_orderkey")
    spark.sql(f"{change} add partition field bucket({FILES}, l_orderkey)")
    append(spark, f"{rows} > {BUCKETED} and l_orderkey <= {DATED}", f"bucket({FILES}, l_orderkey)")
    spark.sql(f"{change} drop partition field bucket({FILES}, l_orderkey)")
    spark.sql(f"{change} add partition field months(l_shipdate)")
    append(spark, f"{rows} > {DATED} and l_shipdate < date'1998-01-01'", "month")
    spark.sql(f"{change} replace partition field months(l_shipdate) with days(l_shipdate)")
    append(spark, f"{rows} > {DATED} and l_shipdate >= date'1998-01-01'", "day")
    done.touch()


def append(spark: SparkSession, rows: str, by: str, sort: str | None = None) -> None:
    """Write rows with about one file for each partition, sorted inside where there are none."""
    from pyspark.sql import functions as f

    spark.conf.set("spark.sql.adaptive.enabled", "false")
    frame = spark.sql(rows)
    match by:
        case "month":
            frame = frame.repartition(16, f.date_trunc("month", "l_shipdate"))
        case "day":
            frame = frame.repartition(16, "l_shipdate")
        case _ if sort is not None:
            frame = frame.repartitionByRange(FILES, sort).sortWithinPartitions(sort)
        case _:
            frame = frame.repartition(16, f.expr(f"star.system.bucket({FILES}, l_orderkey)"))
    frame.writeTo(FACT).append()
    spark.conf.unset("spark.sql.adaptive.enabled")
