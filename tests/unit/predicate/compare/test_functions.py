"""Monotone functions become ranges on their column: whole periods, prefixes, and clocks that are changed."""

from datetime import UTC, date, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

from tamis.predicate.bind import bind
from tamis.predicate.bound import Known, Leaf, Unclear
from tamis.predicate.compare.functions import ceil_day, ceil_wall, prefix_end, pull, result_type
from tamis.predicate.compare.times import days
from tamis.predicate.compare.zones import find_zone
from tamis.predicate.nodes import Call, Ref
from tamis.predicate.schema import Schema
from tamis.predicate.sql.parse import parse
from tamis.predicate.units import DAY
from tamis.sieve.order import encode
from tests.making.harness import arrow
from tests.making.told_rules import told

TZ, NTZ, NS = pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.timestamp("ns")
X = Ref(("x",))


def says(sql: str, type_: pa.DataType, *values: object, zone: str = "UTC") -> str:
    """For each value of x: y if the condition surely holds, n if it surely does not, ? if only Spark can tell."""
    root = bind(parse(sql), Schema.of(x=type_), time_zone=zone, ask=told).root
    if isinstance(root, Known):
        return ("y" if root.value else "n") * len(values)
    if isinstance(root, Unclear):
        return "?" * len(values)
    assert isinstance(root, Leaf)
    answers = []
    for value in values:
        found = encode(arrow([value], type_), type_)
        key = found.keys[0].item() if isinstance(found.keys, np.ndarray) else found.keys[0].as_py()
        sides = [side.nulls if value is None else side.holds(key) for side in (root.inner, root.outer)]
        answers.append("y" if sides[0] else "?" if sides[1] else "n")
    return "".join(answers)


def at(text: str, tz: object = None) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=tz)  # type: ignore[arg-type] # UTC or None


# -- periods --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["date(x)", "to_date(x)", "cast(x as date)"])
def test_date_of_a_timestamp_is_its_day(call: str) -> None:
    moments = [
        at("2024-01-14T23:59:59.999999"),
        at("2024-01-15T00:00:00"),
        at("2024-01-15T23:59:59.999999"),
        at("2024-01-16T00:00:00"),
        None,
    ]
    assert says(f"{call} = '2024-01-15'", NTZ, *moments) == "nyynn"
    assert says(f"{call} > date '2024-01-15'", NTZ, *moments) == "nnnyn"
    assert says(f"{call} <= '2024-01-15'", NTZ, *moments) == "yyynn"
    assert says(f"{call} != '2024-01-15'", NTZ, *moments) == "ynnyn"
    assert says(f"{call} IN ('2024-01-14', '2024-01-16')", NTZ, *moments) == "ynnyn"
    assert says(f"{call} IS NULL", NTZ, *moments) == "nnnny"


@pytest.mark.parametrize("call", ["year(x)", "extract(year from x)", "date_part('year', x)"])
def test_year_is_a_range(call: str) -> None:
    moments = [at("2023-12-31T23:59:59.999999"), at("2024-01-01T00:00:00"), at("2024-12-31T23:59:59"), None]
    assert says(f"{call} = 2024", NTZ, *moments) == "nyyn"
    assert says(f"{call} < 2024", NTZ, *moments) == "ynnn"
    assert says(f"{call} >= 2024", NTZ, *moments) == "nyyn"


def test_year_of_dates_before_1970() -> None:
    assert says("year(x) = 1969", pa.date32(), date(1968, 12, 31), date(1969, 1, 1), date(1969, 12, 31)) == "nyy"
    assert says("year(x) < 1", pa.date32(), date(1, 1, 1)) == "n"


def test_year_that_no_timestamp_has_folds() -> None:
    assert says("year(x) < 99999999", NTZ, at("2024-01-01T00:00:00"), None) == "yn"
    assert says("year(x) > 2147483647", pa.date32(), date(9999, 12, 31), None) == "nn"
    assert says("year(x) = 2024.5", NTZ, at("2024-06-01T00:00:00")) == "n"


