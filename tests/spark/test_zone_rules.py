"""The session's own time-zone rules: found whole, and verdicts that hold by the real Spark's answer."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from tamis.errors import BindError, TimeZoneError
from tamis.predicate.bind import bind
from tamis.predicate.compare.zone_rules import ZoneRules
from tamis.predicate.nodes import Node
from tamis.predicate.schema import Schema
from tamis.predicate.sql.parse import parse
from tamis.predicate.sql.rendering import render
from tamis.predicate.units import SECOND
from tamis.spark.session import TIME_ZONE
from tamis.spark.zones import check_zone, session_rules
from tests.making.zone_conditions import DATE, EPOCH, LTZ, NTZ, conditions, judged, moments, values_around
from tests.making.zone_versions import versions
from tests.spark.test_oracle_is_spark import drawn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.engine

TZ = pa.timestamp("us", "UTC")


@contextmanager
def session_in(spark: SparkSession, zone: str) -> Iterator[None]:
    before = str(spark.conf.get(TIME_ZONE))
    spark.conf.set(TIME_ZONE, zone)
    try:
        yield
    finally:
        spark.conf.set(TIME_ZONE, before)


@pytest.mark.parametrize("zone", ["Europe/Amsterdam", "America/St_Johns", "Pacific/Kwajalein", "EST"])
def test_rules_are_those_that_spark_shows_times_by(spark: SparkSession, zone: str) -> None:
    """Every change to the second, and nothing between them: held against the text of timestamps."""
    rules = session_rules(spark, zone)
    chance = random.Random(1)  # noqa: S311 - not a secret
    seconds = [chance.randrange(rules.start // SECOND, rules.end // SECOND) for _ in range(2000)]
    seconds += [change // SECOND + step for change in rules.changes for step in (-1, 0, 1)]
    frame = spark.createDataFrame(pa.table({"s": pa.array(seconds, pa.int64())}))
    with session_in(spark, zone):
        shown = frame.selectExpr("s", "cast(timestamp_seconds(s) as string) as text").toArrow()
    for second, text in zip(shown["s"].to_pylist(), shown["text"].to_pylist(), strict=True):
        assert str(EPOCH + timedelta(seconds=second + rules.offset(second * SECOND) // SECOND)) == text, second


def test_zone_that_the_session_does_not_know_is_refused(spark: SparkSession) -> None:
    with pytest.raises(BindError, match="no time zone 'Mars/Olympus'"):
        session_rules(spark, "Mars/Olympus")


def test_rules_are_asked_once_a_session(spark: SparkSession) -> None:
    assert session_rules(spark, "Asia/Tokyo") is session_rules(spark, "Asia/Tokyo")


@pytest.mark.parametrize("zone", ["Asia/Tehran", "Europe/Stockholm", "Europe/Amsterdam", "America/Toronto", "WET"])
def test_verdicts_hold_by_spark_s_own_answer(spark: SparkSession, zone: str) -> None:
    """Conditions near the changes of clocks, planned without a session and with it, against the filter itself."""
    makers = [version for version in versions() if version.zone == zone]
    wrong: list[str] = []
    for number, type_ in enumerate((LTZ, NTZ, DATE)):
        maker = makers[number % len(makers)]
        values: list[object] = []
        nodes: list[Node] = []
        for around in drawn(moments(maker), 6, number):
            wall = around + maker.offset(around)
            values += values_around(around if type_ == LTZ else wall, type_)
            nodes += drawn(conditions(maker, EPOCH + timedelta(seconds=wall)), 8, number)
        nodes = list(dict.fromkeys(nodes))
        table = pa.table({"row": pa.array(range(len(values)), pa.int32()), "x": pa.array(values, type_)})
        sql_type = {LTZ: "timestamp", NTZ: "timestamp_ntz", DATE: "date"}[type_]
        with session_in(spark, zone):
            frame = spark.createDataFrame(table, f"row int, x {sql_type}").repartition(1)
            asked = [f"({render(node)}) AS p{place}" for place, node in enumerate(nodes)]
            answers = frame.selectExpr("row", *asked).toArrow().sort_by("row")
        for node, column in zip(nodes, answers.columns[1:], strict=True):
            for ask in (None, lambda name: session_rules(spark, name)):
                verdicts = judged(node, type_, values, zone, ask)
                for value, said, verdict in zip(values, column.to_pylist(), verdicts, strict=True):
                    if (said is True and verdict == "none") or (said is not True and verdict == "all"):
                        wrong.append(f"{render(node)} of {value}: {said}, judged {verdict}, asked: {ask is not None}")
    assert not wrong, f"{len(wrong)} wrong\n" + "\n".join(wrong[:20])


# -- reading a plan -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("planned", "session"),
    [
        ("UTC", "Etc/UTC"),
        ("UTC", "GMT"),
        ("Z", "Universal"),
        ("+00:00", "UTC"),
        ("Etc/GMT-2", "+02:00"),
        ("PST", "America/Los_Angeles"),
        ("Europe/Berlin", "Europe/Berlin"),
        ("Japan", "Asia/Tokyo"),
    ],
)
def test_other_name_of_the_same_rules_may_read_a_plan(spark: SparkSession, planned: str, session: str) -> None:
    predicate = bind(parse("x >= '2024-01-15'"), Schema.of(x=TZ), time_zone=planned)
    with session_in(spark, session):
        check_zone(predicate, spark)


@pytest.mark.parametrize(
    ("planned", "session"),
    [("UTC", "Europe/London"), ("UTC", "+01:00"), ("Europe/Paris", "Europe/Madrid"), ("Etc/GMT-2", "-02:00")],
)
def test_zone_of_other_rules_may_not(spark: SparkSession, planned: str, session: str) -> None:
    """London has been UTC, in winter: that is not enough."""
    predicate = bind(parse("x >= '2024-01-15'"), Schema.of(x=TZ), time_zone=planned)
    with session_in(spark, session), pytest.raises(TimeZoneError, match="depends on the time zone") as caught:
        check_zone(predicate, spark)
    assert caught.value.facts == {"plan": planned, "session": session}


def test_plan_by_another_session_s_rules_is_refused(spark: SparkSession) -> None:
    """The zone has the same name; its rules are not the same, and the plan is exact by the other's."""
    rules = session_rules(spark, "Europe/Amsterdam")
    other = ZoneRules(rules.start, rules.end, rules.changes, (rules.offsets[0] + SECOND, *rules.offsets[1:]))
    for sql in ("x >= '2024-01-15'", "x >= '2024-01-15 00:00:00 Europe/Amsterdam'"):
        predicate = bind(parse(sql), Schema.of(x=TZ), time_zone="Europe/Amsterdam", ask=lambda _: other)
        same = bind(parse(sql), Schema.of(x=TZ), time_zone="Europe/Amsterdam", ask=lambda _: rules)
        with session_in(spark, "Europe/Amsterdam"):
            check_zone(same, spark)
            with pytest.raises(TimeZoneError, match="other time-zone rules for Europe/Amsterdam"):
                check_zone(predicate, spark)
