"""Statistics as domains: what is missing widens, what is wrong says nothing."""

import math
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.predicate.keys import decimal_bytes, float_key
from tamis.predicate.schema import Column
from tamis.sieve.domain import BucketRange, ColumnStats, Domain, Facts, stats_domain, trusted_domain
from tamis.sieve.transforms.bucket import ICEBERG
from tests.making.harness import arrow

X = Column(1, ("x",), pa.int32())
F = Column(2, ("f",), pa.float64())
NESTED = Column(3, ("s", "x"), pa.int32())


def counts(*values: int | None) -> pa.Array:
    return pa.array(values, pa.int64())


def may(domain: Domain) -> list[tuple[bool, bool, bool]]:
    """For each file: may it hold NULL, NaN, an ordinary value."""
    return list(zip(domain.may_null.tolist(), domain.may_nan.tolist(), domain.may_value.tolist(), strict=True))


def bounds(domain: Domain) -> list[tuple[Any, Any]]:
    """The range of each file; None where nothing is said."""
    assert len(domain.ranges) <= 1
    found: list[list[Any]] = []
    for side in (domain.ranges[0].lower, domain.ranges[0].upper) if domain.ranges else (None, None):
        if side is None:
            found.append([None] * len(domain))
            continue
        listed = side.keys.tolist() if isinstance(side.keys, np.ndarray) else side.keys.to_pylist()
        found.append([key if valid else None for key, valid in zip(listed, side.valid, strict=True)])
    return list(zip(*found, strict=True))


def test_nothing_known_is_any() -> None:
    assert may(stats_domain(X, ColumnStats(), 2)) == [(True, False, True)] * 2
    assert may(stats_domain(F, ColumnStats(), 1)) == [(True, True, True)]
    assert bounds(stats_domain(X, ColumnStats(), 2)) == [(None, None)] * 2


def test_null_count_says_whether_null_occurs() -> None:
    found = stats_domain(X, ColumnStats(null_count=counts(0, 3, None, -1)), 4)
    assert [null for null, _, _ in may(found)] == [False, True, True, True]


def test_missing_null_count_never_means_zero() -> None:
    """Iceberg's strict evaluators take a count that is missing for none."""
    assert may(stats_domain(X, ColumnStats(value_count=counts(5)), 1)) == [(True, False, True)]


def test_all_null_column_holds_no_value() -> None:
    stats = ColumnStats(null_count=counts(5, 4, 5), value_count=counts(5, 5, None))
    assert [value for _, _, value in may(stats_domain(X, stats, 3))] == [False, True, True]


def test_negative_counts_are_unknown() -> None:
    """Some writers put -1 where they did not count: it must not look like a column without values."""
    assert may(stats_domain(X, ColumnStats(value_count=counts(-1), null_count=counts(0)), 1)) == [
        (False, False, True)
    ]
    stats = ColumnStats(value_count=counts(5), null_count=counts(-1), nan_count=counts(5))
    assert may(stats_domain(F, stats, 1)) == [(True, True, True)]


def test_field_of_a_struct_may_always_be_null() -> None:
    """Writers disagree whether a null struct's fields are counted."""
    assert may(stats_domain(NESTED, ColumnStats(null_count=counts(0)), 1)) == [(True, False, True)]


def test_counts_of_nan_say_whether_nan_and_whether_numbers_occur() -> None:
    stats = ColumnStats(
        null_count=counts(0, 0, 0, 2, None, 0),
        nan_count=counts(0, 5, 2, 3, 5, -1),
        value_count=counts(5, 5, 5, 5, 5, 5),
    )
    assert may(stats_domain(F, stats, 6)) == [
        (False, False, True),
        (False, True, False),
        (False, True, True),
        (True, True, False),
        (True, True, True),
        (False, True, True),
    ]


def test_one_ordinary_value_beside_nan_and_null_is_a_value() -> None:
    """Iceberg's own evaluators go by the same counts; one too few, and a whole file's last row is lost."""
    stats = ColumnStats(null_count=counts(0, 1, 2, 2), nan_count=counts(4, 3, 2, 3), value_count=counts(5, 5, 5, 5))
    assert may(stats_domain(F, stats, 4)) == [
        (False, True, True),
        (True, True, True),
        (True, True, True),
        (True, True, False),
    ]
    only = ColumnStats(null_count=counts(4, 5), value_count=counts(5, 5))
    assert [value for _, _, value in may(stats_domain(X, only, 2))] == [True, False]


