"""Claim: planned on the executors of a standalone cluster, a table of 5,000,000 files has the plan of one process.

Two workers with a core each, on this machine, against one process: each a fresh driver, opening included, without a
cache of decoded metadata. On one machine there is nothing to gain but memory of the driver, which is what executors
are for: its peak is compared, the files that it lists at the end included. The plans' files are the same, in order.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Final

from bench.harness import Claim, main, require
from bench.iceberg_tables import planned
from bench.iceberg_tables.tables import java_table, newest_metadata
from tests.making.clusters import Cluster, cluster
from tests.making.clusters import run as run_script

FILES: Final = int(os.environ.get("TAMIS_BENCH_CLUSTER_FILES", "5000000"))
QUESTION: Final = "in200"
SCRIPT: Final = Path(planned.__file__)
PATIENCE: Final = 3600.0


def run() -> list[Claim]:
    metadata = str(newest_metadata(java_table(FILES)))
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        here = run_script(Cluster("alone", home), SCRIPT, metadata, QUESTION, "never", timeout=PATIENCE)
        with cluster("standalone", home / "standalone") as workers:
            there = run_script(workers, SCRIPT, metadata, QUESTION, "always", timeout=PATIENCE)
    require(here["files"] == there["files"] == FILES, "files are missing")
    require(here["digest"] == there["digest"], "the plans differ")
    notes = (f"{here['kept']:,} of {FILES:,} files are kept by both",)
    return [
        Claim(
            "cluster-planning-time",
            f"plan over {FILES:,} files on two workers",
            there["seconds"],
            peer_name="one process",
            peer=here["seconds"],
            notes=notes,
        ),
        Claim(
            "cluster-planning-memory",
            "the driver's peak memory",
            there["peak"],
            unit="B",
            peer_name="one process",
            peer=here["peak"],
            at_least=1.0,
        ),
    ]


if __name__ == "__main__":
    main(run)
