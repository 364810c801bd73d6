"""What UPDATE and MERGE assign, and to which rows: columns, none twice; clauses in order; conditions taken apart."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from tamis.errors import BindError, ParseError
from tamis.predicate.assigning import assignments
from tamis.predicate.clause_text import parse_clause
from tamis.predicate.clauses import Clause, check_order, needs_one_match
from tamis.predicate.matching import KeyPair, Sides, matching
from tamis.predicate.schema import Column, Schema

SCHEMA = Schema(
    (
        Column(1, ("id",), pa.int64()),
        Column(2, ("st",), pa.struct([("x", pa.int32())])),
        Column(3, ("st", "x"), pa.int32()),
        Column(4, ("a b",), pa.string()),
    )
)
SIDES = Sides(Schema.of(id=pa.int64(), region=pa.string(), n=pa.int32()), ("id", "op", "r"), "t", "s")


def test_columns_have_the_tables_own_names_and_values_are_sql() -> None:
    found = assignments({"ID": 5, "T.st.X": "st.x + 1", "`a b`": None}, SCHEMA, alias="t")
    assert [(one.path, one.sql) for one in found] == [
        (("id",), "5"),
        (("st", "x"), "st.x + 1"),
        (("a b",), "NULL"),
    ]


def test_python_values_are_literals_of_their_own_types() -> None:
    found = assignments({"id": Decimal("1.50"), "a b": date(2024, 1, 15)}, SCHEMA)
    assert [one.sql for one in found] == ["1.50", "date '2024-01-15'"]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"idd": 1}, "Did you mean id"),
        ({"id": 1, "ID": 2}, "assigned twice"),
        ({"st": "null", "st.x": 1}, "assigned twice"),
        ({"st.x": 1, "st": "null"}, "assigned twice"),
        ({"a..b": 1}, "cannot read the column name"),
        ({"id": "  "}, "is empty"),
    ],
)
def test_a_column_that_cannot_be_set_is_an_error(values: dict[str, object], said: str) -> None:
    with pytest.raises(BindError, match=said):
        assignments(values, SCHEMA)


def test_values_and_names_of_no_type_are_errors() -> None:
    with pytest.raises(TypeError, match="the value of id is a list"):
        assignments({"id": [1]}, SCHEMA)
    with pytest.raises(TypeError, match="a column to set is an int"):
        assignments({1: 1}, SCHEMA)  # type: ignore[dict-item]


def test_case_counts_where_the_session_says_so() -> None:
    with pytest.raises(BindError):
        assignments({"ID": 1}, SCHEMA, case_sensitive=True)


def test_a_clause_behind_one_for_every_row_is_refused() -> None:
    every = Clause("matched", "delete")
    with pytest.raises(ValueError, match="can never apply"):
        check_order([every], Clause("matched", "delete", condition="s.x"))
    check_order([every], Clause("not matched", "insert", every=True))
    check_order([Clause("matched", "delete", condition="s.x")], every)


def test_several_matches_matter_unless_all_rows_that_match_are_deleted() -> None:
    """As Spark's MERGE checks it."""
    delete = Clause("matched", "delete")
    assert not needs_one_match([delete])
    assert not needs_one_match([Clause("not matched", "insert", every=True)])
    assert needs_one_match([Clause("matched", "delete", condition="s.x")])
    assert needs_one_match([Clause("matched", "delete", condition="s.x"), delete])
    assert needs_one_match([Clause("matched", "update", every=True)])


@pytest.mark.parametrize(
    ("on", "pairs", "alone"),
    [
        ("t.id = s.id", [("id", "s.id", False)], ()),
        ("s.id = id", [], ()),  # id is a column of both
        ("(t.id = s.id) and (t.region <=> s.r and (t.n between 1 and 5))",
         [("id", "s.id", False), ("region", "s.r", True)], ("t.n between 1 and 5",)),
        ("T.id = S.id and region = 'eu'", [("id", "S.id", False)], ("region = 'eu'",)),
        ("t.id = s.id or true", [], ()),
        ("t.id = s.id and t.n = 1 or s.op = 'all'", [], ()),
        ("not t.id = s.id", [], ()),
        ("t.id = s.id = true", [], ()),
        ("t.id = s.id in (true)", [], ()),
        ("t.id = s.id + t.n", [], ()),
        ("t.id = cast(s.r as int) + 1", [("id", "cast(s.r as int) + 1", False)], ()),
        ("t.id = (select max(id) from x)", [], ()),
        ("t.id = 5 and s.op = 'a'", [], ("t.id = 5",)),
        ("case when t.id = s.id and t.n = 1 then true else false end", [], ()),
        ("t.id = s.id -- and t.n = 1", [("id", "s.id", False)], ()),
        ("`t`.`id` = s.id", [("id", "s.id", False)], ()),
    ],
)  # fmt: skip
def test_a_condition_gives_what_surely_holds_of_every_match(
    on: str, pairs: list[tuple[str, str, bool]], alone: tuple[str, ...]
) -> None:
    """What is taken for a key, or for a condition on the target, prunes files: too much of it loses rows."""
    found = matching(on, SIDES)
    assert found.pairs == tuple(KeyPair((column,), source, safe) for column, source, safe in pairs)
    assert found.target_only == alone


def test_a_name_that_is_an_alias_and_a_column_is_nobodys() -> None:
    """`s.id` may be the field id of a struct s of the table."""
    schema = Schema((Column(1, ("id",), pa.int64()), Column(2, ("s",), pa.struct([("id", pa.int64())]))))
    assert matching("t.id = s.id", Sides(schema, ("id",), "t", "s")).pairs == ()


@pytest.mark.parametrize(
    "text",
    ["", "delete it", "s.x then", "then delete", "update", "update set", "update set a", "update set = 1", "insert",
     "insert (a)", "insert (a, b) values (1)", "insert (a) values (1) x", "insert (a,) values (1, 2)",
     "update set a = 1, a = 2", "merge *"],
)  # fmt: skip
def test_a_text_that_is_no_clause_is_an_error_with_its_place(text: str) -> None:
    with pytest.raises(ParseError):
        parse_clause(text)


def test_then_and_commas_inside_of_expressions_end_nothing() -> None:
    clause = parse_clause("case when s.a then true else false end then update set n = if(s.a, 1, 2), m = (s.b = 1)")
    assert clause.condition == "case when s.a then true else false end"
    assert clause.values == {"n": "if(s.a, 1, 2)", "m": "(s.b = 1)"}
