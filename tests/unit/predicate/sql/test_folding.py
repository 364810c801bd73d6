"""Literals, casts and arithmetic; every folded value was compared with Spark 4.1, default rules."""

import math
from decimal import Decimal

import pyarrow as pa
import pytest

from tamis.errors import ParseError
from tamis.predicate.compare.zones import find_zone
from tamis.predicate.nodes import Compare, Literal, Opaque, Ref
from tamis.predicate.sql.parse import parse
from tests.making.told_rules import told

I8, I16, I32, I64 = pa.int8(), pa.int16(), pa.int32(), pa.int64()
F32, F64, STRING, BINARY, BOOL = pa.float32(), pa.float64(), pa.string(), pa.binary(), pa.bool_()
DATE, TIME, LTZ, NTZ = pa.date32(), pa.time64("us"), pa.timestamp("us", "UTC"), pa.timestamp("us")


def folded(sql: str) -> Literal | None:
    """The literal that sql is beside a column; None if it is left to Spark."""
    node = parse(f"x = {sql}")
    if isinstance(node, Opaque):
        assert node == Opaque(f"x = {sql}", (Ref(("x",)),))
        return None
    assert isinstance(node, Compare)
    return node.literal


def dec(text: str, precision: int, scale: int) -> Literal:
    return Literal(Decimal(text), pa.decimal128(precision, scale))


# -- numbers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "literal"),
    [
        ("5", Literal(5, I32)),
        ("-5", Literal(-5, I32)),
        ("- 5", Literal(-5, I32)),
        ("+5", Literal(5, I32)),
        ("007", Literal(7, I32)),
        ("2147483647", Literal(2147483647, I32)),
        ("2147483648", Literal(2147483648, I64)),
        ("-2147483648", Literal(-2147483648, I32)),
        ("-(2147483648)", Literal(-2147483648, I64)),
        ("9223372036854775807", Literal(9223372036854775807, I64)),
        ("-9223372036854775808", Literal(-9223372036854775808, I64)),
        ("9223372036854775808", dec("9223372036854775808", 19, 0)),
        ("9" * 38, dec("9" * 38, 38, 0)),
        ("5L", Literal(5, I64)),
        ("5l", Literal(5, I64)),
        ("-5S", Literal(-5, I16)),
        ("-128Y", Literal(-128, I8)),
        ("1.5", dec("1.5", 2, 1)),
        ("0.05", dec("0.05", 2, 2)),
        ("100.00", dec("100.00", 5, 2)),
        (".5", dec("0.5", 1, 1)),
        ("5.", dec("5", 1, 0)),
        ("1.5BD", dec("1.5", 2, 1)),
        ("1e3BD", dec("1000", 4, 0)),
        ("5bd", dec("5", 1, 0)),
        ("-1.5", dec("-1.5", 2, 1)),
        ("1e3", Literal(1000.0, F64)),
        ("1.5E-3", Literal(0.0015, F64)),
        (".5e1", Literal(5.0, F64)),
        ("1.5D", Literal(1.5, F64)),
        ("0.1d", Literal(0.1, F64)),
        ("1e+22D", Literal(1e22, F64)),
        ("1.5F", Literal(1.5, F32)),
        ("0.1F", Literal(0.10000000149011612, F32)),
    ],
)
def test_number_has_the_type_that_it_is_written_as(sql: str, literal: Literal) -> None:
    assert folded(sql) == literal


@pytest.mark.parametrize(
    "sql",
    [
        *("128Y", "-129Y", "40000S", "9223372036854775808L", "-9223372036854775809L", "9" * 39, "9" * 10_000),
        *("0." + "0" * 38 + "1", "1e400", "1e400D", "1.8e308", "1e40F", "3.5e38F", "1e40BD", "1e-40BD", "1e400BD"),
    ],
)
def test_number_beyond_its_type_is_refused(sql: str) -> None:
    """As Spark's parser does, wherever it stands: what cannot be read must not be planned for."""
    for text in (f"x = {sql}", f"udf(x, {sql})"):
        with pytest.raises(ParseError, match="too large for a"):
            parse(text)


def test_number_at_the_end_of_its_type_is_none_too_large() -> None:
    assert folded("-128Y") == Literal(-128, I8)
    assert folded("1.7976931348623157e308") == Literal(1.7976931348623157e308, F64)
    assert folded("1e-400") == Literal(0.0, F64)
    assert folded("0" * 45 + "5") == Literal(5, I32)
    assert folded("5 - 128Y") is None  # refused by Spark, or not: left to it


