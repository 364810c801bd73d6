"""Files anywhere: those of this machine, and those of object stores with the environment's endpoint and credentials.

Arrow's own clients read, list, put and remove. None of them can put a file only if there is none: see conditional.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, BinaryIO, cast
from urllib.parse import urlsplit

from pyarrow import fs

from tamis.errors import UnwritableFileError
from tamis.formats.errors import is_denied, unwritable
from tamis.formats.storage import Listed
from tamis.formats.storage.access import Access, environment_access, s3_place
from tamis.formats.storage.conditional import put_object_if_absent, s3_endpoint
from tamis.formats.storage.disk import UNFINISHED, LocalStorage
from tamis.formats.storage.local import local_path
from tamis.formats.storage.s3 import s3_client
from tamis.formats.storage.secrets import explained, safe_reason, silence

__all__ = ["EnvironmentStorage", "s3_endpoint"]

_LOCAL = LocalStorage()
PATIENCE = timedelta(seconds=60)
"""How long to ask a store that does not answer."""


@dataclass(slots=True, repr=False)
class EnvironmentStorage:
    """The files of this machine, and those that the environment, or whoever loaded the table, gives access to."""

    clients: dict[tuple[str, str], Any] = field(default_factory=dict)
    """One for each scheme and bucket, made when the first file of it is asked for."""
    given: Access | None = None
    """What is known of S3 beside the environment; None if nothing is."""

    def __reduce__(self) -> tuple[object, ...]:
        """Without its clients, which hold credentials: whoever unpickles it has an environment of its own."""
        return EnvironmentStorage, ()

    def __repr__(self) -> str:
        return "EnvironmentStorage()"

    def access(self) -> Access:
        """Where S3 is, and who enters it."""
        return environment_access() if self.given is None else self.given

    def __call__(self, location: str) -> bytes:
        """The whole file."""
        if local_path(location) is not None:
            return _LOCAL(location)
        with self.open(location) as stream, explained(location):
            return bytes(stream.read())

    def open(self, location: str) -> BinaryIO:
        """The file, to read parts of it."""
        if local_path(location) is not None:
            return _LOCAL.open(location)
        with explained(location):
            client, path = self._of(location)
            return cast("BinaryIO", client.open_input_file(path))

    def size(self, location: str) -> int | None:
        """The size of a file; None if it is not there, or the store does not tell. IsADirectoryError for a folder."""
        if local_path(location) is not None:
            return _LOCAL.size(location)
        try:
            client, path = self._of(location)
            info = client.get_file_info(path)
        except Exception:  # noqa: BLE001 - whatever a store's client raises: Spark may have other means
            return None
        if info.type.name == "Directory":
            raise IsADirectoryError(location)
        return info.size if info.is_file else None

    def modified_ms(self, location: str) -> int | None:
        """When the file was last written, in milliseconds since 1970; None if it is not there, or nobody tells."""
        if local_path(location) is not None:
            return _LOCAL.modified_ms(location)
        with explained(location):
            client, path = self._of(location)
            found = client.get_file_info(path).mtime_ns
        return None if found is None else int(found) // 1_000_000

    def list(self, folder: str, after: str = "") -> list[Listed]:
        """The files in a folder after that name, in order."""
        if local_path(folder) is not None:
            return _LOCAL.list(folder, after)
        with explained(folder):
            client, path = self._of(folder)
            infos = client.get_file_info(fs.FileSelector(path.rstrip("/"), allow_not_found=True))
        names = (Listed(info.base_name, info.size) for info in infos if info.is_file)
        return sorted(file for file in names if file.name > after and not UNFINISHED.fullmatch(file.name))

    def put(self, location: str, data: bytes) -> None:
        """Write a file, in the place of any that is there. A store shows it when it has all of it."""
        if local_path(location) is not None:
            _LOCAL.put(location, data)
            return
        with _writing(location):
            client, path = self._of(location)
            with client.open_output_stream(path) as stream:
                stream.write(data)

    def put_if_absent(self, location: str, data: bytes) -> bool:
        """Write a file if there is none of that name; False if there is one."""
        if local_path(location) is not None:
            return _LOCAL.put_if_absent(location, data)
        return put_object_if_absent(location, data, self.given)

    def remove(self, location: str) -> None:
        """Remove a file, if it is there."""
        if local_path(location) is not None:
            _LOCAL.remove(location)
            return
        with _writing(location, verb="remove"):
            client, path = self._of(location)
            if client.get_file_info(path).is_file:
                client.delete_file(path)

    def _of(self, location: str) -> tuple[fs.FileSystem, str]:
        """The client for a location, and the path that it knows the file by."""
        scheme, _, rest = location.partition("://" if "://" in location else ":")
        bucket = rest.partition("/")[0]
        if (scheme, bucket) not in self.clients:
            self.clients[scheme, bucket] = _client(scheme.lower(), bucket, location, self.given)
        return self.clients[scheme, bucket], _path(scheme.lower(), bucket, rest)


def _client(scheme: str, bucket: str, location: str, given: Access | None) -> fs.FileSystem:
    """Arrow's client for a store, with what the environment says. Arrow finds credentials there, but no endpoint."""
    match scheme:
        case "s3" | "s3a" | "s3n" if given is not None:
            return s3_client(bucket, given.for_arrow())
        case "s3" | "s3a" | "s3n":
            settings = s3_endpoint()
            return s3_client(bucket, s3_place(settings.get("s3.endpoint"), settings.get("s3.region")))
        case "gs" | "gcs":
            # By itself it would go on asking for a quarter of an hour.
            return fs.GcsFileSystem(retry_time_limit=PATIENCE)
        case "abfs" | "abfss" | "wasb" | "wasbs":
            account = bucket.rpartition("@")[2].partition(".")[0]
            return fs.AzureFileSystem(account, account_key=os.environ.get("AZURE_STORAGE_ACCOUNT_KEY"))
        case "hdfs" | "viewfs":
            host = urlsplit(location)
            return fs.HadoopFileSystem(f"{scheme}://{host.hostname}" if host.hostname else "default", host.port or 0)
        case _:
            raise ValueError(f"no store is known by {scheme}:// (s3, s3a, gs, abfs, wasb and hdfs are)")


def _path(scheme: str, bucket: str, rest: str) -> str:
    if scheme in {"hdfs", "viewfs"}:
        return rest[len(bucket) :]
    if scheme in {"abfs", "abfss", "wasb", "wasbs"}:
        return bucket.partition("@")[0] + rest[len(bucket) :]
    return rest


@contextmanager
def _writing(location: str, verb: str = "write") -> Iterator[None]:
    """Whatever a store's client raises, as one error. A lost answer cannot be told from a lost request."""
    try:
        yield
    except UnwritableFileError:
        raise
    except Exception as error:
        reason, unknown = safe_reason(error, location), not is_denied(error)
        found = unwritable(location, error, reason, verb=verb, unknown=unknown)
        silence(error, location)
        raise found from error
