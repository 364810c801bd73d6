"""Where an Iceberg table's newest state is kept, and how another takes its place: a catalog, or a Hadoop folder.

Law: publishing succeeds only if the state that it replaces is still the newest: by the catalog's own swap, or because
a file of the next version's name is not there yet. `Lost` says that it was not, and that nothing has happened.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from tamis.errors import CommitRefused, UnwritableFileError
from tamis.formats.errors import shown
from tamis.formats.iceberg.document import read_document
from tamis.formats.iceberg.locate import HINT, Candidate
from tamis.formats.iceberg.metadata import TableMetadata
from tamis.formats.iceberg.newest import newest_metadata
from tamis.formats.iceberg.parsing import parse_document
from tamis.formats.iceberg.snapshots import forgotten
from tamis.formats.storage import Fetch
from tamis.formats.storage.disk import LocalStorage
from tamis.formats.storage.local import fetch_local, is_local

__all__ = ["FolderHome", "Home", "Lost", "State", "packed"]

CODEC: Final = "write.metadata.compression-codec"
_DISK: Final = LocalStorage()


class Lost(Exception):
    """Another commit came first: nothing of this one has happened."""


@dataclass(frozen=True, slots=True)
class State:
    """A state of the table: its metadata file, as JSON and as values."""

    path: str
    document: Mapping[str, Any]
    metadata: TableMetadata
    handle: Any = None
    """What the home keeps of it for the swap."""

    @classmethod
    def of(cls, path: str, document: Mapping[str, Any], handle: object = None) -> State:
        """The state that a document tells."""
        return cls(path, document, parse_document(document, path), handle)


class Home(Protocol):
    """Where the table's newest state is."""

    @property
    def fetch(self) -> Fetch:
        """How its files are read."""

    @property
    def settings(self) -> Mapping[str, str]:
        """Where the store is, without secrets, for whoever writes data files."""

    def read(self) -> State:
        """The newest state."""

    def put(self, path: str, data: bytes) -> None:
        """Write a file of a name that is new."""

    def remove(self, path: str) -> None:
        """Delete a file; what cannot be deleted is left."""

    def publish(self, base: State, document: Mapping[str, Any], snapshot: Mapping[str, Any], branch: str) -> str:
        """Make the document the newest state in place of base: its path. Lost if base is not the newest any more.

        Every other error means that the outcome is unknown, but CommitRefused: then nothing has happened.
        """

    def swap(
        self, base: State, document: Mapping[str, Any], requirements: tuple[Any, ...], updates: tuple[Any, ...]
    ) -> str:
        """The same for a change that is no snapshot, as PyIceberg puts it to a catalog."""


@dataclass(frozen=True, slots=True)
class FolderHome:
    """A Hadoop table: v<N>.metadata.json is the Nth state, and whoever makes v<N+1> first has committed."""

    name: str
    folder: Path

    @property
    def fetch(self) -> Fetch:
        """Files are local."""
        return fetch_local

    @property
    def settings(self) -> Mapping[str, str]:
        """Nothing: files are local."""
        return {}

    def read(self) -> State:
        """The newest state. CommitRefused if a catalog keeps the table."""
        path, document = newest_metadata(self.folder)
        found = Candidate.of(path)
        if found is None or found.kind != "hadoop":
            raise CommitRefused(
                f"cannot change {self.name}: {path.name} is a metadata file of a catalog, and only the catalog can "
                "make another the newest. Open the table by its name there: tamis.open('catalog.namespace.table').",
                table=self.name,
                feature="a catalog's table, opened by its folder",
            )
        state = State.of(str(path), document or read_document(fetch_local(str(path)), str(path)))
        if not is_local(state.metadata.location):
            raise CommitRefused(
                f"cannot change {self.name}: its files lie in {shown(state.metadata.location)}, and this is a copy "
                "of its metadata. Open the table itself, through its catalog.",
                table=self.name,
                feature="a copy",
            )
        return state

    def put(self, path: str, data: bytes) -> None:
        """Write a file of a name that is new."""
        _DISK.put(path, data)

    def remove(self, path: str) -> None:
        """Delete a file; what cannot be deleted is left."""
        with suppress(UnwritableFileError):
            _DISK.remove(path)

    def publish(self, base: State, document: Mapping[str, Any], snapshot: Mapping[str, Any], branch: str) -> str:  # noqa: ARG002
        """Put a file of the next version's name, which works only if nobody has that name yet."""
        found = Candidate.of(Path(base.path))
        number = 1 + (found.number or 0 if found is not None else 0)
        folder = Path(base.path).parent
        zipped = base.metadata.properties.get(CODEC, "none").strip().lower() == "gzip"
        names = [f"v{number}.metadata.json", f"v{number}.gz.metadata.json", f"v{number}.metadata.json.gz"]
        final = str(folder / names[1 if zipped else 0])
        if any((folder / name).exists() for name in names):
            raise Lost(f"version {number} is there already")
        if not _DISK.put_if_absent(final, packed(document, zipped=zipped)):
            raise Lost(f"version {number} was made by another writer")
        with suppress(UnwritableFileError):  # readers look for later versions than the hint's
            _DISK.put(str(folder / HINT), str(number).encode())
        for path in forgotten(base.document, document, final):
            self.remove(path)
        return final

    def swap(
        self,
        base: State,
        document: Mapping[str, Any],
        requirements: tuple[Any, ...],  # noqa: ARG002 - the next version's name is all that is asked for
        updates: tuple[Any, ...],  # noqa: ARG002 - the document has them
    ) -> str:
        """Put a file of the next version's name."""
        return self.publish(base, document, {}, "")


def packed(document: Mapping[str, Any], *, zipped: bool) -> bytes:
    """The document as a metadata file has it."""
    data = json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()
    return gzip.compress(data) if zipped else data
