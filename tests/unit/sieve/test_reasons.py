"""Why each file was kept or dropped, in words."""

import datetime as dt
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from tamis.predicate.bind import bind
from tamis.predicate.schema import Schema
from tamis.predicate.sql.parse import parse
from tamis.sieve.domain import ColumnStats
from tamis.sieve.files import FileBatch
from tamis.sieve.funnel import sift
from tamis.sieve.join.runtime import RuntimeFilter
from tamis.sieve.partitions import PartitionField, PartitionSpec
from tamis.sieve.reasons import partition_texts
from tamis.sieve.sieve import Sieve
from tamis.sieve.transforms import parse_transform

INT = pa.int32()
SCHEMA = Schema.of(x=INT, s=pa.string(), y=INT)


def batch(**more: object) -> FileBatch:
    return FileBatch(**{"path": pa.array(["f"]), "size": pa.array([1]), "rows": pa.array([1]), **more})  # type: ignore[arg-type]


def reason(sql: str, found: FileBatch, *specs: PartitionSpec, schema: Schema = SCHEMA, **more: object) -> str:
    plan = sift(Sieve(bind(parse(sql), schema), specs, **more), [found]).plan  # type: ignore[arg-type] # as the fields are
    (text,) = plan.verdicts["reason"].to_pylist()
    assert isinstance(text, str)
    return text


def stats(low: object, high: object, type_: pa.DataType = INT, nulls: int = 0) -> ColumnStats:
    return ColumnStats(pa.array([low], type_), pa.array([high], type_), pa.array([nulls]), None, pa.array([1]))


def test_bounds_that_exclude_are_shown() -> None:
    assert reason("x > 5", batch(stats={1: stats(1, 5)})) == "x > 5 excludes x in [1, 5]"
    assert reason("s = 'c'", batch(stats={2: stats("a", "b", pa.string())})) == "s = 'c' excludes s in [a, b]"


def test_missing_bound_is_not_taken_for_a_value() -> None:
    for lonely in (stats(None, 5), ColumnStats(upper=pa.array([5], INT))):
        text = reason("x > 5", batch(stats={1: lonely}))
        assert text.startswith("x > 5 excludes x")
        assert text.endswith("5]")
        assert "None" not in text
        assert "null" not in text


def test_counts_that_exclude_are_named() -> None:
    only = ColumnStats(null_count=pa.array([0]))
    assert reason("x IS NULL", batch(stats={1: only})).startswith("x IS NULL excludes")


def test_partition_that_excludes_is_shown() -> None:
    spec = PartitionSpec(0, (PartitionField("s", 2, parse_transform("identity")),))
    found = batch(spec_id=0, partition=pa.StructArray.from_arrays([pa.array(["us"])], ["s"]))
    assert reason("s = 'eu'", found, spec) == "s = 'eu' excludes partition s=us"


def test_first_part_that_excludes_is_the_one_named() -> None:
    assert reason("x > 0 AND y > 5 AND x < 0", batch(stats={3: stats(1, 5)})).startswith("x > 0 AND x < 0")
    assert reason("x > 0 AND y > 5", batch(stats={1: stats(1, 5), 3: stats(1, 5)})) == "y > 5 excludes y in [1, 5]"


def test_kept_file_has_a_reason_as_well() -> None:
    assert reason("x > 5", batch(stats={1: stats(6, 9)})) == "every row matches"
    assert reason("x > 5", batch(stats={1: stats(1, 9)})) == "may match: x > 5"
    assert reason("x > 5", batch()) == "may match: x > 5 (no statistics for x)"
    assert reason("x > 5 AND y + 1 = 2", batch(stats={1: stats(6, 9)})) == "may match: y + 1 = 2"
    assert reason("true", batch()) == "every row matches"


def test_file_without_rows_says_so() -> None:
    assert "no rows" in reason("x > 5", batch(rows=pa.array([0])))


def test_contradiction_names_itself_in_every_format() -> None:
    """Iceberg's unpartitioned files carry an empty struct."""
    for found in (
        batch(),
        batch(spec_id=0),
        batch(spec_id=0, partition=pa.array([{}], pa.struct([]))),
    ):
        text = reason("x = 1 AND x = 2", found, PartitionSpec(0))
        assert text.startswith("x = 1 AND x = 2")
        assert "unknown" not in text
        assert "None" not in text


def test_join_keys_that_exclude_are_named() -> None:
    keys = RuntimeFilter.of("x", [7, 8]).bind(SCHEMA)
    text = reason("true", batch(stats={1: stats(1, 5)}), runtime_filters=(keys,))
    assert keys.text in text


def test_binary_bounds_are_shown_in_hex() -> None:
    schema = Schema.of(b=pa.binary(), u=pa.uuid())
    text = reason("b > X'FF'", batch(stats={1: stats(b"\x00", b"\xfe", pa.binary())}), schema=schema)
    assert text == "b > X'FF' excludes b in [0x00, 0xfe]"


