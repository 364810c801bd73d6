"""Metadata files to columns: fetched, checked, joined where they are small, decoded, counted.

Every record that the files' blocks announce comes out, or an error names the file.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path as FilePath
from typing import Final, TypeVar
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from numpy import typing as npt
from pyarrow import types as pt

from tamis.formats.errors import unreachable, unreadable
from tamis.formats.iceberg.avro import AvroFile
from tamis.formats.iceberg.decoder import DecodeError
from tamis.formats.iceberg.forked import decode
from tamis.formats.iceberg.framing import Body, body_of, framed
from tamis.formats.iceberg.records import AvroColumn, Layout, Path, flat_layout

__all__ = ["Decoded", "Fetch", "decode_columns", "fetch_local", "in_order", "local_file"]

Fetch = Callable[[str], bytes]
"""A file's whole content, by its location as the metadata spells it."""

CHUNK_BYTES: Final = 64 << 20
"""Most bytes, inflated, of small files that are decoded together."""

Task = TypeVar("Task")
Result = TypeVar("Result")


_NO_FILE: Final = "it is not a file, but a pipe, a socket or a device"


def _at_once(path: str, flags: int) -> int:
    """Open a file. A pipe would be waited for, and a device may have no end."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def fetch_local(location: str) -> bytes:
    """A file of the local file system, by path or file: URI."""
    try:
        # There may be fifty thousand of them, and a Path for each takes as long as reading it.
        with open(local_file(location), "rb", buffering=0, opener=_at_once) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise unreadable(location, _NO_FILE)
            return file.read()
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise unreadable(location, _NO_FILE) from error
        raise unreachable(location, error) from error
    except ValueError as error:  # a NUL character
        raise unreachable(location, OSError(errno.EINVAL, str(error))) from error


def local_file(location: str) -> str:
    """The path of a file of the local file system, given as a path or a file: URI.

    Writers put a scheme before a plain path and escape nothing; a URI that a person gives may be escaped.
    """
    if not location.startswith("file:"):
        return location
    path = location.removeprefix("file:")
    if path.startswith("//"):
        path = "/" + path[2:].partition("/")[2]
    return path if "%" not in path or _exists(path) else unquote(path)


def _exists(path: str) -> bool:
    try:
        return FilePath(path).exists()
    except OSError:  # no permission to look, or a name too long: whoever opens it is told
        return True


@dataclass(frozen=True, slots=True)
class Decoded:
    """Columns of files that have one layout."""

    files: npt.NDArray[np.int64]
    """Which of the given files each record is from; records of one file stand together, in its order."""
    columns: Mapping[Path, pa.Array]
    """Those that were asked for and that the writer's schema has."""
    written: Mapping[Path, AvroColumn]
    """All columns of the writer's schema."""
    given: Sequence[int] = ()
    """Which of the given files have this layout, also those without records."""

    @property
    def count(self) -> int:
        """How many records."""
        return len(self.files)


Wanted = Iterable[Path] | Callable[[Path], bool]


def decode_columns(files: Sequence[AvroFile], wanted: Wanted, names: Mapping[str, int]) -> list[Decoded]:
    """The wanted columns of all files; those that share a layout are decoded as one."""
    groups: dict[str, list[int]] = {}
    layouts: dict[str, Layout] = {}
    known: dict[str, Layout] = {}
    for place, file in enumerate(files):
        written = file.metadata["avro.schema"]
        if written not in known:
            try:
                known[written] = flat_layout(file.schema, names)
            except ValueError as error:
                raise unreadable(file.path, str(error), 0) from error
        layout = known[written]
        layouts[layout.schema] = layout
        groups.setdefault(layout.schema, []).append(place)
    chosen = wanted if callable(wanted) else frozenset(wanted).__contains__
    return [_decode_group(files, places, layouts[schema], chosen) for schema, places in groups.items()]


