"""Where the ordinary values of each file lie among the cuts of a set."""

from __future__ import annotations

import numpy as np
from pyarrow import types as pt

from tamis.predicate.keys import float_key
from tamis.predicate.schema import Column
from tamis.predicate.values import Cuts
from tamis.sieve.domain import Domain, Range
from tamis.sieve.order import Ranks, ranks

__all__ = ["placed"]


def placed(cuts: Cuts, column: Column, domain: Domain) -> tuple[Ranks, Ranks]:
    """Between which cuts the ordinary values lie: the tightest of all ranges."""
    low = np.zeros(len(domain), np.int64)
    high = np.full(len(domain), _ceiling(cuts, column), np.int64)
    for range_ in domain.ranges:
        _narrow(low, high, range_, cuts)
    return low, high


def _narrow(low: Ranks, high: Ranks, range_: Range, cuts: Cuts) -> None:
    if range_.lower is not None:
        rank = ranks(range_.lower, cuts, "right")
        np.maximum(low, rank, out=low, where=range_.lower.valid)
    if range_.upper is not None:
        # Just below an open end lie the values after every cut that is strictly below it.
        rank = ranks(range_.upper, cuts, "left" if range_.upper_open else "right")
        np.minimum(high, rank, out=high, where=range_.upper.valid)


def _ceiling(cuts: Cuts, column: Column) -> int:
    """The rank of the greatest ordinary value. Of a float that is infinity: NaN, above it, is judged apart."""
    if pt.is_floating(column.type) and len(cuts):
        return int(np.searchsorted(cuts, float_key(float("inf")), "right"))
    return len(cuts)
