"""Constants that are computed while a condition is parsed are those that Spark computes, or they are left to it."""

from __future__ import annotations

from hypothesis import given, note, settings
from hypothesis import strategies as st

from tamis.predicate.compare.zones import find_zone
from tamis.predicate.nodes import Compare, Opaque
from tamis.predicate.sql.parse import parse
from tests.making.oracle import kind_of, literal_of
from tests.making.strategy_constants import FAILS, constants
from tests.making.told_rules import told

MORE = settings(max_examples=4 * settings.default.max_examples)
ZONES = ("UTC", "Europe/Paris", "America/St_Johns", "+05:30")


@MORE
@given(st.data(), st.sampled_from(ZONES), st.sampled_from(["told", "not told", "no session"]))
def test_computed_constant_has_sparks_value_and_type(data: st.DataObject, zone: str, rules: str) -> None:
    """A wrong constant prunes files that hold matching rows. One that is left to Spark prunes nothing."""
    region = "Asia/Kolkata" if zone == "+05:30" else zone  # the same, since 1945
    constant = data.draw(constants(region))
    session = None if rules == "no session" else find_zone(zone, told if rules == "told" else None)
    node = parse(f"x = {constant.sql}", session)
    note(str(node))
    if isinstance(node, Opaque):
        return
    assert isinstance(node, Compare)
    assert constant.value is not FAILS
    assert kind_of(node.literal.type) == constant.kind
    assert literal_of(node.literal, region) == (constant.value, constant.kind)
