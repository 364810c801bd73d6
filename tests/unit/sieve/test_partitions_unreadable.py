"""Partition values that cannot be read say nothing: not of values, not of NULL, not of buckets."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tamis.sieve.partitions import Undecoded
from tamis.sieve.transforms.bucket import bucket_of_keys
from tests.unit.sieve.test_partitions import kept, made, spec

INT = pa.int32()
BY_REGION, TRUNCATED, BY_BUCKET = spec(1, (2, "identity")), spec(4, (3, "truncate[10]")), spec(5, (3, "bucket[8]"))
BY_FLOAT = spec(6, (5, "identity"))


@pytest.mark.parametrize("where", ["is null", "is not null", "= 'eu'", "<> 'us'", "is null or region = 'eu'"])
def test_undecoded_value_is_kept_under_every_question(where: str) -> None:
    """Its rows may be NULL, or anything else: also where a value or a NULL stands in its place."""
    for stand_in in ("us", None):
        fault = Undecoded(0, np.array([True, False]), "not UTF-8")
        values = pa.array([stand_in, "de"], pa.string())
        assert kept(made(f"region {where}", BY_REGION), 1, values, undecoded=[fault])[0]


@pytest.mark.parametrize("where", ["id is null", "id is not null", "id = 100"])
def test_value_that_its_transform_cannot_have_made_is_kept_under_every_question(where: str) -> None:
    assert kept(made(where, TRUNCATED), 4, pa.array([13], INT)) == [True]
    assert kept(made(where, BY_BUCKET), 5, pa.array([8], INT)) == [True]


def test_unreadable_float_may_be_nan() -> None:
    fault = Undecoded(0, np.array([True, False]), "too short")
    found = made("f = double('NaN')", BY_FLOAT)
    assert kept(found, 6, pa.array([1.5, 1.5]), undecoded=[fault]) == [True, False]


def test_undecoded_bucket_is_kept_whatever_number_stands_in_its_place() -> None:
    """A stand-in is no bucket: it must not choose one."""
    hashed = bucket_of_keys(np.array([42]), pa.int64(), 8)
    assert hashed is not None
    bucket = int(hashed[0])
    numbers = pa.array([number for number in range(8) for _ in range(2)], INT)
    fault = Undecoded(0, np.array([False, True] * 8), "the value cannot be read")
    found = kept(made("id = 42", BY_BUCKET), 5, numbers, undecoded=[fault])
    assert found == [answer for number in range(8) for answer in (number == bucket, True)]


def test_undecoded_bucket_takes_no_fact_from_another_field_of_its_column() -> None:
    """Two fields of one column: what the readable one says still counts."""
    both = spec(7, (3, "bucket[8]"), (3, "truncate[10]"))
    fault = Undecoded(0, np.array([True, True]), "the value cannot be read")
    assert kept(made("id = 42", both), 7, pa.array([0, 0], INT), pa.array([40, 50], INT), undecoded=[fault]) == [
        True,
        False,
    ]
