"""A table that a catalog keeps: PyIceberg's client asks the catalog to swap one state for another.

A REST catalog applies the change itself. For the others PyIceberg writes the metadata file, from its own model: what
that model does not know would be lost, and version 3 it does not write at all. So the file is written here, from the
document that the catalog has; PyIceberg does the swap.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from tamis.errors import CommitRefused
from tamis.formats.errors import unwritable
from tamis.formats.iceberg.catalogs import newest_table
from tamis.formats.iceberg.document import read_document
from tamis.formats.iceberg.fileio import fetch_through
from tamis.formats.iceberg.homes import FolderHome, Home, Lost, State, packed
from tamis.formats.iceberg.origin import Origin
from tamis.formats.iceberg.snapshots import forgotten
from tamis.formats.storage import Fetch
from tamis.formats.storage.disk import LocalStorage
from tamis.formats.storage.local import is_local
from tamis.formats.storage.objects import s3_endpoint
from tamis.formats.storage.secrets import safe_message, safe_reason, silence

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.io import FileIO
    from pyiceberg.table import Table as PyIcebergTable

__all__ = ["CatalogHome", "home_of"]

_WRITERS: Final = ("_write_metadata", "_write_metadata_no_exist_check")
"""PyIceberg's own ways to write a metadata file, in the version that tamis is bound to."""
FRESH: Final = 60.0
"""Seconds for which the catalog's last answer says how to reach the store: each has all of the table's metadata, and
the credentials that some catalogs give with it live longer."""
_NOT_DONE: Final = frozenset(
    {"BadRequestError", "UnauthorizedError", "ForbiddenError", "NoSuchTableError", "NoSuchIcebergTableError"}
)
"""PyIceberg's errors of a catalog that has understood the request, and has not done it."""


def home_of(name: str, origin: Origin | None) -> Home:
    """Where the table is to be changed. CommitRefused if it was opened so that nobody can tell."""
    if origin is not None and origin.kind == "catalog" and origin.catalog is not None:
        return CatalogHome(name, origin.catalog, origin.identifier)
    if origin is not None and origin.kind == "folder":
        return FolderHome(name, Path(origin.name))
    kind = "" if origin is None else origin.kind
    why = {
        "catalog": "it was pickled, and its catalog's connection was not",
        "file": "it was opened by a metadata file, and only its catalog can make another the newest",
    }.get(kind, "nobody knows where it was opened from")
    raise CommitRefused(
        f"cannot change {name}: {why}. Open the table by its name: tamis.open('catalog.namespace.table').",
        table=name,
        feature=f"a table opened by a {kind}" if kind == "file" else "a table without its catalog",
    )


@dataclass(slots=True, repr=False)
class _Store:
    """How files are reached, by the catalog's last answer, and when that was."""

    io: FileIO | None = None
    since: float = 0.0


