"""A wide OR is judged by where its branches lie: the verdicts are those of the branches one by one."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pyarrow as pa
from hypothesis import event, given
from hypothesis import strategies as st

from tamis.predicate.bound import AllOf, AnyOf, Bound, Leaf, Unclear
from tamis.predicate.keys import NAN_KEY, Key, float_key
from tamis.predicate.schema import Column
from tamis.predicate.values import ValueSet
from tamis.sieve import boxes, judge
from tamis.sieve.domain import BucketRange, Domain, Facts, Range
from tamis.sieve.order import encode
from tamis.sieve.transforms.bucket import ICEBERG

X, F, S = Column(1, ("x",), pa.int64()), Column(2, ("f",), pa.float64()), Column(3, ("s",), pa.string())
FLOATS = [float("-inf"), -1.5, 0.0, 2.5, float("inf")]
KEYS: dict[Column, list[Key]] = {
    X: [*range(-4, 12), (1 << 63) - 1, -(1 << 63)],
    F: [*map(float_key, FLOATS), NAN_KEY],
    S: [b"", b"a", b"a\0", b"ab", b"b", b"\xc3\xa9"],
}
VALUES: dict[Column, list[object]] = {X: [*range(-4, 12)], F: [*FLOATS], S: ["", "a", "a\0", "ab", "b", "é"]}


@st.composite
def leaves(draw: st.DrawFn, column: Column) -> Leaf:
    keys = st.sampled_from(KEYS[column])
    ends = st.none() | keys

    def some() -> ValueSet:
        points = ValueSet.of_keys(draw(st.lists(keys, max_size=3)))
        between, below = ValueSet.between(draw(ends), draw(ends)), ValueSet.between(None, draw(keys))
        made = draw(st.sampled_from([points, points, between, below, below.complement().without_null()]))
        made = made.union(ValueSet.null()) if draw(st.integers(0, 5)) == 5 else made
        return made.complement() if draw(st.integers(0, 5)) == 5 else made

    outer = some()
    inner = outer if draw(st.booleans()) else outer.intersect(some())
    return Leaf(column, outer, inner, "leaf")


@st.composite
def branches(draw: st.DrawFn) -> Bound:
    columns = draw(st.lists(st.sampled_from([X, F, S]), min_size=1, max_size=3, unique=True))
    parts: tuple[Bound, ...] = tuple(draw(leaves(column)) for column in columns)
    kind = draw(st.integers(0, 9))
    if kind == 9:
        return draw(st.sampled_from([Unclear("f(x)", (X,)), parts[0], AllOf((*parts, Unclear("f(x)")), "and")]))
    return AllOf(parts, "and")


@st.composite
def facts(draw: st.DrawFn) -> Facts:
    count = draw(st.integers(1, 12))
    found = Facts(count, {})
    for column in (X, F, S):
        if draw(st.integers(0, 5)) == 5:
            continue
        may = np.array(draw(st.lists(st.sampled_from([1, 1, 2, 3, 4, 5, 7]), min_size=count, max_size=count)))
        ranges = []
        for _ in range(draw(st.integers(0, 2))):
            value = st.sampled_from(VALUES[column]) | st.none()
            pairs = draw(st.lists(st.tuples(value, value), min_size=count, max_size=count))
            lower, upper = (
                encode(pa.array([pair[side] for pair in pairs], column.type), column.type) for side in (0, 1)
            )
            ranges.append(Range(lower, upper, draw(st.booleans())))
        hashes = ()
        if column is X and draw(st.integers(0, 2)) == 2:
            bucket = np.array(draw(st.lists(st.integers(0, 3), min_size=count, max_size=count)))
            known = np.array(draw(st.lists(st.booleans(), min_size=count, max_size=count)))
            hashes = (BucketRange(ICEBERG, 4, bucket, np.minimum(bucket + draw(st.integers(0, 1)), 3), known),)
        found.domains[column.id] = Domain(may & 2 > 0, may & 4 > 0, may & 1 > 0, tuple(ranges), hashes)
    return found


@given(
    st.lists(branches(), min_size=2, max_size=12), facts(), st.sampled_from([1, 3, 32]), st.sampled_from([4, 1 << 19])
)
def test_boxes_are_judged_as_branches_one_by_one(parts: list[Bound], known: Facts, first: int, chunk: int) -> None:
    node = AnyOf(tuple(parts), "or")
    with patch.object(judge, "MANY", 1 << 60):
        slow = judge.judge(node, known)
    with (
        patch.object(judge, "MANY", 1),
        patch.object(boxes, "FIRST_ROUND", first),
        patch.object(boxes, "CHUNK", chunk),
    ):
        judge._kept_boxes.cache_clear()
        fast = judge.judge(node, known)
    judge._kept_boxes.cache_clear()
    assert fast.possible.tolist() == slow.possible.tolist()
    assert fast.certain.tolist() == slow.certain.tolist()
    event(f"buckets: {any(domain.buckets for domain in known.domains.values())}")
    event(f"some certain: {bool(slow.certain.any())}, some impossible: {not slow.possible.all()}")


def test_branches_that_are_open_on_one_side_reach_every_file_there() -> None:
    """`x < 3` begins before every cut, and `x >= 3` ends behind every one."""
    count = judge.MANY
    below = [ValueSet.between(None, key) for key in range(count)]
    above = [one.complement().without_null() for one in below]
    for sets in (below, above):
        parts = [AllOf((Leaf(X, x, x, "x"), Leaf(S, s, s, "s")), "and") for x in sets for s in [ValueSet.not_null()]]
        values = encode(pa.array(range(-1, count + 1), pa.int64()), pa.int64())
        every = np.ones(len(values), np.bool_)
        known = Facts(len(values), {X.id: Domain(~every, ~every, every, (Range(values, values),))})
        found = judge.judge(AnyOf(tuple(parts), "or"), known)
        assert found.possible.tolist() == [any(one.holds(value) for one in sets) for value in range(-1, count + 1)]


def test_wide_or_is_judged_as_boxes() -> None:
    """Otherwise the test above compares one way with itself."""
    parts = [
        AllOf((Leaf(X, one, one, "x"), Leaf(S, one, one, "s")), "and") for one in [ValueSet.of_keys([1])] * judge.MANY
    ]
    found, others = judge._kept_boxes(judge.Same(AnyOf(tuple(parts), "or")))
    assert found is not None
    assert not others
