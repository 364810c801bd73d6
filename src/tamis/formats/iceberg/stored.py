"""Batches of files as they are kept in the cache, those of many small manifests together.

What a file is stands on one shelf and each column's statistics on another, so that predicates over other columns
share what they have in common. Law: a manifest's parts put together again are the batch that they were made of.

    manifests (files)       m0 (2)    m1 (1)    m2 (3)    m3 (2)
    shelf of files          pack a: m0 m0 m1    -         pack b: m3 m3
    shelf of column 5       pack c: m0 m0 m1    -         pack d: m3 m3

Looking up m0 to m3 gives two runs, m0 with m1 (rows 0 to 2 of a and of c) and m3 (rows 0 and 1 of b and of d). m2 is
missing: it is decoded, and kept in packs of its own or with other small ones that were missing.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, groupby, pairwise
from operator import attrgetter
from typing import Final

import numpy as np
import pyarrow as pa

from tamis.formats.avro import decoder
from tamis.formats.iceberg.manifest_list import Manifest
from tamis.formats.iceberg.metadata import SpecLayout, TableMetadata
from tamis.formats.storage.cache import MetadataCache, code_stamp
from tamis.formats.storage.local import is_local, local_file
from tamis.formats.storage.packs import Extent, Shelf
from tamis.sieve.domain import ColumnStats
from tamis.sieve.files import FileBatch
from tamis.sieve.partitions import Undecoded

__all__ = ["Keeper", "Lookup", "Run", "Stored", "joined", "split"]

PACK_BYTES: Final = 256 << 10
"""Small manifests share a pack until it has this size: whoever wants one of them reads all of it."""
FRAGMENTS: Final = 8
"""Packs that a task may draw on, beyond four times as many as it needs, before they are written as one."""
_STATS: Final = ("lower", "upper", "null_count", "nan_count")
_EXTRA: Final = "extra."
_UNDECODED: Final = b"undecoded"
_FILES: Final = None
"""The shelf of what files are; others go by the id of their column."""

_facts = attrgetter(
    *("content", "sequence_number", "min_sequence_number", "snapshot_id", "added_files", "existing_files"),
    *("deleted_files", "added_rows", "existing_rows", "first_row_id"),
)

Types = Mapping[int, pa.DataType]


@dataclass(frozen=True, slots=True)
class Stored:
    """The files of one manifest, or of neighbours, and what is known of some of their columns."""

    files: pa.RecordBatch
    stats: Mapping[int, pa.RecordBatch]

    @property
    def shape(self) -> tuple[object, ...]:
        """Equal for those that can be put together: the same columns of the same types."""
        schemas = [(id_, batch.schema) for id_, batch in sorted(self.stats.items())]
        return self.files.schema, self.files.schema.metadata, schemas

    def slice(self, start: int, count: int) -> Stored:
        """Some of the files."""
        return Stored(
            self.files.slice(start, count), {id_: batch.slice(start, count) for id_, batch in self.stats.items()}
        )


@dataclass(frozen=True, slots=True)
class Run:
    """Files of manifests that follow each other, with the indices of those and how many files each has."""

    indices: tuple[int, ...]
    counts: tuple[int, ...]
    stored: Stored


@dataclass(frozen=True, slots=True)
class Lookup:
    """What the cache has of some manifests, and what it lacks."""

    runs: tuple[Run, ...]
    missing: tuple[int, ...]
    digests: Mapping[int, bytes | None]
    packs: Mapping[int | None, tuple[str, ...]]
    """Those that were drawn on, by shelf."""


class Keeper:
    """A cache, as one plan over manifests of one table uses it. Threads share it."""

    def __init__(
        self, cache: MetadataCache, metadata: TableMetadata, wanted: Types, manifests: Sequence[Manifest]
    ) -> None:
        self._cache = cache
        table = repr((_stamp(), metadata.uuid, metadata.format_version))
        keys = {_FILES: f"{table} files"} | {id_: f"{table} column {id_} {type_}" for id_, type_ in wanted.items()}
        shelves = {id_: cache.shelf(key, len(manifests)) for id_, key in keys.items()}
        self._shelves: dict[int | None, Shelf] = {id_: shelf for id_, shelf in shelves.items() if shelf is not None}
        self._usable = len(self._shelves) == len(keys)
        self._layouts = {
            layout.spec.spec_id: hashlib.blake2b(_layout_text(layout), digest_size=32) for layout in metadata.specs
        }
        # At once, before threads share the work: each file that is asked for its time has them take turns.
        self._digests = self._all_digests(manifests) if self._usable else [None] * len(manifests)

    def find(self, indices: Sequence[int]) -> Lookup:
        """The files of these manifests with statistics of every wanted column, of each manifest all or nothing."""
        digests = {index: self._digests[index] for index in indices}
        if not self._usable or any(shelf.empty for shelf in self._shelves.values()):
            return Lookup((), tuple(indices), digests, {})
        located = [self._located(digests[index]) for index in indices]
        loaded: dict[tuple[int | None, str], pa.RecordBatch | None] = {}
        runs: list[Run] = []
        missing: list[int] = []
        for start, end in _neighbours(located):
            first = located[start]
            stored = None if first is None else self._stored(loaded, first, located[start:end])
            if stored is None:
                missing += indices[start:end]
            else:
                counts = tuple(extents[_FILES].rows for extents in located[start:end] if extents is not None)
                runs.append(Run(tuple(indices[start:end]), counts, stored))
        packs = {id_: tuple(pack for shelf, pack in loaded if shelf == id_) for id_ in self._shelves}
        return Lookup(tuple(runs), tuple(missing), digests, packs)

    def keep(self, batches: Iterable[FileBatch], lookup: Lookup) -> None:
        """Save what was decoded for want of it, but nothing of a manifest that is not told from others by its key."""
        left = set(lookup.missing)
        for batch in batches:
            for run in split(batch, lookup.missing):
                left.difference_update(run.indices)
                self._save(run, lookup.digests)
        # Manifests all of whose entries are deleted are known as well: nothing is to be read there.
        nothing = Stored(_NOTHING, {id_: _NOTHING for id_ in self._shelves if id_ is not _FILES})
        if left:
            self._save(Run(tuple(sorted(left)), (0,) * len(left), nothing), lookup.digests)

    def tidy(self, batches: Sequence[FileBatch], indices: Sequence[int], lookup: Lookup) -> None:
        """Write what many small packs have as a few larger ones, if that is worth it, and remove those."""
        size = sum(run.stored.files.nbytes for run in lookup.runs)
        if len(lookup.packs.get(_FILES, ())) <= FRAGMENTS + 4 * (size // PACK_BYTES):
            return
        saved: set[bytes] = set()
        for batch in batches:
            for run in split(batch, indices):
                saved |= self._save(run, lookup.digests, anew=True)
        for id_, packs in lookup.packs.items():
            self._shelves[id_].replaced(packs, frozenset(saved))

    def _save(self, run: Run, digests: Mapping[int, bytes | None], *, anew: bool = False) -> set[bytes]:
        """The digests of the manifests that are kept on every shelf now."""
        saved: set[bytes] = set()
        all_ = [digests[index] for index in run.indices]
        rows = [0, *accumulate(run.counts)]
        for start, end in _packed(run, all_):
            names = [digest for digest in all_[start:end] if digest is not None]
            packed = run.stored.slice(rows[start], rows[end] - rows[start])
            kept = True
            for id_, shelf in self._shelves.items():
                if anew or any(shelf.find(digest) is None for digest in names):
                    batch = packed.files if id_ is _FILES else packed.stats[id_]
                    kept &= self._cache.save(shelf, names, run.counts[start:end], batch)
            if kept:
                saved.update(names)
        return saved

    def _located(self, digest: bytes | None) -> dict[int | None, Extent] | None:
        """Where each shelf has the manifest's rows; None unless all have them."""
        if digest is None:
            return None
        extents: dict[int | None, Extent] = {}
        for id_, shelf in self._shelves.items():
            extent = shelf.find(digest)
            if extent is None:
                return None
            extents[id_] = extent
        count = extents[_FILES].rows
        return extents if all(extent.rows == count for extent in extents.values()) else None

    def _stored(
        self,
        loaded: dict[tuple[int | None, str], pa.RecordBatch | None],
        first: Mapping[int | None, Extent],
        run: Sequence[Mapping[int | None, Extent] | None],
    ) -> Stored | None:
        """The rows of a run, which stand together on every shelf, from its first extent on."""
        rows = sum(extents[_FILES].rows for extents in run if extents is not None)
        batches: dict[int | None, pa.RecordBatch] = {}
        for id_, extent in first.items():
            if (id_, extent.pack) not in loaded:
                loaded[id_, extent.pack] = self._shelves[id_].load(extent.pack)
                if loaded[id_, extent.pack] is None:
                    self._shelves[id_].discard(extent.pack)
            batch = loaded[id_, extent.pack]
            if batch is not None:
                batches[id_] = batch.slice(extent.start, rows)
        if len(batches) < len(first):
            return None
        return Stored(batches.pop(_FILES), {id_: batch for id_, batch in batches.items() if id_ is not None})

    def _all_digests(self, manifests: Sequence[Manifest]) -> list[bytes | None]:
        """All that decoded files depend on; None if a manifest's length is unknown or is not the file's.

        This is done for every manifest of every plan, so that a microsecond counts.
        """
        digests: list[bytes | None] = [None] * len(manifests)
        for index, manifest in enumerate(manifests):
            path, length = manifest.path, manifest.length
            base = self._layouts.get(manifest.spec_id)
            if length is None or base is None:
                continue
            modified = number = 0
            if path.startswith("/") or is_local(path):
                # A local file that was written again is told by its time and number.
                try:
                    status = os.stat(path if path.startswith("/") else local_file(path))  # noqa: PTH116 - as said
                except (OSError, ValueError):
                    pass  # a path of another file system
                else:
                    if status.st_size != length:
                        continue
                    modified, number = status.st_mtime_ns, status.st_ino
            # Entries inherit some of what the list says, and are checked against the rest.
            facts = _facts(manifest)
            digest = base.copy()
            digest.update(f"{length} {modified} {number} {facts} {path}".encode("utf-8", "surrogatepass"))
            digests[index] = digest.digest()
        return digests


