"""A bloom filter asked about files: only a file whose values can be listed can be disproved.

Law: values that are too many to look up, or unknown, may all be keys. What a fact narrows to one value, or to a short
run of whole keys (a partition's day, a truncated number), is looked up key by key.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.predicate.arrays import Int64s, Mask
from tamis.predicate.keys import INT64_MAX, INT64_MIN, NAN_KEY
from tamis.sieve.domain import Domain
from tamis.sieve.join.bloom import Bloom
from tamis.sieve.join.tuples import distinct_rows
from tamis.sieve.order import mask_of

__all__ = ["narrowed"]

MAX_LISTED: Final = 1024
"""Most keys of one file to look up: a year of dates, a hundred numbers truncated by ten. Longer runs nearly always
hold a key, or a false positive."""
MAX_LOOKUPS: Final = 20_000_000
"""Most look-ups for a batch of files, about a second's work. The longest runs are left out: their files are kept."""


def narrowed(domain: Domain, bloom: Bloom) -> Domain:
    """The same domain, without ordinary values or NaN where the bloom filter holds none of them."""
    if bloom.of_bytes:
        may_value = _single_values(domain, bloom)
        return replace(domain, may_value=may_value)
    may_nan = domain.may_nan & bloom.contains(np.array([NAN_KEY]))[0]
    return replace(domain, may_value=_listed_values(domain, bloom), may_nan=np.asarray(may_nan))


def _single_values(domain: Domain, bloom: Bloom) -> Mask:
    """Byte keys cannot be listed: only a range of a single value is looked up."""
    may_value = domain.may_value.copy()
    for part in domain.ranges:
        if part.lower is not None and part.upper is not None:
            same = _same(part.lower.keys, part.upper.keys, upper_open=part.upper_open)
            single = np.flatnonzero(may_value & part.lower.valid & part.upper.valid & same)
            may_value[single] = bloom.contains(part.lower.keys.take(pa.array(single)))
    return may_value


def _same(lower: pa.LargeBinaryArray, upper: pa.LargeBinaryArray, *, upper_open: bool) -> Mask:
    """Where nothing but the lower key itself lies between the two."""
    if upper_open:  # nothing lies between a string and the same with a NUL behind it
        nul, nothing = (pa.scalar(text, lower.type) for text in (b"\0", b""))
        lower = pc.binary_join_element_wise(lower, nul, nothing)
    return mask_of(pc.fill_null(pc.equal(lower, upper), fill_value=False))


def _listed_values(domain: Domain, bloom: Bloom) -> Mask:
    low, high, known = _tightest(domain)
    # The distance of two 64-bit keys needs 64 bits without a sign.
    gap = high.view(np.uint64) - low.view(np.uint64)
    rows = np.flatnonzero(domain.may_value & known & (low <= high) & (gap < MAX_LISTED))
    may_value = domain.may_value & ~(known & (low > high))
    kinds, place = distinct_rows([low[rows], high[rows]])
    starts, sizes = low[rows][kinds], gap[rows][kinds].astype(np.int64) + 1
    order = np.argsort(sizes, kind="stable")
    order = order[: int(np.searchsorted(np.cumsum(sizes[order]), MAX_LOOKUPS, "right"))]
    found = np.ones(len(kinds), np.bool_)
    for chunk in np.array_split(order, len(order) // MAX_LISTED + 1):
        found[chunk] = _any_found(bloom, starts[chunk], sizes[chunk])
    may_value[rows] = found[place]
    return np.asarray(may_value)


def _any_found(bloom: Bloom, starts: Int64s, sizes: Int64s) -> Mask:
    """Whether the filter holds any key of each run."""
    runs = np.repeat(np.arange(len(starts)), sizes)
    steps = np.arange(len(runs)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    hits = bloom.contains(starts[runs] + steps)
    return np.bincount(runs[hits], minlength=len(starts)) > 0


def _tightest(domain: Domain) -> tuple[Int64s, Int64s, Mask]:
    """The least and greatest key by all ranges together, and where both are known."""
    low, high = np.full(len(domain), INT64_MIN), np.full(len(domain), INT64_MAX)
    has_low, has_high = (np.zeros(len(domain), np.bool_) for _ in range(2))
    for part in domain.ranges:
        if part.lower is not None:
            np.maximum(low, part.lower.keys, out=low, where=part.lower.valid)
            has_low |= part.lower.valid
        if part.upper is not None:
            # An open end excludes itself; nothing lies below the least key, which is left as it is.
            last = part.upper.keys - (part.upper_open & (part.upper.keys > INT64_MIN))
            np.minimum(high, last, out=high, where=part.upper.valid)
            has_high |= part.upper.valid
    return low, high, has_low & has_high
