"""From nodes to sets of rows: three-valued logic, patterns, names, and errors that carry their facts."""

import pyarrow as pa
import pytest

from tamis.errors import BindError
from tamis.predicate import nodes as n
from tamis.predicate.bind import bind
from tamis.predicate.bound import AllOf, AnyOf, Bound, Known, Leaf, Unclear
from tamis.predicate.schema import Column, Schema
from tamis.predicate.sql.parse import parse
from tests.making.harness import arrow

INT = pa.int32()
SCHEMA = Schema.of(a=INT, b=INT, f=pa.bool_(), s=pa.string(), d=pa.date32())


def root(sql: str) -> Bound:
    return bind(parse(sql), SCHEMA).root


def holds(node: Bound, row: dict[str, int | None]) -> bool:
    """Whether an exact bound predicate accepts a row of ints and booleans."""
    match node:
        case Known(value=value):
            return value
        case Leaf(column=column, outer=outer, inner=inner):
            assert outer == inner
            value = row[column.path[0]]
            return outer.nulls if value is None else outer.holds(int(value))
        case AllOf(operands=operands):
            return all(holds(part, row) for part in operands)
        case AnyOf(operands=operands):
            return any(holds(part, row) for part in operands)
    raise AssertionError(node)


ROWS: list[dict[str, int | None]] = [
    {"a": a, "b": b, "f": f} for a in (None, 1, 2) for b in (None, 1, 2) for f in (None, 0, 1)
]


def truth(sql: str, row: dict[str, int | None]) -> bool | None:
    """SQL's own answer, worked out by hand in Python for conditions on a, b and f."""

    def equal(left: int | None, right: int) -> bool | None:
        return None if left is None else left == right

    def negate(value: bool | None) -> bool | None:
        return None if value is None else not value

    def both(left: bool | None, right: bool | None) -> bool | None:
        return False if left is False or right is False else None if left is None or right is None else True

    def either(left: bool | None, right: bool | None) -> bool | None:
        return negate(both(negate(left), negate(right)))

    a, b = equal(row["a"], 1), equal(row["b"], 1)
    f = None if row["f"] is None else bool(row["f"])
    table = {
        "NOT (a = 1)": negate(a),
        "NOT NOT (a = 1)": a,
        "NOT (a = 1 AND b = 1)": negate(both(a, b)),
        "NOT (a = 1 OR b = 1)": negate(either(a, b)),
        "NOT (NOT (a = 1) AND NOT (b = 1 OR f))": negate(both(negate(a), negate(either(b, f)))),
        "(a = 1) IS TRUE": a is True,
        "(a = 1) IS NOT TRUE": a is not True,
        "(a = 1) IS FALSE": a is False,
        "(a = 1) IS NOT FALSE": a is not False,
        "(a = 1) IS UNKNOWN": a is None,
        "(a = 1) IS NOT UNKNOWN": a is not None,
        "NOT ((a = 1) IS UNKNOWN)": a is not None,
        "(a = 1 AND b = 1) IS UNKNOWN": both(a, b) is None,
        "(a = 1 OR b = 1) IS UNKNOWN": either(a, b) is None,
        "(a = 1 AND b = 1) IS NOT FALSE": both(a, b) is not False,
        "NOT ((a = 1 OR b = 1) IS FALSE)": either(a, b) is not False,
        "((a = 1) IS UNKNOWN) IS UNKNOWN": False,
        "((a = 1) IS TRUE OR f) IS FALSE": either(a is True, f) is False,
        "(NOT f) IS NOT TRUE": f is not False,
        "f AND NOT f": both(f, negate(f)),
        "(f AND NOT f) IS UNKNOWN": both(f, negate(f)) is None,
        "(a = NULL) IS UNKNOWN": True,
        "NOT (a = NULL)": None,
        "(a IN (1, NULL)) IS UNKNOWN": a is not True,
        "(a NOT IN (1, NULL)) IS FALSE": a is True,
    }
    return table[sql]


