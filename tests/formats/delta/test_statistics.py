"""Statistics as writers have them: bounds that hold of every row, whatever was cut or is damaged."""

import datetime as dt
import json as json_
import math
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.formats.delta.schema import DeltaField, DeltaSchema, TypeChange
from tamis.formats.delta.statistics import FileStatistics, column_stats
from tamis.formats.delta.stats_json import BLOCKS
from tamis.predicate.keys import has_order
from tamis.predicate.schema import Column
from tamis.sieve.domain import stats_domain
from tamis.sieve.order import encode

ZONED, NAIVE = pa.timestamp("us", "UTC"), pa.timestamp("us")
EPOCH = dt.datetime(1970, 1, 1)


def field(name: str, type_: pa.DataType, *changes: TypeChange, children: tuple[DeltaField, ...] = ()) -> DeltaField:
    return DeltaField(name, name, name, type_, "x", children=children, type_changes=changes)


FIELDS = {
    "l": pa.int64(),
    "i": pa.int32(),
    "d": pa.float64(),
    "f": pa.float32(),
    "s": pa.string(),
    "dec": pa.decimal128(38, 10),
    "dt": pa.date32(),
    "ts": ZONED,
    "n": NAIVE,
    "b": pa.binary(),
    "o": pa.bool_(),
    "a": pa.list_(pa.int32()),
    "v": pa.null(),
}
SCHEMA = DeltaSchema(tuple(field(name, type_) for name, type_ in FIELDS.items()))


def texts(*stats: object) -> pa.Array:
    return pa.array([one if isinstance(one, str) or one is None else json_.dumps(one) for one in stats], pa.string())


def read(*stats: object, wanted: str = "l", vector: bool = False, schema: DeltaSchema = SCHEMA) -> FileStatistics:
    mask = np.full(len(stats), vector)
    return column_stats(schema, wanted.split(), json=texts(*stats), has_vector=mask)


def stats(column: str, low: object, high: object, nulls: int = 0, rows: int = 10, **more: object) -> dict[str, Any]:
    return {
        "numRecords": rows,
        "minValues": {column: low},
        "maxValues": {column: high},
        "nullCount": {column: nulls},
        **more,
    }


def bounds(found: FileStatistics, id_: str) -> tuple[list[Any], list[Any]]:
    column = found.columns[id_]
    assert column.lower is not None
    assert column.upper is not None
    lower, upper = (
        side.view(pa.int64()) if pa.types.is_timestamp(side.type) else side for side in (column.lower, column.upper)
    )
    return lower.to_pylist(), upper.to_pylist()


def micros(*parts: int) -> int:
    return (dt.datetime(*parts) - EPOCH) // dt.timedelta(microseconds=1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("column", "raw", "value"),
    [
        ("l", "9007199254740993", (1 << 53) + 1),
        ("l", "-9223372036854775808", -(1 << 63)),
        ("d", "1.0E300", 1e300),
        ("d", "-0.0", -0.0),
        ("f", "1.1", float(np.float32(1.1))),
        ("dec", "12345.1234567891", Decimal("12345.1234567891")),
        ("dec", "1E-10", Decimal("1E-10")),
        ("dec", '"1.5"', Decimal("1.5")),
        ("dt", '"0001-01-01"', dt.date(1, 1, 1)),
    ],
)
def test_bounds_are_exact(column: str, raw: str, value: object) -> None:
    """Neither longs above 2**53 nor wide decimals pass through a double."""
    line = f'{{"numRecords":1,"minValues":{{"{column}":{raw}}},"maxValues":{{"{column}":{raw}}}}}'
    assert bounds(read(line, wanted=column), column) == ([value], [value])


def test_not_a_number_in_bounds_says_nothing_and_spoils_nothing() -> None:
    """Spark writes NaN and infinities as texts, and NaN is its greatest value."""
    found = read(stats("d", 1.0, "NaN"), stats("d", "-Infinity", 2.0), stats("d", "x", 2.0), wanted="d")
    assert bounds(found, "d") == ([1.0, None, None], [None, 2.0, 2.0])
    assert found.unread.tolist() == [False, False, True]
    domain = stats_domain(Column("d", ("d",), pa.float64()), found.columns["d"], 3)
    assert domain.may_nan.all()


def test_timestamps_reach_to_the_end_of_their_millisecond() -> None:
    text = "2024-01-01T01:02:03.123-05:00"
    (low,), (high,) = bounds(read(stats("ts", text, text), wanted="ts"), "ts")
    assert low == micros(2024, 1, 1, 6, 2, 3, 123_000)
    assert high == low + 999


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00.000-04:56", "0001-01-01T00:00:00.000-04:56:02"])
def test_offsets_before_1972_may_lack_their_seconds(text: str) -> None:
    """New York was 4:56:02 behind UTC until 1883: a pattern may have room for that, or not."""
    (low,), (high,) = bounds(read(stats("ts", text, text), wanted="ts"), "ts")
    assert low <= micros(1, 1, 1, 4, 56, 2) <= high
    assert high - low < 120_000_000


