"""Text that is no condition: refused with its place, its reason and what next."""

import pytest

from tamis.errors import ParseError, TamisError
from tamis.predicate.sql.parse import parse


@pytest.mark.parametrize(
    ("sql", "line", "column", "said"),
    [
        ("", 1, 1, "empty"),
        (" \n\t ", 1, 1, "empty"),
        ("-- nothing", 1, 1, "empty"),
        ("a >", 1, 4, "missing after '>'"),
        ("a > 1 and", 1, 10, "missing after 'and'"),
        ("a > 1 and or b", 1, 11, "before 'or'"),
        ("and a", 1, 1, "before 'and'"),
        ("not", 1, 4, "missing after 'not'"),
        ("a > 1 foo", 1, 7, "unexpected 'foo'"),
        ("a b", 1, 3, "unexpected 'b'"),
        ("a > 1\n  and b !! 2", 2, 9, ""),
        ("(a > 1", 1, 1, "never closed"),
        ("a > 1)", 1, 6, "closes nothing"),
        ("f(a]", 1, 4, "is to come first"),
        ("case when a then b", 1, 1, "never closed"),
        ("a = 'abc", 1, 5, "never closed"),
        ("a = 1 and\nb = `x", 2, 5, "never closed"),
        ("a = 1 /* b", 1, 7, "never closed"),
        ("a = X'zz'", 1, 1, "cannot be read"),
        ("a in ()", 1, 7, "empty"),
        ("a in 5", 1, 6, "list in brackets"),
        ("a between 1", 1, 12, "lacks its AND"),
        ("a is 5", 1, 6, "IS is followed by"),
        ("a is distinct 5", 1, 15, "lacks its FROM"),
        ("s like 'a' escape '!!'", 1, 19, "one character"),
        ("()", 1, 2, "before ')'"),
        ("select a from t", 1, 1, "statement"),
        ("where a > 1", 1, 1, "begins with WHERE"),
        ("a > 1; b > 2", 1, 6, "';'"),
        ("a > 1;", 1, 6, "';'"),
        ("a > 1, b > 2", 1, 6, "unexpected ','"),
        ("a > 1 order by b", 1, 7, "unexpected 'order by'"),
    ],
)
def test_text_that_is_no_condition_is_refused_with_its_place(sql: str, line: int, column: int, said: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(sql)
    error = caught.value
    assert (error.text, error.line, error.column) == (sql, line, column)
    assert said in error.message.splitlines()[0]


def test_error_shows_the_line_and_points_at_the_place() -> None:
    with pytest.raises(ParseError) as caught:
        parse("a > 1\nand b > 1 foo")
    assert caught.value.message == (
        "cannot parse the condition: unexpected 'foo' (line 2, column 11)\n"
        "    and b > 1 foo\n"
        "              ^\n"
        "If it is a column's name, write `foo` in backticks."
    )


def test_error_in_a_long_line_shows_the_part_around_it() -> None:
    sql = "a = 1 and " * 100 + "b b and " + "c = 1 and " * 100 + "d"
    with pytest.raises(ParseError) as caught:
        parse(sql)
    _, shown, pointer, _ = caught.value.message.splitlines()
    assert len(shown) <= 82
    assert shown[pointer.index("^") :].startswith("b and")


@pytest.mark.parametrize("sql", ["a >", "f(", "a = 'x", "f(1 2)", "cast(a as)", "a in (1,)", "a = = 1"])
def test_error_carries_no_noise(sql: str) -> None:
    """No colours, no classes of the parser below, no chained traceback."""
    with pytest.raises(TamisError) as caught:
        parse(sql)
    assert "\x1b" not in str(caught.value)
    assert "sqlglot" not in str(caught.value)
    assert "<class" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
