"""The snapshots, tags and branches of a table's folder, and which of them is asked for.

`snapshot/LATEST` is a hint that writers update after a commit, or fail to: it is not trusted. The folder is listed,
and the greatest number is the newest snapshot.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Final

from tamis.errors import NoSuchSnapshotError, NoSuchTableError
from tamis.formats.document import Misfit, integer, location, long, mapping, may, need, text
from tamis.formats.errors import shown, unreadable
from tamis.formats.opening import At, StateError
from tamis.formats.paimon.schema import PaimonSchema, parse_schema
from tamis.formats.storage import Storage
from tamis.formats.storage.ordered import in_order

__all__ = [
    "MAIN",
    "Snapshot",
    "State",
    "chosen_state",
    "has_schema",
    "numbered",
    "parse_snapshot",
    "read_schemas",
    "read_snapshots",
    "references",
]

NEWEST_VERSION: Final = 3
THREADS: Final = 16
"""Small files that are fetched at a time."""
_SNAPSHOT: Final = "snapshot-"
_SCHEMA: Final = "schema-"
_TAG: Final = "tag-"
_SHOWN: Final = 10
MAIN: Final = "main"
"""The branch that the table's own folder has."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One commit's state of the table."""

    id: int
    schema_id: int
    base: str
    """The manifest list of what was there before, by its name."""
    delta: str
    """The manifest list of what the commit changed."""
    kind: str | None
    made_ms: int
    index_manifest: str | None = None
    total_rows: int | None = None
    delta_rows: int | None = None
    writer: str | None = None


@dataclass(frozen=True, slots=True)
class State:
    """What is opened: a snapshot, or none of a table that never had one, and the schema that it is read with."""

    snapshot: Snapshot | None
    schema: PaimonSchema
    schema_path: str
    branch: str | None = None
    """None for the main one."""
    ref: str | None = None
    """The branch or tag that was asked for."""


def parse_snapshot(path: str, content: bytes) -> Snapshot:
    """A snapshot or a tag; UnreadableMetadataError says what does not fit, and where."""
    try:
        document = mapping(json.loads(content))
        version = may(document, "version", integer) or 1
        if version > NEWEST_VERSION:
            raise unreadable(
                path,
                f"it is a snapshot of version {version}, and this tamis knows those up to {NEWEST_VERSION}",
                cure="Read the table with the engine that wrote it, or use a newer tamis.",
            )
        return Snapshot(
            need(document, "id", long),
            need(document, "schemaId", long),
            need(document, "baseManifestList", location),
            need(document, "deltaManifestList", location),
            may(document, "commitKind", text),
            need(document, "timeMillis", long),
            may(document, "indexManifest", location),
            may(document, "totalRecordCount", long),
            may(document, "deltaRecordCount", long),
            may(document, "writerVersion", text),
        )
    except Misfit as misfit:
        raise unreadable(path, misfit.reason, place=misfit.place or None) from misfit
    except (ValueError, RecursionError) as error:
        raise unreadable(path, f"it is not JSON ({error})") from error


def numbered(storage: Storage, folder: str, prefix: str) -> list[int]:
    """The numbers of a folder's files `prefix-N`, ascending."""
    found = (file.name.removeprefix(prefix) for file in storage.list(folder) if file.name.startswith(prefix))
    return sorted(int(name) for name in found if name.isascii() and name.isdecimal())


def has_schema(storage: Storage, home: str) -> bool:
    """Whether a folder is that of a table, or of a branch."""
    return bool(numbered(storage, f"{home.rstrip('/')}/schema", _SCHEMA))


def chosen_state(storage: Storage, root: str, at: At, table: str, branch: str | None = None) -> State:
    """The state that is asked for: the newest by default, of the main branch if no other is given.

    A branch that is given has states and tags of its own: ref is one of these tags, and no branch.
    """
    if at.version is not None:
        raise StateError("a Paimon table's states are snapshots: give snapshot_id=, ref= (a tag or branch) or as_of=")
    if sum(one is not None for one in (at.snapshot_id, at.ref, at.as_of_ms)) > 1:
        raise StateError("give one of snapshot_id, ref and as_of")
    branch = None if branch == MAIN else branch
    home = root if branch is None else f"{root}/branch/branch-{branch}"
    if branch is not None and not (_is_name(branch) and has_schema(storage, home)):
        raise NoSuchSnapshotError(f"{table} has no branch {branch!r}.", wanted=f"branch {branch!r}", known=())
    if at.ref is not None and (at.ref != MAIN or branch is not None):
        return _by_ref(storage, root, at.ref, table, branch)
    ids = numbered(storage, f"{home}/snapshot", _SNAPSHOT)
    if at.snapshot_id is not None:
        if at.snapshot_id not in ids:
            raise _no_snapshot(table, f"snapshot {at.snapshot_id}", [str(one) for one in ids])
        return _travelled(storage, home, _read(storage, home, at.snapshot_id), at.ref, branch)
    if at.as_of_ms is not None:
        found = _as_of(ids, at.as_of_ms, lambda one: _read(storage, home, one))
        if found is None:
            when = datetime.fromtimestamp(at.as_of_ms / 1000, UTC).isoformat()
            raise _no_snapshot(table, f"snapshot at or before {when}", [str(one) for one in ids])
        return _travelled(storage, home, found, at.ref, branch)
    return _newest(storage, root, home, ids, branch=branch, ref=at.ref)


