"""A text is planned for one moment and one table: the clock's functions become literals, the table's name goes."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from tamis.errors import BindError, ParseError
from tamis.predicate.bound import Leaf, Unclear
from tamis.predicate.compare.zones import find_zone
from tamis.predicate.schema import Column, Schema
from tamis.predicate.sql.pinning import pinned
from tamis.predicate.where import bind_text
from tests.making.told_rules import told

AT = int(datetime(2026, 11, 16, 23, 30, 0, 123456, tzinfo=UTC).timestamp() * 1_000_000)
LTZ = pa.timestamp("us", "UTC")
SCHEMA = Schema(
    (
        Column(1, ("i",), pa.int64()),
        Column(2, ("d",), pa.date32()),
        Column(3, ("ts",), LTZ),
        Column(4, ("st",), pa.struct({"p": pa.int32()})),
        Column(5, ("st", "p"), pa.int32()),
        Column(6, ("p",), pa.int32()),
        Column(7, ("wall",), pa.timestamp("us")),
    )
)
NOW = "(timestamp_ltz '2026-11-16 23:30:00.123456Z')"
TODAY = "(date '2026-11-16')"


def pin(text: str, zone: str = "UTC", schema: Schema = SCHEMA, **options: object) -> str:
    return pinned(text, schema, instant=AT, zone=find_zone(zone, told), **options).text  # type: ignore[arg-type] # names, alias


# -- the clock ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("ts <= now()", f"ts <= {NOW}"),
        ("ts <= NOW( )", f"ts <= {NOW}"),
        ("ts <= current_timestamp", f"ts <= {NOW}"),
        ("ts <= current_timestamp()", f"ts <= {NOW}"),
        ("d = current_date", f"d = {TODAY}"),
        ("d = CURRENT_DATE()", f"d = {TODAY}"),
        ("d = curdate() - 1", f"d = {TODAY} - 1"),
        ("wall < localtimestamp()", "wall < (timestamp_ntz '2026-11-16 23:30:00.123456')"),
        ("d = now()::date", f"d = {NOW}::date"),
        ("udf(now(), i) /* now() */ and s = 'now()'", f"udf({NOW}, i) /* now() */ and s = 'now()'"),
        ("i in (select x from t where y < now())", f"i in (select x from t where y < {NOW})"),  # noqa: S608 - nothing runs it
        ("i = 1 -- now()", "i = 1 -- now()"),
        ("`now` = 1", "`now` = 1"),
        ("a.now = 1 or a.current_date = 2", "a.now = 1 or a.current_date = 2"),
        ("now = 1 or localtimestamp = 2", "now = 1 or localtimestamp = 2"),
        ("`current_date` = 1", "`current_date` = 1"),
        ("current_timestamp(3) > ts", "current_timestamp(3) > ts"),
    ],
)
def test_clock_is_a_literal_of_the_moment_of_planning(text: str, made: str) -> None:
    assert pin(text) == made


def test_date_is_that_of_the_session() -> None:
    assert pin("d = current_date()", "Europe/Paris") == "d = (date '2026-11-17')"
    assert pin("wall = localtimestamp()", "-03:00") == "wall = (timestamp_ntz '2026-11-16 20:30:00.123456')"


def test_date_that_rules_do_not_tell_is_left_to_spark() -> None:
    """Nobody told the session's rules, and within the hours that they may differ it is the next day."""
    zone = find_zone("Europe/Paris")
    assert pinned("d = current_date()", SCHEMA, instant=AT, zone=zone).text == "d = current_date()"
    noon = AT - 12 * 3_600_000_000
    assert pinned("d = current_date()", SCHEMA, instant=noon, zone=zone).text == f"d = {TODAY}"


def test_column_with_the_name_of_a_clock_comes_before_it() -> None:
    """As in Spark: only with brackets is it surely the function."""
    schema = Schema.of(Current_Date=pa.date32())
    assert pin("current_date = date '2024-01-01'", schema=schema) == "current_date = date '2024-01-01'"
    assert pin("current_date < current_date()", schema=schema) == f"current_date < {TODAY}"


def test_clock_prunes_and_is_told() -> None:
    bound = bind_text("ts >= now() - INTERVAL 7 DAYS", SCHEMA, instant=AT)
    assert isinstance(bound.root, Leaf)
    week = 7 * 86_400_000_000
    assert [bound.root.outer.holds(AT - week + step) for step in (-1, 0)] == [False, True]
    assert bound.sql == f"ts >= {NOW} - INTERVAL 7 DAYS"
    assert bound.notes == (
        "now() is taken as 2026-11-16 23:30:00.123456 UTC: for the plan, and for the rows that are read by it.",
    )


