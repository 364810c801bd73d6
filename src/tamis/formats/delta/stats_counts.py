"""Row counts from the beginnings of statistics strings: all that a plan needs to know which names no column.

Writers put the count first, `{"numRecords":123,`. Law: what is taken from there is the count that a parser finds, but
for a string that is damaged behind it; a count of 0, which alone drops a file, is never taken from there.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.formats.delta.stats_json import StatsRead, read_stats
from tamis.sieve.order import mask_of

__all__ = ["read_counts"]

_HEAD: Final = '{"numRecords":'
_DIGITS: Final = 18
"""As many as every long may have."""
_COUNTS: Final = pa.struct([("numRecords", pa.int64())])


def read_counts(texts: pa.Array) -> StatsRead:
    """The row count of each string, null where there is none: from its beginning, or else by the parser."""
    counts = np.zeros(len(texts), np.int64)
    begun = mask_of(pc.fill_null(pc.starts_with(texts, _HEAD), fill_value=False))
    rows = np.flatnonzero(begun)
    if len(rows):
        counts[rows] = _leading(texts.cast(pa.large_binary()), rows)
    left = np.flatnonzero(counts <= 0)
    failed = np.zeros(len(texts), np.bool_)
    values = pa.array(counts)
    if len(left):
        read = read_stats(texts.take(pa.array(left)), _COUNTS, floats=False)
        mask = np.zeros(len(texts), np.bool_)
        mask[left] = True
        values = pc.replace_with_mask(values, pa.array(mask), pc.struct_field(read.values, [0]))
        failed[left] = read.failed
    return StatsRead(pa.StructArray.from_arrays([values], fields=list(_COUNTS)), failed)


def _leading(
    texts: pa.Array, rows: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The number that follows the head; 0 where that is none, or may be something else than a plain number."""
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    content = np.frombuffer(data, np.uint8)
    start, end = ends[rows] + len(_HEAD), ends[rows + 1]
    found = np.zeros(len(rows), np.int64)
    open_ = np.ones(len(rows), np.bool_)
    done = np.zeros(len(rows), np.bool_)
    for place in range(_DIGITS + 1):
        at = start + place
        byte = np.where(at < end, content[np.minimum(at, len(content) - 1)], 0)
        digit = byte - np.uint8(ord("0"))
        ends_here = open_ & ((byte == ord(",")) | (byte == ord("}"))) & (place > 0)
        done |= ends_here
        open_ &= digit <= 9  # noqa: PLR2004 - a digit; what lies below 0 has wrapped around
        if not open_.any():
            break
        # A number that begins with 0 and goes on is no JSON.
        open_ &= (place == 0) | (found > 0)
        found = np.where(open_ & (place < _DIGITS), found * 10 + digit, found)
    return np.where(done, found, 0)
