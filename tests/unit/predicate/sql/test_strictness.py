"""What Spark's parser refuses is refused before a plan is made; each was asked of Spark 4.1."""

import pyarrow as pa
import pytest

from tamis.errors import BindError, ParseError
from tamis.predicate.bound import Unclear
from tamis.predicate.nodes import And, Call, Compare, Literal, Opaque, Ref
from tamis.predicate.schema import Column, Schema
from tamis.predicate.sql.parse import parse
from tamis.predicate.where import bind_text

S = Ref(("s",))
SCHEMA = Schema(
    (
        Column(1, ("s",), pa.string()),
        Column(2, ("m",), pa.map_(pa.string(), pa.int32())),
        Column(3, ("b",), pa.bool_()),
    )
)


@pytest.mark.parametrize(
    ("sql", "column", "said"),
    [
        ("a = 1 /*+ hint */", 7, "a hint"),
        ("a = 5.5.5", 9, "unexpected"),
        ("a = 5..5", 8, "unexpected"),
        ("a LIKE 'x' LIKE 'y'", 12, "LIKE follows LIKE"),
        ("a BETWEEN 1 AND 2 BETWEEN 1 AND 2", 19, "BETWEEN follows BETWEEN"),
        ("a BETWEEN NOT 1 AND 2", 11, "NOT follows 'BETWEEN'"),
        ("a = NOT b", 5, "NOT follows '='"),
        ("a > > 1", 5, "unexpected '>'"),
        ("a LIKE ANY 'x'", 12, "a list in brackets"),
        ("a = ANY (SELECT 1)", 5, "no ANY of a query"),
        ("[a] = 1", 1, "unexpected '['"),
        ("{a} = 1", 1, "unexpected '{'"),
        ("@a = 1", 1, "unexpected '@'"),
        ("a = ?", 5, "unexpected '?'"),
        ("a = :x", 5, "unexpected ':'"),
        ("* = 1", 1, "unexpected '*'"),
        ("a = N'x'", 5, "no strings of the form"),
        ("a = date 5", 10, "followed by a number"),
        ("a = date '2024' '-01-15'", 17, "a second string"),
        ("a = timestamp '2024-01-15 25:00:00'", 15, "is no timestamp"),
        ("a = decimal '1.0'", 13, "no literals of the form"),
        ("cast(a AS decimal(2, 10)) = 5", 1, "at most 38 digits"),
        ("cast(a AS varchar) = 'x'", 11, "needs a length"),
        ("a = date '2024-01-15' + INTERVAL 1 FORTNIGHT", 36, "has a unit"),
        ("a = date '2024-01-15' + INTERVAL b DAY", 34, "a number or a text"),
        ("a = date '2024-01-15' + INTERVAL 1.5 DAYS", 34, "only seconds have fractions"),
        ("a = date '2024-01-15' + INTERVAL '1-13' YEAR TO MONTH", 34, "no interval of years"),
        ("a = date '2024-01-15' + INTERVAL '1-2' MONTH TO YEAR", 49, "does not go to year"),
        ("a = date '2024-01-15' + INTERVAL '1 foo'", 34, "'foo' is no unit"),
        ("extract('year' FROM a) = 1", 9, "extract takes a unit"),
        ("extract(year, a) = 1", 9, "extract takes a unit"),
        ("a COLLATE 'x' = 'y'", 11, "a name without quotes"),
        ("f(1, , 2) = 1", 4, "one side of ','"),
        ("f(()) = 1", 4, "expected before ')'"),
        ("a::NULL = 1", 2, "a type is missing"),
        ("a : : b", 3, "unexpected ':'"),
        ("5", 1, "an int stands as a condition"),
        ("a AND 5.5", 7, "stands as a condition"),
    ],
)
def test_what_sparks_parser_refuses_is_refused_with_its_place(sql: str, column: int, said: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(sql)
    assert said in caught.value.message.splitlines()[0]
    assert (caught.value.line, caught.value.column) == (1, column)


def test_null_alone_is_no_condition() -> None:
    with pytest.raises(ParseError, match="NULL alone"):
        bind_text("(NULL)", SCHEMA, instant=0)
    assert bind_text("NULL AND b", SCHEMA, instant=0).sql == "NULL AND b"


@pytest.mark.parametrize(
    "sql",
    [
        *("5 IS NULL", "'true' AND a", "a >> 1 = 2", "a >>> 1 = 2", "a[0] = 1", "count(*) > 1", "a:b.c = 1"),
        *("date = 5 OR a.date = 5", "interval = 1", "interval(1) = 1", "extract = 1", "any = 1", "a.x = '1F'"),
        *("a = INTERVAL '3 days 2 hours'", "a = INTERVAL 1.5 SECONDS", "a IN (SELECT x LIKE 'a' LIKE 'b' FROM t)"),
        *("a = '${x}'", "a = ${x}", "cast(a AS varchar(5)) = 'x'", "varchar = 1", "a = timestamp 'today UTC'"),
    ],
)
def test_what_looks_like_it_and_is_sparks_is_accepted(sql: str) -> None:
    parse(sql)


def test_length_after_for_is_no_longer_lost() -> None:
    """Of `substring(s, 1 FOR 3)` sqlglot keeps no length: it would have been the first character alone."""
    assert parse("substring(s, 1 FOR 3) = 'abc'") == Opaque("substring(s, 1 FOR 3) = 'abc'", (S,))
    assert parse("substring(s FROM 1 FOR 3) = 'abc'") == Compare("=", Call("left", S, 3), Literal("abc", pa.string()))


def test_comment_goes_on_after_a_backslash_at_the_end_of_its_line() -> None:
    """To read its next line as part of the condition would prune files that match."""
    a_is_1 = Compare("=", Ref(("a",)), Literal(1, pa.int32()))
    assert parse("a = 1 -- and \\\n AND b") == a_is_1
    assert parse("a = 1 -- and \n AND b") == And((a_is_1, Ref(("b",))))
    assert parse("a = 1 /* /* b */ AND c */") == a_is_1
    assert parse("s = '--' -- '") == Compare("=", S, Literal("--", pa.string()))


@pytest.mark.parametrize("sql", ['a = X"1F"', "a = X '1F'", "a = x  '1f'"])
def test_hexadecimal_digits_stand_in_either_quotes(sql: str) -> None:
    assert parse(sql) == Compare("=", Ref(("a",)), Literal(b"\x1f", pa.binary()))


@pytest.mark.parametrize("sql", ["m.k = 1", "m.k IS NULL", "m.k + 1 = 2", "lower(m.k) = '1'"])
def test_value_of_a_map_is_no_column_and_is_left_to_spark(sql: str) -> None:
    root = bind_text(sql, SCHEMA, instant=0).root
    assert isinstance(root, Unclear)
    assert [column.name for column in root.columns] == ["m"]


def test_text_is_a_truth_value_beside_others_only() -> None:
    """Spark casts it there, and refuses it as the whole of a condition."""
    assert isinstance(bind_text("s IS TRUE", SCHEMA, instant=0).root, Unclear)
    bind_text("s AND b", SCHEMA, instant=0)
    with pytest.raises(BindError, match="stands as a condition"):
        bind_text("s", SCHEMA, instant=0)
