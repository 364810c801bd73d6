"""What a table is on disk: metadata in, edits out. One folder a format.

A format gives a `FormatTable`: one state of a table, with its columns, its specs, and its files passed through the
funnel. Which format a path holds is seen from its layout.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tamis.formats.errors import NoSuchTableError, UnsupportedFormatError, shown
from tamis.formats.iceberg.cache import ManifestCache
from tamis.formats.iceberg.catalogs import (
    CatalogLike,
    fetch_through,
    file_io,
    find_table,
    is_pyiceberg_table,
    list_catalog,
    loaded_table,
)
from tamis.formats.iceberg.conditions import converted
from tamis.formats.iceberg.inspection import Inspection
from tamis.formats.iceberg.locate import is_table_folder, local_path
from tamis.formats.iceberg.metadata import TableMetadata, parse_metadata
from tamis.formats.iceberg.newest import newest_metadata
from tamis.formats.iceberg.reading import Fetch, fetch_local
from tamis.formats.iceberg.table import IcebergTable
from tamis.formats.scan import Scan
from tamis.formats.spread import Spread
from tamis.predicate.nodes import Node
from tamis.predicate.schema import Schema
from tamis.sieve.outcome import Sieve
from tamis.sieve.partitions import PartitionSpec
from tamis.sieve.plan import ScanPlan

__all__ = ["At", "FormatTable", "converted_condition", "list_catalog", "open_table"]


def converted_condition(expression: object, schema: Schema) -> Node:
    """A condition that is written in another library's expressions: PyIceberg's."""
    return converted(expression, schema)


class FormatTable(Protocol):
    """One state of a table, opened: what every format gives."""

    @property
    def name(self) -> str:
        """The name that it was opened by."""

    @property
    def format(self) -> str:
        """The format and its version, as people name it."""

    @property
    def location(self) -> str:
        """The folder that the table's metadata names as its own."""

    @property
    def schema(self) -> Schema:
        """The columns that a predicate may name."""

    @property
    def specs(self) -> tuple[PartitionSpec, ...]:
        """Every partition spec that the table has had; none if the format has none."""

    @property
    def snapshot_id(self) -> int | None:
        """The state that is planned over."""

    def sift(self, sieve: Sieve, progress: Callable[[int, int], None] | None = None) -> ScanPlan:
        """Pass the table's files through the funnel."""

    def spread(self, sieve: Sieve) -> Spread:
        """What is left of planning once the table's first metadata has been read: to do here, or on executors."""

    def scan(self, plan: ScanPlan) -> Scan:
        """The files that a plan of this table keeps, as a reader needs them."""

    def inspect(self, progress: Callable[[int, int], None] | None = None) -> Inspection:
        """What the state is made of: files, rows, bytes and deletes, by spec."""


@dataclass(frozen=True, slots=True)
class At:
    """Which state of the table: at most one of these, else the newest."""

    snapshot_id: int | None = None
    ref: str | None = None
    """A branch or a tag."""
    as_of_ms: int | None = None
    """The state at a time, in milliseconds since 1970."""


def open_table(target: Any, at: At, catalog: CatalogLike | None, *, cache: bool | None = None) -> FormatTable:  # noqa: ANN401 - a name, or another library's object
    """The table that target names: a folder, a metadata file, or a name in a catalog; or that PyIceberg has loaded.

    cache says whether decoded metadata is kept on local disk; if not given, the environment does, and else it is.
    """
    kept = ManifestCache.chosen(cache)
    if is_pyiceberg_table(target):
        name, location, fetch = loaded_table(target)
        return _iceberg(name, parse_metadata(fetch(location), location), at, fetch, kept)
    path = local_path(target)
    if catalog is None and path is not None and path.exists():
        return _open_local(target, path, at, kept)
    if catalog is None and "://" in target:
        return _open_remote(target, at, kept)
    location, fetch = find_table(target, catalog)
    metadata = parse_metadata(fetch(location), location)
    return _iceberg(target, metadata, at, fetch, kept)


def _open_local(target: str, path: Path, at: At, cache: ManifestCache | None) -> FormatTable:
    if path.is_dir():
        if (path / "_delta_log").is_dir():
            raise _not_yet(target, "Delta")
        if (path / "schema" / "schema-0").exists():
            raise _not_yet(target, "Paimon")
        if not is_table_folder(path):
            raise NoSuchTableError(
                f"{shown(target)} is not a table: it has no metadata/*.metadata.json. Give a table's folder, its "
                "metadata file, or its name in a catalog.",
                table=shown(target),
            )
        path, _ = newest_metadata(path)
    location = str(path)
    metadata = parse_metadata(fetch_local(location), location)
    # A copied metadata file may name files of an object store.
    local = local_path(metadata.location) is not None
    fetch = fetch_local if local else fetch_through(file_io(metadata.location, {}))
    return _iceberg(target, metadata, at, fetch, cache)


def _open_remote(target: str, at: At, cache: ManifestCache | None) -> FormatTable:
    if not target.split("?", maxsplit=1)[0].endswith((".metadata.json", ".metadata.json.gz")):
        raise NoSuchTableError(
            f"{shown(target)} is not a metadata file. A folder of an object store cannot be listed safely: open the "
            "table by its name in a catalog, or give the newest *.metadata.json.",
            table=shown(target),
        )
    fetch = fetch_through(file_io(target, {}))
    return _iceberg(target, parse_metadata(fetch(target), target), at, fetch, cache)


def _iceberg(name: str, metadata: TableMetadata, at: At, fetch: Fetch, cache: ManifestCache | None) -> FormatTable:
    selection = metadata.select(snapshot_id=at.snapshot_id, ref=at.ref, as_of_ms=at.as_of_ms)
    return IcebergTable(shown(name), metadata, selection, fetch, cache)


def _not_yet(target: str, format_: str) -> UnsupportedFormatError:
    return UnsupportedFormatError(
        f"{shown(target)} is a {format_} table, which this version does not read. Iceberg tables are.",
        path=shown(target),
        feature=format_,
    )
