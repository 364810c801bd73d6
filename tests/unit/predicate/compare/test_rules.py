"""Literals against columns of every type, as Spark compares: which values are accepted, surely, maybe or not."""

from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest

from tamis.errors import BindError
from tamis.predicate.bind import bind
from tamis.predicate.bound import Known, Leaf, Unclear
from tamis.predicate.schema import Schema
from tamis.predicate.sql.parse import parse
from tamis.sieve.order import encode
from tests.making.harness import arrow
from tests.making.told_rules import told

LONG, INT, DOUBLE, FLOAT = pa.int64(), pa.int32(), pa.float64(), pa.float32()
TZ, NTZ = pa.timestamp("us", "UTC"), pa.timestamp("us")
BIG = 2**53


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
        sides = [
            side.nulls if value is None else side.holds(b"" if key is None else key)
            for side in (root.inner, root.outer)
        ]
        answers.append("y" if sides[0] else "?" if sides[1] else "n")
    return "".join(answers)


# -- integers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "answers"),
    [
        ("x = 5", "nynn"),
        ("x != 5", "ynyn"),
        ("x <> 5", "ynyn"),
        ("x < 5", "ynnn"),
        ("x <= 5", "yynn"),
        ("x > 5", "nnyn"),
        ("x >= 5", "nyyn"),
        ("5 > x", "ynnn"),
        ("5 <= x", "nyyn"),
        ("x <=> 5", "nynn"),
        ("NOT (x <=> 5)", "ynyy"),
        ("x <=> NULL", "nnny"),
        ("NOT (x <=> NULL)", "yyyn"),
        ("x = NULL", "nnnn"),
        ("x != NULL", "nnnn"),
        ("x BETWEEN 5 AND 6", "nyyn"),
        ("x NOT BETWEEN 5 AND 6", "ynnn"),
        ("x IN (4, 6)", "ynyn"),
        ("x NOT IN (4, 6)", "nynn"),
        ("x IN (4, NULL)", "ynnn"),
        ("x NOT IN (4, NULL)", "nnnn"),
        ("x IN (NULL)", "nnnn"),
        ("x NOT IN (NULL)", "nnnn"),
        ("x IS NULL", "nnny"),
        ("x IS NOT NULL", "yyyn"),
    ],
)
def test_every_operator_on_values_around_five_and_null(sql: str, answers: str) -> None:
    assert says(sql, INT, 4, 5, 6, None) == answers


@pytest.mark.parametrize(
    ("sql", "answers"),
    [
        ("x = 5.5", "nnn"),
        ("x != 5.5", "yyn"),
        ("x < 5.5", "ynn"),
        ("x <= 5.5", "ynn"),
        ("x > 5.5", "nyn"),
        ("x >= 5.5", "nyn"),
        ("x IN (5.5, 6.0)", "nyn"),
        ("x = 5.0", "ynn"),
        ("x <=> 5.5", "nnn"),
        ("NOT (x <=> 5.5)", "yyy"),
    ],
)
def test_integer_against_a_fraction(sql: str, answers: str) -> None:
    assert says(sql, INT, 5, 6, None) == answers


@pytest.mark.parametrize(
    ("sql", "answers"),
    [
        ("x < 1000", "yyn"),
        ("x <= 127", "yyn"),
        ("x > 1000", "nnn"),
        ("x = 1000", "nnn"),
        ("x != 1000", "yyn"),
        ("x >= -128", "yyn"),
        ("x < -128", "nnn"),
        ("x > -1000", "yyn"),
        ("NOT (x > 1000)", "yyn"),
    ],
)
def test_literal_outside_the_type_folds(sql: str, answers: str) -> None:
    """`tinyint < 1000` is "not null", and never an error."""
    assert says(sql, pa.int8(), -128, 127, None) == answers


def test_folded_comparison_is_not_null_itself() -> None:
    root = bind(parse("x < 1000"), Schema.of(x=pa.int8())).root
    assert isinstance(root, Leaf)
    assert (len(root.outer.cuts), root.outer.inside_first, root.outer.nulls) == (0, True, False)


@pytest.mark.parametrize(("sql", "answers"), [("x = '5'", "ny"), ("x < ' 5 '", "yn"), ("x >= '+5'", "ny")])
def test_text_against_an_integer_is_a_bigint(sql: str, answers: str) -> None:
    assert says(sql, INT, 4, 5) == answers


