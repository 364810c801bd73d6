# ruff: noqa: S608 - SQL made of the tests' own names
"""What Spark makes of a read: what it pushes down and prunes, what it joins; reading again; paths; and what fails."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import tamis
from tamis.errors import (
    BindError,
    MissingFileError,
    SparkVersionError,
    TimeZoneError,
    UnreadableColumnError,
    UnreadableFileError,
    UnreadableMetadataError,
)
from tamis.spark import deletes
from tests.engines.conftest import CATALOG, Warehouse
from tests.engines.reading import METADATA, Java, bag, connector, delete_rows, java_table, make, same, tamis_rows
from tests.engines.truth import session_zone

pytestmark = pytest.mark.engine

FIELD_IDS = "spark.sql.parquet.fieldId.read.enabled"
ROWS = "insert into {{t}} select id, id % 2, 'v' || id, id * 1.5D from (select id::int as id from range({}, {}))"


def simple(warehouse: Warehouse, name: str, *more: str, version: int = 2) -> str:
    """Two files for each of two partitions: forty rows of id, p, s and f."""
    inserts = [ROWS.format(0, 20), ROWS.format(20, 40)]
    return make(warehouse, name, "id int, p int, s string, f double", *inserts, *more, partition="p", version=version)


def physical(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def optimized(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().optimizedPlan().toString())


# -- what reaches the reader ---------------------------------------------------------------------------------


def test_two_columns_are_read_where_two_are_selected(warehouse: Warehouse) -> None:
    """Pruning stays Spark's, also of what the filter alone needs and of columns that were renamed."""
    columns, rename = "id int, p int, s string, f double", "alter table {t} rename column s to t"
    make(warehouse, "pruned", columns, ROWS.format(0, 20), ROWS.format(20, 40), rename)
    text = physical(tamis_rows(warehouse, "pruned", "f > 20 and id % 2 >= 0").select("t"))
    assert re.findall("ReadSchema: struct<(.*?)>", text) == ["id:int,t:string,f:double"]
    assert "PushedFilters: [IsNotNull(f), IsNotNull(id), GreaterThan(f,20.0)]" in text
    assert re.findall("ReadSchema: struct<(.*?)>", physical(tamis_rows(warehouse, "pruned").select("f"))) == [
        "f:double"
    ]


def test_filters_that_users_add_reach_the_reader_as_well(warehouse: Warehouse) -> None:
    simple(warehouse, "added_filter")
    text = physical(tamis_rows(warehouse, "added_filter").where("id > 5 and s = 'v7'"))
    assert "GreaterThan(id,5)" in text
    assert "EqualTo(s,v7)" in text


def test_files_of_which_every_row_matches_are_not_filtered(warehouse: Warehouse) -> None:
    """Of four files two are cut by the condition; the others need no filter, and have none."""
    simple(warehouse, "whole")
    frame = tamis_rows(warehouse, "whole", "id >= 10")
    filters = re.findall(r"PushedFilters: \[(.*?)\]", physical(frame))
    assert sorted(filters) == ["", "IsNotNull(id), GreaterThanOrEqual(id,10)"]
    assert same(warehouse, "whole", "id >= 10") == 30


def test_files_without_deletes_join_nothing(warehouse: Warehouse) -> None:
    """One branch of the plan reads the files that have deletes, and joins; the other is a plain scan."""
    simple(warehouse, "some_deleted", "delete from {t} where id = 3 or id = 5")
    text = optimized(tamis_rows(warehouse, "some_deleted"))
    branches = [branch for branch in text.split("\n:- ") if branch.strip()]
    assert text.startswith("Union")
    assert text.count("Join LeftAnti") == 1
    assert physical(tamis_rows(warehouse, "some_deleted", "p = 0")).count("Join") == 0  # no file with deletes is left
    assert len(branches) >= 2
    assert same(warehouse, "some_deleted") == 38


