"""Planning on executors whose Python lacks a package. A script: its last line of output is the error, as JSON."""

from __future__ import annotations

import json
import sys

import tamis
from tamis.errors import ExecutorError
from tests.making.clusters import open_session


def main(metadata: str) -> None:
    spark = open_session()
    found = ["", "no error", ""]
    try:
        tamis.open(metadata).plan(spark=spark, executors="always")
    except ExecutorError as error:
        found = [type(error).__name__, error.message, error.needs]
    print(json.dumps(found), flush=True)  # noqa: T201 - what the test reads
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
