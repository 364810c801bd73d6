"""Files that stand or fall together: they hold versions of the same rows, and the newest version counts.

A bucket of a primary-key table is such a group. Its files are merged by key when they are read, and what a row holds
is what its newest version holds. Let a version in file f match, and a newer one in file g not. Then no row matches;
but if g were dropped for that, the version in f would come back. So there are two kinds of facts:

    of keys     what holds of every version of a file's rows: partition, bucket, statistics of key columns
    of values   all other statistics: they hold of the versions in the file alone

Law: a file is dropped alone only by facts of keys. No row with such a key matches, whatever its values, so that
neither it nor an older version of it is missed or comes back: the filter on rows removes it. By facts of values a
group is dropped whole or stays whole: if no file of it, among those that are left, holds a version that matches, then
no newest version matches either.

ALL is said of a group as well: if every version in every file that is left matches, so does every live row of these
files. A key in a file that was dropped cannot match, so that the files that are left hold no version of it: they can
be taken without a filter, or removed, but only together.

    k = 5 AND v = 3     a file without k = 5 goes alone, one without v = 3 only if all files of its group lack either
    k = 5 OR v = 3      no file goes alone, unless its keys exclude both sides
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy import typing as npt

from tamis.sieve.order import Mask, mask_of

__all__ = ["Groups"]

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Which files of a batch stand or fall together."""

    codes: Int64s
    """A number for each file, from 0; a file that stands alone has one of its own."""
    count: int
    shared: Mask
    """Whether any other file of the batch stands or falls with this one."""

    @classmethod
    def of(cls, numbers: pa.Array) -> Groups:
        """Files of one number are a group; null stands alone."""
        known = mask_of(numbers.is_valid())
        codes = np.empty(len(numbers), np.int64)
        distinct, codes[known] = np.unique(
            numbers.filter(pa.array(known)).to_numpy(zero_copy_only=False), return_inverse=True
        )
        alone = int((~known).sum())
        codes[~known] = len(distinct) + np.arange(alone)
        sizes = np.bincount(codes, minlength=len(distinct) + alone)
        return cls(codes, len(distinct) + alone, np.asarray(sizes[codes] > 1))

    def whole(self, rows: Int64s, mask: Mask) -> Mask:
        """Of these files, those in whose group the mask is true of every one of them."""
        codes = self.codes[rows]
        others = np.zeros(self.count, np.bool_)
        others[codes[~mask]] = True
        return ~others[codes]

    def astray(self, partitions: Int64s) -> int | None:
        """A file whose partition is not that of its group; None if there is none."""
        first = np.full(self.count, -1, np.int64)
        first[self.codes[::-1]] = partitions[::-1]
        stray = np.flatnonzero(first[self.codes] != partitions)
        return int(stray[0]) if len(stray) else None
