"""What an Iceberg table says to the planner of rewrites. The options are its own action's."""

from __future__ import annotations

from tamis.formats.iceberg.inspection import target_file_size
from tamis.formats.iceberg.kept_deletes import KeptDeletes
from tamis.formats.iceberg.metadata import TableMetadata
from tamis.rewrite.deletes import BatchDeletes, FileDeletes
from tamis.rewrite.terms import RewriteTerms
from tamis.sieve.plan import ScanPlan

__all__ = ["rewrite_terms"]


def rewrite_terms(metadata: TableMetadata) -> RewriteTerms:
    """The table's target size, its specs, and the order of its manifests, in which Iceberg's own planner goes."""
    return RewriteTerms(
        "Iceberg",
        target_file_size(metadata.properties),
        tuple(layout.spec_id for layout in metadata.specs),
        metadata.default_spec_id,
        order=("manifest", "entry"),
        deletes=_deletes,
    )


def _deletes(plan: ScanPlan) -> FileDeletes:
    return plan.deletes if isinstance(plan.deletes, KeptDeletes) else BatchDeletes(plan)
