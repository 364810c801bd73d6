"""What can be wrong with a table's metadata.

A path in a message has no credentials: user, password and query are cut out of every URI.
"""

from __future__ import annotations

import re
from typing import Final

from tamis.errors import TamisError

__all__ = [
    "CatalogError",
    "ForkedProcessError",
    "NoSuchSnapshotError",
    "NoSuchTableError",
    "UnreadableMetadataError",
    "UnsupportedFormatError",
    "shown",
    "unreadable",
]

_USER: Final = re.compile(r"(?<=://)(?:[^/?#@:]*:(?!\d+/)[^@\s'\"]*|[^/?#]*)@")
"""Up to the last @ of the authority. A password may hold a raw slash; a port may not be taken for one."""
_QUERY: Final = re.compile(r"(?<=\?).*$", re.DOTALL)


class UnreadableMetadataError(TamisError):
    """A metadata file is not what it should be: truncated, damaged, encrypted, or no such file at all."""

    path: str
    offset: int | None
    reason: str


class UnsupportedFormatError(TamisError):
    """The table uses something that this version of tamis does not know and must not guess."""

    path: str
    feature: str


class NoSuchSnapshotError(TamisError):
    """The table has no snapshot, branch or tag of that name, or none as old as that."""

    wanted: str
    known: tuple[str, ...]


def shown(uri: str) -> str:
    """The URI as it may be shown.

    >>> shown("s3://key:secret@bucket/a.avro?token=1")
    's3://…@bucket/a.avro?…'
    >>> shown("s3://key:sec/ret@bucket/a.avro"), shown("hdfs://host:8020/a@b")
    ('s3://…@bucket/a.avro', 'hdfs://host:8020/a@b')
    >>> shown("/data/50% of it?.avro")
    '/data/50% of it?.avro'
    """
    if "://" not in uri:
        return uri
    return _QUERY.sub("…", _USER.sub("…@", uri))


def unreadable(path: str, reason: str, offset: int | None = None) -> UnreadableMetadataError:
    """The error for a metadata file that cannot be read, and where in the file it fails."""
    where = "" if offset is None else f" at byte {offset}"
    return UnreadableMetadataError(
        f"cannot read {shown(path)}{where}: {reason}. Restore the file, or choose a snapshot that does not need it.",
        path=shown(path),
        offset=offset,
        reason=reason,
    )


class NoSuchTableError(TamisError):
    """There is no table of that name, or at that place."""

    table: str


class CatalogError(TamisError):
    """A catalog could not be reached, or did not open the table."""

    table: str
    catalog: str
    reason: str


class ForkedProcessError(TamisError):
    """This process was forked from one that had read metadata, and no interpreter could be started to read for it."""

    pid: int
    reason: str
