"""A bloom filter made where the keys are: what an executor does. It needs nothing but numpy and pyarrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from tamis.predicate.keys import uses_bytes
from tamis.sieve.join.bloom import Bloom, Keys
from tamis.sieve.order import KeyArray, encode

__all__ = ["bloom_part", "merged"]


def bloom_part(batches: Iterable[pa.RecordBatch], type_: pa.DataType, count: int) -> Iterator[pa.RecordBatch]:
    """One row: the filter of the keys in the batches' first column, for about count keys in all parts together."""
    bloom = Bloom.sized(count, of_bytes=uses_bytes(type_))
    for batch in batches:
        bloom.add(_valid(encode(batch.column(0).cast(type_), type_)))
    yield pa.RecordBatch.from_pydict({"bloom": pa.array([bloom.to_bytes()], pa.binary())})


def merged(parts: Iterable[bytes], type_: pa.DataType, count: int) -> Bloom:
    """What the parts hold together; each was made for the same type and count."""
    found = Bloom.sized(count, of_bytes=uses_bytes(type_))
    for part in parts:
        found = found.merge(Bloom.from_bytes(part))
    return found


def _valid(keys: KeyArray) -> Keys:
    # A null among byte keys is no key to a bloom filter; among numbers it cannot be told from one.
    return keys.keys[keys.valid] if isinstance(keys.keys, np.ndarray) else keys.keys
