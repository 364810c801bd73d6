"""A table joined with a DataFrame: the rows of Spark's own join, from fewer files."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyiceberg import types as it
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table as Made
from pyiceberg.transforms import parse_transform

import tamis
from tamis.errors import BindError, FilterInputError, JoinError
from tamis.sieve.join.runtime import RuntimeFilter
from tamis.spark import read
from tamis.spark.keys import looked_at
from tamis.spark.session import with_fewer_tasks
from tamis.table import Table
from tests.making.manifests import create

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from tamis.formats.scan import FileFormat
    from tamis.spark.relation import Relation
    from tamis.spark.stores import Reach

ZONE = "spark.sql.session.timeZone"
HOWS = ("inner", "left", "right", "full", "semi", "anti")
PRUNES = {"inner", "right", "semi"}


def bag(df: DataFrame) -> Counter[str]:
    """Rows, however often and in whatever order; NaN is itself, as a text."""
    return Counter(map(repr, df.collect()))


def same(found: DataFrame, expected: DataFrame) -> None:
    """The same columns, and the same rows as often."""
    assert found.columns == expected.columns
    assert bag(found) == bag(expected)


def opened(made: Made) -> Table:
    """The table as tamis reads it."""
    return tamis.open(made.metadata_location, cache=False)


# -- a small fact table: a file for each ten ids, evolved from nothing to bucket(id) --------------------------------


FACTS = Schema(
    it.NestedField(1, "id", it.LongType()),
    it.NestedField(2, "Region", it.StringType()),
    it.NestedField(3, "ts", it.TimestamptzType()),
    it.NestedField(4, "v", it.DoubleType()),
)
START = dt.datetime(2024, 10, 27, tzinfo=dt.UTC)
"""Summer time ends in Europe on this day."""


def facts(first: int, count: int) -> pa.Table:
    """Ids that ascend, each seventh NULL; an hour apart."""
    ids = range(first, first + count)
    return pa.table(
        {
            "id": pa.array([None if n % 7 == 6 else n for n in ids], pa.int64()),
            "Region": pa.array([("eu", "us", None)[n % 3] for n in ids]),
            "ts": pa.array([START + dt.timedelta(hours=n) for n in ids], pa.timestamp("us", "UTC")),
            "v": pa.array([n / 4 for n in ids], pa.float64()),
        }
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Six files sorted by id, then buckets of id."""
    table = create(tmp_path_factory.mktemp("facts"), FACTS, PartitionSpec())
    for first in range(0, 60, 10):
        table.append(facts(first, 10))
    with table.update_spec() as update:
        update.add_field("id", parse_transform("bucket[8]"), "id_bucket")
    table.append(facts(60, 40))
    return table


@pytest.fixture(scope="module")
def table(made: Made) -> Table:
    return opened(made)


@pytest.fixture(scope="module")
def full(spark: SparkSession, made: Made) -> DataFrame:
    """All rows of the table, as PyIceberg reads them."""
    return spark.createDataFrame(made.scan().to_arrow()).cache()


@pytest.fixture(scope="module")
def dim(spark: SparkSession) -> DataFrame:
    """Three ids that are there, one of them twice, one that is not, and NULL."""
    rows = [(3, "three"), (3, "drei"), (41, "x"), (65, None), (1000, "nobody"), (None, "null")]
    return spark.createDataFrame(rows, "id long, name string")


@pytest.mark.parametrize("null_safe", [False, True])
@pytest.mark.parametrize("how", HOWS)
def test_every_join_gives_the_rows_and_columns_of_spark_s_own(
    table: Table, full: DataFrame, dim: DataFrame, how: str, null_safe: bool
) -> None:
    """Rows of a preserved side are never lost, and the others' files are not read."""
    plan = table.plan_join(dim, "id", how=how, null_safe=null_safe)
    same(plan.read(), using(full, dim, how) if null_safe else full.join(dim, "id", how))
    files = plan.plan.stats.files
    if how in PRUNES:
        # Without NULL: the files of 0..9 and 40..49, and two buckets. Nearly every file of the first spec holds NULL.
        assert plan.plan.stats.kept < files
        assert null_safe or plan.plan.stats.kept <= 4
        assert plan.keys is not None
    else:
        assert plan.plan.stats.kept == files
        assert plan.keys is None
        assert plan.other is dim
        assert f"a {how} join keeps rows of the table" in plan.explain()


