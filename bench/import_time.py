"""Claim: `import tamis` takes less than 0.3 s, and loads neither PySpark, PyIceberg nor pypaimon.

Every run is a fresh process that times its own import, with bytecode compiled by an earlier run. The names of tamis
are loaded when they are first used, so a second figure, without a goal, uses them all. The peer is
`import pyiceberg.table`, what a program needs to plan with PyIceberg.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bench.harness import Claim, Timing, main, require

ROUNDS = 7
GOAL_SECONDS = 0.3
OURS = "import tamis"
ALL_NAMES = "import tamis; [getattr(tamis, name) for name in tamis.__all__]"
PEER = "import pyiceberg.table"
HEAVY = ("pyspark", "pyiceberg", "pypaimon", "py4j")


def run() -> list[Claim]:
    loaded = _loaded(ALL_NAMES)
    for package in HEAVY:
        require(package not in loaded, f"`{ALL_NAMES}` imports {package}: see python -X importtime")
    runs: dict[str, list[float]] = {OURS: [], ALL_NAMES: [], PEER: []}
    for code in runs:
        _seconds(code)  # compiles bytecode, fills the page cache
    for _ in range(ROUNDS):
        for code, seconds in runs.items():
            seconds.append(_seconds(code))
    ours, names, peer = (Timing(tuple(seconds), None) for seconds in runs.values())
    return [
        Claim(
            "import_time",
            "import tamis",
            ours.best,
            peer_name=PEER,
            peer=peer.best,
            at_most=GOAL_SECONDS,
            notes=(
                f"best of {ROUNDS} fresh processes; median {ours.median * 1000:.1f} ms, peer's {peer.median:.2f} s",
                f"python -X importtime: with every public name used, none of {', '.join(HEAVY)} is loaded",
            ),
        ),
        Claim(
            "import_every_name",
            "import tamis and use every public name",
            names.best,
            peer_name=PEER,
            peer=peer.best,
            notes=(f"best of {ROUNDS} fresh processes; median {names.median * 1000:.0f} ms",),
        ),
    ]


def _seconds(code: str) -> float:
    """How long the import takes in a fresh process, the start of Python itself not counted."""
    timed = f"from time import perf_counter; start = perf_counter(); {code}; print(perf_counter() - start)"
    return float(_python("-c", timed).stdout)


def _loaded(code: str) -> set[str]:
    """The top-level packages that Python itself reports as imported."""
    lines = _python("-X", "importtime", "-c", code).stderr.splitlines()
    # import time: self [us] | cumulative | imported package
    return {line.rsplit("|", 1)[1].strip().split(".")[0] for line in lines if line.startswith("import time:")}


def _python(*arguments: str) -> subprocess.CompletedProcess[str]:
    # -P: the folder in which the bench runs is no part of what is imported.
    command = [sys.executable, "-P", *arguments]
    return subprocess.run(command, cwd=Path(__file__).parent, check=True, capture_output=True, text=True)


if __name__ == "__main__":
    main(run)
