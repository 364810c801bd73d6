"""Files of one key into groups, in their order: each group up to a size and a number of files.

As Iceberg packs: a file joins the group before it if that stays within its limits, else it begins another. A file
that is larger than a group may be has one of its own. Files that stand or fall together are one item: never apart.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tamis.predicate.arrays import Int64s

__all__ = ["MOST_BYTES", "pack"]

MOST_BYTES: Final = 1 << 62
"""Sums stay below it, whatever sizes the metadata claims."""


def pack(keys: Int64s, sizes: Int64s, items: Int64s, most_bytes: int, most_files: int) -> Int64s:
    """Where groups begin, in files that lie in the order of keys, then of items: ascending, the first at 0.

    >>> keys, sizes, items = np.array([0, 0, 0, 1]), np.array([4, 4, 4, 4]), np.arange(4)
    >>> pack(keys, sizes, items, most_bytes=8, most_files=10).tolist()
    [0, 2, 3]
    """
    count = len(sizes)
    if not count:
        return np.empty(0, np.int64)
    begin = np.flatnonzero(_changes(keys))
    clipped = np.clip(sizes, 0, MOST_BYTES // count)
    if _all_fit(begin, clipped, most_bytes, most_files):
        return begin
    first = np.flatnonzero(_changes(keys) | _changes(items))
    ends = np.append(first[1:], count)
    weights = np.concatenate([[0], np.cumsum(clipped)])[np.append(first, count)]
    files = np.append(first, count)
    own = keys[first]
    ends_of_keys = np.searchsorted(own, own, "right")
    by_size = np.searchsorted(weights, weights[:-1] + min(most_bytes, MOST_BYTES), "right") - 1
    by_files = np.searchsorted(files, files[:-1] + min(most_files, count), "right") - 1
    following = np.minimum(np.minimum(by_size, by_files), ends_of_keys)
    nexts = np.maximum(following, np.arange(len(first)) + 1).tolist()
    starts, item = [], 0
    while item < len(ends):
        starts.append(item)
        item = nexts[item]
    return first[starts]


def _all_fit(begin: Int64s, sizes: Int64s, most_bytes: int, most_files: int) -> bool:
    """Whether each key's files are one group, as most tables have it."""
    most = int(np.diff(begin, append=len(sizes)).max())
    return most <= most_files and int(np.add.reduceat(sizes, begin).max()) <= most_bytes


def _changes(values: Int64s) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    changes = np.ones(len(values), np.bool_)
    changes[1:] = values[1:] != values[:-1]
    return changes