def _decode_group(
    files: Sequence[AvroFile], places: Sequence[int], layout: Layout, wanted: Callable[[Path], bool]
) -> Decoded:
    columns = {path: one for path, one in layout.columns.items() if wanted(path)}
    for path, one in columns.items():
        if one.type is None:
            raise unreadable(files[places[0]].path, f"field {path[-1]}, {one.written_as}, has a type of its own", 0)
    group = [files[place] for place in places]
    table = pa.concat_tables(_decode_checked(*chunk, layout, columns) for chunk in _chunks(group, layout))
    counts = [file.records for file in group]
    maps = any(pt.is_list(one.type) for one in columns.values())
    return Decoded(
        np.repeat(np.array(places, np.int64), counts),
        {path: _joined(table.column(one.name), alone=maps) for path, one in columns.items()},
        layout.columns,
        places,
    )


def _chunks(files: Sequence[AvroFile], layout: Layout) -> Iterator[tuple[list[AvroFile], list[Body]]]:
    """The files in their order with what they hold, so many at a time that little is held of what was inflated."""
    chunk: list[AvroFile] = []
    bodies: list[Body] = []
    size = 0
    for file in files:
        body = body_of(file, layout)
        size += body.size
        if chunk and size > CHUNK_BYTES:
            yield chunk, bodies
            chunk, bodies, size = [], [], body.size
        chunk.append(file)
        bodies.append(body)
    yield chunk, bodies


def _decode_checked(
    files: Sequence[AvroFile], bodies: Sequence[Body], layout: Layout, columns: Mapping[Path, AvroColumn]
) -> pa.Table:
    """Exactly the records that the files announce. If they hold others the error names the file, and the block."""
    schema = pa.schema([pa.field(one.name, one.type, one.nullable) for one in columns.values()])
    if not any(body.size for body in bodies):
        return schema.empty_table()
    frame = framed(bodies, files[0].sync, layout, columns)
    try:
        found = frame.records(decode(frame.pieces, schema, frame.batch_rows, frame.rows))
    except DecodeError as error:
        found = f"its blocks do not hold the {sum(frame.counts)} records that they announce ({error})"
    if not isinstance(found, str):
        return found
    halves = _halves(files, bodies)
    if not halves:
        raise unreadable(files[0].path, found, files[0].blocks[0][0])
    return pa.concat_tables(_decode_checked(*half, layout, columns) for half in halves)


def _halves(files: Sequence[AvroFile], bodies: Sequence[Body]) -> list[tuple[list[AvroFile], list[Body]]]:
    """The same records in two parts: half of the files each, or half of a file's blocks; none of a single block."""
    if len(files) > 1:
        middle = len(files) // 2
        return [(list(files[part]), list(bodies[part])) for part in (slice(middle), slice(middle, None))]
    (file,), (body,) = files, bodies
    middle = len(file.blocks) // 2
    parts = []
    for part in (slice(middle), slice(middle, None)) if middle else ():
        half = replace(file, blocks=file.blocks[part])
        parts.append(([half], [Body(half.records, body.parts[part], sum(map(len, body.parts[part])))]))
    return parts


def _joined(column: pa.ChunkedArray, *, alone: bool) -> pa.Array:
    """One array. Any column keeps the decoder's whole batch in memory: alone, it has memory of its own.

    That matters beside maps: they hold bounds of every column, of which one or two are taken and the rest is let go.
    """
    if column.num_chunks != 1:
        return column.combine_chunks()
    return pa.concat_arrays(column.chunks) if alone and not pt.is_list(column.type) else column.chunk(0)


def in_order(work: Callable[[Task], Result], tasks: Iterable[Task], threads: int) -> Iterator[Result]:
    """The results in the order of the tasks, a few tasks ahead of whoever takes them.

    Memory stays bounded: no result waits for long, and no task runs far ahead.
    """
    queue = iter(tasks)
    first = list(islice(queue, 2 * threads))
    if threads <= 1 or len(first) <= 1:
        yield from map(work, chain(first, queue))
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="tamis") as pool:
        running: deque[Future[Result]] = deque(pool.submit(work, task) for task in first)
        try:
            while running:
                found = running.popleft().result()
                running.extend(pool.submit(work, task) for task in islice(queue, 1))
                yield found
        finally:
            for one in running:
                one.cancel()
