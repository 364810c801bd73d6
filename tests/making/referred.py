"""Which files an Iceberg table's metadata refers to, read with fastavro and not by tamis; what lies in its folder."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import fastavro

__all__ = ["files_in", "referred"]


def referred(newest: str) -> set[Path]:
    """All files of all snapshots of a metadata file, and those of its log."""
    document = json.loads(_local(newest).read_text())
    found = {_local(newest), *(_local(one["metadata-file"]) for one in document.get("metadata-log") or ())}
    seen: set[str] = set()
    for snapshot in document.get("snapshots") or ():
        found.add(_local(snapshot["manifest-list"]))
        for manifest in _records(snapshot["manifest-list"]):
            path = manifest["manifest_path"]
            if path not in seen:
                seen.add(path)
                found |= {_local(path), *(_local(one["data_file"]["file_path"]) for one in _records(path))}
    return found


def files_in(location: str) -> set[Path]:
    """All files of a table's folder but Hadoop's checksums and version hint."""
    return {
        path
        for path in _local(location).rglob("*")
        if path.is_file() and path.suffix != ".crc" and path.name != "version-hint.text"
    }


def _local(path: str) -> Path:
    return Path(path.removeprefix("file://").removeprefix("file:"))


def _records(path: str) -> Iterator[Mapping[str, Any]]:
    yield from fastavro.reader(io.BytesIO(_local(path).read_bytes()))  # type: ignore[misc]
