"""How Iceberg tables are known, without what reads or writes them: that is loaded when a table is opened.

Law: whether something is an Iceberg table is told by its name, its folder or its type alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.formats.iceberg.catalogs import is_pyiceberg_table, list_catalog
from tamis.formats.iceberg.locate import candidates, is_metadata_name
from tamis.formats.opening import Opening
from tamis.formats.storage import Storage
from tamis.formats.storage.local import local_path
from tamis.predicate.nodes import Node
from tamis.predicate.schema import Schema

if TYPE_CHECKING:
    from tamis.formats.iceberg.commit import WritableIceberg
    from tamis.formats.iceberg.table import IcebergTable

__all__ = [
    "condition",
    "is_metadata_file",
    "is_pyiceberg_table",
    "is_table_folder",
    "list_catalog",
    "open_table",
    "writable",
]


def is_table_folder(folder: str, storage: Storage) -> bool:
    """Whether a folder is laid out as an Iceberg table."""
    path = local_path(folder)
    if path is not None:
        return bool(candidates(path))
    return any(is_metadata_name(one.name) for one in storage.list(f"{folder.rstrip('/')}/metadata"))


def is_metadata_file(uri: str) -> bool:
    """Whether a URI names a metadata file."""
    return "://" in uri and uri.split("?", maxsplit=1)[0].endswith((".metadata.json", ".metadata.json.gz"))


def condition(expression: object, schema: Schema) -> Node | None:
    """The condition that an expression of PyIceberg states; None if it is none of PyIceberg's."""
    of = type(expression).__mro__
    if not any(one.__name__ == "BooleanExpression" and one.__module__.startswith("pyiceberg.") for one in of):
        return None
    from tamis.formats.iceberg.conditions import converted

    return converted(expression, schema)


def open_table(opening: Opening) -> IcebergTable:
    """The table at the state that is asked for; an error that says why there is none."""
    from tamis.formats.iceberg import open as opened

    return opened.open_table(opening)


def writable(table: IcebergTable, hands_access: bool) -> WritableIceberg:  # noqa: FBT001 - as FORMATS has it
    """The table, read anew to be changed."""
    from tamis.formats.iceberg.commit import WritableIceberg

    return WritableIceberg.of(table, hands_access)
