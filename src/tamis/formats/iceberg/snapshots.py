"""A new snapshot, and the metadata document that has it: pure, from JSON to JSON. Whatever else is in it stays."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from tamis.formats.edit import DATA_FILE, POSITION_DELETES, NewFile
from tamis.formats.iceberg.carrying import Gone
from tamis.formats.iceberg.metadata import MAIN, Snapshot

__all__ = ["RESERVED", "Manifests", "forgotten", "now_ms", "summary_of", "with_log", "with_snapshot"]

PREVIOUS: Final = "write.metadata.previous-versions-max"
MOST_PREVIOUS: Final = 100
DELETES_OLD: Final = "write.metadata.delete-after-commit.enabled"
_TOTALS: Final = {
    "total-records": ("added-records", "deleted-records"),
    "total-files-size": ("added-files-size", "removed-files-size"),
    "total-data-files": ("added-data-files", "deleted-data-files"),
    "total-delete-files": ("added-delete-files", "removed-delete-files"),
    "total-position-deletes": ("added-position-deletes", "removed-position-deletes"),
    "total-equality-deletes": ("added-equality-deletes", "removed-equality-deletes"),
}
_KINDS: Final = (
    *("added-dvs", "removed-dvs", "added-position-delete-files", "removed-position-delete-files"),
    *("added-equality-delete-files", "removed-equality-delete-files"),
)
RESERVED: Final = frozenset(
    {
        *_TOTALS,
        *(part for pair in _TOTALS.values() for part in pair),
        *_KINDS,
        *("operation", "changed-partition-count"),
        *("manifests-created", "manifests-kept", "manifests-replaced"),
    }
)
"""What a summary says of itself: no property of a caller's may take such a name."""


@dataclass(frozen=True, slots=True)
class Manifests:
    """How many manifests a commit wrote, took over as they are, and wrote anew without some of their files."""

    created: int
    kept: int
    replaced: int = 0


def now_ms(document: Mapping[str, Any]) -> int:
    """The time of a commit: never before the table's last one, though clocks differ."""
    return max(int(time.time() * 1000), document.get("last-updated-ms") or 0)


def summary_of(
    operation: str,
    added: Sequence[NewFile],
    gone: Sequence[Gone],
    parent: Snapshot | None,
    manifests: Manifests,
    properties: Mapping[str, str],
) -> dict[str, str]:
    """The summary of a snapshot, as Iceberg's own library counts; a total that the parent lacks is not made up."""
    counts = _added(added) + _removed(gone)
    changed = {(file.spec_id or 0, repr(file.partition)) for file in added}.union(*(one.partitions for one in gone))
    found = {"operation": operation, **properties}
    found |= {key: str(value) for key, value in counts.items() if value}
    found["changed-partition-count"] = str(len(changed))
    found |= {
        "manifests-created": str(manifests.created),
        "manifests-kept": str(manifests.kept),
        "manifests-replaced": str(manifests.replaced),
    }
    before: Mapping[str, Any] = dict.fromkeys(_TOTALS, "0") if parent is None else parent.summary or {}
    for total, (more, less) in _TOTALS.items():
        old = str(before.get(total, ""))
        if old.isascii() and old.isdigit() and (new := int(old) + counts[more] - counts[less]) >= 0:
            found[total] = str(new)
    return found


