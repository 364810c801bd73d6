"""Plans of a table's parts put together: as if one process had sifted them all.

Whoever sifts a part elsewhere sends back the kept files and the tally. Law: the merged plan has the files and the
counts of a plan over all parts, in their order; only times differ, and verdicts of dropped files are not there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tamis.sieve.files import rows_of
from tamis.sieve.funnel import LAYERS, Sifted, partition_filter
from tamis.sieve.outcome import Outcome
from tamis.sieve.plan import ScanPlan
from tamis.sieve.sieve import Sieve
from tamis.sieve.stats import Unread
from tamis.sieve.tally import Tally, stats_of

__all__ = ["Part", "merge"]


@dataclass(frozen=True, slots=True)
class Part:
    """What became of a part of a table's files, small to send: the kept files, and the tally of all."""

    outcomes: tuple[Outcome, ...]
    tally: Tally

    @classmethod
    def of(cls, sifted: Sifted) -> Part:
        """Of a plan that was made elsewhere, without the files that it drops."""
        kept = [outcome for outcome in sifted.plan.outcomes if outcome.kept.any()]
        return cls(tuple(rows_of(outcome, np.flatnonzero(outcome.kept)) for outcome in kept), sifted.tally.portable())


def merge(
    sieve: Sieve, parts: Sequence[Part], unread: Sequence[Unread] = (), manifest_seconds: float = 0.0
) -> ScanPlan:
    """The plan of all parts, in their order, and of what was pruned unread before them."""
    names = tuple(layer.name for layer in LAYERS)
    pruned = Tally.of_unread(unread, len(sieve.runtime_filters), manifest_seconds)
    tally = Tally.merged([pruned, *(part.tally for part in parts)])
    outcomes = tuple(outcome for part in parts for outcome in part.outcomes)
    return ScanPlan(sieve, outcomes, stats_of(sieve, names, partition_filter(sieve), tally), names)
