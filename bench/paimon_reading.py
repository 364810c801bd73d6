"""Claim: a primary-key table is merged on Spark at least as fast as Java's core merges it, and faster than pypaimon.

Five million rows in eight buckets, with files at three levels. Java reads it in one process with two threads, and is
warm: its first reads are not counted. Ours is a local session with two cores, from opening the table's folder to the
result. All sides sum up every column, and the sums are compared.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import tamis
from bench.harness import Claim, best_of, in_turns, main, require
from bench.paimon_reads.tables import TABLE, WAREHOUSE, make
from tests.engines.paimon_engine import java_classpath

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Sums = tuple[int, ...]
SUMS = (
    "count(*)",
    "sum(id)",
    "sum(octet_length(name))",
    "sum(cast(amount as bigint))",
    "sum(qty)",
    "sum(unix_millis(cast(ts as timestamp)) % 1000)",
)


def run() -> list[Claim]:
    """Ours against Java's core, then against pypaimon."""
    folder = str(make())
    with session() as spark, java() as theirs:
        return [against_java(spark, folder, theirs), against_pypaimon(spark, folder)]


@contextmanager
def session() -> Iterator[SparkSession]:
    """A local session of two threads."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "2g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        spark.stop()


def read(spark: SparkSession, folder: str) -> Sums:
    """The sums, by tamis and Spark."""
    (row,) = tamis.open(folder).plan().read(spark).selectExpr(*SUMS).collect()
    return tuple(row)


def against_java(spark: SparkSession, folder: str, theirs: Callable[[], Sums]) -> Claim:
    """Both warm, in turns."""
    theirs()
    timed, peers = in_turns(lambda: read(spark, folder), theirs, rounds=5)
    require(timed.result == peers.result, "Java's rows are others than ours")
    return Claim(
        "merge_java",
        "read a primary-key table of 5,000,000 rows, 8 buckets, 3 levels",
        timed.best,
        peer_name="Java's core, two threads",
        peer=peers.best,
        at_least=1.0,
        notes=(f"median {timed.median:.2f} s and {peers.median:.2f} s",),
    )


def against_pypaimon(spark: SparkSession, folder: str) -> Claim:
    """Its to_arrow gives a table; that is not summed up."""
    from pypaimon import CatalogFactory

    table = CatalogFactory.create({"warehouse": WAREHOUSE.as_uri()}).get_table(f"db.{TABLE}")

    def peer() -> int:
        builder = table.new_read_builder()
        return int(builder.new_read().to_arrow(builder.new_scan().plan().splits()).num_rows)

    timed = best_of(lambda: read(spark, folder), rounds=3)
    peers = best_of(peer, rounds=1, warm_up=False)
    require(timed.result[0] == peers.result, "pypaimon has another number of rows")
    return Claim(
        "merge_pypaimon",
        "the same against pypaimon's to_arrow",
        timed.best,
        peer_name="pypaimon",
        peer=peers.best,
        at_least=3.0,
    )


@contextmanager
def java() -> Iterator[Callable[[], Sums]]:
    """Java's core in a process of its own, which reads when it is asked."""
    classpath = java_classpath()
    source = Path(__file__).parent / "paimon_reads" / "PaimonReads.java"
    with tempfile.TemporaryDirectory() as work:
        subprocess.run(["javac", "-nowarn", "-d", work, "-cp", classpath, str(source)], check=True)
        command = ["java", "-Xmx2g", "-cp", os.pathsep.join([work, classpath]), "PaimonReads"]
        process = subprocess.Popen(
            [*command, WAREHOUSE.as_uri(), TABLE, work],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

        def ask() -> Sums:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write("read\n")
            process.stdin.flush()
            for line in process.stdout:
                if line.startswith("found "):
                    return tuple(map(int, line.split()[1:]))
            raise RuntimeError("Paimon's core ended")

        with process:
            try:
                yield ask
            finally:
                process.terminate()


if __name__ == "__main__":
    main(run)
