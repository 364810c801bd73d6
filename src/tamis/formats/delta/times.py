"""Which version a table had at a time.

A commit was made when it says so itself, if the table has in-commit timestamps; else when its file was written, made
to ascend as Delta does it: a clock that went back must not put a version before the one that it follows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from tamis.formats.delta.log import Log, no_version
from tamis.formats.delta.metadata import TableMetadata
from tamis.formats.errors import unreadable
from tamis.formats.storage import Storage

__all__ = ["made_ms", "version_as_of", "whole"]

_ENABLED: str = "delta.inCommitTimestampEnablementVersion"
_MOST_DIGITS: int = 18
_SINCE: str = "delta.inCommitTimestampEnablementTimestamp"


def version_as_of(storage: Storage, log: Log, metadata: TableMetadata, as_of_ms: int) -> int:
    """The newest version that was there at a time; NoSuchSnapshotError if the table is younger than that.

    metadata is the newest: it says since when commits have timestamps of their own.
    """
    versions = [one for one in log.readable() if one in log.commits]
    first, since = _enablement(metadata)
    if first is not None and (since is None or as_of_ms >= since):
        versions = [one for one in versions if one >= first] or versions
        found = _newest(storage, log, versions, as_of_ms)
    else:
        older = versions if first is None else [one for one in versions if one < first]
        times = _written(storage, log, older)
        found = max((one for one, made in times.items() if made <= as_of_ms), default=None)
    if found is None:
        raise no_version(log, f"version as of {_iso(as_of_ms)}", [str(one) for one in versions])
    return found


def made_ms(storage: Storage, log: Log, metadata: TableMetadata, version: int) -> int | None:
    """When a version was made; None if nobody knows, as of a commit that is gone."""
    first, _ = _enablement(metadata)
    if version not in log.commits:
        return None
    if first is not None and version >= first:
        return _own(storage, log, version)
    return storage.modified_ms(log.commits[version].location)


def _enablement(metadata: TableMetadata) -> tuple[int | None, int | None]:
    """The version and the time since when commits say their own; (None, None) if they do not."""
    if not metadata.in_commit_timestamps:
        return None, None
    first, since = (_number(metadata.configuration, name) for name in (_ENABLED, _SINCE))
    return (0, None) if first is None else (first, since)


def _number(configuration: Mapping[str, str], name: str) -> int | None:
    return whole(configuration.get(name, ""))


def whole(text: str) -> int | None:
    """The number that a text of digits is, if it has no more of them than a long; None if it is no such text."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None


def _newest(storage: Storage, log: Log, versions: Sequence[int], as_of_ms: int) -> int | None:
    """In-commit timestamps ascend: a few commits are asked, not all."""
    low, high = 0, len(versions)
    while low < high:
        middle = (low + high) // 2
        if _own(storage, log, versions[middle]) <= as_of_ms:
            low = middle + 1
        else:
            high = middle
    return versions[low - 1] if low else None


def _own(storage: Storage, log: Log, version: int) -> int:
    """The timestamp that a commit has in it: its first action has to be the one that says so."""
    location = log.commits[version].location
    line = storage(location).lstrip().partition(b"\n")[0]
    try:
        found = json.loads(line)["commitInfo"]["inCommitTimestamp"]
    except (ValueError, KeyError, TypeError, RecursionError):
        found = None
    if type(found) is not int:
        raise unreadable(location, "it does not begin with its in-commit timestamp, which the table says it has")
    return found


def _written(storage: Storage, log: Log, versions: Sequence[int]) -> dict[int, int]:
    """When the files of these versions were written, each at least a millisecond after the one before it."""
    found: dict[int, int] = {}
    last: int | None = None
    for version in versions:
        location = log.commits[version].location
        made = storage.modified_ms(location)
        if made is None:
            raise unreadable(
                location, "when it was written cannot be told, and only that says when its version was made"
            )
        last = made if last is None else max(made, last + 1)
        found[version] = last
    return found


def _iso(milliseconds: int) -> str:
    try:
        found = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return f"{milliseconds} ms"
    return f"{found.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"