@pytest.mark.parametrize(("column", "text"), [("ts", "2024-01-01T00:00:00.000"), ("n", "2024-01-01T00:00:00+01:00")])
def test_timestamps_of_the_other_kind_say_nothing(column: str, text: str) -> None:
    found = read(stats(column, text, text), wanted=column)
    assert bounds(found, column) == ([None], [None])
    assert found.unread.tolist() == [True]
    assert found.notes


def test_date_that_became_a_timestamp_keeps_its_bounds() -> None:
    found = read(stats("n", "2024-01-01", "2024-01-02"), wanted="n")
    assert bounds(found, "n") == ([micros(2024, 1, 1)], [micros(2024, 1, 2) + 999])


def test_wall_clock_with_a_z_is_a_wall_clock() -> None:
    """delta-rs writes timestamps of both kinds alike."""
    text = "2024-01-01T00:00:00.123456Z"
    wall = micros(2024, 1, 1, 0, 0, 0, 123_456)
    assert bounds(read(stats("n", text, text), wanted="n"), "n") == ([wall], [wall + 999])


def test_float_that_became_a_double_reaches_its_float() -> None:
    """1.1 as a float is greater than 1.1 as a double."""
    schema = DeltaSchema((field("d", pa.float64(), TypeChange("float", "double")),))
    (low,), (high,) = bounds(read(stats("d", 1.1, 1.1), wanted="d", schema=schema), "d")
    assert low == 1.1
    assert high == float(np.float32(1.1))


@given(st.integers(-(10**38) + 1, 10**38 - 1) | st.integers(-(10**19), 10**19), st.sampled_from([0, 2, 10, 22]))
def test_decimal_that_passed_through_a_double_stays_within_its_bounds(unscaled: int, scale: int) -> None:
    """delta-rs divides the unscaled value in a double; what that rounds away must not exclude the value."""
    type_ = pa.decimal128(38, scale)
    schema = DeltaSchema((field("dec", type_),))
    rounded = Decimal(repr(unscaled / float(10**scale))).quantize(Decimal(f"1E-{scale}"), context=Context(prec=60))
    if abs(int(rounded.scaleb(scale, Context(prec=60)))) >= 10**38:
        return
    for text in (str(rounded), f"{unscaled}E-{scale}"):
        line = f'{{"minValues":{{"dec":{text}}},"maxValues":{{"dec":{text}}}}}'
        found = read(line, wanted="dec", schema=schema).columns["dec"]
        low, high = (
            int.from_bytes(side.buffers()[1].to_pybytes(), "little", signed=True)
            for side in (found.lower, found.upper)
        )  # type: ignore[union-attr]
        assert low <= unscaled <= high
        assert high - low <= abs(unscaled) >> 45
        if abs(unscaled) < 1 << 48:
            assert low == high


@pytest.mark.parametrize("units", [8, 16, 29, 31, 32, 33])
@pytest.mark.parametrize("letter", ["x", "é", "😀"])
def test_string_that_was_only_cut_still_bounds_what_begins_with_it(letter: str, units: int) -> None:
    cut = letter * units
    found = read(stats("s", cut, cut), wanted="s").columns["s"]
    true = (cut + "\U0010ffff" * 3).encode() if len(cut.encode()) >= 29 else cut.encode()
    upper = encode(found.upper, pa.string()).keys[0].as_py()
    assert true <= upper
    assert upper <= cut.encode()[:-1] + bytes([cut.encode()[-1] + 1])


def test_short_string_stays_exact() -> None:
    assert bounds(read(stats("s", "a", "b"), wanted="s"), "s") == (["a"], ["b"])


