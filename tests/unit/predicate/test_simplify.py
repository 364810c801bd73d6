"""Joined conditions accept the same rows, with fewer parts."""

import pyarrow as pa
import pytest

from tamis.predicate.bind import bind
from tamis.predicate.bound import AllOf, AnyOf, Bound, Known, Leaf, Unclear, columns_of
from tamis.predicate.schema import Column, Schema
from tamis.predicate.simplify import MAX_TEXT, all_of, any_of, complement
from tamis.predicate.sql.parse import parse
from tamis.predicate.values import ValueSet

A, B = Column(1, ("a",), pa.int32()), Column(2, ("b",), pa.int32())
SCHEMA = Schema((A, B))
YES, NO, PERHAPS = Known(value=True), Known(value=False), Unclear("f(a)", (A,))


def leaf(column: Column, found: ValueSet, text: str = "t") -> Leaf:
    return Leaf(column, found, found, text)


def root(sql: str) -> Bound:
    return bind(parse(sql), SCHEMA).root


@pytest.mark.parametrize("sql", ["a > 5 AND a < 3", "a = 1 AND a = 2", "a IN (1, 2) AND a > 2", "a IS NULL AND a = 1",
                                 "a = 1 AND b = 1 AND a = 2", "a < 5 AND NOT (a < 5)", "false", "a = 1 AND false",
                                 "NOT true", "a != a AND 1 = 0", "a < NULL", "NULL"])  # fmt: skip
def test_contradiction_is_known_to_be_false(sql: str) -> None:
    found = root(sql)
    assert isinstance(found, Known)
    assert not found.value


@pytest.mark.parametrize("sql", ["true", "a IS NULL OR a IS NOT NULL", "a = 1 OR (a = 1) IS NOT TRUE", "1 = 1",
                                 "a <=> 1 OR NOT (a <=> 1)", "true OR a = 1", "(a < NULL) IS UNKNOWN"])  # fmt: skip
def test_tautology_is_known_to_be_true(sql: str) -> None:
    found = root(sql)
    assert isinstance(found, Known)
    assert found.value


def test_two_halves_are_not_null_and_not_true() -> None:
    """`a < 5 OR a >= 5` is NULL where a is."""
    found = root("a < 5 OR a >= 5")
    assert isinstance(found, Leaf)
    assert found.outer == found.inner == ValueSet.not_null()


def test_conditions_on_one_column_become_one() -> None:
    found = root("a >= 1 AND b = 1 AND a < 3")
    assert isinstance(found, AllOf)
    first, second = found.operands
    assert isinstance(first, Leaf)
    assert isinstance(second, Leaf)
    assert (first.column, first.outer, first.text) == (A, ValueSet.between(1, 3), "a >= 1 AND a < 3")
    assert second.column == B


def test_nested_ands_are_one_and() -> None:
    found = root("a = 1 AND (b = 2 AND (f(a) AND f(b)))")
    assert isinstance(found, AllOf)
    assert len(found.operands) == 4


def test_or_within_and_stays() -> None:
    found = root("(a = 1 OR b = 2) AND a = 3")
    assert isinstance(found, AllOf)
    assert isinstance(found.operands[0], AnyOf)


def test_constants_go_and_decide() -> None:
    five = leaf(A, ValueSet.of_keys([5]))
    assert all_of([YES, five]) == five
    assert all_of([five, NO]) == NO
    assert any_of([NO, five]) == five
    assert any_of([five, YES]) == YES
    assert all_of([]) == Known(value=True)
    assert any_of([]) == Known(value=False)
    assert all_of([YES, YES]) == YES
    assert any_of([NO, NO]) == NO


def test_leaf_that_only_may_accept_everything_is_no_constant() -> None:
    open_leaf = Leaf(A, ValueSet.everything(), ValueSet.nothing(), "t")
    assert all_of([open_leaf]) == open_leaf
    assert any_of([open_leaf]) == open_leaf


def test_leaf_that_accepts_nothing_is_false_and_keeps_its_text() -> None:
    assert all_of([leaf(A, ValueSet.nothing(), "a > a")]) == Known(value=False, text="a > a")


def test_inexact_leaves_merge_side_by_side() -> None:
    wide, narrow = ValueSet.between(0, 10), ValueSet.between(2, 8)
    one, two = Leaf(A, wide, narrow, "f"), leaf(A, ValueSet.between(5, 20), "g")
    both, either = all_of([one, two]), any_of([one, two])
    assert isinstance(both, Leaf)
    assert isinstance(either, Leaf)
    assert (both.outer, both.inner) == (ValueSet.between(5, 10), ValueSet.between(5, 8))
    assert (either.outer, either.inner) == (ValueSet.between(0, 20), ValueSet.between(2, 20))


def test_complement_swaps_what_is_sure_and_what_may_be() -> None:
    wide, narrow = ValueSet.between(0, 10), ValueSet.between(2, 8)
    found = complement(Leaf(A, wide, narrow, "f"))
    assert isinstance(found, Leaf)
    assert (found.outer, found.inner) == (narrow.complement(), wide.complement())
    assert found.outer.nulls
    assert found.text == "(f) IS NOT TRUE"


def test_complement_of_what_is_unclear_is_unclear() -> None:
    found = complement(PERHAPS)
    assert isinstance(found, Unclear)
    assert found.columns == (A,)


def test_complement_follows_de_morgan() -> None:
    one, two = leaf(A, ValueSet.of_keys([1])), leaf(B, ValueSet.of_keys([2]))
    found = complement(all_of([one, two]))
    assert isinstance(found, AnyOf)
    assert [part.outer for part in found.operands if isinstance(part, Leaf)] == [
        one.outer.complement(),
        two.outer.complement(),
    ]
    assert complement(found) != found
    assert complement(YES).value is False  # type: ignore[union-attr] # a Known
    assert complement(NO).value is True  # type: ignore[union-attr] # a Known


def test_text_of_a_huge_condition_is_abbreviated() -> None:
    found = any_of([Unclear(f"f(a, {place})", (A,)) for place in range(5000)])
    assert isinstance(found, AnyOf)
    assert len(found.text) < MAX_TEXT + 50
    assert "5000 parts" in found.text


def test_thousands_of_conditions_on_one_column_become_one_quickly() -> None:
    found = any_of([leaf(A, ValueSet.of_keys([place * 2])) for place in range(20_000)])
    assert isinstance(found, Leaf)
    assert len(found.outer.cuts) == 40_000


def test_columns_come_once_in_order_of_appearance() -> None:
    assert columns_of(root("b = 1 OR (a = 1 AND f(b))")) == (B, A)
    assert columns_of(YES) == ()
    assert columns_of(root("coalesce(b, a) = 1")) == (B, A)
