"""Where metadata lies: files fetched and put, inflated under a limit, and the cache of what was decoded.

A format is given a `Storage` and asks nothing else: whether its files are on this machine, in an object store with
the environment's credentials, or behind a catalog's own client, is the storage's concern.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO, NamedTuple, Protocol, runtime_checkable

__all__ = ["Fetch", "Listed", "Storage"]

Fetch = Callable[[str], bytes]
"""A file's whole content, by its location as the metadata spells it. A Storage is one."""


class Listed(NamedTuple):
    """A file of a folder."""

    name: str
    """Within the folder."""
    size: int | None
    """In bytes; None if it cannot be told, as of a link that leads nowhere."""


@runtime_checkable
class Storage(Protocol):
    """Files by their locations, paths or URIs.

    It can be pickled; credentials are left out, and whoever unpickles it uses the environment's. What cannot be read
    is an UnreadableMetadataError, what cannot be put or removed an UnwritableFileError: both name the file.
    """

    def __call__(self, location: str) -> bytes:
        """The whole file."""

    def open(self, location: str) -> BinaryIO:
        """The file, to read parts of it."""

    def size(self, location: str) -> int | None:
        """The size of a file; None if it cannot be asked from here. IsADirectoryError for a folder."""

    def modified_ms(self, location: str) -> int | None:
        """When a file was last written, in milliseconds since 1970; None if it cannot be told."""

    def list(self, folder: str, after: str = "") -> list[Listed]:
        """The files in a folder, not those in folders below it, whose names come after that one.

        In the order of their names as UTF-8, which is that of their code points. None if there is no such folder:
        object stores know no empty ones.
        """

    def put(self, location: str, data: bytes) -> None:
        """Write a file, in the place of any that is there. Readers see the old one or the new one, whole."""

    def put_if_absent(self, location: str, data: bytes) -> bool:
        """Write a file if there is none of that name; False if there is one, which is left as it is.

        Of any number of writers one gets True, and readers see its file whole or none. UnwritableFileError if the
        file system or the store cannot promise that: nothing is written then.
        """

    def remove(self, location: str) -> None:
        """Remove a file, if it is there."""
