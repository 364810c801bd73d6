"""What can be wrong with a table's files.

A path in a message has no credentials: user, password and query are cut out of every URI.
"""

from __future__ import annotations

import errno
import re
from typing import Final

from tamis.errors import UnreadableMetadataError, UnwritableFileError

__all__ = ["advice", "shown", "unreachable", "unreadable", "unwritable"]

_USER: Final = re.compile(r"(?<=://)(?:[^/?#@:]*:(?!\d+/)[^@\s'\"]*|[^/?#]*)@")
"""Up to the last @ of the authority. A password may hold a raw slash; a port may not be taken for one."""
_CONTAINER: Final = re.compile(r"(?:abfs|wasb)s?://[^/?#@:]+@[^/?#@:]+(?=/|$)", re.IGNORECASE)
_QUERY: Final = re.compile(r"(?<=\?).*$", re.DOTALL)

RESTORE: Final = "Restore the file, or choose a snapshot or version that does not need it."
_GRANT: Final = "Give the user that runs this the permission to read it, and to search the folders above it."
_AGAIN: Final = "Try again once its disk, mount or store answers."
_DENIED: Final = re.compile(
    r"ACCESS_?DENIED|Access ?Denied|Forbidden|HTTP (?:status|response code) 40[13]"
    r"|signature we calculated does not match|SignatureDoesNotMatch|INVALID_?ACCESS_?KEY_?ID",
    re.IGNORECASE,
)
_ENDED: Final = re.compile(r"Expired_?Token|token (?:included in the request )?(?:has|is) expired", re.IGNORECASE)
_ANEW: Final = "The credentials for its store have ended: open the table anew for others."
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
_MAY_WRITE: Final = "Give the user that runs this the permission to write there."
_ROOM: Final = "Make room there, and try again."
_WRITE_CURES: Final = {
    errno.EACCES: _MAY_WRITE,
    errno.EPERM: _MAY_WRITE,
    errno.EROFS: "It can only be read: mount it for writing, or write elsewhere.",
    errno.ENOSPC: _ROOM,
    errno.EDQUOT: _ROOM,
    errno.EISDIR: "A folder has the file's name: move it away.",
    errno.ENOTDIR: "A file has the name of a folder above it: move it away.",
    errno.EINVAL: "No file can have such a name here: choose another.",
    errno.ENAMETOOLONG: "No file can have so long a name here: choose another.",
}


def shown(uri: str) -> str:
    """The URI as it may be shown. What stands before an @ is a credential, but Azure has a container there.

    >>> shown("s3://key:secret@bucket/a.avro?token=1")
    's3://…@bucket/a.avro?…'
    >>> shown("s3://key:sec/ret@bucket/a.avro"), shown("hdfs://host:8020/a@b")
    ('s3://…@bucket/a.avro', 'hdfs://host:8020/a@b')
    >>> shown("abfss://box@account.dfs.core.windows.net/a.avro?sig=1")
    'abfss://box@account.dfs.core.windows.net/a.avro?…'
    >>> shown("/data/50% of it?.avro")
    '/data/50% of it?.avro'
    """
    if "://" not in uri:
        return uri
    container = _CONTAINER.match(uri)
    end = container.end() if container else 0
    return _QUERY.sub("…", uri[:end] + (uri[end:] if container else _USER.sub("…@", uri)))


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


def unwritable(
    path: str,
    error: Exception,
    reason: str | None = None,
    cure: str | None = None,
    *,
    verb: str = "write",
    unknown: bool = False,
) -> UnwritableFileError:
    """The error for a file that cannot be put or removed; unknown if it may have been, all the same."""
    said = reason or (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    code = error.errno if isinstance(error, OSError) else None
    helps = cure or _WRITE_CURES.get(code or 0)
    if helps is None:
        helps = _ANEW if _ENDED.search(str(error)) else _MAY_WRITE if is_denied(error) else _AGAIN
    doubt = " Whether it was done all the same is not known: look before you try again." if unknown else ""
    return UnwritableFileError(
        f"cannot {verb} {shown(path)}: {said}. {helps}{doubt}", path=shown(path), reason=said, unknown=unknown
    )


def is_denied(error: Exception) -> bool:
    """Whether a system, or a store's client, means that the user may not."""
    said = str(error)
    return isinstance(error, PermissionError) or any(mark.search(said) for mark in (_DENIED, _ENDED))


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
        case _ if _ENDED.search(str(error)):
            return _ANEW
        case _ if _DENIED.search(str(error)):
            return _GRANT
        case OSError():  # TimeoutError and ConnectionError, too
            return _AGAIN
    return "Check that it is there, that it may be read, and that its store answers."