@pytest.mark.parametrize(
    "number",
    [
        "16777217",  # 2**24 + 1: halfway between two floats, and a double holds it exactly
        "1.000000059604644775390625",  # 1 + 2**-24, exactly
        "1.0000000596046447753906251",  # above halfway, but the nearest double is halfway: rounding twice is wrong
        "1.0000000596046447753906249",  # below it
        "-16777217",
        "1e-40",  # a subnormal float: fewer digits than the bits above suppose
    ],
)
@pytest.mark.parametrize("form", ["{}F", "float('{}')", "cast('{}' as float)"])
def test_float_literal_halfway_between_two_floats_is_left_to_spark(number: str, form: str) -> None:
    """Java rounds the text once; by way of a double it may be rounded the other way, and `x = …` miss its rows."""
    assert folded(form.format(number)) is None


@pytest.mark.parametrize(
    ("number", "value"),
    [("16777218", 16777218.0), ("1.00000006", 1.00000011920928955), ("1.0000000596046446", 1.0)],
)
def test_float_literal_beside_halfway_is_the_nearest_float(number: str, value: float) -> None:
    for form in ("{}F", "float('{}')", "cast('{}' as float)"):
        assert folded(form.format(number)) == Literal(value, F32)


# -- strings and other constants ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("'abc'", "abc"),
        ('"abc"', "abc"),
        ("''", ""),
        (r"'it\'s'", "it's"),
        ("'it''s'", "it's"),
        ('"say ""x"""', 'say "x"'),
        ("""'a' "b"  'c'""", "abc"),
        ("'a'\n'b'", "ab"),
        (r"'\n\t\r\b\0\Z'", "\n\t\r\b\0\x1a"),
        (r"'\\ \" \q'", '\\ " q'),
        (r"'\% \_'", r"\% \_"),
        (r"'\101\u0041\U00000041\x41'", "AAAx41"),
        (r"'\ud83d\ude00'", "😀"),
        (r"'$\{x}'", "${x}"),
        (r"r'a\n'", r"a\n"),
        (r'R"a\"', "a\\"),
        (r"r'\d' 'x'", r"\dx"),
        ("'-- no /* comment */'", "-- no /* comment */"),
        ("'é😀'", "é😀"),
    ],
)
def test_string_is_read_with_sparks_escapes(sql: str, value: str) -> None:
    assert folded(sql) == Literal(value, STRING)


@pytest.mark.parametrize(
    ("sql", "literal"),
    [
        ("true", Literal(True, BOOL)),
        ("FALSE", Literal(False, BOOL)),
        ("null", Literal(None, pa.null())),
        ("X'1F'", Literal(b"\x1f", BINARY)),
        ("x'1f0'", Literal(b"\x01\xf0", BINARY)),
        ("X''", Literal(b"", BINARY)),
        ("date '2024-01-15'", Literal("2024-01-15", DATE)),
        ("DATE'2024-1-5'", Literal("2024-1-5", DATE)),
        ("timestamp '2024-01-15 10:00:00'", Literal("2024-01-15 10:00:00", LTZ)),
        ("timestamp '2024-01-15 10:00:00+02:00'", Literal("2024-01-15 10:00:00+02:00", LTZ)),
        ("timestamp_ltz '2024-01-15'", Literal("2024-01-15", LTZ)),
        ("timestamp_ntz '2024-01-15'", Literal("2024-01-15", NTZ)),
        ("time '10:00:00'", Literal("10:00:00", TIME)),
    ],
)
def test_constant_has_its_type_and_times_stay_text(sql: str, literal: Literal) -> None:
    """What a text means as a timestamp depends on the session's time zone, which bind knows."""
    assert folded(sql) == literal


@pytest.mark.parametrize(
    "sql", ["date '2024-13-45'", "timestamp 'soon'", "timestamp_ntz '10:00'", "int '5'", "date '2024-99-01' + 1"]
)
def test_typed_literal_that_spark_cannot_read_is_refused_with_its_place(sql: str) -> None:
    with pytest.raises(ParseError, match=r"is no |no literals of the form") as caught:
        folded(sql)
    assert caught.value.line == 1


@pytest.mark.parametrize("word", ["now", "today", "yesterday", "tomorrow", "epoch", " TODAY ", "Now"])
@pytest.mark.parametrize("form", ["date '{}'", "timestamp '{}'", "cast('{}' as date)", "timestamp_ntz '{}'"])
def test_special_word_is_left_to_spark(word: str, form: str) -> None:
    assert folded(form.format(word)) is None


