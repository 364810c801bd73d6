"""Batches of files as records of the cache, a manifest at a time.

What a file is stands in one record and each column's statistics in another, so that predicates over other columns
share what they have in common. Law: a manifest's records put together again are the batch that they were made of.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from numpy import typing as npt

from tamis.formats.iceberg.cache import ManifestCache, code_stamp
from tamis.formats.iceberg.manifest_list import Manifest
from tamis.formats.iceberg.metadata import SpecLayout, TableMetadata
from tamis.formats.iceberg.reading import local_file
from tamis.sieve.domain import ColumnStats
from tamis.sieve.files import FileBatch
from tamis.sieve.partitions import Undecoded

__all__ = ["Keeper", "Stored", "joined", "split"]

_STATS: Final = ("lower", "upper", "null_count", "nan_count")
_EXTRA: Final = "extra."
_UNDECODED: Final = b"undecoded"
_stamp = lru_cache(maxsize=1)(code_stamp)

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


@dataclass(frozen=True, slots=True)
class Keeper:
    """A cache, as manifests of one table use it."""

    cache: ManifestCache
    metadata: TableMetadata
    wanted: Types

    def find(self, manifest: Manifest) -> Stored | None:
        """The manifest's files with statistics of every wanted column; None unless all of that is there."""
        key = self._key(manifest)
        files = None if key is None else self.cache.load(key)
        if key is None or files is None:
            return None
        stats: dict[int, pa.RecordBatch] = {}
        for id_, type_ in self.wanted.items():
            found = self.cache.load(_column_key(key, id_, type_))
            if found is None:
                return None
            stats[id_] = found
        return Stored(files, stats)

    def keep(self, manifest: Manifest, stored: Stored) -> None:
        """Save what was decoded. Nothing of a manifest that cannot be told from another of the same name."""
        key = self._key(manifest)
        if key is not None:
            for id_, found in stored.stats.items():
                self.cache.save(_column_key(key, id_, self.wanted[id_]), found)
            self.cache.save(key, stored.files)

    def _key(self, manifest: Manifest) -> str | None:
        """All that the decoded files depend on; None if the manifest's length is not known or not as it should be."""
        if manifest.length is None:
            return None
        stamp = _when_written(manifest.path)
        if stamp and stamp[0] != manifest.length:
            return None
        inherited = (manifest.sequence_number, manifest.snapshot_id, manifest.first_row_id)
        layout = _layout_text(self.metadata.layout(manifest.spec_id))
        return repr((_stamp(), self.metadata.uuid, manifest.path, manifest.length, stamp, inherited, layout))


def _when_written(location: str) -> tuple[int, ...]:
    """Size, time and number of a local file, by which one that was written again is told; nothing for others."""
    if "://" in location and not location.startswith("file:"):
        return ()
    try:
        status = Path(local_file(location)).stat()
    except (OSError, ValueError):
        return ()
    return status.st_size, status.st_mtime_ns, status.st_ino


def _column_key(key: str, id_: int, type_: pa.DataType) -> str:
    return f"{key} column {id_} {type_}"


def _layout_text(layout: SpecLayout) -> str:
    return repr((layout.spec, layout.field_ids, [str(type_) for type_ in layout.types]))


def split(batch: FileBatch, manifest: npt.NDArray[np.integer]) -> dict[int, Stored]:
    """The batch as records of each manifest, by the number that its files have; they stand together."""
    whole = _records(batch)
    first = np.flatnonzero(np.diff(manifest, prepend=-1))
    ends = np.append(first[1:], len(manifest))
    return {
        int(manifest[start]): Stored(
            whole.files.slice(start, end - start),
            {id_: one.slice(start, end - start) for id_, one in whole.stats.items()},
        )
        for start, end in zip(first.tolist(), ends.tolist(), strict=True)
    }


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


def joined(spec_id: int, parts: Sequence[tuple[int, Stored]]) -> list[FileBatch]:
    """Batches of the files of several manifests, each with its place; neighbours of one shape become one batch."""
    groups = [list(group) for _, group in groupby(parts, lambda part: part[1].shape)]
    return [_batch(spec_id, group) for group in groups]


def _batch(spec_id: int, parts: Sequence[tuple[int, Stored]]) -> FileBatch:
    files = _one([part.files for _, part in parts])
    columns = dict(zip(files.schema.names, files.columns, strict=True))
    rows = columns["rows"]
    counts = [part.files.num_rows for _, part in parts]
    places = np.repeat(np.array([place for place, _ in parts], np.int32), counts)
    texts = json.loads((files.schema.metadata or {}).get(_UNDECODED, b"[]"))
    stats: dict[int | str, ColumnStats] = {}
    for id_ in parts[0][1].stats:
        one = _one([part.stats[id_] for _, part in parts])
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
