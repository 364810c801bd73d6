"""Batches of files as they are kept in the cache, those of many small manifests together.

What a file is stands on one shelf and each column's statistics on another, so that predicates over other columns
share what they have in common. Law: a manifest's parts put together again are the batch that they were made of.
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

from tamis.formats.iceberg.cache import ManifestCache, code_stamp
from tamis.formats.iceberg.manifest_list import Manifest
from tamis.formats.iceberg.metadata import SpecLayout, TableMetadata
from tamis.formats.iceberg.packs import Place, Shelf
from tamis.formats.iceberg.reading import local_file
from tamis.sieve.domain import ColumnStats
from tamis.sieve.files import FileBatch
from tamis.sieve.partitions import Undecoded

__all__ = ["Found", "Keeper", "Run", "Stored", "joined", "split"]

PACK_BYTES: Final = 256 << 10
"""Small manifests share a pack until it has this size: whoever wants one of them reads all of it."""
FRAGMENTS: Final = 8
"""Packs that a task may draw on, beyond four times as many as it needs, before they are written as one."""
_STATS: Final = ("lower", "upper", "null_count", "nan_count")
_EXTRA: Final = "extra."
_UNDECODED: Final = b"undecoded"
_FILES: Final = None
"""The shelf of what files are; others go by the id of their column."""
_stamp = lru_cache(maxsize=1)(code_stamp)

_said = attrgetter(
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
        schemas = [(id_, one.schema) for id_, one in sorted(self.stats.items())]
        return self.files.schema, self.files.schema.metadata, schemas

    def slice(self, start: int, count: int) -> Stored:
        """Some of the files."""
        return Stored(
            self.files.slice(start, count), {id_: one.slice(start, count) for id_, one in self.stats.items()}
        )


@dataclass(frozen=True, slots=True)
class Run:
    """Files of manifests that follow each other, with the places of those and how many files each has."""

    places: tuple[int, ...]
    counts: tuple[int, ...]
    stored: Stored


@dataclass(frozen=True, slots=True)
class Found:
    """What the cache has of some manifests, and what it lacks."""

    runs: tuple[Run, ...]
    missing: tuple[int, ...]
    digests: Mapping[int, bytes | None]
    packs: Mapping[int | None, tuple[str, ...]]
    """Those that were drawn on, by shelf."""


class Keeper:
    """A cache, as one plan over manifests of one table uses it. Threads share it."""

    def __init__(
        self, cache: ManifestCache, metadata: TableMetadata, wanted: Types, manifests: Sequence[Manifest]
    ) -> None:
        self._cache = cache
        table = repr((_stamp(), metadata.uuid, metadata.format_version))
        keys = {_FILES: f"{table} files"} | {id_: f"{table} column {id_} {type_}" for id_, type_ in wanted.items()}
        shelves = {id_: cache.shelf(key, len(manifests)) for id_, key in keys.items()}
        self._shelves: dict[int | None, Shelf] = {id_: one for id_, one in shelves.items() if one is not None}
        self._usable = len(self._shelves) == len(keys)
        self._layouts = {
            layout.spec.spec_id: hashlib.blake2b(_layout_text(layout), digest_size=32) for layout in metadata.specs
        }
        # At once, before threads share the work: each file that is asked for its time has them take turns.
        self._digests = self._all_digests(manifests) if self._usable else [None] * len(manifests)

    def find(self, places: Sequence[int]) -> Found:
        """The files of these manifests with statistics of every wanted column, of each manifest all or nothing."""
        digests = {place: self._digests[place] for place in places}
        if not self._usable or any(shelf.empty for shelf in self._shelves.values()):
            return Found((), tuple(places), digests, {})
        located = [self._located(digests[place]) for place in places]
        loaded: dict[tuple[int | None, str], pa.RecordBatch | None] = {}
        runs: list[Run] = []
        missing: list[int] = []
        for start, end in _neighbours(located):
            spots = located[start]
            stored = None if spots is None else self._stored(loaded, spots, located[start:end])
            if stored is None:
                missing += places[start:end]
            else:
                counts = tuple(one[_FILES].rows for one in located[start:end] if one is not None)
                runs.append(Run(tuple(places[start:end]), counts, stored))
        packs = {id_: tuple(pack for shelf, pack in loaded if shelf == id_) for id_ in self._shelves}
        return Found(tuple(runs), tuple(missing), digests, packs)

    def keep(self, batches: Iterable[FileBatch], found: Found) -> None:
        """Save what was decoded for want of it, but nothing of a manifest that is not told from others by its key."""
        left = set(found.missing)
        for batch in batches:
            for run in split(batch, found.missing):
                left.difference_update(run.places)
                self._save(run, found.digests)
        # Manifests all of whose entries are deleted are known as well: nothing is to be read there.
        nothing = Stored(_NOTHING, {id_: _NOTHING for id_ in self._shelves if id_ is not _FILES})
        if left:
            self._save(Run(tuple(sorted(left)), (0,) * len(left), nothing), found.digests)

    def tidy(self, batches: Sequence[FileBatch], places: Sequence[int], found: Found) -> None:
        """Write what many small packs have as a few larger ones, if that is worth it, and remove those."""
        size = sum(run.stored.files.nbytes for run in found.runs)
        if len(found.packs.get(_FILES, ())) <= FRAGMENTS + 4 * (size // PACK_BYTES):
            return
        saved: set[bytes] = set()
        for batch in batches:
            for run in split(batch, places):
                saved |= self._save(run, found.digests, anew=True)
        for id_, packs in found.packs.items():
            self._shelves[id_].replaced(packs, frozenset(saved))

    def _save(self, run: Run, digests: Mapping[int, bytes | None], *, anew: bool = False) -> set[bytes]:
        """The digests of the manifests that are kept on every shelf now."""
        saved: set[bytes] = set()
        all_ = [digests[place] for place in run.places]
        rows = [0, *accumulate(run.counts)]
        for start, end in _packed(run, all_):
            names = [digest for digest in all_[start:end] if digest is not None]
            part = run.stored.slice(rows[start], rows[end] - rows[start])
            kept = True
            for id_, shelf in self._shelves.items():
                if anew or any(shelf.find(digest) is None for digest in names):
                    batch = part.files if id_ is _FILES else part.stats[id_]
                    kept &= self._cache.save(shelf, names, run.counts[start:end], batch)
            if kept:
                saved.update(names)
        return saved

    def _located(self, digest: bytes | None) -> dict[int | None, Place] | None:
        """Where each shelf has the manifest's rows; None unless all have them."""
        if digest is None:
            return None
        found: dict[int | None, Place] = {}
        for id_, shelf in self._shelves.items():
            place = shelf.find(digest)
            if place is None:
                return None
            found[id_] = place
        count = found[_FILES].rows
        return found if all(place.rows == count for place in found.values()) else None

    def _stored(
        self,
        loaded: dict[tuple[int | None, str], pa.RecordBatch | None],
        first: Mapping[int | None, Place],
        run: Sequence[Mapping[int | None, Place] | None],
    ) -> Stored | None:
        """The rows of a run, which stand together on every shelf, from its first place on."""
        rows = sum(one[_FILES].rows for one in run if one is not None)
        parts: dict[int | None, pa.RecordBatch] = {}
        for id_, place in first.items():
            if (id_, place.pack) not in loaded:
                loaded[id_, place.pack] = self._shelves[id_].load(place.pack)
                if loaded[id_, place.pack] is None:
                    self._shelves[id_].discard(place.pack)
            batch = loaded[id_, place.pack]
            if batch is not None:
                parts[id_] = batch.slice(place.start, rows)
        if len(parts) < len(first):
            return None
        return Stored(parts.pop(_FILES), {id_: part for id_, part in parts.items() if id_ is not None})

    def _all_digests(self, manifests: Sequence[Manifest]) -> list[bytes | None]:
        """All that decoded files depend on; None if a manifest's length is unknown or is not the file's.

        This is done for every manifest of every plan, so that a microsecond counts.
        """
        found: list[bytes | None] = [None] * len(manifests)
        for place, manifest in enumerate(manifests):
            path, length = manifest.path, manifest.length
            base = self._layouts.get(manifest.spec_id)
            if length is None or base is None:
                continue
            modified = number = 0
            if path.startswith(("/", "file:")) or "://" not in path:
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
            said = _said(manifest)
            digest = base.copy()
            digest.update(f"{length} {modified} {number} {said} {path}".encode("utf-8", "surrogatepass"))
            found[place] = digest.digest()
        return found