@pytest.mark.parametrize("text", ["", "five", "5.5", "1_000", "99999999999999999999", "5L", "٣", "\u00a05"])
def test_text_that_is_no_integer_is_refused(text: str) -> None:
    """Spark stops the query at such a text; what it refuses is never guessed at."""
    with pytest.raises(BindError, match="cannot read") as caught:
        says(f"x = '{text}'", INT)
    assert caught.value.column == "x"
    assert caught.value.nearest == ()


def test_text_in_a_list_with_a_fraction_may_be_a_fraction() -> None:
    """Spark brings the whole list to double: '5.0' is 5."""
    assert says("x IN ('5.0', 6.5)", INT, 5, 7)[0] in "y?"


# -- numbers that are rounded ---------------------------------------------------------------------------------


def test_long_against_a_double_is_rounded_first() -> None:
    """2**53 + 1 has no double: beside a double literal Spark takes it for 2**53."""
    assert says(f"x = {BIG}D", LONG, BIG - 1, BIG, BIG + 1, BIG + 2) == "nyyn"
    assert says(f"x > {BIG}D", LONG, BIG - 1, BIG, BIG + 1, BIG + 2) == "nnny"
    assert says(f"x <= -{BIG}D", LONG, -BIG - 2, -BIG - 1, -BIG, -BIG + 1) == "yyyn"


def test_long_against_an_integer_is_exact() -> None:
    assert says(f"x = {BIG}", LONG, BIG, BIG + 1) == "yn"
    assert says(f"x > {BIG}", LONG, BIG, BIG + 1) == "ny"


def test_greatest_long_as_a_double_is_two_to_the_sixty_third() -> None:
    top = 2**63 - 1
    assert says("x = 9223372036854775807D", LONG, top, top - 511, top - 513) == "yyn"
    assert says("x < 9223372036854775808D", LONG, top, top - 513) == "ny"


@pytest.mark.parametrize(
    ("sql", "answers"),
    [
        ("x = double('NaN')", "nn"),
        ("x < double('NaN')", "yy"),
        ("x < double('Infinity')", "yy"),
        ("x > double('-Infinity')", "yy"),
        ("x >= double('Infinity')", "nn"),
    ],
)
def test_integer_against_the_odd_doubles(sql: str, answers: str) -> None:
    assert set(says(sql, LONG, -(2**63), 2**63 - 1)) <= {answers[0], "?"}


def test_float_against_a_double_is_widened() -> None:
    """0.1 as a float is 0.100000001490116: greater than the double 0.1, and never equal to it."""
    tenth = float(np.float32(0.1))
    assert says("x = 0.1D", FLOAT, tenth) == "n"
    assert says("x > 0.1D", FLOAT, tenth) == "y"
    assert says("x = 0.1", FLOAT, tenth) == "n"
    assert says("x = cast(0.1 as float)", FLOAT, tenth) == "y"


def test_float_against_an_integer_that_it_cannot_hold_is_open() -> None:
    """2**24 + 1: under ANSI both become doubles, without it the integer is rounded to a float."""
    assert says("x = 16777217", FLOAT, 16777216.0) in {"n", "?"}
    assert says("x = 16777216", FLOAT, 16777216.0) == "y"


def test_nan_is_greatest_and_equals_itself() -> None:
    nan, inf = float("nan"), float("inf")
    assert says("x = double('NaN')", DOUBLE, nan, inf, 1.0, None) == "ynnn"
    assert says("x > 1D", DOUBLE, nan, inf, 1.0, None) == "yynn"
    assert says("x < double('NaN')", DOUBLE, nan, inf, 1.0, None) == "nyyn"
    assert says("x <= double('NaN')", DOUBLE, nan, inf, 1.0, None) == "yyyn"
    assert says("x != 1D", DOUBLE, nan, inf, 1.0, None) == "yynn"
    assert says("NOT (x > 1D)", DOUBLE, nan, inf, 1.0, None) == "nnyn"


@pytest.mark.parametrize("type_", [FLOAT, DOUBLE])
def test_minus_zero_is_zero(type_: pa.DataType) -> None:
    assert says("x = 0D", type_, -0.0, 0.0) == "yy"
    assert says("x = -0.0D", type_, -0.0, 0.0) == "yy"
    assert says("x < 0D", type_, -0.0, 0.0) == "nn"
    assert says("x >= -0.0D", type_, -0.0, 0.0) == "yy"


