"""Single values decode as PyIceberg encodes them, and bytes that are no value say nothing."""

from __future__ import annotations

import struct
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg import conversions
from pyiceberg import types as ice

from tamis.formats.iceberg.bounds import MapColumn, decode_values
from tests.making.manifests import scalars


def decoded(values: list[bytes | None], type_: pa.DataType) -> pa.Array:
    found = decode_values(pa.array(values, pa.binary()), np.arange(len(values)), type_)
    found.validate(full=True)
    return found


LONGS = st.integers(-(1 << 63), (1 << 63) - 1)
INTS = st.integers(-(1 << 31), (1 << 31) - 1)
CASES = [
    (ice.BooleanType(), pa.bool_(), st.booleans()),
    (ice.IntegerType(), pa.int32(), INTS),
    (ice.LongType(), pa.int64(), LONGS),
    (ice.DateType(), pa.int32(), INTS),
    (ice.TimestampType(), pa.int64(), LONGS),
    (ice.DoubleType(), pa.float64(), st.floats(allow_nan=False)),
    (ice.FloatType(), pa.float32(), st.floats(width=32, allow_nan=False)),
    (ice.StringType(), pa.string(), st.text()),
    (ice.BinaryType(), pa.binary(), st.binary()),
    (ice.FixedType(5), pa.binary(5), st.binary(min_size=5, max_size=5)),
    (ice.UUIDType(), pa.uuid(), st.uuids().map(lambda value: value.bytes)),
]


@pytest.mark.parametrize(("theirs", "ours", "values"), CASES, ids=[str(theirs) for theirs, _, _ in CASES])
def test_values_come_back_as_pyiceberg_wrote_them(
    theirs: ice.PrimitiveType, ours: pa.DataType, values: st.SearchStrategy[object]
) -> None:
    @given(st.lists(st.none() | values))
    def check(wanted: list[object]) -> None:
        raw = [None if value is None else conversions.to_bytes(theirs, value) for value in wanted]
        assert scalars(decoded(raw, ours)) == wanted

    check()


@given(st.integers(1, 38).flatmap(lambda p: st.tuples(st.just(p), st.lists(st.integers(1 - 10**p, 10**p - 1)))))
def test_decimals_of_any_precision_come_back(case: tuple[int, list[int]]) -> None:
    precision, unscaled = case
    scale = min(3, precision)
    wanted = [Decimal((number < 0, tuple(map(int, str(abs(number)))), -scale)) for number in unscaled]
    raw: list[bytes | None] = [conversions.to_bytes(ice.DecimalType(precision, scale), value) for value in wanted]
    assert decoded(raw, pa.decimal128(precision, scale)).to_pylist() == wanted


def test_narrower_values_widen() -> None:
    """Bounds written before a promotion keep their old width."""
    four = struct.pack("<i", -7)
    assert decoded([four, struct.pack("<q", 9)], pa.int64()).to_pylist() == [-7, 9]
    assert decoded([struct.pack("<f", 1.5)], pa.float64()).to_pylist() == [1.5]
    days = [struct.pack("<i", 1), struct.pack("<q", 5)]
    assert decoded(days, pa.timestamp("us")).cast(pa.int64()).to_pylist() == [86_400_000_000, 5]
    assert decoded([struct.pack("<i", 1)], pa.timestamp("ns")).cast(pa.int64()).to_pylist() == [86_400_000_000_000]


SOUND = {
    pa.bool_(): b"\x01",
    pa.int32(): struct.pack("<i", 3),
    pa.int64(): struct.pack("<q", 3),
    pa.float32(): struct.pack("<f", 3),
    pa.date32(): struct.pack("<i", 3),
    pa.time64("us"): struct.pack("<q", 3),
    pa.timestamp("us", "UTC"): struct.pack("<q", 3),
    pa.timestamp("ns"): struct.pack("<q", 3),
    pa.decimal128(9, 2): b"\x7f",
    pa.decimal128(38, 0): b"\x7f",
    pa.uuid(): b"\x01" * 16,
    pa.binary(4): b"\x01" * 4,
}


@pytest.mark.parametrize(
    ("type_", "raw"),
    [
        (pa.bool_(), b""),
        (pa.bool_(), b"\x01\x00"),
        (pa.int32(), struct.pack("<q", 1)),
        (pa.int64(), b"\x01\x02\x03"),
        (pa.float32(), struct.pack("<d", 1)),
        (pa.date32(), b"\x01"),
        (pa.time64("us"), struct.pack("<i", 1)),
        (pa.timestamp("us", "UTC"), struct.pack("<i", 1)),
        (pa.timestamp("ns"), struct.pack("<i", 200_000)),
        (pa.decimal128(9, 2), b""),
        (pa.decimal128(9, 2), b"\x00" * 17),
        (pa.decimal128(9, 2), (10**9).to_bytes(5, "big")),
        (pa.decimal128(9, 2), (-(10**9)).to_bytes(5, "big", signed=True)),
        (pa.decimal128(38, 0), (10**38).to_bytes(16, "big")),
        (pa.decimal128(9, 2), b"\x01" + b"\x00" * 8),
        (pa.uuid(), b"\x00" * 15),
        (pa.binary(4), b"\x00" * 5),
        (pa.null(), b"\x00"),
        (pa.list_(pa.int32()), b"\x00"),
    ],
)
def test_malformed_value_is_null(type_: pa.DataType, raw: bytes) -> None:
    """Alone in its column, and next to a sound value: one bad bound takes nothing from the other files."""
    assert decoded([raw], type_).null_count == 1
    if type_ in SOUND:
        assert decoded([SOUND[type_], raw, None], type_).is_valid().to_pylist() == [True, False, False]


def test_string_that_is_no_utf8_still_compares_by_bytes() -> None:
    found = decoded([b"a\xff", b"b"], pa.string())
    assert found.type == pa.binary()
    assert found.to_pylist() == [b"a\xff", b"b"]


MAPS = st.lists(st.none() | st.lists(st.tuples(st.integers(1, 5), st.integers(0, 99)), max_size=6), max_size=12)


@given(MAPS, st.integers(1, 6), st.integers(0, 3))
def test_map_entry_is_found_in_any_layout(rows: list[list[tuple[int, int]] | None], wanted: int, cut: int) -> None:
    """Absent maps, absent keys, any order; a key that comes twice says nothing."""
    type_ = pa.list_(pa.struct([("key", pa.int32()), ("value", pa.int64())]))
    items = [None if row is None else [{"key": key, "value": value} for key, value in row] for row in rows]
    column = pa.array(items, type_).slice(cut)
    expected = []
    for row in rows[cut:]:
        found = [value for key, value in row or () if key == wanted]
        expected.append(found[0] if len(found) == 1 else None)
    assert MapColumn.of(column).numbers(wanted).to_pylist() == expected