def using(left: DataFrame, right: DataFrame, how: str) -> DataFrame:
    """What `join using (id)` would give if it compared by <=>."""
    left.createOrReplaceTempView("tamis_left")
    right.createOrReplaceTempView("tamis_right")
    key = {"right": "r.id", "full": "coalesce(l.id, r.id) as id"}.get(how, "l.id")
    mine = f"{key}, l.Region, l.ts, l.v"
    columns = mine if how in {"semi", "anti"} else f"{mine}, r.name"
    return left.sparkSession.sql(f"select {columns} from tamis_left l {how} join tamis_right r on l.id <=> r.id")  # noqa: S608 - ours


@pytest.mark.parametrize("how", HOWS)
def test_mapping_keeps_both_columns(table: Table, full: DataFrame, dim: DataFrame, how: str) -> None:
    other = dim.withColumnRenamed("id", "customer.id")
    expected = full.join(other, full["id"] == other["`customer.id`"], how)
    same(table.join(other, {"id": "`customer.id`"}, how=how), expected)


@pytest.mark.parametrize(
    ("spelt", "meant"),
    [
        ("leftouter", "left"),
        ("LEFT_OUTER", "left"),
        ("right_outer", "right"),
        ("outer", "full"),
        ("full_outer", "full"),
        ("leftsemi", "semi"),
        ("left_semi", "semi"),
        ("left_anti", "anti"),
    ],
)
def test_joins_are_spelt_as_in_spark(table: Table, full: DataFrame, dim: DataFrame, spelt: str, meant: str) -> None:
    found = table.plan_join(dim, "id", how=spelt)
    assert found.on.how == meant
    assert found.read().columns == full.join(dim, "id", spelt).columns


def test_where_concerns_the_table_and_adds_to_the_keys(table: Table, full: DataFrame, dim: DataFrame) -> None:
    plan = table.plan_join(dim, "id", where="id > 9 and Region = 'us'", how="right")
    same(plan.read(), full.where("id > 9 and Region = 'us'").join(dim, "id", "right"))
    assert plan.plan.stats.kept < table.plan_join(dim, "id").plan.stats.kept


@pytest.mark.parametrize("null_safe", [False, True])
def test_capitals_do_not_matter_unless_the_session_says_so(
    spark: SparkSession, table: Table, full: DataFrame, dim: DataFrame, null_safe: bool
) -> None:
    other = dim.where("id is not null")
    same(table.join(other, "ID", null_safe=null_safe), full.join(other, "ID"))
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(BindError, match="ID"):
            table.join(other, "ID", null_safe=null_safe)
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_references_to_the_other_side_still_mean_it(table: Table, dim: DataFrame) -> None:
    """`df["k"]` and aliases are how Spark's users tell the sides of a join apart: pinning must not break them."""
    name = next(one for one in dim.columns if one != "id")
    joined = table.join(dim, "id")
    assert bag(joined.select(dim[name])) == bag(joined.select(name))
    both = table.join(dim, {"id": "id"})
    assert len(both.columns) == len(joined.columns) + 1
    assert both.drop(dim["id"]).columns == [one.name for one in table.schema.columns] + [name]
    aliased = table.join(dim.alias("d"), "id").select(f"d.{name}")
    assert bag(aliased) == bag(joined.select(name))


def test_long_texts_of_the_other_side_do_not_come_to_the_driver(
    table: Table, full: DataFrame, spark: SparkSession
) -> None:
    """A few thousand rows of megabytes each would end the driver; their keys still prune."""
    other = spark.sql("select cast(3 as bigint) as id, repeat('x', 100000) as text, 'y' as short")
    side = looked_at(other)
    assert (side.rows, side.whole) == (None, False)
    plan = table.plan_join(other, "id")
    assert plan.plan.stats.kept < plan.plan.stats.files
    same(plan.read(), full.join(other, "id"))


