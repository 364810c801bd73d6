"""The Spark that both sides of a join bench run on: Spark's and a connector's defaults, with that connector's jar."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from bench.harness import CACHE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

WAREHOUSE: Final = CACHE / "star"
MEMORY: Final = "6g"
ICEBERG: Final = {
    "spark.jars.packages": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.catalog.star": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.star.type": "hadoop",
    "spark.sql.catalog.star.warehouse": str(WAREHOUSE / "warehouse"),
}
DELTA: Final = {
    "spark.jars.packages": "io.delta:delta-spark_4.1_2.13:4.4.0",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


@contextmanager
def star_session(connector: Mapping[str, str] = ICEBERG) -> Iterator[SparkSession]:
    """A local session of two threads with a connector; what its JVM prints goes to a log."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    WAREHOUSE.mkdir(parents=True, exist_ok=True)
    kept = os.dup(2)
    with (WAREHOUSE / "jvm.log").open("ab") as log:
        os.dup2(log.fileno(), 2)
        try:
            builder = (
                SparkSession.builder.master("local[2]")
                .config("spark.driver.memory", MEMORY)
                .config("spark.ui.enabled", "false")
                .config("spark.ui.showConsoleProgress", "false")
                .config("spark.local.dir", str(WAREHOUSE / "local"))
                .config("spark.sql.session.timeZone", "UTC")
            )
            for name, value in connector.items():
                builder = builder.config(name, value)
            spark = builder.getOrCreate()
        finally:
            os.dup2(kept, 2)
            os.close(kept)
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        spark.stop()