@lru_cache(maxsize=1)
def _stamp() -> str:
    return code_stamp(decoder.version())


def _layout_text(layout: SpecLayout) -> bytes:
    text = repr((layout.spec, layout.field_ids, [str(type_) for type_ in layout.types]))
    return text.encode("utf-8", "surrogatepass")


def _neighbours(located: Sequence[Mapping[int | None, Extent] | None]) -> Iterator[tuple[int, int]]:
    """Where runs begin and end: rows that follow each other in one pack on every shelf, or that no shelf has."""
    start = 0
    for index in range(1, len(located) + 1):
        if index == len(located) or not _follows(located[index - 1], located[index]):
            yield start, index
            start = index


def _follows(previous: Mapping[int | None, Extent] | None, following: Mapping[int | None, Extent] | None) -> bool:
    if previous is None or following is None:
        return previous is following
    return all(
        extent.pack == following[id_].pack and extent.start + extent.rows == following[id_].start
        for id_, extent in previous.items()
    )


def _packed(run: Run, digests: Sequence[bytes | None]) -> Iterator[tuple[int, int]]:
    """Which manifests of the run share a pack, from one to another; those without a digest have none."""
    total = sum(run.counts)
    width = run.stored.files.nbytes / total if total else 0.0
    sizes = np.array(run.counts) * width
    # A large one has a pack of its own; small ones share as many bytes as a pack takes.
    large = sizes >= PACK_BYTES
    has_digest = np.array([digest is not None for digest in digests])
    share = np.cumsum(sizes) // PACK_BYTES
    changes = (np.diff(share) != 0) | large[1:] | large[:-1] | (has_digest[1:] != has_digest[:-1])
    cuts = [0, *(np.flatnonzero(changes) + 1).tolist(), len(digests)]
    yield from ((start, end) for start, end in pairwise(cuts) if has_digest[start])


