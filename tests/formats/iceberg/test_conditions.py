"""Expressions of PyIceberg mean to tamis what they mean to PyIceberg, or they are refused."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pytest
from pyiceberg import expressions as ice

import tamis
from tamis.errors import BindError
from tamis.formats import converted_condition
from tamis.predicate.bind import bind
from tamis.predicate.schema import Schema
from tests.making.cli_tables import catalog, folder_of

_KINDS = pa.schema(
    {
        "f": pa.float32(),
        "g": pa.float64(),
        "u": pa.uuid(),
        "x": pa.decimal128(30, 2),
        "i": pa.int32(),
        "d": pa.date32(),
        "w": pa.timestamp("us"),
        "z": pa.timestamp("us", "UTC"),
        "t": pa.time64("us"),
        "b": pa.binary(),
    }
)
_FLOAT = 0.10000000149011612
_UUID = "f79c3e09-677c-4bbd-a479-3f349cb785e7"


@pytest.mark.parametrize(
    ("expression", "sql"),
    [
        (ice.EqualTo("f", 0.1), f"f = {_FLOAT}D"),
        (ice.EqualTo("F", 0.1), f"F = {_FLOAT}D"),
        (ice.LessThanOrEqual("f", "0.1"), f"f <= {_FLOAT}D"),
        (ice.In("f", {0.1, 0.5}), f"f IN ({_FLOAT}D, 0.5D)"),
        (ice.EqualTo("f", 16777217), "f = 16777216.0D"),
        (ice.EqualTo("f", 1e39), "f = 1e+39D"),
        (ice.EqualTo("g", 0.1), "g = 0.1D"),
        (ice.EqualTo("u", _UUID.upper()), f"u = '{_UUID}'"),
        (ice.In("u", {_UUID.upper(), str(UUID(int=7))}), f"u IN ('{UUID(int=7)}', '{_UUID}')"),
        (ice.EqualTo("x", "12345678901234567890.12"), "x = 12345678901234567890.12"),
        (ice.EqualTo("x", 1.1), "x = 1.10"),
        (ice.EqualTo("x", Decimal("1.5")), "x = 1.5"),
        (ice.EqualTo("i", Decimal(5)), "i = 5"),
        (ice.EqualTo("i", 2**40), f"i = {2**40}"),
        (ice.EqualTo("d", 19723), "d = date '2024-01-01'"),
        (ice.EqualTo("d", dt.datetime(2024, 1, 1)), "d = date '2024-01-01'"),
        (ice.EqualTo("w", dt.date(2024, 1, 1)), "w = date '2024-01-01'"),
        (ice.EqualTo("w", "2024-01-01T12:00:00"), "w = timestamp_ntz '2024-01-01 12:00:00'"),
        (ice.EqualTo("z", "2024-01-01T12:00:00+02:00"), "z = timestamp '2024-01-01 10:00:00Z'"),
        (ice.EqualTo("z", 0), "z = timestamp '1970-01-01 00:00:00Z'"),
        (ice.EqualTo("t", "12:30:00"), "t = time '12:30:00'"),
        (ice.EqualTo("b", UUID(int=7)), f"b = X'{UUID(int=7).hex.upper()}'"),
    ],
    ids=str,
)
def test_value_is_brought_to_the_column_s_type_as_pyiceberg_does(expression: object, sql: str) -> None:
    """To Spark 0.1 is a double, which no float equals: PyIceberg compares with the nearest float, and finds rows."""
    schema = Schema.of(**{column.name: column.type for column in _KINDS})
    assert bind(converted_condition(expression, schema), schema).sql == sql


@pytest.mark.parametrize(
    "expression",
    [
        ice.EqualTo("i", Decimal("1.5")),
        ice.LessThanOrEqual("i", "5.7"),
        ice.LessThan("d", dt.datetime(2024, 1, 1, 12)),
        ice.EqualTo("x", 1.005),
        ice.EqualTo("x", "1.5"),
        ice.EqualTo("z", "2024-01-01T12:00:00"),
        ice.EqualTo("w", "2024-01-01T12:00:00+02:00"),
        ice.EqualTo("u", "no uuid"),
        ice.LessThan("t", 24 * 3600 * 10**6),
        ice.GreaterThan("t", -1),
        ice.In("d", {"2024-01-01", dt.datetime(2024, 1, 1, 12)}),
    ],
    ids=str,
)
def test_value_that_pyiceberg_cuts_or_cannot_read_is_refused(expression: object) -> None:
    """It would compare with another value than the one that is written, or not at all."""
    schema = Schema.of(**{column.name: column.type for column in _KINDS})
    with pytest.raises(BindError, match="of PyIceberg"):
        converted_condition(expression, schema)


def test_float_that_pyiceberg_finds_is_found(tmp_path: Path) -> None:
    """PyIceberg itself misses it in a file that holds nothing else: it compares bounds with the double."""
    made = catalog(tmp_path).create_table("db.floats", schema=pa.schema({"f": pa.float32()}))
    made.append(pa.table({"f": pa.array([0.0, 0.1, 1.0], pa.float32())}))
    made.append(pa.table({"f": pa.array([0.1], pa.float32())}))
    table = tamis.open(folder_of(made))
    for expression in (ice.EqualTo("f", 0.1), ice.In("f", {0.1, 7.0}), ice.EqualTo("f", "0.1")):
        assert made.scan(expression).to_arrow()["f"].to_pylist() == [_FLOAT]
        assert len(table.plan(expression).files) == 2
