"""A WHERE text on its way to a bound predicate: pinned to a moment and a table, parsed, bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tamis.errors import ParseError
from tamis.predicate.bind import bind
from tamis.predicate.bound import BoundPredicate
from tamis.predicate.compare.zone_rules import ZoneRules
from tamis.predicate.compare.zones import Ask, find_zone
from tamis.predicate.nodes import Constant
from tamis.predicate.schema import Schema
from tamis.predicate.sql.checking import check_types
from tamis.predicate.sql.parse import parse
from tamis.predicate.sql.pinning import pinned
from tamis.predicate.sql.tokens import complain

__all__ = ["bind_text"]


def bind_text(  # noqa: PLR0913 - what a text is bound to: a table, a moment and a session
    text: str,
    schema: Schema,
    *,
    instant: int,
    case_sensitive: bool = False,
    time_zone: str = "UTC",
    ask: Ask | None = None,
    names: Sequence[str] = (),
    alias: str | None = None,
) -> BoundPredicate:
    """The predicate that text states of a table, at an instant in microseconds since 1970.

    As bind() has it; the predicate's sql is the text with the clock's functions as literals, and its notes say which.
    ParseError, with the place in the text as it was written, if it states none.
    """
    rules: dict[str, ZoneRules] = {}

    def remember(name: str) -> ZoneRules:
        if name not in rules and ask is not None:
            rules[name] = ask(name)
        return rules[name]

    told = None if ask is None else remember
    zone = find_zone(time_zone, told)
    made = pinned(text, schema, instant=instant, zone=zone, names=names, alias=alias, case_sensitive=case_sensitive)
    try:
        node = parse(made.text, zone)
    except ParseError:
        if made.text != text:
            parse(text, zone)
        raise
    if node == Constant(None) and made.text.strip("() \t\r\n").upper() == "NULL":
        raise complain(text, 0, "NULL alone is no condition", "Spark wants a boolean: write false for no row.")
    bound = bind(node, schema, case_sensitive=case_sensitive, time_zone=time_zone, ask=told, sql=made.text)
    check_types(node, schema, case_sensitive=case_sensitive)
    return replace(
        bound,
        zone_dependent=bound.zone_dependent or zone.asked,
        notes=(*made.notes, *bound.notes),
        rules=tuple(rules.items()),
    )
