"""Long lists are read and bound in columns: just as if their members were read and bound one by one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from hypothesis import event, example, given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tamis.errors import BindError, ParseError
from tamis.predicate import literals
from tamis.predicate.accepted import run, spans
from tamis.predicate.bind import bind
from tamis.predicate.bound import Bound
from tamis.predicate.build import col
from tamis.predicate.compare.rules import listed
from tamis.predicate.compare.zones import find_zone
from tamis.predicate.keys import key_span
from tamis.predicate.literals import LiteralColumn
from tamis.predicate.nodes import In, Node
from tamis.predicate.schema import Schema
from tamis.predicate.sql import lists
from tamis.predicate.sql.parse import parse
from tamis.predicate.sql.rendering import render
from tamis.predicate.sql.tokens import read
from tamis.predicate.values import ValueSet

TYPES = (
    *(pa.int8(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.binary(), pa.binary(3)),
    *(pa.decimal128(5, 2), pa.decimal128(18, 4), pa.decimal128(18, 18), pa.decimal128(38, 10), pa.bool_(), pa.uuid()),
    *(pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.timestamp("ns"), pa.time64("us")),
    pa.list_(pa.int32()),
)
ZONES = ("UTC", "+02:00", "Europe/Paris")

INTS = st.one_of(
    st.integers(-200, 200),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.sampled_from([1 << 24, (1 << 24) + 1, (1 << 53) + 1, (1 << 31) - 1, 1 << 31, (1 << 63) - 1, -(1 << 63)]),
)
POINTS = st.from_regex(r"-?[0-9]{1,12}(\.[0-9]{1,12})?", fullmatch=True)
DAYS = st.dates().map(str)
CLOCKS = st.from_regex(r"[0-2][0-9]:[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?", fullmatch=True)
MOMENTS = st.builds("{} {}".format, DAYS, CLOCKS)
RAW = st.text(st.sampled_from("ab'\"\\ ,()%_n0u1${}é\U0001f600\n-/*"), max_size=6)
"""What may stand between quotes, and may be no string at all."""
DOUBLED = RAW.map(lambda text: text.replace("\\", "\\\\").replace("'", "''"))

MEMBERS: dict[str, SearchStrategy[str]] = {
    "ints": INTS.map(str),
    "beyond": st.integers(-(10**40), 10**40).map(str),
    "numbers": st.one_of(POINTS, INTS.map(str)),
    "digits": st.from_regex(r"-?0{0,3}[0-9]{1,20}\.[0-9]{1,20}", fullmatch=True),
    "strings": st.one_of(DOUBLED, RAW).map("'{}'".format),
    "quoted": RAW.map(lambda text: text.replace('"', '""')).map('"{}"'.format),
    "day texts": st.one_of(DAYS, st.just("2024-02-30"), st.just("2024-2-3")).map("'{}'".format),
    "moment texts": st.one_of(MOMENTS, DAYS).map("'{}'".format),
    "dates": st.one_of(DAYS, st.just("2024-02-30"), st.just("0000-01-01")).map("date '{}'".format),
    "timestamps": MOMENTS.map("timestamp '{}'".format),
    "walls": MOMENTS.map("TIMESTAMP_NTZ'{}'".format),
    "mixed": st.one_of(POINTS, INTS.map(str), DOUBLED.map("'{}'".format), INTS.map("'{}'".format)),
    "numbers and their texts": st.one_of(POINTS, INTS.map(str), POINTS.map("'{}'".format), INTS.map("' {}'".format)),
    "suffixes": st.integers(-9, 9).map("{}L".format),
}


@contextmanager
def columns(*, used: bool) -> Iterator[None]:
    """Lists of any length are columns, or none is."""
    least = 1 if used else 1 << 60
    with (
        patch.object(lists, "MIN_TEXT", least),
        patch.object(lists, "MIN_COLUMN", least),
        patch.object(literals, "MIN_COLUMN", least),
    ):
        yield


def parsed(text: str, *, used: bool) -> Node | tuple[str, ...]:
    with columns(used=used):
        try:
            return parse(text)
        except ParseError as error:
            return (str(error),)


def bound(node: Node, type_: pa.DataType, zone: str) -> tuple[Bound, bool] | str:
    try:
        found = bind(node, Schema.of(x=type_, y=pa.int32()), time_zone=zone)
    except BindError as error:
        return str(error)
    return found.root, found.zone_dependent


@st.composite
def texts(draw: st.DrawFn) -> str:
    kinds = draw(
        st.lists(st.sampled_from(sorted(MEMBERS)), min_size=1, max_size=2).map(lambda found: found[:1] * 3 + found)
    )
    members = draw(
        st.lists(st.one_of(*(MEMBERS[kind] for kind in kinds[:1])), min_size=1, max_size=8)
        if draw(st.booleans())
        else st.lists(st.sampled_from(kinds).flatmap(MEMBERS.__getitem__), min_size=1, max_size=8)
    )
    if draw(st.integers(0, 3)) == 3:
        members.insert(draw(st.integers(0, len(members))), draw(st.sampled_from(["NULL", "null"])))
    comma = draw(st.sampled_from([",", ", ", " ,\n "]))
    listed = f"({draw(st.sampled_from(['', ' ']))}{comma.join(members)})"
    around = draw(
        st.sampled_from(
            [
                *("x IN {}", "x NOT IN {}", "x in{} AND y = 1", "y = 1 OR (x IN {}) IS UNKNOWN", "y + 1 IN {}"),
                *(
                    "concat(x, 'IN (1, 2') IN {}",
                    "y = 1 -- IN (1)\n AND x IN {}",
                    "/* ' */ x IN {}",
                    "x = 'a' AND x IN {}",
                ),
                *("`x` IN {}", "coalesce(x IN {}, true)", "r'\\' = x OR x IN {}", "x IN {} AND x IN (1, 2)"),
            ]
        )
    )
    return around.format(listed)


@given(texts(), st.sampled_from(ZONES))
@example("x IN (1, 2, 3)", "UTC")
@example("x IN ('a''b', 'c\\'d', '\\u0041', NULL)", "UTC")
@example("x IN ('a' 'b', 'c')", "UTC")
@example("x IN ('${a}', 'c')", "UTC")
@example("x IN ('\\ud800', 'c')", "UTC")
@example("x IN (1.50, 2, -0.001, 99999.99)", "UTC")
@example("x IN (9223372036854775807, -9223372036854775808)", "UTC")
@example("x IN (timestamp '2024-01-01 00:00:00', NULL)", "+02:00")
@example("x IN (date '2024-02-30', date '2024-01-01')", "UTC")
def test_list_in_a_column_is_the_list_of_its_members(text: str, zone: str) -> None:
    fast, slow = parsed(text, used=True), parsed(text, used=False)
    assert fast == slow
    if isinstance(fast, tuple) or isinstance(slow, tuple):
        return
    assert hash(fast) == hash(slow)
    assert render(slow) == render(fast) or parsed(render(fast), used=False) == slow
    for type_ in TYPES:
        assert bound(fast, type_, zone) == bound(slow, type_, zone)
    event(f"column: {isinstance(fast, In) and isinstance(fast.literals, LiteralColumn)}")


VALUES = st.one_of(
    st.lists(INTS | st.none(), min_size=1),
    st.lists(st.floats() | st.none(), min_size=1),
    st.lists(st.text(max_size=4) | st.none(), min_size=1),
    st.lists(st.dates() | st.none(), min_size=1),
    st.lists(st.integers(-(10**30), 10**30), min_size=1),
    st.lists(INTS | st.text(max_size=3), min_size=1),
)


@given(VALUES, st.sampled_from(ZONES))
def test_values_of_python_in_a_column_are_the_values(values: list[object], zone: str) -> None:
    with columns(used=True):
        fast = col("x").isin(values).node
    with columns(used=False):
        slow = col("x").isin(values).node
    assert render(fast) == render(slow)
    for type_ in TYPES:
        assert bound(fast, type_, zone) == bound(slow, type_, zone)


@given(st.lists(st.integers(0, 255), max_size=5), st.booleans())
def test_arrays_are_lists(values: list[int], many: bool) -> None:
    """Numpy's and Arrow's arrays of any numeric type are what their values are in Python."""
    with columns(used=many):
        expected = render(col("x").isin(values).node)
        arrays = [np.array(values, dtype) for dtype in (np.uint8, np.int16, np.int32, np.uint64)]
        arrow = [pa.array(values, pa.int16()), pa.chunked_array([values[:2], values[2:]], pa.int64())]
        for array in (*arrays, *arrow, pa.array(values, pa.int32()).dictionary_encode()):
            assert render(col("x").isin(array).node) == expected


def test_arrays_of_text_and_times_are_lists() -> None:
    days = [date(2024, 1, 1) + timedelta(days=day) for day in range(3)]
    expected = render(col("x").isin(days).node)
    assert render(col("x").isin(np.array(days, "datetime64[D]")).node) == expected
    assert render(col("x").isin(pa.array(days)).node) == expected
    moments = np.array(["2024-01-01T00:00:00.5"], "datetime64[ns]")
    assert render(col("x").isin(moments).node) == "x IN (timestamp_ntz '2024-01-01 00:00:00.500000')"
    zoned = pa.array([0], pa.timestamp("ms", "UTC"))
    assert render(col("x").isin(zoned).node) == "x IN (timestamp '1970-01-01 00:00:00Z')"
    for array in (np.array(["a", "b"]), np.array(["a", "b"], object), pa.array(["a", "b"], pa.large_string())):
        assert render(col("x").isin(array).node) == "x IN ('a', 'b')"
    assert render(col("x").isin(np.array([0.5, np.nan])).node) == "x IN (0.5D, double('NaN'))"
    assert render(col("x").isin(np.array([True])).node) == "x IN (true)"


def test_long_list_is_read_as_a_column() -> None:
    """Otherwise the tests above compare one way with itself."""
    for member in ("{}", "-{}", "{}.5", "'v{}'", '"v{}"', "date '{:04d}-01-01'", "timestamp '{:04d}-01-01 00:00:00'"):
        node = parse(f"x IN ({', '.join(member.format(1000 + place) for place in range(1000))})")
        assert isinstance(node, In)
        assert isinstance(node.literals, LiteralColumn)
        assert len(node.literals) == 1000
        assert node.literals[-1] == node.literals[999] == node.literals[998:][1] == list(node.literals)[999]


def test_long_list_of_numbers_and_texts_is_not_cut_into_words() -> None:
    """A hundred thousand words take a minute under load, and their sets another: both are made at once."""
    members = ", ".join(("{0}", "{0}.25", "'{0}'")[place % 3].format(place) for place in range(3000))
    assert len(read(f"x IN ({members})").tokens) == len(["x", "IN", "(", "the list", ")"])
    assert len(bind(parse(f"x IN ({members})"), Schema.of(x=pa.int64())).root.outer.cuts) > 1000  # type: ignore[union-attr] # a leaf


NUMBERS = (pa.int8(), pa.int64(), pa.decimal128(5, 2), pa.decimal128(18, 4), pa.decimal128(38, 10), pa.float64())


@given(
    st.lists(st.one_of(INTS.map(str), POINTS, POINTS.map("'{}'".format), POINTS.map("{}D".format)), min_size=1),
    st.sampled_from(NUMBERS),
)
def test_set_of_a_mixed_list_is_the_union_of_its_members_sets(members: list[str], type_: pa.DataType) -> None:
    node = parse(f"x IN ({', '.join(members)})")
    assert isinstance(node, In)
    try:
        splits = listed(type_, node.literals, find_zone("UTC", None), "x")
    except BindError:
        return
    assert splits is not None
    span = key_span(type_)
    made = spans(splits, span)
    assert made.outer == ValueSet.union_of([run(split.at[0], split.after[1], span) for split in splits])
    assert made.inner == ValueSet.union_of([run(split.at[1], split.after[0], span) for split in splits])
    assert made.exact == all(split.exact for split in splits)
