"""Which values a truncated one may stand for: a corner a test."""

from decimal import Decimal

import pyarrow as pa
import pytest

from tamis.predicate.keys import INT64_MAX
from tamis.sieve.transforms import apply, parse_transform
from tests.unit.sieve.transforms.preimages import INT_MAX, INT_MIN, bounds, ints, of


def test_truncated_int_is_its_width() -> None:
    assert bounds(of("truncate[10]", pa.int32(), ints(20, -10, 0, None))) == [
        (20, 29),
        (-10, -1),
        (0, 9),
        (None, None),
    ]


def test_truncated_int_is_clipped_to_the_type() -> None:
    assert bounds(of("truncate[10]", pa.int32(), ints(2147483640))) == [(2147483640, INT_MAX)]
    greatest = INT64_MAX - INT64_MAX % 10
    assert bounds(of("truncate[10]", pa.int64(), pa.array([greatest]))) == [(greatest, INT64_MAX)]


def test_wrapped_int_says_nothing() -> None:
    """truncate[10](INT_MIN) is 2147483646 in Java: taken at its word it would lose the row."""
    found = of("truncate[10]", pa.int32(), apply(parse_transform("truncate[10]"), ints(INT_MIN, 25)))
    assert bounds(found) == [(None, None), (20, 29)]
    assert found.problems[0].mask.tolist() == [True, False]


def test_least_int_as_pyiceberg_writes_it_is_read() -> None:
    """-2147483650 is no int, but it is the right multiple, and a long can hold it."""
    assert bounds(of("truncate[10]", pa.int32(), pa.array([-2147483650]))) == [(INT_MIN, -2147483641)]


def test_bounds_around_a_wrapped_int_do_not_rule_out_the_least_ints() -> None:
    """truncate[7]: INT_MIN wraps to 2147483643, below the greatest multiple 2147483646, so that it hides between."""
    wrapped = apply(parse_transform("truncate[7]"), ints(INT_MIN)).to_pylist()[0]
    top = INT_MAX - INT_MAX % 7
    assert 21 < wrapped < top
    assert bounds(of("truncate[7]", pa.int32(), ints(21), ints(top))) == [(INT_MIN, INT_MAX)]
    assert bounds(of("truncate[7]", pa.int32(), ints(21), ints(28))) == [(21, 34)]


def test_width_that_is_a_power_of_two_never_wraps() -> None:
    assert bounds(of("truncate[8]", pa.int32(), ints(16), ints(INT_MAX - 7))) == [(16, INT_MAX)]


def test_bounds_of_a_long_that_was_an_int_do_not_rule_out_the_least_ints() -> None:
    found = of("truncate[7]", pa.int64(), pa.array([21]), pa.array([7 << 40]))
    assert bounds(found) == [(INT_MIN, (7 << 40) + 6)]


def test_width_beyond_half_of_an_int_says_nothing() -> None:
    """Java's inner sum overflows, as it did for a long column that was an int when it was written."""
    found = of("truncate[1073741825]", pa.int32(), ints(0))
    assert bounds(found) == [(None, None)]
    assert found.problems
    assert bounds(of("truncate[1073741824]", pa.int32(), ints(0))) == [(0, (1 << 30) - 1)]
    width = (1 << 30) + 1
    longs = pa.array([0, 4 * width, -4 * width])
    assert bounds(of(f"truncate[{width}]", pa.int64(), longs)) == [
        (None, None),
        (4 * width, 5 * width - 1),
        (-4 * width, -3 * width - 1),
    ]


def test_partition_of_a_narrower_int_is_widened() -> None:
    assert bounds(of("truncate[10]", pa.int64(), ints(20))) == [(20, 29)]


def test_truncated_decimal_counts_in_its_scale() -> None:
    values = pa.array([Decimal("10.50"), Decimal("-0.50"), None], pa.decimal128(9, 2))
    assert bounds(of("truncate[50]", pa.decimal128(9, 2), values)) == [(1050, 1099), (-50, -1), (None, None)]


def test_wide_decimal_has_wide_keys() -> None:
    type_ = pa.decimal128(38, 0)
    numbers = [1 << 70, -(1 << 70)]
    found = of("truncate[2]", type_, pa.array([Decimal(number) for number in numbers], type_))
    assert [tuple(int.from_bytes(key, "big") - (1 << 127) for key in pair) for pair in bounds(found)] == [
        (number, number + 1) for number in numbers
    ]