@dataclass(frozen=True, slots=True, repr=False)
class CatalogHome:
    """A catalog, and the table's name in it."""

    name: str
    catalog: Catalog
    identifier: tuple[str, ...]
    store: _Store = field(default_factory=_Store, compare=False)

    @property
    def fetch(self) -> Fetch:
        """Files through the catalog's own FileIO."""
        return fetch_through(self._io())

    @property
    def settings(self) -> Mapping[str, str]:
        """Where S3 is, as the catalog or the environment says; never a credential."""
        known = {key: str(value) for key, value in self.catalog.properties.items() if key in _PLACES}
        return {**s3_endpoint(), **known}

    def _load(self) -> PyIcebergTable:
        table = newest_table(self.catalog, self.identifier)
        self.store.io, self.store.since = table.io, monotonic()
        return table

    def _io(self) -> FileIO:
        io = self.store.io
        return io if io is not None and monotonic() - self.store.since < FRESH else self._load().io

    def read(self) -> State:
        """The newest state."""
        table = self._load()
        location = table.metadata_location
        data = fetch_through(table.io)(location)
        return State.of(location, read_document(data, location), table)

    def put(self, path: str, data: bytes) -> None:
        """Write a file of a name that is new."""
        if is_local(path):
            LocalStorage().put(path, data)
            return
        try:
            with self._io().new_output(path).create() as stream:
                stream.write(data)
        except OSError as error:  # of pyarrow, as of the system
            found = unwritable(path, error, safe_reason(error, path))
            silence(error, path, self.catalog.properties)
            raise found from error

    def remove(self, path: str) -> None:
        """Delete a file; what cannot be deleted is left."""
        with suppress(Exception):  # nothing refers to it, whatever a store's client says
            if is_local(path):
                LocalStorage().remove(path)
            else:
                self._io().delete(path)

    def publish(self, base: State, document: Mapping[str, Any], snapshot: Mapping[str, Any], branch: str) -> str:
        """Ask the catalog to swap; only if the branch, the schema and the table are still those of base."""
        from pyiceberg.table import update
        from pyiceberg.table.snapshots import Snapshot

        head = next((ref.snapshot_id for ref in base.metadata.refs if ref.name == branch), None)
        known = base.document.get("table-uuid")
        requirements: tuple[Any, ...] = (
            *([] if known is None else [update.AssertTableUUID(uuid=known)]),
            update.AssertRefSnapshotId.model_validate({"ref": branch, "snapshot-id": head}),
            update.AssertCurrentSchemaId.model_validate({"current-schema-id": base.metadata.current_schema_id}),
        )
        updates = (
            update.AddSnapshotUpdate(snapshot=Snapshot.model_validate(snapshot)),
            update.SetSnapshotRefUpdate.model_validate({"ref-name": branch, **document["refs"][branch]}),
        )
        return self._swapped(base, document, requirements, updates, snapshot["snapshot-id"])

    def swap(
        self, base: State, document: Mapping[str, Any], requirements: tuple[Any, ...], updates: tuple[Any, ...]
    ) -> str:
        """Ask the catalog to swap, for a change that is no snapshot."""
        return self._swapped(base, document, requirements, updates, None)

    def _swapped(
        self,
        base: State,
        document: Mapping[str, Any],
        requirements: tuple[Any, ...],
        updates: tuple[Any, ...],
        snapshot_id: int | None,
    ) -> str:
        from pyiceberg.exceptions import CommitFailedException

        written: list[str] = []
        try:
            answer = self._writing(base, document, written).commit_table(base.handle, requirements, updates)
        except CommitFailedException as error:
            # A client that asks again when an answer was lost hears of its own commit as another's: Glue's does. If
            # nobody can tell, that is another error, and the outcome is unknown.
            happened = self._happened(snapshot_id, written)
            if happened is not None:
                return happened
            for path in written:
                self.remove(path)
            raise Lost(safe_message(error, self.catalog.properties)) from error
        except Exception as error:
            if type(error).__name__ not in _NOT_DONE:
                raise
            for path in written:
                self.remove(path)
            raise CommitRefused(
                f"cannot change {self.name}: the catalog refuses it ({type(error).__name__}). Check that you may "
                "write to the table.",
                table=self.name,
                feature=type(error).__name__,
            ) from error
        # A catalog that applies the change on its side has seen to its old metadata files as well.
        for path in forgotten(base.document, document, answer.metadata_location) if written else ():
            self.remove(path)
        return str(answer.metadata_location)

    def _happened(self, snapshot_id: int | None, written: Sequence[str]) -> str | None:
        """The newest metadata file, if it has the snapshot, or is or follows one that was written here."""
        state = self.read()
        history = {state.path, *(one.get("metadata-file") for one in state.document.get("metadata-log") or ())}
        found = any(one.id == snapshot_id for one in state.metadata.snapshots) or not history.isdisjoint(written)
        return state.path if found else None

    def _writing(self, base: State, document: Mapping[str, Any], written: list[str]) -> Catalog:
        """The catalog, with the document in place of what PyIceberg would write."""
        if not all(hasattr(self.catalog, one) for one in _WRITERS[:1]):
            return self.catalog  # it applies the change on its side
        from pyiceberg.exceptions import CommitFailedException

        def write(metadata: Any, io: Any, metadata_path: str) -> None:  # noqa: ANN401 - PyIceberg's own
            log = metadata.metadata_log
            if not log or log[-1].metadata_file != base.path:
                raise CommitFailedException("the table has changed since it was read")
            written.append(metadata_path)
            data = packed(document, zipped=".gz" in metadata_path.rpartition("/")[2])
            with io.new_output(metadata_path).create() as stream:
                stream.write(data)

        own = copy.copy(self.catalog)
        for name in _WRITERS:
            if hasattr(own, name):
                setattr(own, name, write)
        return own


_PLACES: Final = frozenset({"s3.endpoint", "s3.region"})