def _layout_text(layout: SpecLayout) -> bytes:
    text = repr((layout.spec, layout.field_ids, [str(type_) for type_ in layout.types]))
    return text.encode("utf-8", "surrogatepass")


def _neighbours(located: Sequence[Mapping[int | None, Place] | None]) -> Iterator[tuple[int, int]]:
    """Where runs begin and end: rows that follow each other in one pack on every shelf, or that no shelf has."""
    start = 0
    for place in range(1, len(located) + 1):
        if place == len(located) or not _follows(located[place - 1], located[place]):
            yield start, place
            start = place


def _follows(one: Mapping[int | None, Place] | None, other: Mapping[int | None, Place] | None) -> bool:
    if one is None or other is None:
        return one is other
    return all(
        before.pack == other[id_].pack and before.start + before.rows == other[id_].start
        for id_, before in one.items()
    )


def _packed(run: Run, digests: Sequence[bytes | None]) -> Iterator[tuple[int, int]]:
    """Which manifests of the run share a pack, from one to another; those without a digest have none."""
    total = sum(run.counts)
    width = run.stored.files.nbytes / total if total else 0.0
    sizes = np.array(run.counts) * width
    # A large one has a pack of its own; small ones share as many bytes as a pack takes.
    large = sizes >= PACK_BYTES
    known = np.array([digest is not None for digest in digests])
    share = np.cumsum(sizes) // PACK_BYTES
    changes = (np.diff(share) != 0) | large[1:] | large[:-1] | (known[1:] != known[:-1])
    cuts = [0, *(np.flatnonzero(changes) + 1).tolist(), len(digests)]
    yield from ((start, end) for start, end in pairwise(cuts) if known[start])


