"""Conditions on times near the changes of a zone's clocks, and the verdicts on files of one value each."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tamis.predicate.bind import bind
from tamis.predicate.compare.zones import Ask
from tamis.predicate.nodes import Call, Compare, In, Literal, Node, Operator, Ref, Term
from tamis.predicate.schema import Schema
from tamis.sieve.domain import ColumnStats, Facts, stats_domain
from tamis.sieve.judge import judge
from tests.making.zone_versions import Version, of_python

__all__ = ["DATE", "EPOCH", "LTZ", "NTZ", "OPERATORS", "UNITS", "conditions", "judged", "moments", "values_around"]

EPOCH: Final = datetime(1970, 1, 1)
LTZ, NTZ, DATE = pa.timestamp("us", tz="UTC"), pa.timestamp("us"), pa.date32()
HOUR, DAY = 3600, 86_400
FIRST, LAST = -120 * 365 * DAY, 130 * 365 * DAY
"""1850 to 2100, roughly."""
UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
OPERATORS: Final[tuple[Operator, ...]] = ("=", "<=>", "!=", "<", "<=", ">", ">=")


@st.composite
def moments(draw: DrawFn, version: Version) -> int:
    """Seconds since 1970: near a change of the version's or of Python's, or anywhere."""
    changes = [change for change, _ in (*version.changes, *of_python(version.zone).changes)]
    if not changes or draw(st.integers(0, 4)) == 0:
        return draw(st.integers(FIRST, LAST))
    steps = st.one_of(st.integers(-3, 3).map(lambda n: n * DAY), st.integers(-52, 52).map(lambda n: n * HOUR // 2))
    return draw(st.sampled_from(changes)) + draw(steps)


@st.composite
def conditions(draw: DrawFn, version: Version, wall: datetime) -> Node:
    """A comparison of a column, or of a function of it, with a time near this reading of the clock."""
    ref = Ref(("x",))
    term: Term = draw(
        st.sampled_from(
            [
                ref,
                ref,
                Call("date", ref),
                Call("year", ref),
                Call("trunc", ref, draw(st.sampled_from(UNITS[:4]))),
                Call("date_trunc", ref, draw(st.sampled_from(UNITS))),
                Call("date_trunc", ref, draw(st.sampled_from(UNITS))),
            ]
        )
    )
    rounded = draw(
        st.sampled_from(
            [
                wall,
                wall.replace(minute=0, second=0),
                wall.replace(hour=0, minute=0, second=0),
                wall.replace(day=1, hour=0, minute=0, second=0),
                wall.replace(month=1, day=1, hour=0, minute=0, second=0),
            ]
        )
    )
    if isinstance(term, Call) and term.function == "year":
        return Compare(draw(st.sampled_from(OPERATORS)), term, Literal(rounded.year, pa.int32()))
    only_days = isinstance(term, Call) and term.function in {"date", "trunc"}

    def literal(moment: datetime) -> Literal:
        text = moment.isoformat(" ")
        offsets = draw(st.sampled_from(["", "", "", f" {version.zone}", "Z", "+01:00"]))
        choices = [Literal(moment.date(), DATE), Literal(text, LTZ), Literal(text, LTZ), Literal(text + offsets, LTZ)]
        if not only_days:
            choices += [Literal(text + offsets, pa.string()), Literal(moment.replace(tzinfo=UTC), LTZ)]
        return draw(st.sampled_from(choices))

    if draw(st.integers(0, 7)) == 0:
        return In(term, (literal(rounded), literal(rounded + timedelta(days=1))))
    return Compare(draw(st.sampled_from(OPERATORS)), term, literal(rounded))


def judged(node: Node, type_: pa.DataType, values: list[object], zone: str, ask: Ask | None = None) -> list[str]:
    """The verdict of a file for each value, that holds this value alone."""
    schema = Schema.of(x=type_)
    column, count = schema.find(("x",)), len(values)
    bounds = pa.array(values, type_)
    stats = ColumnStats(bounds, bounds, pa.array([0] * count))
    found = judge(
        bind(node, schema, time_zone=zone, ask=ask).root,
        Facts(count, {column.id: stats_domain(column, stats, count)}),
    )
    both = zip(found.possible, found.certain, strict=True)
    return ["all" if certain else "some" if possible else "none" for possible, certain in both]


def values_around(second: int, type_: pa.DataType) -> list[object]:
    """Times near and some days away from one, as values of the type."""
    near = [*range(-4 * HOUR, 5 * HOUR, HOUR), *range(-90 * 60, 91 * 60, 20 * 60)]
    far = [sign * hours * HOUR for sign in (-1, 1) for hours in (7, 11, 13, 17, 23, 24, 25, 31, 35, 47, 71, 24 * 20)]
    found = [EPOCH + timedelta(seconds=second + step) for step in sorted({*near, *far})]
    if type_ == DATE:
        return sorted({value.date() for value in found})  # type: ignore[return-value] # days
    return [value.replace(tzinfo=UTC) if type_ == LTZ else value for value in found]
