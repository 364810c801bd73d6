"""Casts that keep every value: their cuts, by trying values on both sides of each; and those that keep not."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from tamis.predicate.bind import bind
from tamis.predicate.bound import Known, Leaf, Unclear
from tamis.predicate.compare.widening import widened
from tamis.predicate.keys import Key, decimal_bytes, float_key
from tamis.predicate.schema import Schema
from tamis.predicate.sql.parse import parse

I8, I32, I64, F32, F64 = pa.int8(), pa.int32(), pa.int64(), pa.float32(), pa.float64()


@pytest.mark.parametrize(
    ("argument", "name"),
    [
        (I32, "int"),
        (I32, "bigint"),
        (pa.bool_(), "tinyint"),
        (I32, "decimal(10,0)"),
        (I64, "decimal(19,0)"),
        (I32, "double"),
        (I8, "float"),
        (F32, "double"),
        (F64, "double"),
        (pa.decimal128(10, 2), "decimal(12,4)"),
    ],
)
def test_cast_that_keeps_every_value_has_a_type(argument: pa.DataType, name: str) -> None:
    assert widened(argument, name) is not None


@pytest.mark.parametrize(
    ("argument", "name"),
    [
        (I32, "smallint"),  # may overflow
        (I32, "decimal(9,0)"),
        (I64, "decimal(20,2)"),
        (I32, "float"),  # may round
        (I64, "double"),
        (F64, "float"),
        (F64, "bigint"),
        (F32, "decimal(38,10)"),
        (pa.decimal128(10, 2), "decimal(12,1)"),
        (pa.decimal128(10, 2), "decimal(10,4)"),
        (pa.decimal128(10, 2), "double"),
        (pa.decimal128(10, 2), "bigint"),
        (pa.bool_(), "double"),
        (pa.string(), "int"),
        (pa.date32(), "int"),
    ],
)
def test_cast_that_may_lose_a_value_has_none(argument: pa.DataType, name: str) -> None:
    assert widened(argument, name) is None


def leaf(sql: str, type_: pa.DataType) -> Leaf:
    root = bind(parse(sql), Schema.of(x=type_)).root
    assert isinstance(root, Leaf), root
    assert root.inner is root.outer
    return root


INTS = (-(2**31), -6, -5, 0, 4, 5, 6, 2**31 - 1)
D10_2 = pa.decimal128(10, 2)
WIDE = pa.decimal128(20, 2)


@pytest.mark.parametrize("operator", ["=", "!=", "<", "<=", ">", ">=", "<=>"])
@pytest.mark.parametrize(
    ("cast", "literal", "value"),
    [
        ("bigint", "5L", Decimal(5)),
        ("bigint", "-5L", Decimal(-5)),
        ("bigint", "5.5", Decimal("5.5")),
        ("double", "4.5D", Decimal("4.5")),
        ("double", "-5D", Decimal(-5)),
        ("decimal(12,2)", "5.00", Decimal(5)),
        ("decimal(12,2)", "5.01", Decimal("5.01")),
        ("decimal(30,10)", "-5.5", Decimal("-5.5")),
        ("decimal(30,10)", "5", Decimal(5)),
    ],
)
def test_cast_of_an_int_is_cut_where_its_values_are(operator: str, cast: str, literal: str, value: Decimal) -> None:
    found = (
        leaf(f"cast(x AS {cast}) {operator} {literal}", I32)
        if (operator not in {"=", "<=>", "!="} or value == int(value))
        else None
    )
    if found is None:
        root = bind(parse(f"cast(x AS {cast}) {operator} {literal}"), Schema.of(x=I32)).root
        assert isinstance(root, Leaf) if operator == "!=" else root == Known(value=False, text=root.text)
        return
    for number in INTS:
        held = {"=": number == value, "<=>": number == value, "!=": number != value, "<": number < value}
        held |= {"<=": number <= value, ">": number > value, ">=": number >= value}
        assert found.outer.holds(number) is held[operator], number


@pytest.mark.parametrize(("type_", "key"), [(D10_2, int), (WIDE, decimal_bytes)])
def test_cast_of_a_decimal_is_cut_where_its_values_are(type_: pa.DataType, key: type) -> None:
    def key_of(unscaled: int) -> Key:
        return key(unscaled)  # type: ignore[no-any-return] # int or bytes

    at_most = leaf("cast(x AS decimal(38,4)) <= 1.2350", type_).outer
    assert [at_most.holds(key_of(n)) for n in (-(10**10) + 1, 123, 124, 10**10 - 1)] == [True, True, False, False]
    at_least = leaf("cast(x AS decimal(38,4)) >= 1.2300", type_).outer
    assert [at_least.holds(key_of(n)) for n in (-5, 122, 123, 124)] == [False, False, True, True]


def test_literal_beyond_the_column_is_a_constant() -> None:
    def root(sql: str) -> object:
        return bind(parse(sql), Schema.of(x=I32)).root

    assert root("cast(x AS bigint) = 5000000000") == Known(value=False, text="cast(x AS bigint) = 5000000000")
    assert isinstance(root("cast(x AS bigint) < 5000000000"), Leaf)  # all but NULL
    assert isinstance(root("cast(x AS smallint) = 5"), Unclear)
    assert root("cast(x AS double) > double('Infinity')") == Known(
        value=False, text="cast(x AS double) > double('Infinity')"
    )


def test_cast_of_a_float_keeps_its_keys() -> None:
    found = leaf("cast(x AS double) >= 1.5D", F32).outer
    assert [found.holds(float_key(value)) for value in (1.0, 1.5, 2.0, float("nan"))] == [False, True, True, True]


def test_list_of_a_cast_holds_its_members() -> None:
    found = leaf("cast(x AS bigint) IN (1L, 5L, 5000000000)", I32).outer
    assert [found.holds(number) for number in (0, 1, 2, 5, 6)] == [False, True, False, True, False]
