"""Delta tables, opened by their folder: a path, or the URL of an object store; or as deltalake has loaded them.

Its log is numbered, so that a folder can be listed safely: no version is hidden by another.
"""

from __future__ import annotations

from dataclasses import replace

from tamis.errors import NoSuchTableError
from tamis.formats.delta.loaded import is_deltalake_table, loaded_storage
from tamis.formats.delta.log import list_log, no_version
from tamis.formats.delta.snapshot import load
from tamis.formats.delta.table import DeltaTable
from tamis.formats.delta.times import version_as_of
from tamis.formats.errors import shown
from tamis.formats.opening import At, Opening, StateError
from tamis.formats.storage.local import exists, local_path

__all__ = ["open_table"]


def open_table(opening: Opening) -> DeltaTable:
    """The table at the version that is asked for, the newest by default; an error that says why there is none."""
    target, at, storage = opening.target, opening.at, opening.storage
    _check(opening)
    if is_deltalake_table(target):
        storage = loaded_storage(target)
        at = replace(at, version=int(target.version())) if at == At() else at
        target = str(target.table_uri)
    path = local_path(target)
    if path is not None and not exists(target):
        raise NoSuchTableError(
            f"there is no Delta table at {shown(target)}: there is no such folder. Give the folder of a table.",
            table=shown(target),
        )
    root = target.rstrip("/") if path is None else str(path.absolute())
    log = list_log(storage, root, hint=at.version is None and at.as_of_ms is None)
    newest = log.newest
    assert newest is not None  # noqa: S101 - for the type checker: list_log has looked
    version = newest if at.version is None else at.version
    if at.as_of_ms is not None:
        version = version_as_of(storage, log, load(storage, log, newest, target).metadata, at.as_of_ms)
    if not 0 <= version <= newest:
        raise no_version(log, f"version {version}", [str(one) for one in log.readable()])
    return DeltaTable(shown(target), root, log, load(storage, log, version, target), storage, opening.cache)


def _check(opening: Opening) -> None:
    """What a Delta table is not opened by."""
    at = opening.at
    loaded = is_deltalake_table(opening.target)
    if not (isinstance(opening.target, str) or loaded) or opening.catalog is not None:
        raise NoSuchTableError(
            f"{opening.shown} cannot be opened as a Delta table: this version opens them by their folder, or as "
            "deltalake has loaded them, and not by a name in a catalog.",
            table=opening.shown,
        )
    if at.snapshot_id is not None or at.ref is not None:
        raise StateError("a Delta table has neither snapshot ids nor branches: give version= or as_of=")
    if at.version is not None and at.as_of_ms is not None:
        raise StateError("give one of version and as_of")
