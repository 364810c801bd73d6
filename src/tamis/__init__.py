"""tamis, a fine sieve: which files of a lakehouse table a query, a join, a rewrite or a change of rows needs.

Names are loaded when they are first used: `import tamis` costs next to nothing, and never starts a JVM.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tamis.errors import TamisError
    from tamis.jobs.rewrite import RewriteJob
    from tamis.merging import MergeBuilder, Merged, MergePlan
    from tamis.predicate.build import col
    from tamis.results import Appended, Deleted, DeletePlan, Evolved, EvolvePlan, Updated, UpdatePlan
    from tamis.rewrite.plan import RewriteDataFilesPlanningResult, RewritePlan
    from tamis.sieve.join.runtime import RuntimeFilter
    from tamis.sieve.partitions import FilterStats, PartitionKey
    from tamis.sieve.plan import PlanStats, ScanPlan
    from tamis.table import JoinPlan, Table, TablePlan, open

__version__ = "0.1.0.dev0"

__all__ = [
    "Appended",
    "DeletePlan",
    "Deleted",
    "EvolvePlan",
    "Evolved",
    "FilterStats",
    "JoinPlan",
    "MergeBuilder",
    "MergePlan",
    "Merged",
    "PartitionKey",
    "PlanStats",
    "RewriteDataFilesPlanningResult",
    "RewriteJob",
    "RewritePlan",
    "RuntimeFilter",
    "ScanPlan",
    "Table",
    "TablePlan",
    "TamisError",
    "UpdatePlan",
    "Updated",
    "__version__",
    "col",
    "open",
]

_HOMES = {
    "Appended": "tamis.results",
    "DeletePlan": "tamis.results",
    "Deleted": "tamis.results",
    "EvolvePlan": "tamis.results",
    "Evolved": "tamis.results",
    "FilterStats": "tamis.sieve.partitions",
    "PartitionKey": "tamis.sieve.partitions",
    "PlanStats": "tamis.sieve.plan",
    "RewriteDataFilesPlanningResult": "tamis.rewrite.plan",
    "MergeBuilder": "tamis.merging",
    "MergePlan": "tamis.merging",
    "Merged": "tamis.merging",
    "RewriteJob": "tamis.jobs.rewrite",
    "RewritePlan": "tamis.rewrite.plan",
    "RuntimeFilter": "tamis.sieve.join.runtime",
    "ScanPlan": "tamis.sieve.plan",
    "Table": "tamis.table",
    "TablePlan": "tamis.table",
    "JoinPlan": "tamis.table",
    "TamisError": "tamis.errors",
    "UpdatePlan": "tamis.results",
    "Updated": "tamis.results",
    "open": "tamis.table",
    "col": "tamis.predicate.build",
}


def __getattr__(name: str) -> object:
    """The public name, from the module where it lives."""
    if name == "errors":
        return import_module("tamis.errors")
    if name not in _HOMES:
        raise AttributeError(f"module 'tamis' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "errors"])