@pytest.mark.parametrize(
    "sql",
    [
        "NOT (a = 1)",
        "NOT NOT (a = 1)",
        "NOT (a = 1 AND b = 1)",
        "NOT (a = 1 OR b = 1)",
        "NOT (NOT (a = 1) AND NOT (b = 1 OR f))",
        "(a = 1) IS TRUE",
        "(a = 1) IS NOT TRUE",
        "(a = 1) IS FALSE",
        "(a = 1) IS NOT FALSE",
        "(a = 1) IS UNKNOWN",
        "(a = 1) IS NOT UNKNOWN",
        "NOT ((a = 1) IS UNKNOWN)",
        "(a = 1 AND b = 1) IS UNKNOWN",
        "(a = 1 OR b = 1) IS UNKNOWN",
        "(a = 1 AND b = 1) IS NOT FALSE",
        "NOT ((a = 1 OR b = 1) IS FALSE)",
        "((a = 1) IS UNKNOWN) IS UNKNOWN",
        "((a = 1) IS TRUE OR f) IS FALSE",
        "(NOT f) IS NOT TRUE",
        "f AND NOT f",
        "(f AND NOT f) IS UNKNOWN",
        "(a = NULL) IS UNKNOWN",
        "NOT (a = NULL)",
        "(a IN (1, NULL)) IS UNKNOWN",
        "(a NOT IN (1, NULL)) IS FALSE",
    ],
)
def test_three_valued_logic_row_by_row(sql: str) -> None:
    """A bound predicate accepts exactly the rows of which SQL says TRUE."""
    bound = root(sql)
    for row in ROWS:
        assert holds(bound, row) == (truth(sql, row) is True), row


# -- patterns -------------------------------------------------------------------------------------------------


def like(pattern: str, *texts: str, escape: str = "\\") -> str:
    """y, n or ? for each text."""
    found = bind(n.Like(n.Ref(("s",)), pattern, escape), SCHEMA).root
    if isinstance(found, Unclear):
        return "?" * len(texts)
    assert isinstance(found, Leaf)
    return "".join(
        "y" if found.inner.holds(text.encode()) else "?" if found.outer.holds(text.encode()) else "n"
        for text in texts
    )


@pytest.mark.parametrize(
    ("pattern", "answers"),
    [
        ("ab%", "nyyn"),
        ("ab%%", "nyyn"),
        ("ab", "nynn"),
        ("%", "yyyy"),
        ("ab_", "n??n"),
        ("ab%c", "n??n"),
        ("%b", "????"),
        ("_b", "????"),
        ("", "nnnn"),
        ("ab\\%", "nnnn"),
        ("\\", "????"),
        ("a\\b%", "????"),
    ],
)
def test_pattern_is_a_prefix_as_far_as_it_goes(pattern: str, answers: str) -> None:
    assert like(pattern, "a", "ab", "abc", "b") == answers


def test_escaped_signs_are_letters() -> None:
    assert like("10\\%%", "10%", "10% off", "100") == "yyn"
    assert like("a\\_b%", "a_b", "axb") == "yn"
    assert like("a!%%", "a%x", "ax", escape="!") == "yn"
    assert like("a\\\\%", "a\\x", "ax") == "yn"
    assert like("a!!%", "a!x", "ax", escape="!") == "yn"


def test_pattern_without_a_prefix_accepts_null_nowhere() -> None:
    found = root("s LIKE '%'")
    assert isinstance(found, Leaf)
    assert not found.outer.nulls


def test_not_like_is_the_rest_but_null() -> None:
    found = root("s NOT LIKE 'ab%'")
    assert isinstance(found, Leaf)
    assert [found.inner.holds(text) for text in (b"a", b"ab", b"abz", b"ac")] == [True, False, False, True]
    assert not found.outer.nulls


def test_not_like_of_an_inexact_pattern_may_accept_what_the_prefix_has() -> None:
    found = root("s NOT LIKE 'ab%c'")
    assert isinstance(found, Leaf)
    assert found.outer.holds(b"abd")
    assert not found.inner.holds(b"abd")
    assert found.inner.holds(b"b")


def test_prefix_of_no_characters_is_not_null() -> None:
    found = root("startswith(s, '')")
    assert isinstance(found, Leaf)
    assert (len(found.outer.cuts), found.outer.inside_first, found.outer.nulls) == (0, True, False)


def test_prefix_of_emoji_counts_as_text() -> None:
    found = root("startswith(s, '😀')")
    assert isinstance(found, Leaf)
    assert [found.inner.holds(text.encode()) for text in ("😀", "😀x", "😁", "\ufffd")] == [True, True, False, False]


def test_like_on_what_is_no_text_is_left_to_spark() -> None:
    assert isinstance(root("a LIKE '1%'"), Unclear)


def test_null_prefix_is_never_true() -> None:
    found = bind(n.StartsWith(n.Ref(("s",)), n.Literal(None, pa.string())), SCHEMA).root
    assert found == Known(value=False, text=found.text) or isinstance(found, Known)
    negated = bind(n.Not(n.StartsWith(n.Ref(("s",)), n.Literal(None, pa.string()))), SCHEMA).root
    assert isinstance(negated, Known)
    assert not negated.value


# -- lists ----------------------------------------------------------------------------------------------------


def test_long_list_becomes_one_set() -> None:
    found = root(f"a IN ({', '.join(str(2 * i) for i in range(5000))})")
    assert isinstance(found, Leaf)
    assert len(found.outer.cuts) == 10_000
    assert found.outer is found.inner or found.outer == found.inner


