"""Names, functions of columns, and what is left to Spark; asked of Spark 4.1 where in doubt."""

import pyarrow as pa
import pytest

from tamis.predicate.nodes import (
    And,
    Call,
    Compare,
    Literal,
    Not,
    Opaque,
    Or,
    Ref,
)
from tamis.predicate.sql.parse import parse


def ref(*path: str) -> Ref:
    return Ref(path)


def num(value: int) -> Literal:
    return Literal(value, pa.int32())


A, B, C, S, F, TS = ref("a"), ref("b"), ref("c"), ref("s"), ref("f"), ref("ts")
A_IS_1, B_IS_2, C_IS_3 = (Compare("=", column, num(value)) for value, column in enumerate((A, B, C), 1))


# -- names ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "path"),
    [
        ("a.b.c.d.e.f.g = 1", ("a", "b", "c", "d", "e", "f", "g")),
        ("`a b`.`c.d`.`e``f` = 1", ("a b", "c.d", "e`f")),
        ("`a` . b = 1", ("a", "b")),
        ("`5` = 1", ("5",)),
        ("1a = 1", ("1a",)),
        ("date = 1", ("date",)),
        ("timestamp = 1", ("timestamp",)),
        ("year = 1", ("year",)),
        ("values = 1", ("values",)),
        ("show = 1", ("show",)),
        ("end = 1", ("end",)),
        ("unknown = 1", ("unknown",)),
        ("a.and.or.not.null = 1", ("a", "and", "or", "not", "null")),
        ("`and` = 1", ("and",)),
        ("`current_date` = 1", ("current_date",)),
        ("Überschrift = 1", ("Überschrift",)),
    ],
)
def test_name_of_any_depth_and_spelling_is_a_column(sql: str, path: tuple[str, ...]) -> None:
    assert parse(sql) == Compare("=", Ref(path), num(1))


# -- functions of a column ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "term"),
    [
        ("date(ts)", Call("date", TS)),
        ("DATE(ts)", Call("date", TS)),
        ("cast(ts as date)", Call("date", TS)),
        ("ts::date", Call("date", TS)),
        ("to_date(ts)", Call("date", TS)),
        ("year(ts)", Call("year", TS)),
        ("extract(year from ts)", Call("year", TS)),
        ("extract(YRS FROM ts)", Call("year", TS)),
        ("date_part('Year', ts)", Call("year", TS)),
        ("datepart('y', ts)", Call("year", TS)),
        ("date_trunc('YEAR', ts)", Call("date_trunc", TS, "year")),
        ("date_trunc('yyyy', ts)", Call("date_trunc", TS, "year")),
        ("date_trunc('yy', ts)", Call("date_trunc", TS, "year")),
        ("date_trunc('Quarter', ts)", Call("date_trunc", TS, "quarter")),
        ("date_trunc('mon', ts)", Call("date_trunc", TS, "month")),
        ("date_trunc('MM', ts)", Call("date_trunc", TS, "month")),
        ("date_trunc('month', ts)", Call("date_trunc", TS, "month")),
        ("date_trunc('week', ts)", Call("date_trunc", TS, "week")),
        ("date_trunc('DD', ts)", Call("date_trunc", TS, "day")),
        ("date_trunc('hour', ts)", Call("date_trunc", TS, "hour")),
        ("date_trunc('minute', ts)", Call("date_trunc", TS, "minute")),
        ("date_trunc('second', ts)", Call("date_trunc", TS, "second")),
        ("date_trunc('millisecond', ts)", Call("date_trunc", TS, "millisecond")),
        ("date_trunc('MICROSECOND', ts)", Call("date_trunc", TS, "microsecond")),
        ("trunc(ts, 'MM')", Call("trunc", TS, "month")),
        ("trunc(ts, 'week')", Call("trunc", TS, "week")),
        ("substring(s, 1, 3)", Call("left", S, 3)),
        ("substr(s, 0, 3)", Call("left", S, 3)),
        ("substring(s from 1 for 3)", Call("left", S, 3)),
        ("left(s, 2 + 1)", Call("left", S, 3)),
        ("cast(a as bigint)", Call("cast", A, "bigint")),
        ("a::decimal(20, 2)", Call("cast", A, "decimal(20,2)")),
        ("double(a)", Call("cast", A, "double")),
        (
            "year(date(date_trunc('week', a.ts)))",
            Call("year", Call("date", Call("date_trunc", ref("a", "ts"), "week"))),
        ),
    ],
)
def test_monotone_function_of_a_column_is_a_call(sql: str, term: Call) -> None:
    assert parse(f"{sql} = 1") == Compare("=", term, num(1))
    assert parse(f"1 < {sql}") == Compare(">", term, num(1))


