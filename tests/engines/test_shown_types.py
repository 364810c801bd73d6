"""Times of day, and times in nanoseconds: read as they are asked for. The truth is Iceberg's generic Java reader.

The connector reads neither: it fails on any table that has such a column, whatever is selected.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame

import tamis
from tamis.errors import SessionSettingError, UnreadableColumnError
from tests.engines.conftest import Warehouse
from tests.engines.generics import java_rows, nanos_of, value, write_rows
from tests.engines.reading import Java, delete_rows, java_table

pytestmark = pytest.mark.engine

TIME_TYPE = "spark.sql.timeType.enabled"
FORMATS = ("parquet", "orc", "avro")


@pytest.fixture
def timeless(warehouse: Warehouse) -> Iterator[Warehouse]:
    """A session as Spark has it by default, without TIME."""
    warehouse.spark.conf.set(TIME_TYPE, "false")
    yield warehouse
    warehouse.spark.conf.unset(TIME_TYPE)


DAYS = ("00:00:00", "00:00:00.000001", "09:05:07", "10:00:00.5", "10:00:00.500001", "23:59:59.999999", None)


def table_of_times(warehouse: Warehouse, name: str, file_format: str) -> dict[int, int | None]:
    """Two files, rows deleted by value; the microseconds of each row's time, by its id, as Java reads it."""
    java = Java(warehouse.spark)
    time, number = java.types.TimeType.get(), java.types.IntegerType.get()
    fields = [
        java.field(1, "id", number),
        java.field(2, "t", time),
        java.field(3, "st", java.struct(java.field(4, "t", time), java.field(5, "k", number))),
        java.field(6, "li", java.types.ListType.ofOptional(7, time)),
    ]
    java_table(warehouse, name, fields, version=2, write_format_default=file_format)
    for start in (0, 100):
        rows = []
        for number_, text in enumerate(DAYS):
            at = None if text is None else value(java, text)
            inside = None if number_ == 2 else {"t": at, "k": number_}
            rows.append({"id": start + number_, "t": at, "st": inside, "li": [at, None]})
        write_rows(warehouse, name, rows if not start else rows[3:], file_format)
    delete_rows(warehouse, name, [{"t": value(java, "10:00:00.500001")}], refresh=False)
    found = {row.getField("id"): nanos_of(java, row.getField("t")) for row in java_rows(warehouse, name)}
    return {id_: None if nanos is None else nanos // 1000 for id_, nanos in found.items()}


def text_of(micros: int | None) -> str | None:
    """As Spark writes a TIME."""
    if micros is None:
        return None
    second, rest = divmod(micros, 1_000_000)
    whole = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
    return f"{whole}.{rest:06}".rstrip("0") if rest else whole


def by_id(rows: DataFrame, column: str) -> dict[int, Any]:
    collected = rows.selectExpr("id", f"{column} as shown").collect()
    found = {row.id: row.shown for row in collected}
    assert len(found) == len(collected)
    return found


@pytest.mark.parametrize("file_format", FORMATS)
def test_times_of_day_are_numbers_or_text_where_spark_has_no_time(timeless: Warehouse, file_format: str) -> None:
    """By request alone. What is not asked for does not hinder; a condition on a time needs Spark to compare times."""
    name, spark = f"times_{file_format}", timeless.spark
    micros = table_of_times(timeless, name, file_format)
    assert len(micros) == 9
    plan = tamis.open(timeless.path(name)).plan()
    with pytest.raises(UnreadableColumnError, match=r"'t' of type time.*types=\{'time': 'bigint'\}.*timeType"):
        plan.read(spark)
    assert plan.read(spark, columns=["id"]).count() == 9
    numbers = plan.read(spark, types={"time": "bigint"})
    assert numbers.schema.simpleString() == "struct<id:int,t:bigint,st:struct<t:bigint,k:int>,li:array<bigint>>"
    assert by_id(numbers, "t") == micros
    assert by_id(numbers, "coalesce(st.t, li[0])") == micros
    texts = plan.read(spark, types={"time": "string"}).cache()
    for column in ("t", "coalesce(st.t, li[0])"):
        assert by_id(texts, column) == {id_: text_of(number) for id_, number in micros.items()}
    some = spark.createDataFrame([(1,), (103,)], "id int")
    joined = tamis.open(timeless.path(name)).join(some, on="id", columns=["t"], types={"time": "bigint"})
    assert by_id(joined, "t") == {id_: micros[id_] for id_ in (1, 103)}
    with pytest.raises(ValueError, match="types has 'date'"):
        tamis.open(timeless.path(name)).join(some, on="id", types={"date": "string"})
    compared = tamis.open(timeless.path(name)).plan("t >= '10:00:00.5'")
    with pytest.raises(SessionSettingError, match=r"no TIME type.*compares t as one.*timeType\.enabled"):
        compared.read(spark, types={"time": "bigint"})
    with pytest.raises(SessionSettingError, match="types= asks for it"):
        plan.read(spark, types={"time": "time"})


@pytest.mark.parametrize("file_format", FORMATS)
def test_times_of_day_are_times_where_spark_has_them(timeless: Warehouse, file_format: str) -> None:
    """A condition means the same whatever is asked for, and prunes files."""
    name, spark = f"timed_{file_format}", timeless.spark
    micros = table_of_times(timeless, name, file_format)
    spark.conf.set(TIME_TYPE, "true")
    opened = tamis.open(timeless.path(name))
    rows = opened.plan().read(spark)
    assert rows.schema.simpleString() == "struct<id:int,t:time(6),st:struct<t:time(6),k:int>,li:array<time(6)>>"
    assert by_id(rows, "cast(t as string)") == {id_: text_of(number) for id_, number in micros.items()}
    half = 36_000_500_000
    cases = {
        "t >= time'10:00:00.5'": lambda n: n is not None and n >= half,
        "t in ('10:00:00.5', '9:05:07') or t is null": lambda n: n in (None, half, 32_707_000_000),
    }
    for where, holds in cases.items():
        wanted = {id_: number for id_, number in micros.items() if holds(number)}
        found = opened.plan(where).read(spark, types={"time": "bigint"})
        assert by_id(found, "t") == wanted, where
        shown = opened.plan(where).read(spark, types={"time": "string"})
        assert by_id(shown, "t") == {id_: text_of(number) for id_, number in wanted.items()}, where
    plan = opened.plan("t < time'10:00:00.5'")
    told = "columns 't', 'st', 'li' are asked for"
    assert any(told in note for note in plan.stats.notes) is (file_format != "parquet")
    assert plan.stats.kept == (2 if file_format == "avro" else 1)
    nothing = opened.plan("t > time'23:59:59.999999'")
    assert nothing.read(spark).schema.simpleString() == rows.schema.simpleString()
    assert not nothing.read(spark).count()


MOMENTS = (
    *("1969-12-31T23:59:59.999999999", "1969-12-31T23:59:59.999998001", "1970-01-01T00:00:00"),
    *("2024-01-01T00:00:00.000001", "2024-01-01T00:00:00.000001001", "2024-01-01T00:00:00.000001999"),
    *("2024-01-01T00:00:00.000002", "1700-01-01T00:00:00.000000001", "2262-04-11T23:47:16.854775807"),
)


@pytest.mark.parametrize("file_format", FORMATS)
def test_nanoseconds_are_read_to_the_microsecond_on_request(timeless: Warehouse, file_format: str) -> None:
    """Of two the earlier, before 1970 as well. A condition compares what is read: no file with such a row is dropped.

    A delete by value compares what was written, to the nanosecond.
    """
    spark, java, name = timeless.spark, Java(timeless.spark), f"nanos_{file_format}"
    wall, zoned = java.types.TimestampNanoType.withoutZone(), java.types.TimestampNanoType.withZone()
    fields = [
        java.field(1, "id", java.types.IntegerType.get()),
        java.field(2, "at", wall),
        java.field(3, "tz", zoned),
        java.field(4, "li", java.types.ListType.ofOptional(5, zoned)),
    ]
    java_table(timeless, name, fields, write_format_default=file_format)
    rows = []
    for id_, text in enumerate(MOMENTS):
        at, tz = value(java, text), value(java, f"{text}Z")
        rows.append({"id": id_, "at": at, "tz": tz, "li": [tz, None]})
    for part in (rows[:4], rows[4:5], rows[5:]):
        write_rows(timeless, name, part, file_format)
    delete_rows(timeless, name, [{"at": value(java, MOMENTS[3])}], refresh=False)
    every = list(java_rows(timeless, name))
    micros = {row.getField("id"): (nanos_of(java, row.getField("at")) or 0) // 1000 for row in every}
    assert sorted(micros) == [0, 1, 2, 4, 5, 6, 7, 8]
    opened = tamis.open(timeless.path(name))
    with pytest.raises(UnreadableColumnError, match=r"'at' of type timestamp_ns.*types=\{'timestamp_ns': 'time"):
        opened.plan().read(spark)
    types = {"timestamp_ns": "timestamp_ntz", "timestamptz_ns": "timestamp"}
    shown = opened.plan().read(spark, types=types)
    assert shown.schema.simpleString() == "struct<id:int,at:timestamp_ntz,tz:timestamp,li:array<timestamp>>"
    assert by_id(shown, "unix_micros(cast(at as timestamp))") == micros
    assert by_id(shown, "unix_micros(tz)") == by_id(shown, "unix_micros(li[0])") == micros
    mark = 1_704_067_200_000_001
    cases = {"=": mark.__eq__, ">": mark.__lt__, "<=": mark.__ge__, "<": mark.__gt__, "!=": mark.__ne__}
    for sign, holds in cases.items():
        where = f"at {sign} timestamp_ntz'2024-01-01 00:00:00.000001' and tz {sign} '2024-01-01 00:00:00.000001'"
        found = opened.plan(where, spark=spark).read(spark, types=types)
        wanted = {id_: number for id_, number in micros.items() if holds(number)}
        assert by_id(found, "unix_micros(tz)") == wanted, sign
    if file_format != "avro":
        assert opened.plan("at = timestamp_ntz'2024-01-01 00:00:00.000003'").stats.kept == 1
        assert opened.plan("at = timestamp_ntz'2024-01-01 00:00:00.000001'").stats.kept == 3
