"""The counts of a plan, as explain shows them: frozen values, ready for JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tamis.sieve.join.credit import RuntimeFilterStats
from tamis.sieve.kept import KeptBecause, NotUsed
from tamis.sieve.partitions import FilterStats

__all__ = ["LayerStats", "PlanStats", "SpecStats", "Unread"]


@dataclass(frozen=True, slots=True)
class Unread:
    """Files of a manifest that was pruned without being read."""

    spec_id: int | None
    files: int
    size: int = 0
    """Bytes, where the format tells them for a whole manifest; else 0."""
    runtime_filter: int | None = None
    """The runtime filter that pruned it, by its place, where the predicate alone would not have."""


@dataclass(frozen=True, slots=True)
class LayerStats:
    """Files and bytes before and after a layer, and how long it took."""

    layer: str
    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class SpecStats:
    """The same funnel for the files of one spec."""

    spec_id: int | None
    files: int
    kept: int
    kept_whole: int
    """Files of which every row matches."""
    bytes: int
    kept_bytes: int
    dropped: Mapping[str, int]
    """Files dropped, by layer."""


@dataclass(frozen=True, slots=True)
class PlanStats:
    """The counts that explain shows."""

    files: int
    kept: int
    kept_whole: int
    bytes: int
    kept_bytes: int
    layers: tuple[LayerStats, ...]
    specs: tuple[SpecStats, ...]
    filter_stats: FilterStats
    """What the multi-spec partition filter had to keep without a judgement."""
    notes: tuple[str, ...]
    read_seconds: float = 0.0
    """Waiting for metadata to be read and decoded."""
    runtime_filters: tuple[RuntimeFilterStats, ...] = ()
    """What each runtime filter did, in their order."""
    kept_because: tuple[KeptBecause, ...] = ()
    """Why files are kept, in the order of the predicate's parts."""
    not_used: tuple[NotUsed, ...] = ()
    """Parts of the predicate by which no file can be pruned."""

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, dicts, numbers and strings, ready for JSON."""
        found = asdict(self)
        for name in ("layers", "specs", "notes", "runtime_filters", "kept_because", "not_used"):
            found[name] = list(found[name])
        return found
