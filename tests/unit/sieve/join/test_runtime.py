"""Join keys against files: what must be dropped, what must be kept, and which keys cannot be compared."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest

from tamis.errors import BindError, FilterInputError
from tamis.predicate.schema import Schema
from tamis.sieve.domain import BucketRange, ColumnStats, Domain, Facts, Range, stats_domain
from tamis.sieve.join import tuples
from tamis.sieve.join.bloom import Bloom
from tamis.sieve.join.runtime import BoundRuntimeFilter, RuntimeFilter
from tamis.sieve.order import KeyArray, encode
from tamis.sieve.transforms.bucket import ICEBERG, bucket_of_keys

NAN = float("nan")


def files(schema: Schema, count: int, **bounds: tuple[object, object]) -> Facts:
    """Files whose columns lie within (lowers, uppers), and hold no NULL and no NaN."""
    none = pa.array([0] * count)
    domains = {}
    for name, (lower, upper) in bounds.items():
        column = schema.find((name,))
        low, high = (pa.array(side, column.type) for side in (lower, upper))
        domains[column.id] = stats_domain(column, ColumnStats(low, high, none, none), count)
    return Facts(count, domains)


def one_column(type_: pa.DataType, lower: list[object], upper: list[object]) -> tuple[Schema, Facts]:
    schema = Schema.of(x=type_)
    return schema, files(schema, len(lower), x=(lower, upper))


def kept(found: BoundRuntimeFilter, facts: Facts) -> list[int]:
    return np.flatnonzero(found.possible(facts)).tolist()


# -- keys of one column ---------------------------------------------------------------------------------------


def test_only_files_with_a_key_within_their_bounds_are_kept() -> None:
    schema, facts = one_column(pa.int64(), [0, 10, 20, 30], [9, 19, 29, 39])
    found = RuntimeFilter.of("x", pa.array([5, 5, 35, 100])).bind(schema)
    assert kept(found, facts) == [0, 3]
    assert found.prunes
    assert found.notes == ()


def test_a_million_keys_prune_as_two_do() -> None:
    """Peers give up above 200 keys."""
    keys = np.arange(0, 20_000_000, 20)
    schema, facts = one_column(pa.int64(), [1, 20, 21, 399_981], [19, 20, 39, 400_001])
    assert kept(RuntimeFilter.of("x", keys).bind(schema), facts) == [1, 3]


def test_join_without_keys_matches_no_file() -> None:
    schema, facts = one_column(pa.int64(), [None], [None])
    for keys in (pa.array([], pa.int64()), pa.array([None, None], pa.int64()), pa.array([None]), []):
        assert kept(RuntimeFilter.of("x", keys).bind(schema), facts) == []
    assert kept(RuntimeFilter.of("x", pa.array([], pa.string())).bind(schema), Facts(2, {})) == []


def test_null_keys_match_null_only_if_the_join_is_null_safe() -> None:
    schema = Schema.of(x=pa.int64())
    column = schema.columns[0]
    stats = ColumnStats(
        pa.array([1, None, 1]), pa.array([3, None, 3]), pa.array([0, 4, 1]), None, pa.array([4, 4, 4])
    )
    facts = Facts(3, {1: stats_domain(column, stats, 3)})
    keys = pa.array([None, 99])
    assert kept(RuntimeFilter.of("x", keys).bind(schema), facts) == []
    assert kept(RuntimeFilter.of("x", keys, null_safe=True).bind(schema), facts) == [1, 2]
    assert kept(RuntimeFilter.of("x", pa.array([99]), null_safe=True).bind(schema), facts) == []
    assert kept(RuntimeFilter.of("x", pa.array([2])).bind(schema), facts) == [0, 2]


def test_nan_and_both_zeros_are_keys_as_spark_compares_them() -> None:
    schema = Schema.of(x=pa.float64())
    bounds = pa.array([0.0, -1.0, 5.0]), pa.array([0.0, -0.5, 6.0])
    stats = ColumnStats(*bounds, pa.array([0] * 3), pa.array([0, 0, 2]), pa.array([9] * 3))
    facts = Facts(3, {1: stats_domain(schema.columns[0], stats, 3)})
    assert kept(RuntimeFilter.of("x", pa.array([-0.0])).bind(schema), facts) == [0]
    assert kept(RuntimeFilter.of("x", pa.array([NAN])).bind(schema), facts) == [2]
    assert kept(RuntimeFilter.of("x", pa.array([NAN], pa.float32())).bind(schema), facts) == [2]


def test_hash_buckets_of_a_file_are_facts_too() -> None:
    schema = Schema.of(x=pa.int64())
    keys = pa.array([34, 5_000_000_000])
    hit = bucket_of_keys(np.array([34, 5_000_000_000]), pa.int64(), 16)
    assert hit is not None
    yes = np.ones(16, np.bool_)
    every = np.arange(16, dtype=np.int64)
    facts = Facts(16, {1: Domain(yes, yes, yes, (), (BucketRange(ICEBERG, 16, every, every, yes),))})
    assert kept(RuntimeFilter.of("x", keys).bind(schema), facts) == sorted(set(hit.tolist()))


# -- keys of several columns ----------------------------------------------------------------------------------


def test_file_that_each_column_alone_admits_is_dropped_if_no_tuple_fits() -> None:
    """(1, 9) and (9, 1) leave nothing for a file with both columns below 5."""
    schema = Schema.of(a=pa.int64(), b=pa.string())
    facts = files(schema, 4, a=([0, 0, 8, 8], [5, 5, 9, 9]), b=(["0", "8", "0", "8"], ["5", "9", "5", "9"]))
    found = RuntimeFilter.of(["a", "b"], {"a": [1, 9], "b": ["9", "1"]}).bind(schema)
    assert kept(found, facts) == [1, 2]
    assert found.text == "(a, b) in 2 join keys"


def test_tuples_with_null_match_only_if_the_join_is_null_safe() -> None:
    schema = Schema.of(a=pa.int64(), b=pa.int64())
    nulls = pa.array([0, 1])
    domains = {
        column.id: stats_domain(column, ColumnStats(pa.array([0, 0]), pa.array([9, 9]), nulls), 2)
        for column in schema.columns
    }
    keys = {"a": [1, None, 50], "b": [50, 2, None]}
    assert kept(RuntimeFilter.of(["a", "b"], keys).bind(schema), Facts(2, domains)) == []
    assert kept(RuntimeFilter.of(["a", "b"], keys, null_safe=True).bind(schema), Facts(2, domains)) == [1]


def test_all_null_column_of_a_null_safe_tuple_survives_bucket_facts() -> None:
    schema = Schema.of(a=pa.int64(), b=pa.int64())
    yes = np.ones(2, np.bool_)
    buckets = BucketRange(ICEBERG, 4, np.array([0, 1]), np.array([0, 1]), yes)
    facts = Facts(2, {1: Domain(yes, yes, yes, (), (buckets,)), 2: files(schema, 2, b=([1, 7], [2, 8])).domains[2]})
    found = RuntimeFilter.of(["a", "b"], {"a": pa.array([None], pa.int64()), "b": [7]}, null_safe=True).bind(schema)
    assert kept(found, facts) == [1]


def test_bucket_facts_decide_on_whole_tuples() -> None:
    schema = Schema.of(a=pa.int64(), b=pa.int64())
    hashed = bucket_of_keys(np.array([1, 2]), pa.int64(), 1000)
    assert hashed is not None
    assert hashed[0] != hashed[1]
    yes = np.ones(2, np.bool_)
    bucket = Domain(yes, yes, yes, (), (BucketRange(ICEBERG, 1000, hashed[[0, 1]], hashed[[0, 1]], yes),))
    facts = Facts(2, {1: bucket, **files(schema, 2, b=([10, 10], [10, 10])).domains})
    assert kept(RuntimeFilter.of(["a", "b"], {"a": [1, 2], "b": [10, 20]}).bind(schema), facts) == [0]


@pytest.mark.parametrize("columns", [["a"], ["a", "b"]])
def test_text_beyond_16_bits_may_lie_in_any_bucket_as_a_join_key(columns: list[str]) -> None:
    """Iceberg up to 0.13 hashed it otherwise: a file of such a writer must not be dropped, alone or in a tuple."""
    schema = Schema.of(a=pa.string(), b=pa.int64())
    every = np.arange(16, dtype=np.int64)
    yes = np.ones(16, np.bool_)
    buckets = Domain(yes, yes, yes, (), (BucketRange(ICEBERG, 16, every, every, yes),))
    facts = Facts(16, {1: buckets, **files(schema, 16, b=([7] * 16, [7] * 16)).domains})
    keys = {"a": ["x\U0001f600", "plain"], "b": [7, 8]}
    found = RuntimeFilter.of(columns, {name: keys[name] for name in columns}).bind(schema)
    assert kept(found, facts) == list(range(16))
    other = RuntimeFilter.of(columns, {name: keys[name][1:] for name in columns}).bind(schema)
    assert len(kept(other, facts)) == (1 if len(columns) == 1 else 0)


def test_tuple_with_nan_needs_a_file_that_may_hold_nan() -> None:
    """All ordinary keys of a column are not all of its keys."""
    schema = Schema.of(a=pa.float64(), b=pa.int64())
    none, some = pa.array([0, 0]), pa.array([0, 1])
    stats = ColumnStats(pa.array([0.0, 0.0]), pa.array([9.0, 9.0]), none, some, pa.array([5, 5]))
    facts = Facts(2, {1: stats_domain(schema.columns[0], stats, 2), **files(schema, 2, b=([1, 1], [1, 1])).domains})
    assert kept(RuntimeFilter.of(["a", "b"], {"a": [NAN, 2.0], "b": [1, 9]}).bind(schema), facts) == [1]


def test_columns_without_facts_leave_the_others_to_prune() -> None:
    schema = Schema.of(a=pa.int64(), b=pa.int64())
    found = RuntimeFilter.of(["a", "b"], {"a": [1, 2], "b": [10, 20]}).bind(schema)
    assert kept(found, files(schema, 2, b=([10, 11], [12, 19]))) == [0]


def test_work_budget_keeps_files_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = Schema.of(a=pa.int64(), b=pa.int64())
    facts = files(schema, 3, a=([0, 0, 1], [8, 8, 1]), b=([0, 0, 1], [8, 8, 1]))
    found = RuntimeFilter.of(["a", "b"], {"a": [0, 1, 8, 9], "b": [9, 8, 9, 0]}).bind(schema)
    assert found.tuples is not None
    exact, untested = found.tuples.possible(facts)
    assert (exact.tolist(), untested) == ([True, True, False], 0)
    limited, untested = found.tuples.possible(facts, budget=1)
    assert (limited.tolist(), untested) == ([True, True, False], 2)
    monkeypatch.setattr(tuples.KeyTuples.possible, "__defaults__", (1,))
    assert found.probe(facts).notes == ("whole keys were not tested for 2 files: each column was, on its own",)


def test_files_alike_are_tested_once_where_the_budget_is_short() -> None:
    schema = Schema.of(a=pa.int64(), b=pa.int64())
    count = 1000
    facts = files(schema, count, a=([0] * count, [5] * count), b=([0] * count, [5] * count))
    found = RuntimeFilter.of(["a", "b"], {"a": [1, 9], "b": [9, 1]}).bind(schema)
    assert found.tuples is not None
    possible, untested = found.tuples.possible(facts, budget=10)
    assert not possible.any()
    assert untested == 0


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    schema = Schema.of(a=pa.int64(), b=pa.int64())
    low_a, low_b = rng.integers(0, 100, (2, 200))
    facts = files(schema, 200, a=(low_a, low_a + 10), b=(low_b, low_b + 10))
    found = RuntimeFilter.of(["a", "b"], {"a": rng.integers(0, 100, 60), "b": rng.integers(0, 100, 60)}).bind(schema)
    whole = found.possible(facts)
    assert 0 < whole.sum() < 200
    for size in (1, 7, 64):
        monkeypatch.setattr(tuples, "CHUNK", size)
        assert (found.possible(facts) == whole).all()


# -- keys of another type -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "type_", "inside", "outside"),
    [
        (pa.array([5], pa.int64()), pa.int8(), (5, 5), (6, 9)),
        (pa.array([5], pa.int8()), pa.int64(), (5, 5), (6, 9)),
        (pa.array([5], pa.uint64()), pa.int64(), (5, 5), (6, 9)),
        (pa.array([5.0]), pa.int32(), (5, 5), (6, 9)),
        (pa.array([5], pa.int32()), pa.float64(), (5.0, 5.0), (5.5, 9.0)),
        (pa.array([2**53 + 1]), pa.float64(), (2.0**53, 2.0**53), (2.0**54, 2.0**55)),
        (pa.array([0.5], pa.float32()), pa.float64(), (0.5, 0.5), (0.6, 0.7)),
        (pa.array([0.5]), pa.float32(), (0.5, 0.5), (0.6, 0.7)),
        (pa.array([Decimal("1.50")]), pa.decimal128(20, 1), (Decimal("1.5"),) * 2, (Decimal("1.6"),) * 2),
        (pa.array([Decimal("1.5")]), pa.decimal128(38, 18), (Decimal("1.5"),) * 2, (Decimal("1.6"),) * 2),
        (pa.array([7], pa.int32()), pa.decimal128(12, 2), (Decimal(7),) * 2, (Decimal(8),) * 2),
        (pa.array([Decimal("7.00")]), pa.int64(), (7, 7), (8, 9)),
        (
            pa.array([date(2024, 1, 15)]),
            pa.timestamp("us"),
            (datetime(2024, 1, 15),) * 2,
            (datetime(2024, 1, 16),) * 2,
        ),
        (pa.array([datetime(2024, 1, 15)]), pa.date32(), (date(2024, 1, 15),) * 2, (date(2024, 1, 16),) * 2),
        (
            pa.array([datetime(2024, 1, 15)], pa.timestamp("ns")),
            pa.timestamp("us"),
            (datetime(2024, 1, 15),) * 2,
            (datetime(2024, 1, 15, 0, 0, 1),) * 2,
        ),
        (
            pa.array([datetime(2024, 1, 15)], pa.timestamp("s", "Europe/Paris")),
            pa.timestamp("us", "UTC"),
            (datetime(2024, 1, 15, tzinfo=UTC),) * 2,
            (datetime(2024, 1, 16, tzinfo=UTC),) * 2,
        ),
        (pa.array(["ab"]).dictionary_encode(), pa.string(), ("aa", "b"), ("ab\0", "b")),
        (pa.array([b"ab"]), pa.string(), ("aa", "b"), ("ac", "b")),
        (pa.array(["ab"], pa.large_string()), pa.binary(), (b"aa", b"b"), (b"ac", b"b")),
    ],
    ids=lambda value: str(getattr(value, "type", value)),
)
def test_keys_of_another_type_are_compared_as_spark_does(
    keys: pa.Array, type_: pa.DataType, inside: tuple[object, object], outside: tuple[object, object]
) -> None:
    schema, facts = one_column(type_, [inside[0], outside[0]], [inside[1], outside[1]])
    found = RuntimeFilter.of("x", keys).bind(schema)
    assert found.notes == ()
    assert kept(found, facts) == [0]


@pytest.mark.parametrize(
    ("keys", "type_"),
    [
        (pa.array([300, -129], pa.int64()), pa.int8()),
        (pa.array([1.5, NAN, float("inf"), 1e300]), pa.int32()),
        (pa.array([Decimal("1.25")]), pa.decimal128(5, 1)),
        (pa.array([Decimal(10000)]), pa.decimal128(5, 1)),
        (pa.array([Decimal("0.5")]), pa.int64()),
        (pa.array([2**62]), pa.decimal128(10, 0)),
        (pa.array([1], pa.timestamp("ns")), pa.timestamp("us")),
        (pa.array([1], pa.timestamp("us")), pa.date32()),
        (pa.array([2**62], pa.timestamp("s")), pa.timestamp("us")),
        (pa.array([b"abc"]), pa.binary(2)),
        (pa.array(["0A000000-0000-0000-0000-000000000000", "no uuid"]), pa.uuid()),
    ],
    ids=lambda value: str(getattr(value, "type", value)),
)
def test_key_that_the_column_cannot_express_never_matches(keys: pa.Array, type_: pa.DataType) -> None:
    found = RuntimeFilter.of("x", keys).bind(Schema.of(x=type_))
    assert found.nothing
    assert not found.possible(Facts(3, {})).any()


@pytest.mark.parametrize(
    ("keys", "type_", "why"),
    [
        (pa.array([1.0]), pa.int64(), "Spark rounds bigint values"),
        (pa.array([1.0], pa.float32()), pa.int32(), "Spark rounds int values"),
        (pa.array([1], pa.int32()), pa.float32(), "ANSI setting"),
        (pa.array([1.0]), pa.decimal128(10, 2), "do not compare exactly"),
        (pa.array([Decimal("1.5")]), pa.float64(), "do not compare exactly"),
        (pa.array([Decimal(1)], pa.decimal128(38, 0)), pa.decimal128(38, 10), "need 48 digits"),
        (pa.array(["1"]), pa.int64(), "do not compare exactly"),
        (pa.array([1]), pa.string(), "do not compare exactly"),
        (pa.array([1], pa.timestamp("us")), pa.timestamp("us", "UTC"), "do not compare exactly"),
        (pa.array([date(2024, 1, 1)]), pa.timestamp("us", "UTC"), "do not compare exactly"),
        (pa.array([True]), pa.int8(), "do not compare exactly"),
        (pa.array([1]), pa.list_(pa.int64()), "have no order"),
    ],
    ids=str,
)
def test_keys_that_do_not_compare_exactly_keep_every_file(keys: pa.Array, type_: pa.DataType, why: str) -> None:
    found = RuntimeFilter.of("x", keys).bind(Schema.of(x=type_))
    assert not found.prunes
    assert why in found.notes[0]
    assert found.notes[0].startswith("x does not prune: ")
    assert found.possible(Facts(3, {})).all()


def test_column_that_cannot_be_compared_leaves_the_others_to_prune() -> None:
    schema = Schema.of(a=pa.int64(), b=pa.int64())
    found = RuntimeFilter.of(["a", "b"], {"a": [1, 2], "b": [1.0, 2.0]}).bind(schema)
    assert found.prunes
    assert len(found.notes) == 1
    assert kept(found, files(schema, 2, a=([1, 5], [1, 6]), b=([7, 1], [8, 1]))) == [0]


def test_nanosecond_column_is_compared_in_microseconds() -> None:
    """Spark reads it so: every nanosecond of a key's microsecond equals the key."""
    schema, facts = one_column(pa.timestamp("ns"), [1_999, 2_000, -1], [1_999, 2_999, 999])
    for keys in (pa.array([1], pa.timestamp("us")), pa.array([1_500], pa.timestamp("ns"))):
        assert kept(RuntimeFilter.of("x", keys).bind(schema), facts) == [0]
    ends = pa.array([-(2**63), 2**63 - 1], pa.timestamp("ns"))
    schema, facts = one_column(pa.timestamp("ns"), [-(2**63), 0, 2**63 - 1], [-(2**63), 5, 2**63 - 1])
    assert kept(RuntimeFilter.of("x", ends).bind(schema), facts) == [0, 2]


