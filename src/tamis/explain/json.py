"""A plan as JSON with a stable schema: what scripts read.

Keys are only ever added; `version` changes if one is removed or changes its meaning.
"""

from __future__ import annotations

import json

from tamis.sieve.plan import ScanPlan

__all__ = ["SCHEMA_VERSION", "plan_json"]

SCHEMA_VERSION = 1


def plan_json(plan: ScanPlan) -> str:
    """The predicate, its parts and the counts, as an indented JSON object."""
    predicate = plan.sieve.predicate
    document = {
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
    return json.dumps(document, indent=2, ensure_ascii=False)