def split(batch: FileBatch, indices: Sequence[int]) -> list[Run]:
    """The batch as runs of manifests that follow each other among these indices; each manifest's files do so too."""
    stored = _records(batch)
    manifest = batch.extra["manifest"].to_numpy()
    firsts = np.flatnonzero(np.diff(manifest, prepend=-1))
    counts = np.diff(np.append(firsts, len(manifest)))
    order = {index: number for number, index in enumerate(indices)}
    present = manifest[firsts].tolist()
    numbers = np.array([order[index] for index in present])
    cuts = [0, *(np.flatnonzero(np.diff(numbers) != 1) + 1).tolist(), len(present)]
    return [
        Run(
            tuple(present[start:end]),
            tuple(counts[start:end].tolist()),
            stored.slice(int(firsts[start]), int(counts[start:end].sum())),
        )
        for start, end in pairwise(cuts)
    ]


_NOTHING: Final = pa.RecordBatch.from_arrays([], names=[])


def _records(batch: FileBatch) -> Stored:
    columns: dict[str, pa.Array] = {"path": batch.path, "size": batch.size, "rows": batch.rows}
    if batch.partition is not None:
        columns["partition"] = batch.partition
    columns |= {f"undecoded.{number}": pa.array(fault.rows) for number, fault in enumerate(batch.undecoded)}
    columns |= {
        f"written.{number}": fault.written
        for number, fault in enumerate(batch.undecoded)
        if fault.written is not None
    }
    columns |= {_EXTRA + name: values for name, values in batch.extra.items() if name != "manifest"}
    faults = json.dumps([[fault.field, fault.text] for fault in batch.undecoded])
    schema = pa.schema([(name, values.type) for name, values in columns.items()], {_UNDECODED: faults.encode()})
    stats = {}
    for id_, statistics in batch.stats.items():
        arrays = {name: getattr(statistics, name) for name in _STATS if getattr(statistics, name) is not None}
        # A record without columns has no rows: none is expected of it.
        stats[int(id_)] = pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))
    return Stored(pa.RecordBatch.from_arrays(list(columns.values()), schema=schema), stats)


