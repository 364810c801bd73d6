"""Law: parse(render(node)) is node, for every node that can be analysed, and for any name and string in it."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import get_args

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tamis.errors import ParseError
from tamis.predicate.build import literal
from tamis.predicate.nodes import (
    And,
    Call,
    Compare,
    Constant,
    In,
    IsNull,
    Like,
    Literal,
    Node,
    Not,
    Operator,
    Or,
    Ref,
    StartsWith,
    Truth,
)
from tamis.predicate.sql.parse import parse
from tamis.predicate.sql.rendering import render

WORDS = (
    "a",
    "B_1",
    "select",
    "and",
    "Null",
    "true",
    "case",
    "date",
    "values",
    "current_date",
    "left",
    "in",
    "a.b",
    "x y",
)
CORNERS = ("", "'", "\\", "\\'", "${x}", "%", "\\%_", "a\nb", "\0", "\x1a", "--", "/*", '"', "`", "😀", "\u2028")

texts = st.one_of(st.sampled_from(CORNERS), st.text(st.characters(exclude_categories=("Cs",)), max_size=8))
names = st.one_of(st.sampled_from(WORDS), st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=5))
refs = st.lists(names, min_size=1, max_size=5).map(lambda path: Ref(tuple(path)))


def calls(inside: SearchStrategy[Ref | Call]) -> SearchStrategy[Ref | Call]:
    units = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond")
    return st.one_of(
        st.builds(Call, st.sampled_from(("date", "year")), inside),
        st.builds(Call, st.just("date_trunc"), inside, st.sampled_from(units)),
        st.builds(Call, st.just("trunc"), inside, st.sampled_from(units[:4])),
        st.builds(Call, st.just("left"), inside, st.integers(1, 2**31 - 1)),
    )


terms = st.recursive(refs, calls, max_leaves=4)


def ints(type_: pa.DataType) -> SearchStrategy[Literal]:
    most = 1 << type_.bit_width - 1
    return st.integers(-most, most - 1).map(lambda value: Literal(value, type_))


@st.composite
def decimals(draw: st.DrawFn) -> Literal:
    precision = draw(st.integers(1, 38))
    scale = draw(st.integers(0, precision))
    unscaled = draw(st.integers(-(10**precision) + 1, 10**precision - 1))
    sign, digits = int(unscaled < 0), tuple(map(int, str(abs(unscaled))))
    return Literal(Decimal((sign, digits, -scale)), pa.decimal128(precision, scale))


literals: SearchStrategy[Literal] = st.one_of(
    st.just(Literal(None, pa.null())),
    st.sampled_from((pa.bool_(), pa.int64(), pa.string(), pa.date32(), pa.decimal128(5, 2), pa.timestamp("us"))).map(
        lambda type_: Literal(None, type_)
    ),
    st.booleans().map(lambda value: Literal(value, pa.bool_())),
    *(ints(type_) for type_ in (pa.int8(), pa.int16(), pa.int32(), pa.int64())),
    st.floats(allow_nan=False).map(lambda value: Literal(value, pa.float64())),
    st.floats(allow_nan=False, allow_subnormal=False, width=32).map(lambda value: Literal(value, pa.float32())),
    decimals(),
    texts.map(lambda value: Literal(value, pa.string())),
    st.binary(max_size=6).map(lambda value: Literal(value, pa.binary())),
    st.dates().map(lambda value: Literal(value.isoformat(), pa.date32())),
    st.datetimes().map(lambda value: Literal(value.isoformat(" "), pa.timestamp("us"))),
    st.datetimes().map(lambda value: Literal(value.isoformat("T") + "+02:00", pa.timestamp("us", "UTC"))),
    st.times().map(lambda value: Literal(value.isoformat(), pa.time64("us"))),
)


prefixes = st.one_of(
    texts.map(lambda value: Literal(value, pa.string())),
    st.binary(max_size=6).map(lambda value: Literal(value, pa.binary())),
)


@st.composite
def likes(draw: st.DrawFn) -> Like:
    """Patterns whose escapes are in order; others are not analysed."""
    escape = draw(st.sampled_from(("\\", "!", "'", "é")))
    parts = st.one_of(texts.map(lambda text: text.replace(escape, "")), st.sampled_from(("%", "_")))
    escaped = st.sampled_from((escape + "%", escape + "_", escape * 2))
    return Like(draw(terms), "".join(draw(st.lists(st.one_of(parts, escaped), max_size=4))), escape)


leaves: SearchStrategy[Node] = st.one_of(
    st.sampled_from((True, False, None)).map(Constant),
    refs,
    st.builds(Compare, st.sampled_from(get_args(Operator)), terms, literals),
    st.builds(In, terms, st.lists(literals, min_size=1, max_size=4).map(tuple)),
    st.builds(IsNull, terms),
    likes(),
    st.builds(StartsWith, terms, prefixes),
)


def flat(kind: type[And | Or], operands: list[Node]) -> Node:
    """As parse makes them: an AND holds no AND."""
    inside = [part for node in operands for part in (node.operands if isinstance(node, kind) else (node,))]
    return kind(tuple(inside))


def branches(inside: SearchStrategy[Node]) -> SearchStrategy[Node]:
    several = st.lists(inside, min_size=2, max_size=4)
    return st.one_of(
        several.map(lambda operands: flat(And, operands)),
        several.map(lambda operands: flat(Or, operands)),
        inside.map(Not),
        st.builds(Truth, inside, st.sampled_from((True, False, None))),
    )


nodes = st.recursive(leaves, branches, max_leaves=10)


@given(nodes)
def test_node_is_read_back_from_its_text(node: Node) -> None:
    assert parse(render(node)) == node


@given(nodes)
def test_text_is_on_one_line_unless_a_name_is_not(node: Node) -> None:
    """An explanation is a line for each part. A name in backticks has no escapes: it is as it is."""
    assert "\n" not in render(node) or "\n" in str(node).replace("\\n", "\n")


@given(
    st.one_of(
        st.dates(), st.datetimes(), st.decimals(allow_nan=False, allow_infinity=False, places=5, max_value=10**20)
    )
)
def test_python_value_survives_as_what_it_means(value: date | datetime | Decimal) -> None:
    """A date is read back as its text: bind reads the one as the other."""
    node = Compare("=", Ref(("x",)), literal(value))
    again = parse(render(node))
    assert isinstance(again, Compare)
    assert again.literal.type == node.literal.type
    assert render(again) == render(node)
    assert value == (
        again.literal.value if isinstance(value, Decimal) else type(value).fromisoformat(str(again.literal.value))
    )


@given(st.text(max_size=40))
def test_any_text_is_a_condition_or_a_parse_error(text: str) -> None:
    error = _refusal(text)
    assert error is None or (error.text == text and error.line >= 1 and error.column >= 1)


TOKENS = (
    *("a", "b", ".", "`c`", "5", "'x'", "1.5D", "X'1'", "null", "true", "date", "interval", "select", "from"),
    *("=", "<", "<=>", "!=", "+", "-", "::", ":", "->", ",", "(", ")", "[", "]", "!"),
    *("and", "or", "not", "is", "in", "like", "between", "escape", "distinct", "exists"),
    *("case", "when", "then", "end", "cast", "as"),
)


@given(st.lists(st.sampled_from(TOKENS), max_size=14))
def test_any_words_are_a_condition_or_a_parse_error(words: list[str]) -> None:
    """And what is a condition is the same one when it is rendered and read again."""
    text = " ".join(words)
    if _refusal(text) is None:
        node = parse(text)
        assert render(parse(render(node))) == render(node)


def _refusal(text: str) -> ParseError | None:
    try:
        parse(text)
    except ParseError as error:
        return error
    return None