@pytest.mark.parametrize("sql", ["timestamp '10:00'", "timestamp 'T10:00'"])
def test_typed_literal_that_only_spark_reads_is_left_to_it(sql: str) -> None:
    """A time alone is one of today."""
    assert folded(sql) is None


# -- casts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "literal"),
    [
        ("cast('2024-01-01' as date)", Literal("2024-01-01", DATE)),
        ("'2024-01-01'::date", Literal("2024-01-01", DATE)),
        ("date('2024-01-01')", Literal("2024-01-01", DATE)),
        ("to_date('2024')", Literal("2024", DATE)),
        ("date(date '2024-01-01')", Literal("2024-01-01", DATE)),
        ("cast('2024-01-01 10:00' as timestamp)", Literal("2024-01-01 10:00", LTZ)),
        ("cast('2024-01-01' as timestamp_ntz)", Literal("2024-01-01", NTZ)),
        ("timestamp('2024-01-01')", Literal("2024-01-01", LTZ)),
        ("to_timestamp('2024-01-01')", Literal("2024-01-01", LTZ)),
        ("try_cast('2024-01-01' as date)", Literal("2024-01-01", DATE)),
        ("cast('5' as int)", Literal(5, I32)),
        ("cast(' +05 ' as int)", Literal(5, I32)),
        ("'5'::bigint", Literal(5, I64)),
        ("int('5')", Literal(5, I32)),
        ("bigint(5)", Literal(5, I64)),
        ("smallint(5)", Literal(5, I16)),
        ("tinyint(-128)", Literal(-128, I8)),
        ("cast(5 as long)", Literal(5, I64)),
        ("cast(5.0 as int)", Literal(5, I32)),
        ("cast(5D as int)", Literal(5, I32)),
        ("cast(true as int)", Literal(1, I32)),
        ("double('1.5')", Literal(1.5, F64)),
        ("cast(0.1 as double)", Literal(0.1, F64)),
        ("cast(5 as double)", Literal(5.0, F64)),
        ("cast('1e3' as double)", Literal(1000.0, F64)),
        ("double('Infinity')", Literal(math.inf, F64)),
        ("double('-inf')", Literal(-math.inf, F64)),
        ("cast(0.1 as float)", Literal(0.10000000149011612, F32)),
        ("cast(1.239 as decimal(10,2))", dec("1.24", 10, 2)),
        ("cast(1.235 as decimal(10,2))", dec("1.24", 10, 2)),
        ("cast(-1.235 as decimal(10,2))", dec("-1.24", 10, 2)),
        ("cast('1.239' as decimal(10, 2))", dec("1.24", 10, 2)),
        ("cast(5 as decimal)", dec("5", 10, 0)),
        ("decimal('1.5')", dec("2", 10, 0)),
        ("cast('5' as numeric(3,1))", dec("5.0", 3, 1)),
        ("cast(5 as string)", Literal("5", STRING)),
        ("string(1.50)", Literal("1.50", STRING)),
        ("cast('abc' as varchar(2))", Literal("abc", STRING)),  # Spark cuts nothing off
        ("cast(true as string)", Literal("true", STRING)),
        ("cast('Yes' as boolean)", Literal(True, BOOL)),
        ("boolean(' 0 ')", Literal(False, BOOL)),
        ("cast(2 as boolean)", Literal(True, BOOL)),
        ("binary('é')", Literal("é".encode(), BINARY)),
        ("cast(null as date)", Literal(None, DATE)),
        ("cast(cast('5' as int) as bigint)", Literal(5, I64)),
        ("CAST(1.1D AS float)", Literal(1.10000002384185791015625, F32)),
        ("cast(0.1D as float)", Literal(0.100000001490116119384765625, F32)),
        ("cast(1e-42 as float)", Literal(714 * 2.0**-149, F32)),
        ("cast(1e-46 as float)", Literal(0.0, F32)),
        ("cast(1.1F as double)", Literal(1.10000002384185791015625, F64)),
        ("cast(16777217 as float)", Literal(16777216.0, F32)),
        ("cast(9007199254740993 as double)", Literal(9007199254740992.0, F64)),
        ("cast(5.7 as int)", Literal(5, I32)),
        ("cast(-1.9 as int)", Literal(-1, I32)),
        ("cast(-0.5 as int)", Literal(0, I32)),
        ("cast(127.9 as tinyint)", Literal(127, I8)),
        ("cast(-1.9D as bigint)", Literal(-1, I64)),
        ("cast(1.1D as decimal(10,2))", dec("1.10", 10, 2)),
        ("cast(1.5D as decimal(3,1))", dec("1.5", 3, 1)),
        ("cast(1.1F as decimal(10,4))", dec("1.1000", 10, 4)),
        ("cast(true as double)", Literal(1.0, F64)),
        ("cast(true as decimal(5,2))", dec("1.00", 5, 2)),
        ("cast(1.5D as boolean)", Literal(True, BOOL)),
        ("cast(-0.0D as boolean)", Literal(False, BOOL)),
        ("cast(double('NaN') as boolean)", Literal(True, BOOL)),
        ("cast(1700000000 as timestamp)", Literal("2023-11-14 22:13:20Z", LTZ)),
        ("cast(date '2024-5-17' as string)", Literal("2024-05-17", STRING)),
        ("cast(date '2024-05-17' as timestamp_ntz)", Literal("2024-05-17 00:00:00", NTZ)),
        ("cast(timestamp_ntz '2024-05-17 10:11:12' as date)", Literal("2024-05-17", DATE)),
        ("date(timestamp_ntz '2024-05-17 10:11:12')", Literal("2024-05-17", DATE)),
        ("to_date(date '2024-01-01')", Literal("2024-01-01", DATE)),
    ],
)
def test_cast_of_a_literal_is_done(sql: str, literal: Literal) -> None:
    assert folded(sql) == literal