def test_uuid_keys_meet_uuid_columns_as_bytes_and_as_text() -> None:
    value, other = UUID(int=7), UUID(int=9)
    schema = Schema.of(x=pa.uuid())
    storage = pa.array([value.bytes, other.bytes], pa.binary(16))
    bounds = pa.ExtensionArray.from_storage(pa.uuid(), storage)
    facts = Facts(2, {1: stats_domain(schema.columns[0], ColumnStats(bounds, bounds, pa.array([0, 0])), 2)})
    for keys in (bounds.slice(0, 1), pa.array([str(value)]), storage.slice(0, 1)):
        assert kept(RuntimeFilter.of("x", keys).bind(schema), facts) == [0]


# -- ranges ---------------------------------------------------------------------------------------------------


def test_range_keeps_the_files_that_it_overlaps() -> None:
    schema, facts = one_column(pa.int64(), [0, 10, 20, 30], [9, 19, 29, 39])
    assert kept(RuntimeFilter.of_range("x", 19, 20).bind(schema), facts) == [1, 2]
    assert kept(RuntimeFilter.of_range("x", None, 9).bind(schema), facts) == [0]
    assert kept(RuntimeFilter.of_range("x", 30, None).bind(schema), facts) == [3]
    assert kept(RuntimeFilter.of_range("x", 20, 19).bind(schema), facts) == []
    assert kept(RuntimeFilter.of_range("x", -(2**63), 2**63 - 1).bind(schema), facts) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("type_", "bounds", "low", "high", "expected"),
    [
        (pa.int8(), [0, 100], 90, 10**12, [1]),
        (pa.int8(), [0, 100], 10**12, 10**13, []),
        (pa.int32(), [1, 2], 1.5, 2.5, [1]),
        (pa.decimal128(5, 1), [Decimal("1.2"), Decimal("1.3")], Decimal("1.25"), Decimal("1.35"), [1]),
        (pa.string(), ["a", "b"], "a\0", "b", [1]),
        (pa.date32(), [date(2024, 1, 1), date(2024, 1, 2)], date(2024, 1, 2), date(2024, 2, 1), [1]),
        (pa.float64(), [1.0, float("inf")], 2, float("inf"), [1]),
        (pa.timestamp("ns"), [1_999, 2_000], None, pa.scalar(1, pa.timestamp("us")), [0]),
        (pa.timestamp("us"), [1, 2], pa.scalar(1_500, pa.timestamp("ns")), None, [0, 1]),
    ],
    ids=str,
)
def test_range_of_another_type_is_compared_as_spark_does(
    type_: pa.DataType, bounds: list[object], low: object, high: object, expected: list[int]
) -> None:
    schema, facts = one_column(type_, bounds, bounds)
    assert kept(RuntimeFilter.of_range("x", low, high).bind(schema), facts) == expected


