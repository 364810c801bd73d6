"""What a WHERE text becomes, by Spark's grammar."""

import math

import pyarrow as pa
import pytest

from tamis.errors import ParseError
from tamis.predicate.nodes import (
    MAX_NESTING,
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
    Opaque,
    Or,
    Ref,
    StartsWith,
    Truth,
)
from tamis.predicate.sql.parse import parse


def ref(*path: str) -> Ref:
    return Ref(path)


def num(value: int) -> Literal:
    return Literal(value, pa.int32())


def text(value: str) -> Literal:
    return Literal(value, pa.string())


def day(value: str) -> Literal:
    return Literal(value, pa.date32())


A, B, C, S, F, TS = ref("a"), ref("b"), ref("c"), ref("s"), ref("f"), ref("ts")
NULL = Literal(None, pa.null())
A_IS_1, B_IS_2, C_IS_3 = Compare("=", A, num(1)), Compare("=", B, num(2)), Compare("=", C, num(3))


# -- comparisons ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "operator"),
    [
        ("a = 5", "="),
        ("a == 5", "="),
        ("a <=> 5", "<=>"),
        ("a != 5", "!="),
        ("a <> 5", "!="),
        ("a < 5", "<"),
        ("a <= 5", "<="),
        ("a !> 5", "<="),
        ("a > 5", ">"),
        ("a >= 5", ">="),
        ("a !< 5", ">="),
        ("5 < a", ">"),
        ("5 <= a", ">="),
        ("5 > a", "<"),
        ("5 >= a", "<="),
        ("5 = a", "="),
        ("5 <=> a", "<=>"),
        ("5 <> a", "!="),
        ("a=5", "="),
        ("(a) = (5)", "="),
        ("((a)) = +5", "="),
    ],
)
def test_comparison_in_either_order_has_the_term_first(sql: str, operator: str) -> None:
    assert parse(sql) == Compare(operator, A, num(5))  # type: ignore[arg-type]


def test_comparison_with_null_stays_a_comparison() -> None:
    """It is NULL for every row, but for `<=>`; bind knows."""
    assert parse("a = NULL") == Compare("=", A, NULL)
    assert parse("null <=> a") == Compare("<=>", A, NULL)


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("1 = 1", True),
        ("1 = 2", False),
        ("2 > 1.5", True),
        ("1 = 1.0", True),
        ("'a' < 'b'", True),
        ("'a' = 'A'", False),
        ("X'01' < X'02'", True),
        ("true = false", False),
        ("date '2024-01-02' > date '2024-1-1'", True),
        ("1 = null", None),
        ("null != null", None),
        ("null <=> null", True),
        ("1 <=> null", False),
        ("1 + 1 = 2", True),
        ("true", True),
        ("FALSE", False),
        ("null", None),
        ("cast(null as boolean)", None),
    ],
)
def test_comparison_of_two_literals_is_a_constant(sql: str, value: bool | None) -> None:
    assert parse(sql) == Constant(value)


@pytest.mark.parametrize("sql", ["1 = '1'", "1 = 1D", "date '2024-01-01' = '2024-01-01'", "true = 1", "'true'"])
def test_literals_that_spark_would_cast_stay_its_own_affair(sql: str) -> None:
    assert parse(sql) == Opaque(sql, ())


@pytest.mark.parametrize(
    ("sql", "node"),
    [
        ("a IS DISTINCT FROM 1", Not(Compare("<=>", A, num(1)))),
        ("a IS NOT DISTINCT FROM 1", Compare("<=>", A, num(1))),
        ("a is not distinct from null", Compare("<=>", A, NULL)),
        ("(a) is distinct from (1)", Not(Compare("<=>", A, num(1)))),
        ("1 is not distinct from a", Compare("<=>", A, num(1))),
    ],
)
def test_is_distinct_from_is_the_null_safe_comparison(sql: str, node: Node) -> None:
    assert parse(sql) == node


# -- lists, ranges, patterns ----------------------------------------------------------------------------------


def test_in_keeps_every_literal_in_order() -> None:
    expected = In(A, (num(1), num(-2), NULL, text("x"), day("2024-01-01")))
    assert parse("a IN (1, -2, NULL, 'x', date '2024-01-01')") == expected


def test_not_in_is_the_negation_of_in() -> None:
    """With a NULL in the list it is never true; so the list is kept as it is."""
    assert parse("a NOT IN (1, null)") == Not(In(A, (num(1), NULL)))