@pytest.mark.parametrize(
    ("sql", "literal"),
    [
        ("date '2024-01-31' + INTERVAL 1 MONTH", Literal("2024-02-29", DATE)),
        ("INTERVAL 1 MONTHS + date '2024-01-31'", Literal("2024-02-29", DATE)),
        ("date '2024-03-31' - INTERVAL '1' MONTH", Literal("2024-02-29", DATE)),
        ("date '2024-01-31' + INTERVAL '1-2' YEAR TO MONTH", Literal("2025-03-31", DATE)),
        ("date '2024-01-31' + INTERVAL 1 YEAR 2 MONTHS", Literal("2025-03-31", DATE)),
        ("date '2025-03-31' - INTERVAL 1 YEAR 1 MONTH", Literal("2024-02-29", DATE)),
        ("date '2024-02-29' + INTERVAL -1 YEAR", Literal("2023-02-28", DATE)),
        ("date '2024-02-29' - INTERVAL -'1' MONTH", Literal("2024-03-29", DATE)),
        ("date '2024-02-29' + - INTERVAL 1 MONTH", Literal("2024-01-29", DATE)),
        ("date '2024-02-29' + INTERVAL 3 DAYS", Literal("2024-03-03", DATE)),
        ("date '2024-02-29' - INTERVAL 1 WEEK", Literal("2024-02-22", DATE)),
        ("date '2024-02-29' + INTERVAL '3 days'", Literal("2024-03-03", DATE)),
        ("date '2024-02-29' + (INTERVAL 3 DAYS + INTERVAL 1 DAY)", Literal("2024-03-04", DATE)),
        ("timestamp_ntz '2024-01-31 10:00:00' + INTERVAL 1 MONTH", Literal("2024-02-29 10:00:00", NTZ)),
        ("timestamp_ntz '2024-01-31 10:00:00' - INTERVAL 7 DAYS", Literal("2024-01-24 10:00:00", NTZ)),
        ("timestamp '2024-01-31 10:00:00Z' + INTERVAL 1.5 SECONDS", Literal("2024-01-31 10:00:01.500000Z", LTZ)),
        ("timestamp '2024-01-31 10:00:00+02:00' - INTERVAL 23 HOURS", Literal("2024-01-30 09:00:00Z", LTZ)),
        ("add_months(date '2024-01-31', 1)", Literal("2024-02-29", DATE)),
        ("add_months('2024-02-29 10:00:00', -12)", Literal("2023-02-28", DATE)),
        ("add_months(timestamp_ntz '2024-01-31 10:00:00', 1L)", Literal("2024-02-29", DATE)),
        ("add_months(date '2024-02-29', NULL)", Literal(None, DATE)),
        ("make_date(2024, 2, 29)", Literal("2024-02-29", DATE)),
        ("make_date(2024S, 2Y, 29L)", Literal("2024-02-29", DATE)),
        ("make_date(2024, NULL, 1)", Literal(None, DATE)),
        ("trunc(date '2024-05-17', 'MM')", Literal("2024-05-01", DATE)),
        ("trunc('2024-05-17 10:00:00', 'quarter')", Literal("2024-04-01", DATE)),
        ("trunc(date '2024-05-17', 'week')", Literal("2024-05-13", DATE)),
        ("trunc(date '1969-05-17', 'YEAR')", Literal("1969-01-01", DATE)),
        ("date_trunc('second', timestamp '2024-05-17 10:11:12.5Z')", Literal("2024-05-17 10:11:12Z", LTZ)),
        ("concat('a', 'b', 'c')", Literal("abc", STRING)),
        ("concat('a', 5L, true, 1.50)", Literal("a5true1.50", STRING)),
        ("concat(1, 2)", Literal("12", STRING)),
        ("concat()", Literal("", STRING)),
        ("concat('a', NULL)", Literal(None, STRING)),
        ("'a' || 'b' || 5", Literal("ab5", STRING)),
        ("lower('ABC')", Literal("abc", STRING)),
        ("ucase(lcase('aBc'))", Literal("ABC", STRING)),
        ("lower(NULL)", Literal(None, STRING)),
        ("abs(-5)", Literal(5, I32)),
        ("abs(-5L)", Literal(5, I64)),
        ("abs(-1.50)", dec("1.50", 3, 2)),
        ("abs(-1.5F)", Literal(1.5, F32)),
        ("coalesce(NULL, 5)", Literal(5, I32)),
        ("coalesce(NULL, 5, 6L)", Literal(5, I64)),
        ("coalesce(1.5F, 2D)", Literal(1.5, F64)),
        ("coalesce(NULL, date '2024-01-15')", Literal("2024-01-15", DATE)),
        ("coalesce(NULL, cast(NULL as date))", Literal(None, DATE)),
        ("nvl(NULL, 'a')", Literal("a", STRING)),
    ],
)
def test_function_of_literals_is_computed(sql: str, literal: Literal) -> None:
    assert folded(sql) == literal