def test_range_that_does_not_compare_exactly_keeps_every_file() -> None:
    found = RuntimeFilter.of_range("x", 1.5, 2.5).bind(Schema.of(x=pa.int64()))
    assert not found.prunes
    assert "rounds" in found.notes[0]


def test_open_null_safe_range_cannot_prune_and_says_why() -> None:
    found = RuntimeFilter.of_range("x", None, None, null_safe=True).bind(Schema.of(x=pa.int64()))
    assert not found.prunes
    assert found.idle() == "any value, and NULL, may be a join key"


def test_date_beyond_python_is_an_open_end() -> None:
    schema, facts = one_column(pa.date32(), [0, 10], [1, 11])
    far = pa.scalar(2**31 - 1, pa.int32()).cast(pa.date32())
    assert kept(RuntimeFilter.of_range("x", date(1970, 1, 5), far).bind(schema), facts) == [1]


# -- bloom filters --------------------------------------------------------------------------------------------


def bloom_of(array: pa.Array) -> Bloom:
    return Bloom.of(encode(array, array.type).keys, false_positives=1e-6)


def test_bloom_filter_is_asked_where_values_can_be_listed() -> None:
    """A single value and a short run are looked up; a long run is kept."""
    schema, facts = one_column(pa.int64(), [5, 6, 7, 0, 10, None], [5, 6, 16, 9, 10**6, None])
    found = RuntimeFilter.of_bloom("x", bloom_of(pa.array([5, 999]))).bind(schema)
    assert kept(found, facts) == [0, 3, 4, 5]
    bounded = RuntimeFilter.of_bloom("x", bloom_of(pa.array([5, 999])), 0, 8).bind(schema)
    assert kept(bounded, facts) == [0, 3, 5]