def read_schemas(storage: Storage, folder: str, least: int = 0) -> dict[int, PaimonSchema]:
    """All schemas of a folder, by their ids; those below least are left out."""
    ids = [one for one in numbered(storage, folder, _SCHEMA) if one >= least]
    paths = [f"{folder}/{_SCHEMA}{one}" for one in ids]
    contents = in_order(storage, paths, THREADS)
    return {id_: parse_schema(path, content) for id_, path, content in zip(ids, paths, contents, strict=True)}


def read_snapshots(storage: Storage, home: str, newest: int, most: int) -> list[Snapshot]:
    """The snapshots that are still there, from one on backwards, so many at most."""
    ids = [one for one in numbered(storage, f"{home}/snapshot", _SNAPSHOT) if one <= newest]
    return list(in_order(partial(_read, storage, home), ids[::-1][:most], THREADS))


def references(storage: Storage, home: str) -> dict[str, Snapshot]:
    """The tags of a branch, with the snapshots that they keep."""
    names = _names(storage, f"{home}/tag", _TAG)
    paths = [f"{home}/tag/{_TAG}{name}" for name in names]
    contents = in_order(storage, paths, THREADS)
    return {name: parse_snapshot(path, content) for name, path, content in zip(names, paths, contents, strict=True)}


def _newest(
    storage: Storage, root: str, home: str, ids: Sequence[int], *, branch: str | None = None, ref: str | None = None
) -> State:
    """The newest snapshot, with the newest schema: columns may have been added since it was made."""
    schemas = numbered(storage, f"{home}/schema", _SCHEMA)
    if not schemas:
        raise NoSuchTableError(
            f"there is no Paimon table at {shown(home)}: it has no schema/schema-*. Give the folder of a table.",
            table=shown(root),
        )
    path = f"{home}/schema/{_SCHEMA}{schemas[-1]}"
    snapshot = _read(storage, home, ids[-1]) if ids else None
    if snapshot is not None and snapshot.schema_id > schemas[-1]:
        missing = f"{home}/schema/{_SCHEMA}{snapshot.schema_id}"
        raise unreadable(missing, f"it is missing: snapshot {snapshot.id} was made with it")
    return State(snapshot, parse_schema(path, storage(path)), path, branch, ref)


def _travelled(storage: Storage, home: str, snapshot: Snapshot, ref: str | None, branch: str | None) -> State:
    """An older snapshot is read with its own schema, and with the options of today."""
    path = f"{home}/schema/{_SCHEMA}{snapshot.schema_id}"
    schemas = numbered(storage, f"{home}/schema", _SCHEMA)
    schema = parse_schema(path, storage(path))
    if schemas and schemas[-1] != snapshot.schema_id:
        newest = f"{home}/schema/{_SCHEMA}{schemas[-1]}"
        schema = schema.with_options(parse_schema(newest, storage(newest)).options)
    return State(snapshot, schema, path, branch, ref)


def _read(storage: Storage, home: str, id_: int) -> Snapshot:
    path = f"{home}/snapshot/{_SNAPSHOT}{id_}"
    found = parse_snapshot(path, storage(path))
    if found.id != id_:
        raise unreadable(path, f"it says that it is snapshot {found.id}", place="id")
    return found


def _by_ref(storage: Storage, root: str, ref: str, table: str, branch: str | None) -> State:
    """A tag, else a branch, as Paimon looks names up; of a branch that is chosen already a tag."""
    home = root if branch is None else f"{root}/branch/branch-{branch}"
    tags = _names(storage, f"{home}/tag", _TAG)
    if ref in tags:
        path = f"{home}/tag/{_TAG}{ref}"
        return _travelled(storage, home, parse_snapshot(path, storage(path)), ref, branch)
    other = f"{root}/branch/branch-{ref}"
    if branch is not None or not _is_name(ref) or not has_schema(storage, other):
        raise _no_snapshot(table, f"tag or branch {ref!r}" if branch is None else f"tag {ref!r}", tags)
    ids = numbered(storage, f"{other}/snapshot", _SNAPSHOT)
    return _newest(storage, root, other, ids, branch=ref, ref=ref)


def _is_name(ref: str) -> bool:
    """Whether a branch can have that name: one that leads elsewhere is none."""
    return bool(ref) and not any(one in ref for one in "/\\\0") and ref not in {".", ".."}


def _names(storage: Storage, folder: str, prefix: str) -> list[str]:
    return [file.name.removeprefix(prefix) for file in storage.list(folder) if file.name.startswith(prefix)]


def _as_of(ids: Sequence[int], wanted_ms: int, read: Callable[[int], Snapshot]) -> Snapshot | None:
    """The newest snapshot that was made at that time or before; None if all are younger.

    Times ascend with ids, but for clocks that differ: Paimon searches by halves, and so does this.
    """
    low, high = 0, len(ids) - 1
    found: Snapshot | None = None
    while low <= high:
        middle = (low + high) // 2
        snapshot = read(ids[middle])
        if snapshot.made_ms <= wanted_ms:
            found, low = snapshot, middle + 1
        else:
            high = middle - 1
    return found


def _no_snapshot(table: str, wanted: str, known: Sequence[str]) -> NoSuchSnapshotError:
    some = ", ".join(known[-_SHOWN:]) if known else "none"
    return NoSuchSnapshotError(
        f"{table} has no {wanted}. It has {some}{' among others' if len(known) > _SHOWN else ''}.",
        wanted=wanted,
        known=tuple(known),
    )