def test_deletion_vector_leaves_null_counts_of_none_and_of_all() -> None:
    given_ = [stats("l", 1, 2, nulls) for nulls in (0, 3, 10)]
    assert read(*given_, vector=True).columns["l"].null_count.to_pylist() == [0, None, 10]  # type: ignore[union-attr]
    assert read(*given_).columns["l"].null_count.to_pylist() == [0, 3, 10]  # type: ignore[union-attr]
    loose = [stats("l", 1, 2, nulls, tightBounds=False) for nulls in (0, 3, 10)]
    assert read(*loose).columns["l"].null_count.to_pylist() == [0, None, 10]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "damaged",
    [
        "{",
        "",
        "nonsense",
        "[]",
        "1",
        '{"numRecords":1} {"numRecords":2}',
        '{"numRecords":1}}\n{"s":{"numRecords":2}',
        '{"minValues":{"l":1,"l":2}}',
        '{"minValues":{"l":"x"}}',
        '{"minValues":{"l":[1]}}',
        '{"minValues":{"l":1e400}}',
        '{"minValues":{"l":99999999999999999999}}',
        '{"minValues":[1]}',
        '{"minValues":{"l":NaN}}',
        '{"numRecords":1.5}',
    ],
)
@pytest.mark.parametrize("count", [1, BLOCKS[-1] + 3, BLOCKS[0] + 3])
def test_damaged_string_is_lost_alone(damaged: str, count: int) -> None:
    """Rows must not shift either: the neighbours keep their own bounds."""
    good = [stats("l", row, row + 1) for row in range(count)]
    lines = [*good, damaged, *good, None]
    found = read(*lines)
    expected = [*range(count), None, *range(count), None]
    assert bounds(found, "l")[0] == expected
    assert np.flatnonzero(found.unread).tolist() == [count]
    assert len(found.notes) == 1


def test_value_that_does_not_fit_is_lost_alone() -> None:
    found = read(
        {"numRecords": 5, "minValues": {"l": "x", "s": "a"}, "nullCount": {"l": 0}}, stats("l", 1, 2), wanted="l s"
    )
    assert found.num_records.to_pylist() == [5, 10]
    assert found.columns["s"].lower.to_pylist() == ["a", None]  # type: ignore[union-attr]
    assert found.columns["l"].null_count.to_pylist() == [0, 0]  # type: ignore[union-attr]
    assert found.unread.tolist() == [True, False]


def test_odd_but_sound_json_is_read() -> None:
    pretty = json_.dumps(stats("l", 1, 2), indent=2)
    escaped = '{"minValues":{"s":"a\\u00e9\\ud83d\\ude00\\"NaN\\","}}'
    found = read(pretty, '{"zz":1,"zz":2}', "null", '{"minValues":null}', escaped, wanted="l s d")
    assert found.columns["l"].lower.to_pylist() == [1, None, None, None, None]  # type: ignore[union-attr]
    assert found.columns["s"].lower.to_pylist()[4] == 'aé😀"NaN",'  # type: ignore[union-attr]
    assert not found.unread.any()


def test_columns_without_an_order_have_null_counts_alone() -> None:
    line = {"numRecords": 3, "minValues": {"v": "abc"}, "nullCount": {"b": 1, "o": 2, "a": 0, "v": 3}}
    found = read(line, wanted="b o a v")
    for name, nulls in (("b", 1), ("o", 2), ("a", 0), ("v", 3)):
        assert found.columns[name].lower is None
        assert found.columns[name].null_count.to_pylist() == [nulls]  # type: ignore[union-attr]


def nested() -> DeltaSchema:
    leaf = DeltaField("x", "col-x", "`col-s`.`col-x`", pa.int32(), "integer")
    struct = DeltaField("s", "col-s", "`col-s`", pa.struct([("x", pa.int32())]), children=(leaf,))
    return DeltaSchema((struct,))


def test_nested_fields_are_found_by_physical_names() -> None:
    line = {
        "minValues": {"col-s": {"col-x": 1}},
        "maxValues": {"col-s": {"col-x": 5}},
        "nullCount": {"col-s": {"col-x": 0}},
    }
    found = column_stats(
        nested(),
        ["`col-s`.`col-x`", "`col-s`"],
        json=texts(line, {"minValues": {"col-s": None}}),
        has_vector=np.zeros(2, bool),
    )
    assert bounds(found, "`col-s`.`col-x`") == ([1, None], [5, None])
    assert "`col-s`" not in found.columns


def test_parsed_statistics_follow_the_same_rules() -> None:
    typed = pa.struct([("l", pa.int32()), ("s", pa.string()), ("ts", ZONED)])
    parsed = pa.array(
        [
            {
                "numRecords": 4,
                "tightBounds": False,
                "minValues": {"l": 1, "s": "a", "ts": 0},
                "maxValues": {"l": 2, "s": "x" * 32, "ts": 10**15},
                "nullCount": {"l": 2, "s": 0, "ts": 0},
            },
            None,
        ],
        pa.struct(
            [
                ("numRecords", pa.int64()),
                ("tightBounds", pa.bool_()),
                ("minValues", typed),
                ("maxValues", typed),
                ("nullCount", pa.struct([("l", pa.int64()), ("s", pa.int64()), ("ts", pa.int64())])),
            ]
        ),
    )
    json = texts(stats("l", 7, 8), stats("l", 3, 4))
    found = column_stats(SCHEMA, ["l", "s", "ts"], json=json, parsed=parsed, has_vector=np.zeros(2, bool))
    assert bounds(found, "l") == ([1, 3], [2, 4])
    assert found.columns["l"].null_count.to_pylist() == [None, 0]  # type: ignore[union-attr]
    assert found.columns["ts"].upper.view(pa.int64()).to_pylist() == [10**15 + 999, None]  # type: ignore[union-attr]
    assert found.columns["s"].upper.to_pylist()[0] == b"x" * 31 + b"y"  # type: ignore[union-attr]
    assert found.num_records.to_pylist() == [4, 10]