@pytest.mark.parametrize(
    "sql",
    [
        "date '2024-02-29' + INTERVAL 1 MONTH 3 DAYS",
        "date '2024-02-29' + INTERVAL 3 HOURS",  # an instant, in the session's zone
        "date '9999-12-31' + INTERVAL 1 MONTH",
        "date '0001-01-01' - INTERVAL 1 DAY",
        "date '2024-02-29' + INTERVAL 99999999999 MONTHS",
        "INTERVAL 1 MONTH - date '2024-02-29'",
        "'2024-01-31' + INTERVAL 1 DAY",
        "NULL + INTERVAL 1 MONTH",
        "timestamp '2024-01-31 10:00:00' + INTERVAL 1 HOUR",
        "timestamp '2024-01-31 10:00:00Z' - INTERVAL 24 HOURS",  # a day on the session's clock
        "timestamp '2024-01-31 10:00:00Z' + INTERVAL 1 MONTH",
        "add_months('soon', 1)",
        "add_months(date '2024-01-31', 1.5)",
        "add_months(timestamp '2024-01-31 10:00:00Z', 1)",
        "make_date(2023, 2, 29)",
        "make_date(2024, 13, 1)",
        "make_date(2024, 1, 32)",
        "make_date(0, 1, 1)",
        "make_date('2024', 1, 1)",
        "trunc(date '2024-05-17', 'DAY')",
        "trunc(date '2024-05-17', 'Q')",
        "date_trunc('day', timestamp '2024-05-17 10:11:12Z')",
        "date_trunc('fortnight', timestamp '2024-05-17 10:11:12Z')",
        "concat('a', 1.5D)",
        "concat('a', date '2024-01-01')",
        "concat(X'41', X'42')",
        "concat('a', X'42')",
        "lower('É')",
        "lower(5)",
        "upper('straße')",
        "abs(-128Y)",
        "abs(-2147483648)",
        "abs('-5')",
        "abs(true)",
        "coalesce(5, 1.5)",
        "coalesce(5, 'x')",
        "coalesce(5, 1.5F)",
        "coalesce('2024-01-15', date '2024-01-16')",
        "coalesce(1.5, 2.25)",
        "coalesce(1, 1/0)",
        "nvl(5)",
    ],
)
def test_function_that_may_fail_or_depends_on_the_session_is_left_to_spark(sql: str) -> None:
    assert folded(sql) is None


