"""Wall clocks and instants: offsets, gaps, overlaps, and zones that do not exist."""

from datetime import datetime, timedelta

import pytest

from tamis.errors import BindError, TamisError
from tamis.predicate.compare.zones import MARGIN, find_zone
from tamis.predicate.units import DAY
from tests.making.told_rules import told

HOUR = 3600 * 10**6
MINUTE = 60 * 10**6


def micros(text: str) -> int:
    return (datetime.fromisoformat(text) - datetime(1970, 1, 1)) // timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("name", "offset"),
    [
        ("UTC", 0),
        ("Z", 0),
        ("GMT", 0),
        ("Etc/UTC", 0),
        ("+02:00", 2 * HOUR),
        ("-0530", -5 * HOUR - 30 * MINUTE),
        ("+5", 5 * HOUR),
        ("UTC+2", 2 * HOUR),
        ("GMT-03:30", -3 * HOUR - 30 * MINUTE),
        (" +01:00 ", HOUR),
        ("+18:00", 18 * HOUR),
        ("Etc/GMT", 0),
        ("Etc/UCT", 0),
        ("Universal", 0),
        ("Zulu", 0),
        ("GMT0", 0),
        ("Etc/Greenwich", 0),
        ("Etc/GMT+5", -5 * HOUR),
        ("Etc/GMT-14", 14 * HOUR),
    ],
)
def test_offset_is_fixed(name: str, offset: int) -> None:
    zone = find_zone(name)
    assert zone.fixed == offset
    assert zone.instants(0) == (-offset, -offset)
    assert zone.wall(0) == offset


@pytest.mark.parametrize("name", ["", "Mars/Olympus", "Europe", "../../etc/passwd", "utc!", "+", "+1:", "a\x00b"])
def test_zone_that_does_not_exist_is_refused(name: str) -> None:
    with pytest.raises(BindError, match="no time zone"):
        find_zone(name)


@pytest.mark.parametrize("name", ["+25:00", "UTC+25", "-99", "+24:00", "+19:00", "+12:60"])
def test_offset_beyond_eighteen_hours_is_refused(name: str) -> None:
    """Java knows none, so Spark reads none; it is the user's mistake and no crash."""
    with pytest.raises(TamisError):
        find_zone(name)


@pytest.mark.parametrize(("name", "region"), [("PST", "America/Los_Angeles"), ("IST", "Asia/Kolkata")])
def test_short_names_that_java_knows_are_zones(name: str, region: str) -> None:
    """Spark resolves them by Java's own table: text such as '2024-01-01 00:00:00 PST' is a timestamp to it."""
    moment = micros("2024-01-01T12:00:00")
    assert find_zone(name).instants(moment) == find_zone(region).instants(moment)


def test_calm_wall_time_is_one_instant() -> None:
    zone = find_zone("Europe/Paris", told)
    noon = micros("2024-07-01T12:00:00")
    assert zone.instants(noon) == (noon - 2 * HOUR,) * 2
    assert zone.wall(noon - 2 * HOUR) == noon
    assert zone.calm(noon)


def test_hour_that_comes_twice_names_two_instants() -> None:
    zone = find_zone("Europe/Paris", told)
    wall = micros("2024-10-27T02:30:00")
    first, second = zone.instants(wall)
    assert (first, second) == (wall - 2 * HOUR, wall - HOUR)
    assert zone.wall(first) == zone.wall(second) == wall
    assert zone.taken(wall) == (first, first)
    assert not zone.calm(first)


def test_hour_that_is_jumped_over_is_enclosed_and_read_later() -> None:
    """Java moves 02:30 to 03:30; date(ts) begins at the jump itself, which lies between both instants."""
    zone = find_zone("Europe/Paris", told)
    wall = micros("2024-03-31T02:30:00")
    jump = micros("2024-03-31T01:00:00")
    low, high = zone.instants(wall)
    assert low <= jump <= high
    assert zone.wall(zone.taken(wall)[0]) == micros("2024-03-31T03:30:00")


def test_clock_set_back_at_one_minute_past_midnight_repeats_part_of_yesterday() -> None:
    """St John's changed at 00:01 until 2011: one minute of the new day, then 59 minutes of the old one again."""
    zone = find_zone("America/St_Johns", told)
    midnight = micros("2006-10-29T00:00:00")
    early, late = zone.instants(midnight)
    assert late - early == HOUR
    assert zone.wall(early + 30 * 10**6) == midnight + 30 * 10**6
    assert zone.wall(early + 2 * MINUTE) == midnight - 58 * MINUTE


def test_whole_day_that_was_skipped_is_enclosed() -> None:
    """Samoa had no 30 December 2011."""
    zone = find_zone("Pacific/Apia", told)
    wall = micros("2011-12-30T12:00:00")
    low, high = zone.instants(wall)
    jump = micros("2011-12-30T10:00:00")
    assert low <= jump <= high
    assert high - low == DAY
    assert not zone.calm(jump)


def test_zone_of_local_mean_time_has_seconds() -> None:
    assert find_zone("Europe/Paris", told).wall(micros("1900-01-01T00:00:00")) == micros("1900-01-01T00:09:21")


@pytest.mark.parametrize("wall", [-(1 << 62), 1 << 62])
def test_years_beyond_the_rules_are_enclosed_by_a_margin(wall: int) -> None:
    zone = find_zone("Europe/Paris", told)
    assert zone.instants(wall) == (wall - MARGIN, wall + MARGIN)
    assert zone.taken(wall) == (wall - MARGIN, wall + MARGIN)
    assert zone.wall(wall) is None
    assert not zone.calm(wall)


def test_fixed_offset_reaches_every_year() -> None:
    assert find_zone("+01:00").instants(1 << 62) == ((1 << 62) - HOUR,) * 2
    assert find_zone("UTC").calm(1 << 62)


def test_zone_remembers_that_it_was_asked() -> None:
    zone = find_zone("UTC")
    assert not zone.asked
    zone.instants(0)
    assert zone.asked
    assert not find_zone("UTC").asked
