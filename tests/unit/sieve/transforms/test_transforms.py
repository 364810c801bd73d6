"""Transforms as Iceberg reads and applies them, against iceberg-rust where that is right."""

from decimal import Decimal

import pyarrow as pa
import pytest
from pyiceberg_core import transform as rust

from tamis.predicate.keys import INT64_MAX, INT64_MIN
from tamis.sieve.transforms import apply, parse_transform
from tests.unit.sieve.transforms.preimages import DAY, INT_MAX, INT_MIN, NS, TZ, US, ints

# -- parsing -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["identity", "year", "month", "day", "hour", "void", "Day", "VOID"])
def test_plain_name_is_read_in_any_case(text: str) -> None:
    found = parse_transform(text)
    assert (found.name, found.width, found.text) == (text.lower(), None, text)


@pytest.mark.parametrize(
    ("text", "name", "width"),
    [("bucket[16]", "bucket", 16), ("TRUNCATE[4]", "truncate", 4), ("bucket[007]", "bucket", 7),
     ("truncate[2147483647]", "truncate", INT_MAX)],
)  # fmt: skip
def test_width_is_read_as_java_reads_it(text: str, name: str, width: int) -> None:
    found = parse_transform(text)
    assert (found.name, found.width, found.text) == (name, width, text)


@pytest.mark.parametrize(
    "text",
    ["", "days", "years", "bucket", "truncate", "bucket[]", "bucket[0]", "truncate[-4]", "bucket[2147483648]",
     "bucket[99999999999999999999]", "bucket[\u0661]", " day", "day ", "day\n", "bucket[4]x", "zorder", "unknown",
     "identity[3]", "bucket[1.5]", "bucket[4", "bucket[" + "9" * 5000 + "]"],
)  # fmt: skip
def test_all_else_is_unknown_and_never_an_error(text: str) -> None:
    """`days` and `years` are names of SQL functions; no metadata and no version of Java knows them."""
    found = parse_transform(text)
    assert (found.name, found.width, found.text) == ("unknown", None, text)


# -- apply ---------------------------------------------------------------------------------------------------------

STAMPS = [0, -1, 1, -DAY, -DAY - 1, DAY, 1_700_000_000_000_000, -9_999_999_999_999_999, None]


@pytest.mark.parametrize("type_", [US, TZ, NS])
@pytest.mark.parametrize("name", ["year", "month", "day", "hour"])
def test_time_transform_is_that_of_iceberg_rust(name: str, type_: pa.DataType) -> None:
    values = pa.array(STAMPS, type_)
    found = apply(parse_transform(name), values)
    assert found.to_pylist() == getattr(rust, name)(values).to_pylist()


@pytest.mark.parametrize("name", ["year", "month", "day"])
def test_time_transform_of_dates_is_that_of_iceberg_rust(name: str) -> None:
    values = pa.array([0, -1, 1, 31, 365, -365, -366, 19_000, -141_428, None], pa.date32())
    found = apply(parse_transform(name), values)
    assert found.to_pylist() == getattr(rust, name)(values).to_pylist()


@pytest.mark.parametrize(
    ("name", "type_"), [("year", pa.int32()), ("month", pa.int32()), ("day", pa.date32()), ("hour", pa.int32())]
)
def test_time_transform_has_the_result_type_of_the_specification(name: str, type_: pa.DataType) -> None:
    assert apply(parse_transform(name), pa.array([0], US)).type == type_


@pytest.mark.parametrize(("unit", "per_day"), [("s", 86_400), ("ms", 86_400_000), ("us", DAY), ("ns", DAY * 1000)])
def test_every_unit_rounds_down_before_1970(unit: str, per_day: int) -> None:
    values = pa.array([-1, -per_day, -per_day - 1, 0, per_day - 1], pa.timestamp(unit))
    assert apply(parse_transform("day"), values).cast(pa.int32()).to_pylist() == [-1, -1, -2, 0, 0]
    assert apply(parse_transform("year"), values).to_pylist() == [-1, -1, -1, 0, 0]