def zoned(sql: str, zone: str) -> Literal | None:
    """The same in a session's zone, whose rules it has told."""
    node = parse(f"x = {sql}", find_zone(zone, told))
    return node.literal if isinstance(node, Compare) else None


@pytest.mark.parametrize(
    ("sql", "literal"),
    [
        ("timestamp '2024-01-31 10:00:00' + INTERVAL 1 MONTH", Literal("2024-02-29 09:00:00Z", LTZ)),
        ("timestamp '2024-03-31 00:30:00' + INTERVAL 1 DAY", Literal("2024-03-31 22:30:00Z", LTZ)),  # 23 hours on
        ("timestamp '2024-03-31 00:30:00' + INTERVAL 24 HOURS", Literal("2024-03-31 22:30:00Z", LTZ)),
        ("timestamp '2024-03-31 00:30:00' + INTERVAL 23 HOURS", Literal("2024-03-31 22:30:00Z", LTZ)),
        ("timestamp '2024-03-31 00:30:00' + INTERVAL 1 DAY 2 HOURS", Literal("2024-04-01 00:30:00Z", LTZ)),
        ("timestamp '2024-04-02 00:30:00' - INTERVAL 25 HOURS", Literal("2024-03-31 21:30:00Z", LTZ)),
        ("date '2024-02-29' + INTERVAL 3 HOURS", Literal("2024-02-29 02:00:00Z", LTZ)),
        ("date_trunc('month', timestamp '2024-05-17 10:11:12')", Literal("2024-04-30 22:00:00Z", LTZ)),
        ("date_trunc('day', '2024-05-17')", Literal("2024-05-16 22:00:00Z", LTZ)),
        ("date_trunc('hour', timestamp_ntz '2024-05-17 10:11:12')", Literal("2024-05-17 08:00:00Z", LTZ)),
        ("cast(timestamp '2024-05-16 23:00:00Z' as date)", Literal("2024-05-17", DATE)),
        ("add_months(timestamp '2024-05-16 23:00:00Z', 1)", Literal("2024-06-17", DATE)),
        ("trunc(timestamp '2024-04-30 23:00:00Z', 'MM')", Literal("2024-05-01", DATE)),
        ("cast(date '2024-05-17' as timestamp)", Literal("2024-05-16 22:00:00Z", LTZ)),
        ("cast(timestamp '2024-05-16 23:00:00Z' as timestamp_ntz)", Literal("2024-05-17 01:00:00", NTZ)),
        ("cast(timestamp '2024-05-17 00:00:00.9' as bigint)", Literal(1715896800, I64)),
        ("date_add(timestamp '2024-05-16 23:00:00Z', 1)", Literal("2024-05-18", DATE)),
    ],
)
def test_instant_is_computed_on_the_clock_of_the_session(sql: str, literal: Literal) -> None:
    assert zoned(sql, "Europe/Paris") == literal


@pytest.mark.parametrize(
    "sql",
    [
        "timestamp '2024-03-30 02:30:00' + INTERVAL 1 DAY",  # there is no such time
        "timestamp '2024-10-26 02:30:00' + INTERVAL 1 DAY",  # there are two
        "date_trunc('hour', timestamp '2024-10-27 02:30:00')",
    ],
)
def test_instant_near_a_change_of_clocks_is_left_to_spark(sql: str) -> None:
    assert zoned(sql, "Europe/Paris") is None


def test_instant_by_rules_that_nobody_told_is_left_to_spark() -> None:
    node = parse("x = timestamp '2024-01-31 10:00:00' + INTERVAL 1 MONTH", find_zone("Europe/Paris"))
    assert isinstance(node, Opaque)


def test_nan_is_a_double() -> None:
    literal = folded("double('NaN')")
    assert literal is not None
    assert literal.type == F64
    assert isinstance(literal.value, float)
    assert math.isnan(literal.value)


