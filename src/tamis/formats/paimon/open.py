"""Paimon tables, opened by folder or store URL, by name in a catalog, or as pypaimon has loaded them.

Snapshots are numbered, so that a folder can be listed safely: no snapshot is hidden by another. What a name asks for
behind a `$` is told apart in tamis.formats.paimon.names; a folder of that very name is itself.
"""

from __future__ import annotations

from tamis.errors import NoSuchTableError, UnsupportedFormatError
from tamis.formats.errors import shown, unreadable
from tamis.formats.opening import Opening
from tamis.formats.paimon.catalogs import find_table, loaded_table
from tamis.formats.paimon.names import Form, form_of_folder, form_of_name
from tamis.formats.paimon.options import Options
from tamis.formats.paimon.snapshots import MAIN, State, chosen_state, has_schema
from tamis.formats.paimon.table import PaimonTable
from tamis.formats.storage import Storage
from tamis.formats.storage.local import exists, local_path

__all__ = ["open_table"]


def open_table(opening: Opening) -> PaimonTable:
    """The table at the snapshot that is asked for, the newest by default; an error that says why there is none."""
    target = opening.target
    name, branch, optimized, storage = opening.shown, None, False, opening.storage
    if not isinstance(target, str):
        target, branch, storage = loaded_table(target)
        name = shown(target)
    elif opening.catalog is not None:
        form = form_of_name(target)
        branch, optimized = form.checked()
        target, _, storage = find_table(form.table, opening.catalog, branch)
    else:
        form = _form(target, storage)
        branch, optimized = form.checked()
        target = form.table
    path = local_path(target)
    if path is not None and not _is_folder(target):
        raise NoSuchTableError(
            f"there is no Paimon table at {shown(target)}: there is no such folder. Give the folder of a table.",
            table=shown(target),
        )
    root = target.rstrip("/") if path is None else str(path.absolute())
    state = chosen_state(storage, root, opening.at, name, branch)
    options = Options.of(state.schema)
    options.check(target, state.schema_path)
    _check_branch(options, state, name)
    table = PaimonTable(name, root, state, storage, optimized)
    try:
        _ = table.level
    except ValueError as error:
        raise unreadable(
            state.schema_path, f"its number of levels cannot be told: {error}", place="options"
        ) from error
    return table


def _form(target: str, storage: Storage) -> Form:
    """What a path asks for: itself, if a folder has that very name."""
    form = form_of_folder(target)
    if form.asked and (_is_folder(target) if local_path(target) is not None else has_schema(storage, target)):
        return Form(target)
    return form


def _check_branch(options: Options, state: State, name: str) -> None:
    """Paimon's readers follow the option `branch` to another branch than the one whose schema has it."""
    said = options.values.get("branch", "").strip()
    if said and said != (state.branch or MAIN):
        raise UnsupportedFormatError(
            f"cannot read {name}: its option branch says {shown(said)}, and Paimon reads that branch in its place. "
            f"Open the branch itself, by $branch_{shown(said)} behind the table's name.",
            path=name,
            feature="the option branch",
        )


def _is_folder(target: str) -> bool:
    path = local_path(target)
    return path is not None and exists(target) and path.is_dir()
