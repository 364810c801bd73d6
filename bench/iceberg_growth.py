"""Claim: the time to plan grows with the number of files and not faster, and a million files need less than 1.5 GB.

Time: seconds for each thousand files at a million, against the same at 50,000, both without the cache. There is no
peer but ourselves on the smaller table. Memory: the most that a fresh process had resident, from its start until the
table of kept files is made, for a plan that keeps them all and for one that drops most.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import partial

import tamis
from bench.harness import CACHE, HERE, Claim, best_of, main, require
from bench.iceberg_tables.queries import WHERE
from bench.iceberg_tables.tables import java_table
from tamis.sieve.plan import ScanPlan

SIZES = (50_000, 200_000, 1_000_000)
SLACK = 0.75
"""Caches of the processor and the collector cost a large plan a little more for each file."""
MOST = 1_500_000_000
DECODED = CACHE / "decoded"
SCRIPT = """
import sys
import tamis
from bench.harness import peak_memory
plan = tamis.open(sys.argv[1], cache=sys.argv[2] == "True").plan(sys.argv[3] or None)
files = plan.files
print(files.num_rows, peak_memory())
"""


def planned(location: str, name: str) -> ScanPlan:
    """A plan without the cache."""
    return tamis.open(location, cache=False).plan(WHERE[name])


def growth(name: str) -> Claim:
    """Seconds for a thousand files, at the largest size and at the smallest."""
    seconds = {}
    for size in SIZES:
        location = str(java_table(size))
        timing = best_of(partial(planned, location, name), 3)
        require(timing.result.stats.files == size, f"{location}: {timing.result.stats.files} files")
        seconds[size] = timing.best
    each = {size: took / size * 1000 for size, took in seconds.items()}
    figures = ", ".join(f"{size:,} files: {took:.3f} s" for size, took in seconds.items())
    return Claim(
        f"growth_{name}",
        f"a thousand of {SIZES[-1]:,} files ({name})",
        each[SIZES[-1]],
        peer_name=f"of {SIZES[0]:,}",
        peer=each[SIZES[0]],
        at_least=SLACK,
        notes=(figures,),
    )


def memory(name: str, *, cache: bool) -> Claim:
    """The peak of a fresh process that plans over the largest table."""
    arguments = [str(java_table(SIZES[-1])), str(cache), WHERE[name] or ""]
    command = [sys.executable, "-c", SCRIPT, *arguments]
    said = subprocess.run(command, check=True, capture_output=True, text=True, cwd=HERE.parent).stdout.split()
    rows, peak = int(said[0]), int(said[1])
    require(rows == SIZES[-1] or name != "all", f"{rows} files, not {SIZES[-1]}")
    kind = "cached" if cache else "uncached"
    says = f"peak memory, {SIZES[-1]:,} files ({name}, {kind})"
    return Claim(f"memory_{name}_{kind}", says, peak, unit="B", at_most=MOST)


def run() -> list[Claim]:
    shutil.rmtree(DECODED, ignore_errors=True)
    os.environ["TAMIS_CACHE_DIR"] = str(DECODED)
    memories = []
    for name in ("all", "in200"):
        memories.append(memory(name, cache=False))
        # The first run with a cache writes it, the second one maps it: the greater of the two counts.
        memories.append(max((memory(name, cache=True) for _ in range(2)), key=lambda claim: claim.ours))
    shutil.rmtree(DECODED, ignore_errors=True)
    return [*(growth(name) for name in ("all", "region", "in200")), *memories]


if __name__ == "__main__":
    main(run)
