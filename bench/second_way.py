"""Claim: ORC and Avro files that Spark's readers cannot read right are read as fast as by Iceberg's connector.

Tables of ten million rows in sixteen files, with a time with a zone and some rows deleted by position, written by the
connector. Both sides read in one local session of two threads and sum up the columns; the sums are compared.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import tamis
from bench.harness import Claim, in_turns, main, require
from tests.making.sparks import EXTENSIONS, PACKAGES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = int(os.environ.get("TAMIS_BENCH_ROWS", "10000000"))
FILES = 16
COLUMNS = "id bigint, at timestamp, s string, amount decimal(12, 2), f double, d date, k int, t string"
VALUES = (
    "id, timestamp_micros(1600000000000000 + id * 1000003), 'name ' || id % 1000, cast(id / 7 as decimal(12, 2)), "
    "id / 3, date_add(date'2000-01-01', cast(id % 9000 as int)), cast(id % 1000 as int), uuid()"
)
ALL = (
    "count(*)",
    "sum(id)",
    "sum(unix_micros(at) % 1000003)",
    "sum(octet_length(s))",
    "sum(amount)",
    "sum(cast(f as bigint))",
    "sum(unix_date(d))",
    "sum(k)",
    "sum(crc32(cast(t as binary)) % 1009)",
)
FEW = ("count(*)", "sum(id)", "sum(unix_micros(at) % 1000003)")


def run() -> list[Claim]:
    """All columns, and two of them, of ORC and of Avro files."""
    with tempfile.TemporaryDirectory(prefix="tamis-bench-") as folder, session(folder) as spark:
        claims = []
        for file_format in ("orc", "avro"):
            made = make(spark, folder, file_format)
            claims += [
                against_connector(spark, made, file_format, what, list(sums))
                for what, sums in (("all", ALL), ("two", FEW))
            ]
        return claims


@contextmanager
def session(folder: str) -> Iterator[SparkSession]:
    """A local session of two threads, with the connector in it."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "3g")
    settings = {
        "spark.jars.packages": ",".join(PACKAGES),
        "spark.sql.extensions": ",".join(EXTENSIONS),
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "hadoop",
        "spark.sql.catalog.ice.warehouse": folder,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        spark.stop()


def make(spark: SparkSession, folder: str, file_format: str) -> str:
    """The table's folder."""
    name = f"ice.db.{file_format}"
    spark.sql(
        f"create table {name} ({COLUMNS}) using iceberg tblproperties ('format-version' = '2', "
        f"'write.format.default' = '{file_format}', 'write.delete.mode' = 'merge-on-read')"
    )
    spark.sql(f"insert into {name} select {VALUES} from range(0, {ROWS}, 1, {FILES})")  # noqa: S608 - own names
    spark.sql(f"delete from {name} where id % 100003 = 7")  # noqa: S608 - own names
    return str(Path(folder, "db", file_format))


def against_connector(spark: SparkSession, folder: str, file_format: str, what: str, sums: list[str]) -> Claim:
    """From opening the table to the sums, both warm, in turns."""
    columns = ["id", "at"] if what == "two" else None

    def summed(rows: DataFrame) -> tuple[object, ...]:
        (row,) = rows.selectExpr(*sums).collect()
        return tuple(row)

    timed, peers = in_turns(
        lambda: summed(tamis.open(folder).plan().read(spark, columns=columns)),
        lambda: summed(spark.table(f"ice.db.{file_format}")),
        rounds=4,
    )
    require(timed.result == peers.result, "the connector's rows are others than ours")
    return Claim(
        f"second_way_{file_format}_{what}",
        f"read {ROWS:,} rows of {file_format.upper()} files with deletes by position, {what} columns",
        timed.best,
        peer_name="Iceberg's connector",
        peer=peers.best,
        at_least=1.0,
    )


if __name__ == "__main__":
    main(run)
