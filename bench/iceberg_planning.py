"""Claim: to plan over an Iceberg table takes a fraction of what PyIceberg takes, and no more than Java's own planner.

Ours counts from opening the table's folder to a finished plan, theirs from a loaded table (PyIceberg) or from loading
it (Java) to the last file of plan_files. Before that, the kept files are compared: with Java's they are the same, of
PyIceberg's they are a part, for it gives up on longer lists.

Python's garbage collector is on, as it is in the programs of both: without it PyIceberg takes 60 % of the time for
all files and for one column, and 90 % for the list; we take the same.

Java's figure is the best of five calls in a warm JVM with two threads, taken twice, before and after ours; its cold
one is a fresh JVM with one call, against a fresh Python that does the same; `tamis explain` is noted beside it.
"""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

from pyiceberg.table import DataScan, StaticTable

import tamis
from bench.harness import CACHE, Claim, best_of, in_turns, main, require
from bench.iceberg_tables.java import JavaPlan, java_files, java_plans
from bench.iceberg_tables.queries import FILTERS, WHERE
from bench.iceberg_tables.tables import java_table, newest_metadata, pyiceberg_table

Result = TypeVar("Result")
TITLES = {"all": "all files", "region": "one column", "in200": "200 ids", "day": "one day"}
GOALS = {"all": 30.0, "region": 30.0, "in200": 80.0}
ONE_ENTRY_GOALS = dict.fromkeys(GOALS, 5.0)
SMALL, LARGE = 50_000, 200_000
TAMIS = Path(sys.executable).with_name("tamis")
DECODED = CACHE / "decoded"
PROGRAM = """
import sys
from tamis.formats.lean import spare_pandas
spare_pandas()
import tamis
print(tamis.open(sys.argv[1]).plan(sys.argv[2] or None).stats.kept)
"""


def kept(location: Path, name: str, *, cache: bool = False) -> int:
    """Plan, and count the files kept."""
    return tamis.open(str(location), cache=cache).plan(WHERE[name]).stats.kept


def paths(location: Path, name: str, *, cache: bool = False) -> set[str]:
    """The paths of the files that we keep."""
    return set(tamis.open(str(location), cache=cache).plan(WHERE[name]).files["path"].to_pylist())


def _planned(scan: DataScan) -> list[str]:
    return [task.file.file_path for task in scan.plan_files()]


class Processor(Generic[Result]):
    """Work with the collector on, and the least processor time of its calls: what others do adds none to that."""

    def __init__(self, work: Callable[[], Result]) -> None:
        self._work = work
        self.least = float("inf")

    def __call__(self) -> Result:
        gc.enable()
        start = time.process_time()
        found = self._work()
        self.least = min(self.least, time.process_time() - start)
        return found


def against_pyiceberg(location: Path, files: int, kind: str, goals: dict[str, float]) -> list[Claim]:
    """Our planning and plan_files over one table. A round of the peer takes up to a minute: one has to do."""
    table = StaticTable.from_metadata(str(newest_metadata(location)))
    claims = []
    for name, goal in goals.items():
        our_work = Processor(partial(kept, location, name))
        their_work = Processor(partial(_planned, table.scan(row_filter=FILTERS[name])))
        before = best_of(our_work, 5)
        peer = best_of(their_work, 1, warm_up=False)
        after = best_of(our_work, 5)
        require(paths(location, name) <= set(peer.result), f"{kind}, {name}: we keep files that PyIceberg does not")
        processor = f"processor time {our_work.least:.3f} s and {their_work.least:.2f} s"
        claims.append(
            Claim(
                f"{kind}_{name}",
                f"{TITLES[name]} of {files:,}, {kind.replace('_', ' ')}",
                min(before.best, after.best),
                peer_name="PyIceberg",
                peer=peer.best,
                at_least=goal,
                notes=(f"{processor}: {their_work.least / our_work.least:.0f}x; {after.result:,} files kept",),
            )
        )
    return claims


def against_java(location: Path) -> list[Claim]:
    """Our planning without and with the cache, and Java's before and after it."""
    before = java_plans(location)
    claims = []
    figures: dict[str, tuple[float, float, int]] = {}
    for name in WHERE:
        plain, cached = (best_of(Processor(partial(kept, location, name, cache=cache)), 5) for cache in (False, True))
        found = java_files(location, name)
        require(paths(location, name) == found, f"{name}: we keep other files than Java")
        require(paths(location, name, cache=True) == found, f"{name}: the cache gives other files")
        figures[name] = (plain.best, cached.best, plain.result)
    java = {one.name: one for one in _best(before, java_plans(location))}
    for name, (plain_best, cached_best, files) in figures.items():
        require(java[name].files == files, f"{name}: Java counts {java[name].files} files, we {files}")
        warm = java[name].best_seconds
        for label, ours, goal in (("no cache", plain_best, 1.0), ("cached", cached_best, 3.0)):
            says = f"{TITLES[name]} of {LARGE:,}, {label}"
            claims.append(
                Claim(f"java_{name}_{label.split()[-1]}", says, ours, peer_name="warm Java", peer=warm, at_least=goal)
            )
    return claims


def _best(first: list[JavaPlan], second: list[JavaPlan]) -> list[JavaPlan]:
    return [min(pair, key=lambda one: one.best_seconds) for pair in zip(first, second, strict=True)]


def against_cold_java(location: Path) -> list[Claim]:
    """A process from its start to its end, that plans once without the cache: a Python and a JVM."""
    claims = []
    for name in ("all", "in200"):
        where = WHERE[name]
        program = [sys.executable, "-c", PROGRAM, str(location), where or ""]
        command = [str(TAMIS), "explain", str(location), *(["--where", where] if where else [])]
        ours, peer = in_turns(partial(_run, program), partial(java_plans, location, 0, name), 2, warm_up=False)
        explained = best_of(partial(_run, command), 2, warm_up=False)
        require(int(ours.result) == peer.result[0].files, f"{name}: a fresh process keeps other files than Java")
        says = f"{TITLES[name]} of {LARGE:,}, process start to result"
        notes = (f"tamis explain: {explained.best:.2f} s",)
        claims.append(
            Claim(f"cold_{name}", says, ours.best, peer_name="cold JVM", peer=peer.best, at_least=3.0, notes=notes)
        )
    return claims


def _run(command: list[str]) -> str:
    environment = {**os.environ, "TAMIS_CACHE": "off"}
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout


def run() -> list[Claim]:
    shutil.rmtree(DECODED, ignore_errors=True)
    os.environ["TAMIS_CACHE_DIR"] = str(DECODED)
    return [
        *against_pyiceberg(java_table(LARGE), LARGE, "Java's_manifests", GOALS),
        *against_pyiceberg(pyiceberg_table(SMALL), SMALL, "one-entry_blocks", ONE_ENTRY_GOALS),
        *against_java(java_table(LARGE)),
        *against_cold_java(java_table(LARGE)),
    ]


if __name__ == "__main__":
    main(run)
