"""A verdict holds under the rules of whichever session reads the plan, not only under those of this Python.

Releases of the time-zone database differ in old times, after corrections and after governments' decisions. Versions
of several makers, and invented ones, take the session's part here; tests/spark/test_zone_rules.py asks a real one.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.predicate.compare.zones import Ask
from tamis.predicate.nodes import Call, Compare, Literal, Node, Operator, Ref, Term
from tamis.predicate.sql.rendering import render
from tests.making.oracle import evaluate
from tests.making.told_rules import told_by
from tests.making.zone_conditions import (
    DATE,
    EPOCH,
    LTZ,
    NTZ,
    OPERATORS,
    UNITS,
    conditions,
    judged,
    moments,
    values_around,
)
from tests.making.zone_versions import Version, under, versions

MORE = settings(max_examples=3 * settings.default.max_examples)


def wrong(node: Node, type_: pa.DataType, version: Version, around: int, ask: Ask | None = None) -> list[str]:
    """The values around a time whose verdict is not what the condition is under the version's rules."""
    values = values_around(around, type_)
    verdicts = judged(node, type_, values, version.zone, ask)
    found = []
    with under(version):
        for value, verdict in zip(values, verdicts, strict=True):
            answer = evaluate(node, {("x",): value}, {("x",): type_}, version.zone)
            if (answer is True and verdict == "none") or (answer is not True and verdict == "all"):
                found.append(f"{render(node)} of {value}: {answer}, judged {verdict}, by {version.maker}")
    return found


@MORE
@given(st.data())
def test_verdict_holds_whatever_rules_the_session_has(data: st.DataObject) -> None:
    """Spark computes with its JVM's rules: a file that matches there must not be lost for Python's."""
    version = data.draw(st.sampled_from(versions()), label="version")
    around = data.draw(moments(version))
    type_ = data.draw(st.sampled_from([LTZ, LTZ, NTZ, DATE]))
    wall = around + version.offset(around)
    node = data.draw(conditions(version, EPOCH + timedelta(seconds=wall)))
    assert wrong(node, type_, version, around if type_ == LTZ else wall) == []


@given(st.data())
def test_verdict_by_the_session_s_rules_holds_under_them(data: st.DataObject) -> None:
    """A plan that was made with the session: also where Python's rules are others."""
    version = data.draw(st.sampled_from(versions()), label="version")
    around = data.draw(moments(version))
    type_ = data.draw(st.sampled_from([LTZ, LTZ, NTZ, DATE]))
    wall = around + version.offset(around)
    node = data.draw(conditions(version, EPOCH + timedelta(seconds=wall)))
    rules = told_by(version)
    assert wrong(node, type_, version, around if type_ == LTZ else wall, lambda _: rules) == []


@pytest.mark.parametrize("maker", ["a gap around midnight", "midnight comes twice", "java17-2025a"])
@pytest.mark.parametrize("type_", [LTZ, NTZ, DATE], ids=str)
def test_literal_that_is_jumped_over_or_comes_twice_there_is_no_exact_cut(maker: str, type_: pa.DataType) -> None:
    """Every function and operator at a midnight of which only the session knows that it was not an ordinary one."""
    zone, day = ("America/Toronto", date(1919, 3, 31)) if "java" in maker else ("Europe/Paris", date(2028, 1, 1))
    (version,) = (one for one in versions() if one.zone == zone and maker in one.maker)
    ref, midnight = Ref(("x",)), datetime.combine(day, time())
    terms: list[Term] = [ref, Call("date", ref), *(Call("date_trunc", ref, unit) for unit in UNITS)]
    terms += [
        Call("date", Call("date_trunc", ref, "day")),
        Call("date_trunc", Call("date_trunc", ref, "hour"), "day"),
    ]
    around = round((midnight - EPOCH).total_seconds())
    found = []
    for term in terms:
        for operator in OPERATORS:
            for text in (f"{midnight}", f"{midnight + timedelta(minutes=15)}"):
                node = Compare(operator, term, Literal(text, LTZ))
                found += wrong(node, type_, version, around - version.offset(around) * (type_ == LTZ))
    assert found == []


@pytest.mark.parametrize("operator", OPERATORS)
def test_week_whose_monday_is_skipped_starts_on_tuesday(operator: Operator) -> None:
    """Where the date line is crossed: the day of the week's start is not what the clock would have shown."""
    (version,) = (one for one in versions() if one.maker == "a Monday is skipped")
    week = Call("date", Call("date_trunc", Ref(("x",)), "week"))
    for day in (date(2030, 12, 30), date(2030, 12, 31), date(2031, 1, 1)):
        node = Compare(operator, week, Literal(day, DATE))
        assert wrong(node, LTZ, version, round((datetime(2031, 1, 1) - EPOCH).total_seconds())) == []


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("type_", [NTZ, DATE], ids=str)
def test_wall_time_meets_an_instant_by_the_session_s_offset(operator: Operator, type_: pa.DataType) -> None:
    """Below the minute date_trunc does not look at the clock; that a wall time becomes an instant does."""
    (version,) = (one for one in versions() if one.zone == "Europe/Stockholm" and "java17" in one.maker)
    around = round((datetime(1945, 6, 1) - EPOCH).total_seconds())
    for hour in (20, 21, 22, 23):
        node = Compare(operator, Call("date_trunc", Ref(("x",)), "second"), Literal(f"1945-05-31 {hour}:00:00Z", LTZ))
        assert wrong(node, type_, version, around) == []


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("unit", ["hour", "day", "month"])
def test_literal_with_an_offset_is_compared_as_that_instant(operator: Operator, unit: str) -> None:
    """17:00 in UTC is 01:00 of the first of February in Manila: the month that begins there began before."""
    version = next(one for one in versions() if one.zone == "Asia/Manila" and "2026f" in one.maker)
    node = Compare(operator, Call("date_trunc", Ref(("x",)), unit), Literal("2024-01-31 17:00:00Z", LTZ))
    assert wrong(node, LTZ, version, round((datetime(2024, 1, 31, 17) - EPOCH).total_seconds())) == []


def test_day_that_no_release_disputes_is_pruned_but_for_hours() -> None:
    """The margin is three hours on either side of a day in Paris, not a day."""
    node = Compare("=", Call("date", Ref(("x",))), Literal(date(2024, 1, 15), DATE))
    start = datetime(2024, 1, 14, 23, tzinfo=UTC)
    values: list[object] = [start + timedelta(hours=hours) for hours in range(-12, 37)]
    verdicts = judged(node, LTZ, values, "Europe/Paris")
    assert "".join(verdict[0] for verdict in verdicts) == "n" * 9 + "s" * 6 + "a" * 18 + "s" * 6 + "n" * 10
