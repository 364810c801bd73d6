"""A plan as JSON with a stable schema: what scripts read.

Keys are only ever added; `version` changes if one is removed or changes its meaning.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tamis.sieve.plan import ScanPlan

__all__ = ["SCHEMA_VERSION", "plan_document", "plan_json"]

SCHEMA_VERSION = 1


def plan_document(plan: ScanPlan) -> dict[str, Any]:
    """The predicate, its parts and the counts: plain dicts, lists, numbers and strings."""
    predicate = plan.sieve.predicate
    return {
        "version": SCHEMA_VERSION,
        "predicate": {
            "sql": predicate.sql,
            "parts": [part.text for part in predicate.conjuncts],
            "time_zone": predicate.time_zone,
            "zone_dependent": predicate.zone_dependent,
        },
        "runtime_filters": [runtime.text for runtime in plan.sieve.runtime_filters],
        "stats": plan.stats.to_dict(),
    }


def plan_json(plan: ScanPlan, more: Mapping[str, Any] | None = None) -> str:
    """The plan's document, and what else is to stand in it, as an indented JSON object."""
    return json.dumps({**plan_document(plan), **(more or {})}, indent=2, ensure_ascii=False)
