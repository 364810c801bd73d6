"""Verdicts from facts: NONE, SOME and ALL for every kind of column, statistic and condition."""

import math
from decimal import Decimal
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest

from tamis.predicate.bind import bind
from tamis.predicate.bound import Unclear
from tamis.predicate.schema import Column, Schema
from tamis.predicate.sql.parse import parse
from tamis.predicate.values import ValueSet
from tamis.sieve.domain import BucketRange, ColumnStats, Domain, Facts, Range, stats_domain
from tamis.sieve.judge import Verdicts, judge, may_hold
from tamis.sieve.order import encode
from tamis.sieve.transforms.bucket import ICEBERG, bucket_of_keys
from tamis.sieve.trial import NOBODY, try_all
from tests.making.harness import arrow

INT, TEXT, DOUBLE = pa.int32(), pa.string(), pa.float64()


def word(found: Verdicts) -> str:
    (possible,), (certain,) = found.possible.tolist(), found.certain.tolist()
    return "none" if not possible else "all" if certain else "some"


def verdict(
    sql: str,
    type_: pa.DataType,
    lower: object = None,
    upper: object = None,
    nulls: int | None = None,
    nans: int | None = None,
    values: int | None = 10,
) -> str:
    """The verdict on one file whose column x has these statistics."""
    schema = Schema.of(x=type_)
    stats = ColumnStats(
        arrow([lower], type_),
        arrow([upper], type_),
        *(pa.array([count], pa.int64()) for count in (nulls, nans, values)),
    )
    facts = Facts(1, {1: stats_domain(schema.columns[0], stats, 1)})
    return word(judge(bind(parse(sql), schema).root, facts))


# -- bounds ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("x < 3", "none"), ("x < 4", "some"), ("x < 7", "some"), ("x < 8", "all"),
        ("x <= 2", "none"), ("x <= 3", "some"), ("x <= 6", "some"), ("x <= 7", "all"),
        ("x > 7", "none"), ("x > 6", "some"), ("x > 3", "some"), ("x > 2", "all"),
        ("x >= 8", "none"), ("x >= 7", "some"), ("x >= 4", "some"), ("x >= 3", "all"),
        ("x = 2", "none"), ("x = 3", "some"), ("x = 8", "none"),
        ("x != 2", "all"), ("x != 3", "some"), ("x != 8", "all"),
        ("x IN (1, 2, 8, 9)", "none"), ("x IN (1, 5, 9)", "some"), ("x IN (3, 4, 5, 6, 7)", "all"),
        ("x NOT IN (1, 2, 8)", "all"), ("x NOT IN (3, 4, 5, 6, 7)", "none"), ("x NOT IN (5)", "some"),
        ("x BETWEEN 3 AND 7", "all"), ("x BETWEEN 8 AND 9", "none"), ("x NOT BETWEEN 3 AND 7", "none"),
        ("x IS NULL", "none"), ("x IS NOT NULL", "all"), ("x <=> 2", "none"), ("NOT (x <=> 2)", "all"),
        ("x NOT IN (5, NULL)", "none"), ("x IN (3, 4, 5, 6, 7, NULL)", "all"), ("x IN (1, NULL)", "none"),
        ("x = 5.5", "none"), ("x < 2.5", "none"), ("x < 3.5", "some"), ("x > 2.5", "all"),
    ],
)  # fmt: skip
def test_bounds_three_to_seven_without_null(sql: str, expected: str) -> None:
    assert verdict(sql, INT, 3, 7, nulls=0) == expected


@pytest.mark.parametrize("sql", ["x > 2", "x < 8", "x != 2", "x IN (3, 4, 5, 6, 7)", "x IS NOT NULL", "x NOT IN (1)"])
@pytest.mark.parametrize("nulls", [None, 1, -1])
def test_a_possible_null_is_never_certain(sql: str, nulls: int | None) -> None:
    """No comparison is true of NULL; a count that is missing or negative does not rule it out."""
    assert verdict(sql, INT, 3, 7, nulls=nulls) == "some"


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("x IS NULL", "all"),
        ("x > 0", "none"),
        ("x != 1", "none"),
        ("x <=> NULL", "all"),
        ("NOT (x <=> 1)", "all"),
        ("x IS NOT NULL", "none"),
        ("(x > 0) IS UNKNOWN", "all"),
        ("x NOT IN (1)", "none"),
    ],
)
def test_all_null_column(sql: str, expected: str) -> None:
    assert verdict(sql, INT, nulls=10) == expected