@pytest.mark.parametrize(
    "sql",
    [
        "cast(s as string)",
        "try_cast(s as int)",
        "try_cast(s as date)",
        "to_date(s, 'yyyy')",
        "month(s)",
        "date_trunc('fortnight', s)",
        "date_trunc('years', s)",
        "trunc(s, 'day')",
        "trunc(s)",
        "extract(month from s)",
        "date_part('month', s)",
        "substring(s, 2, 3)",
        "substring(s, 1)",
        "substring(s, -3, 3)",
        "left(s, 0)",
        "left(s, -1)",
        "left(s, '3')",
        "upper(s)",
        "s + 1",
        "-s",
        "+s",
        "s[0]",
        "s['k']",
        "s[0].x",
        "s:x.y[0]",
        "coalesce(s, 1)",
        "my.udf(s)",
        "s collate UTF8_LCASE",
        "case when s = 1 and true then 2 else 3 end",
    ],
)
def test_other_expression_of_a_column_is_opaque(sql: str) -> None:
    assert parse(f"{sql} = 1") == Opaque(f"{sql} = 1", (S,))


# -- opaque ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "refs"),
    [
        ("a > b.c", (A, ref("b", "c"))),
        ("a = b = c", (A, B, C)),
        ("exists (select 1 from t where t.x = y)", ()),
        ("a in (select b from t where c = 1)", (A,)),
        ("a = (select max(b) from t)", (A,)),
        ("exists(a, x -> x.y.z > b and x != c)", (A, B, C)),
        ("size(filter(a, (x, i) -> x > i)) > 0", (A,)),
        ("dateadd(day, 7, a) > b", (A, B)),
        ("timestampdiff(HOUR, a, b) > 1", (A, B)),
        ("f(a, a, `a`)", (A,)),
        ("m['k'].x > a.b.c.d.e", (ref("m"), ref("a", "b", "c", "d", "e"))),
        ("a > current_date()", (A,)),
        ("a > current_timestamp - interval 1 day", (A,)),
        ("a > date 'today'", (A,)),
        ("a > timestamp 'NOW'", (A,)),
        ("a > cast('tomorrow' as date)", (A,)),
        ("a > date '2024-01-01' + make_interval(0, b)", (A, B)),
        ("trim(both 'x' from a) = 'y'", (A,)),
        ("position('x' in a) > 0", (A,)),
        ("cast(a as struct<x:int, y:array<string>>).x = 1", (A,)),
        ("rand() < 0.5", ()),
    ],
)
def test_opaque_keeps_the_words_and_names_the_columns(sql: str, refs: tuple[Ref, ...]) -> None:
    """But for the columns of a subquery and the parameters of a lambda: they are no columns of the table."""
    assert parse(sql) == Opaque(sql, refs)


def test_opaque_is_the_smallest_condition() -> None:
    """So the rest still prunes."""
    assert parse("a = 1 and udf(b) and c = 3") == And((A_IS_1, Opaque("udf(b)", (B,)), C_IS_3))
    assert parse("not (udf(b) or a = 1)") == Not(Or((Opaque("udf(b)", (B,)), A_IS_1)))


def test_opaque_with_is_keeps_both() -> None:
    assert parse("(udf(a)) is not true") == Opaque("(udf(a)) is not true", (A,))
    assert parse("a + b is null and f") == And((Opaque("a + b is null", (A, B)), F))


def test_opaque_is_on_one_line_without_comments() -> None:
    assert parse("udf(a, -- why\n   b /* and\n what */ )  ") == Opaque("udf(a, b )", (A, B))


def test_comments_are_no_part_of_a_condition() -> None:
    assert parse("a = 1 -- it's\nand /* not */ b = 2 --") == And((A_IS_1, B_IS_2))


def test_variable_that_spark_would_substitute_is_opaque() -> None:
    """Spark replaces ${name} before it parses: the string is not what it seems."""
    assert parse("a = '${day}'") == Opaque("a = '${day}'", (A,))
    assert parse("startswith(a, '${day}')") == Opaque("startswith(a, '${day}')", (A,))


def test_sign_before_text_makes_a_number_of_it() -> None:
    assert parse("a = +'5'") == Opaque("a = +'5'", (A,))
