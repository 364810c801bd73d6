"""One plan over a table, here or on executors: how long it took, what it kept, and how much memory the driver had.

A script: its arguments are a metadata file, the name of a question, and "never" or "always", as plan's executors=.
Its last line of output is JSON. With "always" it opens its session as `tests.making.clusters` says.
"""

from __future__ import annotations

import hashlib
import json
import sys
from time import perf_counter

import tamis
from bench.harness import peak_memory
from bench.iceberg_tables.queries import WHERE
from tests.making.clusters import open_session


def main(metadata: str, question: str, executors: str) -> None:
    spark = open_session() if executors == "always" else None
    if spark is not None:
        spark.range(4).count()  # executors are there
    start = perf_counter()
    table = tamis.open(metadata, cache=False)
    if spark is None:
        plan = table.plan(WHERE[question])
    else:
        plan = table.plan(WHERE[question], spark=spark, executors="always")
    seconds = perf_counter() - start
    paths = plan.files["path"].to_pylist()
    found = {
        "seconds": seconds,
        "files": plan.stats.files,
        "kept": plan.stats.kept,
        "digest": hashlib.sha256("\n".join(paths).encode()).hexdigest(),
        "peak": peak_memory(),
    }
    print(json.dumps(found), flush=True)
    if spark is not None:
        spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
