"""A plan as JSON with a stable schema: what scripts read.

Keys are only ever added; `version` changes if one is removed or changes its meaning.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tamis.printable import UNSAFE
from tamis.sieve.plan import ScanPlan

__all__ = ["SCHEMA_VERSION", "json_text", "plan_document", "plan_json"]

SCHEMA_VERSION = 1


def plan_document(plan: ScanPlan) -> dict[str, Any]:
    """The predicate, its parts and the counts: plain dicts, lists, numbers and strings."""
    predicate = plan.sieve.predicate
    return {
        "version": SCHEMA_VERSION,
        "predicate": {
            "sql": predicate.sql,
            "parts": [conjunct.text for conjunct in predicate.conjuncts],
            "time_zone": predicate.time_zone,
            "zone_dependent": predicate.zone_dependent,
        },
        "runtime_filters": [runtime.text for runtime in plan.sieve.runtime_filters],
        "stats": plan.stats.to_dict(),
    }


def plan_json(plan: ScanPlan, more: Mapping[str, Any] | None = None) -> str:
    """The plan's document, and what else is to stand in it, as an indented JSON object."""
    return json_text({**plan_document(plan), **(more or {})})


def json_text(document: Mapping[str, Any]) -> str:
    """The document as indented JSON, letters of every script as they are.

    What a terminal would obey is escaped, as JSON allows: a program that parses it gets the same text.
    """
    return "\n".join(
        UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", line)
        for line in json.dumps(document, indent=2, ensure_ascii=False).split("\n")
    )
