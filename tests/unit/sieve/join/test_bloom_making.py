"""A bloom filter in parts, as executors make it."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

from tamis.sieve.join.bloom import Bloom
from tamis.sieve.join.bloom_making import bloom_part, merged
from tamis.sieve.order import encode

VALUES = [
    pa.array([1, None, 3], pa.int32()),
    pa.array(["a", None, "ž"]),
    pa.array([-0.0, None, float("nan")]),
    pa.array([dt.datetime(1969, 12, 31), None], pa.timestamp("us", "UTC")),
    pa.array([b"\0", None], pa.binary()),
    pa.array([True, None]),
    pa.array([dt.date(1900, 1, 1), None]),
]


def batch(values: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([values], ["k0"])


@pytest.mark.parametrize("values", VALUES, ids=lambda values: str(values.type))
def test_parts_hold_every_key_and_no_null(values: pa.Array) -> None:
    """A null is no key: zero, by which numpy stands in for it, must not be found."""
    parts = [next(iter(bloom_part([batch(part)], values.type, 1000))) for part in (values[:1], values[1:])]
    found = merged([part.column(0)[0].as_py() for part in parts], values.type, 1000)
    known = encode(values.drop_null(), values.type).keys
    assert found.contains(known).all()
    assert found.items == len(known)


def test_task_without_rows_gives_an_empty_part() -> None:
    (part,) = bloom_part([], pa.int64(), 10)
    assert Bloom.from_bytes(part.column(0)[0].as_py()).items == 0


def test_session_s_time_zone_does_not_change_a_key() -> None:
    """Spark labels timestamps with the session's zone on their way to Python."""
    berlin = pa.array([dt.datetime(2024, 7, 1)], pa.timestamp("us", "UTC")).cast(pa.timestamp("us", "Europe/Berlin"))
    (part,) = bloom_part([batch(berlin)], pa.timestamp("us", "UTC"), 10)
    utc = np.array([int(dt.datetime(2024, 7, 1, tzinfo=dt.UTC).timestamp()) * 10**6])
    assert merged([part.column(0)[0].as_py()], pa.timestamp("us", "UTC"), 10).contains(utc).all()