@pytest.mark.parametrize("version", [2, 3])
def test_few_deletes_are_broadcast_and_many_are_not(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    """Many are left to Spark, which sees their size; the rows are the same."""
    name = simple(warehouse, f"many_{version}", "delete from {t} where id % 7 = 3", version=version)
    delete_rows(warehouse, name, [{"f": 15.0}], like="p=0")
    few = tamis_rows(warehouse, name)
    assert optimized(few).count("rightHint=(strategy=broadcast)") == optimized(few).count("Join")
    monkeypatch.setattr(deletes, "MOST_BROADCAST", 0)
    many = tamis_rows(warehouse, name)
    hinted = [line for line in optimized(many).splitlines() if "Join LeftAnti" in line and "broadcast" in line]
    assert hinted == []
    assert bag(many) == bag(few) == bag(connector(warehouse, name))


# -- reading again -------------------------------------------------------------------------------------------


def test_a_plan_may_be_read_again_united_and_joined_with_itself(warehouse: Warehouse) -> None:
    """A DataFrame is no one-way street: sources that keep state between uses gave wrong rows here."""
    simple(warehouse, "reused", "delete from {t} where id = 3")
    plan = tamis.open(warehouse.path("reused")).plan("id % 3 = 0")
    one, other = plan.read(warehouse.spark), plan.read(warehouse.spark)
    wanted = bag(connector(warehouse, "reused", "id % 3 = 0"))
    assert bag(one) == bag(other) == bag(one) == wanted
    assert bag(one.union(one)) == bag(one.union(other)) == wanted + wanted
    assert one.where("id < 10").union(one.where("id >= 30")).count() == 3 + 4
    assert one.join(one.select("id"), "id").count() == wanted.total()
    assert one.alias("a").join(other.alias("b"), "id").where("a.s = b.s").count() == wanted.total()


def test_a_plan_reads_what_it_planned_whatever_happens_to_the_table(warehouse: Warehouse) -> None:
    """Appends, deletes and compaction make new files; the plan's stay until somebody removes them."""
    name = simple(warehouse, "changed", "delete from {t} where id = 3")
    spark, table = warehouse.spark, f"ice.db.{name}"
    plan = tamis.open(warehouse.path(name)).plan("id < 30")
    frame, wanted = plan.read(spark), bag(connector(warehouse, name, "id < 30"))
    spark.sql(ROWS.format(0, 5).replace("{t}", table))
    spark.sql(f"delete from {table} where id between 5 and 9")
    delete_rows(warehouse, name, [{"s": "v12"}], like="p=0")
    spark.sql(f"call ice.system.rewrite_data_files(table => 'db.{name}', options => map('rewrite-all', 'true'))")
    spark.sql(f"alter table {table} rename column s to t")
    assert bag(frame) == bag(plan.read(spark)) == wanted
    assert same(warehouse, name, "id < 30") == 23 + 5


def test_a_plan_without_files_has_the_columns(warehouse: Warehouse) -> None:
    """No row, and the same names and types as with rows; of a table that never had one, too."""
    simple(warehouse, "nothing")
    empty = tamis_rows(warehouse, "nothing", "id > 1000", metadata_columns=METADATA)
    full = tamis_rows(warehouse, "nothing", metadata_columns=METADATA)
    assert empty.collect() == []
    assert empty.schema.simpleString() == full.schema.simpleString()
    make(warehouse, "newborn", "id int, s struct<a: date>")
    assert tamis_rows(warehouse, "newborn", "s.a is null").schema.simpleString() == "struct<id:int,s:struct<a:date>>"
    assert tamis_rows(warehouse, "newborn", metadata_columns=["_partition"]).collect() == []


def test_the_sessions_settings_and_other_reads_stay_as_they_are(warehouse: Warehouse, tmp_path: Path) -> None:
    """One setting is set for good, which concerns schemas with field ids alone; others' Parquet reads the same."""
    spark = warehouse.spark
    simple(warehouse, "settings", "delete from {t} where id = 3")
    other = str(tmp_path / "other")
    spark.range(5).selectExpr("id", "id as value").write.parquet(other)
    before, rows = dict(spark.conf.getAll), bag(spark.read.parquet(other))
    assert same(warehouse, "settings") == 39
    after = dict(spark.conf.getAll)
    assert {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)} <= {FIELD_IDS}
    assert after[FIELD_IDS] == "true"
    assert bag(spark.read.parquet(other)) == rows
    renamed = spark.read.schema("value bigint, missing int").parquet(other)
    assert sorted(row.value for row in renamed.collect()) == [0, 1, 2, 3, 4]


