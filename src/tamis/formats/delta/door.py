"""How Delta tables are known, without what reads them: that is loaded when a table is opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.formats.delta.loaded import is_deltalake_table
from tamis.formats.opening import Opening
from tamis.formats.storage import Storage
from tamis.formats.storage.local import inside, local_path

if TYPE_CHECKING:
    from tamis.formats.delta.table import DeltaTable

__all__ = ["is_deltalake_table", "is_table_folder", "open_table"]


def is_table_folder(folder: str, storage: Storage) -> bool:
    """Whether a folder has a log."""
    log = inside(folder, "_delta_log")
    path = local_path(log)
    return bool(storage.list(log)) if path is None else path.is_dir()


def open_table(opening: Opening) -> DeltaTable:
    """The table at the version that is asked for, the newest by default; an error that says why there is none."""
    from tamis.formats.delta import open as opened

    return opened.open_table(opening)