def test_in_of_one_stays_a_list() -> None:
    assert parse("a in (1)") == In(A, (num(1),))


@pytest.mark.parametrize("sql", ["a in (1, b)", "5 in (a, b)", "(a, b) in ((1, 2))", "a = b in (true)"])
def test_in_of_other_than_a_term_and_literals_is_opaque(sql: str) -> None:
    node = parse(sql)
    assert isinstance(node, Opaque)
    assert node.sql == sql
    assert set(node.refs) == {A, B}


@pytest.mark.parametrize(
    ("sql", "node"),
    [
        ("a BETWEEN 1 AND 2", And((Compare(">=", A, num(1)), Compare("<=", A, num(2))))),
        ("a NOT BETWEEN 1 AND 2", Not(And((Compare(">=", A, num(1)), Compare("<=", A, num(2)))))),
        ("5 between a and b", And((Compare("<=", A, num(5)), Compare(">=", B, num(5))))),
        ("a between 1 and 2 and b = 2", And((Compare(">=", A, num(1)), Compare("<=", A, num(2)), B_IS_2))),
        ("a between 1 and 2 or b = 2", Or((And((Compare(">=", A, num(1)), Compare("<=", A, num(2)))), B_IS_2))),
        ("a between 1 and f(b)", And((Compare(">=", A, num(1)), Opaque("a <= (f(b))", (A, B))))),
        ("a between b and 2", And((Opaque("a >= b", (A, B)), Compare("<=", A, num(2))))),
        ("a between b and c", Opaque("a between b and c", (A, B, C))),
    ],
)
def test_between_is_two_comparisons(sql: str, node: Node) -> None:
    """So a bound that is a literal prunes also if the other is none."""
    assert parse(sql) == node


@pytest.mark.parametrize(
    ("sql", "node"),
    [
        ("s LIKE 'abc%'", Like(S, "abc%")),
        ("s NOT LIKE 'abc%'", Not(Like(S, "abc%"))),
        ("s like 'a!%b%' escape '!'", Like(S, "a!%b%", "!")),
        (r"s like 'a\%b'", Like(S, r"a\%b")),
        (r"s like 'a\\%b'", Like(S, r"a\%b")),
        (r"s like r'a\%b'", Like(S, r"a\%b")),
        ("s like any ('a%', 'b%')", Or((Like(S, "a%"), Like(S, "b%")))),
        ("s like some ('a%')", Like(S, "a%")),
        ("s like all ('a%', '%b')", And((Like(S, "a%"), Like(S, "%b")))),
        ("s not like any ('a%', 'b%')", Or((Not(Like(S, "a%")), Not(Like(S, "b%"))))),
        ("s not like all ('a%', 'b%')", And((Not(Like(S, "a%")), Not(Like(S, "b%"))))),
        ("left(s, 3) like 'ab%'", Like(Call("left", S, 3), "ab%")),
        ("startswith(s, 'ab')", StartsWith(S, text("ab"))),
        ("startswith(s, X'4142')", StartsWith(S, Literal(b"AB", pa.binary()))),
    ],
)
def test_pattern_is_read_as_spark_reads_it(sql: str, node: Node) -> None:
    assert parse(sql) == node


@pytest.mark.parametrize(
    "sql",
    [
        "s ilike 'a%'",
        "s rlike 'a.*'",
        "s regexp 'a.*'",
        "s not rlike 'a.*'",
        "s like concat(s, '%')",
        "s like lower('É%')",
        "s like NULL",
        "s like any ('a%', NULL)",
        "contains(s, 'a')",
        "endswith(s, 'a')",
        "startswith('abc', s)",
        r"s like 'abc\\'",
        "s like 'a!bc' escape '!'",
    ],
)
def test_pattern_that_is_not_analysed_is_opaque(sql: str) -> None:
    """The last two Spark refuses row by row, so that a file without rows is fine."""
    assert parse(sql) == Opaque(sql, (S,))