def test_text_against_a_double() -> None:
    assert says("x = '1.5'", DOUBLE, 1.5) == "y"
    assert says("x = ' 1.5d '", DOUBLE, 1.5) == "y"
    assert says("x = 'NaN'", DOUBLE, float("nan")) == "y"
    with pytest.raises(BindError, match="cannot read"):
        says("x = '1_0.0'", DOUBLE)


# -- decimals -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("precision", [5, 18, 19, 37])
def test_decimal_against_a_finer_scale(precision: int) -> None:
    type_ = pa.decimal128(precision, 2)
    values = [Decimal("1.23"), Decimal("1.24"), None]
    assert says("x = 1.235", type_, *values) == "nnn"
    assert says("x < 1.235", type_, *values) == "ynn"
    assert says("x >= 1.235", type_, *values) == "nyn"
    assert says("x = 1.230", type_, *values) == "ynn"
    assert says("x > 1", type_, *values) == "yyn"
    assert says("x != 1.24", type_, *values) == "ynn"


@pytest.mark.parametrize(("precision", "scale"), [(3, 1), (20, 2)])
def test_decimal_against_a_number_beyond_its_digits_folds(precision: int, scale: int) -> None:
    most = Decimal(10**precision - 1).scaleb(-scale)
    type_ = pa.decimal128(precision, scale)
    assert says(f"x < {10**precision}", type_, most, -most, None) == "yyn"
    assert says(f"x > {10**precision}", type_, most, -most, None) == "nnn"
    assert says(f"x > -{10**precision}", type_, most, -most, None) == "yyn"


def test_decimal_against_a_double_is_rounded_first() -> None:
    type_ = pa.decimal128(20, 1)
    assert says(f"x = {BIG}D", type_, Decimal(BIG), Decimal(BIG) + Decimal("0.5"), Decimal(BIG + 2)) == "yyn"


def test_decimal_that_spark_rounds_to_compare_may_equal_its_neighbours() -> None:
    """decimal(38,18) beside decimal(38,0) is rounded to whole numbers: Spark finds 5.3 = 5, and 5.3 > 5 false."""
    wide = Decimal("5.300000000000000000")
    assert says("x = cast(5 as decimal(38, 0))", pa.decimal128(38, 18), wide) in {"y", "?"}
    assert says("x > cast(5 as decimal(38, 0))", pa.decimal128(38, 18), wide) in {"n", "?"}
    assert says("x IN (5, 12345678901234567890123456789012345678)", pa.decimal128(38, 18), wide) in {"y", "?"}
    assert says("x = 5", pa.decimal128(38, 18), wide) == "n"


def test_text_in_a_list_makes_decimals_doubles() -> None:
    """Beside '1.5' the whole list is compared as doubles: Spark finds 2**53 equal to 2**53 + 1."""
    assert says(f"x IN ('1.5', {BIG + 1})", pa.decimal128(20, 0), Decimal(BIG), Decimal(BIG + 1)) in {"yy", "??"}


# -- booleans, text, binary, uuid -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "answers"),
    [
        ("x", "ynn"),
        ("NOT x", "nyn"),
        ("x = true", "ynn"),
        ("x = 'true'", "ynn"),
        ("x = ' No '", "nyn"),
        ("x != false", "ynn"),
        ("x < true", "nyn"),
        ("x IS TRUE", "ynn"),
        ("x IS NOT TRUE", "nyy"),
        ("x IS FALSE", "nyn"),
        ("x IS NOT FALSE", "yny"),
        ("x IS UNKNOWN", "nny"),
        ("x IS NOT UNKNOWN", "yyn"),
        ("x IN (true, NULL)", "ynn"),
        ("x IN (true, false)", "yyn"),
    ],
)
def test_boolean_conditions(sql: str, answers: str) -> None:
    assert says(sql, pa.bool_(), True, False, None) == answers


def test_text_compares_by_code_point() -> None:
    assert says("x > '\ufffd'", pa.string(), "😀", "a") == "yn"
    assert says("x = ''", pa.string(), "", "\x00", None) == "ynn"
    assert says("x > ''", pa.string(), "", "\x00", None) == "nyn"
    assert says("x = 'a '", pa.string(), "a", "a ") == "ny"


