"""Types of what is left to Spark: what its analyzer refuses is refused before files are dropped, and nothing else."""

import pyarrow as pa
import pytest

from tamis.errors import BindError
from tamis.predicate.schema import Column, Schema
from tamis.predicate.where import bind_text

_TYPES = {
    "i": pa.int32(),
    "d": pa.float64(),
    "s": pa.string(),
    "b": pa.bool_(),
    "dt": pa.date32(),
    "ts": pa.timestamp("us", "UTC"),
    "arr": pa.list_(pa.int32()),
    "m": pa.map_(pa.string(), pa.int32()),
}
SCHEMA = Schema(tuple(Column(place, (name,), type_) for place, (name, type_) in enumerate(_TYPES.items(), 1)))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("(1 = 'x'::boolean) OR i = 5", "an int is compared with a boolean"),
        ("i = 5 AND cast(NULL AS date) = 5", "a date is compared with an int"),
        ("i = 5 OR 1 IN (true)", "an int is compared with a boolean"),
        ("i = 5 OR 1 BETWEEN true AND false", "an int is compared with a boolean"),
        ("i = 5 OR (CASE WHEN 1 THEN true END)", "an int stands as a condition"),
        ("i = 5 OR CASE 1 WHEN true THEN b END", "an int is compared with a boolean"),
        ("i = 5 OR coalesce(1, true) = 1", "an int is in one coalesce with a boolean"),
        ("i = 5 OR (1 + true) = 2", "a boolean is computed with"),
        ("i = 5 OR if(1, true, false)", "an int stands as a condition"),
        ("i = 5 OR cast(true AS date) IS NULL", "a boolean is cast to a date"),
        ("i = 5 OR cast(X'01' AS int) IS NULL", "a binary is cast to an int"),
        ("i = 5 OR i + 1", "a double stands as a condition"),
        ("case when i = 5 then 1 end", "an int stands as a condition"),
        ("i = cast(cast(NULL AS date) AS int)", "a date is cast to an int"),
        ("dt = date(5)", "an int is cast to a date"),
        ("i = -true", "a boolean is computed with"),
        ("year(b) IS NULL", "year is given a boolean"),
        ("lower(arr) = 'a'", "lower is given an array<int>"),
        ("length(s) = dt", "is compared with a date"),
        ("m = m", "Spark compares no maps"),
        ("'true'", "a string stands as a condition"),
        ("NOT (i + 1)", "stands as a condition"),
        ("if('x', b, true) OR i = 5", "a string stands as a condition"),
        ("CASE WHEN NULL THEN b END OR i = 5", "a void stands as a condition"),
        ("arr[0] = true OR i = 5", "an int is compared with a boolean"),
        ("m['k'] = dt OR i = 5", "an int is compared with a date"),
        ("nullif(i, dt) IS NULL OR i = 5", "an int is compared with a date"),
        ("i BETWEEN in(5, 1) AND 2", "an int is compared with a boolean"),
        ("s LIKE arr OR i = 5", "LIKE is given an array<int>"),
        ("contains(arr, s) OR i = 5", "contains is given an array<int>"),
        ("ts + interval 1 day = 5 OR b", "a timestamp is compared with an int"),
        ("dt - dt BETWEEN 1 AND '2024-01-15'::date OR b", "an interval of days is compared with an int"),
        ("b IN (NOT b, 5D) OR i = 5", "a boolean is compared with a double"),
        ("m IS DISTINCT FROM m OR b", "Spark compares no maps"),
        ("left(s, 1) = interval 1 day OR b", "a string is compared with an interval of days"),
        ("dt + 1 = 5 OR b", "a date is compared with an int"),
        ("abs(dt) = 5 OR b", "a date is computed with"),
        ("equal_null(s, arr) OR b", "a string is compared with an array<int>"),
        ("s || i = interval 1 day OR b", "a string is compared with an interval of days"),
        ("dt * 2 IS NULL OR i = 5", "a date is computed with"),
        ("(5 = interval 1 day) OR i = 5", "an int is compared with an interval of days"),
        ("interval '1-2' year to month > interval 3 hours OR i = 5", "an interval of months is compared with"),
        ("i = 5 AND true < array(1)", "a boolean is compared with an array<void>"),
        ("i = cast(NULL AS array<int>)", "an int is compared with an array<void>"),
        ("s = cast(NULL AS interval day)", "a string is compared with an interval of days"),
        ("i IN (cast(NULL AS struct<p int>))", "an int is compared with a struct<>"),
    ],
)
def test_types_that_spark_refuses_are_refused_in_every_part(text: str, fault: str) -> None:
    """Beside such a part another would drop files, or take them whole, and Spark would never be asked."""
    with pytest.raises(BindError, match="Spark refuses") as caught:
        bind_text(text, SCHEMA, instant=0)
    assert fault in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        *("i = 5 OR 'true'", "b AND 'x'", "i = 5 AND NULL", "i + '1' = 6", "s + 1 = '6'", "coalesce(i, 'a') = 5"),
        *("true = i < 5", "i + 1 = 6 IN (true)", "(i + 1 = 6) = true", "s || 'x' || 5 = 'ax5'", "-'5' = i"),
        *("cast(ts AS bigint) > 5", "cast(i AS timestamp) > ts", "cast(arr AS string) = 'x'", "cast(i AS boolean)"),
        *("dt + 1 = date '2024-01-16'", "dt - date '2024-01-15' > interval 1 day", "dt < ts", "ts = 'x' || s"),
        *("exists(arr, i -> i = 'a')", "i IN (SELECT true)", "s:a = 5", "arr = array(5)", "nosuch(i) = true"),
        *(
            "case when i = 5 then true end",
            "case i when 5 then b else 'x' end",
            "if(b, 1, '2') = 1",
            "if(NULL, b, b)",
        ),
        *(
            "i = 5 OR 'x' = 5",
            "i = ${x}",
            "m['k'] = 5",
            "year(s) = 2024",
            "lower(dt) = 'x'",
            "arr = array()",
            "cast('5' AS int) = i",
        ),
    ],
)
def test_what_spark_may_take_is_taken(text: str) -> None:
    bind_text(text, SCHEMA, instant=0)


@pytest.mark.parametrize(
    "text", ["(nosuch = 5) = NULL", "NULL = (nosuch = 5)", "(m = NULL) = NULL", "(i = true) < NULL"]
)
def test_condition_compared_with_null_has_to_bind_as_well(text: str) -> None:
    """It is never true, and Spark refuses it all the same: a DELETE that does nothing would hide the mistake."""
    with pytest.raises(BindError):
        bind_text(text, SCHEMA, instant=0)


@pytest.mark.parametrize(
    "text", ["(i = 5) = NULL", "NOT ((i = 5) = NULL)", "(i = 5) < NULL", "((i = 5) = NULL) = true"]
)
def test_condition_compared_with_null_is_never_true_nor_false(text: str) -> None:
    assert bind_text(text, SCHEMA, instant=0).root.value is False  # type: ignore[union-attr] # it is known


def test_long_text_is_not_parsed_again() -> None:
    """Of a list of a hundred thousand members no types are asked: it is opaque, and Spark reads it."""
    bind_text(f"i + 1 IN ({', '.join(['true'] * 5_000)})", SCHEMA, instant=0)
