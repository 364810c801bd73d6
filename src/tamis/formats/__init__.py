"""What a table is on disk: metadata in, edits out. One folder a format.

A format gives a `FormatTable`: one state of a table, with its columns, its specs, and its files passed through the
funnel. It is one entry of `FORMATS`, and nothing else outside its folder knows it. Which format a folder holds is
seen from its layout.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from tamis.errors import AmbiguousTableError, CommitRefused, NoSuchTableError, UnsupportedFormatError
from tamis.formats.delta import door as delta_door
from tamis.formats.edit import WritableTable
from tamis.formats.errors import shown
from tamis.formats.iceberg import door as iceberg_door
from tamis.formats.inspection import Inspection
from tamis.formats.listing import Held, Listing
from tamis.formats.opening import At, CatalogLike, CatalogListing, Opening
from tamis.formats.paimon import door as paimon_door
from tamis.formats.scan import MetadataColumn, Scan
from tamis.formats.storage import Storage
from tamis.formats.storage.access import Access
from tamis.formats.storage.cache import MetadataCache
from tamis.formats.storage.local import exists, local_path
from tamis.predicate.nodes import Node
from tamis.predicate.schema import Schema
from tamis.rewrite.terms import RewriteTerms
from tamis.sieve.partitions import PartitionSpec
from tamis.sieve.plan import ScanPlan
from tamis.sieve.sieve import Sieve

__all__ = [
    "FORMATS",
    "At",
    "CatalogListing",
    "Format",
    "FormatTable",
    "converted_condition",
    "format_names",
    "list_catalog",
    "open_table",
    "state_of",
    "state_word",
    "writable_table",
]


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
    def metadata_columns(self) -> tuple[MetadataColumn, ...]:
        """What a row may be asked about where it lies, in the format's words."""

    @property
    def snapshot_id(self) -> int | None:
        """The state that is planned over."""

    def list(self, sieve: Sieve, held: Held | None = None) -> Listing:
        """The table's files as work that is left, once its first metadata has been read and judged.

        With held, which is given to every listing of one job, nothing is read that one of them has read.
        """

    def access(self) -> Access:
        """Where the table's store is and who enters it, as it was opened."""

    def scan(self, plan: ScanPlan) -> Scan:
        """The files that a plan of this table keeps, as a reader needs them."""

    @property
    def rewrite_terms(self) -> RewriteTerms:
        """What a rewrite has to know of the table: its defaults, the format's words, its deletes."""

    def inspect(self, progress: Callable[[int, int], None] | None = None) -> Inspection:
        """What the state is made of: files, rows, bytes and deletes, by spec."""


def _foreign(_: object) -> bool:
    return False


def _unknown(_expression: object, _schema: Schema) -> Node | None:
    return None


@dataclass(frozen=True, slots=True)
class Format:
    """A format: how its tables are known, and how they are opened."""

    key: str
    """What users choose it by."""
    name: str
    """As people say it."""
    mark: str
    """What a folder of it has, and no other folder."""
    is_table_folder: Callable[[str, Storage], bool]
    """Whether a folder, by path or URI, has the mark."""
    open: Callable[[Opening], FormatTable] | None = None
    """None if this version does not read it."""
    has_loaded: Callable[[object], bool] = _foreign
    """Whether this is a table that the format's own library has loaded."""
    condition: Callable[[object, Schema], Node | None] = _unknown
    """The condition that an expression of the format's own library states; None if it is none of its."""
    is_metadata_file: Callable[[str], bool] = _foreign
    """Whether a URI names a file that a table of the format is opened by: no folder is looked for there."""
    state: str = "snapshot"
    """What its users call a state of a table."""
    plain_name: Callable[[str], str] = str
    """The folder of the table, of a name that asks for another form of it; else the name as it is."""
    opens_remote_folders: bool = False
    """Whether a folder of an object store tells the table's newest state. Iceberg's does not: its catalog does."""
    has_catalog: Callable[[object], bool] = _foreign
    """Whether this is a catalog of the format's own library, in which names are the format's tables."""
    write: Callable[[Any, bool], WritableTable] | None = None
    """A table of the format, read anew to be changed, and whether who writes its files is told who may enter their
    store. None if this version does not write it."""
    list_catalog: Callable[[str | None], CatalogListing] | None = None
    """The catalogs that are configured; what one has; or what a namespace has. None if the format knows none."""

    @property
    def a_name(self) -> str:
        """With its article."""
        return f"{'an' if self.name[0] in 'AEIOU' else 'a'} {self.name}"


FORMATS: Final[tuple[Format, ...]] = (
    Format(
        "iceberg",
        "Iceberg",
        "metadata/*.metadata.json",
        iceberg_door.is_table_folder,
        iceberg_door.open_table,
        iceberg_door.is_pyiceberg_table,
        iceberg_door.condition,
        iceberg_door.is_metadata_file,
        write=iceberg_door.writable,
        list_catalog=iceberg_door.list_catalog,
    ),
    Format(
        "delta",
        "Delta",
        "_delta_log",
        delta_door.is_table_folder,
        delta_door.open_table,
        delta_door.is_deltalake_table,
        state="version",
        opens_remote_folders=True,
    ),
    Format(
        "paimon",
        "Paimon",
        "schema/schema-*",
        paimon_door.is_table_folder,
        paimon_door.open_table,
        paimon_door.is_pypaimon_table,
        plain_name=paimon_door.plain_name,
        opens_remote_folders=True,
        has_catalog=paimon_door.is_pypaimon_catalog,
    ),
)
"""All formats that a folder's layout tells apart. The first opens what no other claims: files and names."""


