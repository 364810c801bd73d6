"""What a table is on disk: metadata in, edits out. One folder a format.

A format gives a `FormatTable`: one state of a table, with its columns, its specs, and its files passed through the
funnel. Which format a path holds is seen from its layout.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Protocol, get_args

from tamis.errors import AmbiguousTableError, NoSuchTableError, UnsupportedFormatError
from tamis.formats.errors import shown, unreachable
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
from tamis.formats.iceberg.metadata import TableMetadata
from tamis.formats.iceberg.newest import newest_metadata
from tamis.formats.iceberg.parsing import parse_document, parse_metadata
from tamis.formats.iceberg.reading import Fetch, fetch_local
from tamis.formats.iceberg.table import IcebergTable
from tamis.formats.scan import Scan
from tamis.formats.spread import Spread
from tamis.predicate.nodes import Node
from tamis.predicate.schema import Schema
from tamis.sieve.outcome import Sieve
from tamis.sieve.partitions import PartitionSpec
from tamis.sieve.plan import ScanPlan

__all__ = ["FORMATS", "At", "FormatTable", "TableFormat", "converted_condition", "list_catalog", "open_table"]

TableFormat = Literal["iceberg", "delta", "paimon"]
FORMATS: Final[tuple[TableFormat, ...]] = get_args(TableFormat)
"""Formats that a folder's layout tells apart. Only Iceberg can be read yet."""
_NAMES: Final = {"iceberg": "Iceberg", "delta": "Delta", "paimon": "Paimon"}
_NAMED: Final = {"iceberg": "an Iceberg", "delta": "a Delta", "paimon": "a Paimon"}
_MARKS: Final = {"iceberg": "metadata/*.metadata.json", "delta": "_delta_log", "paimon": "schema/schema-*"}
"""What a folder of each has."""


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


def open_table(
    target: Any,  # noqa: ANN401 - a name, or another library's object
    at: At,
    catalog: CatalogLike | None,
    *,
    format: TableFormat | None = None,  # noqa: A002 - as it is called everywhere
    cache: bool | None = None,
) -> FormatTable:
    """The table that target names: a folder, a metadata file, or a name in a catalog; or that PyIceberg has loaded.

    format says as what a folder is opened; if not given, it must hold a table of one format alone. cache says whether
    decoded metadata is kept on local disk; if not given, the environment does, and else it is.
    """
    if format is not None and format not in FORMATS:
        raise ValueError(f"{format!r} is not a table format: it is one of {', '.join(FORMATS)}")
    kept = ManifestCache.chosen(cache)
    if is_pyiceberg_table(target):
        name, location, fetch = loaded_table(target)
        if format not in (None, "iceberg"):
            raise _not_yet(name, format)
        return _iceberg(name, parse_metadata(fetch(location), location), at, fetch, kept)
    path = local_path(target)
    if catalog is None and path is not None and _exists(target, path):
        return _open_local(target, path, at, format, kept)
    if format not in (None, "iceberg"):
        raise _not_yet(target, format)
    if catalog is None and "://" in target:
        return _open_remote(target, at, kept)
    location, fetch = find_table(target, catalog)
    metadata = parse_metadata(fetch(location), location)
    return _iceberg(target, metadata, at, fetch, kept)


def _exists(target: str, path: Path) -> bool:
    try:
        return path.exists()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return False  # no file's name, so it may be a table's
        raise unreachable(target, error) from error
    except ValueError:
        return False  # a NUL


def _open_local(
    target: str, path: Path, at: At, chosen: TableFormat | None, cache: ManifestCache | None
) -> FormatTable:
    document = None
    if path.is_dir():
        found = _format(target, path, chosen)
        if found != "iceberg":
            raise _not_yet(target, found)
        path, document = newest_metadata(path)
    elif chosen not in (None, "iceberg"):
        raise _not_yet(target, chosen)
    location = str(path)
    metadata = (
        parse_metadata(fetch_local(location), location) if document is None else parse_document(document, location)
    )
    # A copied metadata file may name files of an object store.
    local = local_path(metadata.location) is not None
    fetch = fetch_local if local else fetch_through(file_io(metadata.location, {}))
    return _iceberg(target, metadata, at, fetch, cache)


def _format(target: str, folder: Path, chosen: TableFormat | None) -> TableFormat:
    """As what a folder is opened. It may hold one table for readers of several formats."""
    present = {
        "iceberg": is_table_folder(folder),
        "delta": (folder / "_delta_log").is_dir(),
        "paimon": any((folder / "schema").glob("schema-*")),
    }
    found = [one for one in FORMATS if present[one]]
    if chosen is not None and chosen not in found:
        others = f"; it has {' and '.join(_MARKS[one] for one in found)}" if found else ""
        raise NoSuchTableError(
            f"{shown(target)} is not {_NAMED[chosen]} table: it has no {_MARKS[chosen]}{others}. Give a table's "
            "folder, or another format.",
            table=shown(target),
        )
    if not found:
        raise NoSuchTableError(
            f"{shown(target)} is not a table: it has no metadata/*.metadata.json. Give a table's folder, its "
            "metadata file, or its name in a catalog.",
            table=shown(target),
        )
    if chosen is None and len(found) > 1:
        what = " and ".join(f"{_MARKS[one]} ({_NAMES[one]})" for one in found)
        choices = " or ".join(f"format={one!r}" for one in found)
        raise AmbiguousTableError(
            f"{shown(target)} is a table of {len(found)} formats: it has {what}. Their states may differ: choose "
            f"one with {choices} (--table-format on the command line).",
            table=shown(target),
            candidates=tuple(found),
            reason=f"a table of {len(found)} formats",
        )
    return chosen or found[0]


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


def _not_yet(target: str, found: TableFormat | None) -> UnsupportedFormatError:
    name = _NAMES[found or "iceberg"]
    return UnsupportedFormatError(
        f"{shown(target)} is a {name} table, or is to be opened as one, and this version does not read {name}. "
        "Iceberg tables are read.",
        path=shown(target),
        feature=name,
    )
