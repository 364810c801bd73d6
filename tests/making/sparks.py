"""One Spark for the whole run, with the vendors' connectors in it where they can be had.

A JVM holds one SparkContext, and the jars of a connector must be there when it starts. So every suite takes the same
session, which always asks for them; without them (no network, no cache) it starts plain, and `missing` says why.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.engines.servers import Unavailable, jars_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Started", "spark", "started_spark"]

PACKAGES: Final = (
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
    "io.delta:delta-spark_4.1_2.13:4.4.0",
    "org.apache.spark:spark-avro_2.13:4.1.1",  # Avro data files; not every release of Spark's is to be had
    "org.xerial:sqlite-jdbc:3.53.4.0",  # the JDBC catalog on SQLite
    "org.postgresql:postgresql:42.7.8",  # and on PostgreSQL
)
"""Resolved by Spark itself, and kept in its Ivy cache."""
EXTENSIONS: Final = (
    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "io.delta.sql.DeltaSparkSessionExtension",
)
DELTA_CATALOG: Final = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
"""In the place of Spark's own catalog: it hands on whatever is no Delta table."""


@dataclass(frozen=True, slots=True)
class Started:
    """The session of this run, and why the connectors are not in it; None if they are."""

    session: SparkSession
    missing: str | None
    storeless: str | None = None
    """Why Hadoop's client for S3 is not in it; None if it is."""


@pytest.fixture(scope="session")
def started_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    """The one session. A conftest that imports this fixture shares it with every other that does."""
    pytest.importorskip("pyspark.sql", reason="PySpark is not installed")
    found = _start(tmp_path_factory.getbasetemp() / "spark")
    yield found
    found.session.stop()


@pytest.fixture(scope="session")
def spark(started_spark: Started) -> SparkSession:
    """A local session with Spark's own defaults (ANSI, adaptive execution), small and quiet."""
    return started_spark.session


@cache
def _start(home: Path) -> Started:
    """Start it, if need be a second time without connectors. All that the JVM prints goes to a file in home."""
    os.environ["PYSPARK_PYTHON"] = sys.executable  # workers must not pick another Python, without pyarrow
    home.mkdir(exist_ok=True)
    log = home / "jvm.log"
    try:
        with _printing_to(log):
            session, storeless = _session(home, connectors=True)
            return Started(session, None, storeless)
    except Exception as error:
        # Ivy ends the JVM when it cannot resolve: pyspark only sees that there is no gateway. The log has the reason.
        missing = _unresolved(log)
        if missing is None:
            raise RuntimeError(f"Spark does not start ({error}); its output is in {log}") from error
        _close_pipes(error)
    with _printing_to(log):
        session, storeless = _session(home, connectors=False)
        return Started(session, f"Spark cannot resolve {missing}; see {log}", storeless)


def _session(home: Path, *, connectors: bool) -> tuple[SparkSession, str | None]:
    from pyspark.sql import SparkSession

    jars, storeless = _store_jars()

    builder = (
        SparkSession.builder.master("local[2]")
        .appName("tamis tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(home / "warehouse"))
        .config("spark.local.dir", str(home / "local"))
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
    )
    if jars:
        builder = builder.config("spark.jars", ",".join(jars))
    if connectors:
        builder = builder.config("spark.jars.packages", ",".join(PACKAGES))
        builder = builder.config("spark.sql.extensions", ",".join(EXTENSIONS))
        builder = builder.config("spark.sql.catalog.spark_catalog", DELTA_CATALOG)
        # Delta replays its log in 50 tasks by default, which is slow for logs of a few lines.
        builder = builder.config("spark.databricks.delta.snapshotPartitions", "1")
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session, storeless


def _store_jars() -> tuple[list[str], str | None]:
    """Hadoop's client for S3 and what it needs, as the pom names it; or why it cannot be had."""
    try:
        return sorted(map(str, jars_of("hadoop-aws").glob("*.jar"))), None
    except Unavailable as reason:
        return [], str(reason)


def _close_pipes(error: BaseException) -> None:
    """Close what pyspark leaves open of a JVM that ended: found later, it would be a warning in some other test."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        process = frame.f_locals.get("proc")
        if isinstance(process, subprocess.Popen):
            process.communicate()


def _unresolved(log: Path) -> str | None:
    """The first artifact that Ivy did not find; None if the JVM ended for another reason."""
    found = re.search(r"^\s*:: (\S+#\S+): (?:not found|.*failed)", log.read_text(errors="replace"), re.MULTILINE)
    return found and found[1]


@contextmanager
def _printing_to(log: Path) -> Iterator[None]:
    """Send what this process, and the JVM that it starts meanwhile, prints to a file.

    The JVM inherits the descriptors and keeps them: the resolver's page about unreachable repositories, and every
    later warning, stay out of the tests' output.
    """
    kept = [os.dup(descriptor) for descriptor in (1, 2)]
    with log.open("ab") as file:
        try:
            for descriptor in (1, 2):
                os.dup2(file.fileno(), descriptor)
            yield
        finally:
            for descriptor, old in zip((1, 2), kept, strict=True):
                os.dup2(old, descriptor)
                os.close(old)