def test_text_against_a_number_is_left_to_spark() -> None:
    """Spark casts every string of the column: '05' equals 5, so that no range of strings is right."""
    assert says("x = 5", pa.string(), "5", "05") == "??"
    assert says("x IN ('a', 5)", pa.string(), "5", "a") == "??"


def test_binary_compares_by_unsigned_bytes() -> None:
    assert says("x > X'7F'", pa.binary(), b"\x80", b"\x7f", b"\x7f\x00", b"\x01") == "ynyn"
    assert says("x = X'01'", pa.binary(2), b"\x01\x00") == "n"
    assert says("x >= X'01'", pa.binary(2), b"\x01\x00", b"\x00\xff") == "yn"


def test_text_against_binary_compares_bytes() -> None:
    assert says("x = X'61'", pa.string(), "a", "b") == "yn"
    assert says("x > X'FF'", pa.string(), "a", "😀") == "nn"
    assert says("x > 'a'", pa.binary(), b"\xff", b"a") == "yn"


@pytest.mark.parametrize("sql", ["startswith(x, X'FF')", "left(x, 1) = X'FFFF'", "left(x, 1) > X'C3'"])
def test_bytes_that_are_no_text_are_no_crash(sql: str) -> None:
    """Spark compares text and binary as bytes: no string begins with FF, and none is an error."""
    assert says(sql, pa.string(), "a") in {"n", "?"}


def test_uuid_is_its_lower_case_text() -> None:
    one, two = UUID(int=1), UUID(int=2**127)
    assert says(f"x = '{one}'", pa.uuid(), one, two) == "yn"
    assert says(f"x < '{two}'", pa.uuid(), one, two) == "yn"
    assert says("x >= '8'", pa.uuid(), one, two) == "ny"
    assert says(f"x > '{UUID(int=2**128 - 1)}'", pa.uuid(), UUID(int=2**128 - 1)) == "n"
    assert says("x < 'zzz'", pa.uuid(), one, two) == "yy"


def test_uuid_in_capitals_is_below_every_letter_of_a_uuid() -> None:
    """Spark compares text: 'a...' > 'F...' is true, since capitals come first. Lowering the literal loses the row."""
    value = UUID("a0000000-0000-0000-0000-000000000000")
    assert says("x > 'F0000000-0000-0000-0000-000000000000'", pa.uuid(), value) in {"y", "?"}
    assert says("x < 'F0000000-0000-0000-0000-000000000000'", pa.uuid(), value) in {"n", "?"}


# -- dates and timestamps -------------------------------------------------------------------------------------


@pytest.mark.parametrize("literal", ["date '2024-01-15'", "'2024-01-15'", "'2024-1-15'", "'2024-01-15 23:00:00'"])
def test_date_against_a_day(literal: str) -> None:
    days = [date(2024, 1, 14), date(2024, 1, 15), date(2024, 1, 16), None]
    assert says(f"x = {literal}", pa.date32(), *days) == "nynn"
    assert says(f"x > {literal}", pa.date32(), *days) == "nnyn"


def test_date_against_a_timestamp_is_its_midnight() -> None:
    days = [date(2024, 1, 15), date(2024, 1, 16)]
    assert says("x >= timestamp '2024-01-15 00:00:00'", pa.date32(), *days) == "yy"
    assert says("x >= timestamp '2024-01-15 00:00:01'", pa.date32(), *days) == "ny"
    assert says("x = timestamp '2024-01-15 12:00:00'", pa.date32(), *days) == "nn"


def test_list_of_a_text_and_a_timestamp_compares_dates_as_timestamps() -> None:
    """Alone, '2024-01-01 12:00:00' is cut to a date; beside a timestamp Spark finds no date equal to noon."""
    first = date(2024, 1, 1)
    assert says("x IN ('2024-01-01 12:00:00', timestamp '2024-01-05')", pa.date32(), first) in {"n", "?"}
    assert says("x IN ('2024-01-01 12:00:00')", pa.date32(), first) == "y"


