"""Tables of ORC and Avro, read by a Spark that has no connector and no Avro package.

A script: its last line of output is the rows of each table whose folder it is given, as JSON.
"""

from __future__ import annotations

import json
import sys

import tamis
from tamis.spark.second_way import has_reader
from tamis.spark.stores import Reach
from tests.making.clusters import open_session


def main(condition: str, *folders: str) -> None:
    spark = open_session()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    found = {}
    for folder in folders:
        plan = tamis.open(folder).plan(condition, spark=spark)
        rows = plan.read(spark, metadata_columns=["_pos"]).collect()
        found[folder] = sorted(map(str, rows))
    avro = next(one for one in tamis.open(folders[0]).plan().files["path"].to_pylist())
    print(json.dumps([has_reader(Reach(spark), avro), found]), flush=True)  # noqa: T201 - what the test reads
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
