"""Where the deletion vectors of data files are: a snapshot's index manifest names them, and the files they lie in.

A data file is known by its partition, bucket and name: names alone may come twice in a table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from tamis.formats.avro.container import parse_avro
from tamis.formats.avro.records import read_records
from tamis.formats.errors import unreadable
from tamis.formats.paimon.partition_values import Partitions
from tamis.formats.paimon.schema import PaimonSchema
from tamis.formats.paimon.sheets import is_table, read_table
from tamis.formats.paimon.vectors import FRAME, decode_vector
from tamis.formats.scan import Vectors
from tamis.formats.storage import Fetch

__all__ = ["Key", "Placed", "file_keys", "index_file", "read_vectors", "vectors_of"]

VERSION: Final = 1
_VECTORS: Final = "DELETION_VECTORS"
_ADD: Final = 0
_ANY: Final = 1 << 40
"""More rows than a file has."""
_RANGES: Final = "_DELETIONS_VECTORS_RANGES"


@dataclass(frozen=True, slots=True)
class Placed:
    """A data file's vector."""

    file: str
    """The index file, by its name, or its own location."""
    external: bool
    offset: int
    length: int
    """As metadata says it: see tamis.formats.paimon.vectors."""
    rows: int | None
    """How many rows are deleted; None if its writer did not say."""


Key = tuple[str, int, str]
"""A data file by the folder of its partition, its bucket and its name. Rows of other bytes may be the same partition:
NULL is written in two ways."""


def file_keys(partition: pa.Array, bucket: pa.Array, path: Sequence[str], schema: PaimonSchema) -> list[Key]:
    """Data files by their serialised partitions, their buckets, and where they are."""
    folders = _folders(partition, schema)
    names = (one.rpartition("/")[2] for one in path)
    return list(zip(folders, bucket.to_pylist(), names, strict=True))


def _folders(partition: pa.Array, schema: PaimonSchema) -> list[str]:
    found = Partitions.of(partition, schema)
    return [found.folders[code] for code in found.codes.tolist()]


def index_file(placed: Placed, path: str, location: str, *, beside: bool) -> str:
    """Where the index file is that has the vector of the data file at path: in the table's folder, or beside it."""
    if placed.external:
        return placed.file
    folder = path.rpartition("/")[0] if beside else f"{location}/index"
    return f"{folder}/{placed.file}"


def read_vectors(path: str, content: bytes, schema: PaimonSchema) -> dict[Key, Placed]:
    """The vectors that an index manifest names. UnreadableMetadataError if it is damaged, or newer than this."""
    entries = _records(path, content)
    try:
        folders = _folders(pa.array([entry["_PARTITION"] for entry in entries], pa.binary()), schema)
    except (KeyError, TypeError, pa.ArrowException) as error:
        raise unreadable(path, f"it is not an index manifest ({error!r})") from error
    found: dict[Key, Placed] = {}
    for entry, folder in zip(entries, folders, strict=True):
        try:
            if entry["_VERSION"] != VERSION:
                raise unreadable(
                    path,
                    f"its entries are of version {entry['_VERSION']}, and this tamis knows version {VERSION}",
                    cure="Read the table with the engine that wrote it, or use a newer tamis.",
                )
            if entry["_INDEX_TYPE"] != _VECTORS:
                continue
            if entry["_KIND"] != _ADD:
                raise unreadable(path, f"an entry that is no addition stands in it: its _KIND is {entry['_KIND']}")
            for placed in entry[_RANGES] or ():
                external, name = entry.get("_EXTERNAL_PATH"), entry["_FILE_NAME"]
                if external is None and "/" in name:
                    raise unreadable(path, f"the name of an index file is {name!r}, which is no file's name")
                key = (folder, entry["_BUCKET"], placed["f0"])
                if key in found:
                    raise unreadable(path, f"the file {placed['f0']} has two deletion vectors")
                where = external or name
                rows = placed.get("_CARDINALITY")
                counted = None if rows is None or rows < 0 else rows
                if min(placed["f1"], placed["f2"]) < 0:
                    raise unreadable(path, f"the deletion vector of {placed['f0']} is at a negative place")
                found[key] = Placed(where, external is not None, placed["f1"], placed["f2"], counted)
        except (KeyError, TypeError) as error:
            raise unreadable(path, f"it is not an index manifest ({error!r})") from error
    return found


def _records(path: str, content: bytes) -> Sequence[Mapping[str, Any]]:
    if not is_table(content):
        return read_records(parse_avro(path, content))
    return list(read_table(path, content).to_pylist())


def vectors_of(placed: Sequence[tuple[int, str, Placed]], fetch: Fetch) -> Vectors | None:
    """The vectors of these files: the number of each, where its index file is, and what stands there.

    How many rows each deletes must be known, or else the rows of its file stand for that; if nobody has
    counted these, it may be any number.
    """
    if not placed:
        return None
    return Vectors(
        data=np.array([number for number, _, _ in placed], np.int64),
        location=tuple(location for _, location, _ in placed),
        offset=np.array([one.offset for *_, one in placed], np.int64),
        length=np.array([one.length + FRAME for *_, one in placed], np.int64),
        decode=decode_vector,
        fetch=fetch,
        rows=sum(_ANY if one.rows is None else one.rows for *_, one in placed),
        counts={place: one.rows for place, (*_, one) in enumerate(placed) if one.rows is not None},
    )
