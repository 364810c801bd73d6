"""Constants that are computed, and conditions that are taken apart, mean to Spark what they mean to tamis."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from tamis.errors import ParseError
from tamis.predicate.compare.zones import find_zone
from tamis.predicate.nodes import Compare, Literal
from tamis.predicate.sql.parse import parse
from tamis.predicate.sql.rendering import render
from tamis.spark.zones import session_rules
from tests.making.drawing import drawn
from tests.making.oracle import evaluate
from tests.making.strategy_constants import constants

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.engine

COUNT = 100
"""Random constants for each zone; each is asked by ANSI rules and without."""
BATCH = 60
NAMES = {"zone": "spark.sql.session.timeZone", "ansi": "spark.sql.ansi.enabled", "type": "spark.sql.timestampType"}
BY_HAND = (
    *("date '2024-01-31' + INTERVAL '1-2' YEAR TO MONTH", "date '2025-03-31' - INTERVAL 1 YEAR 1 MONTH"),
    *("date '2024-02-29' - INTERVAL -'1' MONTH", "date '2024-02-29' + - INTERVAL 1 MONTH"),
    *("INTERVAL 1 MONTHS + date '2024-01-31'", "date '2024-02-29' + (INTERVAL 3 DAYS + INTERVAL 1 DAY)"),
    *("date '2024-02-29' + INTERVAL '3 days'", "date '2024-02-29' + INTERVAL 3 HOURS"),
    *("timestamp '2024-01-31 10:00:00Z' + INTERVAL 1.5 SECONDS", "date '2024-02-29' - INTERVAL 24 HOURS"),
    *("timestamp '2024-03-30 12:30:00' + INTERVAL 1 DAY 2 HOURS", "add_months(date '2024-02-29', NULL)"),
    *("add_months(timestamp_ntz '2024-01-31 10:00:00', 1L)", "make_date(2024S, 2Y, 29L)", "make_date(2024, NULL, 1)"),
    *("concat()", "concat(1, 2)", "concat('a', 1.50)", "'a' || 5 || NULL", "lower(NULL)", "ucase(lcase('aBc'))"),
    *("abs(-1.50)", "abs(-1.5F)", "abs(-0.0D)", "coalesce(NULL, 5, 6L)", "coalesce(1.5F, 2D)", "nvl(NULL, 'a')"),
    *("coalesce(NULL, cast(NULL as date))", "cast(true as decimal(5,2))", "cast(double('NaN') as boolean)"),
    *("cast(16777217 as float)", "cast(9007199254740993 as double)", "cast(1e-42 as float)", "cast(1e-46 as float)"),
    *("cast(1.1F as decimal(10,4))", "cast(-0.5 as int)", "cast(127.9 as tinyint)", "cast(1.5D as decimal(3,1))"),
    *("to_timestamp(date '2024-05-17')", "date_add('2024-05-17 10:11:12', 1)", "to_date(date '2024-01-01')"),
    *("year(date '2024-02-29')", "year(date '-0001-12-31')", "year(add_months(date '2024-12-31', 1)) - 1"),
)


@contextmanager
def settings(spark: SparkSession, **values: str) -> Iterator[None]:
    names = {
        "zone": "spark.sql.session.timeZone",
        "ansi": "spark.sql.ansi.enabled",
        "type": "spark.sql.timestampType",
    }
    before = {names[name]: spark.conf.get(names[name]) for name in values}
    try:
        for name, value in values.items():
            spark.conf.set(names[name], value)
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, str(value))


def computed(spark: SparkSession, zone: str, listed: list[str]) -> dict[str, Literal]:
    """The constants that tamis computes in a session of that zone, by the session's own rules."""
    session = find_zone(zone, lambda name: session_rules(spark, name))
    nodes = {sql: parse(f"x = {sql}", session) for sql in dict.fromkeys(listed)}
    return {sql: node.literal for sql, node in nodes.items() if isinstance(node, Compare)}


@pytest.mark.parametrize("zone", ["UTC", "Europe/Paris", "America/St_Johns"])
def test_computed_constants_are_sparks_by_either_rules(spark: SparkSession, zone: str) -> None:
    """Value and type. A constant that Spark computes otherwise would prune files that hold matching rows."""
    with settings(spark, zone=zone):
        listed = [constant.sql for constant in drawn(constants(zone), COUNT, 7)]
        literals = computed(spark, zone, [*BY_HAND, *listed])
        assert len(literals) > len(BY_HAND) + COUNT / 3
        assert len([sql for sql in BY_HAND if sql in literals]) == len(BY_HAND)
        wrong: list[str] = []
        for ansi in ("true", "false"):
            with settings(spark, ansi=ansi):
                wrong += [f"{one} (ansi {ansi})" for one in differing(spark, literals)]
    assert not wrong, "\n".join(wrong)


