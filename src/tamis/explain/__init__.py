"""One plan, several faces: text for people, JSON for programs."""

from __future__ import annotations

from typing import Literal

from tamis.checks import check_form
from tamis.explain.json import plan_json
from tamis.explain.text import plan_text
from tamis.sieve.plan import ScanPlan

__all__ = ["render_plan"]


def render_plan(plan: ScanPlan, form: Literal["text", "json"], *, timing: bool = False) -> str:
    """The plan in the form asked for, the text with times if they are asked for; ValueError names the forms."""
    check_form(form, timing=timing)
    return plan_text(plan, timing=timing) if form == "text" else plan_json(plan)