def test_bloom_filter_of_strings_is_asked_for_single_values() -> None:
    schema, facts = one_column(pa.string(), ["a", "b", "a"], ["a", "b", "z"])
    assert kept(RuntimeFilter.of_bloom("x", bloom_of(pa.array(["a"]))).bind(schema), facts) == [0, 2]


def test_open_ended_single_string_is_looked_up() -> None:
    """A string partition that was not cut says [p, p + NUL)."""
    schema = Schema.of(x=pa.string())
    lower, upper = (encode(pa.array(side), pa.string()) for side in (["a", "b", "b"], ["a\0", "b\0", "b\1"]))
    no, yes = np.zeros(3, np.bool_), np.ones(3, np.bool_)
    facts = Facts(3, {1: Domain(no, no, yes, (Range(lower, upper, upper_open=True),))})
    assert kept(RuntimeFilter.of_bloom("x", bloom_of(pa.array(["a"]))).bind(schema), facts) == [0, 2]


def test_open_ended_run_of_numbers_excludes_its_end() -> None:
    schema = Schema.of(x=pa.int64())
    no, yes = np.zeros(2, np.bool_), np.ones(2, np.bool_)
    ends = [KeyArray(np.array(side), yes) for side in ([0, 10], [10, 20])]
    facts = Facts(2, {1: Domain(no, no, yes, (Range(*ends, upper_open=True),))})
    assert kept(RuntimeFilter.of_bloom("x", bloom_of(pa.array([10]))).bind(schema), facts) == [1]


