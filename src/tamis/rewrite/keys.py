"""Which files may be rewritten together: those of one spec, one partition and one bucket.

Law: two files have one key only if they are known to share spec, partition and bucket. A partition value that cannot
be decoded is told by how it is written; where that is not known either, the file has a key of its own.

Keys are numbered in their order, which is that of their values, so that every machine numbers them alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.predicate.arrays import Int64s
from tamis.sieve.files import FileBatch
from tamis.sieve.order import mask_of
from tamis.sieve.outcome import Outcome
from tamis.sieve.partition_keys import PartitionKey, PartitionSpec, distinct, spec_order
from tamis.sieve.sieve import Sieve

__all__ = ["GroupKey", "Keys", "number_keys"]


class GroupKey(NamedTuple):
    """What the files of a group have in common."""

    key: PartitionKey
    bucket: int | None = None
    total: int | None = None
    """Of how many buckets that is one: after a change of their number, bucket 3 is another one."""
    written: tuple[str | None, ...] = ()
    """Values that could not be decoded, as they are written."""
    alone: int | None = None
    """The file, if it is not known with which others it shares a partition."""

    @property
    def sort_key(self) -> tuple[object, ...]:
        """Specs in order, then partitions by their values; NULL first."""
        values, written = (tuple([_rank(one) for one in part]) for part in (self.key.partition or (), self.written))
        return spec_order(self.key.spec_id), values, _rank(self.bucket), _rank(self.total), written, _rank(self.alone)


def _rank(value: object) -> tuple[int, object]:
    """Values of different kinds never meet in a comparison."""
    match value:
        case None:
            return 0, 0
        case bool() | int() | float():
            return 1, value
        case str():
            return 2, value
        case bytes():
            return 3, value
        case _:
            return 4, repr(value) if not hasattr(value, "as_tuple") else value


@dataclass(frozen=True, slots=True, eq=False)
class Keys:
    """The keys of files, in order, and which of them each file has."""

    keys: tuple[GroupKey, ...]
    codes: Int64s


def number_keys(sieve: Sieve, outcomes: Sequence[Outcome]) -> Keys:
    """The keys of all kept files, one outcome after the other."""
    rows = [np.flatnonzero(outcome.kept) for outcome in outcomes]
    starts = np.concatenate([[0], np.cumsum([len(one) for one in rows])]).astype(np.int64)
    specs = {spec.spec_id: spec for spec in sieve.specs}
    alike: dict[object, list[int]] = {}
    for number, outcome in enumerate(outcomes):
        alike.setdefault(_shape(outcome.batch), []).append(number)
    numbers: dict[GroupKey, int] = {}
    codes = np.empty(int(starts[-1]), np.int64)
    for members in alike.values():
        batches = [outcomes[number].batch for number in members]
        taken = [pa.array(rows[number]) for number in members]
        places = np.concatenate([np.arange(starts[number], starts[number + 1]) for number in members])
        keys, own = _of_batches(batches, taken, specs.get(batches[0].spec_id), places)
        codes[places] = np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)[own]
    found = list(numbers)  # in the order of their numbers
    sort_keys = [key.sort_key for key in found]
    order = sorted(range(len(found)), key=sort_keys.__getitem__)
    ranks = np.empty(len(found), np.int64)
    ranks[order] = np.arange(len(found))
    return Keys(tuple(found[number] for number in order), ranks[codes])


def _shape(batch: FileBatch) -> object:
    """Batches of one shape are numbered at once: their columns can be put one behind the other."""
    faults = tuple(fault.field for fault in batch.undecoded)
    kind = None if batch.partition is None else str(batch.partition.type)
    return batch.spec_id, kind, bool(batch.buckets), faults


def _of_batches(
    batches: Sequence[FileBatch], taken: Sequence[pa.Array], spec: PartitionSpec | None, places: Int64s
) -> tuple[list[GroupKey], Int64s]:
    """The distinct keys of these files, and which of them each has."""
    count = len(places)
    partition = _partition(batches, taken, spec)
    buckets = _buckets(batches, taken)
    written = _written(batches, taken, spec, places)
    codes, first = distinct([*partition, *buckets, *written], count)
    at = pa.array(first)
    own = PartitionSpec(batches[0].spec_id) if spec is None else spec
    columns = [child.take(at) for child in partition]
    values = PartitionKey.of_columns(own, columns) if columns else [PartitionKey(own.spec_id)] * len(first)
    pairs = list(zip(*(child.take(at).to_pylist() for child in buckets), strict=True)) or [(None, None)] * len(first)
    *texts, alone = [child.take(at).to_pylist() for child in written] or [[None] * len(first)]
    told = list(zip(*texts, strict=True)) or [()] * len(first)
    keys = [
        GroupKey(value, bucket, total, text if any(one is not None for one in text) else (), single)
        for value, (bucket, total), text, single in zip(values, pairs, told, alone, strict=True)
    ]
    return keys, codes


def _partition(batches: Sequence[FileBatch], taken: Sequence[pa.Array], spec: PartitionSpec | None) -> list[pa.Array]:
    """The partition's columns; those that follow from others tell nothing more."""
    if spec is None or spec.is_unpartitioned or any(batch.partition is None for batch in batches):
        return []
    columns = []
    for place, field in enumerate(spec.fields):
        if not field.derived:
            parts = [
                _plain(batch.partition.field(place)).take(rows)  # type: ignore[union-attr] # there is one
                for batch, rows in zip(batches, taken, strict=True)
            ]
            columns.append(pa.concat_arrays(parts))
    return columns


def _buckets(batches: Sequence[FileBatch], taken: Sequence[pa.Array]) -> list[pa.Array]:
    if not batches[0].buckets:
        return []
    stated = [(batch.buckets[0], rows) for batch, rows in zip(batches, taken, strict=True)]
    return [
        pa.concat_arrays([getattr(buckets, side).take(rows).cast(pa.int64()) for buckets, rows in stated])
        for side in ("bucket", "total")
    ]


def _written(
    batches: Sequence[FileBatch], taken: Sequence[pa.Array], spec: PartitionSpec | None, places: Int64s
) -> list[pa.Array]:
    """A column of texts for each value that could not be decoded, then the place of each file that stands alone."""
    if spec is None or not batches[0].undecoded:
        return []
    columns, alone = [], np.zeros(len(places), np.bool_)
    for number, fault in enumerate(batches[0].undecoded):
        if spec.fields[fault.field].derived:
            continue
        texts, failed = [], []
        for batch, rows in zip(batches, taken, strict=True):
            one = batch.undecoded[number]
            failed.append(one.rows[rows.to_numpy()])
            texts.append(pa.nulls(len(rows), pa.string()) if one.written is None else one.written.take(rows))
        mask = np.concatenate(failed)
        text = pc.if_else(pa.array(mask), pa.concat_arrays(texts), pa.scalar(None, pa.string()))
        columns.append(text)
        alone |= mask & mask_of(text.is_null())
    return [*columns, pa.array(places, mask=~alone)]


def _plain(array: pa.Array) -> pa.Array:
    return array.storage if isinstance(array, pa.ExtensionArray) else array
