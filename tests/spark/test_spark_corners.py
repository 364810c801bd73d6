"""Where Spark's answer is not the one that most people would guess: as Spark gives it, and the oracle too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from typing import Literal as OneOf

import pyarrow as pa
import pytest

from tamis.predicate.nodes import Call, Compare, In, IsNull, Like, Literal, Node, Operator, Ref
from tamis.predicate.sql.rendering import render
from tests.making.oracle import evaluate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.engine

LONG, DOUBLE, TEXT, DAY = pa.int64(), pa.float64(), pa.string(), pa.date32()
NTZ, LTZ = pa.timestamp("us"), pa.timestamp("us", tz="UTC")
TINY = pa.decimal128(38, 38)
_SPARK = {LONG: "bigint", DOUBLE: "double", TEXT: "string", DAY: "date", NTZ: "timestamp_ntz", LTZ: "timestamp"}
_SPARK |= {pa.float32(): "float", TINY: "decimal(38,38)", pa.decimal128(38, 0): "decimal(38,0)"}
PARIS, ST_JOHNS, TORONTO = "Europe/Paris", "America/St_Johns", "America/Toronto"

Condition = Callable[[Ref], Node]
Function = OneOf["date", "year", "date_trunc", "trunc", "left"]


@dataclass(frozen=True, slots=True)
class Case:
    why: str
    value: Any
    type: pa.DataType
    condition: Condition
    answer: bool | None
    zone: str = "UTC"


def is_(operator: Operator, value: object, type_: pa.DataType) -> Condition:
    return lambda ref: Compare(operator, ref, Literal(value, type_))


def in_(*literals: Literal) -> Condition:
    return lambda ref: In(ref, literals)


def of(
    function: Function, argument: str | int | None, operator: Operator, value: object, type_: pa.DataType
) -> Condition:
    return lambda ref: Compare(operator, Call(function, ref, argument), Literal(value, type_))


def dec(text: str) -> tuple[Decimal, pa.DataType]:
    """A decimal literal with the type that its digits give it."""
    value = Decimal(text)
    _, digits, exponent = value.as_tuple()
    scale = -int(exponent)
    return value, pa.decimal128(max(len(digits), scale), scale)


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type] # year to second


HUGE = dec("99999999999999999999")
NINES_38, NINES_30 = Decimal("0." + "9" * 38), Decimal("0." + "9" * 30)
AFTER_53 = 2**53 + 1
DAY_15, NOON = date(2024, 1, 15), datetime(2024, 1, 15, 12)
GAP, TWICE, AGAIN = datetime(2024, 3, 31, 2, 30), utc(2024, 10, 27, 1, 30), utc(2006, 10, 29, 2, 31, 30)
IN_DECIMAL_TEXT = in_(Literal(*dec("2.5")), Literal(str(2**53), TEXT))
IN_TEXT_DECIMAL = in_(Literal(str(2**53), TEXT), Literal(*dec("2.5")))

CASES = (
    Case("beyond a long, a NULL is less than the literal", None, LONG, is_("<", *HUGE), True),
    Case("beyond a long, a NULL is not greater", None, LONG, is_(">", *HUGE), False),
    Case("beyond a long, equality is still unknown of NULL", None, LONG, is_("=", *HUGE), None),
    Case("39 digits do not fit: the column is rounded up to 1", NINES_38, TINY, is_("=", 1, pa.int32()), True),
    Case("so it is not less than 1", NINES_38, TINY, is_("<", 1, pa.int32()), False),
    Case("halves are rounded up", Decimal("0." + "9" * 37 + "5"), TINY, is_("=", 1, pa.int32()), True),
    Case("a literal in a comparison has its own digits", NINES_30, TINY, is_("=", 1, pa.int32()), False),
    Case("in a list it has all of an int", NINES_30, TINY, in_(Literal(1, pa.int32())), True),
    Case("an integer equals a decimal rounded to 18 places", 1, LONG, is_("=", *dec("0." + "9" * 25)), True),
    Case("and is greater than it, unrounded", 1, LONG, is_(">", *dec("0." + "9" * 25)), True),
    Case(
        "text against a decimal compares doubles",
        Decimal("9" * 38),
        pa.decimal128(38, 0),
        is_("=", "9" * 37 + "8", TEXT),
        True,
    ),
    Case("a long against a double is rounded", AFTER_53, LONG, is_("=", 2.0**53, DOUBLE), True),
    Case("a list's type grows from left to right: here to a double", AFTER_53, LONG, IN_DECIMAL_TEXT, True),
    Case("and here to a decimal", AFTER_53, LONG, IN_TEXT_DECIMAL, False),
    Case(
        "a typed NULL makes a list of doubles", AFTER_53, LONG, in_(Literal(2**53, LONG), Literal(None, DOUBLE)), True
    ),
    Case("a float is widened, and is no 0.1", 0.1, pa.float32(), is_("=", *dec("0.1")), False),
    Case("NaN is greater than infinity", float("nan"), DOUBLE, is_(">", float("inf"), DOUBLE), True),
    Case(
        "zero has no sign, in long lists too", -0.0, DOUBLE, in_(*(Literal(i / 1, DOUBLE) for i in range(12))), True
    ),
    Case("a text's time is dropped for a date", DAY_15, DAY, is_("=", "2024-01-15 13:00:00", TEXT), True),
    Case("a text's zone is dropped without one", NOON, NTZ, is_("=", "2024-01-15 12:00:00+05:00", TEXT), True),
    Case("trunc to the day is NULL", DAY_15, DAY, lambda x: IsNull(Call("trunc", x, "DAY")), True),
    Case("one character may be a line end", "a\nb", TEXT, lambda x: Like(x, "a_b"), True),
    Case("one character may be two in UTF-16", "😀", TEXT, lambda x: Like(x, "_"), True),
    Case("and sorts after U+FFFF", "😀", TEXT, is_(">", "\uffff", TEXT), True),
    Case("a negative length leaves nothing", "abc", TEXT, of("left", -1, "=", "", TEXT), True),
    # Paris has no 02:30 on that day. Compared, the literal becomes a wall clock's reading, 03:10; in a list the
    # column becomes an instant, and moves on to 03:30.
    Case(
        "a reading in a gap is before the hour after", GAP, NTZ, is_("<", utc(2024, 3, 31, 1, 10), LTZ), True, PARIS
    ),
    Case("and is not the instant it stands for", GAP, NTZ, is_("=", utc(2024, 3, 31, 1, 30), LTZ), False, PARIS),
    Case(
        "but in a list it is", GAP, NTZ, in_(*(Literal(utc(2024, 3, d, 1, 30), LTZ) for d in (30, 31))), True, PARIS
    ),
    Case(
        "and cut, it is the hour after",
        GAP,
        NTZ,
        of("date_trunc", "hour", "=", utc(2024, 3, 31, 1), LTZ),
        True,
        PARIS,
    ),
    Case(
        "an hour that comes twice is cut to itself",
        TWICE,
        LTZ,
        of("date_trunc", "hour", "=", utc(2024, 10, 27, 1), LTZ),
        True,
        PARIS,
    ),
    # St John's turned clocks back at one past midnight: 00:01 on the 29th was 23:01 on the 28th again.
    Case("after midnight it is the 28th again", AGAIN, LTZ, of("year", None, "=", 2006, pa.int32()), True, ST_JOHNS),
    Case("though not to a comparison", AGAIN, LTZ, of("date", None, "=", date(2006, 10, 28), DAY), False, ST_JOHNS),
    Case("which takes it for the 29th", AGAIN, LTZ, of("date", None, ">", date(2006, 10, 28), DAY), True, ST_JOHNS),
    Case("but to <=> it is", AGAIN, LTZ, of("date", None, "<=>", date(2006, 10, 28), DAY), True, ST_JOHNS),
    Case(
        "and to a list",
        AGAIN,
        LTZ,
        lambda x: In(Call("date", x), tuple(Literal(date(2006, 10, d), DAY) for d in (1, 28))),
        True,
        ST_JOHNS,
    ),
    Case("a day is not before its own second hour", date(2006, 10, 29), DAY, is_("<", AGAIN, LTZ), False, ST_JOHNS),
    # Toronto went from 23:30 to 00:30.
    Case(
        "a day without midnight begins after the gap",
        date(1919, 3, 31),
        DAY,
        in_(*(Literal(utc(1919, 3, 31, 4, m), LTZ) for m in (0, 30))),
        True,
        TORONTO,
    ),
    Case(
        "a reading of midnight moves on by the gap",
        datetime(1919, 3, 31),
        NTZ,
        in_(*(Literal(utc(1919, 3, 31, h), LTZ) for h in (4, 5))),
        True,
        TORONTO,
    ),
)


@pytest.mark.parametrize("zone", sorted({case.zone for case in CASES}))
def test_corners_are_as_spark_answers_them(spark: SparkSession, zone: str) -> None:
    cases = [case for case in CASES if case.zone == zone]
    nodes = [case.condition(Ref((f"c{i}",))) for i, case in enumerate(cases)]
    row = {f"c{i}": pa.array([case.value], case.type) for i, case in enumerate(cases)}
    types = ", ".join(f"c{i} {_SPARK[case.type]}" for i, case in enumerate(cases))
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        frame = spark.createDataFrame(pa.table(row), types).repartition(1)
        answers = frame.selectExpr(*(f"({render(node)}) AS p{i}" for i, node in enumerate(nodes))).collect()[0]
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    ours = [
        evaluate(node, {(f"c{i}",): case.value}, {(f"c{i}",): case.type}, zone)
        for i, (case, node) in enumerate(zip(cases, nodes, strict=True))
    ]
    expected = {case.why: case.answer for case in cases}
    assert dict(zip(expected, answers, strict=True)) == expected, "Spark"
    assert dict(zip(expected, ours, strict=True)) == expected, "oracle"
