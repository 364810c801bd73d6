"""A table in a store, read through a Connect server by a client without a JVM, with what its catalog gives.

A script: its argument are the catalog's properties as JSON, its last line of output is JSON.
"""

from __future__ import annotations

import json
import sys

import tamis
from tamis.errors import SparkStorageError
from tamis.spark.planning import NOTE
from tamis.spark.stores import REDACTED, REDACTION
from tests.making.clusters import open_session


def main(properties: str) -> None:
    spark = open_session()
    table = tamis.open("db.events", catalog=json.loads(properties))
    try:
        refused = str(table.plan().read(spark, storage="catalog"))
    except SparkStorageError as error:
        refused = str(error)
    spark.conf.set(REDACTION, REDACTED)
    other = spark.createDataFrame([(3, "three"), (20, "twenty"), (99, "none")], "id bigint, word string")
    plan = table.plan(spark=spark, executors="always", storage="catalog")
    found = {
        "refused": refused,
        "rows": plan.read(spark).count(),
        "joined": table.join(other, "id", storage="catalog").count(),
        "planned": NOTE in plan.stats.notes,
    }
    print(json.dumps(found), flush=True)  # noqa: T201 - what the test reads
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