def test_clock_that_depends_on_the_zone_says_so() -> None:
    """Rows that are filtered in a session of another zone would be filtered by another day."""
    assert bind_text("d = current_date()", SCHEMA, instant=AT, time_zone="Europe/Paris", ask=told).zone_dependent
    assert not bind_text("d = date '2024-01-01'", SCHEMA, instant=AT, time_zone="Europe/Paris").zone_dependent
    bound = bind_text("d >= trunc(current_date(), 'MM')", SCHEMA, instant=AT, time_zone="Europe/Paris", ask=told)
    assert isinstance(bound.root, Leaf)
    assert [name for name, _ in bound.rules] == ["Europe/Paris"]


def test_one_moment_for_the_whole_condition() -> None:
    bound = bind_text("ts <= now() OR hash(now()) = i OR d < current_date", SCHEMA, instant=AT)
    assert bound.sql.count("23:30:00.123456") == 2
    assert "now()" not in bound.sql
    assert any(isinstance(part, Unclear) for part in bound.unclear)


# -- names ----------------------------------------------------------------------------------------------------------

NAMES = ("prod", "db", "events")


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("events.i = 5", "i = 5"),
        ("EVENTS.I = 5", "I = 5"),
        ("db.events.i = 5", "i = 5"),
        ("prod.db.events.i = 5", "i = 5"),
        ("`events`.`i` = 5", "`i` = 5"),
        ("events.st.p = 1 and events . i = 2", "st.p = 1 and i = 2"),
        ("events.st.p IS NULL", "st.p IS NULL"),
        ("udf(events.i + db.events.p) > 1", "udf(i + p) > 1"),
        ("st.p = 1", "st.p = 1"),
        ("other.i = 5", "other.i = 5"),
        ("other.events.i = 5", "other.events.i = 5"),
        ("events.nothing = 5", "events.nothing = 5"),
        ("events.i(5) = 1", "events.i(5) = 1"),
        ("s = 'events.i'", "s = 'events.i'"),
        ("exists (select 1 from t as events where events.i = 5)", None),
    ],
)
def test_name_of_the_table_in_front_of_a_column_is_left_out(text: str, made: str | None) -> None:
    assert pin(text, names=NAMES) == (text if made is None else made)


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("exists(arr, events -> events.i = 5)", None),
        ("exists(arr, Events -> eVents.i = events.p)", None),
        (
            "exists(arr, `events` -> `events`.i = 5) and events.i = 1",
            "exists(arr, `events` -> `events`.i = 5) and i = 1",
        ),
        (
            "aggregate(arr, 0, (acc, events) -> acc + events.i, acc -> acc) > events.i",
            "aggregate(arr, 0, (acc, events) -> acc + events.i, acc -> acc) > i",
        ),
        ("exists(arr, e -> e.i = events.i)", "exists(arr, e -> e.i = i)"),
        ("exists(arr, events -> exists(arr, e -> e.i = events.i))", None),
        ("transform(arr, events -> events.i)[0] = events.i", "transform(arr, events -> events.i)[0] = i"),
        ("exists(array(1), current_timestamp -> current_timestamp = 1)", None),
        ("exists(arr, (x, current_date) -> current_date.i = x)", None),
    ],
)
def test_parameter_of_a_lambda_is_what_the_lambda_says(text: str, made: str | None) -> None:
    """Without its name it would be a column of the table: another condition, of other rows."""
    assert pin(text, names=NAMES) == (text if made is None else made)


def test_column_comes_before_the_name_of_the_table() -> None:
    """A struct that is called as the table is stays what it has always been."""
    assert pin("st.p = 1", names=("st",)) == "st.p = 1"
    assert pin("st.st.p = 1", names=("st",)) == "st.p = 1"
    assert pin("st.i = 1", names=("st",)) == "i = 1"


def test_alias_comes_before_a_column() -> None:
    """As in Spark, where a FROM has given it."""
    assert pin("v.i = 5 and V.st.p = 1", alias="v", names=NAMES) == "i = 5 and st.p = 1"
    assert pin("st.p = 1", alias="st") == "p = 1"
    assert pin("st.p = 1 or w.i = 2", alias="v") == "st.p = 1 or w.i = 2"


def test_names_are_told_apart_by_case_where_the_session_does() -> None:
    assert pin("EVENTS.i = 5", names=NAMES, case_sensitive=True) == "EVENTS.i = 5"


def test_other_names_are_no_columns() -> None:
    with pytest.raises(BindError, match=r"no column evnts\.i"):
        bind_text("evnts.i = 5", SCHEMA, instant=AT, names=NAMES)


def test_error_shows_the_text_as_it_was_written() -> None:
    with pytest.raises(ParseError) as caught:
        bind_text("ts < now() and and i = 5", SCHEMA, instant=AT)
    assert (caught.value.text, caught.value.column) == ("ts < now() and and i = 5", 16)
