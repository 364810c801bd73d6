"""Join keys choose buckets of several columns: which of them can be hashed, and which cannot."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tamis.predicate.schema import Column, Schema
from tamis.sieve.domain import BucketRange, Domain, Facts
from tamis.sieve.hashing import ANY_BUCKET, key_array
from tamis.sieve.join.runtime import RuntimeFilter
from tamis.sieve.transforms.bucket import ICEBERG
from tests.making.hashes import ValueHash, whole_keys

LONG = pa.int64()
SCHEMA = Schema.of(a=LONG, b=LONG, c=pa.string())
A, B, C = SCHEMA.columns


def by_sum(keys: pa.Table, total: int) -> np.ndarray:
    """Numbers and lengths added up, NULL counting 1."""
    numbers = [[1 if v is None else len(v) if isinstance(v, str) else v for v in c.to_pylist()] for c in keys.columns]
    return np.array([sum(row) % total for row in zip(*numbers, strict=True)])


BY_SUM = ValueHash(by_sum)


def kept(keys: RuntimeFilter, facts: Facts, schema: Schema = SCHEMA) -> list[int]:
    return np.flatnonzero(keys.bind(schema).possible(facts)).tolist()


def test_tuples_choose_the_buckets_they_hash_to() -> None:
    facts = whole_keys(BY_SUM, (A, B), range(8), 8)
    keys = RuntimeFilter.of(["b", "a"], {"b": [2, 1], "a": [3, 1]})
    assert kept(keys, facts) == [2, 5]


def test_null_in_a_tuple_is_hashed_if_the_join_takes_it() -> None:
    facts = whole_keys(BY_SUM, (A, B), range(8), 8)
    keys = {"a": [3, None], "b": [3, 4]}
    assert kept(RuntimeFilter.of(["a", "b"], keys), facts) == [6]
    assert kept(RuntimeFilter.of(["a", "b"], keys, null_safe=True), facts) == [5, 6]
    nulls = {"a": pa.array([None], LONG), "b": [4]}
    assert kept(RuntimeFilter.of(["a", "b"], nulls, null_safe=True), facts) == [5]


def test_more_columns_than_the_bucket_key_choose_by_those_of_the_key() -> None:
    facts = whole_keys(BY_SUM, (A, C), range(8), 8)
    keys = RuntimeFilter.of(["a", "b", "c"], {"a": [1, 2], "b": [100, 200], "c": ["x", "yyy"]})
    assert kept(keys, facts) == [2, 5]


def test_key_that_lacks_a_column_of_the_bucket_key_chooses_nothing() -> None:
    facts = whole_keys(BY_SUM, (A, C), range(8), 8)
    assert kept(RuntimeFilter.of(["a", "b"], {"a": [1], "b": [1]}), facts) == list(range(8))
    assert kept(RuntimeFilter.of("a", [1]), facts) == list(range(8))


def test_bucket_key_hashed_as_another_type_chooses_nothing() -> None:
    narrow = Column(1, ("a",), pa.int32())
    facts = whole_keys(BY_SUM, (narrow, B), range(8), 8)
    assert kept(RuntimeFilter.of(["a", "b"], {"a": [1], "b": [1]}), facts) == list(range(8))


def test_key_that_stands_for_many_values_is_not_hashed() -> None:
    """A join key in microseconds equals a thousand values in nanoseconds, which hash into a thousand buckets."""
    keys = RuntimeFilter.of(["t", "b"], {"t": pa.array([1], pa.timestamp("us")), "b": pa.array([1])})
    for unit, expected in (("us", [0]), ("ns", [0, 1, 2, 3])):
        schema = Schema.of(t=pa.timestamp(unit), b=LONG)
        facts = whole_keys(ValueHash(lambda keys, _: np.zeros(len(keys))), schema.columns, range(4), 4)
        assert kept(keys, facts, schema) == expected


def test_hash_that_refuses_is_noted_and_keeps_every_file() -> None:
    facts = whole_keys(ValueHash(lambda *_: None), (A, B), range(4), 4)
    bound = RuntimeFilter.of(["a", "b"], {"a": [1], "b": [1]}).bind(SCHEMA)
    found = bound.probe(facts)
    assert found.possible.all()
    assert found.notes == ("buckets do not prune: the bucket hash cannot take these values",)


def test_tuple_that_may_lie_in_any_bucket_is_looked_for_in_all() -> None:
    anywhere = ValueHash(lambda keys, _: np.where(np.asarray(keys.column(0)) == 1, ANY_BUCKET, 3))
    facts = whole_keys(anywhere, (A, B), range(4), 4)
    assert kept(RuntimeFilter.of(["a", "b"], {"a": [1, 2], "b": [1, 1]}), facts) == [0, 1, 2, 3]
    assert kept(RuntimeFilter.of(["a", "b"], {"a": [5, 2], "b": [1, 1]}), facts) == [3]


def test_two_bucket_keys_must_meet_in_one_tuple() -> None:
    """(1, 2) lies in the one bucket and (2, 4) in the other: no tuple lies in both."""
    first = whole_keys(BY_SUM, (A, B), [3, 6, 3], 8)
    by_first = ValueHash(lambda keys, total: np.asarray(keys.column(0)) % total)
    both = whole_keys(by_first, (A, B), [2, 2, 1], 8, first)
    assert kept(RuntimeFilter.of(["a", "b"], {"a": [1, 2], "b": [2, 4]}), both) == [1, 2]


@pytest.mark.parametrize("total", [(1 << 31) - 1, 1 << 17])
def test_very_many_buckets_need_no_table_of_them(total: int) -> None:
    """Java takes any positive int for a number of buckets: nothing is as large as they are many."""
    schema = Schema.of(x=LONG)
    hit = ICEBERG.buckets([key_array(np.array([5]), LONG)], [LONG], total)
    assert not isinstance(hit, str)
    buckets = np.array([hit[0], (hit[0] + 1) % total])
    yes = np.ones(2, np.bool_)
    facts = Facts(2, {1: Domain(yes, yes, yes, (), (BucketRange(ICEBERG, total, buckets, buckets, yes),))})
    assert kept(RuntimeFilter.of("x", [5]), facts, schema) == [0]