def split(batch: FileBatch, places: Sequence[int]) -> list[Run]:
    """The batch as runs of manifests that follow each other among these places; a manifest's files stand together."""
    whole = _records(batch)
    manifest = batch.extra["manifest"].to_numpy()
    firsts = np.flatnonzero(np.diff(manifest, prepend=-1))
    counts = np.diff(np.append(firsts, len(manifest)))
    order = {place: number for number, place in enumerate(places)}
    present = manifest[firsts].tolist()
    numbers = np.array([order[place] for place in present])
    cuts = [0, *(np.flatnonzero(np.diff(numbers) != 1) + 1).tolist(), len(present)]
    return [
        Run(
            tuple(present[start:end]),
            tuple(counts[start:end].tolist()),
            whole.slice(int(firsts[start]), int(counts[start:end].sum())),
        )
        for start, end in pairwise(cuts)
    ]


_NOTHING: Final = pa.RecordBatch.from_arrays([], names=[])


def _records(batch: FileBatch) -> Stored:
    columns: dict[str, pa.Array] = {"path": batch.path, "size": batch.size, "rows": batch.rows}
    if batch.partition is not None:
        columns["partition"] = batch.partition
    columns |= {f"undecoded.{place}": pa.array(one.rows) for place, one in enumerate(batch.undecoded)}
    columns |= {_EXTRA + name: values for name, values in batch.extra.items() if name != "manifest"}
    said = json.dumps([[one.field, one.text] for one in batch.undecoded])
    schema = pa.schema([(name, values.type) for name, values in columns.items()], {_UNDECODED: said.encode()})
    stats = {}
    for id_, one in batch.stats.items():
        parts = {name: getattr(one, name) for name in _STATS if getattr(one, name) is not None}
        # A record without columns has no rows: none is expected of it.
        stats[int(id_)] = pa.RecordBatch.from_arrays(list(parts.values()), names=list(parts))
    return Stored(pa.RecordBatch.from_arrays(list(columns.values()), schema=schema), stats)


def joined(spec_id: int, runs: Iterable[Run]) -> list[FileBatch]:
    """Batches of the files of several runs, in the order of manifests; neighbours of one shape become one batch."""
    ordered = sorted((run for run in runs if any(run.counts)), key=lambda run: run.places)
    groups = [list(group) for _, group in groupby(ordered, lambda run: run.stored.shape)]
    return [_batch(spec_id, group) for group in groups]


def _batch(spec_id: int, runs: Sequence[Run]) -> FileBatch:
    files = _one([run.stored.files for run in runs])
    columns = dict(zip(files.schema.names, files.columns, strict=True))
    rows = columns["rows"]
    counts = [count for run in runs for count in run.counts]
    places = np.repeat(np.array([place for run in runs for place in run.places], np.int32), counts)
    texts = json.loads((files.schema.metadata or {}).get(_UNDECODED, b"[]"))
    stats: dict[int | str, ColumnStats] = {}
    for id_ in runs[0].stored.stats:
        one = _one([run.stored.stats[id_] for run in runs])
        stats[id_] = ColumnStats(**dict(zip(one.schema.names, one.columns, strict=True)), value_count=rows)
    extra = {name.removeprefix(_EXTRA): values for name, values in columns.items() if name.startswith(_EXTRA)}
    return FileBatch(
        path=columns["path"],
        size=columns["size"],
        rows=rows,
        spec_id=spec_id,
        partition=columns.get("partition"),
        stats=stats,
        undecoded=tuple(
            Undecoded(field, columns[f"undecoded.{place}"].to_numpy(zero_copy_only=False), text)
            for place, (field, text) in enumerate(texts)
        ),
        extra=extra | {"manifest": pa.array(places)},
    )


def _one(batches: Iterable[pa.RecordBatch]) -> pa.RecordBatch:
    found = list(batches)
    return found[0] if len(found) == 1 or not found[0].num_columns else pa.concat_batches(found)