# -- paths ---------------------------------------------------------------------------------------------------


def test_paths_may_have_any_character(warehouse: Warehouse) -> None:
    """Globs, escapes, and what looks like a partition: in the folder, in partitions, in names of delete files."""
    spark = warehouse.spark
    folder = warehouse.folder / "a b%20c+d[1]{x}*é#&=;ü 😀" / "p=5"
    for key, value in {"": CATALOG, ".type": "hadoop", ".warehouse": str(folder)}.items():
        spark.conf.set(f"spark.sql.catalog.odd{key}", value)
    options = "'format-version' = '2', 'write.delete.mode' = 'merge-on-read'"
    spark.sql(f"create table odd.db.t (id int, p string) using iceberg partitioned by (p) tblproperties ({options})")
    odd = ["a b", "x/y", "1%", "[z]", "*", "q?", "ü#", "k=v", "a+b", "{c,d}"]
    values = ", ".join(f"({number}, '{text}'), ({number + 100}, '{text}')" for number, text in enumerate(odd))
    spark.sql(f"insert into odd.db.t values {values}, (50, null), (51, ''), (52, '\\\\')")
    spark.sql("delete from odd.db.t where id in (3, 104, 5)")
    table = tamis.open(str(folder / "db" / "t"))
    ours = table.plan().read(spark, metadata_columns=METADATA)
    assert bag(ours) == bag(spark.table("odd.db.t").select("id", "p", *METADATA))
    assert table.plan("p = '[z]' and id % 2 >= 0").read(spark).count() == 1
    lost = table.plan("p = '[z]'").files["path"][0].as_py()
    Path(lost).unlink()
    with pytest.raises(MissingFileError) as caught:
        table.plan().read(spark)
    assert str(caught.value.path).endswith(lost)  # as it is called, without the escapes that keep a glob from it


# -- errors --------------------------------------------------------------------------------------------------


def data_files(warehouse: Warehouse, name: str) -> list[Path]:
    return [Path(path) for path in tamis.open(warehouse.path(name)).plan().files["path"].to_pylist()]


def test_a_file_that_is_gone_is_named(warehouse: Warehouse) -> None:
    """Data, deletes by position, deletes by value, vectors: a file that is not there is never read as empty."""
    simple(warehouse, "gone")
    lost = data_files(warehouse, "gone")[2]
    lost.unlink()
    with pytest.raises(MissingFileError, match=re.escape(lost.name)) as caught:
        tamis_rows(warehouse, "gone")
    assert str(caught.value.path).endswith(str(lost))
    simple(warehouse, "gone_positions", "delete from {t} where id in (1, 4)")
    for path in Path(warehouse.path("gone_positions")).rglob("*-deletes.parquet"):
        path.unlink()
    with pytest.raises(MissingFileError, match=r"-deletes\.parquet"):
        tamis_rows(warehouse, "gone_positions")
    simple(warehouse, "gone_vectors", "delete from {t} where id in (1, 4)", version=3)
    for path in Path(warehouse.path("gone_vectors")).rglob("*.puffin"):
        path.unlink()
    with pytest.raises((MissingFileError, UnreadableMetadataError), match=r"\.puffin"):
        tamis_rows(warehouse, "gone_vectors")