def test_nan_count_of_what_is_no_float_says_nothing() -> None:
    stats = ColumnStats(nan_count=counts(5), value_count=counts(5), null_count=counts(0))
    assert may(stats_domain(X, stats, 1)) == [(False, False, True)]


def test_no_values_at_all_hold_nothing() -> None:
    stats = ColumnStats(null_count=counts(0), nan_count=counts(0), value_count=counts(0))
    assert may(stats_domain(F, stats, 1)) == [(False, False, False)]


def test_bounds_are_a_range_and_missing_ones_are_open() -> None:
    stats = ColumnStats(pa.array([1, None, 3], pa.int32()), pa.array([5, 6, None], pa.int32()))
    assert bounds(stats_domain(X, stats, 3)) == [(1, 5), (None, 6), (3, None)]
    assert bounds(stats_domain(X, ColumnStats(lower=pa.array([1], pa.int32())), 1)) == [(1, None)]
    assert bounds(stats_domain(X, ColumnStats(upper=pa.array([1], pa.int32())), 1)) == [(None, 1)]


def test_inverted_bounds_say_nothing_and_others_do() -> None:
    stats = ColumnStats(pa.array([5, 1], pa.int32()), pa.array([1, 5], pa.int32()))
    assert bounds(stats_domain(X, stats, 2)) == [(None, None), (1, 5)]


def test_bound_that_is_nan_says_nothing() -> None:
    stats = ColumnStats(pa.array([math.nan, 1.0]), pa.array([5.0, math.nan]))
    assert bounds(stats_domain(F, stats, 2)) == [(None, float_key(5.0)), (float_key(1.0), None)]


def test_bound_of_minus_zero_is_zero() -> None:
    stats = ColumnStats(pa.array([-0.0, 0.0]), pa.array([-0.0, -0.0]))
    assert bounds(stats_domain(F, stats, 2)) == [(0, 0), (0, 0)]


@pytest.mark.parametrize(
    ("narrow", "wide", "lower", "upper", "expected"),
    [
        (pa.int32(), pa.int64(), -1, 5, (-1, 5)),
        (pa.int8(), pa.int32(), -1, 5, (-1, 5)),
        (pa.float32(), pa.float64(), 0.5, 1.5, (float_key(0.5), float_key(1.5))),
        (pa.decimal128(5, 2), pa.decimal128(10, 2), Decimal(1), Decimal(2), (100, 200)),
        (
            pa.decimal128(5, 2),
            pa.decimal128(30, 2),
            Decimal(-1),
            Decimal(2),
            (decimal_bytes(-100), decimal_bytes(200)),
        ),
        (pa.date32(), pa.timestamp("us"), -1, 1, (-86_400_000_000, 86_400_000_000)),
        (pa.timestamp("ms"), pa.timestamp("us"), -1, 1, (-1000, 1000)),
        (pa.int32(), pa.date32(), -1, 1, (-1, 1)),
    ],
)
def test_bounds_of_a_narrower_type_are_widened(
    narrow: pa.DataType, wide: pa.DataType, lower: object, upper: object, expected: tuple[object, object]
) -> None:
    """A column may have been promoted since its files were written."""
    stats = ColumnStats(pa.array([lower], narrow), pa.array([upper], narrow))
    assert bounds(stats_domain(Column(1, ("x",), wide), stats, 1)) == [expected]


def test_type_without_an_order_has_counts_only() -> None:
    column = Column(1, ("x",), pa.struct([("a", pa.int32())]))
    found = stats_domain(column, ColumnStats(pa.array([1]), pa.array([2]), counts(0)), 1)
    assert (may(found), found.ranges) == ([(False, False, True)], ())


# -- uuid -----------------------------------------------------------------------------------------------------

SIGN = 1 << 63


HALVES = st.sampled_from([0, 1, 7, SIGN - 1, SIGN, SIGN + 1, (1 << 64) - 1])