@pytest.mark.parametrize(
    ("unit", "start", "inside", "end"),
    [
        ("year", "2024-01-01T00:00:00", "2024-12-31T23:59:59.999999", "2025-01-01T00:00:00"),
        ("quarter", "2024-04-01T00:00:00", "2024-06-30T23:59:59", "2024-07-01T00:00:00"),
        ("MON", "2024-02-01T00:00:00", "2024-02-29T23:59:59", "2024-03-01T00:00:00"),
        ("week", "2024-01-15T00:00:00", "2024-01-21T23:59:59", "2024-01-22T00:00:00"),
        ("dd", "2024-01-15T00:00:00", "2024-01-15T23:59:59", "2024-01-16T00:00:00"),
        ("hour", "2024-01-15T10:00:00", "2024-01-15T10:59:59.999999", "2024-01-15T11:00:00"),
        ("minute", "2024-01-15T10:05:00", "2024-01-15T10:05:59", "2024-01-15T10:06:00"),
        ("second", "1969-12-31T23:59:59", "1969-12-31T23:59:59.999999", "1970-01-01T00:00:00"),
        ("millisecond", "1969-12-31T23:59:59.999", "1969-12-31T23:59:59.999999", "1970-01-01T00:00:00"),
    ],
)
@pytest.mark.parametrize("type_", [NTZ, TZ])
def test_date_trunc_is_the_period_that_starts_there(
    unit: str, start: str, inside: str, end: str, type_: pa.DataType
) -> None:
    tz = UTC if type_.tz else None
    moments = [at(start, tz) - timedelta(microseconds=1), at(start, tz), at(inside, tz), at(end, tz), None]
    text = start.replace("T", " ")
    assert says(f"date_trunc('{unit}', x) = '{text}'", type_, *moments) == "nyynn"
    assert says(f"date_trunc('{unit}', x) > '{text}'", type_, *moments) == "nnnyn"
    assert says(f"date_trunc('{unit}', x) < '{text}'", type_, *moments) == "ynnnn"


def test_date_trunc_against_a_moment_inside_a_period_is_never_equal() -> None:
    assert says("date_trunc('day', x) = '2024-01-15 12:00:00'", NTZ, at("2024-01-15T12:00:00")) == "n"
    assert says("date_trunc('day', x) < '2024-01-15 12:00:00'", NTZ, at("2024-01-15T23:00:00")) == "y"


def test_trunc_of_a_date_is_a_month_or_a_week() -> None:
    dates = [date(2024, 1, 31), date(2024, 2, 1), date(2024, 2, 29), date(2024, 3, 1)]
    assert says("trunc(x, 'MM') = '2024-02-01'", pa.date32(), *dates) == "nyyn"
    assert says("trunc(x, 'week') = '2024-02-26'", pa.date32(), *dates) == "nnyy"
    assert says("trunc(x, 'quarter') = '2024-01-01'", pa.date32(), *dates) == "yyyy"
    assert says("trunc(x, 'MM') = '2024-02-02'", pa.date32(), *dates) == "nnnn"


@pytest.mark.parametrize("unit", ["decade", "day", "hour", ""])
def test_trunc_of_a_unit_that_spark_does_not_know_is_left_to_it(unit: str) -> None:
    """Spark makes NULL of it: nothing may be concluded."""
    assert says(f"trunc(x, '{unit}') < '2024-01-01'", pa.date32(), date(2023, 1, 1)) == "?"


def test_nanoseconds_are_cut_with_their_period() -> None:
    hour = 3600 * 10**9
    assert says("date_trunc('hour', x) = '1970-01-01 01:00:00'", NS, hour - 1, hour, 2 * hour - 1, 2 * hour) == "nyyn"
    assert says("date(x) = '1970-01-01'", NS, -1, 0, 24 * hour - 1, 24 * hour) == "nyyn"
    assert says("date_trunc('microsecond', x) = '1970-01-01 00:00:00.000001'", NS, 999, 1000, 1999, 2000) == "nyyn"


