"""Ranges for several key columns, how many keys a filter has, and filters of which nothing can be known."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from tamis.errors import FilterInputError
from tamis.predicate.schema import Schema
from tamis.sieve.domain import ColumnStats, Facts, stats_domain
from tamis.sieve.join.bloom import Bloom
from tamis.sieve.join.runtime import Collected, RuntimeFilter

SCHEMA = Schema.of(a=pa.int64(), s=pa.string(), m=pa.list_(pa.int32()))


def facts(lower: list[int | None], upper: list[int | None]) -> Facts:
    """Bounds of `a`, without nulls."""
    none = pa.array([0] * len(lower), pa.int64())
    stats = ColumnStats(pa.array(lower, pa.int64()), pa.array(upper, pa.int64()), none)
    return Facts(len(lower), {1: stats_domain(SCHEMA.columns[0], stats, len(lower))})


def test_each_column_of_a_composite_key_prunes_by_its_own_range() -> None:
    bound = RuntimeFilter.of_ranges(["a", "s"], [(5, 9), ("b", "d")]).bind(SCHEMA)
    assert bound.possible(facts([0, 0, 9, 10], [4, 5, 20, 20])).tolist() == [False, True, True, False]
    assert bound.text == "(a, s) in join keys ([5 … 9], [b … d])"


def test_column_whose_range_cannot_be_used_leaves_the_others() -> None:
    bound = RuntimeFilter.of_ranges(["a", "m"], [(5, 9), (1, 2)]).bind(SCHEMA)
    assert bound.possible(facts([0], [4])).tolist() == [False]
    assert len(bound.notes) == 1
    assert "have no order" in bound.notes[0]


def test_null_may_be_a_key_of_every_column_if_nulls_match() -> None:
    bound = RuntimeFilter.of_ranges(["a", "s"], [(5, 9), (None, None)], null_safe=True).bind(SCHEMA)
    assert bound.possible(Facts(1, {})).tolist() == [True]
    assert "or null" in bound.text


def test_ranges_need_a_column() -> None:
    with pytest.raises(FilterInputError, match="at least one column"):
        RuntimeFilter.of_ranges([], [])


def test_keys_are_counted_where_they_are_known() -> None:
    assert RuntimeFilter.of("a", [1, 1, None, 2]).keys == 2
    assert RuntimeFilter.of_range("a", 1, 2).keys is None
    assert RuntimeFilter.of_bloom("a", Bloom.of(np.array([1]))).keys is None
    counted = replace(RuntimeFilter.of_range("a", 1, 2), collected=Collected(70, exact=False, seconds=1.0))
    assert counted.keys == counted.bind(SCHEMA).keys == 70


def test_build_side_stays_behind_when_a_filter_is_bound() -> None:
    """A bound filter travels to executors; a DataFrame cannot."""
    bound = replace(RuntimeFilter.of("a", [1]), dataframe=object()).bind(SCHEMA)
    assert not hasattr(bound, "dataframe")


@pytest.mark.parametrize(("lower", "said"), [([None, None], "no bounds for a in these files"), ([None, 3], None)])
def test_filter_is_blind_if_statistics_are_there_and_say_nothing(lower: list[int | None], said: str | None) -> None:
    assert RuntimeFilter.of("a", [1]).bind(SCHEMA).blind(facts(lower, lower)) == said


def test_filter_without_any_key_is_not_blind() -> None:
    """It drops every file, whatever is known of it."""
    assert RuntimeFilter.of("a", []).bind(SCHEMA).blind(facts([None], [None])) is None
