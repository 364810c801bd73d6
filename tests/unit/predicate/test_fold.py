"""Literals, casts and arithmetic; every folded value was compared with Spark 4.1, default rules."""

import math
from decimal import Decimal

import pyarrow as pa
import pytest

from tamis.predicate.nodes import Compare, Literal, Opaque, Ref
from tamis.predicate.parse import parse

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
    "sql", ["128Y", "40000S", "9223372036854775808L", "9" * 39, "0." + "0" * 38 + "1", "1e400", "1e40F"]
)
def test_number_beyond_its_type_is_left_to_spark(sql: str) -> None:
    assert folded(sql) is None


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


def test_number_of_ten_thousand_digits_is_left_to_spark() -> None:
    """Python refuses to read it as an int."""
    assert folded("9" * 10_000) is None


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


def test_malformed_typed_literal_is_kept_for_bind_to_refuse() -> None:
    assert folded("date '2024-13-45'") == Literal("2024-13-45", DATE)
    assert folded("timestamp 'soon'") == Literal("soon", LTZ)


@pytest.mark.parametrize("word", ["now", "today", "yesterday", "tomorrow", "epoch", " TODAY ", "Now"])
@pytest.mark.parametrize("form", ["date '{}'", "timestamp '{}'", "cast('{}' as date)", "timestamp_ntz '{}'"])
def test_special_word_is_left_to_spark(word: str, form: str) -> None:
    assert folded(form.format(word)) is None


@pytest.mark.parametrize("sql", ["timestamp '10:00'", "timestamp 'T10:00'", "int '5'"])
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
    ],
)
def test_cast_of_a_literal_is_done(sql: str, literal: Literal) -> None:
    assert folded(sql) == literal


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
        "cast(5.7 as int)",
        "cast(9007199254740993 as double)",
        "cast(16777217 as float)",
        "cast(0.1D as float)",
        "cast(1.5D as decimal(3,1))",
        "cast(123456 as decimal(4,0))",
        "cast('maybe' as boolean)",
        "cast('24-01-01' as date)",
        "cast('T12:00' as timestamp)",
        "cast(5 as timestamp)",
        "cast(date '2024-01-01' as timestamp)",
        "cast(timestamp '2024-01-01 10:00:00' as date)",
        "cast(date '2024-01-01' as string)",
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
        ("1.5F + 1", Literal(2.5, F64)),
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
        "'a' || 'b'",
        "date '2024-01-01' + 7L",
        "date '2024-01-01' + 1.5",
        "date '2024-01-01' - date '2023-01-01'",
        "7 - date '2024-01-01'",
        "date '2024-99-01' + 1",
        "date '0001-01-01' - 1000",
        "date_add(timestamp '2024-01-01 10:00:00', 7)",
        "date_add(day, 7, date '2024-01-01')",
        "date '2024-01-01' + interval 1 day",
        "9" * 38 + " + 1",
    ],
)
def test_arithmetic_that_fails_or_rounds_is_left_to_spark(sql: str) -> None:
    assert folded(sql) is None
