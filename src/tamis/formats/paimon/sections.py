"""Which files of a primary-key table hold versions of the same rows, and have to be merged.

Files of one bucket of one partition may. They need not be merged where Java does not: where compaction has decided on
every row (deletion vectors, the first-row engine), and where all files are of one level above 0, which has each key
once, and remove no row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tamis.predicate.arrays import Int64s, Mask

__all__ = ["Versions", "version_sections"]


@dataclass(frozen=True, slots=True, eq=False)
class Versions:
    """What is to be done with each of some files."""

    sections: Int64s
    """Files of one number hold versions of the same rows."""
    merged: Mask
    removals: Mask
    """Not merged, and some rows may be removals."""


def version_sections(
    partition: pa.Array, bucket: Int64s, level: Int64s, delete_rows: pa.Array, *, merged: bool
) -> Versions:
    """What is to be done with files, by their serialised partitions, buckets, levels and numbers of removals.

    merged says whether files of a bucket may hold several versions of a row at all.
    """
    codes = partition.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
    _, sections = np.unique(np.stack([codes, bucket]), axis=1, return_inverse=True)
    sections = sections.astype(np.int64).ravel()
    # A writer that did not count removals may have written some.
    removes = np.asarray(delete_rows.fill_null(1).to_numpy(zero_copy_only=False) != 0)
    if not merged:
        return Versions(sections, np.zeros(len(sections), np.bool_), removes)
    count = int(sections.max(initial=-1)) + 1
    files = np.bincount(sections, minlength=count)
    least, most = np.full(count, np.iinfo(np.int64).max), np.full(count, -1)
    np.minimum.at(least, sections, level)
    np.maximum.at(most, sections, level)
    removing = np.bincount(sections, removes, minlength=count) > 0
    # A file has each key once: alone it needs no merging, whatever its level is.
    plain = (files == 1) | ((least == most) & (least > 0) & ~removing)
    apart = plain[sections]
    return Versions(sections, ~apart, removes & apart)
