"""Join keys from a DataFrame: every value as Spark compares it, few or many, and a build side that stays as it is."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tamis import RuntimeFilter
from tamis.errors import FilterInputError
from tamis.predicate.schema import Schema
from tamis.sieve.domain import ColumnStats, Facts, stats_domain
from tamis.sieve.join.column_bloom import JoinBloom
from tamis.sieve.order import encode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ZONE = "spark.sql.session.timeZone"


@pytest.fixture(params=["UTC", "America/New_York", "+05:45"])
def zone(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    """The session in another time zone."""
    before = spark.conf.get(ZONE)
    spark.conf.set(ZONE, request.param)
    yield request.param
    spark.conf.set(ZONE, before)


def listed(keys: RuntimeFilter) -> list[Any]:
    """The keys of one column, as they were collected."""
    return keys.source.table.column(0).to_pylist()  # type: ignore[union-attr] # a listed filter


VALUES = {
    "boolean": ("true, false, null", [False, True], pa.bool_()),
    "byte": ("-128Y, 127Y, null", [-128, 127], pa.int8()),
    "short": ("-5S, 5S", [-5, 5], pa.int16()),
    "int": ("-5, 5, 5", [-5, 5], pa.int32()),
    "long": ("-9223372036854775808, 9223372036854775807L", [-(2**63), 2**63 - 1], pa.int64()),
    "float": ("float(-0.0), float(0.0), float(1.5)", [0.0, 1.5], pa.float32()),
    "double": ("-0.0D, 0.0D, double('-inf')", [-float("inf"), 0.0], pa.float64()),
    "decimal": ("-1.50BD, 1.50BD, null", [Decimal("-1.50"), Decimal("1.50")], pa.decimal128(3, 2)),
    "wide decimal": (
        "cast(-1 as decimal(38, 2)), cast(12345678901234567890 as decimal(38, 2))",
        [Decimal("-1.00"), Decimal("12345678901234567890.00")],
        pa.decimal128(38, 2),
    ),
    "string": ("'', 'ž', '😀', null", ["", "ž", "😀"], pa.string()),
    "binary": ("X'', X'00ff', null", [b"", b"\x00\xff"], pa.binary()),
    "date": (
        "date'0001-01-01', date'1969-12-31', null",
        [dt.date(1, 1, 1), dt.date(1969, 12, 31)],
        pa.date32(),
    ),
    "void": ("null, null", [], pa.null()),
}


@pytest.mark.parametrize("kind", VALUES)
def test_keys_of_every_type_keep_their_values(spark: SparkSession, kind: str) -> None:
    """-0.0 equals 0.0 and NULL equals nothing, as in Spark's join."""
    sql, expected, type_ = VALUES[kind]
    keys = RuntimeFilter.from_dataframe(spark.sql(f"select explode(array({sql})) as k"), "k")
    assert listed(keys) == expected
    assert keys.source.table.column(0).type == type_  # type: ignore[union-attr] # a listed filter
    assert keys.collected is not None
    assert (keys.collected.keys, keys.collected.exact) == (len(expected), True)
    assert keys.collected.seconds > 0


def test_nan_is_a_key_and_is_not_taken_for_missing(spark: SparkSession) -> None:
    """Spark's dropna would drop it; in a join NaN equals NaN."""
    (key,) = listed(RuntimeFilter.from_dataframe(spark.sql("select double('NaN') k union all select null"), "k"))
    assert key != key  # noqa: PLR0124 - the definition of NaN


def test_instants_do_not_depend_on_the_session_s_zone(spark: SparkSession, zone: str) -> None:
    """Across a change to summer time, before 1970, and before there were time zones."""
    micros = [-62135596800000000, -1, 1710054000000000, 1710054000000001, 1730610000000000]
    df = spark.createDataFrame([(one,) for one in micros], "m long").selectExpr("timestamp_micros(m) as k")
    keys = RuntimeFilter.from_dataframe(df, "k")
    assert keys.source.table.column(0).cast(pa.int64()).to_pylist() == micros, zone  # type: ignore[union-attr] # listed
    assert keys.text