def test_empty_list_is_false_of_every_row_also_null() -> None:
    """Spark folds an empty IN to FALSE, not to NULL: its NOT is true of NULL as well."""
    empty = n.In(n.Ref(("a",)), ())
    assert bind(empty, SCHEMA).root == Known(value=False, text=bind(empty, SCHEMA).root.text)
    found = bind(n.Not(empty), SCHEMA).root
    assert isinstance(found, Known)
    assert found.value


# -- what only Spark can tell ---------------------------------------------------------------------------------


@pytest.mark.parametrize("sql", ["a + 1 = 2", "abs(a) = 1", "a = b", "s RLIKE 'a.*'", "a % 2 = 0", "hash(a) = 1",
                                 "month(d) = 1", "s = 5", "upper(s) = 'A'", "a IN (b, 1)"])  # fmt: skip
def test_what_is_not_analysed_is_possible_and_never_certain(sql: str) -> None:
    assert isinstance(root(sql), Unclear)
    assert isinstance(root(f"NOT ({sql})"), Unclear)


def test_row_filter_keeps_every_part() -> None:
    """Pruning never settles a predicate: also what was folded or merged is evaluated on rows."""
    sql = "a < 99 AND upper(s) = 'X' AND a IN (1, 2) AND NOT (b = 3)"
    bound = bind(parse(sql), SCHEMA)
    for part in ("a < 99", "upper(s) = 'X'", "a IN (1, 2)", "b = 3"):
        assert part in bound.sql
    assert bind(parse(sql), SCHEMA, sql="as given").sql == "as given"


def test_conjuncts_are_the_parts_of_the_outer_and() -> None:
    assert len(bind(parse("a = 1 AND (b = 1 OR a = 2) AND f"), SCHEMA).conjuncts) == 3
    assert len(bind(parse("a = 1 OR b = 1"), SCHEMA).conjuncts) == 1
    assert bind(parse("a = 1 AND b = 1"), SCHEMA).columns == SCHEMA.columns[:2]


# -- errors ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql", ["nope = 1", "nope IS NULL", "abs(nope) = 1", "a = nope", "NOT nope", "year(nope) = 1", "true OR nope = 1",
            "nope IN (1)", "nope LIKE 'x%'"]
)  # fmt: skip
def test_unknown_column_is_refused_wherever_it_stands(sql: str) -> None:
    with pytest.raises(BindError, match="no column nope") as caught:
        root(sql)
    assert caught.value.column == "nope"


def test_condition_that_is_no_boolean_is_refused() -> None:
    with pytest.raises(BindError, match="stands as a condition") as caught:
        root("a AND f")
    assert caught.value.column == "a"
    with pytest.raises(BindError):
        root("date(d)")


def test_case_of_a_name_counts_only_when_asked_for() -> None:
    assert isinstance(root("A = 1"), Leaf)
    with pytest.raises(BindError) as caught:
        bind(parse("A = 1"), SCHEMA, case_sensitive=True)
    assert caught.value.nearest == ("a",)


def test_ambiguous_name_is_refused() -> None:
    schema = Schema.of(id=INT, ID=INT)
    with pytest.raises(BindError, match="ambiguous"):
        bind(parse("Id = 1"), schema)
    found = bind(parse("ID = 1"), schema, case_sensitive=True).root
    assert isinstance(found, Leaf)
    assert found.column.id == 2


def test_unknown_zone_is_refused() -> None:
    with pytest.raises(BindError, match="no time zone"):
        bind(parse("a = 1"), SCHEMA, time_zone="Nowhere")


def test_nested_fields_and_quoted_names_bind_by_path() -> None:
    schema = Schema((Column("x-1", ("s", "a b"), INT), Column("x-2", ("s.a",), INT)))
    found = bind(parse("S.`A B` = 1 AND `s.a` = 2"), schema)
    assert [column.id for column in found.columns] == ["x-1", "x-2"]


def test_struct_is_null_or_not_and_nothing_else() -> None:
    schema = Schema.of(s=pa.struct([("x", INT)]))
    found = bind(parse("s IS NULL"), schema).root
    assert isinstance(found, Leaf)
    assert found.outer.nulls
    with pytest.raises(BindError, match="cannot compare s, a struct<x:int>, with 1, an int"):
        bind(parse("s = 1"), schema)


def test_every_type_binds_null_tests() -> None:
    for type_ in (pa.bool_(), pa.uuid(), pa.decimal128(38, 9), pa.time64("ns"), pa.list_(INT), pa.binary(3)):
        found = bind(parse("x IS NOT NULL"), Schema.of(x=type_)).root
        assert isinstance(found, Leaf)
        assert found.outer.inside_first
        assert arrow([None], type_ if not pa.types.is_list(type_) else INT).null_count == 1
