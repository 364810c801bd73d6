"""Generated partition columns prune by their sources, and never a file that holds a matching row."""

import datetime as dt
import pickle
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.formats.delta.generated import DeltaSpec, partition_spec
from tamis.formats.delta.generation import parse_expression
from tamis.formats.delta.partition_values import partition_columns
from tamis.formats.delta.schema import DeltaField, DeltaSchema
from tamis.predicate.schema import Column
from tamis.sieve.order import encode
from tamis.sieve.partitions import Undecoded
from tamis.sieve.transforms import preimage

ZONED, NAIVE = pa.timestamp("us", "UTC"), pa.timestamp("us")
EPOCH = dt.datetime(1970, 1, 1)
HOUR = 3_600_000_000
ZONES = ["UTC", "America/New_York", "Pacific/Apia", "Asia/Kolkata", "Pacific/Kiritimati", "Asia/Manila"]


def schema(source: pa.DataType, *generated: tuple[str, pa.DataType]) -> DeltaSchema:
    column = DeltaField("src", "src", "src", source, "x")
    made = tuple(
        DeltaField(f"g{place}", f"g{place}", f"g{place}", type_, "x", generation_expression=text)
        for place, (text, type_) in enumerate(generated)
    )
    return DeltaSchema((column, *made), made)


def spec_of(source: pa.DataType, *generated: tuple[str, pa.DataType]) -> DeltaSpec:
    return partition_spec(schema(source, *generated))


def ranges(table: DeltaSchema, *rows: dict[str, str | None]) -> tuple[list[tuple[Any, Any]], list[bool]]:
    """Of each file the keys between which its source lies by every derived field, and whether one is undecoded."""
    made = partition_spec(table)
    maps = pa.array([list(row.items()) for row in rows], pa.map_(pa.string(), pa.string()))
    struct, undecoded = made.partition(*partition_columns(maps, table))
    source = table.fields[0].type
    low: list[list[Any]] = [[] for _ in rows]
    high: list[list[Any]] = [[] for _ in rows]
    bad = np.zeros(len(rows), np.bool_)
    for place, field in enumerate(made.spec.fields):
        failed = np.zeros(len(rows), np.bool_)
        for one in undecoded:
            failed |= one.rows if one.field == place else False
        if not field.derived:
            continue
        bad |= failed
        values = struct.field(place)
        found = preimage(field.transform, source, values, values)
        assert not found.problems
        assert found.range is not None
        assert found.range.lower is not None
        assert found.range.upper is not None
        for row in range(len(rows)):
            if not failed[row] and found.range.lower.valid[row]:
                low[row].append(_key(found.range.lower.keys, row))
                high[row].append(_key(found.range.upper.keys, row))
    return [(max(a, default=None), min(b, default=None)) for a, b in zip(low, high, strict=True)], bad.tolist()


def _key(keys: Any, row: int) -> Any:  # noqa: ANN401 - numbers or bytes
    return keys[row].as_py() if isinstance(keys, pa.Array) else int(keys[row])


def micros(*parts: int) -> int:
    return (dt.datetime(*parts) - EPOCH) // dt.timedelta(microseconds=1)  # type: ignore[arg-type]


def days(*parts: int) -> int:
    return (dt.date(*parts) - EPOCH.date()).days


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("CAST(ts AS DATE)", "date"),
        (" cast ( `ts` as Date ) ", "date"),
        ("date(ts)", "date"),
        ("to_date(ts)", "date"),
        ("YEAR(ts)", "year"),
        ("year(cast(ts as date))", "year"),
        ("dayofmonth(date(ts))", "day"),
        ("DATE_FORMAT(ts, 'yyyy-MM')", "format"),
        ('date_format(ts, "yyyy-MM-dd-HH")', "format"),
        ("SUBSTRING(s, 1, 3)", "substring"),
        ("substr(s, 0, 3)", "substring"),
        ("DATE_TRUNC('MONTH', ts)", "trunc"),
        ("TRUNC(d, 'year')", "trunc"),
        ("`a.b`", "identity"),
        ("a.b", "identity"),
    ],
)
def test_expressions_of_delta_are_understood(text: str, kind: str) -> None:
    found = parse_expression(text)
    assert found is not None
    assert found.kind == kind


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ts + 1",
        "cast(ts as string)",
        "cast(ts as date) + 1",
        "substring(s, 2, 3)",
        "substring(s, -1, 3)",
        "substring(s, 1, 0)",
        "date_format(ts, 'yyyy-dd')",
        "date_format(ts, 'YYYY-MM')",
        "date_format(ts, 'MM-yyyy')",
        "date_format(ts, 'yyyy-MM-dd HH:mm')",
        "trunc(d, 'day')",
        "trunc(n, 'fortnight')",
        "year(ts, 1)",
        "concat(a, b)",
        "month(add_months(ts, 1))",
        "'a'",
        "1",
        "year(",
        "a; b",
    ],
)
def test_other_expressions_say_nothing(text: str) -> None:
    assert parse_expression(text) is None