def uuid_bounds(lower: int, upper: int) -> tuple[Any, Any]:
    column = Column(1, ("u",), pa.uuid())
    stats = ColumnStats(*(arrow([UUID(int=number)], pa.uuid()) for number in (lower, upper)))
    ((low, high),) = bounds(stats_domain(column, stats, 1))
    return (
        None if low is None else int.from_bytes(low, "big"),
        None if high is None else int.from_bytes(high, "big"),
    )


def test_uuid_bounds_in_one_half_hold_in_both_orders() -> None:
    low, high = 1 << 64, 5 << 64
    assert uuid_bounds(low, high) == (low, high | (1 << 64) - 1)


def test_uuid_bounds_reach_the_low_halves_where_both_orders_agree() -> None:
    """A floor without the sign bit, and a ceiling with it, are the same by bytes and by signed longs."""
    low, high, rest = (3 << 64) + 5, (7 << 64) + SIGN + 9, (1 << 64) - 1
    assert uuid_bounds(low, high) == (low, high)
    assert uuid_bounds(low + SIGN, high) == (3 << 64, high)
    assert uuid_bounds(low, high - SIGN) == (low, (7 << 64) + rest)


@given(st.lists(st.builds(lambda h, w: (h << 64) + w, HALVES, HALVES), min_size=1, max_size=6), st.booleans())
def test_uuid_bounds_of_either_order_hold_every_value(numbers: list[int], signed: bool) -> None:
    def key(number: int) -> tuple[int, ...]:
        halves = (number >> 64, number & (1 << 64) - 1)
        return tuple((half ^ SIGN) for half in halves) if signed else halves

    low, high = uuid_bounds(min(numbers, key=key), max(numbers, key=key))
    assert all((low is None or low <= number) and (high is None or number <= high) for number in numbers)


def test_uuid_bounds_across_the_sign_say_nothing() -> None:
    """Java compares halves as signed longs: what begins with 8 comes before what begins with 0."""
    assert uuid_bounds(1 << 64, SIGN << 64) == (None, None)
    assert uuid_bounds(SIGN << 64, 1 << 64) == (None, None)


def test_uuid_bounds_with_equal_high_halves_reach_the_low_ones() -> None:
    assert uuid_bounds((7 << 64) + 3, (7 << 64) + 9) == ((7 << 64) + 3, (7 << 64) + 9)
    assert uuid_bounds((7 << 64) + 3, (7 << 64) + SIGN) == (
        (7 << 64) + 3,
        (7 << 64) + SIGN,
    )


def test_uuid_bound_alone_says_nothing() -> None:
    column = Column(1, ("u",), pa.uuid())
    found = stats_domain(column, ColumnStats(lower=arrow([UUID(int=1)], pa.uuid())), 1)
    assert bounds(found) == [(None, None)]


# -- facts together -------------------------------------------------------------------------------------------


def test_two_facts_of_a_column_intersect() -> None:
    one = stats_domain(X, ColumnStats(pa.array([1], pa.int32()), None, counts(0)), 1)
    two = stats_domain(X, ColumnStats(None, pa.array([5], pa.int32())), 1)
    nulls = stats_domain(X, ColumnStats(null_count=counts(2), value_count=counts(2)), 1)
    both = Facts(1, {1: one}).and_also(Facts(1, {1: two})).and_also(Facts(1, {1: nulls})).of(X)
    assert may(both) == [(False, False, False)]
    assert len(both.ranges) == 2


def test_column_that_nobody_mentions_is_any() -> None:
    assert may(Facts(2, {}).of(X)) == [(True, True, True)] * 2


def test_facts_are_taken_in_any_order_and_repeatedly() -> None:
    domain = stats_domain(X, ColumnStats(pa.array([1, 2], pa.int32()), None, counts(0, 1)), 2)
    buckets = BucketRange(ICEBERG, 8, np.array([1, 2]), np.array([1, 2]), np.array([True, False]))
    facts = Facts(2, {1: Domain(domain.may_null, domain.may_nan, domain.may_value, domain.ranges, (buckets,))})
    taken = facts.take(np.array([1, 0, 1]))
    assert taken.count == 3
    assert bounds(taken.of(X)) == [(2, None), (1, None), (2, None)]
    assert taken.of(X).buckets[0].valid.tolist() == [False, True, False]
    assert taken.without_buckets().of(X).buckets == ()
    assert facts.take(np.array([], np.int64)).count == 0


