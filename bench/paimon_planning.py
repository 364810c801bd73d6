"""Claim: to plan over a Paimon table takes a small part of what pypaimon takes, and no more than its planner in Rust.

Ours counts from opening the table's folder to a finished plan, theirs from a loaded table to the last of its splits.
The kept files are compared: ours are among those of the peer, and hold every file that can match by the rules of the
table. pypaimon is asked on 50,000 files alone, where its plan of all files takes seconds; the larger
table is for the planner in Rust, and for growth.

A join's keys choose buckets: none of the peers does that. It is shown how many buckets a thousand keys leave.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pypaimon import CatalogFactory

import tamis
from bench.harness import CACHE, Claim, best_of, main, require
from bench.paimon_metadata.tables import DAYS, day_of, made_table
from tamis.formats.paimon.bucket_keys import KeyType, Root
from tamis.formats.paimon.hashing import DefaultHash
from tamis.sieve.order import encode

SMALL, LARGE = 50_000, 500_000
BUCKETS = 64
DAY, KEY, VALUE = day_of(7), 4711, 123_456
SLACK = 0.75
"""Caches of the processor and the collector cost a large plan a little more for each file."""
WHERE = {
    "all": None,
    "value": f"e = {VALUE}",
    "dt": f"dt = '{DAY}'",
    "key": f"id = {KEY}",
    "dt_key": f"dt = '{DAY}' and id = {KEY}",
}
TITLES = {
    "all": "all files",
    "value": "a value",
    "dt": "a partition",
    "key": "a key",
    "dt_key": "a partition and a key",
}


def names(location: Path, name: str) -> set[str]:
    """The files that we keep."""
    return {path.rpartition("/")[2] for path in tamis.open(str(location)).plan(WHERE[name]).files["path"].to_pylist()}


def kept(location: Path, name: str) -> int:
    """Plan, and count the files kept."""
    return tamis.open(str(location), cache=False).plan(WHERE[name]).stats.kept


def can_match(files: int, name: str) -> set[int]:
    """The files that hold a match by the rules of the table, a key's among them by its bucket."""
    found = range(files)
    bucket = _bucket(KEY)
    if "dt" in name:
        found = range(7, files, DAYS)
    if name == "value":
        return {VALUE // 10}
    return {number for number in found if "key" not in name or number // DAYS % BUCKETS == bucket}


def _bucket(key: int) -> int:
    by = DefaultHash((KeyType(Root.BIGINT),))
    found = by.buckets([encode(pa.array([key], pa.int64()), pa.int64())], [pa.int64()], BUCKETS)
    assert not isinstance(found, str)
    return int(found[0])


class Peer:
    """A table that pypaimon has loaded, and its scans."""

    def __init__(self, location: Path, *, rust: bool) -> None:
        catalog = CatalogFactory.create({"warehouse": str(location.parent.parent)})
        table = catalog.get_table(f"db.{location.name}")
        self.table = table.copy({"scan.native-plan.enabled": "true"}) if rust else table

    def splits(self, name: str) -> list[Any]:
        """All splits of a scan."""
        builder = self.table.new_read_builder()
        made = builder.new_predicate_builder()
        parts = {"value": ("e", VALUE), "dt": ("dt", DAY), "key": ("id", KEY)}
        wanted = [made.equal(*parts[part]) for part in parts if part in name]
        if wanted:
            builder = builder.with_filter(wanted[0] if len(wanted) == 1 else made.and_predicates(wanted))
        return list(builder.new_scan().plan().splits())


def _names(splits: list[Any]) -> set[str]:
    return {file.file_name for split in splits for file in split.files}


def processor(work: Callable[[], object]) -> float:
    """Processor time of one call: what others do on the machine adds none to that."""
    gc.collect()
    start = time.process_time()
    work()
    return time.process_time() - start


def against(location: Path, files: int, kind: str, rust: bool, goals: dict[str, float]) -> list[Claim]:  # noqa: FBT001 - which peer
    """Our planning and the peer's over one table."""
    peer = Peer(location, rust=rust)
    peer_name = "pypaimon in Rust" if rust else "pypaimon"
    claims = []
    for name, goal in goals.items():
        before = best_of(partial(kept, location, name), 3)
        theirs = best_of(partial(peer.splits, name), 3 if rust else 1, warm_up=rust)
        after = best_of(partial(kept, location, name), 3)
        ours = names(location, name)
        require(ours <= _names(theirs.result), f"{kind}, {name}: we keep files that {peer_name} does not")
        numbers = {int(text.split("-")[5]) for text in ours}
        require(can_match(files, name) <= numbers, f"{kind}, {name}: we drop files that can match")
        theirs_kept = len(_names(theirs.result))
        used = processor(partial(kept, location, name))
        claims.append(
            Claim(
                f"{kind}_{name}_{'rust' if rust else 'python'}_{files}",
                f"{TITLES[name]} of {files:,}, {kind} table",
                min(before.best, after.best),
                peer_name=peer_name,
                peer=theirs.best,
                at_least=goal,
                notes=(f"{len(ours):,} files kept, {theirs_kept:,} by the peer; our processor time {used:.3f} s",),
            )
        )
    return claims


def growth(name: str) -> Claim:
    """Seconds for a thousand files, at the larger size and at the smaller."""
    seconds = {
        files: best_of(partial(kept, made_table(files, BUCKETS, keys=False), name), 3).best
        for files in (SMALL, LARGE)
    }
    small, large = (seconds[files] / files * 1000 for files in (SMALL, LARGE))
    figures = ", ".join(f"{files:,} files: {took:.3f} s" for files, took in seconds.items())
    says = f"a thousand of {LARGE:,} files ({TITLES[name]})"
    return Claim(
        f"growth_{name}", says, large, peer_name=f"of {SMALL:,}", peer=small, at_least=SLACK, notes=(figures,)
    )


def joined() -> Claim:
    """The buckets that a thousand keys of a few buckets leave."""
    location = made_table(SMALL, BUCKETS, keys=False)
    many = pa.array(range(100_000), pa.int64())
    placed = DefaultHash((KeyType(Root.BIGINT),)).buckets([encode(many, pa.int64())], [pa.int64()], BUCKETS)
    assert not isinstance(placed, str)
    chosen = [int(key) for key, bucket in enumerate(placed) if bucket in (3, 17, 40)][:1000]
    keys = tamis.RuntimeFilter.of("id", pa.array(chosen, pa.int64()))

    def planned() -> set[int]:
        plan = tamis.open(str(location), cache=False).plan(runtime_filters=[keys])
        return set(plan.files["bucket"].to_pylist())

    timing = best_of(planned, 3)
    require(timing.result == {3, 17, 40}, f"buckets {sorted(timing.result)} are opened")
    says = f"join with 1,000 keys: buckets opened of {BUCKETS}"
    note = f"the keys lie in 3 buckets; the plan takes {timing.best:.3f} s"
    return Claim("join_buckets", says, len(timing.result), unit="buckets", at_most=3, notes=(note,))


def run() -> list[Claim]:
    os.environ["TAMIS_CACHE_DIR"] = str(CACHE / "decoded")
    append, keyed = (made_table(SMALL, BUCKETS, keys=keys) for keys in (False, True))
    large = made_table(LARGE, BUCKETS, keys=False)
    pruned = {"dt": 1.0, "key": 1.0, "dt_key": 1.0}
    return [
        *against(append, SMALL, "append", False, {"all": 20.0, "value": 20.0}),  # noqa: FBT003 - which peer
        *against(keyed, SMALL, "primary-key", False, {"all": 20.0, "value": 20.0}),  # noqa: FBT003 - as above
        *against(append, SMALL, "append", True, pruned),  # noqa: FBT003 - as above
        *against(keyed, SMALL, "primary-key", True, pruned),  # noqa: FBT003 - as above
        *against(large, LARGE, "append", True, {"dt_key": 1.0}),  # noqa: FBT003 - as above
        growth("all"),
        growth("value"),
        joined(),
    ]


if __name__ == "__main__":
    main(run)