# -- truth ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "node"),
    [
        ("f", F),
        ("(f)", F),
        ("NOT f", Not(F)),
        ("!f", Not(F)),
        ("f = true", Compare("=", F, Literal(True, pa.bool_()))),
        ("f IS TRUE", Truth(F, True)),
        ("f IS NOT TRUE", Not(Truth(F, True))),
        ("f is false", Truth(F, False)),
        ("f is unknown", Truth(F, None)),
        ("f is not unknown", Not(Truth(F, None))),
        ("a IS NULL", IsNull(A)),
        ("a.b IS NOT NULL", Not(IsNull(ref("a", "b")))),
        ("isnull(a)", IsNull(A)),
        ("isnotnull(a)", Not(IsNull(A))),
        ("equal_null(a, 1)", Compare("<=>", A, num(1))),
        ("equal_null(1, a)", Compare("<=>", A, num(1))),
        ("date(ts) is null", IsNull(Call("date", TS))),
        ("(a = 1) IS TRUE", Truth(A_IS_1, True)),
        ("(a = 1) IS NULL", Truth(A_IS_1, None)),
        ("(a = 1 or b = 2) is not false", Not(Truth(Or((A_IS_1, B_IS_2)), False))),
        ("(a in (1)) is unknown", Truth(In(A, (num(1),)), None)),
    ],
)
def test_truth_of_columns_and_conditions(sql: str, node: Node) -> None:
    assert parse(sql) == node


@pytest.mark.parametrize("sql", ["isnan(a)", "(IsNaN(a))"])
def test_isnan_is_a_comparison_with_nan(sql: str) -> None:
    """FALSE of NULL, as `<=>` is: so a file whose NaN are counted is dropped, or kept whole."""
    node = parse(sql)
    assert isinstance(node, Compare)
    assert (node.operator, node.term) == ("<=>", A)
    assert isinstance(node.literal.value, float)
    assert math.isnan(node.literal.value)


@pytest.mark.parametrize(
    ("sql", "node"),
    [
        ("a = 1 IS TRUE", Truth(A_IS_1, True)),
        ("not a = 1 is null", Not(Truth(A_IS_1, None))),
        ("1 = a is not null and f", And((Not(Truth(A_IS_1, None)), F))),
        ("not f is true", Not(Truth(F, True))),
    ],
)
def test_is_applies_to_the_whole_comparison_before_it(sql: str, node: Node) -> None:
    """Other dialects read `a = (1 IS TRUE)`."""
    assert parse(sql) == node


# -- and, or, not ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "node"),
    [
        ("a = 1 AND b = 2 AND c = 3", And((A_IS_1, B_IS_2, C_IS_3))),
        ("a = 1 AND (b = 2 AND c = 3)", And((A_IS_1, B_IS_2, C_IS_3))),
        ("((a = 1 and b = 2)) and c = 3", And((A_IS_1, B_IS_2, C_IS_3))),
        ("a = 1 or (b = 2 or c = 3)", Or((A_IS_1, B_IS_2, C_IS_3))),
        ("a = 1 or b = 2 and c = 3", Or((A_IS_1, And((B_IS_2, C_IS_3))))),
        ("(a = 1 or b = 2) and c = 3", And((Or((A_IS_1, B_IS_2)), C_IS_3))),
        ("not a = 1 and b = 2", And((Not(A_IS_1), B_IS_2))),
        ("not (a = 1 and b = 2)", Not(And((A_IS_1, B_IS_2)))),
        ("a = 1 and not (b = 2 and c = 3)", And((A_IS_1, Not(And((B_IS_2, C_IS_3)))))),
        ("not not f", Not(Not(F))),
        ("! a = 1", Not(A_IS_1)),
        ("not(f)", Not(F)),
    ],
)
def test_and_or_not_bind_as_in_sql_and_are_made_flat(sql: str, node: Node) -> None:
    assert parse(sql) == node


@pytest.mark.parametrize("word", ["AND", "OR"])
def test_five_thousand_operands_do_not_exhaust_the_stack(word: str) -> None:
    flat = parse(f" {word} ".join(f"a = {i}" for i in range(5000)))
    assert isinstance(flat, And | Or)
    assert len(flat.operands) == 5000
    left = parse("(" * 4999 + "a = 0" + "".join(f" {word} a = {i})" for i in range(1, 5000)))
    right = parse("".join(f"a = {i} {word} (" for i in range(4999)) + "a = 4999" + ")" * 4999)
    assert left == right == flat


def test_five_thousand_brackets_are_none() -> None:
    assert parse("(" * 5000 + "a" + ")" * 5000 + " = 1") == A_IS_1
    assert parse("(" * 5000 + "a = 1" + ")" * 5000) == A_IS_1


@pytest.mark.parametrize("sql", ["not " * 5000 + "f", "(a or b and " * 2500 + "c" + ")" * 2500])
def test_conditions_nested_beyond_reason_are_refused(sql: str) -> None:
    """Spark's own parser gives up not far beyond."""
    with pytest.raises(ParseError, match=f"more than {MAX_NESTING:,} deep"):
        parse(sql)