@pytest.mark.parametrize("precision", [3, 20])
def test_decimal_below_its_precision_is_clipped(precision: int) -> None:
    """truncate[10](-999) is -1000, a digit more than decimal(3) has; a wider type may carry it."""
    most = 10**precision - 1
    type_ = pa.decimal128(precision, 0)
    written = apply(parse_transform("truncate[10]"), pa.array([Decimal(-most)], type_))
    wider = pa.array([Decimal(-most - 1)], pa.decimal128(precision + 1, 0))
    for values in (written, wider):
        ((low, high),) = bounds(of("truncate[10]", type_, values))
        if isinstance(low, bytes):
            low, high = (int.from_bytes(key, "big") - (1 << 127) for key in (low, high))
        assert (low, high) == (-most, -most + 8)


def test_decimal_that_is_no_multiple_or_too_great_says_nothing() -> None:
    values = pa.array([Decimal("0.01"), Decimal("9999.90"), Decimal("0.10")], pa.decimal128(9, 2))
    found = of("truncate[10]", pa.decimal128(4, 2), values)
    assert bounds(found) == [(None, None), (None, None), (10, 19)]
    assert len(found.problems) == 2


def test_decimal_of_another_scale_says_nothing() -> None:
    found = of("truncate[10]", pa.decimal128(9, 2), pa.array([Decimal("1.0")], pa.decimal128(9, 1)))
    assert (found.range, found.null_is_null, len(found.problems)) == (None, False, 1)


def test_short_string_is_itself_alone() -> None:
    found = of("truncate[3]", pa.string(), pa.array(["ab", ""]))
    assert found.range is not None
    assert found.range.upper_open
    assert bounds(found) == [(b"ab", b"ab\x00"), (b"", b"\x00")]


def test_cut_string_is_all_that_starts_with_it() -> None:
    assert bounds(of("truncate[3]", pa.string(), pa.array(["abc", "ab\U0010ffff"]))) == [
        (b"abc", b"abd"),
        (b"ab\xf4\x8f\xbf\xbf", b"ab\xf4\x8f\xbf\xc0"),
    ]


def test_string_is_measured_in_code_points() -> None:
    """Java measures a prefix in UTF-16, and loses the row "😀abc" to LIKE '😀a%'."""
    p = "😀ab".encode()
    assert bounds(of("truncate[3]", pa.string(), pa.array(["😀ab"]))) == [(p, p[:-1] + b"c")]
    assert bounds(of("truncate[4]", pa.string(), pa.array(["😀ab"]))) == [(p, p + b"\x00")]


def test_string_longer_than_the_width_says_nothing() -> None:
    found = of("truncate[3]", pa.string(), pa.array(["abcd", "abc", "ab", None]))
    assert bounds(found) == [(None, None), (b"abc", b"abd"), (b"ab", b"ab\x00"), (None, None)]
    assert found.problems[0].mask.tolist() == [True, False, False, False]


def test_binary_without_a_successor_is_unbounded_above() -> None:
    values = pa.array([b"\xff\xff", b"a\xff", b"\xff", b"ab"])
    assert bounds(of("truncate[2]", pa.binary(), values)) == [
        (b"\xff\xff", None),
        (b"a\xff", b"b"),
        (b"\xff", b"\xff\x00"),
        (b"ab", b"ac"),
    ]


def test_bounds_of_strings_reach_to_the_end_of_the_upper_one() -> None:
    found = of("truncate[3]", pa.string(), pa.array(["abc", "a"]), pa.array(["xyz", "xy"]))
    assert bounds(found) == [(b"abc", b"xy{"), (b"a", b"xy\x00")]


def test_slice_of_partition_values_is_read_at_its_offset() -> None:
    values = pa.array(["zzz", "ab", "abc", "q"]).slice(1, 2)
    assert bounds(of("truncate[3]", pa.string(), values)) == [(b"ab", b"ab\x00"), (b"abc", b"abd")]
    decimals = pa.array([Decimal(7), Decimal(10)], pa.decimal128(9, 0)).slice(1)
    assert bounds(of("truncate[10]", pa.decimal128(9, 0), decimals)) == [(10, 19)]
