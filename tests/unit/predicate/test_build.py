"""Conditions built in Python are the nodes that SQL text would give."""

import subprocess
import sys
import uuid
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pyarrow as pa
import pytest

from tamis.errors import BindError, UnsupportedValueError
from tamis.predicate.build import Expression, col, literal
from tamis.predicate.nodes import Compare, Constant, Literal, Opaque, Ref, StartsWith
from tamis.predicate.sql.parse import parse


@pytest.mark.parametrize(
    ("built", "sql"),
    [
        (col("a") == 5, "a = 5"),
        (col("a") != 5, "a != 5"),
        (col("a") < 5, "a < 5"),
        (col("a") <= 5, "a <= 5"),
        (col("a") > 5, "a > 5"),
        (col("a") >= 5, "a >= 5"),
        (5 < col("a"), "5 < a"),  # noqa: SIM300 - Python turns it round
        (col("a") == None, "a = null"),  # noqa: E711 - a comparison with NULL
        (col("a").eq_null_safe(None), "a <=> null"),
        (col("a").isin([1, 2, None]), "a in (1, 2, null)"),
        (col("a").isin({"x"}), "a in ('x')"),
        (col("a").is_null(), "a is null"),
        (col("a").is_not_null(), "a is not null"),
        (col("a").between(1, 2), "a between 1 and 2"),
        (col("s").startswith("ab"), "startswith(s, 'ab')"),
        (col("s").like("a%"), "s like 'a%'"),
        (col("s").like("a!%", escape="!"), "s like 'a!%' escape '!'"),
        (col("f"), "f"),
        (~col("f"), "not f"),
        (col("f") & (col("a") > 1) & (col("b") > 2), "f and a > 1 and b > 2"),
        (col("f") | (col("a") > 1) | (col("b") > 2), "f or a > 1 or b > 2"),
        ((col("f") | col("g")) & ~(col("a") > 1), "(f or g) and not (a > 1)"),
        (col("ts").year() == 2024, "year(ts) = 2024"),
        (col("ts").date_trunc("MONTH").is_null(), "date_trunc('month', ts) is null"),
        (col("s").left(3) == "abc", "left(s, 3) = 'abc'"),
        (col("ts").date().year() > 1, "year(date(ts)) > 1"),
        (col("a.b.c") == 1, "a.b.c = 1"),
        (col("a") == col("b.c"), "a = b.c"),
    ],
)
def test_builder_makes_what_the_text_says(built: Expression, sql: str) -> None:
    assert built.node == parse(sql)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, Literal(None, pa.null())),
        (True, Literal(True, pa.bool_())),
        (5, Literal(5, pa.int32())),
        (2**31, Literal(2**31, pa.int64())),
        (-(2**63), Literal(-(2**63), pa.int64())),
        (2**63, Literal(Decimal(2**63), pa.decimal128(19, 0))),
        (10**38 - 1, Literal(Decimal(10**38 - 1), pa.decimal128(38, 0))),
        (1.5, Literal(1.5, pa.float64())),
        (Decimal("1.50"), Literal(Decimal("1.50"), pa.decimal128(3, 2))),
        (Decimal("0.05"), Literal(Decimal("0.05"), pa.decimal128(2, 2))),
        (Decimal("1E+3"), Literal(Decimal(1000), pa.decimal128(4, 0))),
        (Decimal(0), Literal(Decimal(0), pa.decimal128(1, 0))),
        ("x", Literal("x", pa.string())),
        (b"x", Literal(b"x", pa.binary())),
        (date(2024, 1, 15), Literal(date(2024, 1, 15), pa.date32())),
        (datetime(2024, 1, 15), Literal(datetime(2024, 1, 15), pa.timestamp("us"))),
        (
            datetime(2024, 1, 15, tzinfo=UTC),
            Literal(datetime(2024, 1, 15, tzinfo=UTC), pa.timestamp("us", "UTC")),
        ),
        (time(10), Literal(time(10), pa.time64("us"))),
        (uuid.UUID(int=1), Literal(uuid.UUID(int=1), pa.uuid())),
    ],
)
def test_python_value_has_the_type_that_spark_gives_it(value: object, expected: Literal) -> None:
    assert literal(value) == expected
    assert literal(value).type == expected.type
    assert type(literal(value).value) is type(expected.value)


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (object(), "builtins.object"),
        ([1], "builtins.list"),
        (10**38, "38 digits"),
        (Decimal("NaN"), "38 digits"),
        (Decimal("Infinity"), "38 digits"),
        (Decimal("1E-39"), "38 digits"),
        (1j, "builtins.complex"),
        (time(10, tzinfo=UTC), "datetime.time"),
    ],
)
def test_value_without_a_sql_type_is_refused_by_name(value: object, named: str) -> None:
    with pytest.raises(UnsupportedValueError, match=named) as caught:
        _ = col("a") == value
    assert isinstance(caught.value, BindError)
    assert caught.value.value is value


