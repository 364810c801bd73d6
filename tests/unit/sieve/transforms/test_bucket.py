"""The bucket hash against the vectors of the Iceberg specification, against mmh3 and against iceberg-rust."""

import struct
import uuid
from collections.abc import Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import mmh3
import numpy as np
import pyarrow as pa
import pytest
from pyiceberg_core import transform as rust

from tamis.predicate.keys import decimal_bytes
from tamis.sieve.order import encode
from tamis.sieve.transforms.bucket import bucket_of_keys

INT_MAX = (1 << 31) - 1
RANDOM = np.random.default_rng(7)


def buckets(values: Sequence[Any], type_: pa.DataType, count: int = INT_MAX) -> list[int]:
    found = bucket_of_keys(encode(pa.array(values, type_), type_).keys, type_, count)
    assert found is not None
    return [int(bucket) for bucket in found]


def positive(hash_: int) -> int:
    return (hash_ & INT_MAX) % INT_MAX


@pytest.mark.parametrize(
    ("value", "type_", "hash_"),
    [
        (34, pa.int32(), 2017239379),
        (34, pa.int64(), 2017239379),
        (Decimal("14.20"), pa.decimal128(9, 2), -500754589),
        (Decimal("14.20"), pa.decimal128(38, 2), -500754589),
        (date(2017, 11, 16), pa.date32(), -653330422),
        (time(22, 31, 8), pa.time64("us"), -662762989),
        (datetime(2017, 11, 16, 22, 31, 8), pa.timestamp("us"), -2047944441),
        (datetime(2017, 11, 16, 22, 31, 8, 1), pa.timestamp("us"), -1207196810),
        (datetime(2017, 11, 16, 22, 31, 8), pa.timestamp("us", "UTC"), -2047944441),
        (datetime(2017, 11, 16, 22, 31, 8, 1), pa.timestamp("us", "UTC"), -1207196810),
        (datetime(2017, 11, 16, 22, 31, 8), pa.timestamp("ns"), -2047944441),
        (datetime(2017, 11, 16, 22, 31, 8, 1), pa.timestamp("ns", "UTC"), -1207196810),
        (datetime(2017, 11, 16, 22, 31, 8), pa.timestamp("s"), -2047944441),
        (datetime(2017, 11, 16, 22, 31, 8), pa.timestamp("ms"), -2047944441),
        ("iceberg", pa.string(), 1210000089),
        (uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7").bytes, pa.uuid(), 1488055340),
        (b"\x00\x01\x02\x03", pa.binary(4), -188683207),
        (b"\x00\x01\x02\x03", pa.binary(), -188683207),
    ],
)
def test_hash_is_the_one_of_the_specification(value: object, type_: pa.DataType, hash_: int) -> None:
    """Appendix B of the table specification, every row of it that a bucket can have."""
    assert buckets([value], type_) == [positive(hash_)]


def test_nanosecond_of_the_specification_hashes_as_its_microsecond() -> None:
    """2017-11-16T22:31:08.000001001 ns hashes as ...000001 us: the table may have held microseconds before."""
    nanos = 1510871468000001001
    assert buckets([nanos], pa.timestamp("ns")) == [positive(-1207196810)]


def test_nanoseconds_before_1970_round_down() -> None:
    assert buckets([-1], pa.timestamp("ns")) == buckets([-1], pa.timestamp("us"))


def test_longs_hash_as_mmh3_hashes_them() -> None:
    values = [0, 1, -1, (1 << 63) - 1, -(1 << 63), *RANDOM.integers(-(1 << 62), 1 << 62, 1000).tolist()]
    assert buckets(values, pa.int64()) == [positive(mmh3.hash(struct.pack("<q", value))) for value in values]


def test_bytes_of_every_length_hash_as_mmh3_hashes_them() -> None:
    """Lengths from no block to many, and every tail, in mixed order and with bytes beyond 0x7F."""
    values = [RANDOM.bytes(size) for size in RANDOM.permutation(np.repeat(np.arange(40), 5))]
    assert buckets(values, pa.binary()) == [positive(mmh3.hash(value)) for value in values]


def test_strings_hash_their_utf8_bytes() -> None:
    values = ["", "a", "😀abc", "é", "\x00", "iceberg" * 9]
    assert buckets(values, pa.string()) == [positive(mmh3.hash(value.encode())) for value in values]


@pytest.mark.parametrize("precision", [18, 19, 38])
def test_decimals_hash_their_fewest_bytes(precision: int) -> None:
    """The byte length changes at 2**7, 2**15, ...; one below zero it changes one later."""
    edges = [edge for bits in range(7, 60, 8) for edge in ((1 << bits) - 1, 1 << bits)]
    numbers = [0, 1, *edges, 10**18 - 1]
    if precision == 38:
        numbers += [(1 << 63) - 1, 1 << 63, (1 << 64), (1 << 119), (1 << 119) - 1, 10**38 - 1]
    numbers += [-number for number in numbers] + [-number - 1 for number in edges]
    values = [Decimal(number) for number in numbers]
    expected = [
        positive(mmh3.hash(number.to_bytes((_bits(number) // 8) + 1, "big", signed=True))) for number in numbers
    ]
    assert buckets(values, pa.decimal128(precision, 0)) == expected


def _bits(number: int) -> int:
    """Bits beside the sign, as BigInteger.bitLength counts them."""
    return (number if number >= 0 else ~number).bit_length()


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        (RANDOM.integers(-(1 << 31), 1 << 31, 100).tolist(), pa.int32()),
        (RANDOM.integers(-(1 << 62), 1 << 62, 100).tolist(), pa.int64()),
        (RANDOM.integers(-(1 << 31), 1 << 31, 100).tolist(), pa.date32()),
        (RANDOM.integers(-(1 << 62), 1 << 62, 100).tolist(), pa.timestamp("us")),
        (RANDOM.integers(-(1 << 62), 1 << 62, 100).tolist(), pa.timestamp("ns")),
        (RANDOM.integers(0, 86_400_000_000, 100).tolist(), pa.time64("us")),
        ([RANDOM.bytes(size) for size in range(33)], pa.binary()),
        ([RANDOM.bytes(16) for _ in range(9)], pa.binary(16)),
        ([str(number) for number in RANDOM.integers(0, 1 << 62, 100)], pa.string()),
        ([Decimal(int(number)) for number in RANDOM.integers(-(1 << 60), 1 << 60, 100)], pa.decimal128(30, 0)),
    ],
    ids=lambda part: str(part) if isinstance(part, pa.DataType) else "",
)
def test_buckets_are_those_of_iceberg_rust(values: list[Any], type_: pa.DataType) -> None:
    expected = rust.bucket(pa.array(values, type_), 97).to_pylist()
    assert buckets(values, type_, 97) == expected


def test_keys_come_as_cuts_of_a_value_set_too() -> None:
    """A predicate's keys are numpy objects, a file's are Arrow binaries: they meet in the same bucket."""
    texts = np.array([b"iceberg", b""], object)
    assert bucket_of_keys(texts, pa.string(), INT_MAX) is not None
    assert list(bucket_of_keys(texts, pa.string(), INT_MAX)) == buckets(["iceberg", ""], pa.string())  # type: ignore[arg-type] # not None
    wide = np.array([decimal_bytes(1420)], object)
    assert list(bucket_of_keys(wide, pa.decimal128(38, 2), INT_MAX)) == [positive(-500754589)]  # type: ignore[arg-type] # not None


@pytest.mark.parametrize("type_", [pa.float32(), pa.float64(), pa.bool_()])
def test_type_that_iceberg_does_not_bucket_has_no_hash(type_: pa.DataType) -> None:
    assert bucket_of_keys(np.array([1]), type_, 16) is None


@pytest.mark.parametrize("count", [0, -1])
def test_count_that_is_not_positive_has_no_buckets(count: int) -> None:
    assert bucket_of_keys(np.array([1]), pa.int64(), count) is None


@pytest.mark.parametrize("type_", [pa.int64(), pa.string(), pa.decimal128(38, 0)])
def test_no_keys_have_no_buckets(type_: pa.DataType) -> None:
    assert buckets([], type_) == []


def test_slice_hashes_its_own_values() -> None:
    """An Arrow slice shares its parent's buffers: offsets must count."""
    keys = pa.array([b"x", b"iceberg", b"y", b"z"], pa.large_binary()).slice(1, 1)
    found = bucket_of_keys(keys, pa.string(), INT_MAX)
    assert found is not None
    assert found.tolist() == [1210000089]
