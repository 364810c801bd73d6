"""Iceberg tables, opened: by folder, metadata file or name in a catalog, or as PyIceberg has loaded them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tamis.errors import NoSuchTableError
from tamis.formats.errors import shown
from tamis.formats.iceberg.catalogs import find_table, is_pyiceberg_table
from tamis.formats.iceberg.door import is_metadata_file
from tamis.formats.iceberg.fileio import fetch_through, file_io
from tamis.formats.iceberg.metadata import TableMetadata
from tamis.formats.iceberg.newest import newest_metadata
from tamis.formats.iceberg.origin import Origin
from tamis.formats.iceberg.parsing import parse_document, parse_metadata
from tamis.formats.iceberg.table import IcebergTable
from tamis.formats.opening import Opening, StateError
from tamis.formats.storage import Fetch
from tamis.formats.storage.local import exists, fetch_local, local_path

if TYPE_CHECKING:
    from pyiceberg.table import Table as PyIcebergTable

__all__ = ["open_table"]

_NO_CATALOG = "NoopCatalog"
"""What PyIceberg gives a table that it was told to read from a metadata file."""


def open_table(opening: Opening) -> IcebergTable:
    """The table at the state that is asked for; an error that says why there is none."""
    target = opening.target
    if is_pyiceberg_table(target):
        return _loaded(".".join(target.name()), target, opening)
    path = local_path(target)
    if opening.catalog is None and path is not None and exists(target):
        return _local(path, opening)
    if opening.catalog is None and "://" in target:
        return _remote(opening)
    return _loaded(target, find_table(target, opening.catalog), opening)


def _loaded(name: str, table: PyIcebergTable, opening: Opening) -> IcebergTable:
    location, fetch = table.metadata_location, fetch_through(table.io)
    if type(table.catalog).__name__ == _NO_CATALOG:
        origin = Origin("file", location)
    else:
        origin = Origin("catalog", ".".join(table.name()), table.catalog, tuple(table.name()))
    return _table(name, parse_metadata(fetch(location), location), fetch, origin, opening)


def _local(path: Path, opening: Opening) -> IcebergTable:
    document = None
    origin = Origin("file", str(path))
    if path.is_dir():
        origin = Origin("folder", str(path))
        path, document = newest_metadata(path)
    location = str(path)
    metadata = (
        parse_metadata(fetch_local(location), location) if document is None else parse_document(document, location)
    )
    # A copied metadata file may name files of an object store.
    local = local_path(metadata.location) is not None
    fetch = fetch_local if local else fetch_through(file_io(metadata.location, {}))
    return _table(opening.target, metadata, fetch, origin, opening)


def _remote(opening: Opening) -> IcebergTable:
    target: str = opening.target
    if not is_metadata_file(target):
        raise NoSuchTableError(
            f"{shown(target)} is not a metadata file. A folder of an object store cannot be listed safely: open the "
            "table by its name in a catalog, or give the newest *.metadata.json.",
            table=shown(target),
        )
    fetch = fetch_through(file_io(target, {}))
    return _table(target, parse_metadata(fetch(target), target), fetch, Origin("file", target), opening)


def _table(name: str, metadata: TableMetadata, fetch: Fetch, origin: Origin, opening: Opening) -> IcebergTable:
    at = opening.at
    if at.version is not None:
        raise StateError("an Iceberg table has no versions, but snapshots: give snapshot_id=, ref= or as_of=")
    selection = metadata.select(snapshot_id=at.snapshot_id, ref=at.ref, as_of_ms=at.as_of_ms)
    return IcebergTable(shown(name), metadata, selection, fetch, opening.cache, origin, at.ref)