def test_bloom_filter_knows_nan_null_and_zero() -> None:
    schema = Schema.of(x=pa.float64())
    zeros = pa.array([0.0, 0.0]), pa.array([0.0, 0.0])
    stats = ColumnStats(*zeros, pa.array([0, 1]), pa.array([0, 1]), pa.array([5, 5]))
    facts = Facts(2, {1: stats_domain(schema.columns[0], stats, 2)})
    assert kept(RuntimeFilter.of_bloom("x", bloom_of(pa.array([-0.0]))).bind(schema), facts) == [0, 1]
    assert kept(RuntimeFilter.of_bloom("x", bloom_of(pa.array([NAN]))).bind(schema), facts) == [1]
    assert kept(RuntimeFilter.of_bloom("x", bloom_of(pa.array([7.0]))).bind(schema), facts) == []
    assert kept(RuntimeFilter.of_bloom("x", bloom_of(pa.array([7.0])), null_safe=True).bind(schema), facts) == [1]


@pytest.mark.parametrize(
    ("keys", "given", "type_", "prunes"),
    [
        (pa.array([1], pa.int8()), pa.int8(), pa.int64(), True),
        (pa.array([0.5], pa.float32()), pa.float32(), pa.float64(), True),
        (pa.array(["a"]), pa.string(), pa.binary(), True),
        (pa.array([Decimal("1.0")], pa.decimal128(5, 1)), pa.decimal128(5, 1), pa.decimal128(9, 1), True),
        (pa.array([Decimal("1.0")], pa.decimal128(5, 1)), pa.decimal128(5, 1), pa.decimal128(9, 2), False),
        (pa.array([1]), pa.int64(), pa.float64(), False),
        (pa.array([1]), pa.int64(), pa.date32(), False),
        (pa.array([1]), None, pa.string(), False),
        (pa.array([1], pa.timestamp("us")), pa.timestamp("us"), pa.timestamp("us", "UTC"), False),
        (pa.array([1], pa.timestamp("ns")), pa.timestamp("ns"), pa.timestamp("ns"), False),
    ],
    ids=str,
)
def test_bloom_filter_is_asked_only_for_keys_of_equal_meaning(
    keys: pa.Array, given: pa.DataType | None, type_: pa.DataType, prunes: bool
) -> None:
    found = RuntimeFilter.of_bloom("x", bloom_of(keys), type=given).bind(Schema.of(x=type_))
    assert found.prunes is prunes
    assert bool(found.notes) is not prunes


