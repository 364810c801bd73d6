"""The Spark that both sides of a join bench run on: Spark's and the connector's defaults, Iceberg's jar in it."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from bench.harness import CACHE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

PACKAGES: Final = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
WAREHOUSE: Final = CACHE / "star"


@contextmanager
def star_session() -> Iterator[SparkSession]:
    """A local session of two threads; what its JVM prints goes to a log."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    WAREHOUSE.mkdir(parents=True, exist_ok=True)
    kept = os.dup(2)
    with (WAREHOUSE / "jvm.log").open("ab") as log:
        os.dup2(log.fileno(), 2)
        try:
            spark = (
                SparkSession.builder.master("local[2]")
                .config("spark.driver.memory", "6g")
                .config("spark.ui.enabled", "false")
                .config("spark.ui.showConsoleProgress", "false")
                .config("spark.local.dir", str(WAREHOUSE / "local"))
                .config("spark.jars.packages", PACKAGES)
                .config("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
                .config("spark.sql.catalog.star", "org.apache.iceberg.spark.SparkCatalog")
                .config("spark.sql.catalog.star.type", "hadoop")
                .config("spark.sql.catalog.star.warehouse", str(WAREHOUSE / "warehouse"))
                .config("spark.sql.session.timeZone", "UTC")
                .getOrCreate()
            )
        finally:
            os.dup2(kept, 2)
            os.close(kept)
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        spark.stop()
