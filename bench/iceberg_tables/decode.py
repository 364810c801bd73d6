"""Claim: manifests decode as fast as Java plans over them in a warm JVM, and many times faster than PyIceberg plans.

Decoding only, on two threads: no predicate is judged here. The peers' figures are their whole planning.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from pyiceberg.table import StaticTable

from bench.iceberg_tables.java import java_plans
from bench.iceberg_tables.queries import FILTERS
from bench.iceberg_tables.tables import java_table, newest_metadata, pyiceberg_table
from tamis.formats.iceberg.manifest_list import read_manifest_list
from tamis.formats.iceberg.manifests import live_manifests, read_data_files
from tamis.formats.iceberg.parsing import parse_metadata
from tamis.formats.storage.local import fetch_local

FIELDS: dict[str, tuple[int, ...]] = {"all": (), "region": (2,), "in200": (1,), "day": (3,)}


def decoded(location: Path, fields: tuple[int, ...], threads: int = 2) -> int:
    """Every live file, with statistics of these fields."""
    path = str(newest_metadata(location))
    metadata = parse_metadata(fetch_local(path), path)
    selection = metadata.select()
    assert selection.snapshot is not None
    manifests = live_manifests(read_manifest_list(selection.snapshot, fetch_local))
    wanted: dict[int, pa.DataType] = {id_: selection.schema.types[id_] for id_ in fields}
    return sum(len(batch) for batch in read_data_files(metadata, manifests, fetch_local, wanted, threads=threads))


def best(work: Callable[[], object], rounds: int) -> tuple[float, float]:
    """The least wall and CPU seconds."""
    found = []
    for _ in range(rounds):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        found.append((time.perf_counter() - wall, time.process_time() - cpu))
    return min(wall for wall, _ in found), min(cpu for _, cpu in found)


def main() -> None:
    files = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    peers = "--peers" in sys.argv
    java = {one.name: one for one in java_plans(java_table(files))} if peers else {}
    for location in (java_table(files), pyiceberg_table(files)):
        table = StaticTable.from_metadata(str(newest_metadata(location)))
        for name, fields in FIELDS.items():
            assert decoded(location, fields) == files
            wall, cpu = best(lambda: decoded(location, fields), 5)  # noqa: B023 - runs at once
            alone, _ = best(lambda: decoded(location, fields, 1), 3)  # noqa: B023 - runs at once
            line = f"{location.name} {name}: decode {wall:.3f} s (cpu {cpu:.3f}), one thread {alone:.3f} s"
            if peers:
                scan = table.scan(row_filter=FILTERS[name])
                theirs, _ = best(lambda: list(scan.plan_files()), 1)  # noqa: B023 - runs at once
                line += f"; PyIceberg {theirs:.2f} s ({theirs / wall:.0f}x)"
                one = java[name]
                line += f"; Java first {one.first_seconds:.2f} s, warm {one.best_seconds:.3f} s"
                line += f" ({one.best_seconds / wall:.1f}x)"
            print(line, flush=True)


if __name__ == "__main__":
    main()
