"""A state of a table as units of work: its checkpoint's files, and the commits after it.

Each unit stands for itself: whoever reads a checkpoint's file knows the keys that later commits have touched.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Final, Literal

import pyarrow as pa

from tamis.formats.delta.checkpoints import add_chunks
from tamis.formats.delta.chunks import Chunk
from tamis.formats.delta.files import VECTOR_COLUMN, FileMaker
from tamis.formats.delta.replay import Tail, replay, untouched
from tamis.formats.delta.snapshot import Snapshot
from tamis.formats.delta.stored import Keeper
from tamis.formats.listing import Unit
from tamis.formats.storage import Fetch, Storage
from tamis.predicate.arrays import Int64s
from tamis.sieve.files import FileBatch

__all__ = ["HeldChunks", "LogReader", "checkpoint_units"]

Part = Literal["checkpoint", "commits"]
MOST_HELD: Final = 64 << 20
"""Bytes of statistics, as the log has them, that an open table keeps: a plan can decode other columns from these."""


Placed = tuple[Chunk, Int64s | None]
"""Files, and which of them no later commit has touched; None if that is all of them."""


@dataclass(slots=True)
class HeldChunks:
    """What plans over one open table have decoded of its log. Threads may share it; it is not pickled."""

    chunks: dict[tuple[tuple[str, ...], str | None], tuple[Placed, ...]] = field(default_factory=dict)
    """By the locations of a unit, and the zone in which its partition values were read, if that matters."""

    def __reduce__(self) -> tuple[object, ...]:
        return HeldChunks, ()

    @property
    def room(self) -> int:
        """Bytes of statistics as the log has them for which there is room."""
        sources = [one.source for held in self.chunks.values() for one, _ in held if one.source is not None]
        return MOST_HELD - sum(source.nbytes for source in sources)


class LogReader:
    """Files of a unit: of a part of the checkpoint, or of the commits after it.

    What an earlier plan over the same open table has read, or what the cache has, is not read again. Elsewhere, where
    it is sent, it has neither, and the commits are replayed from their content.
    """

    def __init__(
        self,
        maker: FileMaker,
        touched: pa.Array,
        tail: Tail | None = None,
        held: HeldChunks | None = None,
        keeper: Keeper | None = None,
    ) -> None:
        self._maker = maker
        self._touched = touched
        self._tail = tail
        self._held = held
        self._keeper = keeper
        self._unsaved: list[tuple[Unit, list[Chunk]]] = []

    def __reduce__(self) -> tuple[object, ...]:
        """Without what was read here."""
        zone = self._maker.zone
        maker = self._maker if zone is None else replace(self._maker, zone=zone.told())
        return LogReader, (maker, self._touched)

    def __call__(self, unit: Unit, fetch: Fetch) -> Iterator[FileBatch]:
        """The unit's files, in the order of the log, some at a time."""
        maker = self._maker
        held = None if self._held is None else self._held.chunks.get((unit.locations, maker.zone_name))
        if held is not None and self._known(chunk for chunk, _ in held):
            yield from (maker.late(chunk, kept) for chunk, kept in held)
            return
        keeper = self._keeper if unit.about == "checkpoint" else None
        stored = None if keeper is None else keeper.find(unit)
        if stored is not None and self._known(stored):
            chunks: Iterable[Chunk] = stored
            keeper = None
        else:
            chunks = (maker.chunk(add) for add in self._adds(unit, fetch))
        read: list[Placed] = []
        room = 0 if self._held is None else self._held.room
        for chunk in chunks:
            read.append((chunk, self._untouched(unit, chunk)))
            # What was kept before, and does not do, is asked for more than once: now it is worth to decode all.
            yield maker.late(*read[-1], thorough=stored is not None)
            room -= 0 if chunk.source is None else chunk.source.nbytes
            if room < 0:  # those of some files are of no use
                for one, _ in read:
                    one.count()
                    one.source = None
            elif keeper is not None:
                chunk.count()
        if keeper is not None:
            self._unsaved.append((unit, [chunk for chunk, _ in read]))
        if self._held is not None:
            self._held.chunks[unit.locations, maker.zone_name] = tuple(read)

    def _known(self, chunks: Iterable[Chunk]) -> bool:
        paths, ids = self._maker.columns.statistics, self._maker.ids
        return all(chunk.knows(ids, paths) for chunk in chunks)

    def _untouched(self, unit: Unit, chunk: Chunk) -> Int64s | None:
        files = chunk.files
        if unit.about == "commits":
            return None
        return untouched(files.path, files.extra.get(VECTOR_COLUMN), self._touched)

    def _adds(self, unit: Unit, fetch: Fetch) -> Iterator[pa.StructArray]:
        columns = self._maker.columns
        if unit.about == "commits":
            texts: Mapping[str, bytes] = {}
            if self._tail is None:
                texts = {location: fetch(location) for location in unit.locations}
            yield (self._tail or replay(texts, columns.partition)).adds
            return
        (location,) = unit.locations
        # A storage is asked for the columns alone.
        stream = fetch.open(location) if isinstance(fetch, Storage) else io.BytesIO(fetch(location))
        with closing(stream):
            yield from add_chunks(location, stream, columns)

    def close(self) -> None:
        """Save what was decoded, now that all of it has been judged, and keep the cache within its size."""
        if self._keeper is not None:
            for unit, chunks in self._unsaved:
                self._keeper.save(unit, chunks)
            self._unsaved.clear()
            self._keeper.close()


def checkpoint_units(snapshot: Snapshot) -> tuple[Unit, ...]:
    """A unit for each file of the checkpoint that may tell of files."""
    checkpoint = snapshot.segment.checkpoint
    if checkpoint is None:
        return ()
    files = [*zip(checkpoint.locations, checkpoint.sizes, strict=True)]
    files += [(one.location, one.size) for one in snapshot.sidecars]
    return tuple(Unit((location,), size, "checkpoint") for location, size in files)
