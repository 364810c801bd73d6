"""One Spark for the whole run: starting it costs more than most tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local session with Spark's own defaults (ANSI, adaptive execution), small and quiet."""
    sql = pytest.importorskip("pyspark.sql", reason="PySpark is not installed")
    os.environ["PYSPARK_PYTHON"] = sys.executable  # workers must not pick another Python, without pyarrow
    home = tmp_path_factory.mktemp("spark")
    session = (
        sql.SparkSession.builder.master("local[2]")
        .appName("tamis tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(home / "warehouse"))
        .config("spark.local.dir", str(home / "local"))
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
