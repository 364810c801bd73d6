"""Rules as a session would tell them, of a version or of Python's own: what is planned with them is exact."""

from __future__ import annotations

from tamis.predicate.compare.zone_rules import ZoneRules
from tamis.predicate.units import SECOND
from tests.making.zone_versions import Version, of_python

__all__ = ["told", "told_by"]


def told_by(version: Version) -> ZoneRules:
    """The rules of a version, from 1840 to 2060."""
    changes = tuple(at * SECOND for at, _ in version.changes)
    offsets = (version.first, *(offset for _, offset in version.changes))
    return ZoneRules(
        -4_102_444_800 * SECOND, 2_840_140_800 * SECOND, changes, tuple(offset * SECOND for offset in offsets)
    )


def told(name: str) -> ZoneRules:
    """What a session says of a zone that has the same database as this Python."""
    return told_by(of_python({"PST": "America/Los_Angeles", "IST": "Asia/Kolkata"}.get(name, name)))
