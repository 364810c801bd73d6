"""From SQL text to nodes.

Law: what Spark accepts as a WHERE is accepted. A part that cannot be analysed is Opaque: the user's own words, and
the columns that they read. Only text that is not SQL is refused, with the place shown.
"""

from __future__ import annotations

from tamis.predicate.compare.zones import Zone
from tamis.predicate.nodes import Node
from tamis.predicate.sql.grammar import condition

__all__ = ["parse"]


def parse(text: str, zone: Zone | None = None) -> Node:
    """The condition that text states in Spark's SQL; ParseError with the place if it is none.

    zone is the session's time zone, where it is known: dates and timestamps are computed with in it.

    `literal < column` is turned round, BETWEEN is taken apart, nested ANDs and ORs are made flat; NOT stays where it
    is written.

    >>> parse("5 < x AND region IN ('eu', 'uk')")
    And(operands=(Compare(operator='>', term=Ref(path=('x',)), literal=Literal(value=5, type=DataType(int32))), ...
    """
    return condition(text, zone)