def test_stream_joins_without_pruning(table: Table, spark: SparkSession) -> None:
    """A stream has no last key: its rows are joined with all of the table, and the plan says so."""
    stream = spark.readStream.format("rate").load().selectExpr("value as id")
    plan = table.plan_join(stream, "id")
    assert plan.keys is None
    assert any("a stream has no last key" in note for note in plan.plan.stats.notes)
    assert plan.read().isStreaming


def test_more_keys_than_come_to_the_driver_are_still_listed(
    table: Table, full: DataFrame, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys with gaps prune files that their range does not: up to max_keys they are worth listing."""
    monkeypatch.setattr("tamis.spark.keys.MAX_LOCAL_ROWS", 2)
    few = spark.createDataFrame([(n,) for n in (1, 2, 3, 55)], "id long")
    plan = table.plan_join(few, "id")
    assert plan.keys is not None
    assert plan.keys.keys == 4
    same(plan.read(), full.join(few, "id"))
    many = spark.range(0, 1000)
    plan = table.plan_join(many, "id", max_keys=10)
    assert plan.keys is None
    assert any("no join keys were collected" in note for note in plan.plan.stats.notes)
    same(plan.read(), full.join(many, "id"))


def test_several_columns_prune_as_tuples(table: Table, full: DataFrame, spark: SparkSession) -> None:
    """3 is in eu and 41 is not in us: the second pair matches nothing, and its file goes by its bounds' tuple."""
    other = spark.createDataFrame([(3, "eu", 1), (7, "nowhere", 2), (45, None, 3)], "id int, region string, n int")
    plan = table.plan_join(other, ["id", "region"])
    same(plan.read(), full.join(other, ["id", "region"]))
    assert plan.plan.stats.kept == 1


def test_several_filters_combine(table: Table, full: DataFrame, dim: DataFrame, spark: SparkSession) -> None:
    """A star: the keys of a second join prune the scan of the first."""
    days = spark.sql("select timestamp'2024-10-27 03:00:00Z' as ts, 'd' as day")
    more = RuntimeFilter.from_dataframe(days, "ts")
    plan = table.plan_join(dim, "id", runtime_filters=[more])
    same(plan.read().join(more.dataframe, "ts"), full.join(dim, "id").join(days, "ts"))
    assert plan.plan.stats.kept == 1
    assert [one.keys for one in plan.plan.stats.runtime_filters] == [1, 4]
    assert all(one.files for one in plan.plan.stats.runtime_filters)


def test_empty_build_side_reads_no_file(table: Table, full: DataFrame, dim: DataFrame) -> None:
    nobody = dim.where("name = 'none of these'")
    for how in HOWS:
        plan = table.plan_join(nobody, "id", how=how)
        same(plan.read(), full.join(nobody, "id", how))
        assert (plan.plan.stats.kept == 0) == (how in PRUNES)


def test_build_side_of_nulls_alone_reads_no_file_by_equality(table: Table, full: DataFrame, dim: DataFrame) -> None:
    nulls = dim.where("id is null")
    plan = table.plan_join(nulls, "id", how="right")
    same(plan.read(), full.join(nulls, "id", "right"))
    assert plan.plan.stats.kept == 0


def test_build_side_too_large_to_list_prunes_by_its_range(table: Table, full: DataFrame, spark: SparkSession) -> None:
    other = spark.range(20, 38).withColumnRenamed("id", "n")
    plan = table.plan_join(other, {"id": "n"}, max_keys=5)
    same(plan.read(), full.join(other, full["id"] == other["n"]))
    (found,) = plan.plan.stats.runtime_filters
    assert not found.exact
    assert found.dropped["stats"] >= 4
    assert "about 18 keys" in " ".join(plan.explain().split())


def test_skewed_build_side_gives_every_pair(table: Table, full: DataFrame, spark: SparkSession) -> None:
    """One key a thousand times: the join multiplies, the filter does not."""
    other = spark.range(1000).selectExpr("case when id < 999 then 3 else 65 end as id", "id as n")
    plan = table.plan_join(other, "id", max_keys=10)
    same(plan.read(), full.join(other, "id"))
    assert plan.keys is not None
    assert plan.keys.keys == 2
    assert plan.plan.stats.kept <= 3


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York"])
def test_hour_that_comes_twice_is_two_instants(spark: SparkSession, table: Table, made: Made, zone: str) -> None:
    """02:30 on the last Sunday of October is both 00:30 and 01:30 UTC in Berlin."""
    before = spark.conf.get(ZONE)
    spark.conf.set(ZONE, zone)
    try:
        full = spark.createDataFrame(made.scan().to_arrow())
        other = spark.sql("select timestamp_seconds(1729990800 + 3600 * id) as ts, id as n from range(3)")
        plan = table.plan_join(other, "ts", where="ts >= '2024-10-26 12:00:00'")
        same(plan.read(), full.where("ts >= '2024-10-26 12:00:00'").join(other, "ts"))
        assert plan.plan.stats.kept == 1
    finally:
        spark.conf.set(ZONE, before)


def test_joined_rows_stay_the_same_when_both_sides_change(spark: SparkSession, tmp_path: Path) -> None:
    """The plan is of a snapshot, and the build side is pinned: read twice, after a change, in a union with itself."""
    made = create(tmp_path / "t", FACTS, PartitionSpec())
    made.append(facts(0, 10))
    spark.range(0, 5).write.parquet(str(tmp_path / "dim"))
    other = spark.read.parquet(str(tmp_path / "dim"))
    plan = opened(made).plan_join(other, "id")
    found = plan.read()
    first = bag(found)
    made.append(facts(0, 10))
    spark.range(0, 9).write.mode("overwrite").parquet(str(tmp_path / "dim"))
    assert bag(found) == bag(plan.read()) == first
    assert bag(found.union(plan.read())) == first + first


# -- keys that cannot prune -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("cast(id as double)", "Spark rounds bigint values"),
        ("cast(id as string)", "do not compare exactly"),
        ("cast(id as string) collate utf8_lcase", "collation"),
    ],
)
def test_keys_that_cannot_prune_are_not_collected(
    table: Table, full: DataFrame, dim: DataFrame, key: str, said: str
) -> None:
    """Found out from the types, before any job; the join is as Spark does it."""
    other = dim.selectExpr(f"{key} as k", "name")
    plan = table.plan_join(other, {"id": "k"})
    assert plan.keys is None
    explained = " ".join(plan.explain().split())
    assert "no join keys were collected" in explained
    assert said in explained
    same(plan.read(), full.join(other, full["id"] == other["k"]))