def joined(spec_id: int, runs: Iterable[Run]) -> list[FileBatch]:
    """Batches of the files of several runs, in the order of manifests; neighbours of one shape become one batch."""
    ordered = sorted((run for run in runs if any(run.counts)), key=lambda run: run.indices)
    groups = [list(group) for _, group in groupby(ordered, lambda run: run.stored.shape)]
    return [_batch(spec_id, group) for group in groups]


def _batch(spec_id: int, runs: Sequence[Run]) -> FileBatch:
    files = _concatenated([run.stored.files for run in runs])
    columns = dict(zip(files.schema.names, files.columns, strict=True))
    rows = columns["rows"]
    counts = [count for run in runs for count in run.counts]
    indices = np.repeat(np.array([index for run in runs for index in run.indices], np.int32), counts)
    texts = json.loads((files.schema.metadata or {}).get(_UNDECODED, b"[]"))
    stats: dict[int | str, ColumnStats] = {}
    for id_ in runs[0].stored.stats:
        statistics = _concatenated([run.stored.stats[id_] for run in runs])
        stats[id_] = ColumnStats(
            **dict(zip(statistics.schema.names, statistics.columns, strict=True)), value_count=rows
        )
    extra = {name.removeprefix(_EXTRA): values for name, values in columns.items() if name.startswith(_EXTRA)}
    return FileBatch(
        path=columns["path"],
        size=columns["size"],
        rows=rows,
        spec_id=spec_id,
        partition=columns.get("partition"),
        stats=stats,
        undecoded=tuple(
            Undecoded(
                field,
                columns[f"undecoded.{number}"].to_numpy(zero_copy_only=False),
                text,
                columns.get(f"written.{number}"),
            )
            for number, (field, text) in enumerate(texts)
        ),
        extra=extra | {"manifest": pa.array(indices)},
    )


def _concatenated(batches: Iterable[pa.RecordBatch]) -> pa.RecordBatch:
    listed = list(batches)
    return listed[0] if len(listed) == 1 or not listed[0].num_columns else pa.concat_batches(listed)
