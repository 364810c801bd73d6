"""Without a session, every cut in a region leaves room for the rules of any release; with one, none is left."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pyarrow as pa
import pytest

from tamis.predicate.bind import bind
from tamis.predicate.bound import BoundPredicate, Leaf
from tamis.predicate.compare.doubt import reach
from tamis.predicate.compare.zone_rules import ZoneRules
from tamis.predicate.compare.zones import Ask, find_zone
from tamis.predicate.schema import Schema
from tamis.predicate.sql.parse import parse
from tamis.predicate.units import HOUR, SECOND
from tests.making.told_rules import told, told_by
from tests.making.zone_versions import Version, versions

TZ, NTZ, DAYS = pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.date32()
EPOCH = datetime(1970, 1, 1)


def micros(text: str) -> int:
    return (datetime.fromisoformat(text) - EPOCH) // timedelta(microseconds=1)


def bound(sql: str, zone: str, type_: pa.DataType = TZ, ask: Ask | None = None) -> BoundPredicate:
    return bind(parse(sql), Schema.of(x=type_), time_zone=zone, ask=ask)


def accepts(sql: str, zone: str, *moments: str, type_: pa.DataType = TZ, ask: Ask | None = None) -> str:
    """For each time (UTC, or a wall time): y if it surely matches, n if it surely does not, ? if it may."""
    root = bound(sql, zone, type_, ask).root
    assert isinstance(root, Leaf)
    keys = [micros(moment) if type_ != DAYS else micros(moment) // (24 * HOUR) for moment in moments]
    return "".join("y" if root.inner.holds(key) else "?" if root.outer.holds(key) else "n" for key in keys)


@pytest.mark.parametrize(
    ("sql", "zone", "moment"),
    [
        ("x >= timestamp '1978-12-01 00:00:00'", "Asia/Tehran", "1978-11-30T20:15:00"),
        ("x < timestamp '1978-12-01 00:00:00'", "Asia/Tehran", "1978-11-30T20:15:00"),
        ("date(x) = '1935-05-01'", "Europe/Amsterdam", "1935-04-30T23:50:00"),
        ("x >= '1945-06-01'", "Europe/Stockholm", "1945-05-31T22:30:00"),
        ("year(x) = 1945", "Europe/Stockholm", "1944-12-31T23:30:00"),
        ("date_trunc('hour', x) >= '1945-06-01 00:00:00'", "Europe/Stockholm", "1945-05-31T22:30:00"),
        ("x >= timestamp '1945-06-01 00:00:00 Europe/Stockholm'", "UTC", "1945-05-31T22:30:00"),
    ],
)
def test_instant_that_releases_dispute_is_neither_lost_nor_certain(sql: str, zone: str, moment: str) -> None:
    """Java 17 with 2025a and Python with 2025b give other offsets there: Spark returned rows of files judged NONE."""
    assert accepts(sql, zone, moment) == "?"


def test_literal_between_two_disputed_offsets_is_not_certain_on_either_side() -> None:
    zone, sql = "Europe/Stockholm", "x = timestamp '1945-06-01 00:00:00'"
    assert accepts(sql, zone, "1945-05-31T22:00:00", "1945-05-31T23:00:00", "1945-06-03T00:00:00") == "??n"


@pytest.mark.parametrize("zone", ["UTC", "+05:30", "Etc/UTC", "GMT", "Zulu", "Etc/GMT-1", "UTC+1"])
@pytest.mark.parametrize(
    "sql", ["x >= '1935-05-01'", "date(x) = '2024-05-01'", "date_trunc('month', x) < '2031-05-01'", "year(x) = 1900"]
)
def test_offset_from_utc_leaves_no_room(zone: str, sql: str) -> None:
    """Nobody disputes them: what is accepted is exactly known."""
    root = bound(sql, zone).root
    assert isinstance(root, Leaf)
    assert root.outer == root.inner


@pytest.mark.parametrize(
    ("sql", "room"),
    [
        ("x >= '2024-01-15'", 3),
        ("x < '2024-07-15 10:00:00'", 3),
        ("date(x) >= '2024-01-15'", 3),
        ("date(x) <= '2024-01-15'", 3),
        ("year(x) > 2023", 3),
        ("trunc(x, 'month') >= '2024-01-01'", 3),
        ("date_trunc('month', x) >= '2024-01-01'", 3),
        ("date_trunc('month', x) <= '2024-01-01'", 3),
        ("date_trunc('day', x) >= '2024-01-15'", 3),
        ("date_trunc('hour', x) >= '2024-01-15 10:00:00'", 9),
    ],
)
def test_modern_cut_is_off_by_hours_only(sql: str, room: int) -> None:
    """Must prune: by so many hours is the outer set wider than with the session's rules, and no more."""
    loose, exact = bound(sql, "Europe/Paris").root, bound(sql, "Europe/Paris", ask=told).root
    assert isinstance(loose, Leaf)
    assert isinstance(exact, Leaf)
    (cut,), (wide,) = exact.outer.cuts.tolist(), loose.outer.cuts.tolist()
    assert abs(cut - wide) == room * HOUR
    assert (wide < cut) is not exact.outer.inside_first


