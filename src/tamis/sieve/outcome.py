"""What became of a batch of files."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy import typing as npt

from tamis.predicate.arrays import Mask
from tamis.sieve.files import FileBatch

__all__ = ["BASES", "NO_LAYER", "Outcome"]

NO_LAYER = -1
BASES = ("partition", "bucket", "stats")
"""What a runtime filter judges a file by, from the cheapest; each one together with those before it."""


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
    together: Mask | None = None
    """Files that statistics of values exclude, and of which their group decided: kept since another file of it may
    match, or dropped since none may. None if there is none in the batch."""
    fail_open: Mask | None = None
    """Files in partitions that could not be judged, and were included for that. None if the batch has none."""
