"""Join keys where ordinary values end: NaN in tuples, the ends of 64 bits, bloom filters that cannot be asked."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tamis.predicate.keys import INT64_MAX, INT64_MIN
from tamis.predicate.schema import Schema
from tamis.sieve.domain import ColumnStats, Facts, stats_domain
from tamis.sieve.join.bloom import Bloom
from tamis.sieve.join.runtime import BoundRuntimeFilter, RuntimeFilter
from tamis.sieve.order import encode

NAN, INF = float("nan"), float("inf")
PAIRS = Schema.of(a=pa.float64(), b=pa.int64())


def kept(found: BoundRuntimeFilter, facts: Facts) -> list[int]:
    return np.flatnonzero(found.possible(facts)).tolist()


def floats(*files: tuple[float | None, float | None, int | None], b: list[int] | None = None) -> Facts:
    """Files of five rows with `a` between two bounds and so many NaN in it, and all of `b` 1, or as given."""
    count = len(files)
    lower, upper = (pa.array([one[side] for one in files], pa.float64()) for side in (0, 1))
    none, five = pa.array([0] * count), pa.array([5] * count)
    a = ColumnStats(lower, upper, none, pa.array([one[2] for one in files], pa.int64()), five)
    ones = pa.array([1] * count if b is None else b)
    stats = {1: a, 2: ColumnStats(ones, ones, none, None, five)}
    return Facts(count, {column.id: stats_domain(column, stats[column.id], count) for column in PAIRS.columns})  # type: ignore[index] # ids are 1 and 2


def longs(type_: pa.DataType, *files: tuple[int, int]) -> tuple[Schema, Facts]:
    schema, count = Schema.of(a=type_, b=pa.int64()), len(files)
    lower, upper = (pa.array([one[side] for one in files], type_) for side in (0, 1))
    none, ones = pa.array([0] * count), pa.array([1] * count)
    first, second = schema.columns
    domains = {
        first.id: stats_domain(first, ColumnStats(lower, upper, none), count),
        second.id: stats_domain(second, ColumnStats(ones, ones, none), count),
    }
    return schema, Facts(count, domains)


# -- NaN in tuples --------------------------------------------------------------------------------------------


def pairs(*rows: tuple[float, int]) -> BoundRuntimeFilter:
    keys = {"a": [a for a, _ in rows], "b": [b for _, b in rows]}
    return RuntimeFilter.of(["a", "b"], keys).bind(PAIRS)


def test_tuple_with_nan_is_found_beside_every_kind_of_ordinary_values() -> None:
    """NaN stands behind the last key: a file that may hold it looks there, wherever its bounds are."""
    found = pairs((2.0, 9), (NAN, 1), (3.0, 9))
    nothing_else, below, above, around = (None, None, 5), (0.0, 1.0, 1), (8.0, 9.0, 1), (0.0, 9.0, 1)
    unknown, counted_none, unbounded = (0.0, 9.0, None), (0.0, INF, 0), (None, None, 0)
    files = floats(nothing_else, below, above, around, unknown, counted_none, unbounded)
    assert kept(found, files) == [0, 1, 2, 3, 4]


def test_tuple_with_an_ordinary_value_does_not_fit_a_file_of_nan_alone() -> None:
    found = pairs((2.0, 1), (NAN, 9))
    assert kept(found, floats((None, None, 5), (2.0, 2.0, 0), (2.0, 2.0, 4), (3.0, 4.0, 4))) == [1, 2]


def test_nan_of_a_tuple_must_meet_its_own_other_half() -> None:
    found = pairs((NAN, 7), (2.0, 1))
    files = [(None, None, 5), (3.0, 9.0, 4), (4.0, 9.0, 1)] * 2
    assert kept(found, floats(*files, b=[7, 7, 7, 1, 1, 1])) == [0, 1, 2]
    assert kept(found, floats((2.0, 2.0, 1), (2.0, 2.0, 1), b=[1, 7])) == [0, 1]


def test_files_that_differ_in_nan_alone_are_tested_apart_where_the_budget_is_short() -> None:
    """Files alike are tested once: whether they may hold NaN is part of their likeness."""
    found = pairs((NAN, 1), (2.0, 9), (3.0, 9), (4.0, 9))
    assert found.tuples is not None
    facts = floats(*[(2.5, 9.0, 0), (2.5, 9.0, 1)] * 50)
    possible, untested = found.tuples.possible(facts, budget=10)
    assert untested == 0
    assert np.flatnonzero(possible).tolist() == list(range(1, 100, 2))


# -- the ends of 64 bits --------------------------------------------------------------------------------------

ENDS = ((INT64_MIN, INT64_MIN), (INT64_MIN + 1, 0), (1, INT64_MAX - 1), (INT64_MAX, INT64_MAX))


@pytest.mark.parametrize(
    ("keys", "files"),
    [
        ([INT64_MIN], [0]),
        ([INT64_MAX], [3]),
        ([INT64_MIN, INT64_MAX], [0, 3]),
        ([INT64_MAX - 1, INT64_MAX], [2, 3]),
        ([INT64_MIN, INT64_MIN + 1], [0, 1]),
        ([0, INT64_MAX], [1, 3]),
    ],
    ids=str,
)
def test_keys_at_the_ends_of_64_bits_are_keys_like_others(keys: list[int], files: list[int]) -> None:
    """Nothing lies above the greatest key, and nothing below the least: the run of either has no other end."""
    schema, facts = longs(pa.int64(), *ENDS)
    assert kept(RuntimeFilter.of("a", keys).bind(schema), facts) == files
    tuples = RuntimeFilter.of(["a", "b"], {"a": [*keys, 5], "b": [1] * len(keys) + [9]}).bind(schema)
    assert kept(tuples, facts) == files
    bloom = RuntimeFilter.of_bloom("a", Bloom.of(np.array(keys), false_positives=1e-6)).bind(schema)
    assert set(files) <= set(kept(bloom, facts))
    assert {0, 3} & set(kept(bloom, facts)) == {0, 3} & set(files), "a single value is looked up"


@pytest.mark.parametrize("key", [INT64_MIN, INT64_MIN + 807, INT64_MAX, INT64_MAX - 807, INT64_MAX - 808], ids=str)
def test_nanoseconds_at_the_ends_of_64_bits_equal_all_of_their_microsecond(key: int) -> None:
    """The last microseconds reach beyond the 64 bits on either side: what is left of them is still theirs."""
    ns = pa.timestamp("ns")
    micro = key // 1000
    low, high = max(micro * 1000, INT64_MIN), min(micro * 1000 + 999, INT64_MAX)
    inside, beside = [(low, low), (high, high), (low, high)], [(0, 999)]
    beside += [(low - 1, low - 1)] if low > INT64_MIN else []
    beside += [(high + 1, high + 1)] if high < INT64_MAX else []
    schema, facts = longs(ns, *inside, *beside)
    assert kept(RuntimeFilter.of("a", pa.array([key], ns)).bind(schema), facts) == [0, 1, 2]
    both = {"a": pa.array([key, 5_000_000], ns), "b": [1, 9]}
    assert kept(RuntimeFilter.of(["a", "b"], both).bind(schema), facts) == [0, 1, 2]


# -- bloom filters that cannot be asked -----------------------------------------------------------------------


def full() -> Bloom:
    bloom = Bloom.sized(1)
    bloom.add(np.arange(10_000))
    return bloom


@pytest.mark.parametrize(
    ("bloom", "given"),
    [
        (full(), pa.int64()),
        (Bloom.of(encode(pa.array([b"\1"]), pa.binary()).keys), pa.int64()),
        (Bloom.of(encode(pa.array([5.0]), pa.float64()).keys), pa.float64()),
    ],
    ids=["full", "over bytes", "over another type"],
)
def test_bloom_filter_that_cannot_be_asked_leaves_its_range_to_prune(bloom: Bloom, given: pa.DataType) -> None:
    """Its answer would mean nothing, the range's still does; and NULL counts as the join says."""
    schema, facts = longs(pa.int64(), (0, 4), (5, 5), (7, 7), (9, 10), (11, 20))
    found = RuntimeFilter.of_bloom("a", bloom, 5, 10, type=given).bind(schema)
    assert found.prunes
    assert found.bloom is None
    assert len(found.notes) == 1
    assert kept(found, facts) == [1, 2, 3]
    column = schema.columns[0]
    only_null = stats_domain(column, ColumnStats(null_count=pa.array([3]), value_count=pa.array([3])), 1)
    for null_safe in (False, True):
        safe = RuntimeFilter.of_bloom("a", bloom, 5, 10, type=given, null_safe=null_safe).bind(schema)
        assert bool(kept(safe, Facts(1, {column.id: only_null}))) is null_safe


def test_ends_of_keys_are_told_column_by_column_where_there_are_some() -> None:
    """A reader of files asks their statistics for them: a NULL or a key without order bounds nothing."""
    keys = RuntimeFilter.of(["a", "b"], pa.table({"a": [3, 1, None], "b": ["x", "z", "y"]}))
    told = [(path, low.as_py(), high.as_py(), few) for path, low, high, few in keys.ends()]
    assert told == [(("a",), 1, 3, None), (("b",), "x", "z", None)]
    lists = [
        few and few.to_pylist() for *_, few in RuntimeFilter.of(["a", "b"], {"a": [3, 1, 3], "b": [1, 2, 3]}).ends(2)
    ]
    assert lists == [[1, 3], None]
    assert not list(RuntimeFilter.of("a", pa.array([], pa.int64())).ends())
    assert [path for path, *_ in RuntimeFilter.of_ranges(["a", "b"], [(1, None), (2, 5)]).ends()] == [("b",)]
    assert [high.as_py() for _, _, high, _ in RuntimeFilter.of_bloom("a", Bloom.of(np.array([7])), 7, 7).ends()] == [
        7
    ]