@pytest.mark.parametrize(
    "sql",
    [
        "cast(300 as tinyint)",
        "cast('abc' as int)",
        "cast('5.0' as int)",
        "cast('' as int)",
        "cast('\u0661' as int)",
        "try_cast('x' as int)",
        "cast(99999999999.5 as int)",
        "cast(128.1 as tinyint)",
        "cast(1e10 as int)",
        "cast(double('NaN') as int)",
        "cast(9007199254740993 as float)",
        "cast(1e39 as float)",
        "cast(1.5D as decimal(1,0))",  # midway: Java's digits decide
        "cast(1.005D as decimal(10,2))",
        "cast(1e10 as decimal(5,2))",
        "cast(true as decimal(2,2))",
        "cast('1.9' as int)",
        "cast(123456 as decimal(4,0))",
        "cast('maybe' as boolean)",
        "cast('24-01-01' as date)",
        "cast('T12:00' as timestamp)",
        "cast(1.5D as timestamp)",
        "cast(date '2024-01-01' as int)",
        "cast(date '2024-01-01' as timestamp)",
        "cast(timestamp '2024-01-01 10:00:00' as date)",
        "cast(date '12024-01-01' as string)",
        "cast(1.5D as string)",
        "cast('[1]' as array<int>)",
        "to_date('2024-01-01', 'yyyy-MM-dd')",
        "to_date(timestamp '2024-01-01')",
        "timestamp_ntz('2024-01-01')",
    ],
)
def test_cast_that_may_fail_or_depends_on_the_session_is_left_to_spark(sql: str) -> None:
    assert folded(sql) is None


# -- arithmetic -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "literal"),
    [
        ("2 + 3 * 4", Literal(14, I32)),
        ("(2 + 3) * 4", Literal(20, I32)),
        ("10 - 3 - 2", Literal(5, I32)),
        ("5L + 3", Literal(8, I64)),
        ("5Y + 3S", Literal(8, I16)),
        ("5Y + 3Y", Literal(8, I8)),
        ("127Y + 1", Literal(128, I32)),
        ("7 div 2", Literal(3, I64)),
        ("-7 div 2", Literal(-3, I64)),
        ("7.5 div 2", Literal(3, I64)),
        ("-7 % 2", Literal(-1, I32)),
        ("7 % -2", Literal(1, I32)),
        ("7 / 2", Literal(3.5, F64)),
        ("-(-5)", Literal(5, I32)),
        ("- - 5", Literal(5, I32)),
        ("-(1.5)", dec("-1.5", 2, 1)),
        ("1.5 + 1", dec("2.5", 3, 1)),
        ("1.5 + (1 + 1)", dec("3.5", 12, 1)),
        ("1.5 + 1Y", dec("2.5", 5, 1)),
        ("2 - 1.5", dec("0.5", 3, 1)),
        ("1.5 * 2", dec("3.0", 4, 1)),
        ("1.5 / 2", dec("0.750000", 7, 6)),
        ("-5.5 % 2", dec("-1.5", 2, 1)),
        ("1.5D + 1", Literal(2.5, F64)),
        ("1.5F + 1.5F", Literal(3.0, F32)),
        ("1.5F / 2F", Literal(0.75, F64)),
        ("24 * 60 * 60 * 1000L", Literal(86_400_000, I64)),
    ],
)
def test_arithmetic_on_literals_is_done_as_spark_does_it(sql: str, literal: Literal) -> None:
    assert folded(sql) == literal


@pytest.mark.parametrize(
    ("sql", "day"),
    [
        ("date '2024-01-01' + 7", "2024-01-08"),
        ("7 + date '2024-01-01'", "2024-01-08"),
        ("date '2024-03-01' - 1", "2024-02-29"),
        ("date_add('2024-01-01', 7)", "2024-01-08"),
        ("dateadd(date '2024-01-01', 7S)", "2024-01-08"),
        ("date_sub(date '2024-01-01', 1)", "2023-12-31"),
        ("date('2024-01-01') + 1 + 1", "2024-01-03"),
        ("date '9999-12-31' + 1", "10000-01-01"),
    ],
)
def test_days_are_added_to_a_date(sql: str, day: str) -> None:
    assert folded(sql) == Literal(day, DATE)


@pytest.mark.parametrize(
    "sql",
    [
        "2147483647 + 1",
        "127Y + 1Y",
        "9223372036854775807 * 2",
        "1 / 0",
        "1 % 0",
        "1.5 / 0",
        "1 / 3",
        "1 / 1.5",
        "0.1D + 0.2D",
        "1e308 * 10",
        "5 + null",
        "'5' + 3",
        "-'5'",
        "true + 1",
        "5 & 3",
        "date '2024-01-01' + 7L",
        "date '2024-01-01' + 1.5",
        "date '2024-01-01' - date '2023-01-01'",
        "7 - date '2024-01-01'",
        "date '0001-01-01' - 1000",
        "date_add(timestamp '2024-01-01 10:00:00', 7)",
        "date_add(day, 7, date '2024-01-01')",
        "9" * 38 + " + 1",
    ],
)
def test_arithmetic_that_fails_or_rounds_is_left_to_spark(sql: str) -> None:
    assert folded(sql) is None