@pytest.mark.parametrize("sql", ["x = 5", "x IS NULL", "x IS NOT NULL", "x != 5", "x < 0"])
def test_nothing_known_is_some(sql: str) -> None:
    assert verdict(sql, INT, values=None) == "some"


def test_one_bound_decides_its_own_side() -> None:
    assert verdict("x < 3", INT, lower=3) == "none"
    assert verdict("x > 3", INT, lower=3) == "some"
    assert verdict("x > 7", INT, upper=7) == "none"
    assert verdict("x >= 3", INT, lower=3, nulls=0) == "all"
    assert verdict("x <= 7", INT, upper=7, nulls=0) == "all"


@pytest.mark.parametrize("sql", ["x = 5", "x < 3", "x > 7", "x = 100", "x != 5"])
def test_inverted_bounds_decide_nothing(sql: str) -> None:
    assert verdict(sql, INT, 7, 3, nulls=0) == "some"


def test_bounds_that_are_equal_are_one_value() -> None:
    assert verdict("x = 5", INT, 5, 5, nulls=0) == "all"
    assert verdict("x != 5", INT, 5, 5) == "none"
    assert verdict("x IN (1, 5)", INT, 5, 5, nulls=0) == "all"
    assert verdict("x NOT IN (1, 5)", INT, 5, 5) == "none"


def test_literal_outside_the_type_is_not_null() -> None:
    assert verdict("x < 1000", pa.int8(), nulls=0) == "all"
    assert verdict("x < 1000", pa.int8(), nulls=10) == "none"
    assert verdict("x > 1000", pa.int8()) == "none"


@pytest.mark.parametrize("size", [3, 5, 200, 201, 5000])
def test_list_of_any_length_is_searched(size: int) -> None:
    """Iceberg gives up beyond 200 values."""
    far = ", ".join(str(1000 + 2 * place) for place in range(size))
    assert verdict(f"x IN ({far})", INT, 0, 999) == "none"
    assert verdict(f"x IN ({far})", INT, 1001, 1001) == "none"
    assert verdict(f"x IN ({far})", INT, 1001, 1002) == "some"
    assert verdict(f"x NOT IN ({far})", INT, 1001, 1001, nulls=0) == "all"


# -- floats ---------------------------------------------------------------------------------------------------


def test_nan_that_may_occur_is_above_every_bound() -> None:
    """Spark: NaN > 100. Bounds leave it out, so only a count of zero excludes it."""
    assert verdict("x > 100D", DOUBLE, 1.0, 5.0, nulls=0) == "some"
    assert verdict("x > 100D", DOUBLE, 1.0, 5.0, nulls=0, nans=1) == "some"
    assert verdict("x > 100D", DOUBLE, 1.0, 5.0, nulls=0, nans=0) == "none"
    assert verdict("x > 100D", DOUBLE, 1.0, 5.0, nulls=0, nans=-1) == "some"


def test_nan_that_may_occur_is_not_below() -> None:
    assert verdict("x < 100D", DOUBLE, 1.0, 5.0, nulls=0) == "some"
    assert verdict("x < 100D", DOUBLE, 1.0, 5.0, nulls=0, nans=0) == "all"
    assert verdict("x < 1D", DOUBLE, 1.0, 5.0, nulls=0) == "none"
    assert verdict("x >= 1D", DOUBLE, 1.0, 5.0, nulls=0) == "all"


def test_all_nan_column_is_judged_by_nan() -> None:
    assert verdict("x > 100D", DOUBLE, nulls=0, nans=10) == "all"
    assert verdict("x < 100D", DOUBLE, nulls=0, nans=10) == "none"
    assert verdict("x = double('NaN')", DOUBLE, nulls=0, nans=10) == "all"
    assert verdict("x != double('NaN')", DOUBLE, nulls=0, nans=10) == "none"
    assert verdict("x = double('NaN')", DOUBLE, nulls=0, nans=0) == "none"


def test_nan_bound_is_ignored() -> None:
    assert verdict("x = -2.5D", DOUBLE, -2.5, math.nan) == "some"
    assert verdict("x = -2.5D", DOUBLE, math.nan, 1.0) == "some"
    assert verdict("x = -3D", DOUBLE, -2.5, math.nan) == "none"


