"""Nodes as SQL text: readable, and read back as they were."""

import uuid
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal

import pyarrow as pa
import pytest

from tamis.predicate.nodes import And, Call, Compare, In, IsNull, Literal, Node, Not, Opaque, Or, Ref, Truth
from tamis.predicate.sql.parse import parse
from tamis.predicate.sql.rendering import brief, render

A, B, F = Ref(("a",)), Ref(("b",)), Ref(("f",))
I32, STRING = pa.int32(), pa.string()


@pytest.mark.parametrize(
    "sql",
    [
        "a = 5",
        "a <=> NULL",
        "region IN ('eu', 'uk')",
        "a NOT IN (1, NULL)",
        "a.b.`c d` IS NOT NULL",
        "s LIKE 'abc%'",
        "s NOT LIKE 'a!%%' ESCAPE '!'",
        "startswith(s, 'ab')",
        "NOT f",
        "NOT startswith(s, 'ab')",
        "f IS TRUE",
        "f IS NOT UNKNOWN",
        "(a = 1) IS NOT TRUE",
        "(a = 1 OR b = 2) IS UNKNOWN",
        "a = 1 AND b = 2 AND f",
        "a = 1 OR b = 2 AND f",
        "(a = 1 OR b = 2) AND f",
        "NOT (a = 1 AND b = 2)",
        "NOT (a = 1)",
        "NOT (NOT f)",
        "true",
        "NULL",
        "a = 1 AND (udf(b, 'x') > 2)",
        "NOT (udf(b))",
        "date(ts) >= date '2024-01-15'",
        "year(ts) = 2024",
        "date_trunc('month', ts) = timestamp '2024-01-01'",
        "trunc(d, 'week') < date '2024-01-01'",
        "left(s, 3) = 'abc'",
        "year(date(date_trunc('week', ts))) = 2024",
        "a = 5L",
        "a = 3000000000",
        "a = -128Y",
        "a = -5S",
        "a = -9223372036854775808",
        "a = 1.5",
        "a = 5BD",
        "a = cast(1.50 AS decimal(10, 2))",
        "a = 1.5D",
        "a = 1e+22D",
        "a = 0.10000000149011612F",
        "a = double('Infinity')",
        "a = float('-Infinity')",
        "a = X'1F00'",
        "a = ''",
        "a = cast(NULL AS date)",
        "a = cast(NULL AS timestamp_ntz)",
        "a = timestamp_ntz '2024-01-15 10:00:00'",
        "t < time '10:00:00'",
        r"a = 'it\'s \\ \n\t\r\b\0\Z $\{x}'",
    ],
)
def test_text_is_rendered_as_it_was_written(sql: str) -> None:
    node = parse(sql)
    assert render(node) == sql
    assert parse(render(node)) == node


@pytest.mark.parametrize(
    ("value", "type_", "sql"),
    [
        (date(2024, 1, 15), pa.date32(), "date '2024-01-15'"),
        (date(1, 1, 1), pa.date32(), "date '0001-01-01'"),
        (datetime(2024, 1, 15), pa.timestamp("us"), "timestamp_ntz '2024-01-15 00:00:00'"),
        (datetime(2024, 1, 15, 10, 0, 0, 5), pa.timestamp("us"), "timestamp_ntz '2024-01-15 10:00:00.000005'"),
        (datetime(2024, 1, 15), pa.timestamp("us", "UTC"), "timestamp '2024-01-15 00:00:00'"),
        (datetime(2024, 1, 15, tzinfo=UTC), pa.timestamp("us", "UTC"), "timestamp '2024-01-15 00:00:00Z'"),
        (
            datetime(2024, 1, 15, 1, tzinfo=timezone(timedelta(hours=2, seconds=30))),
            pa.timestamp("us", "UTC"),
            "timestamp '2024-01-14 22:59:30Z'",
        ),
        (time(10, 30), pa.time64("us"), "time '10:30:00'"),
        (uuid.UUID(int=1), pa.uuid(), "'00000000-0000-0000-0000-000000000001'"),
        (uuid.UUID(int=1).bytes, pa.uuid(), "'00000000-0000-0000-0000-000000000001'"),
        (float("nan"), pa.float64(), "double('NaN')"),
        (-0.0, pa.float64(), "-0.0D"),
        (Decimal("1.5"), pa.decimal128(10, 2), "cast(1.5 AS decimal(10, 2))"),
        (Decimal(-5), pa.decimal128(3, 0), "cast(-5BD AS decimal(3, 0))"),
        (Decimal("0.05"), pa.decimal128(2, 2), "0.05"),
        (Decimal("0.00"), pa.decimal128(2, 2), "0.00"),
        (Decimal("1E+3"), pa.decimal128(4, 0), "cast(1000BD AS decimal(4, 0))"),
        (True, pa.bool_(), "true"),
    ],
)
def test_python_value_is_rendered_with_its_type(value: object, type_: pa.DataType, sql: str) -> None:
    assert render(Literal(value, type_)) == sql


@pytest.mark.parametrize(
    ("path", "sql"),
    [
        (("a", "b"), "a.b"),
        (("a.b",), "`a.b`"),
        (("a`b", ""), "`a``b`.``"),
        (("select",), "`select`"),
        (("Null", "TRUE"), "`Null`.`TRUE`"),
        (("5a",), "`5a`"),
        (("é",), "`é`"),
        (("date",), "date"),
    ],
)
def test_name_is_quoted_where_it_must_be(path: tuple[str, ...], sql: str) -> None:
    """A column named like a keyword would be read as the keyword."""
    assert render(Ref(path)) == sql


def test_brief_abbreviates_long_lists_alone() -> None:
    listed = In(A, tuple(Literal(i, I32) for i in range(1000)))
    node = And((listed, Not(In(B, (Literal("x", STRING),)))))
    assert brief(node, limit=3) == "a IN (0, 1, 2, … 997 more) AND b NOT IN ('x')"
    assert brief(node) == "a IN (0, 1, 2, 3, 4, 5, 6, 7, … 992 more) AND b NOT IN ('x')"
    assert render(listed).count(",") == 999


def test_brief_keeps_a_list_that_is_just_short_enough() -> None:
    assert brief(In(A, tuple(Literal(i, I32) for i in range(3))), limit=3) == "a IN (0, 1, 2)"


@pytest.mark.parametrize(
    "node",
    [
        Or((And((A, Not(B))), Truth(Or((A, B)), value=False))),
        Not(And((A, Or((B, F))))),
        Truth(Truth(Not(A), value=None), value=True),
        Truth(IsNull(A), value=True),
        Not(Not(IsNull(A))),
        And((Opaque("a > b", (A, B)), Or((Opaque("udf(a)", (A,)), F)))),
        Compare("<", Call("left", Call("left", A, 5), 3), Literal("x", STRING)),
        Compare("=", Ref(("select", "a.b", "from")), Literal("${x} \\% 'q'", STRING)),
    ],
)
def test_nested_node_is_read_back(node: Node) -> None:
    assert parse(render(node)) == node
