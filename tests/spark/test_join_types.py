"""Joins whose keys are of every type that can be a partition source, under every transform."""

from __future__ import annotations

import datetime as dt
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyiceberg import types as it
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table as Made
from pyiceberg.transforms import parse_transform

from tamis.table import JoinPlan
from tests.making.manifests import create
from tests.spark.test_join import FACTS, ZONE, bag, facts, opened, same

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class Source:
    """A column type, values of it in ascending order, and the transforms that partition by it."""

    iceberg: it.IcebergType
    arrow: pa.DataType
    values: Sequence[Any]
    transforms: Sequence[str]
    keys: Sequence[int] = (1, 8)
    """Which of the values are on the other side."""


def moments(zone: dt.tzinfo | None) -> list[dt.datetime]:
    """Ten times: before 1970, at its start, a leap day, and the hours around a change to summer time."""
    texts = ["1899-12-31 23:59:59.999999", "1969-12-31 23:59:59.999999", "1970-01-01", "1999-12-31 23", "2024-02-29"]
    texts += ["2024-03-31 00:30", "2024-03-31 01:30", "2024-03-31 02:30", "2024-10-27 00:30", "2024-10-27 01:30"]
    return [dt.datetime.fromisoformat(text).replace(tzinfo=zone) for text in texts]


DATES = (
    [one.date() for one in moments(None)[:6]] + [dt.date(2024, 4, day) for day in (1, 2, 3)] + [dt.date(2025, 1, 1)]
)
TIMES = ("identity", "year", "month", "day", "hour", "bucket[16]")
SOURCES: Mapping[str, Source] = {
    "boolean": Source(it.BooleanType(), pa.bool_(), [False] * 5 + [True] * 5, ("identity",), keys=(8,)),
    "int": Source(
        it.IntegerType(),
        pa.int32(),
        [-(2**31) + 8, -11, -10, -1, 0, 1, 9, 10, 300, 2**31 - 1],
        ("identity", "bucket[16]", "truncate[10]"),
    ),
    "long": Source(
        it.LongType(),
        pa.int64(),
        [-(2**62), -11, -10, -1, 0, 1, 9, 10, 300, 2**62],
        ("identity", "bucket[16]", "truncate[10]"),
    ),
    "decimal": Source(
        it.DecimalType(20, 2),
        pa.decimal128(20, 2),
        [Decimal(n) / 100 for n in (-(10**17), -1100, -1001, -1, 0, 1, 1000, 1001, 5000, 10**17)],
        ("identity", "bucket[16]", "truncate[1000]"),
    ),
    "float": Source(
        it.FloatType(), pa.float32(), [-1.5, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0], ("identity",)
    ),
    "double": Source(
        it.DoubleType(), pa.float64(), [-1.5, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0], ("identity",)
    ),
    "string": Source(
        it.StringType(),
        pa.string(),
        ["", "a", "ab", "abc", "b", "ba", "č", "čaj", "zebra", "😀x"],
        ("identity", "bucket[16]", "truncate[2]"),
    ),
    "binary": Source(
        it.BinaryType(),
        pa.binary(),
        [b"", b"\x00", b"\x00\x01", b"a", b"ab", b"abc", b"b", b"\x7f", b"\xfe\xff", b"\xff\xff\xff"],
        ("identity", "bucket[16]", "truncate[2]"),
    ),
    "uuid": Source(
        it.UUIDType(),
        pa.binary(16),
        [uuid.UUID(int=n << 100).bytes for n in range(10)],
        ("identity", "bucket[16]"),
    ),
    "date": Source(it.DateType(), pa.date32(), DATES, ("identity", "year", "month", "day", "bucket[16]")),
    "timestamp": Source(it.TimestampType(), pa.timestamp("us"), moments(None), TIMES),
    "timestamptz": Source(it.TimestamptzType(), pa.timestamp("us", "UTC"), moments(dt.UTC), TIMES),
}