def test_text_that_is_no_text_prunes_nothing(table: Table, full: DataFrame, spark: SparkSession) -> None:
    other = spark.sql("select cast(X'ff' as string) as Region union all select 'eu'")
    plan = table.plan_join(other, "Region")
    assert plan.keys is None
    assert "not all UTF-8" in plan.explain()
    same(plan.read(), full.join(other, "Region"))


def test_filter_without_facts_says_that_it_is_idle(spark: SparkSession, tmp_path: Path) -> None:
    """Without statistics and partitions on the column nobody can tell."""
    bare = create(tmp_path, FACTS, PartitionSpec())
    with bare.transaction() as change:
        change.set_properties({"write.metadata.metrics.default": "none"})
    bare.append(facts(0, 10))
    plan = opened(bare).plan_join(spark.range(3), "id")
    assert plan.plan.stats.runtime_filters[0].idle == "no bounds for id in these files"
    assert "cannot prune: no bounds for id" in " ".join(plan.explain().split())
    same(plan.read(), spark.createDataFrame(bare.scan().to_arrow()).join(spark.range(3), "id"))


def test_misuse_is_told(table: Table, dim: DataFrame) -> None:
    with pytest.raises(JoinError, match=r"how='cross': a cross join has no keys"):
        table.join(dim, "id", how="cross")
    with pytest.raises(JoinError, match=r"how='sideways': Spark has no such join"):
        table.join(dim, "id", how="sideways")
    with pytest.raises(BindError, match="nope"):
        table.join(dim, {"nope": "id"})
    with pytest.raises(FilterInputError, match=r"no such key columns.*nope"):
        table.join(dim, {"id": "nope"})
    with pytest.raises(FilterInputError, match="at least one column"):
        table.join(dim, [])
    with pytest.raises(TypeError, match="max_key"):
        table.join(dim, "id", max_key=3)  # type: ignore[call-arg] # the mistake