def test_times_without_zone_stay_as_they_are_written(spark: SparkSession, zone: str) -> None:
    """02:30 on a day on which some clock jumps over it is a time like any other."""
    df = spark.sql("select explode(array(timestamp_ntz'2024-03-10 02:30:00', timestamp_ntz'1969-12-31 23:59:59')) k")
    found = listed(RuntimeFilter.from_dataframe(df, "k"))
    assert found == [dt.datetime(1969, 12, 31, 23, 59, 59), dt.datetime(2024, 3, 10, 2, 30)], zone


def test_null_is_a_key_of_a_null_safe_join_alone(spark: SparkSession) -> None:
    df = spark.sql("select explode(array(1, null, 2)) as k")
    assert listed(RuntimeFilter.from_dataframe(df, "k", null_safe=True)) == [None, 1, 2]
    assert listed(RuntimeFilter.from_dataframe(df, "k")) == [1, 2]


def test_empty_build_side_has_no_key(spark: SparkSession) -> None:
    keys = RuntimeFilter.from_dataframe(spark.range(0), "id")
    assert listed(keys) == []
    assert keys.dataframe.count() == 0


def test_nested_field_and_another_name(spark: SparkSession) -> None:
    df = spark.sql("select named_struct('city', 'Brno') as info, 7 as `a.b`")
    assert RuntimeFilter.from_dataframe(df, "info.city").columns == (("info", "city"),)
    keys = RuntimeFilter.from_dataframe(df, ["info.city", "`a.b`"], names=["town", ("place", "number")])
    assert keys.columns == (("town",), ("place", "number"))
    assert keys.source.table.to_pylist() == [{"town": "Brno", "place.number": 7}]  # type: ignore[union-attr] # listed


# -- many keys ------------------------------------------------------------------------------------------------


def test_keys_up_to_the_limit_are_listed(spark: SparkSession) -> None:
    assert listed(RuntimeFilter.from_dataframe(spark.range(100), "id", max_keys=100)) == list(range(100))


def test_many_rows_of_few_keys_are_listed(spark: SparkSession) -> None:
    """Skew: the number of keys counts, not that of rows."""
    df = spark.range(1000).selectExpr("case when id < 990 then 5 else id % 4 end as k")
    assert listed(RuntimeFilter.from_dataframe(df, "k", max_keys=10)) == [0, 1, 2, 3, 5]


@pytest.mark.parametrize(
    ("sql", "type_"),
    [
        ("id", pa.int64()),
        ("cast(id as string)", pa.string()),
        ("id / 8", pa.float64()),
        ("cast(id as decimal(30, 2))", pa.decimal128(30, 2)),
        ("date_add(date'1970-01-01', cast(id - 500 as int))", pa.date32()),
        ("timestamp_seconds((id - 500) * 3600)", pa.timestamp("us", "UTC")),
    ],
)
def test_too_many_keys_become_a_range_and_a_bloom_filter(spark: SparkSession, sql: str, type_: pa.DataType) -> None:
    df = spark.range(1000).selectExpr(f"nullif({sql}, null) as k").repartition(3)
    keys = RuntimeFilter.from_dataframe(df, "k", max_keys=99)
    assert isinstance(keys.source, JoinBloom)
    column = df.selectExpr("min(k)", "max(k)").toArrow().cast(pa.schema([("min(k)", type_), ("max(k)", type_)]))
    assert (keys.source.range.low, keys.source.range.high) == (column.column(0)[0], column.column(1)[0])
    assert keys.source.bloom.contains(encode(df.toArrow().column(0).cast(type_), type_).keys).all()
    assert keys.source.bloom.false_positives < 0.05
    assert keys.collected is not None
    assert not keys.collected.exact
    assert keys.collected.keys == pytest.approx(1000, rel=0.15)


def test_bloom_filter_can_be_left_out(spark: SparkSession) -> None:
    """It takes Python workers on the executors; the range does not."""
    keys = RuntimeFilter.from_dataframe(spark.range(1000), "id", max_keys=10, bloom=False)
    assert keys.text == "id in join keys [0 … 999]"