@pytest.mark.parametrize(
    ("type_", "sql", "low", "high", "shown"),
    [
        (pa.date32(), "x > '2024-01-01'", dt.date(2020, 1, 1), dt.date(2020, 1, 2), "[2020-01-01, 2020-01-02]"),
        (pa.decimal128(5, 2), "x > 5", Decimal("1.00"), Decimal("2.50"), "[1.00, 2.50]"),
        (pa.bool_(), "x", False, False, "[false, false]"),
        (
            pa.timestamp("us"),
            "x > '2024-01-01'",
            dt.datetime(2020, 1, 1),
            dt.datetime(2020, 1, 2),
            "[2020-01-01 00:00:00",
        ),
        (pa.timestamp("us", "UTC"), "x > '2024-01-01'", 0, 1, "[1970-01-01 00:00:00"),
    ],
)
def test_bounds_of_every_type_are_readable(
    type_: pa.DataType, sql: str, low: object, high: object, shown: str
) -> None:
    assert shown in reason(sql, batch(stats={1: stats(low, high, type_)}), schema=Schema.of(x=type_))


# -- partitions as people write them --------------------------------------------------------------------------


def text(transform: str, values: pa.Array) -> str | None:
    spec = PartitionSpec(0, (PartitionField("p", 1, parse_transform(transform)),))
    found = batch(spec_id=0, partition=pa.StructArray.from_arrays([values], ["p"]))
    (shown,) = partition_texts(found, spec, np.array([0])).to_pylist()
    return shown


@pytest.mark.parametrize(
    ("transform", "values", "shown"),
    [
        ("year", pa.array([54], INT), "p=2024"),
        ("year", pa.array([-1], INT), "p=1969"),
        ("month", pa.array([648], INT), "p=2024-01"),
        ("month", pa.array([-1], INT), "p=1969-12"),
        ("day", pa.array([19_737], INT), "p=2024-01-15"),
        ("day", pa.array([19_737], pa.date32()), "p=2024-01-15"),
        ("day", pa.array([-1], INT), "p=1969-12-31"),
        ("hour", pa.array([25], INT), "p=1970-01-02-01"),
        ("hour", pa.array([-1], INT), "p=1969-12-31-23"),
        ("identity", pa.array(["a/b=c"]), "p=a/b=c"),
        ("identity", pa.array([None], pa.string()), "p=null"),
        ("identity", pa.array([b"\xff"]), "p=0xff"),
        ("identity", pa.array([math.nan]), "p=nan"),
        ("identity", pa.array([54], INT), "p=54"),
        ("identity", pa.array([True]), "p=True"),
        ("truncate[10]", pa.array([20], INT), "p=20"),
        ("bucket[4]", pa.array([3], INT), "p=3"),
        ("void", pa.array([None], INT), "p=null"),
    ],
)
def test_partition_values_are_readable(transform: str, values: pa.Array, shown: str) -> None:
    assert text(transform, values) == shown


@pytest.mark.parametrize(
    ("transform", "values"),
    [
        ("day", pa.array([1 << 30], INT)),
        ("day", pa.array([1 << 22], INT).view(pa.date32())),
        ("hour", pa.array([(1 << 31) - 1], INT)),
        ("year", pa.array([1 << 20], INT)),
        ("month", pa.array([-(1 << 20)], INT)),
        ("identity", pa.array([1 << 60], pa.timestamp("us"))),
        ("identity", pa.array([-(1 << 30)], INT).view(pa.date32())),
        ("identity", pa.array([1], pa.timestamp("ns"))),
        ("identity", pa.array([1], pa.time64("ns"))),
    ],
)
def test_partition_values_beyond_python_s_calendar_are_shown_somehow(transform: str, values: pa.Array) -> None:
    shown = text(transform, values)
    assert shown is not None
    assert shown.startswith("p=")


def test_partition_texts_follow_the_rows_asked_for() -> None:
    spec = PartitionSpec(0, (PartitionField("p", 1, parse_transform("identity")),))
    found = batch(
        path=pa.array(["a", "b", "c"]),
        spec_id=0,
        partition=pa.StructArray.from_arrays([pa.array([1, 2, 1], INT)], ["p"]),
    )
    assert partition_texts(found, spec, np.array([2, 1])).to_pylist() == ["p=1", "p=2"]
    assert partition_texts(found, None, np.array([2, 1])).to_pylist() == [None, None]
    assert partition_texts(found, spec, np.array([], np.int64)).to_pylist() == []


def test_generated_partition_column_is_named_by_its_expression() -> None:
    """The predicate names the source alone: the expression says what the partition has to do with it."""
    schema = Schema.of(ts=pa.timestamp("us"), day=pa.date32())
    spec = PartitionSpec(
        0,
        (
            PartitionField("day", 2, parse_transform("identity")),
            PartitionField("CAST(ts AS DATE)", 1, parse_transform("day"), derived=True),
        ),
    )
    days = pa.array([dt.date(2024, 1, 15)])
    found = batch(spec_id=0, partition=pa.StructArray.from_arrays([days, days], ["day", "CAST(ts AS DATE)"]))
    assert reason("ts < '2024-01-15'", found, spec, schema=schema) == (
        "ts < '2024-01-15' excludes partition day=2024-01-15 by CAST(ts AS DATE)"
    )
    assert reason("day = '2024-01-16'", found, spec, schema=schema).endswith("excludes partition day=2024-01-15")


def test_bound_of_a_text_that_is_none_is_shown_as_one_with_escapes() -> None:
    """A bound above all that begins with `ab` need not be a text itself; nobody reads hexadecimal digits."""
    cut = ColumnStats(pa.array(["aa"]), pa.array([b"ab\xc0"], pa.large_binary()), pa.array([0]), None, pa.array([1]))
    assert reason("s = 'c'", batch(stats={2: cut})) == r"s = 'c' excludes s in [aa, ab\xc0]"
