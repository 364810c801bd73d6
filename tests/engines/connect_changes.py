"""Changes of a table in a store, through a Connect server, with the access that its catalog gives.

A script: its argument are the catalog's properties as JSON, its last line of output is JSON.
"""

from __future__ import annotations

import json
import sys

import tamis
from tamis.spark.stores import REDACTED, REDACTION
from tests.making.clusters import open_session


def main(properties: str) -> None:
    spark = open_session()
    spark.conf.set(REDACTION, REDACTED)
    rows = spark.createDataFrame([(40, "a"), (41, "b")], "id long, name string")
    appended = tamis.open("db.served", catalog=json.loads(properties)).append(rows, storage="catalog")
    deleted = appended.table.delete("id = 3", spark=spark, storage="catalog")
    updated = deleted.table.update({"name": "'u'"}, where="id in (5, 20, 41)", spark=spark, storage="catalog")
    left = updated.table.plan().read(spark, storage="catalog").count()
    found = {"appended": appended.rows, "updated": updated.rows, "left": left}
    print(json.dumps(found), flush=True)  # noqa: T201 - what the test reads
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
