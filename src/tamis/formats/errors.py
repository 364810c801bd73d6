"""What can be wrong with a table's metadata.

A path in a message has no credentials: user, password and query are cut out of every URI.
"""

from __future__ import annotations

import errno
import re
from typing import Final

from tamis.errors import UnreadableMetadataError

__all__ = ["advice", "shown", "unreachable", "unreadable"]

_USER: Final = re.compile(r"(?<=://)(?:[^/?#@:]*:(?!\d+/)[^@\s'\"]*|[^/?#]*)@")
"""Up to the last @ of the authority. A password may hold a raw slash; a port may not be taken for one."""
_QUERY: Final = re.compile(r"(?<=\?).*$", re.DOTALL)

RESTORE: Final = "Restore the file, or choose a snapshot that does not need it."
_GRANT: Final = "Give the user that runs this the permission to read it, and to search the folders above it."
_AGAIN: Final = "Try again once its disk, mount or store answers."
_DENIED: Final = re.compile(
    r"ACCESS_?DENIED|Access ?Denied|Forbidden|HTTP (?:status|response code) 40[13]", re.IGNORECASE
)
_NAMED_WRONG: Final = "What names it is damaged, or was written for another file system: restore that, or the file."
_CURES: Final = {
    errno.ENOENT: RESTORE,
    errno.ENOTDIR: RESTORE,
    errno.EACCES: _GRANT,
    errno.EPERM: _GRANT,
    errno.EISDIR: _NAMED_WRONG,
    errno.ENAMETOOLONG: _NAMED_WRONG,
    errno.EINVAL: _NAMED_WRONG,
    errno.ELOOP: "Its symbolic links lead back to themselves: mend them.",
    errno.EMFILE: "Let this process open more files (ulimit -n).",
    errno.ENFILE: "Let the system open more files.",
    errno.ENOMEM: "Give the process more memory.",
}
"""What helps, by the system's error."""


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


def unreadable(
    path: str, reason: str, offset: int | None = None, *, place: str | None = None, cure: str = RESTORE
) -> UnreadableMetadataError:
    """The error for a metadata file that cannot be read, where in the file it fails, and what helps."""
    where = f" at {place}" if place else "" if offset is None else f" at byte {offset}"
    return UnreadableMetadataError(
        f"cannot read {shown(path)}{where}: {reason}. {cure}",
        path=shown(path),
        offset=offset,
        place=place,
        reason=reason,
    )


def unreachable(path: str, error: Exception, reason: str | None = None) -> UnreadableMetadataError:
    """The error for a file that the system or a store does not hand out, with advice by its cause."""
    said = reason or (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    return unreadable(path, said, cure=advice(error))


def advice(error: Exception) -> str:
    """What helps against an error of the system, or of a store's client, which has errors of its own.

    >>> advice(PermissionError(errno.EACCES, "Permission denied"))
    'Give the user that runs this the permission to read it, and to search the folders above it.'
    """
    code = error.errno if isinstance(error, OSError) else None
    if code in _CURES:
        return _CURES[code]
    match error:
        case FileNotFoundError():
            return RESTORE
        case PermissionError():
            return _GRANT
        case _ if _DENIED.search(str(error)):
            return _GRANT
        case OSError():  # TimeoutError and ConnectionError, too
            return _AGAIN
    return "Check that it is there, that it may be read, and that its store answers."