def test_functions_of_functions_are_pulled_back_twice() -> None:
    moments = [
        at("2024-01-31T23:59:59"),
        at("2024-02-01T00:00:00"),
        at("2024-02-29T23:59:59"),
        at("2024-03-01T00:00:00"),
    ]
    assert says("trunc(date(x), 'month') = '2024-02-01'", NTZ, *moments) == "nyyn"
    assert says("year(date_trunc('month', x)) = 2024", NTZ, *moments) == "yyyy"
    assert says("date(date_trunc('month', x)) = '2024-02-01'", NTZ, *moments) == "nyyn"


# -- clocks that are changed ----------------------------------------------------------------------------------


def test_day_of_the_session_s_zone_begins_at_its_midnight() -> None:
    moments = [at("2024-01-14T22:59:59", UTC), at("2024-01-14T23:00:00", UTC), at("2024-01-15T22:59:59", UTC),
               at("2024-01-15T23:00:00", UTC)]  # fmt: skip
    assert says("date(x) = '2024-01-15'", TZ, *moments, zone="Europe/Paris") == "nyyn"
    assert says("year(x) = 2024", TZ, at("2023-12-31T23:00:00", UTC), zone="Europe/Paris") == "y"


def test_hour_that_comes_twice_is_never_decided_wrongly() -> None:
    """02:00 to 03:00 on 27 October 2024 in Paris is 00:00 to 02:00 UTC, but for the order of its minutes."""
    inside = [at("2024-10-27T00:30:00", UTC), at("2024-10-27T01:30:00", UTC)]
    before, after = at("2024-10-26T00:00:00", UTC), at("2024-10-29T12:00:00", UTC)
    sql = "date_trunc('hour', x) = timestamp '2024-10-27 02:00:00'"
    assert "n" not in says(sql, TZ, inside[0], zone="Europe/Paris")
    assert says(sql, TZ, before, after, zone="Europe/Paris") == "nn"


def test_day_that_begins_twice_holds_both_beginnings() -> None:
    """In St John's 29 October 2006 began, went back after a minute, and began again 59 minutes later."""
    first, back, again = (
        at("2006-10-29T02:30:30", UTC),  # 00:00:30 of the 29th
        at("2006-10-29T03:00:00", UTC),  # 23:30 of the 28th again
        at("2006-10-29T04:00:00", UTC),  # 00:30 of the 29th
    )
    said = says("date(x) = '2006-10-29'", TZ, first, back, again, zone="America/St_Johns")
    assert said[0] in "y?"
    assert said[1] in "n?"
    assert said[2] == "y"
    said = says("date(x) = '2006-10-28'", TZ, first, back, again, zone="America/St_Johns")
    assert said[1] in "y?"
    assert said[2] == "n"


def test_day_without_a_midnight_begins_when_the_clock_jumps() -> None:
    """Clocks in Santiago jump from 24:00 to 01:00: midnight is never shown."""
    before, after = at("2024-09-08T03:59:59", UTC), at("2024-09-08T04:00:00", UTC)
    said = says("date(x) = '2024-09-08'", TZ, before, after, zone="America/Santiago")
    assert said[0] in "n?"
    assert said[1] in "y?"


# -- prefixes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["left(x, 2)", "substring(x, 1, 2)", "substring(x, 0, 2)", "substr(x, 1, 2)"])
def test_left_is_a_range_of_strings(call: str) -> None:
    texts = ["aa", "ab", "ab\x00", "abzz", "ac", "a", "", None]
    assert says(f"{call} = 'ab'", pa.string(), *texts) == "nyyynnnn"
    assert says(f"{call} > 'ab'", pa.string(), *texts) == "nnnnynnn"
    assert says(f"{call} <= 'ab'", pa.string(), *texts) == "yyyynyyn"


