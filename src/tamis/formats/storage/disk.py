"""The files of this machine.

Law: a file that is put is seen whole or not at all, also after a crash. It is written under a name of its own,
brought to disk, and only then given its name: by a rename, which replaces, or by a hard link, which does not.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO, Final

from tamis.errors import UnreadableMetadataError, UnwritableFileError
from tamis.formats.errors import unwritable
from tamis.formats.storage import Listed
from tamis.formats.storage.local import (
    as_system_error,
    at_once,
    check_regular,
    fetch_local,
    local_file,
    put_path,
    unread,
)
from tamis.formats.storage.sizes import local_size

__all__ = ["UNFINISHED", "LocalStorage", "unfinished_name"]

UNFINISHED: Final = re.compile(r"\.tamis-[0-9a-f]{32}\.tmp")
"""Names of files that are being written, or that a crash left behind: no other file has such a name."""
_NO_LINKS: Final = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV})
_LINKS: Final = (
    "Without them one writer's file cannot be kept from replacing another's: keep the table on a file system that "
    "has them, or in an object store."
)
_NO_SYNC: Final = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EACCES, errno.EPERM, errno.EBADF})
"""What systems say that cannot bring a folder to disk, or only to those who may list it."""
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


def unfinished_name() -> str:
    """A name for a file that is not finished, which no other has."""
    return f".tamis-{os.urandom(16).hex()}.tmp"


class LocalStorage:
    """The files of this machine."""

    def __call__(self, location: str) -> bytes:
        """The whole file."""
        return fetch_local(location)

    def open(self, location: str) -> BinaryIO:
        """The file, to read parts of it."""
        try:
            file = open(local_file(location), "rb", opener=at_once)  # noqa: SIM115 - whoever asked closes it
        except (OSError, ValueError) as error:
            raise unread(location, error) from error
        try:
            check_regular(location, file.fileno())
        except UnreadableMetadataError:
            file.close()
            raise
        return file

    def size(self, location: str) -> int | None:
        """The size of a file; None if it is not here. IsADirectoryError for a folder."""
        return local_size(local_file(location))

    def modified_ms(self, location: str) -> int | None:
        """When the file was last written, in milliseconds since 1970; None if it is not here."""
        try:
            return os.stat(local_file(location)).st_mtime_ns // 1_000_000  # noqa: PTH116 - as above
        except (OSError, ValueError):
            return None

    def list(self, folder: str, after: str = "") -> list[Listed]:
        """The files in a folder after that name, in order. What is being written is not among them."""
        try:
            with os.scandir(local_file(folder)) as entries:
                files = [
                    Listed(entry.name, _size(entry))
                    for entry in entries
                    if entry.name > after and not UNFINISHED.fullmatch(entry.name) and not entry.is_dir()
                ]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except (OSError, ValueError) as error:
            raise unread(folder, error) from error
        return sorted(files)

    def put(self, location: str, data: bytes) -> None:
        """Write a file, in the place of any that is there."""
        path = put_path(location)
        with _written(location, path, data) as unnamed:
            os.replace(unnamed, path)  # noqa: PTH105 - beside its siblings, which have no Path
            _to_disk(location, path)

    def put_if_absent(self, location: str, data: bytes) -> bool:
        """Write a file if there is none of that name; False if there is one."""
        path = put_path(location)
        with _written(location, path, data) as unnamed:
            made = _linked(location, unnamed, path)
            if made:
                _to_disk(location, path)
            return made

    def remove(self, location: str) -> None:
        """Remove a file, if it is there."""
        try:
            os.unlink(local_file(location))  # noqa: PTH108 - as above
        except FileNotFoundError:
            return
        except (OSError, ValueError) as error:
            raise unwritable(location, as_system_error(error), verb="remove") from error


@contextmanager
def _written(location: str, path: str, data: bytes) -> Iterator[str]:
    """A file beside that path with the data, on disk, under a name that readers do not look at; gone afterwards."""
    folder = os.path.dirname(path) or "."  # noqa: PTH120 - as above
    unnamed = os.path.join(folder, unfinished_name())  # noqa: PTH118 - as above
    try:
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103 - as above
        try:
            with open(os.open(unnamed, _CREATE, 0o666), "wb", buffering=0) as file:  # noqa: PTH123 - opened with care
                view = memoryview(data)
                while view:
                    view = view[os.write(file.fileno(), view) :]
                os.fsync(file.fileno())
            yield unnamed
        finally:
            with suppress(OSError):
                os.unlink(unnamed)  # noqa: PTH108 - as above
    except UnwritableFileError:
        raise
    except (OSError, ValueError) as error:
        raise unwritable(location, as_system_error(error)) from error


def _linked(location: str, unnamed: str, path: str) -> bool:
    """Give the file its name, if nobody has it. Over NFS an answer may be lost: the file itself counts its names."""
    try:
        os.link(unnamed, path)
    except OSError as error:
        if _has_names(location, unnamed, error):
            return True
        if error.errno == errno.EEXIST:
            return False
        if error.errno in _NO_LINKS:
            raise unwritable(
                location, error, f"its file system makes no hard links ({error.strerror})", _LINKS
            ) from error
        raise
    return True


def _has_names(location: str, unnamed: str, error: OSError) -> bool:
    """Whether the file got a second name after all. If it cannot be asked either, nobody knows."""
    try:
        return os.stat(unnamed).st_nlink > 1  # noqa: PTH116 - as above
    except OSError as deaf:
        raise unwritable(location, error, unknown=True) from deaf


def _to_disk(location: str, path: str) -> None:
    """Bring a file's name to disk, where the system can: all can see it, and a crash must not take it back."""
    try:
        handle = os.open(os.path.dirname(path) or ".", os.O_RDONLY)  # noqa: PTH120 - as above
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise unwritable(location, error, unknown=True) from error


def _size(entry: os.DirEntry[str]) -> int | None:
    try:
        return entry.stat().st_size
    except OSError:
        return None