def test_readers_of_files_are_told_the_keys_where_no_row_is_kept_without_a_match(
    table: Table, full: DataFrame, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files have statistics of their parts: a reader that knows the keys passes over most of a large file."""

    def pushed(other: DataFrame, how: str) -> str:
        found = table.join(other, "id", how=how)
        same(found, full.join(other, "id", how))
        capsys.readouterr()
        found.explain()
        said = capsys.readouterr().out
        return " ".join(line for line in said.splitlines() if "PushedFilters" in line)

    few = spark.range(3, 60, 4)  # 15 keys, of which readers take ten at a time
    assert "In(id, [43,47,51,55,59])" in pushed(few, "inner")
    assert "In(id, [" in pushed(few, "right")
    assert "In(id, [" not in pushed(few, "left")
    many = spark.range(3, 93).selectExpr("int(id) as id")
    assert "GreaterThanOrEqual(id,3)" in pushed(many, "semi")
    assert "LessThanOrEqual(id,92)" in pushed(many, "inner")


def test_small_side_of_many_files_is_looked_at_by_one_task(
    table: Table, full: DataFrame, spark: SparkSession, tmp_path: Path
) -> None:
    """A limit over several tasks is a shuffle and a job more; the session has its own settings back at once."""
    spark.range(0, 60, 6).repartition(3).write.parquet(str(tmp_path / "side"))
    few = spark.read.parquet(str(tmp_path / "side"))
    names = ("spark.sql.files.minPartitionNum", "spark.sql.files.maxPartitionBytes")
    before = [spark.conf.get(name, None) for name in names]

    def stages(work: Callable[[], object]) -> int:
        spark.sparkContext.setJobGroup("looking", "looking")
        tracker = spark.sparkContext.statusTracker()
        known = set(tracker.getJobIdsForGroup("looking"))
        work()
        jobs = [tracker.getJobInfo(job) for job in set(tracker.getJobIdsForGroup("looking")) - known]
        return sum(len(job.stageIds) for job in jobs if job is not None)

    assert stages(lambda: few.limit(20).toArrow()) > 1
    assert stages(lambda: looked_at(few)) == 1
    with with_fewer_tasks(spark), with_fewer_tasks(spark):
        assert spark.conf.get(names[0]) == "1"
    assert [spark.conf.get(name, None) for name in names] == before
    spark.conf.set(names[0], "7")
    same(table.join(few, "id"), full.join(few, "id"))
    assert spark.conf.get(names[0]) == "7"
    spark.conf.unset(names[0])


def test_readers_that_are_told_the_keys_ask_no_dictionaries(
    table: Table, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parquet's reader makes a set of all values of a dictionary for each key: it took longer than to read the rows.

    A condition of the user's own is another matter: a dictionary may tell that a text is nowhere in a part.
    """
    asked: list[str | None] = []
    listed = read.relation

    def noted(reach: Reach, kind: FileFormat, schema: StructType, paths: list[str], more: dict[str, str]) -> Relation:
        asked.append(more.get("parquet.filter.dictionary.enabled"))
        return listed(reach, kind, schema, paths, more)

    monkeypatch.setattr(read, "relation", noted)
    few = spark.range(3, 60, 4)
    table.join(few, "id")
    table.join(few, "id", how="left")
    table.join(few.selectExpr("'eu' as Region"), "Region")
    table.plan("id = 3").read(spark)
    assert asked == ["false", None, None, None]
