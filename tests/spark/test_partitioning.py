"""Partition values that Spark computes are those of tamis's own transforms, by which files are planned."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tamis.formats.edit import Cluster
from tamis.sieve.transforms import apply, parse_transform
from tamis.spark.partitioning import partition_value

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.engine

DAY = 86_400_000_000
INSTANT = pa.timestamp("us", "UTC")
NAIVE = pa.timestamp("us")
FAR = [
    *(sign * (year * 365 * DAY + 1) for sign in (1, -1) for year in (3_000, 200_000, 250_000)),
    -(1 << 62),
    1 << 62,
]
"""Microseconds; hours of 250,000 years take more than 32 bits."""
PERIODS = ("year", "month", "day")
CASES = [
    *((f"bucket[{count}]", type_) for count in (1, 7, 16, 2_147_483_647) for type_ in (pa.int32(), pa.int64())),
    *(("bucket[16]", type_) for type_ in (pa.date32(), INSTANT)),
    *((f"truncate[{width}]", pa.string()) for width in (1, 3, 2_147_483_647)),
    *((period, pa.date32()) for period in PERIODS),
    *((period, type_) for type_ in (INSTANT, NAIVE) for period in (*PERIODS, "hour")),
]
BY_APPLY = [("bucket[5]", pa.string()), ("truncate[10]", pa.int64()), ("bucket[3]", NAIVE)]
"""Of these Spark has no function that gives the same: tamis's own runs on the executors."""


def numbers(bits: int, chance: random.Random) -> list[int]:
    """The ends, some about 0, and some of every size."""
    ends = [0, 1, -1, (1 << (bits - 1)) - 1, -(1 << (bits - 1))]
    return ends + [chance.randrange(-(1 << size), 1 << size) for size in range(1, bits) for _ in range(4)]


def values(type_: pa.DataType, chance: random.Random) -> pa.Array:
    """Values of a type, and NULL."""
    found: list[Any]
    if pa.types.is_string(type_):
        letters = ["a", "é", "😀", "e\u0301", "\x00", " ", "Z"]
        found = ["", *("".join(chance.choices(letters, k=size)) for size in range(12) for _ in range(4))]
    elif pa.types.is_timestamp(type_):
        near = [day * DAY + past for day in (-1, 0, 1, 365, -366, 19_723) for past in (-1, 0, 1)]
        found = near + FAR + [chance.randrange(-(10**16), 10**16) for _ in range(100)]
    elif pa.types.is_date(type_):
        found = [one for one in numbers(32, chance) if abs(one) < 100_000_000] + [-719_529, -719_528, 2_932_897]
    else:
        found = numbers(type_.bit_width, chance)
    if pa.types.is_temporal(type_):
        raw = pa.array([*found, None], pa.int32() if pa.types.is_date(type_) else pa.int64())
        return raw.view(type_)
    return pa.array([*found, None], type_)


@pytest.fixture(params=[("America/St_Johns", "true"), ("Asia/Kolkata", "false")], ids=["ansi", "lenient"])
def session(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """Sessions whose zones are not UTC, by either rules for overflows."""
    names = ("spark.sql.session.timeZone", "spark.sql.ansi.enabled")
    before = [spark.conf.get(name) for name in names]
    for name, value in zip(names, request.param, strict=True):
        spark.conf.set(name, value)
    yield spark
    for name, old in zip(names, before, strict=True):
        spark.conf.set(name, str(old))


def test_partition_values_by_sparks_functions_are_those_of_the_transforms(session: SparkSession) -> None:
    """Another value puts a row into a file of another partition, by which it is then pruned away."""
    chance = random.Random(5)  # noqa: S311 - chance for a test
    wrong = []
    for text, type_ in (*CASES, *BY_APPLY):
        given = values(type_, chance)
        transform = parse_transform(text)
        # Times go as numbers: what lies beyond the years that Python knows cannot be made into a row of it.
        plain = given.view(pa.int64()) if pa.types.is_timestamp(type_) else given
        plain = given.view(pa.int32()) if pa.types.is_date(type_) else plain
        rows = session.createDataFrame(pa.table({"place": range(len(given)), "n": plain}))
        rows = rows.selectExpr("place", f"{shown_as(type_)} as v")
        value = partition_value(Cluster(("v",), transform, type_))
        told = rows.select("place", value.alias("p"))
        with redirect_stdout(StringIO()) as printed:
            told.explain()
        assert ("ArrowEvalPython" in printed.getvalue()) == ((text, type_) in BY_APPLY), printed.getvalue()
        wanted = apply(transform, given)
        found = told.selectExpr("place", f"{counted(wanted.type)} as p").orderBy("place").toArrow()["p"]
        wanted = wanted.view(pa.int32()) if pa.types.is_date(wanted.type) else wanted
        assert found.type == wanted.type or pa.types.is_string(wanted.type), (text, type_)
        pairs = zip(given.cast(plain.type).to_pylist(), found.to_pylist(), wanted.to_pylist(), strict=True)
        wrong += [
            f"{text} of {type_} {one!r}: {mine!r}, not {right!r}" for one, mine, right in pairs if mine != right
        ]
    assert not wrong, "\n".join(wrong[:20])


def shown_as(type_: pa.DataType) -> str:
    """A number as a value of the type, in any zone."""
    if type_ == INSTANT:
        return "timestamp_micros(n)"
    if type_ == NAIVE:
        return "timestampadd(MICROSECOND, n, timestamp_ntz '1970-01-01 00:00:00')"
    return "date_from_unix_date(n)" if pa.types.is_date(type_) else "n"


def counted(type_: pa.DataType) -> str:
    return "unix_date(p)" if pa.types.is_date(type_) else "p"