def writable_table(table: FormatTable, *, hands_access: bool = False) -> WritableTable:
    """The table as it is now, to be changed. CommitRefused if it was opened so that it cannot be.

    hands_access has executors write by the access that the table was opened with; else each by its environment's.
    """
    entry = next(one for one in FORMATS if table.format.startswith(one.key))
    if entry.write is None:
        raise CommitRefused(
            f"cannot change {table.name}: this version does not write {entry.name} tables.",
            table=table.name,
            feature=entry.name,
        )
    return entry.write(table, hands_access)


def state_of(format: str, id_: int | None) -> str:  # noqa: A002 - as it is called everywhere
    """A state of a table as users of its format name it: `snapshot 123`, of Delta `version 4`."""
    word = state_word(format)
    return f"no {word} yet" if id_ is None else f"{word} {id_}"


def state_word(format: str) -> str:  # noqa: A002 - as it is called everywhere
    """What users of a format call a state of a table."""
    return next((entry.state for entry in FORMATS if format.startswith(entry.key)), "snapshot")


def format_names() -> tuple[str, ...]:
    """What users choose a format by."""
    return tuple(entry.key for entry in FORMATS)


def converted_condition(expression: object, schema: Schema) -> Node | None:
    """A condition that is written in another library's expressions, such as PyIceberg's; None if it is in none's."""
    return next((node for entry in FORMATS if (node := entry.condition(expression, schema)) is not None), None)


def list_catalog(name: str | None) -> CatalogListing:
    """The configured catalogs; the namespaces of one; or the tables, and the namespaces, of a namespace."""
    (listing, *_) = (entry.list_catalog for entry in FORMATS if entry.list_catalog is not None)
    return listing(name)


def open_table(
    target: Any,  # noqa: ANN401 - a name, or another library's object
    at: At,
    catalog: CatalogLike | None,
    *,
    format: str | None = None,  # noqa: A002 - as it is called everywhere
    cache: bool | None = None,
) -> FormatTable:
    """The table that target names: a folder, a metadata file, or a name in a catalog; or that a library has loaded.

    format says as what a folder is opened; if not given, it must hold a table of one format alone. cache says whether
    decoded metadata is kept on local disk; if not given, the environment does, and else it is.
    """
    if format is not None and format not in format_names():
        raise ValueError(f"{format!r} is not a table format: it is one of {', '.join(format_names())}")
    opening = Opening(target, at, catalog, MetadataCache.chosen(cache))
    chosen = _format(opening, next((entry for entry in FORMATS if entry.key == format), None))
    if chosen.open is None:
        raise _not_yet(opening.shown, chosen)
    return chosen.open(opening)


def _format(opening: Opening, chosen: Format | None) -> Format:
    """As what the target is opened."""
    target = opening.target
    if not isinstance(target, str):
        loaded = next((entry for entry in FORMATS if entry.has_loaded(target)), FORMATS[0])
        if chosen not in (None, loaded) and chosen.open is not None:
            raise ValueError(f"this is {loaded.a_name} table, which its own library has loaded: leave format= out")
        return chosen or loaded
    path = local_path(target)
    if opening.catalog is not None:
        return chosen or next((entry for entry in FORMATS if entry.has_catalog(opening.catalog)), FORMATS[0])
    if path is not None and exists(target) and path.is_dir():
        return _folder_format(
            target, chosen, [entry for entry in FORMATS if entry.is_table_folder(target, opening.storage)]
        )
    for entry in FORMATS:
        folder = entry.plain_name(target)
        if folder != target and chosen in (None, entry) and entry.is_table_folder(folder, opening.storage):
            return entry
    if path is None and chosen is None:
        if (named := next((entry for entry in FORMATS if entry.is_metadata_file(target)), None)) is not None:
            return named
        able = (entry for entry in FORMATS if entry.open is not None and entry.opens_remote_folders)
        marked = [entry for entry in able if entry.is_table_folder(target, opening.storage)]
        return _folder_format(target, None, marked) if marked else FORMATS[0]
    return chosen or FORMATS[0]


def _folder_format(target: str, chosen: Format | None, marked: Sequence[Format]) -> Format:
    """As what a folder is opened that has these marks. It may hold one table for readers of several formats."""
    if chosen is not None and chosen not in marked:
        beside = f"; it has {' and '.join(entry.mark for entry in marked)}" if marked else ""
        raise NoSuchTableError(
            f"{shown(target)} is not {chosen.a_name} table: it has no {chosen.mark}{beside}. Give a table's "
            "folder, or another format.",
            table=shown(target),
        )
    if not marked:
        marks = " nor ".join(entry.mark for entry in FORMATS if entry.open is not None)
        raise NoSuchTableError(
            f"{shown(target)} is not a table: it has no {marks}. Give a table's folder, its "
            "metadata file, or its name in a catalog.",
            table=shown(target),
        )
    if chosen is None and len(marked) > 1:
        what = " and ".join(f"{entry.mark} ({entry.name})" for entry in marked)
        choices = " or ".join(f"format={entry.key!r}" for entry in marked)
        raise AmbiguousTableError(
            f"{shown(target)} is a table of {len(marked)} formats: it has {what}. Their states may differ: choose "
            f"one with {choices} (--table-format on the command line).",
            table=shown(target),
            candidates=tuple(entry.key for entry in marked),
            reason=f"a table of {len(marked)} formats",
        )
    return chosen or marked[0]


def _not_yet(target: str, found: Format) -> UnsupportedFormatError:
    *others, last = (entry.name for entry in FORMATS if entry.open is not None)
    read = f"{', '.join(others)} and {last}" if others else last
    return UnsupportedFormatError(
        f"{target} is a {found.name} table, or is to be opened as one, and this version does not read {found.name}. "
        f"{read} tables are read.",
        path=target,
        feature=found.name,
    )