def test_minus_zero_bound_is_zero() -> None:
    assert verdict("x = 0D", DOUBLE, -0.0, -0.0, nulls=0, nans=0) == "all"
    assert verdict("x < 0D", DOUBLE, -0.0, 0.0) == "none"
    assert verdict("x >= 0D", DOUBLE, -0.0, 1.0, nulls=0) == "all"


def test_infinite_bounds_are_bounds() -> None:
    assert verdict("x > 1D", DOUBLE, math.inf, math.inf, nulls=0) == "all"
    assert verdict("x < double('Infinity')", DOUBLE, math.inf, math.inf) == "none"
    assert verdict("x <= double('Infinity')", DOUBLE, -math.inf, math.inf, nulls=0, nans=0) == "all"


# -- other types ----------------------------------------------------------------------------------------------


def test_truncated_text_bounds_enclose() -> None:
    """Lower `abc` may be a prefix, upper `abe` the successor of one: neither need occur."""
    assert verdict("x = 'abd'", TEXT, "abc", "abe") == "some"
    assert verdict("x LIKE 'abd%'", TEXT, "abc", "abe") == "some"
    assert verdict("x LIKE 'abf%'", TEXT, "abc", "abe") == "none"
    assert verdict("x LIKE 'ab%'", TEXT, "abc", "abe", nulls=0) == "all"
    assert verdict("x NOT LIKE 'ab%'", TEXT, "abc", "abe") == "none"
    assert verdict("x LIKE 'ab%c'", TEXT, "abc", "abe", nulls=0) == "some"
    assert verdict("x LIKE 'b%c'", TEXT, "abc", "abe", nulls=0) == "none"


def test_text_bounds_compare_by_code_point() -> None:
    assert verdict("x = '\ufffd'", TEXT, "😀", "😁") == "none"
    assert verdict("x > '\ufffd'", TEXT, "😀", "😁", nulls=0) == "all"


def test_empty_text_is_the_least() -> None:
    assert verdict("x = ''", TEXT, "", "a") == "some"
    assert verdict("x = ''", TEXT, "\x00", "a") == "none"
    assert verdict("x < ''", TEXT) == "none"
    assert verdict("x >= ''", TEXT, nulls=0) == "all"


@pytest.mark.parametrize("precision", [10, 18, 19, 38])
def test_decimals_of_every_width(precision: int) -> None:
    type_ = pa.decimal128(precision, 2)
    low, high = Decimal("-1.50"), Decimal("2.25")
    assert verdict("x < -1.50", type_, low, high) == "none"
    assert verdict("x <= -1.50", type_, low, high) == "some"
    assert verdict("x > 2.25", type_, low, high) == "none"
    assert verdict("x >= -1.50", type_, low, high, nulls=0) == "all"
    assert verdict("x = 2.26", type_, low, high) == "none"


def test_uuid_bounds_are_trusted_only_where_both_orders_agree() -> None:
    low, high, top = UUID(int=1 << 64), UUID(int=5 << 64), UUID(int=1 << 127)
    assert verdict(f"x = '{UUID(int=9 << 64)}'", pa.uuid(), low, high) == "none"
    assert verdict(f"x = '{UUID(int=9 << 64)}'", pa.uuid(), low, top) == "some"
    assert verdict(f"x = '{low}'", pa.uuid(), low, low, nulls=0) == "all"


def test_fixed_and_binary_compare_as_bytes() -> None:
    assert verdict("x > X'80'", pa.binary(2), b"\x01\x00", b"\x7f\xff") == "none"
    assert verdict("x = X'0100'", pa.binary(2), b"\x01\x00", b"\x01\x00", nulls=0) == "all"
    assert verdict("x < X'01'", pa.binary(), b"\x01", b"\x01\x00") == "none"


def test_booleans() -> None:
    assert verdict("x", pa.bool_(), False, False, nulls=0) == "none"
    assert verdict("NOT x", pa.bool_(), False, False, nulls=0) == "all"
    assert verdict("x IS NOT TRUE", pa.bool_(), False, False) == "all"
    assert verdict("x IN (true, false)", pa.bool_(), nulls=0) == "all"


# -- several columns ------------------------------------------------------------------------------------------


