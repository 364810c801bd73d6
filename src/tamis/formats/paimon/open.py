"""Paimon tables, opened by folder or store URL, by name in a catalog, or as pypaimon has loaded them.

Snapshots are numbered, so that a folder can be listed safely: no snapshot is hidden by another. A name that ends with
`$ro` is the table's read-optimized form, as in Paimon's own catalogs.
"""

from __future__ import annotations

from typing import Final

from tamis.errors import NoSuchTableError
from tamis.formats.errors import shown, unreadable
from tamis.formats.opening import At, Opening
from tamis.formats.paimon.catalogs import find_table, loaded_table
from tamis.formats.paimon.options import Options
from tamis.formats.paimon.snapshots import chosen_state
from tamis.formats.paimon.table import PaimonTable
from tamis.formats.storage.local import exists, local_path

__all__ = ["open_table", "plain_name"]

READ_OPTIMIZED: Final = "$ro"


def plain_name(target: str) -> str:
    """The name of the table of which another name is a form; the name itself if it is none."""
    return target.rstrip("/").removesuffix(READ_OPTIMIZED)


def open_table(opening: Opening) -> PaimonTable:
    """The table at the snapshot that is asked for, the newest by default; an error that says why there is none."""
    target, at = opening.target, opening.at
    name, branch, optimized, storage = opening.shown, None, False, opening.storage
    if not isinstance(target, str):
        target, branch, storage = loaded_table(target)
        name = shown(target)
    else:
        if target.rstrip("/").endswith(READ_OPTIMIZED) and (opening.catalog is not None or not _is_folder(target)):
            optimized, target = True, plain_name(target)
        if opening.catalog is not None:
            target, branch, storage = find_table(target, opening.catalog)
    if branch is not None:
        if at != At():
            raise ValueError(f"{name} is the branch {branch}, of which only the newest state is opened")
        at = At(ref=branch)
    path = local_path(target)
    if path is not None and not _is_folder(target):
        raise NoSuchTableError(
            f"there is no Paimon table at {shown(target)}: there is no such folder. Give the folder of a table.",
            table=shown(target),
        )
    root = target.rstrip("/") if path is None else str(path.absolute())
    state = chosen_state(storage, root, at, name)
    options = Options.of(state.schema)
    options.check(target, state.schema_path)
    table = PaimonTable(name, root, state, storage, optimized)
    try:
        _ = table.level
    except ValueError as error:
        raise unreadable(
            state.schema_path, f"its number of levels cannot be told: {error}", place="options"
        ) from error
    return table


def _is_folder(target: str) -> bool:
    path = local_path(target)
    return path is not None and exists(target) and path.is_dir()