def test_full_bloom_filter_is_not_asked() -> None:
    bloom = Bloom.sized(1)
    bloom.add(np.arange(10_000))
    found = RuntimeFilter.of_bloom("x", bloom).bind(Schema.of(x=pa.int64()))
    assert not found.prunes
    assert "is full" in found.notes[0]
    ranged = RuntimeFilter.of_bloom("x", bloom, 0, 5).bind(Schema.of(x=pa.int64()))
    assert ranged.prunes


# -- names, texts and bad input -------------------------------------------------------------------------------


def test_columns_are_found_by_name_as_predicates_find_them() -> None:
    schema = Schema.of(Customer_ID=pa.int64())
    assert RuntimeFilter.of("customer_id", [1]).bind(schema).columns == schema.columns
    with pytest.raises(BindError, match="Customer_ID"):
        RuntimeFilter.of("customer_id", [1]).bind(schema, case_sensitive=True)
    with pytest.raises(BindError, match="no column order_id"):
        RuntimeFilter.of("order_id", [1]).bind(schema)
    assert RuntimeFilter.of("a.`b.c`", [1]).columns == (("a", "b.c"),)
    assert RuntimeFilter.of([("a", "b")], [1]).columns == (("a", "b"),)
    for wrong in ("", "a..b", "a`b"):
        with pytest.raises(FilterInputError, match="not a column name"):
            RuntimeFilter.of(wrong, [1])


