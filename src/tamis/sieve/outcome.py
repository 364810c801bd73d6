"""What files are judged by, and what became of a batch of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy import typing as npt

from tamis.predicate.bound import BoundPredicate
from tamis.sieve.buckets import BucketSelector
from tamis.sieve.files import FileBatch
from tamis.sieve.order import Mask
from tamis.sieve.partitions import PartitionSpec
from tamis.sieve.runtime import BoundRuntimeFilter

__all__ = ["BASES", "NO_LAYER", "Outcome", "Sieve"]

NO_LAYER = -1
BASES = ("partition", "bucket", "stats")
"""What a runtime filter judges a file by, from the cheapest; each one together with those before it."""


@dataclass(frozen=True, slots=True)
class Sieve:
    """What files are judged by, whatever batch they come in."""

    predicate: BoundPredicate
    specs: tuple[PartitionSpec, ...] = ()
    runtime_filters: tuple[BoundRuntimeFilter, ...] = ()
    bucket_selector: BucketSelector | None = None
    strict: bool = False
    """Raise where a file would be kept because it cannot be judged."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one batch: for each file, whether it is kept, for certain, and who decided."""

    batch: FileBatch
    kept: Mask
    certain: Mask
    layer: npt.NDArray[np.int8]
    """The layer that dropped the file, by its place in the funnel; NO_LAYER if it is kept."""
    decider: npt.NDArray[np.int32]
    """The part of the predicate that decided, by its place."""
    unknown: Mask
    """Kept because nothing is known of the deciding column."""
    holds: Mask
    """Kept, and every row satisfies the predicate: as certain, but whatever a runtime filter has still to say."""
    basis: npt.NDArray[np.int8]
    """The facts with which a runtime filter dropped the file, by their place in BASES; else NO_LAYER."""
