"""Which values identity and bucket may stand for, and what void and unknown never say."""

from decimal import Decimal

import pyarrow as pa
import pytest

from tamis.predicate.keys import NAN_KEY
from tests.unit.sieve.transforms.preimages import DAY, INT_MAX, TZ, US, bounds, ints, of


def test_identity_is_exact() -> None:
    assert bounds(of("identity", pa.int32(), ints(5, None))) == [(5, 5), (None, None)]
    assert bounds(of("identity", pa.string(), pa.array(["a"]))) == [(b"a", b"a")]
    assert bounds(of("identity", pa.bool_(), pa.array([True]))) == [(1, 1)]


def test_identity_of_nan_says_nothing() -> None:
    """NaN is no ordinary value: the caller knows what a partition of NaN holds."""
    found = of("identity", pa.float64(), pa.array([float("nan"), 1.0]))
    ((low, high), (one, _)) = bounds(found)
    assert (low, high, found.problems) == (None, None, ())
    assert one not in (None, NAN_KEY)


def test_bounds_of_which_one_is_nan_say_nothing() -> None:
    """A writer that compared with NaN may have got the other bound wrong as well."""
    nan, one = pa.array([float("nan")]), pa.array([1.0])
    assert bounds(of("identity", pa.float64(), nan, one)) == [(None, None)]
    assert bounds(of("identity", pa.float64(), one, nan)) == [(None, None)]


def test_minus_zero_is_zero() -> None:
    assert bounds(of("identity", pa.float64(), pa.array([-0.0]))) == [(0, 0)]


def test_partition_of_a_promoted_column_is_widened() -> None:
    assert bounds(of("identity", pa.int64(), ints(5))) == [(5, 5)]
    assert bounds(of("identity", US, pa.array([1], pa.date32()))) == [(DAY, DAY)]
    assert bounds(of("identity", pa.date32(), ints(5))) == [(5, 5)]
    narrow = pa.array([Decimal("1.5")], pa.decimal128(3, 1))
    assert bounds(of("identity", pa.decimal128(18, 1), narrow)) == [(15, 15)]
    single, double = (
        bounds(of("identity", pa.float64(), pa.array([0.5], type_))) for type_ in (pa.float32(), pa.float64())
    )
    assert single == double


def test_value_that_does_not_fit_says_nothing_and_the_others_do() -> None:
    found = of("identity", pa.int32(), pa.array([1, 1 << 40, None, 7]))
    assert bounds(found) == [(1, 1), (None, None), (None, None), (7, 7)]
    assert [problem.mask.tolist() for problem in found.problems] == [[False, True, False, False]]


def test_date_beyond_the_timestamps_says_nothing() -> None:
    found = of("identity", US, pa.array([INT_MAX, 1], pa.date32()))
    assert bounds(found) == [(None, None), (DAY, DAY)]


def test_uuids_between_two_bounds_across_a_sign_say_nothing() -> None:
    """Java orders them as signed longs, the specification as bytes: only a single one is sure."""
    one, two = pa.array([b"\x01" * 16], pa.uuid()), pa.array([b"\xf1" * 16], pa.uuid())
    assert bounds(of("identity", pa.uuid(), one, two)) == [(None, None)]
    assert bounds(of("identity", pa.uuid(), two, one)) == [(None, None)]
    assert bounds(of("identity", pa.uuid(), two, two)) == [(b"\xf1" * 16, b"\xf1" * 16)]


def test_uuids_between_bounds_that_both_orders_agree_on_are_a_range() -> None:
    """Java's signed longs and the specification's bytes differ only across a sign."""
    low, high = b"\x01" * 16, b"\x02" * 8 + b"\xf1" * 8
    one, two = (pa.array([value], pa.uuid()) for value in (low, high))
    assert bounds(of("identity", pa.uuid(), one, two)) == [(low, high)]
    assert bounds(of("identity", pa.uuid(), two, one)) == [(None, None)]


def test_fixed_value_of_another_length_says_nothing() -> None:
    found = of("identity", pa.binary(2), pa.array([b"abc", b"ab"]))
    assert bounds(found) == [(None, None), (b"ab", b"ab")]