def test_unknown_is_where_values_may_occur_and_nothing_bounds_them() -> None:
    stats = ColumnStats(pa.array([1, None, None], pa.int32()), None, counts(0, 0, 5), None, counts(5, 5, 5))
    assert stats_domain(X, stats, 3).unknown().tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("values", "nulls", "nans"),
    [(5, 6, None), (5, 6, 0), (5, None, 6), (5, 3, 3), (5, 0, 6), (0, 1, 0), (0, None, 1)],
)
def test_counts_of_more_than_there_is_are_unknown(values: int, nulls: int | None, nans: int | None) -> None:
    """A file with more NULLs than rows looked like one without values: it was dropped."""
    stats = ColumnStats(
        pa.array([1.0]), pa.array([2.0]), null_count=counts(nulls), nan_count=counts(nans), value_count=counts(values)
    )
    domain, wrong = trusted_domain(F, stats, 1)
    assert wrong.tolist() == [True]
    assert may(domain) == [(True, True, True)]
    assert bounds(domain) == [(None, None)]


def test_bound_of_a_column_without_values_makes_all_unknown() -> None:
    one, two = pa.array([1, None, 1, None], pa.int32()), pa.array([2, 2, None, None], pa.int32())
    stats = ColumnStats(one, two, null_count=counts(5, 5, 5, 5), value_count=counts(5, 5, 5, 5))
    domain, wrong = trusted_domain(X, stats, 4)
    assert wrong.tolist() == [True, True, True, False]
    assert [value for _, _, value in may(domain)] == [True, True, True, False]
    assert bounds(domain) == [(None, None)] * 4
    stats = ColumnStats(pa.array([1.0]), None, counts(1), counts(4), counts(5))
    assert trusted_domain(F, stats, 1)[1].tolist() == [True]


def test_nan_as_a_bound_is_a_nan_that_was_not_counted() -> None:
    """DuckDB writes such: a count of 0 and NaN as the upper bound."""
    stats = ColumnStats(
        pa.array([1.0, math.nan, 1.0]),
        pa.array([math.nan, 5.0, 5.0]),
        counts(0, 0, 0),
        counts(0, 0, 0),
        counts(5, 5, 5),
    )
    domain, wrong = trusted_domain(F, stats, 3)
    assert may(domain) == [(False, True, True), (False, True, True), (False, False, True)]
    assert not wrong.any()
    assert bounds(domain) == [(float_key(1.0), None), (None, float_key(5.0)), (float_key(1.0), float_key(5.0))]
    all_nan = ColumnStats(pa.array([math.nan]), pa.array([math.nan]), counts(0), counts(5), counts(5))
    assert may(stats_domain(F, all_nan, 1)) == [(False, True, False)], "this one is right: nothing but NaN"


def test_counts_that_no_file_can_have_are_unknown() -> None:
    huge = (1 << 62) + 1
    stats = ColumnStats(null_count=counts(huge - 1), value_count=counts(huge))
    assert may(stats_domain(X, stats, 1)) == [(True, False, True)]


# -- columns that are required --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "counts", "may_null"),
    [
        (Column(1, ("x",), pa.int64()), None, True),
        (Column(1, ("x",), pa.int64()), 0, False),
        (Column(1, ("x",), pa.int64(), required=True, inside_required=True), None, False),
        (Column(1, ("x",), pa.int64(), required=True, inside_required=True), 0, False),
        (Column(1, ("x",), pa.int64(), required=True, inside_required=True), 1, True),
        (Column(1, ("s", "x"), pa.int64()), 0, True),
        (Column(1, ("s", "x"), pa.int64(), inside_required=True), 0, False),
        (Column(1, ("s", "x"), pa.int64(), inside_required=True), None, True),
        (Column(1, ("s", "x"), pa.int64(), inside_required=True), 2, True),
        (Column(1, ("s", "x"), pa.int64(), required=True, inside_required=True), None, False),
    ],
)
def test_required_column_has_no_null_unless_one_is_counted(
    column: Column, counts: int | None, *, may_null: bool
) -> None:
    """Who counted a NULL has written one. Under a struct that may be NULL itself, no count is believed."""
    stats = ColumnStats(null_count=pa.array([counts], pa.int64()), value_count=pa.array([5], pa.int64()))
    assert stats_domain(column, stats, 1).may_null.tolist() == [may_null]
