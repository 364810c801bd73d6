"""One plan, several faces: text for people, JSON for programs."""

from __future__ import annotations

from typing import Literal

from tamis.explain.json import plan_json
from tamis.explain.text import plan_text
from tamis.sieve.plan import ScanPlan

__all__ = ["render_plan"]


def render_plan(plan: ScanPlan, form: Literal["text", "json"], *, timing: bool = False) -> str:
    """The plan in the form asked for, the text with times if they are asked for; ValueError names the forms."""
    match form:
        case "text":
            return plan_text(plan, timing=timing)
        case "json":
            return plan_json(plan)
    raise ValueError(f"no form {form!r}: a plan is explained as 'text' or 'json'")
