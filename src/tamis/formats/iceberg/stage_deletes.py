"""How rows of data files are marked as gone: by position delete files in version 2, by deletion vectors in version 3.

Law: a data file of version 3 has one vector at most, which names every row of it that is gone by position. So a new
vector takes over what an older one says, and what position delete files say that the table has from version 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.errors import CommitRefused
from tamis.formats.edit import POSITION_DELETES, DeleteStage, Marked, NewDeletes, NewFile, Planned
from tamis.formats.errors import shown, unreadable
from tamis.formats.iceberg.data_paths import Place
from tamis.formats.iceberg.delete_files import Bitmaps, PositionFiles
from tamis.formats.iceberg.homes import Home, State
from tamis.formats.iceberg.kept_deletes import KeptDeletes
from tamis.formats.iceberg.puffin import Vector, puffin_file, vector_blob
from tamis.formats.iceberg.stage import TASK_BYTES, check_supported, number, parquet_options, place_of
from tamis.formats.iceberg.vectors import decode_vector
from tamis.formats.roaring import bitmap, positions
from tamis.formats.scan import counted_positions
from tamis.formats.storage import Fetch
from tamis.formats.storage.sinks import DataStore
from tamis.predicate.arrays import Int64s
from tamis.sieve.partition_keys import plain_values
from tamis.sieve.plan import DeleteCounts

__all__ = ["OldVector", "delete_stage", "old_positions"]

_VECTORS: Final = 3
"""The version from which on deletes by position are vectors."""
_PLACED: Final = ("path", "content_offset", "content_size", "rows")


class OldVector(NamedTuple):
    """Where a vector stands, and how many rows it has to name."""

    path: str
    offset: int
    size: int
    rows: int


GRANULARITY: Final = "write.delete.granularity"


def delete_stage(
    name: str,
    state: State,
    home: Home,
    storage: DataStore,
    files: Sequence[Planned],
    deletes: DeleteCounts | None,
) -> DeleteStage:
    """How rows of these files are marked. CommitRefused for a table of version 1, which has no deletes."""
    metadata = state.metadata
    check_supported(name, state.document, metadata)
    if metadata.format_version == 1:
        raise CommitRefused(
            f"cannot write deletes to {name}: its format version is 1, which has none. Use mode='copy-on-write', or "
            "upgrade the table.",
            table=name,
            feature="merge-on-read in version 1",
        )
    task_bytes = number(metadata.properties, "write.spark.advisory-partition-size-bytes", TASK_BYTES)
    _check_decoded(name, files)
    targets = _targets(files, deletes)
    if metadata.format_version < _VECTORS:
        by_file = metadata.properties.get(GRANULARITY, "partition").strip().lower() == "file"
        made = PositionFiles(
            {path: (one.spec_id, one.partition) for path, one in targets.items()},
            {
                spec_id: place_of(metadata, metadata.layout(spec_id))
                for spec_id in {one.spec_id for one in targets.values()}
            },
            storage,
            parquet_options(metadata.properties),
            by_file,
        )
        return DeleteStage(name, task_bytes, made, made.discard, _listed)
    whole = frozenset(path for path, one in targets.items() if one.by_files)
    finish = partial(_vectors, home, place_of(metadata), targets, whole)
    return DeleteStage(name, task_bytes, Bitmaps(), Bitmaps().discard, finish, whole)


@dataclass(frozen=True, slots=True)
class _Target:
    """A data file, and the deletes that it has."""

    spec_id: int
    partition: tuple[object, ...]
    rows: int
    vector: OldVector | None = None
    by_files: bool = False
    """Whether position delete files apply."""
    own: tuple[str, ...] = ()
    """Those of them that are of this data file alone."""


def _check_decoded(name: str, files: Sequence[Planned]) -> None:
    """CommitRefused for a data file whose partition nobody can read: a delete that lies in another takes no row."""
    for one in files:
        for fault in one.batch.undecoded:
            unread = np.flatnonzero(fault.rows[one.rows])
            if len(unread):
                path = str(one.batch.path[int(one.rows[unread[0]])].as_py())
                raise CommitRefused(
                    f"cannot write deletes to {name}: a partition value of {shown(path)} cannot be read "
                    f"({fault.text}), and deletes have to lie in the partition of their data. Delete with the engine "
                    "that wrote the file.",
                    table=name,
                    feature="a partition value that cannot be read",
                )


def _targets(files: Sequence[Planned], deletes: DeleteCounts | None) -> dict[str, _Target]:
    found: dict[str, _Target] = {}
    for one in files:
        paths, rows = one.column("path").to_pylist(), one.column("rows").to_pylist()
        applying = _applying(one, deletes)
        for path, count, values, having in zip(paths, rows, _values(one), applying, strict=True):
            vector = next((each for each in having if each["content_offset"] is not None), None)
            plain = [each for each in having if each["content_offset"] is None]
            found[path] = _Target(
                one.batch.spec_id or 0,
                values,
                count,
                None if vector is None else OldVector(*(vector[name] for name in _PLACED)),
                bool(plain) and vector is None,
                tuple(each["path"] for each in plain if _is_of(each, path)),
            )
    return found


def _is_of(delete: Mapping[str, Any], path: str) -> bool:
    only = delete["path_lower"] if delete["path_lower"] == delete["path_upper"] else None
    return path in (delete["referenced_data_file"], only)


def _applying(files: Planned, deletes: DeleteCounts | None) -> list[list[dict[str, Any]]]:
    """The position deletes or the vector of each file."""
    if not isinstance(deletes, KeptDeletes) or deletes.index.files is None:
        return [[] for _ in range(len(files))]
    listed = deletes.index.positions(files.batch, files.rows).to_pylist()
    used = sorted({place for places in listed for place in places})
    names = (*_PLACED, "referenced_data_file", "path_lower", "path_upper")
    known = dict(
        zip(used, deletes.index.files.select(names).take(pa.array(used, pa.int64())).to_pylist(), strict=True)
    )
    return [[known[place] for place in places] for places in listed]


def _values(files: Planned) -> list[tuple[object, ...]]:
    """The partition values of each file, plain."""
    partition = files.batch.partition
    if partition is None:
        return [()] * len(files)
    taken = pa.array(files.rows)
    columns = [child.storage if isinstance(child, pa.ExtensionArray) else child for child in partition.flatten()]
    return list(zip(*(plain_values(column.take(taken)) for column in columns), strict=True))


def _listed(marks: Sequence[Marked], token: str) -> NewDeletes:  # noqa: ARG001 - files have their names
    return NewDeletes(tuple(mark.file for mark in marks if mark.file is not None))


def _vectors(
    home: Home,
    place: Place,
    targets: Mapping[str, _Target],
    whole: frozenset[str],
    marks: Sequence[Marked],
    token: str,
) -> NewDeletes:
    """One file of all vectors, each merged with what its data file had."""
    told: dict[str, Int64s] = {}
    for mark in marks:
        path, places = mark.paths[0], positions(mark.bitmap)
        # Rows of a file come to one task; if ever they came to two, none of them is to be forgotten.
        told[path] = np.union1d(told[path], places) if path in told else places
    vectors: list[Vector] = []
    replaced: set[tuple[str, int | None]] = set()
    cache: dict[str, bytes] = {}
    nothing = np.zeros(0, np.int64)
    for path in sorted({*told, *whole}):
        target = targets[path]
        if path in whole:
            gone = np.setdiff1d(np.arange(target.rows, dtype=np.int64), told.get(path, nothing), assume_unique=True)
            if not len(gone):
                continue
            replaced |= {(one, None) for one in target.own}
        else:
            gone = told[path]
            if target.vector is not None:
                gone = np.union1d(gone, old_positions(home.fetch, target.vector, cache))
                replaced.add((target.vector.path, target.vector.offset))
        vectors.append(Vector(path, len(gone), vector_blob(bitmap(gone))))
    if not vectors:
        return NewDeletes(())
    data, offsets = puffin_file(vectors, "tamis")
    location = place.path((), f"00000-0-{token}-00001-deletes.puffin")
    home.put(location, data)
    return NewDeletes(
        tuple(
            NewFile(
                location,
                len(data),
                one.rows,
                targets[one.referenced].spec_id,
                targets[one.referenced].partition,
                content=POSITION_DELETES,
                file_format="PUFFIN",
                referenced=one.referenced,
                content_offset=offset,
                content_size=len(one.blob),
            )
            for one, offset in zip(vectors, offsets, strict=True)
        ),
        frozenset(replaced),
    )


def old_positions(fetch: Fetch, vector: OldVector, cache: dict[str, bytes]) -> Int64s:
    """The rows that a vector names; UnreadableMetadataError if it is damaged, or another's."""
    if vector.path not in cache:
        cache[vector.path] = fetch(vector.path)
    blob = cache[vector.path][vector.offset : vector.offset + vector.size]
    try:
        return counted_positions(decode_vector, blob, vector.rows)
    except ValueError as error:
        raise unreadable(vector.path, str(error), vector.offset) from error