@pytest.mark.parametrize(
    ("source", "expression", "type_", "value", "low", "high"),
    [
        (NAIVE, "cast(src as date)", pa.date32(), "2024-01-15", micros(2024, 1, 15), micros(2024, 1, 16) - 1),
        (ZONED, "cast(src as date)", pa.date32(), "2024-01-15", micros(2024, 1, 14, 6), micros(2024, 1, 16, 18) - 1),
        (pa.date32(), "year(src)", pa.int32(), "2024", days(2024, 1, 1), days(2024, 12, 31)),
        (NAIVE, "year(src)", pa.int32(), "2024", micros(2024, 1, 1), micros(2025, 1, 1) - 1),
        (NAIVE, "date_format(src, 'yyyy-MM')", pa.string(), "2024-02", micros(2024, 2, 1), micros(2024, 3, 1) - 1),
        (NAIVE, "date_format(src, 'yyyyMMdd')", pa.string(), "20240229", micros(2024, 2, 29), micros(2024, 3, 1) - 1),
        (
            *(NAIVE, "date_format(src, 'yyyy-MM-dd-HH')", pa.string(), "2024-02-03-04"),
            *(micros(2024, 2, 3, 4), micros(2024, 2, 3, 5) - 1),
        ),
        (pa.date32(), "trunc(src, 'month')", pa.date32(), "2024-02-01", days(2024, 2, 1), days(2024, 3, 2)),
        (
            NAIVE,
            "date_trunc('hour', src)",
            NAIVE,
            "2024-02-01 05:00:00",
            micros(2024, 2, 1, 5),
            micros(2024, 2, 1, 6),
        ),
        (pa.int32(), "src", pa.int32(), "5", 5, 5),
        (pa.string(), "substring(src, 1, 3)", pa.string(), "abc", b"abc", b"abd"),
        (pa.string(), "substring(src, 1, 3)", pa.string(), "ab", b"ab", b"ab\0"),
    ],
)
def test_source_lies_in_the_preimage_and_little_else(
    source: pa.DataType, expression: str, type_: pa.DataType, value: str, low: object, high: object
) -> None:
    assert ranges(schema(source, (expression, type_)), {"g0": value}) == ([(low, high)], [False])


PARTS = [("year(src)", pa.int32()), ("month(src)", pa.int32()), ("day(src)", pa.int32()), ("hour(src)", pa.int32())]


@pytest.mark.parametrize(
    ("count", "low", "high"),
    [
        (1, micros(2024, 1, 1), micros(2025, 1, 1) - 1),
        (2, micros(2024, 2, 1), micros(2024, 3, 1) - 1),
        (3, micros(2024, 2, 29), micros(2024, 3, 1) - 1),
        (4, micros(2024, 2, 29, 13), micros(2024, 2, 29, 14) - 1),
    ],
)
def test_parts_together_are_one_period(count: int, low: int, high: int) -> None:
    """Year and month alone are no range of days; together they are one."""
    row = {f"g{place}": text for place, text in enumerate(["2024", "2", "29", "13"][:count])}
    assert ranges(schema(NAIVE, *PARTS[:count]), row) == ([(low, high)], [False])


def test_month_without_a_year_says_nothing() -> None:
    assert spec_of(NAIVE, PARTS[1]).derived == ()


@pytest.mark.parametrize(
    ("source", "generated"),
    [
        (pa.string(), ("year(src)", pa.int32())),
        (pa.int32(), ("src", pa.int64())),
        (NAIVE, ("cast(src as date)", pa.string())),
        (pa.date32(), ("date_format(src, 'yyyy-MM-dd-HH')", pa.string())),
        (pa.int32(), ("substring(src, 1, 3)", pa.string())),
        (NAIVE, ("cast(other as date)", pa.date32())),
        (ZONED, ("date_trunc('month', src)", NAIVE)),
    ],
)
def test_types_that_do_not_fit_say_nothing(source: pa.DataType, generated: tuple[str, pa.DataType]) -> None:
    assert spec_of(source, generated).derived == ()


def test_null_of_a_generated_string_does_not_say_that_its_source_is_null() -> None:
    """Spark writes the partition value of an empty string as null."""
    assert ranges(schema(pa.string(), ("substring(src, 1, 3)", pa.string())), {"g0": None})[1] == [True]
    assert ranges(schema(NAIVE, ("cast(src as date)", pa.date32())), {"g0": None})[1] == [False]