def test_key_columns_are_taken_by_name_and_else_by_place() -> None:
    schema = Schema.of(a=pa.int64(), b=pa.int64())
    facts = files(schema, 2, a=([1, 2], [1, 2]), b=([2, 1], [2, 1]))
    swapped = pa.table({"b": [2], "a": [1], "more": [0]})
    assert kept(RuntimeFilter.of(["a", "b"], swapped).bind(schema), facts) == [0]
    placed = pa.record_batch({"k1": [2], "k2": [1]})
    assert kept(RuntimeFilter.of(["a", "b"], placed).bind(schema), facts) == [1]


def test_text_names_the_filter_in_a_line() -> None:
    keys = RuntimeFilter.of("customer_id", np.arange(5, 1239))
    assert keys.text == "customer_id in 1,234 join keys [5 … 1238]"
    assert RuntimeFilter.of("c", ["x"]).text == "c in 1 join key [x]"
    assert RuntimeFilter.of("c", []).text == "c in 0 join keys"
    assert RuntimeFilter.of_range("c", 5, None).text == "c in join keys [5 … ]"
    assert RuntimeFilter.of_range("c", None, None, null_safe=True).text == "c in join keys of any value or null"
    bloom = Bloom.of(np.arange(1000))
    assert RuntimeFilter.of_bloom("c", bloom, 1, 9).text == "c in a bloom filter of 1,000 join keys [1 … 9]"
    assert RuntimeFilter.of("c", ["x" * 100]).text == f"c in 1 join key [{'x' * 39}…]"
    assert RuntimeFilter.of("c", pa.array([2**31 - 1], pa.int32()).view(pa.date32())).text.startswith(
        "c in 1 join key"
    )


