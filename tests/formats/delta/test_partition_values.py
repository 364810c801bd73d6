"""Partition values as writers spell them: decoded exactly, or their file is kept."""

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.formats.delta.partition_values import partition_columns
from tamis.formats.delta.schema import DeltaField, DeltaSchema
from tamis.predicate.compare.zones import find_zone

ZONED, NAIVE = pa.timestamp("us", "UTC"), pa.timestamp("us")
DAY = 86_400_000_000


def schema(type_: pa.DataType, physical: str = "p") -> DeltaSchema:
    column = DeltaField("p", physical, physical, type_, "string")
    return DeltaSchema((column,), (column,))


def maps(*values: list[tuple[str, str | None]] | None) -> pa.Array:
    return pa.array(list(values), pa.map_(pa.string(), pa.string()))


def decoded(type_: pa.DataType, *texts: str | None, zone: str | None = None) -> tuple[list[Any], list[bool]]:
    given_zone = find_zone(zone) if zone else None
    rows = maps(*([("p", text)] for text in texts))
    found, undecoded = partition_columns(rows, schema(type_), given_zone)
    failed = np.zeros(len(texts), np.bool_)
    for one in undecoded:
        failed |= one.rows
        assert one.text
    values = found.field(0)
    if pa.types.is_timestamp(type_):
        values = values.view(pa.int64())
    elif pa.types.is_date32(type_):
        values = values.view(pa.int32())
    return values.to_pylist(), failed.tolist()


def micros(*parts: int) -> int:
    return (dt.datetime(*parts) - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        (pa.int64(), "-9223372036854775808", -(1 << 63)),
        (pa.int8(), "127", 127),
        (pa.float64(), "1.0E300", 1e300),
        (pa.float64(), "Infinity", math.inf),
        (pa.float64(), "-Infinity", -math.inf),
        (pa.float32(), "1.1", float(np.float32(1.1))),
        (pa.decimal128(38, 10), "-12345678901234567890.1234567891", Decimal("-12345678901234567890.1234567891")),
        (pa.decimal128(38, 10), "1.5", Decimal("1.5000000000")),
        (pa.bool_(), "true", True),
        (pa.bool_(), "False", False),
        (pa.string(), "null", "null"),
        (pa.binary(), "é", b"\xc3\xa9"),
        (pa.binary(), "a\\b", b"a\\b"),
        (pa.date32(), "1969-12-31", -1),
        (pa.date32(), "0001-01-01", -719_162),
        (pa.date32(), "+10000-01-01", 2_932_897),
        (pa.date32(), "-0044-03-15", -735525),
        (NAIVE, "2024-01-01 01:02:03.1", micros(2024, 1, 1, 1, 2, 3, 100_000)),
        (NAIVE, "0001-01-01 00:00:00", micros(1, 1, 1)),
        (NAIVE, "2024-01-01", micros(2024, 1, 1)),
        (ZONED, "2024-01-01T05:00:00.000000Z", micros(2024, 1, 1, 5)),
        (ZONED, "2024-01-01T05:00:00.123456+02:00", micros(2024, 1, 1, 3, 0, 0, 123_456)),
        (ZONED, "0001-01-01T00:00:00-04:56:02", micros(1, 1, 1, 4, 56, 2)),
        (ZONED, "0001-01-01T04:56:02.000000Z", micros(1, 1, 1, 4, 56, 2)),
        (ZONED, "+10000-01-01T04:59:59.999999Z", micros(9999, 12, 31, 23, 59, 59, 999_999) + 5 * 3600 * 10**6),
    ],
)
def test_what_spark_writes_is_decoded(type_: pa.DataType, text: str, value: object) -> None:
    """Texts that delta-spark 4.4.0 wrote for these values, but for the offset."""
    assert decoded(type_, text) == ([value], [False])


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        (pa.date32(), "2024-1-5", 19_727),
        (pa.date32(), "10000-01-01", 2_932_897),
        (NAIVE, "2024-1-5", micros(2024, 1, 5)),
        (NAIVE, "2024-1-5 1:2:3.5", micros(2024, 1, 5, 1, 2, 3, 500_000)),
        (NAIVE, "2024-01-05T01:02", micros(2024, 1, 5, 1, 2)),
        (ZONED, "2024-01-05 01:02:03 UTC", micros(2024, 1, 5, 1, 2, 3)),
        (ZONED, "2024-01-05 01:02:03.25GMT", micros(2024, 1, 5, 1, 2, 3, 250_000)),
        (ZONED, "2024-1-5T1:2Z", micros(2024, 1, 5, 1, 2)),
        (ZONED, "2024-01-05 01:02:03 +02:00", micros(2024, 1, 4, 23, 2, 3)),
        (ZONED, "2024-01-05T01:02:03-8", micros(2024, 1, 5, 9, 2, 3)),
    ],
)
def test_what_spark_reads_is_decoded_as_it_reads_it(type_: pa.DataType, text: str, value: object) -> None:
    """The protocol has `{year}-{month}-{day}`, and says nothing of how many digits a part has."""
    assert decoded(type_, text) == ([value], [False])