def pair(sql: str) -> str:
    """The verdict on a file with region = eu throughout, and amount from 0 to 50."""
    schema = Schema.of(region=TEXT, amount=INT, other=INT)
    zero = pa.array([0])
    region = ColumnStats(pa.array(["eu"]), pa.array(["eu"]), zero)
    amount = ColumnStats(pa.array([0], INT), pa.array([50], INT), zero)
    facts = Facts(1, {1: stats_domain(schema.columns[0], region, 1), 2: stats_domain(schema.columns[1], amount, 1)})
    return word(judge(bind(parse(sql), schema).root, facts))


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("(region = 'eu' AND amount > 100) OR (region = 'us' AND amount < 5)", "none"),
        ("(region = 'eu' AND amount > 10) OR (region = 'us' AND amount < 5)", "some"),
        ("(region = 'eu' AND amount >= 0) OR (region = 'us' AND amount < 5)", "all"),
        ("region = 'eu' OR other = 1", "all"),
        ("region = 'us' OR other = 1", "some"),
        ("region = 'us' AND other = 1", "none"),
        ("NOT (region = 'us' OR amount > 50)", "all"),
        ("NOT (region = 'eu' AND amount <= 50)", "none"),
        ("amount <= 50 AND other = 1", "some"),
        ("true", "all"),
        ("false", "none"),
        ("region = 'eu' AND upper(region) = 'EU'", "some"),
        ("region = 'us' AND upper(region) = 'EU'", "none"),
        ("region = 'eu' OR upper(region) = 'EU'", "all"),
        ("amount = 60 OR upper(region) = 'EU'", "some"),
    ],
)
def test_parts_combine(sql: str, expected: str) -> None:
    assert pair(sql) == expected


def test_two_ranges_of_one_column_intersect() -> None:
    """A partition and statistics: [0, 10] and [5, 20] leave [5, 10]."""
    column = Column(1, ("x",), INT)
    one = stats_domain(column, ColumnStats(pa.array([0], INT), pa.array([10], INT), pa.array([0])), 1)
    two = stats_domain(column, ColumnStats(pa.array([5], INT), pa.array([20], INT)), 1)
    facts = Facts(1, {1: one}).and_also(Facts(1, {1: two}))
    schema = Schema((column,))
    answers = [word(judge(bind(parse(sql), schema).root, facts)) for sql in ("x < 5", "x > 10", "x >= 5", "x = 7")]
    assert answers == ["none", "none", "all", "some"]


# -- buckets --------------------------------------------------------------------------------------------------


def in_bucket(sql: str, type_: pa.DataType, bucket: int, count: int = 16) -> str:
    facts = Facts(1, {1: _bucket_domain(bucket, count)})
    return word(judge(bind(parse(sql), Schema.of(x=type_)).root, facts))


def _bucket_domain(bucket: int, count: int) -> Domain:
    any_ = Domain.any(1)
    buckets = BucketRange(ICEBERG, count, np.array([bucket]), np.array([bucket]), np.array([True]))
    return Domain(~any_.may_null, any_.may_nan, any_.may_value, (), (buckets,))


LITERALS = [
    (pa.int8(), 5, "5"),
    (INT, 5, "5"),
    (pa.int64(), 2**40, str(2**40)),
    (pa.decimal128(10, 2), Decimal("5.25"), "5.25"),
    (pa.decimal128(20, 2), Decimal("5.25"), "5.25"),
    (pa.decimal128(37, 0), Decimal(10**30), str(10**30)),
    (TEXT, "a", "'a'"),
    (pa.binary(), b"ab", "X'6162'"),
    (pa.binary(2), b"ab", "X'6162'"),
    (pa.uuid(), UUID(int=7), f"'{UUID(int=7)}'"),
    (pa.date32(), 19_737, "'2024-01-15'"),
    (pa.timestamp("us"), 0, "'1970-01-01'"),
    (pa.timestamp("us", "UTC"), 0, "'1970-01-01'"),
    (pa.time64("us"), 1_000_000, "'00:00:01'"),
]


@pytest.mark.parametrize(("type_", "value", "literal"), LITERALS)
@pytest.mark.parametrize("form", ["x = {}", "x IN ({})", "x <=> {}", "x >= {0} AND x <= {0}"])
def test_value_prunes_every_other_bucket(type_: pa.DataType, value: object, literal: str, form: str) -> None:
    hashed = bucket_of_keys(encode(arrow([value], type_), type_).keys, type_, 16)
    assert hashed is not None
    kept = [bucket for bucket in range(16) if in_bucket(form.format(literal), type_, bucket) != "none"]
    assert kept == hashed.tolist()


