"""Which values the ordinals of year, month, day and hour may stand for: a corner a test."""

from datetime import date

import pyarrow as pa
import pytest

from tamis.predicate.keys import INT64_MAX, INT64_MIN, key_span
from tamis.sieve.transforms import Transform, apply, parse_transform, preimage
from tests.unit.sieve.transforms.preimages import (
    DAY,
    INT_MAX,
    INT_MIN,
    NS,
    TZ,
    US,
    bounds,
    days,
    ints,
    micros,
    of,
    period,
)


def test_day_is_a_day_in_utc() -> None:
    start = micros(2024, 1, 15)
    for source in (US, TZ):
        assert period("day", source, days(2024, 1, 15)) == (start, start + DAY - 1)


def test_day_may_come_as_a_date() -> None:
    found = of("day", US, pa.array([date(2024, 1, 15)]))
    assert bounds(found) == [(micros(2024, 1, 15), micros(2024, 1, 16) - 1)]


def test_month_year_and_hour_end_before_the_next_one() -> None:
    assert period("month", US, (2024 - 1970) * 12 + 1) == (micros(2024, 2, 1), micros(2024, 3, 1) - 1)
    assert period("year", US, 54) == (micros(2024, 1, 1), micros(2025, 1, 1) - 1)
    assert period("hour", US, 1) == (3_600_000_000, 7_200_000_000 - 1)
    assert period("month", pa.date32(), (2024 - 1970) * 12 + 1) == (days(2024, 2, 1), days(2024, 2, 29))
    assert period("year", pa.date32(), 54) == (days(2024, 1, 1), days(2024, 12, 31))


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_period_has_the_unit_of_the_column(unit: str) -> None:
    scale = {"s": 1, "ms": 1000, "us": 10**6, "ns": 10**9}[unit]
    assert period("day", pa.timestamp(unit), 5) == (5 * 86_400 * scale, 6 * 86_400 * scale - 1)


@pytest.mark.parametrize("ordinal", [0, -1, -30])
def test_period_before_1970_starts_one_earlier(ordinal: int) -> None:
    """Java up to 0.10 wrote 1969-12-31 10:00 as day 0: what is written as 0 may belong to -1."""
    assert period("day", US, ordinal) == ((ordinal - 1) * DAY, (ordinal + 1) * DAY - 1)


def test_month_and_year_of_a_date_before_1970_start_one_earlier() -> None:
    assert period("month", pa.date32(), 0) == (days(1969, 12, 1), days(1970, 1, 31))
    assert period("year", pa.date32(), -1) == (days(1968, 1, 1), days(1969, 12, 31))


def test_day_of_a_date_is_exact_before_1970_too() -> None:
    assert period("day", pa.date32(), -1) == (-1, -1)
    assert period("day", pa.date32(), INT_MIN) == (INT_MIN, INT_MIN)


def test_first_period_after_1970_is_not_widened() -> None:
    assert period("day", US, 1) == (DAY, 2 * DAY - 1)


def test_bounds_of_a_manifest_give_one_range() -> None:
    found = of("day", US, ints(3, 0, None, 3, None), ints(5, 5, 5, None, None))
    assert bounds(found) == [
        (3 * DAY, 6 * DAY - 1),
        (-DAY, 6 * DAY - 1),
        (None, 6 * DAY - 1),
        (3 * DAY, None),
        (None, None),
    ]


def test_period_is_clipped_to_the_type() -> None:
    """2262 ends within the range of nanoseconds, and 1677 begins before it."""
    assert period("year", NS, 292)[1] == INT64_MAX
    assert period("year", NS, -293) == (INT64_MIN, micros(1678, 1, 1) * 1000 - 1)
    assert period("year", pa.date32(), 5879610)[1] == INT_MAX


@pytest.mark.parametrize(
    ("text", "source", "ordinal"),
    [("year", NS, 293), ("year", NS, -294), ("day", NS, 106_752), ("day", US, 106_751_992), ("year", US, 1 << 20),
     ("year", pa.date32(), 5_879_611), ("month", pa.date32(), INT_MIN)],
)  # fmt: skip
def test_ordinal_that_the_type_cannot_have_says_nothing(text: str, source: pa.DataType, ordinal: int) -> None:
    found = of(text, source, ints(ordinal, 1))
    assert bounds(found)[0] == (None, None)
    assert bounds(found)[1] != (None, None)
    assert [problem.mask.tolist() for problem in found.problems] == [[True, False]]


def test_hour_that_may_have_wrapped_says_nothing() -> None:
    """hour() of a timestamp beyond the year 246,000 wraps in 32 bits: it is some other hour as well."""
    written = apply(parse_transform("hour"), pa.array([INT64_MAX, INT64_MIN, 0], US))
    found = of("hour", US, written)
    assert bounds(found)[:2] == [(None, None), (None, None)]
    assert bounds(found)[2] == (-3_600_000_000, 3_600_000_000 - 1)


def test_bounds_that_may_hold_a_wrapped_hour_say_nothing() -> None:
    assert bounds(of("hour", US, ints(-1732919508), ints(5))) == [(None, None)]
    assert bounds(of("hour", NS, ints(5), ints(6))) != [(None, None)]


def test_lone_bound_of_hours_says_nothing_where_hours_wrap() -> None:
    """hour() of a timestamp 245,000 years ago wraps to a great number: "from hour 5 on" holds it as well."""
    assert bounds(of("hour", US, ints(5, None), ints(None, 5))) == [(None, None), (None, None)]
    assert bounds(of("hour", NS, ints(5), ints(None))) == [(5 * 3600 * 10**9, None)]


def test_ordinal_may_come_as_a_long() -> None:
    found = of("year", US, pa.array([54, 1 << 40]))
    assert bounds(found) == [(micros(2024, 1, 1), micros(2025, 1, 1) - 1), (None, None)]


def test_inverted_bounds_say_nothing() -> None:
    """They exist in real tables (ClickHouse #116499)."""
    for text, source in (("day", US), ("truncate[1]", pa.int32()), ("identity", pa.int32())):
        found = of(text, source, ints(5), ints(4))
        assert bounds(found) == [(None, None)]
        assert "above" in found.problems[0].text
    found = of("bucket[9]", pa.int32(), ints(5), ints(4))
    assert found.buckets is not None
    assert not found.buckets.valid.any()


@pytest.mark.parametrize("source", [pa.timestamp("us", "UTC"), pa.date32()])
def test_slack_reaches_further_on_either_side_and_never_around(source: pa.DataType) -> None:
    """A clock that is not in UTC is up to so much off; keys that would overflow stay at the type's end."""
    span = key_span(source)
    least, greatest = int(span.least), int(span.greatest or 0)
    width = pa.int32() if pa.types.is_date32(source) else pa.int64()
    values = pa.array([100, least, greatest], width).view(source)
    found = preimage(Transform("identity", slack=(10, 20)), source, values, values).range
    assert found is not None
    assert found.lower is not None
    assert found.upper is not None
    assert found.lower.keys.tolist() == [90, least, greatest - 10]
    assert found.upper.keys.tolist() == [120, least + 20, greatest]


def test_slack_of_what_has_no_numbers_says_nothing() -> None:
    values = pa.array(["a"])
    assert preimage(Transform("identity", slack=(1, 1)), pa.string(), values, values).range is None