@pytest.mark.parametrize(
    ("text", "source", "values"),
    [
        ("identity", pa.int32(), pa.array(["5"])),
        ("identity", pa.date32(), pa.array([0], US)),
        ("identity", TZ, pa.array([1], pa.date32())),
        ("identity", pa.string(), pa.array([b"a"])),
        ("day", US, pa.array(["2024-01-15"])),
        ("hour", pa.date32(), ints(1)),
        ("year", pa.string(), ints(1)),
        ("truncate[4]", pa.string(), ints(1)),
        ("truncate[4]", pa.int32(), pa.array(["1"])),
        ("truncate[4]", pa.int32(), pa.array([4], pa.date32())),
        ("truncate[4]", pa.float64(), pa.array([1.0])),
        ("truncate[4]", pa.date32(), ints(4)),
        ("bucket[4]", pa.int32(), pa.array(["1"])),
        ("bucket[4]", pa.float64(), ints(1)),
        ("identity", pa.list_(pa.int32()), pa.array([[1]])),
    ],
    ids=str,
)
def test_types_that_do_not_belong_together_say_nothing(text: str, source: pa.DataType, values: pa.Array) -> None:
    """No mapping found never means identity."""
    found = of(text, source, values)
    assert (found.range, found.buckets, found.null_is_null) == (None, None, False)
    assert [problem.mask.all() for problem in found.problems] == [True]


@pytest.mark.parametrize("text", ["void", "zorder", "bucket[0]"])
def test_void_and_unknown_say_nothing_not_even_of_null(text: str) -> None:
    """A dropped field of a v1 table is void: its null is no fact about the rows."""
    found = of(text, pa.int32(), ints(1, None))
    assert (found.range, found.buckets, found.null_is_null, found.problems) == (None, None, False, ())


@pytest.mark.parametrize("text", ["identity", "truncate[4]", "bucket[4]", "day"])
def test_null_of_every_other_transform_is_null(text: str) -> None:
    source = pa.date32() if text == "day" else pa.int32()
    for values in (ints(None), pa.nulls(1)):
        found = of(text, source, values)
        assert found.null_is_null
        assert found.problems == ()


@pytest.mark.parametrize("source", [pa.string(), pa.decimal128(38, 2), pa.decimal128(5, 2), pa.int64()])
def test_partition_column_of_nulls_alone_needs_no_type(source: pa.DataType) -> None:
    found = of("truncate[4]", source, pa.nulls(2))
    assert found.null_is_null
    assert bounds(found) == [(None, None), (None, None)]


def test_bucket_is_its_number() -> None:
    found = of("bucket[8]", pa.string(), ints(3, None, 8, -1)).buckets
    assert found is not None
    assert found.valid.tolist() == [True, False, False, False]
    assert (found.count, found.lower[0], found.upper[0]) == (8, 3, 3)


def test_bucket_number_that_does_not_exist_is_reported() -> None:
    found = of("bucket[8]", pa.string(), ints(3, 8, -1))
    assert [problem.mask.tolist() for problem in found.problems] == [[False, True, True]]


def test_bounds_of_buckets_are_a_range_of_them() -> None:
    found = of("bucket[8]", pa.int64(), ints(2, None, 2), ints(5, 5, None)).buckets
    assert found is not None
    assert list(zip(found.lower, found.upper, found.valid, strict=True)) == [(2, 5, True), (0, 5, True), (2, 7, True)]


def test_no_files_have_empty_preimages() -> None:
    for text, source in (
        ("identity", pa.string()),
        ("truncate[2]", pa.string()),
        ("truncate[2]", pa.decimal128(38, 2)),
    ):
        assert bounds(of(text, source, pa.array([], source))) == []
    assert bounds(of("day", US, ints())) == []


def test_chunked_and_dictionary_arrays_are_read() -> None:
    chunked = pa.chunked_array([ints(1), ints(2)])
    assert bounds(of("identity", pa.int32(), chunked)) == [(1, 1), (2, 2)]
    assert bounds(of("truncate[9]", pa.string(), pa.array(["a"]).dictionary_encode())) == [(b"a", b"a\x00")]
