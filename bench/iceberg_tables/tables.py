"""The tables themselves, made on first use and kept under bench/.cache.

Twelve columns with bounds, three specs with a third of the files each (day; day and region; month and bucket), in
manifests of 5,000 files. Every run makes the same table.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from pyiceberg.io import load_file_io
from pyiceberg.manifest import ManifestFile, read_manifest_list, write_manifest, write_manifest_list
from pyiceberg.table import StaticTable

from bench.iceberg_tables.java import CACHE, run_java

__all__ = ["java_table", "newest_metadata", "pyiceberg_table", "table_with_deletes"]

FILES_PER_MANIFEST = 5000


def java_table(files: int, version: int = 2) -> Path:
    """A table of so many files as Java writes it: Avro blocks of 64 KB, deflate."""
    location = CACHE / f"java-v{version}-{files}"
    if not (location / "done").exists():
        shutil.rmtree(location, ignore_errors=True)
        location.parent.mkdir(parents=True, exist_ok=True)
        run_java("make", str(location), str(files), str(FILES_PER_MANIFEST), str(version))
        (location / "done").touch()
    return location


def table_with_deletes(files: int, version: int = 2) -> Path:
    """Files in three specs with some 20,000 partitions, and a position delete file for every tenth of them."""
    location = CACHE / f"deletes-v{version}-{files}"
    if not (location / "done").exists():
        shutil.rmtree(location, ignore_errors=True)
        location.parent.mkdir(parents=True, exist_ok=True)
        run_java("deletes", str(location), str(files), str(FILES_PER_MANIFEST), str(version))
        (location / "done").touch()
    return location


def pyiceberg_table(files: int) -> Path:
    """The same files in manifests that PyIceberg wrote: one entry an Avro block."""
    location = CACHE / f"pyiceberg-{files}"
    if not (location / "done").exists():
        shutil.rmtree(location, ignore_errors=True)
        (location / "metadata").mkdir(parents=True)
        _rewrite(java_table(files), location)
        (location / "done").touch()
    return location


def newest_metadata(location: Path) -> Path:
    """The metadata file of the table's newest version."""
    return max((location / "metadata").glob("v*.metadata.json"), key=lambda path: int(path.name.split(".")[0][1:]))


def _rewrite(source: Path, location: Path) -> None:
    metadata = newest_metadata(source)
    document = json.loads(metadata.read_text(encoding="utf-8"))
    current = document["current-snapshot-id"]
    snapshot = next(one for one in document["snapshots"] if one["snapshot-id"] == current)
    io = load_file_io({})
    manifests = list(read_manifest_list(io.new_input(snapshot["manifest-list"])))
    with ProcessPoolExecutor(2) as pool:
        paths = [str(location / "metadata" / f"m{place}.avro") for place in range(len(manifests))]
        copied = list(pool.map(partial(_copy_manifest, str(metadata)), range(len(manifests)), paths))
    listed = str(location / "metadata" / f"snap-{current}.avro")
    arguments = (current, None, snapshot["sequence-number"], "deflate")
    with write_manifest_list(2, io.new_output(listed), *arguments) as writer:
        writer.add_manifests(copied)
    snapshot["manifest-list"] = listed
    snapshot.pop("parent-snapshot-id", None)
    document |= {"location": str(location), "snapshots": [snapshot], "snapshot-log": [], "metadata-log": []}
    target = location / "metadata" / "v1.metadata.json"
    target.write_text(json.dumps(document), encoding="utf-8")


def _copy_manifest(metadata: str, place: int, path: str) -> ManifestFile:
    table = StaticTable.from_metadata(metadata)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    manifest = snapshot.manifests(table.io)[place]
    spec = table.specs()[manifest.partition_spec_id]
    output = table.io.new_output(path)
    with write_manifest(2, spec, table.schema(), output, snapshot.snapshot_id, "deflate") as writer:
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
            writer.existing(entry)
    return writer.to_manifest_file()


def main() -> None:
    for files in [int(text) for text in sys.argv[1:]] or [50_000, 200_000]:
        for make in (java_table, pyiceberg_table):
            start = time.perf_counter()
            location = make(files)
            print(f"{location}: {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
