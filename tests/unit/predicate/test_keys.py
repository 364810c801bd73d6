"""Keys sort as Spark compares, and every type's span holds its keys."""

import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from tamis.predicate.keys import (
    INT64_MAX,
    INT64_MIN,
    NAN_KEY,
    decimal_bytes,
    float_key,
    has_order,
    key_span,
    successor,
    uses_bytes,
)
from tamis.predicate.type_names import is_text
from tamis.sieve.order import encode

FLOATS = [-math.inf, -1.7e308, -1.0, -5e-324, 0.0, 5e-324, 0.1, 1.0, 2.0**53, 1.7e308, math.inf]


def test_floats_sort_by_value_with_nan_above_infinity() -> None:
    keys = [float_key(value) for value in [*FLOATS, math.nan]]
    assert keys == sorted(set(keys))


def test_both_zeros_are_one_value() -> None:
    assert float_key(-0.0) == float_key(0.0) == 0


def test_every_nan_is_one_value() -> None:
    payload = np.array([0x7FF0000000000001, -1], np.int64).view(np.float64)
    assert [float_key(float(value)) for value in payload] == [NAN_KEY, NAN_KEY]
    assert encode(pa.array(payload), pa.float64()).keys.tolist() == [NAN_KEY, NAN_KEY]


def test_a_float_sorts_among_doubles() -> None:
    """Against a double literal Spark widens the float: 0.1 as a float is not 0.1."""
    tenth = float(np.float32(0.1))
    assert float_key(0.1) < float_key(tenth)
    assert encode(pa.array([0.1], pa.float32()), pa.float32()).keys.tolist() == [float_key(tenth)]


def test_wide_decimals_sort_by_value() -> None:
    numbers = [-(10**38) + 1, -(10**18), -256, -255, -1, 0, 1, 255, 256, 10**18, 10**38 - 1]
    keys = [decimal_bytes(number) for number in numbers]
    assert keys == sorted(set(keys))
    assert {len(key) for key in keys} == {16}


@pytest.mark.parametrize(
    "type_",
    [
        pa.bool_(),
        pa.int8(),
        pa.int64(),
        pa.float32(),
        pa.float64(),
        pa.decimal128(18, 2),
        pa.decimal128(19, 2),
        pa.decimal128(38, 38),
        pa.date32(),
        pa.time32("s"),
        pa.time64("ns"),
        pa.timestamp("s"),
        pa.timestamp("ns", "UTC"),
        pa.string(),
        pa.large_string(),
        pa.binary(),
        pa.large_binary(),
        pa.binary(4),
        pa.uuid(),
    ],
)
def test_primitive_types_have_an_order(type_: pa.DataType) -> None:
    assert has_order(type_)
    assert isinstance(key_span(type_).least, bytes if uses_bytes(type_) else int)


@pytest.mark.parametrize(
    "type_", [pa.struct([]), pa.list_(pa.int32()), pa.map_(pa.string(), pa.int32()), pa.null(), pa.decimal256(50, 2)]
)
def test_other_types_have_none(type_: pa.DataType) -> None:
    assert not has_order(type_)


@pytest.mark.parametrize(
    ("type_", "least", "greatest"),
    [
        (pa.bool_(), 0, 1),
        (pa.int8(), -128, 127),
        (pa.int64(), INT64_MIN, INT64_MAX),
        (pa.time32("ms"), 0, 86_399_999),
        (pa.decimal128(3, 1), -999, 999),
        (pa.decimal128(38, 0), decimal_bytes(1 - 10**38), decimal_bytes(10**38 - 1)),
        (pa.string(), b"", None),
        (pa.binary(2), b"\x00\x00", b"\xff\xff"),
        (pa.uuid(), b"\x00" * 16, b"\xff" * 16),
        (pa.float64(), float_key(-math.inf), NAN_KEY),
        (pa.timestamp("us"), INT64_MIN, INT64_MAX),
    ],
)
def test_span_is_the_least_and_the_greatest_key(type_: pa.DataType, least: object, greatest: object) -> None:
    assert (key_span(type_).least, key_span(type_).greatest) == (least, greatest)


def test_eighteen_digits_fit_a_number_and_nineteen_do_not() -> None:
    assert not uses_bytes(pa.decimal128(18, 0))
    assert uses_bytes(pa.decimal128(19, 0))
    most = Decimal(10**18 - 1)
    assert encode(pa.array([most, -most], pa.decimal128(18, 0)), pa.decimal128(18, 0)).keys.tolist() == [
        10**18 - 1,
        1 - 10**18,
    ]


def test_nothing_lies_between_a_key_and_its_successor() -> None:
    assert successor(5) == 6
    assert successor(b"a") == b"a\x00"
    assert successor(b"") == b"\x00"


def test_strings_are_text_and_binaries_are_not() -> None:
    assert is_text(pa.string())
    assert is_text(pa.large_string())
    assert not is_text(pa.binary())
    assert not is_text(pa.uuid())


def test_strings_sort_by_code_point_not_by_utf16() -> None:
    """U+FFFD is below the emoji, though its UTF-16 unit is above both of the emoji's surrogates."""
    assert "\ufffd".encode() < "😀".encode()
