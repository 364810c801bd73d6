"""A plan in a line, and any text as part of a page: what a notebook shows of an object."""

from __future__ import annotations

from html import escape

from tamis.explain.words import readable_bytes, readable_files, shortened
from tamis.printable import printable, printable_lines
from tamis.sieve.plan import ScanPlan

__all__ = ["page_part", "plan_line"]

LONGEST = 120
"""Characters of a condition in one line."""


def plan_line(plan: ScanPlan) -> str:
    """How much would be read, and by which condition, in a line."""
    stats = plan.stats
    condition = shortened(printable(plan.sieve.predicate.sql), LONGEST)
    reads = f"would read {stats.kept:,} of {readable_files(stats.files)}, {readable_bytes(stats.kept_bytes)}"
    return f"{reads}, where {condition}"


def page_part(text: str) -> str:
    """The text as HTML: nothing in it is taken for markup.

    >>> page_part("a < b")
    '<pre>a &lt; b</pre>'
    """
    return f"<pre>{escape(printable_lines(text))}</pre>"
