"""Rewrite: files that are too small, too large, full of deletes or of an old spec, written anew.

For now it plans: which files, in which groups, and what would come of it. Nothing is changed.
"""

from __future__ import annotations

from dataclasses import dataclass

from tamis.checks import check_progress
from tamis.formats import FormatTable
from tamis.formats.listing import Progress, sift_here
from tamis.printable import printable
from tamis.rewrite.options import RewriteOptions
from tamis.rewrite.plan import RewriteDataFilesPlanningResult, RewritePlan
from tamis.rewrite.planning import plan_rewrite
from tamis.sieve.sieve import Sieve

__all__ = ["RewriteJob"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RewriteJob:
    """A rewrite of one state of a table: its condition is bound, its options are checked, nothing has been read."""

    source: FormatTable
    sieve: Sieve
    options: RewriteOptions

    def __repr__(self) -> str:
        return f"<tamis rewrite of {printable(self.source.name)} where {printable(self.sieve.predicate.sql)}>"

    def plan(self, progress: Progress | None = None) -> RewritePlan:
        """Which files would be rewritten, and which of them together. Only metadata is read."""
        return self.plan_with_stats(progress).plan

    def plan_with_stats(self, progress: Progress | None = None) -> RewriteDataFilesPlanningResult:
        """The plan, and what its partition filter had to include without a judgement.

        progress is told how many of how many files have come in. The same table and options give the same plan.
        """
        check_progress(progress)
        scan = sift_here(self.source.list(self.sieve), self.sieve, progress)
        return plan_rewrite(scan, self.options, self.source.rewrite_terms)
