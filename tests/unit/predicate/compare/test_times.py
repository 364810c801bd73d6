"""Text as dates and timestamps: what Spark's CAST reads, and what it refuses."""

from datetime import UTC, date, datetime, time, timedelta, timezone

import pytest

from tamis.errors import TamisError
from tamis.predicate.compare.times import civil, days, days_of, moment_of, parse_date, parse_moment, parse_time
from tamis.predicate.compare.zones import find_zone
from tamis.predicate.units import DAY, SECOND
from tests.making.told_rules import told

HOUR = 3600 * SECOND


@pytest.mark.parametrize(
    "day", [0, -1, 1, 59, 60, -719_468, -719_469, 146_096, 146_097, 2**31 - 1, -(2**31), -(10**9), 11_016]
)
def test_days_and_civil_are_inverse(day: int) -> None:
    assert days(*civil(day)) == day


def test_days_agree_with_python_over_the_leap_years() -> None:
    for year in (1, 4, 100, 400, 1600, 1899, 1900, 1904, 1970, 2000, 2023, 2024, 2100, 9999):
        for month, day in ((1, 1), (2, 28), (3, 1), (12, 31)):
            assert days(year, month, day) == days_of(date(year, month, day))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01", 0),
        ("1969-12-31", -1),
        ("2024-2-9", days(2024, 2, 9)),
        (" 2024-01-15 ", days(2024, 1, 15)),
        ("2024", days(2024, 1, 1)),
        ("2024-03", days(2024, 3, 1)),
        ("2024-01-15 23:59:59", days(2024, 1, 15)),
        ("2024-01-15Tanything", days(2024, 1, 15)),
        ("+12345-01-01", days(12345, 1, 1)),
        ("-0001-01-01", days(-1, 1, 1)),
        ("0000-01-01", days(0, 1, 1)),
    ],
)
def test_date_text_that_spark_reads(text: str, expected: int) -> None:
    assert parse_date(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "24-01-01", "2024-13-01", "2023-02-29", "2024-00-10", "2024-01-00", "2024/01/01", "2024-01-15x",
     "2024 12", "2024-01T", "20240115x", "tomorrow", "\uff12\uff10\uff12\uff14-01-01"],
)  # fmt: skip
def test_date_text_that_spark_refuses(text: str) -> None:
    """Python reads the digits of every script; Spark knows ten."""
    assert parse_date(text) is None


@pytest.mark.parametrize(
    ("text", "wall"),
    [
        ("1970-01-01 00:00:00", 0),
        ("1969-12-31 23:59:59.999999", -1),
        ("1970-01-01T01:02:03", HOUR + 123 * SECOND),
        ("1970-01-01 1:2:3", HOUR + 123 * SECOND),
        ("1970-01-01", 0),
        ("1970", 0),
        ("1970-01-01 00:00", 0),
        ("1970-01-01 00:00:00.1", 100_000),
        ("1970-01-01 00:00:00.1234567", 123_456),
        ("1970-01-01 00:00:00.", 0),
    ],
)
def test_timestamp_text_that_spark_reads(text: str, wall: int) -> None:
    found = parse_moment(text)
    assert found is not None
    assert (found.wall, found.zone) == (wall, None)


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("1970-01-01 00:00:00Z", 0),
        ("1970-01-01 00:00:00+02:00", -2 * HOUR),
        ("1970-01-01 00:00:00 UTC", 0),
        ("1970-01-01 00:00:00 Europe/Paris", -HOUR),
        ("1970-01-01T00:00:00.5-01:00", HOUR + SECOND // 2),
    ],
)
def test_zone_in_the_text_beats_the_session_s(text: str, instant: int) -> None:
    found = parse_moment(text)
    assert found is not None
    assert found.instants(find_zone("Asia/Kolkata", told)) == (instant, instant)


@pytest.mark.parametrize("text", ["", "24:00", "1970-01-01 24:00:00", "1970-01-01 00:60:00", "1970-01-01 00:00:60",
                                  "1970-01 00:00:00", "1970-02-30 00:00:00", "yesterday"])  # fmt: skip
def test_timestamp_text_that_spark_refuses(text: str) -> None:
    assert parse_moment(text) is None


@pytest.mark.parametrize("zone", ["+99:00", "+25", " Nowhere/City"])
def test_timestamp_text_with_an_impossible_zone_is_the_user_s_mistake(zone: str) -> None:
    """None, or an error of the house: never a crash from below."""
    try:
        found = parse_moment(f"2024-01-01 00:00:00{zone}")
    except TamisError:
        return
    assert found is None


def test_text_without_zone_is_read_in_the_session_s() -> None:
    found = parse_moment("1970-01-01 00:00:00")
    assert found is not None
    assert found.instants(find_zone("+01:00")) == (-HOUR, -HOUR)


@pytest.mark.parametrize(
    ("value", "nanoseconds"),
    [
        ("00:00:00", 0),
        ("1:2:3", 3_723_000_000_000),
        ("12:30", 45_000_000_000_000),
        ("00:00:00.000000001", 1),
        ("23:59:59.999999999", 86_399_999_999_999),
        (time(0, 0, 1, 1), 1_000_001_000),
    ],
)
def test_time_of_day_in_nanoseconds(value: str | time, nanoseconds: int) -> None:
    assert parse_time(value) == nanoseconds


@pytest.mark.parametrize("text", ["", "24:00:00", "12", "12:60", "12:00:60", "noon"])
def test_time_text_that_is_none(text: str) -> None:
    assert parse_time(text) is None


def test_naive_datetime_is_wall_time_and_an_aware_one_an_instant() -> None:
    session = find_zone("+05:30")
    naive, aware = (
        moment_of(datetime(1970, 1, 1)),
        moment_of(datetime(1970, 1, 1, tzinfo=timezone(timedelta(hours=1)))),
    )
    assert (naive.wall, naive.zone) == (0, None)
    assert aware.instants(session) == (-HOUR, -HOUR)
    assert moment_of(datetime(1970, 1, 1, tzinfo=UTC)).instants(session) == (0, 0)


def test_dates_before_1970_are_negative() -> None:
    assert days_of(date(1969, 12, 31)) == -1
    assert moment_of(datetime(1969, 12, 31, 23, 59, 59, 999_999)).wall == -1
    assert moment_of(datetime(1, 1, 1)).wall == days(1, 1, 1) * DAY