def test_a_damaged_vector_is_named_with_its_place(warehouse: Warehouse) -> None:
    """Rows that were deleted must not come back because of a flipped bit."""
    simple(warehouse, "damaged", "delete from {t} where id in (1, 3, 7)", version=3)
    (path,) = Path(warehouse.path("damaged")).rglob("*.puffin")
    raw = bytearray(path.read_bytes())
    raw[4 + 4 + 4 + 8] ^= 1  # after the file's magic: length, magic and bitmap of the first vector
    path.write_bytes(raw)
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    with pytest.raises(UnreadableMetadataError, match=re.escape(path.name)):
        tamis_rows(warehouse, "damaged").collect()


def test_columns_that_spark_has_no_type_for_are_named_and_can_be_left_out(warehouse: Warehouse) -> None:
    """By the column's own name, inside a struct too; a filter that needs one says the same."""
    java = Java(warehouse.spark)
    types = java.types
    java_table(
        warehouse,
        "typeless",
        [
            java.field(1, "id", types.IntegerType.get()),
            java.field(2, "tm", types.TimeType.get()),
            java.field(3, "st", java.struct(java.field(5, "ns", types.TimestampNanoType.withoutZone()))),
            java.field(4, "v", types.IntegerType.get()),
        ],
    )
    for columns, named in ((None, "tm"), (["id", "st"], "st.ns")):
        with pytest.raises(UnreadableColumnError, match=re.escape(f"'{named}'")) as caught:
            tamis_rows(warehouse, "typeless", columns=columns)
        assert caught.value.column == named
    assert tamis_rows(warehouse, "typeless", columns=["v", "id"]).columns == ["v", "id"]


def test_unknown_columns_are_named_with_those_that_there_are(warehouse: Warehouse) -> None:
    simple(warehouse, "unknown")
    with pytest.raises(BindError, match=r"no column 'nope'.*id, p, s, f"):
        tamis_rows(warehouse, "unknown", columns=["id", "nope"])
    with pytest.raises(BindError, match=r"no metadata column '_nope'.*_spec_id"):
        tamis_rows(warehouse, "unknown", metadata_columns=["_nope"])
    assert tamis_rows(warehouse, "unknown", columns=["S", "ID"]).columns == ["s", "id"]


def test_a_plan_for_another_time_zone_is_not_read(warehouse: Warehouse, evolved: Callable[[int], str]) -> None:
    """Files that match in the session's zone may have been pruned; a condition without times has no zone."""
    table = tamis.open(warehouse.path(evolved(2)))
    with session_zone(warehouse.spark, "Asia/Tokyo"):
        with pytest.raises(TimeZoneError, match=r"UTC.*Asia/Tokyo") as caught:
            table.plan("ts > timestamp'1970-01-05 00:00:00'").read(warehouse.spark)
        assert (caught.value.plan, caught.value.session) == ("UTC", "Asia/Tokyo")
        assert table.plan("id = 100").read(warehouse.spark, columns=["id"]).count() == 1


def test_an_old_spark_is_told_what_is_needed(warehouse: Warehouse, evolved: Callable[[int], str]) -> None:
    """Before anything is asked of it."""

    class Old(SparkSession):
        version = "3.5.4"

        def __init__(self) -> None:
            """Without a JVM: nothing but its version is asked for."""

    old = Old()
    with pytest.raises(SparkVersionError, match=r"Spark 3\.5\.4.*4\.1"):
        tamis.open(warehouse.path(evolved(2))).plan().read(old)


def test_files_with_hidden_names_are_refused(warehouse: Warehouse) -> None:
    """Spark leaves them out without a word: their rows would be lost."""
    simple(warehouse, "hidden")
    java = Java(warehouse.spark)
    loaded, file = java.load("hidden"), java.data_file("hidden")
    path = Path(file.location())
    copy = path.with_name(f"_{path.name}")
    copy.write_bytes(path.read_bytes())
    renamed = java.iceberg.DataFiles.builder(loaded.spec()).copy(file).withPath(str(copy)).build()
    loaded.newAppend().appendFile(renamed).commit()
    with pytest.raises(UnreadableFileError, match=re.escape(copy.name)):
        tamis_rows(warehouse, "hidden")
