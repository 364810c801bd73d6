"""Claim: to open a Delta table and plan takes half of deltalake's time, at no more memory; an eighth when cached.

Ours counts from opening the table's folder to a finished plan, theirs from DeltaTable to the last of file_uris, both
in one process that has imported everything: "cold" means that nothing was read before, and no cache. Predicates are
the same on both sides, and so are the files that are kept. The second predicate is asked of a table that is open and
has answered another one. The cache is filled by two runs of the same plan, as by other processes. Memory is the most
that a fresh process had resident, with the same imports that a user has, for the same work.

Figures are processor time: deltalake works on several threads, and what else runs on the machine adds nothing to it.
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
from typing import NamedTuple

from deltalake import DeltaTable

import tamis
from bench.delta_tables.tables import TAIL, delta_table
from bench.harness import CACHE, HERE, Claim, main, require

SMALL, LARGE = 200_000, 1_000_000
DECODED = CACHE / "decoded"
SLACK = 0.75
"""Caches of the processor cost a large plan a little more for each file."""
ROUNDS = 2


class Query(NamedTuple):
    """A predicate as both sides spell it."""

    title: str
    ours: str | None
    theirs: str | None


ALL = Query("all files", None, None)
REGION = Query("one region", "region = 'us-east'", "region = 'us-east'")
TIMES = Query(
    "region and time",
    "region = 'eu-west' and ts >= timestamp '2024-03-01'",
    "region = 'eu-west' and ts >= '2024-03-01T00:00:00Z'",
)
CUSTOMERS = Query("region and customer", *["region = 'us-east' and customer < 100000"] * 2)
STATISTICS = Query("customer", *["customer < 100000"] * 2)
KINDS = {False: "JSON statistics", True: "statistics in columns"}
OURS = """
import sys
import tamis
from bench.harness import peak_memory
plan = tamis.open(sys.argv[1], cache=False).plan(sys.argv[2] or None)
print(plan.files.num_rows, peak_memory())
"""
THEIRS = """
import sys
from deltalake import DeltaTable
from bench.harness import peak_memory
print(len(DeltaTable(sys.argv[1]).file_uris(file_pruning_predicate=sys.argv[2] or None)), peak_memory())
"""


def planned(location: Path, query: Query, *, cache: bool = False) -> set[str]:
    """Open, plan, and take the paths."""
    return set(tamis.open(str(location), cache=cache).plan(query.ours).files["path"].to_pylist())


def ours(location: Path, query: Query, *, cache: bool = False) -> int:
    """Open and plan."""
    return tamis.open(str(location), cache=cache).plan(query.ours).stats.kept


def theirs(location: Path, query: Query) -> list[str]:
    """Load, and list the files."""
    return DeltaTable(str(location)).file_uris(file_pruning_predicate=query.theirs)


def processor(work: Callable[[], object]) -> float:
    """Processor time of one call, all threads included."""
    gc.collect()
    start = time.process_time()
    work()
    return time.process_time() - start


def least(first: Callable[[], object], second: Callable[[], object], rounds: int = ROUNDS) -> tuple[float, float]:
    """The least of each, in turns, after a round that is not counted."""
    first(), second()
    pairs = [(processor(first), processor(second)) for _ in range(rounds)]
    return min(one for one, _ in pairs), min(other for _, other in pairs)


def check_same(location: Path, query: Query) -> None:
    """Both keep the same files."""
    peer = {uri.removeprefix(f"{location}/") for uri in theirs(location, query)}
    require(planned(location, query) == peer, f"{location.name}, {query.title}: the files differ")


def cold(query: Query, *, parsed: bool, tail: bool = False) -> Claim:
    """Open and plan against load and file_uris."""
    location = delta_table(SMALL, parsed=parsed, tail=tail)
    check_same(location, query)
    mine, peer = least(partial(ours, location, query), partial(theirs, location, query))
    kind = KINDS[parsed] + (f", {TAIL:,} commits" if tail else "")
    says = f"{query.title} of {SMALL:,}, {kind}"
    return _claim(f"cold_{location.name}_{query.title.replace(' ', '_')}", says, mine, peer, 2.0)


def cached(query: Query, *, parsed: bool, tail: bool) -> Claim:
    """The same with the cache warm."""
    location = delta_table(SMALL, parsed=parsed, tail=tail)
    for _ in range(2):
        ours(location, query, cache=True)
    require(planned(location, query, cache=True) == planned(location, query), "the cache gives other files")
    mine, peer = least(partial(ours, location, query, cache=True), partial(theirs, location, query))
    kind = KINDS[parsed] + (f", {TAIL:,} commits" if tail else "")
    says = f"{query.title} of {SMALL:,}, {kind}, cached"
    return _claim(f"cached_{location.name}_{query.title.replace(' ', '_')}", says, mine, peer, 8.0)


def second(query: Query, *, parsed: bool) -> Claim:
    """Another predicate on an open table that has answered one."""
    location = delta_table(SMALL, parsed=parsed)
    figures: list[tuple[float, float]] = []
    for _ in range(ROUNDS):
        table, peer = tamis.open(str(location), cache=False), DeltaTable(str(location))
        table.plan(TIMES.ours)
        peer.file_uris(file_pruning_predicate=TIMES.theirs)
        mine = processor(lambda table=table: table.plan(query.ours))  # type: ignore[misc] # a default
        his = processor(lambda peer=peer: peer.file_uris(file_pruning_predicate=query.theirs))  # type: ignore[misc] # a default
        figures.append((mine, his))
    says = f"then {query.title} of {SMALL:,}, {KINDS[parsed]}"
    name = f"second_{location.name}_{query.title.replace(' ', '_')}"
    return _claim(name, says, min(one for one, _ in figures), min(other for _, other in figures), 1.0)


def memory(query: Query, *, parsed: bool) -> Claim:
    """The peaks of two fresh processes."""
    location = str(delta_table(SMALL, parsed=parsed))
    peaks = []
    for program, where in ((OURS, query.ours), (THEIRS, query.theirs)):
        command = [sys.executable, "-c", program, location, where or ""]
        said = subprocess.run(command, check=True, capture_output=True, text=True, cwd=HERE.parent).stdout.split()
        peaks.append((int(said[0]), int(said[1])))
    require(peaks[0][0] == peaks[1][0], "fresh processes keep other files")
    return Claim(
        f"memory_{'parsed' if parsed else 'json'}_{query.title.replace(' ', '_')}",
        f"peak memory, {query.title} of {SMALL:,}, {KINDS[parsed]}",
        peaks[0][1],
        unit="B",
        peer_name="deltalake",
        peer=peaks[1][1],
        at_least=1.0,
    )


def growth() -> list[Claim]:
    """A thousand files of a million against a thousand of the smaller table, and the million against the peer."""
    small, large = (delta_table(size, parsed=True) for size in (SMALL, LARGE))
    few = min(processor(partial(ours, small, TIMES)) for _ in range(ROUNDS))
    many, peer = least(partial(ours, large, TIMES), partial(theirs, large, TIMES), 1)
    each = Claim(
        "growth",
        f"a thousand of {LARGE:,} files ({TIMES.title})",
        many / LARGE * 1000,
        peer_name=f"of {SMALL:,}",
        peer=few / SMALL * 1000,
        at_least=SLACK,
        notes=(f"{SMALL:,} files: {few:.3f} s, {LARGE:,} files: {many:.3f} s",),
    )
    return [each, _claim("cold_million", f"{TIMES.title} of {LARGE:,}, {KINDS[True]}", many, peer, 2.0)]


def _claim(name: str, says: str, mine: float, peer: float, goal: float) -> Claim:
    return Claim(name, says, mine, peer_name="deltalake", peer=peer, at_least=goal)


def run() -> list[Claim]:
    shutil.rmtree(DECODED, ignore_errors=True)
    os.environ["TAMIS_CACHE_DIR"] = str(DECODED)
    claims = []
    for parsed in KINDS:
        claims += [cold(query, parsed=parsed) for query in (ALL, TIMES, *([] if parsed else [STATISTICS]))]
        claims += [cold(TIMES, parsed=parsed, tail=True)]
        claims += [cached(TIMES, parsed=parsed, tail=tail) for tail in (False, True)]
        claims += [second(query, parsed=parsed) for query in (REGION, CUSTOMERS)]
        claims += [memory(STATISTICS, parsed=parsed)]
    shutil.rmtree(DECODED, ignore_errors=True)
    return [*claims, *growth()]


if __name__ == "__main__":
    main(run)
