"""Stand-in writers' hashes, and the facts that a batch's buckets become."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tamis.predicate.schema import Column
from tamis.sieve.domain import BucketRange, Facts, KeyBuckets
from tamis.sieve.hashing import BucketHash
from tamis.sieve.key_values import to_values
from tamis.sieve.order import KeyArray


@dataclass(frozen=True)
class ValueHash:
    """A hash given as a function of a table of typed values; None if it cannot take them."""

    function: Callable[[pa.Table, int], np.ndarray | None]

    def buckets(self, keys: Sequence[KeyArray], types: Sequence[pa.DataType], total: int, /) -> np.ndarray | str:
        arrays = [_values(each, type_) for each, type_ in zip(keys, types, strict=True)]
        found = self.function(pa.Table.from_arrays(arrays, [str(place) for place in range(len(arrays))]), total)
        return "the bucket hash cannot take these values" if found is None else np.asarray(found, np.int64)


def _values(keys: KeyArray, type_: pa.DataType) -> pa.Array:
    listed = keys.keys.tolist() if isinstance(keys.keys, np.ndarray) else keys.keys.to_pylist()
    return to_values([key if ok else None for key, ok in zip(listed, keys.valid, strict=True)], type_)


def whole_keys(
    by: BucketHash, columns: tuple[Column, ...], buckets: Sequence[int], total: int, facts: Facts | None = None
) -> Facts:
    """Files whose keys of these columns hash into these buckets, and what else is known of them."""
    found = np.array(buckets, np.int64)
    fact = KeyBuckets(columns, BucketRange(by, total, found, found, np.ones(len(found), np.bool_)))
    known = facts or Facts(len(found), {})
    return Facts(known.count, known.domains, (*known.buckets, fact))