def test_list_of_a_zoned_text_and_a_timestamp_reads_the_zone() -> None:
    """Alone, a zone in the text is dropped beside a timestamp without one; in this list Spark finds 07:00."""
    seven = datetime(2024, 1, 1, 7)
    sql = "x IN (timestamp_ltz '2023-01-01', '2024-01-01 12:00:00+05:00')"
    assert says(sql, NTZ, seven) in {"y", "?"}
    assert says("x = '2024-01-01 12:00:00+05:00'", NTZ, seven, datetime(2024, 1, 1, 12)) == "ny"


def test_timestamp_with_zone_reads_text_in_the_session_s_zone() -> None:
    """Midnight in Paris is 23:00 the day before in UTC."""
    instants = [datetime(2024, 1, 14, 22, 59, tzinfo=UTC), datetime(2024, 1, 14, 23, tzinfo=UTC)]
    assert says("x >= '2024-01-15'", TZ, *instants, zone="Europe/Paris") == "ny"
    assert says("x >= date '2024-01-15'", TZ, *instants, zone="Europe/Paris") == "ny"
    assert says("x >= timestamp '2024-01-15'", TZ, *instants, zone="Europe/Paris") == "ny"
    assert says("x >= '2024-01-15 00:00:00Z'", TZ, *instants, zone="Europe/Paris") == "nn"


def test_timestamp_without_zone_ignores_the_session_s() -> None:
    walls = [datetime(2024, 1, 14, 23, 59), datetime(2024, 1, 15)]
    assert says("x >= '2024-01-15'", NTZ, *walls, zone="Asia/Kolkata") == "ny"
    assert says("x >= '2024-01-15 00:00:00Z'", NTZ, *walls, zone="Asia/Kolkata") == "ny"
    assert says("x >= timestamp_ntz '2024-01-15'", NTZ, *walls, zone="Asia/Kolkata") == "ny"


def test_timestamp_without_zone_against_an_instant_is_read_in_the_session_s_zone() -> None:
    walls = [datetime(2024, 1, 15, 5, 29), datetime(2024, 1, 15, 5, 30)]
    assert says("x >= timestamp_ltz '2024-01-15 00:00:00Z'", NTZ, *walls, zone="Asia/Kolkata") == "ny"


def test_session_s_zone_is_noted_only_where_it_matters() -> None:
    def asks(sql: str, type_: pa.DataType) -> bool:
        return bind(parse(sql), Schema.of(x=type_), time_zone="Europe/Paris").zone_dependent

    assert asks("x >= '2024-01-15'", TZ)
    assert asks("date(x) = '2024-01-15'", TZ)
    assert not asks("x >= '2024-01-15 00:00:00Z'", TZ)
    assert not asks("x >= '2024-01-15'", NTZ)
    assert not asks("x >= '2024-01-15'", pa.date32())


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps_of_every_unit_meet_a_microsecond_between_them(unit: str) -> None:
    """A literal finer than the column lies between two of its values."""
    per = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    type_ = pa.timestamp(unit)
    values = [0, 1, per]
    answers = says("x >= '1970-01-01 00:00:00.0000005'", type_, *values)  # Spark cuts it to microseconds: 0
    assert answers == "yyy"
    assert says("x > '1969-12-31 23:59:59.999999'", type_, *values) == "yyy"
    assert says("x < '1970-01-01 00:00:01'", type_, 0, per - 1, per) == "yyn"


def test_timestamps_beyond_a_type_s_years_fold() -> None:
    """Nanoseconds end in 2262: a later literal is above all of them."""
    assert says("x < '9999-01-01'", pa.timestamp("ns"), 0, 2**63 - 1, None) == "yyn"
    assert says("x > '9999-01-01'", pa.timestamp("ns"), 0, 2**63 - 1, None) == "nnn"
    assert says("x > '0001-01-01'", pa.timestamp("ns"), 0, -(2**63) + 1) == "yy"


def test_times_of_day() -> None:
    assert says("x >= '12:00:00'", pa.time64("us"), 43_200_000_000, 43_199_999_999) == "yn"
    assert says("x > '12:00:00.5'", pa.time32("s"), 43_200, 43_201) == "ny"
    with pytest.raises(BindError, match="cannot read"):
        says("x > '25:00'", pa.time64("us"))


