"""Paths of the local file system, also as file: URIs, and what is read there."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from tamis.errors import UnreadableMetadataError
from tamis.formats.errors import unreachable, unreadable

__all__ = [
    "as_system_error",
    "at_once",
    "check_regular",
    "exists",
    "fetch_local",
    "inside",
    "is_local",
    "local_file",
    "local_path",
    "put_path",
    "unread",
]

_NO_FILE: Final = "it is not a file, but a pipe, a socket or a device"


def at_once(path: str, flags: int) -> int:
    """Open a file. A pipe would be waited for, and a device may have no end."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def fetch_local(location: str) -> bytes:
    """A file of the local file system, by path or file: URI."""
    try:
        # There may be fifty thousand of them, and a Path for each takes as long as reading it.
        with open(local_file(location), "rb", buffering=0, opener=at_once) as file:
            check_regular(location, file.fileno())
            return file.read()
    except (OSError, ValueError) as error:
        raise unread(location, error) from error


def local_file(location: str) -> str:
    """The path of a file of the local file system, given as a path or a file: URI.

    Writers put a scheme before a plain path and escape nothing; a URI that a person gives may be escaped.
    """
    if not location.startswith("file:"):
        return location
    path = _spelled(location)
    return path if "%" not in path or _may_exist(path) else unquote(path)


def is_local(path: str) -> bool:
    """Whether a path, or file: URI, is one of the local file system. Hadoop writes its own also as hdfs:/x."""
    return path.startswith("file:") or not ("://" in path or path.startswith(("hdfs:/", "viewfs:/")))


def local_path(target: str) -> Path | None:
    """The local path that a path or file: URI names; None for a URI of another kind."""
    return Path(local_file(target)) if is_local(target) else None


def inside(folder: str, name: str) -> str:
    """What lies in a folder. How a URI of this machine is spelled is told by the folder, not by what is in it."""
    path = local_path(folder)
    return f"{folder.rstrip('/')}/{name}" if path is None else str(path / name)


def exists(location: str) -> bool:
    """Whether there is a file or folder. An error if that cannot be seen; no name that none can have is there."""
    try:
        return Path(local_file(location)).exists()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return False
        raise unreachable(location, error) from error
    except ValueError:
        return False  # a NUL


def put_path(location: str) -> str:
    """The path that a file is put at. What is not there cannot tell how its URI is spelled: the folders above can."""
    path = local_file(location)
    if not location.startswith("file:"):
        return path
    spelled = _spelled(location)
    above, other = spelled, path
    while above != other:
        if _may_exist(above):
            return spelled
        if _may_exist(other):
            return path
        above, other = os.path.dirname(above), os.path.dirname(other)  # noqa: PTH120 - text, not files
    return spelled


def unread(location: str, error: OSError | ValueError) -> UnreadableMetadataError:
    """What the system says against reading a file, as an error that names it."""
    if isinstance(error, OSError) and error.errno == errno.ENXIO:
        return unreadable(location, _NO_FILE)
    return unreachable(location, as_system_error(error))


def as_system_error(error: OSError | ValueError) -> OSError:
    """A ValueError is what Python has for a NUL character in a name."""
    return error if isinstance(error, OSError) else OSError(errno.EINVAL, str(error))


def check_regular(location: str, file: int) -> None:
    """UnreadableMetadataError for what has no end, or is waited for."""
    if not stat.S_ISREG(os.fstat(file).st_mode):
        raise unreadable(location, _NO_FILE)


def _spelled(location: str) -> str:
    """The path in a file: URI, as it is spelled there."""
    path = location.removeprefix("file:")
    return "/" + path[2:].partition("/")[2] if path.startswith("//") else path


def _may_exist(path: str) -> bool:
    try:
        return Path(path).exists()
    except OSError:  # no permission to look, or a name too long: whoever opens it is told
        return True