def test_left_against_a_longer_text_is_never_equal() -> None:
    assert says("left(x, 2) = 'abc'", pa.string(), "ab", "abc", "abd") == "nnn"
    assert says("left(x, 2) < 'abc'", pa.string(), "ab", "abz", "ac") == "yyn"
    assert says("left(x, 2) > 'abc'", pa.string(), "ab", "abz", "ac") == "nny"


def test_left_against_a_shorter_text_takes_it_whole() -> None:
    assert says("left(x, 2) = 'a'", pa.string(), "a", "a\x00", "ab") == "ynn"


def test_left_counts_characters_not_bytes_or_units() -> None:
    assert says("left(x, 1) = '😀'", pa.string(), "😀", "😀a", "😁") == "yyn"
    assert says("left(x, 2) = '😀a'", pa.string(), "😀ab", "😀b") == "yn"


def test_left_of_the_last_character_has_no_end() -> None:
    last = "\U0010ffff"
    assert says(f"left(x, 1) = '{last}'", pa.string(), last, last + "z", "a") == "yyn"
    assert says(f"left(x, 1) = '{last}{last}'", pa.string(), last, last + last) == "nn"


def test_left_of_a_length_that_is_not_positive_is_left_to_spark() -> None:
    assert says("left(x, 0) = ''", pa.string(), "a") == "?"
    assert says("left(x, -1) = ''", pa.string(), "a") == "?"


# -- the pieces -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prefix", "text", "end"),
    [
        (b"a", True, b"b"),
        ("\u007f".encode(), True, "\u0080".encode()),
        ("\ud7ff".encode(), True, "\ue000".encode()),
        ("a\U0010ffff".encode(), True, b"b"),
        ("\U0010ffff".encode(), True, None),
        (b"", True, None),
        (b"\xff", False, None),
        (b"a\xff\xff", False, b"b"),
        (b"\x00", False, b"\x01"),
    ],
)
def test_prefix_end_is_just_above_all_that_begin_so(prefix: bytes, text: bool, end: bytes | None) -> None:
    assert prefix_end(prefix, text=text) == end


@pytest.mark.parametrize("unit", ["week", "month", "quarter", "year", "day"])
@pytest.mark.parametrize("day", [-800_000, -1, 0, 1, 19_782, days(2024, 12, 31), days(0, 1, 1)])
def test_ceil_day_is_the_first_start_at_or_after(unit: str, day: int) -> None:
    found = ceil_day(day, unit)
    assert day <= found < day + 366
    assert ceil_day(found, unit) == found
    assert all(ceil_day(between, unit) == found for between in range(day, found))


def test_ceil_wall_of_a_start_is_itself() -> None:
    for unit in ("microsecond", "second", "hour", "day", "week", "month", "year"):
        assert ceil_wall(days(2024, 1, 1) * DAY, unit) == days(2024, 1, 1) * DAY
        assert ceil_wall(days(2024, 1, 1) * DAY + 1, unit) > days(2024, 1, 1) * DAY


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (Call("date", X), pa.string()),
        (Call("date", X), pa.int32()),
        (Call("year", X), pa.string()),
        (Call("left", X, 3), pa.binary()),
        (Call("left", X, 3), pa.int32()),
        (Call("date_trunc", X, "decade"), NTZ),
        (Call("trunc", X, "hour"), pa.date32()),
    ],
)
def test_function_that_is_not_monotone_on_a_type_has_no_result(call: Call, argument: pa.DataType) -> None:
    assert result_type(call, argument, find_zone("UTC")) is None


def test_pull_encloses_the_instant_where_the_answer_turns() -> None:
    """Law: {x : f(x) >= cut} begins between both ends of the pair."""
    zone = find_zone("America/St_Johns", told)
    low, high = pull(Call("date", X), TZ, days(2006, 10, 29), zone)
    micros = lambda text: (at(text) - datetime(1970, 1, 1)) // timedelta(microseconds=1)  # noqa: E731 - a short name
    assert low == micros("2006-10-29T02:30:00")
    assert high == micros("2006-10-29T03:30:00")
