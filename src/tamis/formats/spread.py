"""A plan as work that can be spread: over this process alone, or over many that share nothing but what they are sent.

A format gives its metadata files in units, and a reader that makes batches of files of a unit's content. Whoever runs
the units fetches the content; so the reader needs no file system, and runs anywhere. Law: the batches of all units,
in the units' order, are those that the format's own planning passes through the funnel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tamis.sieve.files import FileBatch
from tamis.sieve.plan import ScanPlan, Unread

__all__ = ["Progress", "Read", "Spread", "Unit", "whole"]

Progress = Callable[[int, int], None]
"""Told how many of how many files have come in."""

Read = Callable[[Any, Mapping[str, bytes]], Iterable[FileBatch]]
"""What a unit says of itself, and the content of its files by location, to the unit's files. It is pickled."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Metadata files that are decoded together, by their locations as the table's metadata spells them."""

    locations: tuple[str, ...]
    size: int
    """Bytes, as far as they are known."""
    about: Any
    """What the reader has to know of these files beside their content. It is pickled."""


@dataclass(frozen=True, slots=True)
class Spread:
    """What is left to do once the metadata that is always read here has been read."""

    locally: Callable[[Progress | None], ScanPlan]
    """Do it all in this process."""
    finish: Callable[[ScanPlan], ScanPlan]
    """What is done here for the files that are kept, wherever they were judged."""
    units: Callable[[], tuple[Unit, ...]] = tuple
    read: Read | None = None
    """None if the format cannot be planned elsewhere."""
    files: int = 0
    """About how many files the units have."""
    size: int = 0
    """Bytes of metadata that the units have, compressed as they are."""
    unread: tuple[Unread, ...] = ()
    seconds: float = 0.0
    """What it took to come this far."""


def whole(plan: ScanPlan) -> ScanPlan:
    """The plan as it is, for a format that has nothing to add."""
    return plan
