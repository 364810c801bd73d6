"""Operators that Spark takes as functions too, and signs that only look like operators of Spark's."""

import pyarrow as pa
import pytest

from tamis.errors import BindError, ParseError
from tamis.predicate.bind import bind
from tamis.predicate.bound import Leaf
from tamis.predicate.nodes import And, In, Literal, Not, Opaque, Or, Ref
from tamis.predicate.schema import Schema
from tamis.predicate.sql.parse import parse

NUM, B = Ref(("i",)), Ref(("b",))


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        *(("in(i, 1, 5)", (NUM,)), ("in (5, i)", (NUM,)), ("and(b, i = 5)", (B, NUM)), ("or(b, b)", (B,))),
        *(("between(i, 1, 5)", (NUM,)), ("coalesce(in(i, 5), b)", (NUM, B)), ("in(i, (SELECT 5))", (NUM,))),
        *(("case when in(i, 5) then or(b, b) end", (NUM, B)), ("like(b, 'a')", (B,)), ("~~i = 5", (NUM,))),
    ],
)
def test_operator_called_as_a_function_is_left_to_spark(text: str, columns: tuple[Ref, ...]) -> None:
    assert parse(text) == Opaque(text, columns)


def test_call_stands_beside_and_or_and_not() -> None:
    called = Opaque("in(i, 5)", (NUM,))
    assert parse("not in(i, 5)") == Not(called)
    assert parse("b AND in(i, 5)") == And((B, called))
    assert parse("i in(5) OR in(i, 5)") == Or((In(NUM, (Literal(5, pa.int32()),)), called))
    assert parse("b and (b) or (b)") == Or((And((B, B)), B))
    assert parse("i not in(5)") == Not(In(NUM, (Literal(5, pa.int32()),)))


@pytest.mark.parametrize(
    "text",
    [
        *(
            "s ~~ 'a%'",
            "s !~~ 'a%'",
            "s ~* 'a'",
            "s ~~* 'a'",
            "s ~~~ 'a'",
            "i ?? 5",
            "i = 5.0L",
            "i = .5S",
            "i = 5.Y",
        ),
        *("s RLIKE 'a' ESCAPE '/'", "s REGEXP 'a' ESCAPE '/'", "upper(s) RLIKE 'A' ESCAPE '/'"),
        *("coalesce(s RLIKE 'a' ESCAPE '/', true)", "s ILIKE 'a' ESCAPE ''", "s ILIKE 'a' ESCAPE s"),
        "exists(arr, (x) -> x = 5)",
    ],
)
def test_what_sparks_parser_does_not_know_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        parse(text)


@pytest.mark.parametrize(
    "text",
    [
        *("s RLIKE 'a' AND s LIKE 'a/%' ESCAPE '/'", "s ILIKE 'a/%' ESCAPE '/'", "s ILIKE ANY ('a', 'b')"),
        *("aggregate(arr, 0, (a, x) -> a + x, a -> a * 2) = 14", "i = 5.0D", "i = .5BD"),
        *("cast('1' AS interval day) = interval 1 day", "'1'::interval day to second = interval 1 day"),
    ],
)
def test_what_sparks_parser_knows_is_taken(text: str) -> None:
    parse(text)


def test_hexadecimal_number_is_a_name() -> None:
    """Spark has X'1F' alone: 0x1F is a column that there may be."""
    assert parse("0x1F = 5").term == Ref(("0x1F",))  # type: ignore[union-attr] # a comparison
    with pytest.raises(BindError, match="no column `0x1F`"):
        bind(parse("bin = 0x1F"), Schema.of(bin=pa.binary()))


def test_unknown_is_asked_of_a_column_of_any_type() -> None:
    schema = Schema.of(i=pa.int32(), b=pa.bool_(), m=pa.map_(pa.string(), pa.int32()))
    for name in ("i", "b", "m"):
        found = bind(parse(f"{name} IS UNKNOWN"), schema).root
        assert isinstance(found, Leaf)
        assert found.outer == bind(parse(f"{name} IS NULL"), schema).root.outer  # type: ignore[union-attr] # a leaf
        other = bind(parse(f"{name} IS NOT UNKNOWN"), schema).root
        assert isinstance(other, Leaf)
        assert not other.outer.nulls