def test_unknown_columns_are_found_out_cheaply() -> None:
    found = RuntimeFilter.of("x", [1]).bind(Schema.of(x=pa.int64()))
    assert found.idle() is None
    assert found.idle(Facts(3, {})) == "no statistics for x in these files"
    assert found.probe(Facts(3, {})).notes == ("no statistics for x in these files",)


@pytest.mark.parametrize(
    ("columns", "keys", "message"),
    [
        ([], {}, "at least one column"),
        (["a", "b"], [1, 2], "came as one array"),
        (["a", "b"], {"a": [1, 2], "b": [1]}, "unequal lengths"),
        (["a", "b"], {"a": [1], "x": [1], "y": [1]}, "2 columns"),
        ("a", [[1], [2]], "have no order"),
        ("a", [{"x": 1}], "have no order"),
        ("a", [1, "x"], "cannot be an Arrow array"),
    ],
)
def test_keys_that_cannot_be_used_are_an_error(columns: list[str] | str, keys: object, message: str) -> None:
    with pytest.raises(FilterInputError, match=message):
        RuntimeFilter.of(columns, keys)  # type: ignore[arg-type] # on purpose


@pytest.mark.parametrize("end", [object(), [1], {"a": 1}])
def test_range_that_has_no_order_is_an_error(end: object) -> None:
    with pytest.raises(FilterInputError):
        RuntimeFilter.of_range("x", end, None)
