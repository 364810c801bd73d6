"""Claim: `tamis explain` on a table of 10,000 files answers within a second, and within two the first time.

From the start of the process to its end. The first time the cache of decoded manifests is empty; the second time it
has what the first one left.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

from bench.harness import CACHE, Claim, best_of, main, require
from bench.iceberg_tables.java import java_files
from bench.iceberg_tables.queries import WHERE
from bench.iceberg_tables.tables import java_table

FILES = 10_000
TAMIS = Path(sys.executable).with_name("tamis")
DECODED = CACHE / "decoded"


def explain(name: str, *, fresh: bool) -> str:
    """What `tamis explain` prints."""
    if fresh:
        shutil.rmtree(DECODED, ignore_errors=True)
    command = [str(TAMIS), "explain", str(java_table(FILES)), "--where", str(WHERE[name]), "--json"]
    environment = {**os.environ, "TAMIS_CACHE_DIR": str(DECODED), "TAMIS_CACHE": "on"}
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout


def run() -> list[Claim]:
    claims = []
    for name in ("region", "in200"):
        first = best_of(partial(explain, name, fresh=True), 3)
        second = best_of(partial(explain, name, fresh=False), 5)
        count = len(java_files(java_table(FILES), name))
        require(f'"kept": {count}' in second.result, f"{name}: we do not keep the {count} files that Java keeps")
        for label, timing, goal in (("first run", first, 2.0), ("second run", second, 1.0)):
            says = f"tamis explain, {FILES:,} files ({name}), {label}"
            claims.append(Claim(f"explain_{name}_{label.split()[0]}", says, timing.best, at_most=goal))
    return claims


if __name__ == "__main__":
    main(run)