def test_datetime_with_nanoseconds_is_refused() -> None:
    """Cutting them off would compare with another moment."""

    class Stamp(datetime):
        nanosecond = 5

    with pytest.raises(BindError, match="Stamp"):
        literal(Stamp(2024, 1, 1))


@pytest.mark.parametrize(
    ("expression", "path"),
    [
        (col("a"), ("a",)),
        (col("a.b"), ("a", "b")),
        (col("a", "b"), ("a", "b")),
        (col("a.b", "c"), ("a.b", "c")),
        (col("`a.b`.c"), ("a.b", "c")),
        (col("`a``b`"), ("a`b",)),
        (col("a b.é"), ("a b", "é")),
    ],
)
def test_name_is_split_at_dots_outside_of_backticks(expression: Expression, path: tuple[str, ...]) -> None:
    assert expression.node == Ref(path)


@pytest.mark.parametrize("name", ["", ".", "a.", ".a", "a..b", "`a", "a`b", "`a`b", "``"])
def test_name_that_cannot_be_read_is_refused(name: str) -> None:
    with pytest.raises(BindError, match="cannot read the column name"):
        col(name)


def test_empty_list_matches_nothing() -> None:
    """In Spark, too, no row is in an empty list, and NOT of that is every row."""
    assert col("a").isin([]).node == Constant(value=False)


def test_text_in_place_of_a_list_is_refused() -> None:
    """It would be taken letter by letter."""
    with pytest.raises(TypeError, match=r"isin\(\['abc'\]\)"):
        col("a").isin("abc")


def test_columns_compared_are_opaque_and_name_both() -> None:
    built = col("a").date() <= col("b c")
    assert built.node == Opaque("date(a) <= `b c`", (Ref(("a",)), Ref(("b c",))))


def test_prefix_may_be_binary() -> None:
    assert col("a").startswith(b"\x00").node == StartsWith(Ref(("a",)), Literal(b"\x00", pa.binary()))


@pytest.mark.parametrize(
    "misuse",
    [
        lambda: (col("a") > 1) and (col("b") > 2),
        lambda: (col("a") > 1) or (col("b") > 2),
        lambda: not col("a"),
        lambda: 1 < col("a") < 5,
        lambda: col("a") in [col("b"), col("c")],
        lambda: bool(col("a")),
    ],
)
def test_python_logic_in_place_of_sql_logic_is_refused(misuse: object) -> None:
    """Python would silently drop one side of it."""
    with pytest.raises(TypeError, match=r"&, \| and ~"):
        misuse()  # type: ignore[operator]


@pytest.mark.parametrize("other", [True, 5, "a > 1", None])
def test_condition_combines_with_conditions_alone(other: object) -> None:
    with pytest.raises(TypeError, match="combine conditions"):
        _ = (col("a") > 1) & other  # type: ignore[operator]


@pytest.mark.parametrize(
    "misuse",
    [
        lambda: col("a").date_trunc("fortnight"),
        lambda: col("a").left(0),
        lambda: col("a").like("a", escape="!!"),
        lambda: hash(col("a")),
    ],
)
def test_argument_that_means_nothing_is_refused(misuse: object) -> None:
    with pytest.raises(TypeError):
        misuse()  # type: ignore[operator]


def test_expression_shows_its_sql() -> None:
    built = (col("ts") >= date(2024, 1, 15)) & col("region").isin(["eu", "uk"])
    assert str(built) == "ts >= date '2024-01-15' AND region IN ('eu', 'uk')"


def test_building_conditions_does_not_load_the_sql_parser() -> None:
    """It costs more than everything else that planning imports."""
    program = "from tamis.predicate import bind, build; import sys; print('sqlglot' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_expressions_are_values() -> None:
    first = col("a") > 1
    assert isinstance(first.node, Compare)
    assert len({first, col("b") > 1}) == 2