@pytest.mark.parametrize("sign", ["", "-"])
def test_the_greatest_double_is_no_decimal_and_no_traceback(sign: str) -> None:
    """Beyond it there is only infinity, which has no digits."""
    assert folded(f"cast({sign}1.7976931348623157e+308D AS decimal(20, 2))") is None
    assert folded(f"cast({sign}1.7976931348623157e+308D AS bigint)") is None
    assert folded(f"cast({sign}1.7976931348623157e+308D AS float)") is None


# -- with and without ANSI rules ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql", ["1 + 0.1F", "0.1F * 3", "1L - 1.5F", "-(2Y) + 1.5F", "16777217 * 1.5F", "3.4e38F * 7", "0.5F - 1S"]
)
def test_float_beside_an_integer_is_left_to_spark(sql: str) -> None:
    """By ANSI rules their sum is a double, 1.1000000014901161; without them a float, 1.1: another value."""
    assert folded(sql) is None


def test_float_divided_by_an_integer_is_a_double_by_either_rules() -> None:
    assert folded("1.5F / 2") == Literal(0.75, F64)


@pytest.mark.parametrize(
    "sql",
    ["cast(0.0000001 as string)", "string(0.0000000)", "concat('x', 1E-7BD)", "0.000000123 || 'x'"],
)
def test_text_of_a_decimal_below_a_millionth_is_left_to_spark(sql: str) -> None:
    """By ANSI rules it is 0.0000001, without them 1E-7."""
    assert folded(sql) is None


def test_text_of_a_decimal_from_a_millionth_on_has_no_exponent_by_either_rules() -> None:
    assert folded("string(0.000001)") == Literal("0.000001", STRING)
    assert folded("string(0.000000)") == Literal("0.000000", STRING)


@pytest.mark.parametrize("sql", ["string(-0.0)", "string(-(0.0))", "string(cast(-0.04 as decimal(2, 1)))"])
def test_zero_of_decimals_has_no_sign(sql: str) -> None:
    assert folded(sql) == Literal("0.0", STRING)


@pytest.mark.parametrize("sql", ["1087270395254331455 / 217454079050866291", "9007199254740993 / 3"])
def test_integers_that_no_double_holds_are_rounded_before_they_are_divided(sql: str) -> None:
    """Spark makes doubles of both first: the one is 4.999999999999999, not 5."""
    assert folded(sql) is None


@pytest.mark.parametrize(
    "sql",
    [
        "date '2024-1-5'::string",
        "timestamp '2024-03-10 23:00:00-05:00'::date",
        "timestamp_ntz '2024-03-10 02:30:00'::date",
        "coalesce(date '2024-1-5'::string, 'x')",
    ],
)
def test_cast_behind_a_typed_literal_is_none_of_its_text(sql: str) -> None:
    """Spark casts the date: the text is 2024-01-05. The day of the instant is the 11th, not the 10th, in UTC."""
    node = parse(f"x = {sql}", find_zone("UTC"))
    assert node == Opaque(f"x = {sql}", (Ref(("x",)),))
    assert folded("'5'::int") == Literal(5, I32)


@pytest.mark.parametrize(
    "sql",
    [
        *("cast(cast(NULL AS date) AS int)", "int(cast(NULL AS binary))", "cast(cast(NULL AS boolean) AS date)"),
        *("boolean(cast(NULL AS date))", "binary(cast(NULL AS int))", "date(cast(NULL AS double))"),
        *("timestamp(cast(NULL AS boolean))", "add_months(cast(NULL AS boolean), 1)"),
        *("add_months(date '2024-01-01', cast(NULL AS date))", "make_date(cast(NULL AS date), 1, 1)"),
        *("cast(cast(NULL AS timestamp_ntz) AS bigint)", "make_date(NULL, 2024L, 1)"),
    ],
)
def test_null_of_a_type_that_spark_does_not_take_there_is_not_folded(sql: str) -> None:
    """Folded it would be an answer to a question that Spark refuses."""
    assert folded(sql) is None


def test_null_is_cast_wherever_its_type_is() -> None:
    assert folded("cast(cast(NULL AS timestamp) AS bigint)") == Literal(None, I64)
    assert folded("cast(cast(NULL AS string) AS date)") == Literal(None, DATE)
    assert folded("add_months(cast(NULL AS timestamp), NULL)") == Literal(None, DATE)
    assert folded("make_date(2024, NULL, 1Y)") == Literal(None, DATE)
