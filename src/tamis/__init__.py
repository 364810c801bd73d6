"""tamis, a fine sieve: which files of a lakehouse table a query, a join, a rewrite or a DELETE has to touch, and why.

Names are loaded when they are first used: `import tamis` costs next to nothing, and never starts a JVM.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tamis.errors import TamisError
    from tamis.predicate.build import col
    from tamis.sieve.partitions import FilterStats, PartitionKey
    from tamis.sieve.plan import PlanStats, ScanPlan
    from tamis.sieve.runtime import RuntimeFilter
    from tamis.table import JoinPlan, Table, TablePlan, open

__version__ = "0.1.0.dev0"

__all__ = [
    "FilterStats",
    "JoinPlan",
    "PartitionKey",
    "PlanStats",
    "RuntimeFilter",
    "ScanPlan",
    "Table",
    "TablePlan",
    "TamisError",
    "__version__",
    "col",
    "open",
]

_HOMES = {
    "FilterStats": "tamis.sieve.partitions",
    "PartitionKey": "tamis.sieve.partitions",
    "PlanStats": "tamis.sieve.plan",
    "RuntimeFilter": "tamis.sieve.runtime",
    "ScanPlan": "tamis.sieve.plan",
    "Table": "tamis.table",
    "TablePlan": "tamis.table",
    "JoinPlan": "tamis.table",
    "TamisError": "tamis.errors",
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
