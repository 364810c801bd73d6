"""Files written by an executor, or by this process: on local disk, or in an object store through pyarrow.

Credentials are the environment's, where the file is written, unless a user asks that the table's be handed on: then,
and only then, they travel to executors.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyarrow import fs

from tamis.formats.errors import shown
from tamis.formats.storage.access import S3, s3_place
from tamis.formats.storage.local import is_local, local_file, put_path
from tamis.formats.storage.s3 import s3_client
from tamis.formats.storage.secrets import safe_reason, silence

__all__ = ["BECAUSE", "SCHEMES", "UNWRITTEN", "DataStore", "Sink", "is_hosted"]

SCHEMES: Final = frozenset({"s3", "s3a", "s3n", "gs", "gcs", "hdfs", "abfs", "abfss", "viewfs"})
"""Stores that pyarrow can write to."""
UNWRITTEN: Final = "tamis: cannot write "
BECAUSE: Final = ", for the store says: "
"""How a task's error reads that could not write a file: its path stands between them, the reason behind."""


@contextmanager
def _writing(path: str) -> Iterator[None]:
    """An error of a store says in one line which file it is of: text is all that comes back from an executor."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        if is_local(path):
            raise
        reason = " ".join(safe_reason(error, path).split())
        silence(error, path)
        raise OSError(f"{UNWRITTEN}{shown(path)}{BECAUSE}{reason}") from error


def is_hosted(path: str) -> bool:
    """Whether a path lies in a file system that asks nobody for credentials of a store."""
    return is_local(path) or path.partition(":")[0] in {"hdfs", "viewfs"}


@dataclass(slots=True)
class Sink:
    """A new file: its stream, and how it ends."""

    path: str
    stream: Any
    _closed: bool = False

    def close(self) -> int:
        """Finish the file; its size."""
        with _writing(self.path):
            size = int(self.stream.tell())
            self.stream.close()
        self._closed = True
        return size

    def abandon(self) -> None:
        """Close the stream of a file that is not wanted any more; whatever it says to that."""
        if not self._closed:
            with suppress(Exception):
                self.stream.close()


@dataclass(frozen=True, slots=True)
class DataStore:
    """Where files go. settings are of the store's endpoint, and never secret."""

    settings: Mapping[str, str] = field(default_factory=dict)
    entry: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """What pyarrow's client for S3 is told beside, if the access to the store is handed on."""

    def create(self, path: str) -> Sink:
        """A new file. FileExistsError if there is one of that name on local disk; names are unique elsewhere."""
        if is_local(path):
            found = Path(put_path(path))
            found.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(found, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
            os.close(descriptor)
            return Sink(path, pa.OSFile(str(found), "wb"))
        with _writing(path):
            system, inside = self._system(path)
            return Sink(path, system.open_output_stream(inside))

    def remove(self, path: str) -> None:
        """Delete a file; what cannot be deleted is left, for nothing refers to it."""
        with suppress(Exception):
            if is_local(path):
                Path(local_file(path)).unlink()
            else:
                system, inside = self._system(path)
                system.delete_file(inside)

    def _system(self, path: str) -> tuple[fs.FileSystem, str]:
        scheme, _, rest = path.partition("://")
        host, slash, key = rest.partition("/")
        if scheme in S3:
            where = s3_place(self.settings.get("s3.endpoint"), self.settings.get("s3.region"))
            return s3_client(host, {**where, **self.entry}), rest
        # Only the root is taken for a URI: Arrow would undo escapes in the rest, which are part of the file's name.
        system, root = fs.FileSystem.from_uri(f"{'gs' if scheme == 'gcs' else scheme}://{host}/")
        return system, f"{root.rstrip('/')}{slash}{key}"