def test_not_a_number_and_negative_zero_keep_their_signs() -> None:
    (nan, zero), failed = decoded(pa.float64(), "NaN", "-0.0")
    assert math.isnan(nan)
    assert math.copysign(1, zero) == -1
    assert failed == [False, False]


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        (pa.int32(), "2147483648"),
        (pa.int32(), "1.0"),
        (pa.int32(), "x"),
        (pa.int32(), "0x10"),
        (pa.decimal128(4, 2), "1.234"),
        (pa.decimal128(4, 2), "123.4"),
        (pa.bool_(), "1"),
        (pa.binary(), "a\N{REPLACEMENT CHARACTER}"),
        (pa.binary(), "\\u0001"),
        (pa.date32(), "2024-02-30"),
        (pa.date32(), "2024-1-1x"),
        (pa.date32(), "2024-01-01 00:00:00"),
        (pa.string(), "__HIVE_DEFAULT_PARTITION__"),
        (NAIVE, "2024-01-01T00:00:00Z"),
        (NAIVE, "2024-01-01 24:00:00"),
        (NAIVE, "2024-01-01 00:00:00.1234567"),
        (ZONED, "2024-01-01 00:00:00"),
        (ZONED, "2024-01-01T00:00:00+19:00"),
        (ZONED, "2024-1-1T24:00Z"),
        (ZONED, "2024-13-1T00:00Z"),
        (ZONED, "2024-01-01 00:00:00 Europe/Paris"),
        (ZONED, "1704067200"),
    ],
)
def test_what_cannot_be_sure_is_kept(type_: pa.DataType, text: str) -> None:
    """A neighbour that can be read keeps its value."""
    good = {
        pa.bool_(): "true",
        pa.date32(): "2024-01-01",
        ZONED: "2024-01-01T00:00:00Z",
        NAIVE: "2024-01-01 00:00:00",
    }
    values, failed = decoded(type_, text, good.get(type_, "1"))
    assert failed == [True, False]
    assert values[0] is None
    assert values[1] is not None


def test_empty_text_is_null_but_for_strings_and_binaries() -> None:
    """Engines read an empty string as NULL or as empty: its file is kept for both."""
    assert decoded(pa.int32(), "", "1") == ([None, 1], [False, False])
    assert decoded(pa.string(), "", "a") == ([None, "a"], [True, False])
    assert decoded(pa.binary(), "") == ([None], [True])


def test_offset_less_timestamp_is_read_in_a_zone_that_is_named() -> None:
    texts = ("2024-01-01 00:00:00", "2024-01-01T00:00:00Z")
    assert decoded(ZONED, *texts, zone="+02:00") == ([micros(2023, 12, 31, 22), micros(2024, 1, 1)], [False, False])
    assert decoded(ZONED, *texts)[1] == [True, False]