def test_computed_constants_do_not_depend_on_what_timestamp_means(spark: SparkSession) -> None:
    """A session may take `timestamp` for one without a zone: what does not say the word means the same to it."""
    listed = [sql for sql in BY_HAND if "timestamp" not in sql]
    with settings(spark, type="TIMESTAMP_NTZ"):
        assert differing(spark, computed(spark, "UTC", listed)) == []


def differing(spark: SparkSession, literals: dict[str, Literal]) -> list[str]:
    """Those of which Spark has another value, or another type, than the literal is to it."""
    found: list[str] = []
    items = [*literals.items()]
    for first in range(0, len(items), BATCH):
        batch = items[first : first + BATCH]
        asked = [
            f"(({sql}) <=> ({shown})) AND typeof({sql}) = typeof({shown}) AS c{index}"
            for index, (sql, shown) in enumerate((sql, as_ltz(literal)) for sql, literal in batch)
        ]
        row = spark.range(1).selectExpr(*asked).collect()[0]
        found += [
            f"{sql} is not {as_ltz(literal)}" for (sql, literal), same in zip(batch, row, strict=True) if not same
        ]
    return found


def as_ltz(literal: Literal) -> str:
    """The literal as SQL that means the same whatever `timestamp` does."""
    shown = render(literal)
    return shown.replace("timestamp '", "timestamp_ltz '") if shown.startswith("timestamp '") else shown


CONDITIONS = (
    *("(i = 5) = true", "(i = 5) = false", "(i = 5) != true", "(i = 5) <=> true", "(i = 5) <=> false"),
    *("(i = 5) <=> NULL", "(i = 5) = NULL", "(i = 5) < true", "(i = 5) <= true", "(i = 5) > true", "(i = 5) >= true"),
    *("(i = 5) < false", "(i = 5) <= false", "(i = 5) > false", "(i = 5) >= false", "i = 5 = true", "true > (i = 5)"),
    *("NOT (i = 5) = false", "(i IS NULL) = false", "(i = 5 AND l IS NULL) = true", "((i = 5) = true) = false"),
    *(
        "cast(i AS bigint) = 5L",
        "cast(i AS bigint) < 99999999999999999999",
        "cast(i AS double) >= 4.5D",
    ),
    *("cast(i AS decimal(20,2)) = 5.00", "cast(i AS decimal(12,2)) IN (5.00, NULL)", "cast(l AS decimal(19,0)) > 4"),
    *(
        "bigint(i) = 5",
        "NOT cast(i AS bigint) IN (5L, 6L)",
        "cast(i AS bigint) IS NULL",
        "cast(i AS bigint) <=> NULL",
    ),
)


def test_conditions_on_truth_values_and_casts_get_sparks_own_answer(spark: SparkSession) -> None:
    """Of a value, another value and NULL: all three truth values come up."""
    types = {("i",): pa.int32(), ("l",): pa.int64()}
    rows = [{("i",): i, ("l",): long} for i in (5, 6, -(2**31), 2**31 - 1, None) for long in (5, 2**63 - 1, None)]
    frame = spark.createDataFrame([(n, *row.values()) for n, row in enumerate(rows)], "n int, i int, l bigint")
    asked = [f"({sql}) AS c{index}" for index, sql in enumerate(CONDITIONS)]
    for ansi in ("true", "false"):
        with settings(spark, ansi=ansi):
            answers = frame.repartition(1).selectExpr("n", *asked).orderBy("n").collect()
        for row, (_, *said) in zip(rows, answers, strict=True):
            ours = [evaluate(parse(sql), row, types) for sql in CONDITIONS]
            assert dict(zip(CONDITIONS, ours, strict=True)) == dict(zip(CONDITIONS, said, strict=True)), row


@pytest.mark.parametrize(
    "sql",
    [
        *("i IS NOT NULL IS TRUE", "i IS NULL IS NOT NULL", "i = 5 IS TRUE IS TRUE", "i IN (5) IS TRUE"),
        *("i BETWEEN 1 AND 9 IS TRUE", "i IS DISTINCT FROM 6 IS TRUE", "'a' LIKE 'a' IS TRUE"),
        *("i = 1e400", "i = 1e400D", "i = 1e40F", "i = 128Y", "i = 40000S", "i = 9223372036854775808L"),
        *("i = " + "9" * 39, "i = 0." + "0" * 38 + "1", "i = 1e40BD", "i = 1e-40BD"),
    ],
)
def test_what_sparks_parser_refuses_is_refused(spark: SparkSession, sql: str) -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException):
        spark.range(1).selectExpr("cast(id AS int) AS i").where(sql)
    with pytest.raises(ParseError):
        parse(sql)


@pytest.mark.parametrize(
    "sql",
    ["i = 0 -- comment", "i = 0 --", "-- comment\ni = 0", "(i = 0 -- comment\n)", "i = 0 /* a /* nested */ b */"],
)
def test_comment_is_accepted_as_spark_accepts_it(spark: SparkSession, sql: str) -> None:
    assert spark.range(1).selectExpr("cast(id AS int) AS i").where(sql).count() == 1
    assert isinstance(parse(sql), Compare)