def _added(files: Sequence[NewFile]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for file in files:
        counts["added-files-size"] += file.size if file.content_size is None else file.content_size
        if file.content == DATA_FILE:
            counts["added-data-files"] += 1
            counts["added-records"] += file.rows
        else:
            counts["added-delete-files"] += 1
            counts["added-dvs" if file.content_offset is not None else "added-position-delete-files"] += 1
            counts["added-position-deletes"] += file.rows
    return counts


def _removed(gone: Sequence[Gone]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for one in gone:
        files = one.files
        size = pc.sum(pc.coalesce(files["content_size"], files["size"])).as_py() or 0
        counts["removed-files-size"] += size
        for content, vector, rows in _by_kind(files):
            number, total = len(rows), pc.sum(rows).as_py() or 0
            if content == DATA_FILE:
                counts["deleted-data-files"] += number
                counts["deleted-records"] += total
                continue
            kind = "position" if content == POSITION_DELETES else "equality"
            counts["removed-delete-files"] += number
            counts["removed-dvs" if vector else f"removed-{kind}-delete-files"] += number
            counts[f"removed-{kind}-deletes"] += total
    return counts


def _by_kind(files: pa.Table) -> Iterator[tuple[int, bool, pa.ChunkedArray]]:
    """Content, whether they are vectors, and the rows of each kind of file."""
    vector = files["offset"].is_valid()
    for content in pc.unique(files["content"]).to_pylist():
        for is_vector in (True, False):
            mine = pc.and_(pc.equal(files["content"], content), vector if is_vector else pc.invert(vector))
            rows = files["rows"].filter(mine)
            if len(rows):
                yield content, is_vector, rows


def with_snapshot(document: Mapping[str, Any], path: str, snapshot: Mapping[str, Any], branch: str) -> dict[str, Any]:
    """The document with the snapshot at the head of the branch. path is where the document itself lies."""
    version, id_, time_ms = document["format-version"], snapshot["snapshot-id"], snapshot["timestamp-ms"]
    found = dict(document)
    found["snapshots"] = [*(document.get("snapshots") or ()), dict(snapshot)]
    refs = dict(document.get("refs") or {})
    current = document.get("current-snapshot-id")
    if MAIN not in refs and current is not None and current != -1:
        refs[MAIN] = {"snapshot-id": current, "type": "branch"}
    refs[branch] = {**refs.get(branch, {}), "snapshot-id": id_, "type": "branch"}
    found["refs"] = refs
    if branch == MAIN:
        found["current-snapshot-id"] = id_
        found["snapshot-log"] = [
            *(document.get("snapshot-log") or ()),
            {"timestamp-ms": time_ms, "snapshot-id": id_},
        ]
    if version > 1:
        found["last-sequence-number"] = max(document.get("last-sequence-number") or 0, snapshot["sequence-number"])
    if version > 2:  # noqa: PLR2004 - row lineage
        found["next-row-id"] = (document.get("next-row-id") or 0) + snapshot["added-rows"]
    return with_log(found, path, time_ms)


def with_log(document: Mapping[str, Any], path: str, time_ms: int) -> dict[str, Any]:
    """The document as one that follows what lies at the path."""
    entry = {"timestamp-ms": document.get("last-updated-ms") or time_ms, "metadata-file": path}
    log = [*(document.get("metadata-log") or ()), entry][-_most_previous(document) :]
    return {**document, "metadata-log": log, "last-updated-ms": time_ms}


def forgotten(before: Mapping[str, Any], after: Mapping[str, Any], path: str) -> list[str]:
    """Metadata files to delete: those that the log has no more, if the table asks that such are.

    path is where the new state lies. What the log names elsewhere, or by another kind of name, is left alone:
    a log may say anything, and must not have other files deleted.
    """
    if str((after.get("properties") or {}).get(DELETES_OLD, "")).strip().lower() != "true":
        return []
    kept = {path, *(one["metadata-file"] for one in after.get("metadata-log") or ())}
    folder = path.rpartition("/")[0]
    listed = [one["metadata-file"] for one in before.get("metadata-log") or ()]
    return [one for one in dict.fromkeys(listed) if one not in kept and _is_beside(one, folder)]


def _is_beside(path: str, folder: str) -> bool:
    parent, _, name = path.rpartition("/")
    return parent == folder and name.endswith((".metadata.json", ".metadata.json.gz"))


def _most_previous(document: Mapping[str, Any]) -> int:
    text = str((document.get("properties") or {}).get(PREVIOUS, "")).strip()
    return max(1, int(text)) if text.isascii() and text.isdigit() else MOST_PREVIOUS
