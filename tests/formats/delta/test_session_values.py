"""Texts that engines read differently: their rows have what delta-spark 4.4.0 gives, or none is told."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import tamis
from tamis.errors import UnreadableFileError
from tamis.formats.delta.session_values import read_texts
from tests.making.delta_logs import SCHEMA, DeltaLog, add

NAIVE, ZONED = pa.timestamp("us"), pa.timestamp("us", "UTC")
NOON = 1_705_320_000_000_000


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        (pa.int32(), "+7", 7),
        (pa.int32(), " 8 ", 8),
        (pa.int32(), "-4.9", -4),
        (pa.int64(), "-9223372036854775808.5", -(1 << 63)),
        (pa.int32(), "__HIVE_DEFAULT_PARTITION__", None),
        (pa.float64(), ".5d", 0.5),
        (pa.float64(), "1.F", 1.0),
        (pa.float32(), "1d", 1.0),
        (pa.decimal128(10, 2), "1.505", Decimal("1.51")),
        (pa.decimal128(10, 2), "-1.505", Decimal("-1.51")),
        (pa.decimal128(5, 0), "2.5", Decimal(3)),
        (pa.bool_(), "Y", True),
        (pa.bool_(), "0", False),
        (pa.string(), "", ""),
        (pa.string(), "__HIVE_DEFAULT_PARTITION__", "__HIVE_DEFAULT_PARTITION__"),
        (pa.binary(), "\\u0001", b"\\u0001"),
        (pa.date32(), "2024-01", 19_723),
        (pa.date32(), "2024-01-15 x", 19_737),
        (NAIVE, "2024-01-15 12:00:00+05:00", NOON),
        (NAIVE, "2024-01-15 12:00:00.1234567", NOON + 123_456),
        (ZONED, "2024-01-15T12:00:00.000000-0800", NOON + 8 * 3600 * 10**6),
    ],
)
def test_rows_have_what_sparks_cast_gives(type_: pa.DataType, text: str, value: object) -> None:
    values, known = read_texts(pa.array([text, None, text]), type_, None)
    assert known.to_pylist() == [True, False, True]
    plain = values.view(pa.int32()) if type_ == pa.date32() else values
    plain = plain.view(pa.int64()) if pa.types.is_timestamp(type_) else plain
    assert plain.to_pylist() == [value, None, value]


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        (pa.int32(), "x"),
        (pa.int64(), "12\t"),
        (pa.int32(), "2147483648"),
        (pa.float64(), "Infinityd"),
        (pa.decimal128(10, 2), "99999999.995"),
        (pa.decimal128(10, 2), "1.5d"),
        (pa.bool_(), "off"),
        (pa.date32(), "20240115"),
        (ZONED, "2024-01-15 24:00:00"),
        (ZONED, "2024-01-15T12"),
    ],
)
def test_what_is_not_sure_is_not_told(type_: pa.DataType, text: str) -> None:
    """Most of these are NULL to Spark; of others the session's zone is needed, which is not known here."""
    values, known = read_texts(pa.array([text]), type_, None)
    assert known.to_pylist() == [False]
    assert values.null_count == 1


def test_a_table_with_such_values_is_read_and_one_of_damaged_values_is_not(tmp_path: Path) -> None:
    """The plan keeps their files, whatever is asked; a file whose value is none is named."""
    numbers = {**SCHEMA, "fields": [SCHEMA["fields"][0], {**SCHEMA["fields"][1], "type": "integer"}]}  # type: ignore[index,dict-item] # a list of dicts
    log = DeltaLog(tmp_path)
    log.begin(add("plus", "+7"), add("plain", "8"), schema=numbers)
    table = tamis.open(tmp_path)
    plan = table.plan("part = 8")
    assert plan.files["path"].to_pylist() == ["plus", "plain"]
    assert table.source.scan(plan).constants["part"].to_pylist() == [7, 8]
    log.commit(add("none", "seven"))
    damaged = tamis.open(tmp_path)
    with pytest.raises(UnreadableFileError, match="none: its value of the partition column part"):
        damaged.source.scan(damaged.plan("part = 8"))
