"""How Paimon tables are known, without what reads them: that is loaded when a table is opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.formats.opening import Opening
from tamis.formats.paimon.names import form_of_folder
from tamis.formats.storage import Storage
from tamis.formats.storage.local import inside

if TYPE_CHECKING:
    from tamis.formats.paimon.table import PaimonTable

__all__ = ["is_pypaimon_catalog", "is_pypaimon_table", "is_table_folder", "open_table", "plain_name"]


def is_table_folder(folder: str, storage: Storage) -> bool:
    """Whether a folder has a schema of a Paimon table."""
    return any(file.name.startswith("schema-") for file in storage.list(inside(folder, "schema")))


def is_pypaimon_table(target: object) -> bool:
    """Whether this is a table that pypaimon has loaded."""
    return _is_of_pypaimon(target) and hasattr(target, "table_path") and hasattr(target, "table_schema")


def is_pypaimon_catalog(catalog: object) -> bool:
    """Whether this is a catalog of pypaimon's."""
    return _is_of_pypaimon(catalog) and hasattr(catalog, "get_table")


def _is_of_pypaimon(value: object) -> bool:
    return any(one.__module__.partition(".")[0] == "pypaimon" for one in type(value).__mro__)


def plain_name(target: str) -> str:
    """The folder of the table of which another name is a form; the name itself if it is none."""
    return form_of_folder(target).table


def open_table(opening: Opening) -> PaimonTable:
    """The table at the snapshot that is asked for, the newest by default; an error that says why there is none."""
    from tamis.formats.paimon import open as opened

    return opened.open_table(opening)