def test_range_with_nan_is_open_above(spark: SparkSession) -> None:
    """NaN is the greatest value, so every other one lies within."""
    df = spark.range(100).selectExpr("case when id = 0 then double('NaN') else id end as k")
    bound = RuntimeFilter.from_dataframe(df, "k", max_keys=10, bloom=False).bind(Schema.of(k=pa.float64()))
    nulls = pa.array([0] * 3, pa.int64())
    bounds = ColumnStats(pa.array([-9.0, 50.0, 1e9]), pa.array([0.5, 60.0, 2e9]), nulls, pa.array([0, 0, 0]))
    facts = Facts(3, {1: stats_domain(bound.columns[0], bounds, 3)})
    assert bound.possible(facts).tolist() == [False, True, True]


def test_too_many_tuples_become_a_range_for_each_column(spark: SparkSession) -> None:
    df = spark.range(1000).selectExpr("id as a", "cast(id % 7 as string) as b")
    few = RuntimeFilter.from_dataframe(df.where("a < 3"), ["a", "b"])
    assert few.source.table.to_pylist() == [{"a": n, "b": str(n)} for n in range(3)]  # type: ignore[union-attr] # listed
    many = RuntimeFilter.from_dataframe(df, ["a", "b"], max_keys=10)
    assert many.text == "(a, b) in join keys ([0 … 999], [0 … 6])"


# -- pinned ---------------------------------------------------------------------------------------------------


def test_build_side_cannot_change_after_its_keys_were_collected(spark: SparkSession, tmp_path: Path) -> None:
    """Else the join would miss rows of files that were pruned for lack of a key."""
    spark.range(3).write.parquet(str(tmp_path / "dim"))
    keys = RuntimeFilter.from_dataframe(spark.read.parquet(str(tmp_path / "dim")), "id")
    spark.range(100, 200).write.mode("overwrite").parquet(str(tmp_path / "dim"))
    assert sorted(row.id for row in keys.dataframe.collect()) == listed(keys) == [0, 1, 2]


def test_random_build_side_is_the_same_each_time(spark: SparkSession) -> None:
    keys = RuntimeFilter.from_dataframe(spark.range(20).selectExpr("uuid() as k", "id"), "k")
    for _ in range(2):
        assert sorted(row.k for row in keys.dataframe.collect()) == listed(keys)


def test_pinned_side_is_still_broadcast(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a size estimate Spark would shuffle both sides."""
    dim = spark.range(100).selectExpr("id", "uuid() as name")
    keys = RuntimeFilter.from_dataframe(dim, "id")
    spark.range(10_000_000).selectExpr("id % 5000 as id", "id as v").join(keys.dataframe, "id").explain()
    assert "BroadcastHashJoin" in capsys.readouterr().out


def test_side_that_cannot_change_need_not_be_pinned(spark: SparkSession) -> None:
    dim = spark.range(3)
    assert RuntimeFilter.from_dataframe(dim, "id", pin=False).dataframe is dim


# -- what cannot be a key -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("map('a', 1)", "map<string,int> have no order"),
        ("array(1)", "array<int> have no order"),
        ("named_struct('a', 1)", "struct<a:int> have no order"),
        ("interval '1' day", "interval day have no order"),
        ("'a' collate utf8_lcase", "collation UTF8_LCASE"),
        ("cast(X'ff' as string)", "not all UTF-8"),
    ],
)
def test_keys_that_cannot_be_used_are_named(spark: SparkSession, sql: str, said: str) -> None:
    with pytest.raises(FilterInputError, match=said) as caught:
        RuntimeFilter.from_dataframe(spark.sql(f"select {sql} as k"), "k")
    assert caught.value.columns == ("k",)


def test_misuse_is_told(spark: SparkSession) -> None:
    df = spark.range(3)
    with pytest.raises(FilterInputError, match=r"no such key columns.*nope.*It has id"):
        RuntimeFilter.from_dataframe(df, "nope")
    with pytest.raises(FilterInputError, match=r"1 key columns .* 2 columns"):
        RuntimeFilter.from_dataframe(df, "id", names=["a", "b"])
    with pytest.raises(FilterInputError, match="max_keys is -1"):
        RuntimeFilter.from_dataframe(df, "id", max_keys=-1)
    with pytest.raises(FilterInputError, match="at least one column"):
        RuntimeFilter.from_dataframe(df, [])
    with pytest.raises(FilterInputError, match="a stream has no last key"):
        RuntimeFilter.from_dataframe(spark.readStream.format("rate").load(), "value")