@pytest.mark.parametrize("row", [["2024", "13", "1"], ["2024", "2", "30"], ["x", "2", "3"]])
def test_values_that_no_expression_makes_are_undecoded(row: list[str]) -> None:
    table = schema(NAIVE, *PARTS[:3])
    assert ranges(table, {f"g{place}": text for place, text in enumerate(row)}) == ([(None, None)], [True])
    made = schema(NAIVE, ("date_format(src, 'yyyy-MM')", pa.string()))
    assert ranges(made, {"g0": "2024-1x"}, {"g0": "2024-13"}, {"g0": "+10000-01"})[1] == [True] * 3


def test_derived_fields_come_behind_the_columns_and_can_be_shipped() -> None:
    made = spec_of(NAIVE, ("cast(src as date)", pa.date32()), *PARTS[:2])
    assert [field.name for field in made.spec.fields] == [
        "g0",
        "g1",
        "g2",
        "cast(src as date)",
        "year(src), month(src)",
    ]
    assert [field.derived for field in made.spec.fields] == [False] * 3 + [True] * 2
    assert pickle.loads(pickle.dumps(made)).spec == made.spec  # noqa: S301 - made here


def test_undecoded_columns_make_undecoded_sources() -> None:
    made = spec_of(NAIVE, *PARTS[:2])
    struct = pa.StructArray.from_arrays(
        [pa.array([2024, 2024], pa.int32()), pa.array([1, None], pa.int32())], ["a", "b"]
    )
    _, undecoded = made.partition(struct, [Undecoded(1, np.array([False, True]), "x")])
    assert {one.field: one.rows.tolist() for one in undecoded} == {1: [False, True], 2: [False, True]}


def test_columns_keep_their_ids() -> None:
    table = schema(NAIVE, ("cast(src as date)", pa.date32()))
    assert table.columns().find(("SRC",)) == Column("src", ("src",), NAIVE)
    assert [field.source for field in partition_spec(table).spec.fields] == ["g0", "src"]


def _generated(expression: str, wall: dt.datetime, zone: ZoneInfo | None) -> str:
    """What a session in that zone writes, as delta-spark 4.4.0 spells it."""
    match expression:
        case "cast(src as date)":
            return wall.date().isoformat()
        case "year(src)":
            return str(wall.year)
        case "date_format(src, 'yyyy-MM-dd-HH')":
            return f"{wall.year:04d}-{wall:%m-%d-%H}"
    unit = expression.split("'")[1]
    start = wall.replace(minute=0, second=0, microsecond=0)
    if unit != "hour":
        start = start.replace(hour=0, day=1 if unit in {"month", "year"} else start.day)
    if unit == "year":
        start = start.replace(month=1)
    if zone is None:
        return f"{start.year:04d}-{start:%m-%d %H:%M:%S}"
    instant = start.replace(tzinfo=zone, fold=0).astimezone(dt.UTC)  # of an hour that comes twice, the earlier one
    return f"{instant.year:04d}-{instant:%m-%dT%H:%M:%S}.000000Z"


EXPRESSIONS = [
    ("cast(src as date)", pa.date32()),
    ("year(src)", pa.int32()),
    ("date_format(src, 'yyyy-MM-dd-HH')", pa.string()),
    *((f"date_trunc('{unit}', src)", None) for unit in ("year", "month", "day", "hour")),
]


@given(
    st.integers(micros(1880, 1, 1), micros(2100, 1, 1)) | st.integers(micros(2011, 12, 28), micros(2012, 1, 3)),
    st.sampled_from(EXPRESSIONS),
    st.sampled_from([*ZONES, None]),
)
def test_no_zone_of_a_writer_loses_a_row(
    instant: int, made: tuple[str, pa.DataType | None], name: str | None
) -> None:
    """The log does not say in which zone a date was made of a timestamp."""
    expression, type_ = made
    source = NAIVE if name is None else ZONED
    zone = None if name is None else ZoneInfo(name)
    moment = EPOCH + dt.timedelta(microseconds=instant)
    wall = moment if zone is None else moment.replace(tzinfo=dt.UTC).astimezone(zone).replace(tzinfo=None)
    table = schema(source, (expression, type_ or source))
    ((low, high),), bad = ranges(table, {"g0": _generated(expression, wall, zone)})
    assert bad == [False]
    assert low <= instant <= high


@given(st.text(st.sampled_from("aé\uffff😀\x00"), min_size=1, max_size=6), st.integers(1, 4))
def test_no_prefix_loses_a_row(text: str, length: int) -> None:
    table = schema(pa.string(), (f"substring(src, 1, {length})", pa.string()))
    ((low, high),), _ = ranges(table, {"g0": text[:length]})
    key = encode(pa.array([text]), pa.string()).keys[0].as_py()
    assert low <= key < high
