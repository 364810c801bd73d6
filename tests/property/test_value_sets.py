"""Sets of values are sets: every operation agrees with Python's own, key by key."""

from __future__ import annotations

from functools import reduce

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tamis.predicate.keys import Key, KeySpan
from tamis.predicate.values import ValueSet

SPAN = KeySpan(-20, 20)
NUMBERS = range(-22, 23)
WORDS = [bytes(word) for word in ((), (0,), (0, 0), (1,), (1, 0), (1, 1), (2,), (255,), (255, 255))]


def _sets(keys: SearchStrategy[Key]) -> SearchStrategy[ValueSet]:
    made = st.one_of(
        st.builds(ValueSet.of_keys, st.lists(keys, max_size=6)),
        st.builds(ValueSet.between, st.none() | keys, st.none() | keys),
        st.sampled_from([ValueSet.nothing(), ValueSet.null(), ValueSet.not_null(), ValueSet.everything()]),
    )
    return st.recursive(
        made,
        lambda inner: st.one_of(
            st.builds(ValueSet.union, inner, inner),
            st.builds(ValueSet.intersect, inner, inner),
            st.builds(ValueSet.complement, inner),
        ),
        max_leaves=6,
    )


INTS = _sets(st.integers(-20, 20))
TEXTS = _sets(st.sampled_from(WORDS))


def _members(found: ValueSet, universe: list[Key]) -> tuple[list[bool], bool]:
    return [found.holds(key) for key in universe], found.nulls


@given(st.one_of(st.tuples(INTS, INTS, st.just(list(NUMBERS))), st.tuples(TEXTS, TEXTS, st.just(list(WORDS)))))
def test_operations_agree_with_logic(case: tuple[ValueSet, ValueSet, list[Key]]) -> None:
    one, two, universe = case
    (a, a_null), (b, b_null) = _members(one, universe), _members(two, universe)
    assert _members(one.union(two), universe) == ([x or y for x, y in zip(a, b, strict=True)], a_null or b_null)
    assert _members(one.intersect(two), universe) == ([x and y for x, y in zip(a, b, strict=True)], a_null and b_null)
    assert _members(one.complement(), universe) == ([not x for x in a], not a_null)
    assert _members(one.without_null(), universe) == (a, False)


@given(
    st.one_of(
        st.tuples(st.lists(INTS, max_size=7), st.just(list(NUMBERS))),
        st.tuples(st.lists(TEXTS, max_size=7), st.just(list(WORDS))),
    )
)
def test_many_sets_at_once_are_the_same_as_one_after_the_other(case: tuple[list[ValueSet], list[Key]]) -> None:
    sets, universe = case
    members = [_members(one, universe) for one in sets]
    rows = list(zip(*(found for found, _ in members), strict=True)) or [()] * len(universe)
    either, every = ValueSet.union_of(sets), ValueSet.intersection_of(sets)
    assert _members(either, universe) == ([any(row) for row in rows], any(null for _, null in members))
    assert _members(every, universe) == ([all(row) for row in rows], all(null for _, null in members))
    assert either == reduce(ValueSet.union, sets, ValueSet.nothing())
    assert every == reduce(ValueSet.intersect, sets, ValueSet.everything())


@given(INTS, INTS)
def test_equal_members_are_equal_sets(one: ValueSet, two: ValueSet) -> None:
    """Two ways to say one set: else a tautology would go unseen. Complete within the keys that were drawn."""
    same = _members(one, list(NUMBERS)) == _members(two, list(NUMBERS))
    assert (one == two) == same
    if same:
        assert hash(one) == hash(two)


@given(INTS)
def test_cuts_are_strictly_ascending(found: ValueSet) -> None:
    cuts = found.cuts.tolist()
    assert cuts == sorted(set(cuts))


@given(INTS)
def test_clipping_changes_nothing_within_the_span(found: ValueSet) -> None:
    clipped = found.clip(SPAN)
    assert [clipped.holds(key) for key in range(-20, 21)] == [found.holds(key) for key in range(-20, 21)]
    assert all(-20 < cut <= 20 for cut in clipped.cuts.tolist())


@given(INTS, st.integers(0, 50))
def test_points_are_all_members_or_too_many(found: ValueSet, limit: int) -> None:
    members = [key for key in range(-20, 21) if found.holds(key)]
    points = found.points(limit, SPAN)
    if points is not None:
        assert points.tolist() == members
        assert len(members) <= limit
    else:
        assert len(members) > limit


@given(TEXTS)
def test_points_of_text_are_members(found: ValueSet) -> None:
    points = found.points(10, KeySpan(b"", None))
    if points is not None:
        assert all(found.holds(key) for key in points.tolist())
        assert {key for key in WORDS if found.holds(key)} <= set(points.tolist())
