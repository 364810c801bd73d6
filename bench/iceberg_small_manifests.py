"""Claim: very many small manifests are planned over fast, faster with the cache, and little slower as it fills.

50,000 manifests of one file each, as frequent commits leave them behind. The peer of the cache is ourselves without
it; processor time is compared, for files are written. PyIceberg plans over 1,000 of them, against ourselves over the
same.
"""

from __future__ import annotations

import os
import shutil
import time

from pyiceberg.expressions import EqualTo
from pyiceberg.table import StaticTable

import tamis
from bench.harness import CACHE, Claim, best_of, main, require
from bench.iceberg_tables.small import small_manifests

MANY, FEW = 50_000, 1_000
WHERE = "id = 5"
DECODED = CACHE / "decoded"
ROUNDS = 3


def planned(count: int, *, cache: bool) -> list[str]:
    """The files that a plan keeps."""
    return tamis.open(str(small_manifests(count)), cache=cache).plan(WHERE).files["path"].to_pylist()


def processor(*, cache: bool) -> tuple[float, list[str]]:
    """Processor seconds of a plan over all, and what it keeps."""
    start = time.process_time()
    found = planned(MANY, cache=cache)
    return time.process_time() - start, found


def with_and_without() -> list[Claim]:
    """In turns: without the cache, while it is filled, and from it."""
    without, cold, warm = [], [], []
    processor(cache=False)
    for _ in range(ROUNDS):
        shutil.rmtree(DECODED, ignore_errors=True)
        results = [processor(cache=cache) for cache in (False, True, True)]
        require(all(found == results[0][1] for _, found in results), "the cache gives other files")
        for figures, (seconds, _) in zip((without, cold, warm), results, strict=True):
            figures.append(seconds)
    shutil.rmtree(DECODED, ignore_errors=True)
    peer = min(without)
    says = f"one file of {MANY:,} manifests, "
    return [
        Claim("small_cached", says + "cached", min(warm), peer_name="no cache", peer=peer, at_least=1.3),
        Claim("small_filling", says + "filling the cache", min(cold), peer_name="no cache", peer=peer, at_least=0.75),
    ]


def against_pyiceberg() -> Claim:
    """Both over the same few."""
    metadata = small_manifests(FEW) / "metadata" / "v1.metadata.json"
    scan = StaticTable.from_metadata(str(metadata)).scan(row_filter=EqualTo("id", 5))
    ours = best_of(lambda: planned(FEW, cache=False), 5)
    peer = best_of(lambda: [task.file.file_path for task in scan.plan_files()], 1, warm_up=False)
    require(ours.result == peer.result, "we keep other files than PyIceberg")
    says = f"one file of {FEW:,} manifests, no cache"
    return Claim("small_pyiceberg", says, ours.best, peer_name="PyIceberg", peer=peer.best, at_least=5.0)


def run() -> list[Claim]:
    os.environ["TAMIS_CACHE_DIR"] = str(DECODED)
    return [*with_and_without(), against_pyiceberg()]


if __name__ == "__main__":
    main(run)