def test_hour_beyond_32_bits_wraps_as_in_java() -> None:
    values = pa.array([INT64_MAX, INT64_MIN], US)
    assert (
        apply(parse_transform("hour"), values).to_pylist()
        == rust.hour(values).to_pylist()
        == [-1732919508, 1732919507]
    )


def test_dates_at_both_ends_have_a_year() -> None:
    values = pa.array([INT_MIN, INT_MAX], pa.date32())
    assert apply(parse_transform("year"), values).to_pylist() == [-5879611, 5879610]


def test_ints_truncate_downwards() -> None:
    values = ints(0, 9, 10, -1, -10, -11, None)
    assert apply(parse_transform("truncate[10]"), values).to_pylist() == [0, 0, 10, -10, -10, -20, None]


def test_least_int_wraps_as_in_java() -> None:
    """PyIceberg says -2147483650, which is no int; Java and iceberg-rust wrap."""
    assert apply(parse_transform("truncate[10]"), ints(INT_MIN)).to_pylist() == [2147483646]
    assert rust.truncate(ints(INT_MIN), 10).to_pylist() == [2147483646]


def test_least_long_wraps_as_in_java() -> None:
    found = apply(parse_transform("truncate[10]"), pa.array([INT64_MIN]))
    assert found.to_pylist() == [INT64_MIN - INT64_MIN % 10 + (1 << 64)]


def test_bytes_and_shorts_truncate_as_ints() -> None:
    found = apply(parse_transform("truncate[10]"), pa.array([-128, 127], pa.int8()))
    assert (found.type, found.to_pylist()) == (pa.int32(), [-130, 120])


@pytest.mark.parametrize("precision", [9, 18, 19, 38])
def test_decimals_truncate_their_unscaled_value(precision: int) -> None:
    values = pa.array([Decimal("10.65"), Decimal("-0.05"), Decimal("0.00"), None], pa.decimal128(precision, 2))
    found = apply(parse_transform("truncate[50]"), values)
    assert found.type == values.type
    assert found.to_pylist() == [Decimal("10.50"), Decimal("-0.50"), Decimal("0.00"), None]


def test_decimals_of_two_words_borrow() -> None:
    numbers = [1 << 64, (1 << 64) + 3, -(1 << 64) - 3, 10**38 - 1, -(10**37)]
    values = pa.array([Decimal(number) for number in numbers], pa.decimal128(38, 0))
    found = apply(parse_transform("truncate[7]"), values)
    assert [int(value) for value in found.to_pylist()] == [number - number % 7 for number in numbers]


def test_strings_truncate_by_code_points() -> None:
    values = pa.array(["😀abc", "ab", "", "é😀é😀", None])
    assert apply(parse_transform("truncate[3]"), values).to_pylist() == ["😀ab", "ab", "", "é😀é", None]


def test_binaries_truncate_by_bytes() -> None:
    assert apply(parse_transform("truncate[2]"), pa.array([b"\xff\xff\xff", b"a", None])).to_pylist() == [
        b"\xff\xff",
        b"a",
        None,
    ]


def test_void_is_null_of_the_source_type() -> None:
    assert apply(parse_transform("void"), pa.array(["a"])).equals(pa.nulls(1, pa.string()))


def test_bucket_of_null_is_null_and_of_zero_is_not() -> None:
    """PyIceberg's scalar bucket takes 0 and the empty string for null."""
    found = apply(parse_transform("bucket[16]"), ints(0, None))
    assert (found.type, found.to_pylist()) == (pa.int32(), [rust.bucket(ints(0), 16)[0].as_py(), None])


@pytest.mark.parametrize(
    ("text", "values"),
    [("zorder", ints(1)), ("hour", pa.array([1], pa.date32())), ("day", ints(1)), ("truncate[4]", pa.array([1.0])),
     ("truncate[4]", pa.array([b"1234"], pa.binary(4))), ("bucket[4]", pa.array([1.0])),
     ("bucket[4]", pa.array([True]))],
)  # fmt: skip
def test_transform_that_does_not_take_the_type_is_an_error(text: str, values: pa.Array) -> None:
    with pytest.raises(ValueError, match=text.split("[", maxsplit=1)[0]):
        apply(parse_transform(text), values)
