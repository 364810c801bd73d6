"""The buckets of files as a format states them, turned into facts.

Law: a bucket says something of a file's keys only with the hash that placed them there, the total that it was one of,
and the types that were hashed. Where one of them is not known, or does not fit, the file may hold any key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.predicate.arrays import Int64s
from tamis.predicate.keys import has_order, uses_bytes
from tamis.predicate.schema import Column, ColumnId
from tamis.predicate.type_names import type_name
from tamis.sieve.domain import BucketRange, Domain, Facts, KeyBuckets
from tamis.sieve.hashing import ANY_BUCKET, BucketHash, hash_keys, key_array, variants

__all__ = ["MAX_TOTALS", "FileBuckets", "bucket_facts"]

MAX_TOTALS: Final = 64
"""Most different totals to tell apart, the commonest first: a table is rescaled a few times. Others say nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class FileBuckets:
    """The bucket of each file of a batch, and how its writer found it."""

    bucket: pa.Array
    """From 0 on; null or negative if the file's rows lie in no one bucket."""
    total: pa.Array
    """Of how many buckets that is one: each file's own, since tables are rescaled. Null, 0 or less if unknown."""
    columns: tuple[Column, ...] = ()
    """The bucket key, in the order and with the types with which it was hashed."""
    hash: BucketHash | None = None
    """The hash that the writer used; None if none placed the rows: then buckets are shown, and prune nothing."""

    def take(self, rows: Int64s) -> FileBuckets:
        """The buckets of these files, in this order."""
        taken = pa.array(rows)
        return replace(self, bucket=self.bucket.take(taken), total=self.total.take(taken))

    @property
    def key(self) -> str:
        """The bucket key as people write it."""
        names = ", ".join(column.name for column in self.columns)
        return names if len(self.columns) == 1 else f"({names})"


def bucket_facts(
    stated: Iterable[FileBuckets], wanted: Mapping[ColumnId, Column], rows: Int64s
) -> tuple[Facts, list[str]]:
    """What buckets say of wanted columns in these files, and why some say nothing.

    A key of which a column is not wanted says nothing: nobody asks for one of its values.
    """
    facts, faults = Facts(len(rows), {}), []
    for buckets in stated:
        if buckets.hash is None or not buckets.columns or any(each.id not in wanted for each in buckets.columns):
            continue
        why = _misfit(buckets, wanted) or _refusal(buckets.hash, buckets.columns)
        if why is not None:
            faults.append(f"buckets of {buckets.key} ignored: {why}")
            continue
        taken = pa.array(rows)
        bucket, total = _integers(buckets.bucket.take(taken)), _integers(buckets.total.take(taken))
        if (stray := (total > 0) & (bucket >= total)).any():
            first = int(np.flatnonzero(stray)[0])
            why = f"there is no bucket {bucket[first]} of {total[first]}"
            faults.append(f"buckets of {buckets.key} ignored in {int(stray.sum()):,} files: {why}")
        known = (total > 0) & (bucket >= 0) & (bucket < total)
        totals, sizes = np.unique(total[known], return_counts=True)
        if len(totals) > MAX_TOTALS:
            faults.append(
                f"buckets of {buckets.key} ignored in some files: there are {len(totals):,} different totals"
            )
        for count in totals[np.argsort(-sizes, kind="stable")][:MAX_TOTALS].tolist():
            found = BucketRange(buckets.hash, count, bucket, bucket, known & (total == count))
            facts = facts.and_also(_fact(buckets.columns, found))
    return facts, faults


def _fact(columns: tuple[Column, ...], found: BucketRange) -> Facts:
    """Of one column a domain; whether it may be NULL is asked of the hash, since NULL has a bucket like any value."""
    if len(columns) > 1:
        return Facts(len(found.valid), {}, (KeyBuckets(columns, found),))
    yes = np.ones(len(found.valid), np.bool_)
    may_null = ~found.valid
    for by in variants(found.hash):
        null = _hash_nulls(by, columns, found.count)
        anywhere = isinstance(null, str) or null[0] == ANY_BUCKET
        may_null = yes if anywhere else may_null | (found.lower == null[0])
    return Facts(len(found.valid), {columns[0].id: Domain(may_null, yes, yes, (), (found,))})


def _misfit(buckets: FileBuckets, wanted: Mapping[ColumnId, Column]) -> str | None:
    for column in buckets.columns:
        now = wanted[column.id].type
        if not has_order(now):
            return f"{column.name} is {type_name(now)}, which is not compared"
        if now != column.type:
            return f"{column.name} was hashed as {type_name(column.type)}, and is {type_name(now)} by now"
    return None


def _refusal(by: BucketHash, columns: tuple[Column, ...]) -> str | None:
    """Why the hash takes no keys of these types; None if it does."""
    found = _hash_nulls(by, columns, 1)
    return found if isinstance(found, str) else None


def _hash_nulls(by: BucketHash, columns: tuple[Column, ...], total: int) -> Int64s | str:
    keys = [
        key_array(np.array([b"" if uses_bytes(each.type) else 0], object), each.type, np.zeros(1, np.bool_))
        for each in columns
    ]
    return hash_keys(by, keys, [each.type for each in columns], total)


def _integers(array: pa.Array | pa.ChunkedArray) -> Int64s:
    """Numbers, with -1 for null."""
    return np.asarray(pc.fill_null(array, -1), np.int64)
