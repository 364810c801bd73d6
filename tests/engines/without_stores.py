"""What users are told on a Spark that has no client for any store: the error of each kind of work on a table in S3.

A script: its argument are the catalog's properties as JSON, its last line of output is JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import tamis
from tamis.errors import SparkStorageError
from tests.making.clusters import open_session


def main(properties: str) -> None:
    spark = open_session()
    table = tamis.open("db.events", catalog=json.loads(properties))
    other = spark.createDataFrame([(3, "three")], "id bigint, word string")
    work: dict[str, Callable[[], object]] = {
        "read": lambda: table.plan().read(spark),
        "handed": lambda: table.plan().read(spark, storage="catalog"),
        "join": lambda: table.join(other, "id"),
        "planned": lambda: table.plan(spark=spark, executors="always"),
        "delta": lambda: tamis.open("s3://lake/bare").plan().read(spark),
    }
    found = {name: told(one) for name, one in work.items()}
    notes = table.plan(spark=spark).stats.notes
    print(json.dumps({"told": found, "notes": list(notes)}), flush=True)  # noqa: T201 - what the test reads
    spark.stop()


def told(work: Callable[[], object]) -> object:
    try:
        work()
    except SparkStorageError as error:
        return [str(error), error.scheme, error.package, error.path]
    return None


if __name__ == "__main__":
    main(sys.argv[1])