@pytest.fixture(params=["UTC", "America/New_York"])
def zone(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    """The session in a zone, and in one far from UTC: partitions are in UTC whatever it is."""
    before = spark.conf.get(ZONE)
    spark.conf.set(ZONE, request.param)
    yield request.param
    spark.conf.set(ZONE, before)


def partitioned(folder: Path, source: Source, *transforms: str) -> tuple[Made, pa.Table]:
    """Each value in two rows of a spec and NULL in one, without statistics: partitions alone can prune."""
    schema = Schema(it.NestedField(1, "k", source.iceberg), it.NestedField(2, "n", it.IntegerType()))
    made = create(folder, schema, PartitionSpec())
    with made.transaction() as change:
        change.set_properties({"write.metadata.metrics.default": "none"})
    values = [*source.values, *source.values, None]
    tables = []
    for place, transform in enumerate(transforms):
        with made.update_spec() as update:
            if place:
                update.remove_field(f"p{place - 1}")
            update.add_field("k", parse_transform(transform), f"p{place}")
        numbers = pa.array(range(100 * place, 100 * place + len(values)), pa.int32())
        tables.append(pa.table({"k": pa.array(values, source.arrow), "n": numbers}))
        made.append(tables[-1])
    return made, pa.concat_tables(tables)


def sent(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """The rows in Spark: times without zone as such, uuids as text, as Spark reads them from a table."""
    key = rows["k"]
    if key.type == pa.binary(16):
        key = pa.array([None if value is None else str(uuid.UUID(bytes=value)) for value in key.to_pylist()])
    found = rows.set_column(0, "k", key)
    schema = spark.createDataFrame(found.slice(0, 0)).schema.simpleString().removeprefix("struct<").removesuffix(">")
    if key.type == pa.timestamp("us"):
        schema = schema.replace("k:timestamp", "k:timestamp_ntz")
    return spark.createDataFrame(found, schema.replace(":", " "))


@pytest.mark.parametrize("kind", SOURCES)
def test_keys_prune_by_the_partitions_of_every_type_and_transform(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    """A spec for each transform: every one of them alone has to prune."""
    source = SOURCES[kind]
    made, rows = partitioned(tmp_path, source, *source.transforms)
    wanted = [source.values[place] for place in source.keys]
    other, full = sent(spark, pa.table({"k": pa.array([*wanted, None], source.arrow)})), sent(spark, rows)
    plan = opened(made).plan_join(other, "k")
    same(plan.read(), full.join(other, "k"))
    (found,) = plan.plan.stats.runtime_filters
    assert found.idle is None
    assert found.files == plan.plan.stats.files - plan.plan.stats.kept
    assert found.dropped["stats"] == 0
    for spec in plan.plan.stats.specs:
        assert spec.dropped["runtime"] > 0, source.transforms[(spec.spec_id or 0) - 1]
    assert bool(found.dropped["bucket"]) == any(one.startswith("bucket") for one in source.transforms)
    nulls = Counter(repr(row) for row in full.where("k is null").collect())
    assert bag(opened(made).join(other, "k", null_safe=True)) == bag(full.join(other, "k")) + nulls


def test_nan_and_minus_zero_join_as_in_spark(spark: SparkSession, tmp_path: Path) -> None:
    """NaN equals NaN, and -0.0 equals 0.0, though bounds tell nothing of the one and may have the other."""
    made = create(tmp_path, FACTS, PartitionSpec())
    for place, values in enumerate(([-0.0, 0.0, 1.0], [2.0, float("nan")], [5.0, 6.0])):
        made.append(facts(10 * place, len(values)).set_column(3, "v", pa.array(values)))
    other = spark.sql("select explode(array(double('NaN'), 0.0D)) as v")
    plan = opened(made).plan_join(other, "v")
    found = bag(plan.read())
    assert found == bag(spark.createDataFrame(made.scan().to_arrow()).join(other, "v"))
    assert found.total() == 3


@pytest.mark.parametrize("kind", ["timestamp", "timestamptz", "date"])
def test_session_s_zone_moves_no_partition(spark: SparkSession, tmp_path: Path, kind: str, zone: str) -> None:
    """By day and by bucket, which see the instant or the time as it is written, never the session's clock."""
    source = SOURCES[kind]
    for transform in ("day", "bucket[16]"):
        made, rows = partitioned(tmp_path / transform, source, transform)
        keys = pa.table({"k": pa.array([source.values[place] for place in (1, 6, 8)], source.arrow)})
        other = sent(spark, keys)
        plan = opened(made).plan_join(other, "k")
        same(plan.read(), sent(spark, rows).join(other, "k"))
        assert 0 < plan.plan.stats.kept < plan.plan.stats.files, zone


def test_too_many_keys_prune_identity_partitions_by_the_bloom_filter(spark: SparkSession, tmp_path: Path) -> None:
    """The range holds all of them; only a look-up tells them apart."""
    made, rows = partitioned(tmp_path, SOURCES["int"], "identity")
    wanted = [-10, 0, 9, 300]
    other = spark.createDataFrame(pa.table({"k": pa.array(wanted * 20, pa.int32())})).repartition(3)
    plan: JoinPlan = opened(made).plan_join(other, "k", max_keys=3)
    same(plan.read(), spark.createDataFrame(rows).join(other, "k"))
    assert plan.plan.stats.kept == len(wanted)
    assert "bloom filter" in plan.explain()
