"""Files through PyIceberg's FileIO: a catalog's, with what that knows of the store, or one of our own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO, cast

from tamis.formats.iceberg.library import pyiceberg
from tamis.formats.storage import Fetch
from tamis.formats.storage.access import Access, s3_access
from tamis.formats.storage.local import fetch_local, local_path
from tamis.formats.storage.objects import s3_endpoint
from tamis.formats.storage.secrets import explained

if TYPE_CHECKING:
    from pyiceberg.io import FileIO

__all__ = ["EnvironmentFetch", "FileIOFetch", "fetch_through", "file_io"]


@dataclass(frozen=True, slots=True)
class FileIOFetch:
    """Files through a catalog's FileIO; local ones directly."""

    io: FileIO

    def __reduce__(self) -> tuple[object, ...]:
        """Without the credentials that the FileIO holds: whoever unpickles it uses the environment's."""
        return EnvironmentFetch, ()

    def __call__(self, location: str) -> bytes:
        """The whole file."""
        if local_path(location) is not None:
            return fetch_local(location)
        with self.open(location) as stream, explained(location):
            return bytes(stream.read())

    def access(self) -> Access:
        """As the catalog, or the table that it loaded, says; what those leave out, as the environment does."""
        return s3_access(self.io.properties)

    def size(self, location: str) -> int | None:
        """The size of a file; None if it cannot be had this way. IsADirectoryError for a folder."""
        try:
            return len(self.io.new_input(location))
        except TypeError as error:
            raise IsADirectoryError(location) from error  # PyArrow knows no size of a folder
        except Exception:  # noqa: BLE001 - whatever an object store's client raises: Spark may have other means
            return None

    def open(self, location: str) -> BinaryIO:
        """The file, to read parts of it."""
        with explained(location):
            return cast("BinaryIO", self.io.new_input(location).open())


@dataclass(slots=True)
class EnvironmentFetch:
    """Files with the environment's credentials, through a FileIO that is made when the first one is asked for."""

    found: dict[str, FileIOFetch] = field(default_factory=dict)

    def __reduce__(self) -> tuple[object, ...]:
        return EnvironmentFetch, ()

    def __call__(self, location: str) -> bytes:
        """The whole file."""
        return fetch_local(location) if local_path(location) is not None else self._of(location)(location)

    def open(self, location: str) -> BinaryIO:
        """The file, to read parts of it."""
        return self._of(location).open(location)

    def _of(self, location: str) -> FileIOFetch:
        scheme = location.partition("://")[0]
        if scheme not in self.found:
            self.found[scheme] = FileIOFetch(file_io(location, {}))
        return self.found[scheme]


def fetch_through(io: FileIO) -> Fetch:
    """How to fetch a file: the local ones directly, all others through the catalog's FileIO."""
    return FileIOFetch(io)


def file_io(location: str, properties: Mapping[str, str]) -> FileIO:
    """PyIceberg's FileIO for a location outside any catalog; S3's endpoint and credentials are the environment's."""
    pyiceberg()
    from pyiceberg.io import load_file_io

    return load_file_io({**s3_endpoint(), **properties}, location)
