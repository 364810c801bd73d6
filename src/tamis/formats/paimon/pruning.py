"""Manifests judged by what their lists say of them, before any of them is read: partition values, and buckets.

Law: a manifest with a file that may match is never dropped; whatever its list does not say is unknown. And what is
dropped unread can be counted: a manifest is read if one of its files may have been deleted by another's entry.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from tamis.formats.paimon.binary_row import BinaryRows
from tamis.formats.paimon.entries import BUCKET, PARTITION, Deleted
from tamis.formats.paimon.manifests import Manifests
from tamis.formats.paimon.schema import PaimonField, PaimonSchema
from tamis.predicate.arrays import Int64s, Mask
from tamis.predicate.keys import INT64_MAX, has_order
from tamis.sieve.domain import ColumnStats, Facts, stats_domain
from tamis.sieve.file_buckets import FileBuckets, bucket_facts
from tamis.sieve.order import mask_of
from tamis.sieve.sieve import Sieve
from tamis.sieve.trial import try_all

__all__ = ["KEPT", "PREDICATE", "who_prunes"]

KEPT: Final = -2
PREDICATE: Final = -1
"""What the predicate prunes; a runtime filter is named by its position."""
MOST_PAIRS: Final = 1 << 24
"""Manifests times deleted partitions that are compared; beyond, every manifest may have a deleted file."""


def who_prunes(
    sieve: Sieve, schema: PaimonSchema, manifests: Manifests, deleted: Deleted, buckets: FileBuckets | None = None
) -> Int64s:
    """For each manifest what prunes it unread: the predicate, else the first runtime filter that does, else nothing.

    buckets has the bucket of each manifest whose files are all of one.
    """
    ranges = _Ranges.of(manifests, schema) if len(manifests) else ()
    facts = _facts(sieve, manifests, ranges, buckets)
    deciders = np.where(try_all(sieve.predicate.conjuncts, facts).possible, KEPT, PREDICATE)
    for position, runtime in enumerate(sieve.runtime_filters):
        deciders = np.where((deciders == KEPT) & ~runtime.possible(facts), position, deciders)
    pruned = deciders != KEPT
    if pruned.any():
        has_deletes = np.array([one.deleted > 0 for one in manifests.manifests])
        read = has_deletes | _may_have(deleted, manifests, ranges, schema)
        deciders = np.where(read, KEPT, deciders)
    return deciders


class _Ranges:
    """The range of one partition field over each manifest's files."""

    def __init__(self, field: PaimonField, stats: ColumnStats, known: Mask) -> None:
        self.field = field
        self.stats = stats
        self.known = known
        """Where bounds and null count are there, and do not contradict one another."""

    @classmethod
    def of(cls, manifests: Manifests, schema: PaimonSchema) -> tuple[_Ranges, ...]:
        """Of every partition field that has an order. Writers disagree on NaN: nothing is said of floats."""
        lower, upper = BinaryRows.of(manifests.lower), BinaryRows.of(manifests.upper)
        fields = schema.partition_fields
        fits = (lower.arity == len(fields)) & (upper.arity == len(fields))
        found = []
        for place, field in enumerate(fields):
            if not has_order(field.type) or pt.is_floating(field.type):
                continue
            least, most = lower.field(place, field), upper.field(place, field)
            nulls = _nulls(manifests.nulls, place)
            valid = [mask_of(side.values.is_valid()) for side in (least, most)]
            has_null = mask_of(pc.greater(nulls, 0).fill_null(False))  # noqa: FBT003 - an unknown count
            known = fits & mask_of(nulls.is_valid()) & (valid[0] == valid[1]) & (valid[0] | has_null)
            known &= ~(least.damaged | most.damaged)
            sides = (_where(known, side) for side in (least.values, most.values, nulls))
            found.append(cls(field, ColumnStats(*sides), known))
        return tuple(found)


def _where(known: Mask, column: pa.Array) -> pa.Array:
    return pc.if_else(pa.array(known), column, pa.scalar(None, column.type))


def _nulls(lists: pa.ListArray, place: int) -> pa.Array:
    """The count at a place; null where there is none."""
    counts = [None if one is None or len(one) <= place else one[place] for one in lists.to_pylist()]
    return pa.array([None if one is None or one < 0 else one for one in counts], pa.int64())


def _facts(sieve: Sieve, manifests: Manifests, ranges: Sequence[_Ranges], buckets: FileBuckets | None) -> Facts:
    count = len(manifests)
    facts = Facts(count, {})
    columns = {column.id: column for column in sieve.columns}
    # Counts of entries, deleted ones too: a field is NULL in all of them if there are as many nulls.
    counts = (one.added + one.deleted for one in manifests.manifests)
    entries = pa.array([one if 0 < one <= INT64_MAX else None for one in counts], pa.int64())
    for one in ranges:
        if one.field.id not in columns:
            continue
        stats = replace(one.stats, value_count=entries)
        domain = stats_domain(columns[one.field.id], stats, count)
        facts = facts.and_also(Facts(count, {one.field.id: domain}))
    if buckets is not None:
        found, _ = bucket_facts((buckets,), columns, np.arange(count))
        facts = facts.and_also(found)
    return facts


def _may_have(deleted: Deleted, manifests: Manifests, ranges: Sequence[_Ranges], schema: PaimonSchema) -> Mask:
    """Which manifests may add a file that some entry deletes, by partition and bucket."""
    count = len(manifests)
    if not len(deleted):
        return np.zeros(count, np.bool_)
    encoded = deleted.columns[PARTITION].dictionary_encode()
    bucket = np.asarray(deleted.columns[BUCKET].to_numpy(zero_copy_only=False), np.int64)
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    kinds = np.unique(np.stack([codes, bucket]), axis=1)
    if kinds.shape[1] * count > MOST_PAIRS:
        return np.ones(count, np.bool_)
    rows = BinaryRows.of(encoded.dictionary)
    may = np.ones((count, kinds.shape[1]), np.bool_)
    places = {field.id: place for place, field in enumerate(schema.partition_fields)}
    for one in ranges:
        values = rows.field(places[one.field.id], one.field)
        lower, upper = one.stats.lower, one.stats.upper
        assert lower is not None  # noqa: S101 - for the type checker: _Ranges has both
        assert upper is not None  # noqa: S101 - as above
        ranks = pc.rank(pa.concat_arrays([values.values, lower, upper]), tiebreaker="dense").to_numpy()
        mine, least, most = np.split(ranks.astype(np.int64), [len(rows), len(rows) + count])
        null = mask_of(values.values.is_null())
        inside = (least[:, None] <= mine) & (mine <= most[:, None]) & mask_of(lower.is_valid())[:, None] & ~null
        has_null = mask_of(pc.greater(one.stats.null_count, 0).fill_null(True))  # noqa: FBT003 - an unknown count
        inside |= null & has_null[:, None]
        may &= (inside | ~one.known[:, None] | values.damaged)[:, kinds[0]]
    for side, holds in ((manifests.min_bucket, np.less_equal), (manifests.max_bucket, np.greater_equal)):
        known = mask_of(side.is_valid())
        bound = np.asarray(side.fill_null(0).to_numpy(zero_copy_only=False), np.int64)
        may &= holds(bound[:, None], kinds[1]) | ~known[:, None]
    return np.asarray(may.any(axis=1))
