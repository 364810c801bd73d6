"""The hash by which a writer places rows in buckets: one question, whoever asks it.

Law: a key's bucket is the one that the writer's hash gives, or ANY_BUCKET where that cannot be told. Predicates and
join keys, of one column or of several, all ask here, so that no two of them can disagree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
from pyarrow import types as pt

from tamis.predicate.arrays import Int64s, Mask
from tamis.predicate.keys import NAN_KEY, uses_bytes
from tamis.predicate.values import Cuts
from tamis.sieve.order import KeyArray

__all__ = ["ANY_BUCKET", "BucketHash", "EitherHash", "hash_keys", "key_array", "variants"]

ANY_BUCKET: Final = -1
"""Stands for the bucket of a key that may lie in any of them."""


class BucketHash(Protocol):
    """How a writer finds a row's bucket from the values of its bucket key. Equal hashes compare equal."""

    def __hash__(self) -> int:
        """Equal for equal hashes: what was hashed once is kept by it."""
        ...

    def buckets(self, keys: Sequence[KeyArray], types: Sequence[pa.DataType], total: int, /) -> Int64s | str:
        """The bucket, from 0 to total - 1, of each row of bucket-key values: keys as order.encode makes them.

        There is an array and a type for each column of the bucket key, in the order in which the writer hashes them.
        What is not valid is NULL. ANY_BUCKET for a row that writers place in different buckets, or that cannot be
        hashed as they did it; a text says why nothing of these types can. -0.0 and 0.0 are one key, and so are all
        NaN: whoever asks takes both for ANY_BUCKET, whatever is said of them here.
        """
        ...


@dataclass(frozen=True, slots=True)
class EitherHash:
    """A row was placed by one of these hashes, and nothing tells by which: writers of one table disagree.

    A file may hold a key that any of them places in its bucket. Who can ask each of them does (`variants`); who
    cannot, is told the bucket only where all agree.
    """

    hashes: tuple[BucketHash, ...]

    def buckets(self, keys: Sequence[KeyArray], types: Sequence[pa.DataType], total: int, /) -> Int64s | str:
        """As BucketHash has it: ANY_BUCKET where they differ."""
        agreed: Int64s | None = None
        for each in self.hashes:
            found = each.buckets(keys, types, total)
            if isinstance(found, str):
                return found
            agreed = found if agreed is None else np.where(agreed == found, agreed, ANY_BUCKET)
        return "there is no hash" if agreed is None else agreed


def variants(by: BucketHash) -> tuple[BucketHash, ...]:
    """The hashes of which one placed each row: a row is where at least one of them says."""
    return by.hashes if isinstance(by, EitherHash) and by.hashes else (by,)


def hash_keys(by: BucketHash, keys: Sequence[KeyArray], types: Sequence[pa.DataType], total: int) -> Int64s | str:
    """The bucket of each row, ANY_BUCKET where that cannot be told; or why no row's can."""
    if total <= 0:
        return f"{total} is not a number of buckets"
    try:
        found = by.buckets(keys, types, total)
    except (ValueError, OverflowError, pa.ArrowException) as error:
        return f"the bucket hash cannot take a value: {error}"
    if isinstance(found, str):
        return found
    if len(found) and (int(found.min()) < ANY_BUCKET or int(found.max()) >= total):
        return f"the bucket hash gave a bucket outside 0 to {total - 1}"
    for each, type_ in zip(keys, types, strict=True):
        if pt.is_floating(type_):
            # -0.0 equals 0.0 and NaN is NaN, but writers hash their bits, which differ.
            doubtful = each.valid & np.isin(np.asarray(each.keys), (0, NAN_KEY))
            found = np.where(doubtful, ANY_BUCKET, found)
    return found


def key_array(keys: Cuts, type_: pa.DataType, valid: Mask | None = None) -> KeyArray:
    """Keys as a set or a list of join keys has them; all of them valid unless told."""
    if valid is None:
        valid = np.ones(len(keys), np.bool_)
    if uses_bytes(type_):
        return KeyArray(pa.array(keys.tolist(), pa.large_binary()), valid)
    return KeyArray(keys.astype(np.int64, copy=False), valid)