def test_parsed_statistics_of_another_type_say_nothing() -> None:
    parsed = pa.array([{"minValues": {"l": "1"}, "maxValues": {"l": "2"}, "nullCount": {"l": 0}}])
    found = column_stats(SCHEMA, ["l"], parsed=parsed, has_vector=np.zeros(1, bool))
    assert bounds(found, "l") == ([None], [None])
    assert found.unread.tolist() == [True]


def test_no_statistics_and_no_files() -> None:
    assert read(None, None).columns["l"].lower.to_pylist() == [None, None]  # type: ignore[union-attr]
    assert len(read().num_records) == 0
    assert column_stats(SCHEMA, ["l"], has_vector=np.zeros(2, bool)).columns["l"].lower is None


# -- the law: bounds never exclude a value of the file -----------------------------------------------------------


def _micro_text(value: int, zone: int) -> str:
    moment = EPOCH + dt.timedelta(microseconds=value) + dt.timedelta(minutes=zone)
    sign = "-" if zone < 0 else "+"
    offset = "Z" if zone == 0 else f"{sign}{abs(zone) // 60:02d}:{abs(zone) % 60:02d}"
    return f"{moment.year:04d}-{moment:%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}{offset}"


TIMES = st.integers(micros(2, 1, 1), micros(9998, 1, 1))
FILES: dict[str, st.SearchStrategy[list[Any]]] = {
    "l": st.lists(st.integers(-(1 << 63), (1 << 63) - 1), min_size=1),
    "d": st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1),
    "f": st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1),
    "s": st.lists(st.text(st.sampled_from("az\x00é\uffff😀\U0010ffff"), max_size=40), min_size=1),
    "dec": st.lists(st.integers(-(10**38) + 1, 10**38 - 1).map(lambda one: Decimal(f"{one}E-10")), min_size=1),
    "ts": st.lists(TIMES, min_size=1),
    "n": st.lists(TIMES, min_size=1),
}


def _written(column: str, value: Any, zone: int) -> str:  # noqa: ANN401 - a value of any type
    match column:
        case "s":
            return json_.dumps(value[:32])
        case "ts":
            return json_.dumps(_micro_text(value, zone))
        case "n":
            return json_.dumps(_micro_text(value, 0)[:-1])
        case "f":
            return str(np.float32(value)) if math.isfinite(value) else "null"
    return str(value)


@given(st.data())
def test_bounds_hold_every_value_of_the_file(data: st.DataObject) -> None:
    """Files written as Spark writes them, but with strings that are only cut: the harder case."""
    column = data.draw(st.sampled_from(sorted(FILES)))
    zone = data.draw(st.integers(-720, 840))
    files = data.draw(st.lists(FILES[column], min_size=1, max_size=3))
    key = (lambda one: one.encode()) if column == "s" else (lambda one: one)
    lines = []
    for values in files:
        low, high = (_written(column, chosen, zone) for chosen in (min(values, key=key), max(values, key=key)))
        lines.append(
            f'{{"numRecords":{len(values)},"minValues":{{"{column}":{low}}},"maxValues":{{"{column}":{high}}}}}'
        )
    found = read(*lines, wanted=column)
    type_ = FIELDS[column]
    assert has_order(type_)
    assert not found.unread.any()
    lower, upper = (encode(side, type_).keys for side in (found.columns[column].lower, found.columns[column].upper))
    for row, values in enumerate(files):
        array = pa.array(values, pa.int64()).view(type_) if pa.types.is_timestamp(type_) else pa.array(values, type_)
        keys = encode(array, type_).keys
        plain = keys.to_pylist() if isinstance(keys, pa.Array) else keys.tolist()
        ends = [side[row].as_py() if isinstance(side, pa.Array) else int(side[row]) for side in (lower, upper)]
        assert ends[0] <= min(plain)
        assert max(plain) <= ends[1]


@given(st.lists(st.text(max_size=12) | st.none(), max_size=5))
def test_no_text_makes_neighbours_shift(junk: list[str | None]) -> None:
    lines: list[object] = []
    for row, text in enumerate(junk):
        lines += [text, stats("l", row, row)]
    assert bounds(read(*lines), "l")[0][1::2] == list(range(len(junk)))