def test_missing_key_is_null_and_a_missing_map_is_not_known() -> None:
    rows = maps([], None, [("p", "1"), ("p", "2")], [("P", "1")], [("other", "1"), ("p", "7")], [("p", None)])
    found, undecoded = partition_columns(rows, schema(pa.int32()))
    assert found.field(0).to_pylist() == [None, None, None, None, 7, None]
    assert [one.rows.tolist() for one in undecoded] == [[False, True, True, True, False, False]]


def test_maps_are_read_by_physical_name_in_any_slice() -> None:
    rows = maps([("col-1", "1")], None, [("col-1", "2")], [("col-1", "3"), ("p", "9")]).slice(2)
    found, undecoded = partition_columns(pa.chunked_array([rows, rows]), schema(pa.int64(), "col-1"))
    assert found.field(0).to_pylist() == [2, 3, 2, 3]
    assert not undecoded


def test_no_partition_columns_no_children() -> None:
    found, undecoded = partition_columns(maps([], []), DeltaSchema(()))
    assert (len(found), found.type.num_fields, undecoded) == (2, 0, ())


def test_parsed_values_stand_in_for_a_missing_map_alone() -> None:
    parsed = pa.StructArray.from_arrays([pa.array([5, 6], pa.int32())], ["p"])
    found, undecoded = partition_columns(maps([("p", "1")], None), schema(pa.int64()), parsed=parsed)
    assert found.field(0).to_pylist() == [1, 6]
    assert not undecoded


MOMENTS = st.integers(micros(1, 1, 1), micros(9999, 12, 31, 23, 59, 59, 999_999))


def _iso(value: int, sep: str, digits: int | None) -> str:
    moment = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=value)
    text = f"{moment.year:04d}-{moment:%m-%d}{sep}{moment:%H:%M:%S}"
    fraction = f"{moment.microsecond:06d}"
    return f"{text}.{fraction}" if digits else text + (f".{fraction}".rstrip("0") if moment.microsecond else "")


@given(st.lists(MOMENTS, max_size=5))
def test_timestamps_come_back(values: list[int]) -> None:
    assert decoded(ZONED, *(_iso(one, "T", 6) + "Z" for one in values))[0] == values
    assert decoded(NAIVE, *(_iso(one, " ", None) for one in values))[0] == values
    assert decoded(ZONED, *(_iso(one, " ", None) for one in values), zone="-05:30")[0] == [
        one + 5 * 3_600_000_000 + 1_800_000_000 for one in values
    ]


@given(st.lists(st.integers(-719_162, 2_932_896), max_size=5))
def test_dates_come_back(values: list[int]) -> None:
    texts = [(dt.date(1970, 1, 1) + dt.timedelta(days=one)).isoformat() for one in values]
    assert decoded(pa.date32(), *texts)[0] == values


@given(
    st.lists(st.text(min_size=1, max_size=4) | st.none(), max_size=4), st.sampled_from([pa.date32(), ZONED, NAIVE])
)
def test_any_text_is_decoded_or_kept(texts: list[str | None], type_: pa.DataType) -> None:
    values, failed = decoded(type_, *texts)
    for text, value, bad in zip(texts, values, failed, strict=True):
        assert (value is None) == (bad or text is None)


@given(st.lists(st.floats(width=32), max_size=4), st.lists(st.floats(), max_size=4))
def test_floats_come_back(singles: list[float], doubles: list[float]) -> None:
    for type_, values in ((pa.float32(), singles), (pa.float64(), doubles)):
        texts = [str(np.float32(one)) if type_ == pa.float32() else repr(one) for one in values]
        texts = [{"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}.get(text, text) for text in texts]
        found, failed = decoded(type_, *texts)
        assert not any(failed)
        np.testing.assert_array_equal(np.array(found, np.float64), np.array(values, np.float64))
