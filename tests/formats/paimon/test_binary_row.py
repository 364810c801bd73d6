"""BinaryRows decoded in columns are what pypaimon encodes, and damage is never a value."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import types as pt
from pypaimon.schema.data_types import AtomicType, DataField
from pypaimon.table.row.generic_row import GenericRow, GenericRowSerializer

from tamis.formats.paimon.binary_row import BinaryRows
from tamis.formats.paimon.schema import PaimonField
from tamis.formats.paimon.types import atomic

MOMENTS = st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31))
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "BOOLEAN": st.booleans(),
    "TINYINT": st.integers(-(1 << 7), (1 << 7) - 1),
    "SMALLINT": st.integers(-(1 << 15), (1 << 15) - 1),
    "INT": st.integers(-(1 << 31), (1 << 31) - 1),
    "BIGINT": st.integers(-(1 << 63), (1 << 63) - 1),
    "FLOAT": st.floats(width=32),
    "DOUBLE": st.floats(),
    "STRING": st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    "BYTES": st.binary(max_size=20),
    "DATE": st.dates(),
    "DECIMAL(9, 2)": st.integers(-(10**9) + 1, 10**9 - 1).map(lambda one: Decimal(f"{one}E-2")),
    "DECIMAL(38, 4)": st.integers(-(10**38) + 1, 10**38 - 1).map(lambda one: Decimal(f"{one}E-4")),
    "TIMESTAMP(3)": MOMENTS.map(lambda one: one.replace(microsecond=one.microsecond // 1000 * 1000)),
    "TIMESTAMP(6)": MOMENTS,
}


def paimon_field(name: str) -> PaimonField:
    found = atomic(name)
    return PaimonField(0, "c", found.arrow, found.name, precision=found.precision, length=found.length)


def serialised(types: list[str], values: list[Any]) -> bytes:
    fields = [DataField(place, f"c{place}", AtomicType(name)) for place, name in enumerate(types)]
    return bytes(GenericRowSerializer.to_bytes(GenericRow(values, fields)))


@st.composite
def rows(draw: st.DrawFn) -> tuple[list[str], list[list[Any]]]:
    types = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=70))
    row = st.tuples(*(st.none() | VALUES[name] for name in types)).map(list)
    return types, draw(st.lists(row, min_size=1, max_size=5))


def same(left: object, right: object) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return (math.isnan(left) and math.isnan(right)) or (
            left == right and math.copysign(1, left) == math.copysign(1, right)
        )
    return left == right


@given(rows())
def test_fields_are_what_was_encoded(made: tuple[list[str], list[list[Any]]]) -> None:
    types, values = made
    decoded = BinaryRows.of(pa.array([serialised(types, row) for row in values], pa.binary()))
    for place, name in enumerate(types):
        found = decoded.field(place, paimon_field(name))
        assert not found.damaged.any()
        for got, row in zip(found.values.to_pylist(), values, strict=True):
            assert same(got, row[place]), (name, got, row[place])


@given(rows(), st.data())
def test_damaged_rows_are_no_error_and_nothing_outside_them_is_read(
    made: tuple[list[str], list[list[Any]]], data: st.DataObject
) -> None:
    """Bytes of a stranger: whatever offsets they have, a value is of this row, or is not known."""
    types, values = made
    row = bytearray(serialised(types, values[0]))
    for _ in range(data.draw(st.integers(1, 8))):
        row[data.draw(st.integers(0, len(row) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(row[: data.draw(st.integers(0, len(row)))])
    around = b"SECRET" * 20
    decoded = BinaryRows.of(pa.array([around, cut, None, around], pa.binary()).slice(1, 2))
    for place, name in enumerate(types):
        found = decoded.field(place, paimon_field(name)).values
        assert not found[1].is_valid
        # Damaged times may lie beyond what Python has: texts and bytes are looked at, other types hold no text.
        texts = found.cast(pa.binary()) if pt.is_string(found.type) or pt.is_binary(found.type) else pa.nulls(0)
        assert all(b"SECRET" not in text for text in texts.to_pylist() if text is not None)


def test_wide_decimals_at_the_ends_of_their_bytes() -> None:
    """Java writes as few bytes as hold a number: -128 is one byte."""
    word = bytearray(serialised(["DECIMAL(20, 2)"], [Decimal("-1.28")]))
    word[12:16] = (1).to_bytes(4, "little")
    word[20:36] = b"\x80" + bytes(15)
    found = BinaryRows.of(pa.array([bytes(word)])).field(0, paimon_field("DECIMAL(20, 2)"))
    assert found.values.to_pylist() == [Decimal("-1.28")]


@pytest.mark.parametrize("name", ["DECIMAL(3, 0)", "DECIMAL(20, 0)"])
def test_decimal_of_too_many_digits_is_damage(name: str) -> None:
    wide = serialised(
        ["DECIMAL(38, 0)" if "20" in name else "DECIMAL(18, 0)"], [Decimal(10**17 * (1000 if "20" in name else 1))]
    )
    good = serialised([name], [Decimal(7)])
    found = BinaryRows.of(pa.array([wide, good])).field(0, paimon_field(name))
    assert found.values.to_pylist() == [None, Decimal(7)]
    np.testing.assert_array_equal(found.damaged, [True, False])


def test_field_beyond_a_rows_arity_says_nothing() -> None:
    found = BinaryRows.of(pa.array([serialised(["INT"], [1])])).field(1, paimon_field("INT"))
    assert found.values.to_pylist() == [None]
    assert not found.damaged.any()


@pytest.mark.parametrize(
    ("name", "value", "place", "said"),
    [
        ("STRING", "x" * 20, 12, 60),  # a length that reaches into the next row
        ("STRING", "x" * 20, 16, 30),  # an offset that does
        ("BYTES", b"x" * 20, 16, 44),  # one that begins there
        ("DECIMAL(20, 2)", Decimal("1.25"), 16, 32),
        ("DECIMAL(20, 2)", Decimal("1.25"), 12, 17),
        ("TIMESTAMP(6)", dt.datetime(2024, 1, 1), 16, 24),
    ],
)
def test_value_that_lies_outside_its_row_is_damage(name: str, value: object, place: int, said: int) -> None:
    """Behind a row stands its neighbour: none of it is this row's value."""
    wrong = bytearray(serialised([name], [value]))
    wrong[place : place + 4] = said.to_bytes(4, "little")
    good = serialised([name], [value])
    found = BinaryRows.of(pa.array([bytes(wrong), good, good], pa.binary())).field(0, paimon_field(name))
    assert found.values.to_pylist() == [None, value, value]
    np.testing.assert_array_equal(found.damaged, [True, False, False])