@pytest.mark.parametrize(
    ("sql", "type_"),
    [
        ("x = 5", pa.date32()),
        ("x = 5", TZ),
        ("x = true", INT),
        ("x = 1", pa.bool_()),
        ("x = date '2024-01-01'", INT),
        ("x = X'00'", LONG),
        ("x = X'00'", pa.date32()),
        ("x = date '2024-01-01'", pa.bool_()),
        ("x = 5", pa.time64("us")),
        ("x IN (1, true)", INT),
        ("x = 5", pa.uuid()),
    ],
)
def test_types_that_do_not_compare_are_refused(sql: str, type_: pa.DataType) -> None:
    with pytest.raises(BindError, match="cannot compare x") as caught:
        says(sql, type_)
    assert caught.value.column == "x"


@pytest.mark.parametrize(
    ("sql", "type_"),
    [
        *(("x = CAST(NULL AS date)", INT), ("x <=> CAST(NULL AS boolean)", INT), ("x > CAST(NULL AS int)", TZ)),
        *(("x IN (CAST(NULL AS int))", pa.date32()), ("x NOT IN (1, CAST(NULL AS boolean))", INT)),
        *(("x BETWEEN CAST(NULL AS int) AND NULL", NTZ), ("x = CAST(NULL AS binary)", pa.bool_())),
        *(("x IN ('a', 5, true)", pa.string()), ("x IN (date '2024-01-15', 5)", pa.string())),
        *(("x = 'a'", pa.list_(INT)), ("x IN (1, NULL)", pa.struct([("p", INT)]))),
        *(("x <=> NULL", pa.map_(pa.string(), INT)), ("x IN (NULL)", pa.map_(pa.string(), INT))),
        (f"x IN ({', '.join(map(str, range(200)))})", pa.date32()),
    ],
)
def test_what_sparks_analyzer_has_no_common_type_for_is_refused(sql: str, type_: pa.DataType) -> None:
    """Taken for a condition that is never true, it would drop every file of a query that Spark refuses."""
    with pytest.raises(BindError, match="cannot compare x, "):
        bind(parse(sql), Schema.of(x=type_))


@pytest.mark.parametrize(
    ("sql", "type_"),
    [
        *(("x = CAST(NULL AS string)", INT), ("x = CAST(NULL AS double)", INT), ("x = NULL", pa.list_(INT))),
        *(("x IN ('5', NULL, CAST(NULL AS bigint))", INT), ("x = CAST(NULL AS timestamp)", pa.date32())),
        *(("x <=> CAST(NULL AS string)", pa.binary()), ("x IN ('true', CAST(NULL AS string))", pa.bool_())),
        *(("x = CAST(NULL AS string)", pa.uuid()), ("x IN (CAST(NULL AS int), 'a')", pa.string())),
    ],
)
def test_null_of_a_type_that_compares_is_accepted(sql: str, type_: pa.DataType) -> None:
    bind(parse(sql), Schema.of(x=type_))


@pytest.mark.parametrize(
    ("text", "type_"),
    [("never", pa.date32()), ("2024-13-01", pa.date32()), ("2024-01-01 25:00:00", TZ), ("x", NTZ), ("x", DOUBLE)],
)
def test_text_that_cannot_be_read_is_refused(text: str, type_: pa.DataType) -> None:
    with pytest.raises(BindError, match="cannot read") as caught:
        says(f"x = '{text}'", type_)
    assert caught.value.column == "x"
    assert repr(text) in caught.value.message


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize(
    ("sign", "answers"),
    [
        ("=", "nnyn??nn"),
        ("!=", "yyny??yy"),
        (">", "nnny??yy"),
        (">=", "nnyyyyyy"),
        ("<", "yynnnnnn"),
        ("<=", "yyyn??nn"),
    ],
)
def test_nanoseconds_of_a_literals_microsecond_may_be_it(sign: str, answers: str, zone: str | None) -> None:
    """Read to the microsecond they are the literal; as they are, they are above it. Neither may lose a row."""
    literal = "timestamp_ntz'1970-01-01 00:00:00.000001'" if zone is None else "timestamp'1970-01-01 00:00:00.000001'"
    nanos = (-1, 999, 1000, None, 1001, 1999, 2000, 3000)
    expected = answers[:3] + "n" + answers[4:]
    assert says(f"x {sign} {literal}", pa.timestamp("ns", zone), *nanos) == expected