@pytest.mark.parametrize(("type_", "_value", "literal"), LITERALS)
@pytest.mark.parametrize(
    ("form", "expected"), [("x IS NULL", "none"), ("x IS NOT NULL", "all"), ("x IN (NULL)", "none")]
)
def test_null_test_over_a_bucket_of_every_type(
    type_: pa.DataType, _value: object, literal: str, form: str, expected: str
) -> None:
    """A set without values has no keys to hash, of whatever kind keys are."""
    assert in_bucket(form.format(literal), type_, 3) == expected


def test_range_of_integers_prunes_buckets_while_it_is_short() -> None:
    kept = [bucket for bucket in range(1000) if in_bucket("x BETWEEN 1 AND 3", INT, bucket, 1000) != "none"]
    assert len(kept) == 3
    assert in_bucket("x > 1", INT, 3) == "some"


def test_bucket_and_range_must_hold_one_and_the_same_value() -> None:
    """A file of 5's bucket whose values begin at 400 holds neither 5 nor 500, though each fact alone allows one."""
    buckets = bucket_of_keys(np.array([5, 500]), INT, 1000)
    assert buckets is not None
    ends = pa.array([400, 0], INT), pa.array([600, 600], INT)
    span = Range(encode(ends[0], INT), encode(ends[1], INT))
    five = np.full(2, buckets[0])
    any_ = Domain.any(2)
    domain = Domain(
        ~any_.may_null,
        ~any_.may_nan,
        any_.may_value,
        (span,),
        (BucketRange(ICEBERG, 1000, five, five, np.array([True, True])),),
    )
    found = judge(bind(parse("x IN (5, 500)"), Schema.of(x=INT)).root, Facts(2, {1: domain}))
    assert found.possible.tolist() == [False, True]


def test_bucket_never_proves_that_all_rows_match() -> None:
    hashed = bucket_of_keys(np.array([5]), INT, 16)
    assert hashed is not None
    assert in_bucket("x = 5", INT, int(hashed[0])) == "some"
    assert in_bucket("x != 5", INT, int(hashed[0])) == "some"
    assert in_bucket("x != 5", INT, (int(hashed[0]) + 1) % 16) == "all"


# -- the trial ------------------------------------------------------------------------------------------------


def test_first_part_that_excludes_is_the_decider() -> None:
    schema = Schema.of(a=INT, b=INT)
    bound = bind(parse("a > 0 AND b > 100 AND a + b > 1"), schema)
    stats = ColumnStats(pa.array([1, 1, -5], INT), pa.array([5, 5, 5], INT), pa.array([0, 0, 0]))
    b_stats = ColumnStats(pa.array([0, 200, 200], INT), pa.array([9, 300, 300], INT), pa.array([0, 0, 0]))
    facts = Facts(3, {1: stats_domain(schema.columns[0], stats, 3), 2: stats_domain(schema.columns[1], b_stats, 3)})
    trial = try_all(bound.conjuncts, facts)
    assert trial.possible.tolist() == [False, True, True]
    assert trial.certain.tolist() == [False, False, False]
    assert trial.decider.tolist() == [1, 2, 0]


def test_no_parts_are_true_of_all() -> None:
    trial = try_all([], Facts(2, {}))
    assert trial.possible.all()
    assert trial.certain.all()
    assert trial.decider.tolist() == [NOBODY, NOBODY]


def test_predicate_of_very_many_parts_is_judged() -> None:
    """A generated WHERE may have more parts than 16 bits can number."""
    parts = [Unclear(f"f({place})") for place in range(33_000)]
    assert try_all(parts, Facts(1, {})).decider.tolist() == [0]


def test_may_hold_is_false_only_with_a_proof() -> None:
    column = Column(1, ("x",), INT)
    domain = stats_domain(column, ColumnStats(pa.array([1, None], INT), pa.array([5, None], INT)), 2)
    assert may_hold(ValueSet.of_keys([9]), column, domain).tolist() == [False, True]
    assert may_hold(ValueSet.null(), column, domain).tolist() == [True, True]
    assert may_hold(ValueSet.nothing(), column, domain).tolist() == [False, False]


def test_verdicts_are_an_arrow_struct() -> None:
    found = Verdicts(np.array([True, False]), np.array([False, False])).to_arrow()
    assert found.to_pylist() == [{"possible": True, "certain": False}, {"possible": False, "certain": False}]
    assert len(Verdicts(np.array([True]), np.array([True]))) == 1