def test_cut_before_1970_is_off_by_less_than_a_day() -> None:
    """No offset in Java exceeds 18 hours: that holds whatever anybody knows of 1935."""
    assert accepts("x >= '1935-05-01'", "Europe/Amsterdam", "1935-04-30T05:59:00", "1935-05-01T18:00:00") == "ny"


def test_wall_times_and_dates_meet_an_instant_within_hours() -> None:
    sql = "x >= timestamp_ltz '2024-01-15 00:00:00'"
    assert accepts(sql, "Asia/Kolkata", "2024-01-14T17:59:00", "2024-01-15T06:00:00", type_=NTZ) == "ny"
    assert accepts(sql, "Asia/Kolkata", "2024-01-14", "2024-01-15", "2024-01-16", type_=DAYS) == "n?y"


def test_zone_within_reach_of_the_date_line_may_cross_it_one_day() -> None:
    """Samoa did, with some months' notice: a release from before would put the day after where the day before is."""
    assert accepts("x >= '2030-01-15'", "Pacific/Pago_Pago", "2030-01-14T06:00:00", "2030-01-15T17:00:00") == "??"
    assert accepts("x >= '2020-01-15'", "Pacific/Pago_Pago", "2020-01-15T07:00:00", "2020-01-15T14:00:00") == "ny"


# -- a session that tells its rules ---------------------------------------------------------------------------


@pytest.mark.parametrize(("maker", "answer"), [("backzone-2025b", "nny"), ("java17-2025a", "yyy")])
def test_session_s_own_rules_leave_no_room(maker: str, answer: str) -> None:
    """In June 1945 Stockholm's clocks were an hour ahead, or three, as Berlin's: each session has its own answer."""
    (version,) = (one for one in versions() if one.zone == "Europe/Stockholm" and maker in one.maker)
    moments = "1945-05-31T21:00:00", "1945-05-31T22:59:59", "1945-05-31T23:00:00"
    assert accepts("x >= '1945-06-01'", "Europe/Stockholm", *moments, ask=lambda _: told_by(version)) == answer


def test_session_is_asked_only_if_its_rules_matter() -> None:
    def never(name: str) -> ZoneRules:
        raise AssertionError(name)

    assert bound("x >= '2024-01-15 00:00:00Z'", "Europe/Paris", ask=never).rules == ()
    assert bound("x >= '2024-01-15'", "UTC", ask=never).rules == ()
    assert bound("x >= '2024-01-15'", "Europe/Paris", NTZ, ask=never).rules == ()


def test_predicate_remembers_the_rules_that_it_was_made_with() -> None:
    """Also those of a zone that only a literal names: another session may have others."""
    found = bound("x >= '2024-01-15' and x < '2024-02-01 00:00:00 Asia/Tokyo'", "Europe/Paris", ask=told)
    assert dict(found.rules) == {"Europe/Paris": told("Europe/Paris"), "Asia/Tokyo": told("Asia/Tokyo")}


def test_times_beyond_what_the_session_told_are_enclosed() -> None:
    sql = "x >= '2500-01-01'"
    assert accepts(sql, "Europe/Paris", "2499-12-30T21:00:00", "2499-12-31T23:00:00", ask=told) == "n?"


def test_zone_that_python_lacks_is_the_session_s_to_know() -> None:
    rules = ZoneRules(-(10**18), 10**18, (), (HOUR,))
    assert accepts("x >= '2024-01-15'", "Mars/Olympus", "2024-01-14T23:00:00", ask=lambda _: rules) == "y"


# -- what is within reach -------------------------------------------------------------------------------------


def since_1970(version: Version) -> list[int]:
    changes = [at for at, _ in version.changes if 0 < at < 2_000_000_000]
    return [at + step for at in changes for step in (-1, 0, 1800, 43_200)] + [10**9]


@pytest.mark.parametrize("zone", sorted({version.zone for version in versions() if "line" not in version.maker}))
def test_offsets_of_every_maker_are_within_reach_of_every_other(zone: str) -> None:
    """The claim that the margin rests on, for the zones that differ most; also seen from the wall times around."""
    makers = [version for version in versions() if version.zone == zone and "-20" in version.maker]
    for one in makers:
        offset = lambda instant, one=one: one.offset(instant // SECOND) * SECOND  # noqa: E731 - one a version
        for other in makers:
            for second in (*since_1970(one), *since_1970(other)):
                wanted = other.offset(second) * SECOND
                for about in (second * SECOND, second * SECOND + wanted, (second - 18 * 3600) * SECOND):
                    least, greatest = reach(zone, offset, about)
                    assert least <= wanted <= greatest, (one.maker, other.maker, datetime.fromtimestamp(second, UTC))


def test_no_maker_changes_a_clock_twice_within_four_days() -> None:
    """Three looks in four days see both sides of a change, and a session's changes are searched in spans of three."""
    for version in versions():
        if "-20" in version.maker:  # not an invented one
            assert all(after - before > 344_000 for (before, _), (after, _) in pairwise(version.changes)), (
                version.zone
            )


def test_every_region_of_python_can_be_asked() -> None:
    """No crash at the ends of what Python's calendar holds."""
    for wall in (-(1 << 62), micros("0001-01-01"), 0, micros("9998-01-01"), 1 << 62):
        low, high = find_zone("Europe/Paris").instants(wall)
        assert low < wall < high