def test_expression_nested_beyond_reason_is_refused() -> None:
    with pytest.raises(ParseError, match="nested too deeply"):
        parse("f(" * 3000 + "a" + ")" * 3000)


def test_long_sum_is_opaque() -> None:
    sql = "a > " + " + ".join(["b"] * 3000)
    assert parse(sql) == Opaque(sql, (A, B))


# -- conditions beside truth values -----------------------------------------------------------------------------


I_IS_5 = Compare("=", ref("i"), num(5))


@pytest.mark.parametrize(
    ("sql", "node"),
    [
        ("(i = 5) = true", I_IS_5),
        ("true = (i = 5)", I_IS_5),
        ("i = 5 = true", I_IS_5),
        ("((i = 5)) = (true)", I_IS_5),
        ("(i = 5) = false", Not(I_IS_5)),
        ("(i = 5) != true", Not(I_IS_5)),
        ("(i = 5) <> false", I_IS_5),
        ("(i = 5) <=> true", Truth(I_IS_5, value=True)),
        ("(i = 5) <=> false", Truth(I_IS_5, value=False)),
        ("(i = 5) <=> NULL", Truth(I_IS_5, value=None)),
        ("(i = 5) = NULL", Or((And((Truth(I_IS_5, value=True), Constant(None))), Constant(None)))),
        ("(i = 5) < true", Not(I_IS_5)),
        ("true > (i = 5)", Not(I_IS_5)),
        ("(i = 5) > false", I_IS_5),
        ("(i = 5) >= true", I_IS_5),
        ("(i = 5) <= false", Not(I_IS_5)),
        ("(i = 5) <= true", Or((I_IS_5, Not(I_IS_5)))),
        ("(i = 5) >= false", Or((I_IS_5, Not(I_IS_5)))),
        ("(i = 5) < false", And((I_IS_5, Not(I_IS_5)))),
        ("(i = 5) > true", And((I_IS_5, Not(I_IS_5)))),
        ("NOT (i = 5) = false", Not(Not(I_IS_5))),
        ("(i IS NULL) = false", Not(IsNull(ref("i")))),
        ("(i = 5 AND i IS NULL) = true", And((I_IS_5, IsNull(ref("i"))))),
        ("((i = 5) = true) = false", Not(I_IS_5)),
        ("(i = 5 AND udf(j)) = true", And((I_IS_5, Opaque("udf(j)", (ref("j"),))))),
        ("(b) = true", Compare("=", ref("b"), Literal(value=True, type=pa.bool_()))),
    ],
)
def test_condition_compared_with_a_truth_value_is_a_condition(sql: str, node: Node) -> None:
    assert parse(sql) == node
    assert parse(f"({sql}) OR x") == Or((*(node.operands if isinstance(node, Or) else (node,)), ref("x")))


@pytest.mark.parametrize(
    "sql", ["(udf(j)) = true", "(i = 5) = 1", "(i = 5) = 'true'", "(i = 5) = (j = 6)", "true = i = 5", "i = j = true"]
)
def test_other_comparison_of_conditions_is_opaque(sql: str) -> None:
    assert isinstance(parse(sql), Opaque)


def test_truth_compared_without_end_is_opaque() -> None:
    """Each is read within the one around it: the depth has a limit, and no stack is left without room."""
    sql = "(" * 40 + "i = 5" + ") = true" * 40
    assert isinstance(parse(sql), Opaque)


@pytest.mark.parametrize(
    "sql",
    [
        "i IS NOT NULL IS TRUE",
        "i IS NULL IS NOT NULL",
        "i = 5 IS TRUE IS TRUE",
        "i IN (5) IS TRUE",
        "i BETWEEN 1 AND 9 IS TRUE",
        "s LIKE 'a' IS NOT FALSE",
        "i IS DISTINCT FROM 6 IS TRUE",
        "x AND i NOT IN (5) IS UNKNOWN",
    ],
)
def test_second_predicate_on_one_operand_is_refused(sql: str) -> None:
    """Spark's grammar has one of them; what it refuses must not be planned for."""
    with pytest.raises(ParseError, match="IS follows another"):
        parse(sql)
    assert parse("(i IS NOT NULL) IS TRUE") == Truth(Not(IsNull(ref("i"))), value=True)
