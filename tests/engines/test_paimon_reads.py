"""Rows of Paimon tables, read on Spark, are those that Paimon's Java core reads: for tables of either writer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import tamis
from tamis.errors import UnreadableColumnError
from tests.engines.paimon_engine import PaimonEngine
from tests.engines.paimon_rows import appended_by_pypaimon, assert_same, same_as_java, written_by_pypaimon

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.engine

TYPES = {
    "id": "BIGINT NOT NULL",
    "s": "STRING",
    "ti": "TINYINT",
    "si": "SMALLINT",
    "i": "INT",
    "x": "FLOAT",
    "y": "DOUBLE",
    "b": "BOOLEAN",
    "d9": "DECIMAL(9, 2)",
    "d10": "DECIMAL(10, 2)",
    "d30": "DECIMAL(30, 5)",
    "dt": "DATE",
    "t3": "TIMESTAMP(3)",
    "t6": "TIMESTAMP(6)",
    "l3": "TIMESTAMP(3) WITH LOCAL TIME ZONE",
    "l6": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
    "bin": "VARBINARY(20)",
    "c": "CHAR(5)",
    "v": "VARCHAR(7)",
    "arr": {"type": "ARRAY", "element": "INT"},
    "mp": {"type": "MAP", "key": "STRING", "value": "BIGINT"},
    "st": {"type": "ROW", "fields": [{"name": "a", "type": "INT"}, {"name": "b", "type": "STRING"}]},
}
ROW = {
    "id": 1,
    "s": "x",
    "ti": -1,
    "si": 2,
    "i": 3,
    "x": 1.5,
    "y": "NaN",
    "b": True,
    "d9": "1.25",
    "d10": "-3.50",
    "d30": "12345.67890",
    "dt": "1066-10-14",
    "t3": "2024-01-01T00:00:00.123",
    "t6": "1582-10-15T00:00:00.123456",
    "l3": "2024-01-01T00:00:00.123Z",
    "l6": "2024-01-01T00:00:00.123456Z",
    "bin": "AAEC",
    "c": "abc",
    "v": "ä",
    "arr": [1, None, 2],
    "mp": [["k", 5], ["l", None]],
    "st": {"a": 1, "b": "q"},
}
NOTHING = {"id": 2} | {name: None for name in ROW if name != "id"}
ODD = ROW | {"id": 3, "x": "-0.0", "y": "-Infinity", "s": "", "arr": [], "mp": [], "st": {"a": None, "b": None}}
OLD = "1066-10-14T00:00:00.123456"
WRITE_ONLY = {"write-only": "true"}


def create(paimon: PaimonEngine, table: str, columns: dict[str, Any], **more: object) -> None:
    paimon("create_table", table, columns=[[name, kind] for name, kind in columns.items()], **more)


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
@pytest.mark.parametrize("keys", [[], ["id"]], ids=["append", "keys"])
def test_every_type_of_every_file_format_is_what_java_reads(
    spark: SparkSession, paimon: PaimonEngine, file_format: str, keys: list[str]
) -> None:
    """Two commits: files of a key table have to be merged."""
    table = f"types_{file_format}_{len(keys)}"
    buckets = {"bucket": "1"} if keys else {"bucket": "-1"}
    create(paimon, table, TYPES, primary_keys=keys, options={**WRITE_ONLY, **buckets, "file.format": file_format})
    older = {} if file_format == "orc" else {"t6": OLD}
    paimon("write", table, rows=[ROW | older, NOTHING, ODD])
    paimon("write", table, rows=[ROW | {"id": 3, "s": "new"}, ROW | {"id": 4}])
    same_as_java(spark, paimon, table)


def test_old_dates_in_orc_files_of_either_writer_are_the_days_that_were_written(
    spark: SparkSession, paimon: PaimonEngine
) -> None:
    """Spark takes them for days of the Julian calendar, five to ten days off."""
    days = pa.table({"id": pa.array([1, 2, 3], pa.int32()), "d": pa.array([-329_975, -141_427, 0], pa.date32())})
    written_by_pypaimon(paimon, "old_days", [days], options={"file.format": "orc"})
    paimon("write", "old_days", rows=[{"id": 4, "d": "1066-10-14"}])
    same_as_java(spark, paimon, "old_days")


@pytest.mark.parametrize("codec", ["lz4", "lzo"])
def test_times_of_orc_files_are_read_however_these_are_compressed(
    spark: SparkSession, paimon: PaimonEngine, codec: str
) -> None:
    """Older releases take LZ4 unless told otherwise. What says by which clock a file was written is packed, too."""
    table = f"compressed_{codec}"
    options = {"bucket": "-1", "file.format": "orc", "file.compression": codec}
    columns = {name: kind for name, kind in TYPES.items() if name in ("id", "dt", "t3", "t6", "l6", "s")}
    create(paimon, table, columns, options=options)
    rows = [{name: ROW[name] for name in columns} | {"id": number} for number in range(60)]
    paimon("write", table, rows=rows)
    assert same_as_java(spark, paimon, table).count() == 60


def test_old_times_in_orc_files_fail_whoever_wrote_them(spark: SparkSession, paimon: PaimonEngine) -> None:
    """Java writes 1066-10-14 and reads 1066-10-20; its statistics, and pypaimon, have the day that was meant."""
    create(paimon, "old_times", {"id": "INT", "t": "TIMESTAMP(6)"}, options={"bucket": "-1", "file.format": "orc"})
    paimon("write", "old_times", rows=[{"id": 1, "t": OLD}])
    opened = tamis.open(str(paimon.path("old_times")))
    with pytest.raises(Exception, match="before 1582-10-15"):
        opened.plan().read(spark).collect()
    assert_same(opened.plan().read(spark, columns=["id"]), [{"id": 1}])


@pytest.mark.parametrize("wide", ["false", "true"], ids=["32", "64"])
@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_deletion_vectors_apply_to_files_of_every_format(
    spark: SparkSession, paimon: PaimonEngine, file_format: str, wide: str
) -> None:
    """Spark knows the place of a row in Parquet files alone."""
    table = f"vectors_{file_format}_{wide}"
    options = {"bucket": "-1", "file.format": file_format, "deletion-vectors.enabled": "true"}
    create(paimon, table, {"id": "INT", "v": "TINYINT"}, options=options | {"deletion-vectors.bitmap64": wide})
    paimon("write", table, rows=[{"id": row, "v": row} for row in range(20)])
    (file,) = [one["file"]["name"] for one in paimon("files", table)["files"]]
    paimon("delete_by_position", table, positions={file: [0, 5, 19]})
    paimon("alter", table, changes=[{"op": "change_type", "name": "v", "type": "BIGINT"}])
    frame = same_as_java(spark, paimon, table)
    assert frame.count() == 17


def test_nanoseconds_and_times_of_day_are_refused_by_name_and_the_other_columns_read(
    spark: SparkSession, paimon: PaimonEngine
) -> None:
    """Spark has no type for them, and would take INT96 for less than it is, and milliseconds for microseconds."""
    create(paimon, "nanos", {"id": "INT", "t9": "TIMESTAMP(9)", "tm": "TIME"}, options={"bucket": "-1"})
    paimon("write", "nanos", rows=[{"id": 1, "t9": "2024-01-01T00:00:00.123456789", "tm": "01:02:03"}])
    opened = tamis.open(str(paimon.path("nanos")))
    types = {"time": "bigint", "timestamp_ns": "timestamp_ntz"}
    for name in ("t9", "tm"):
        for asked in (None, types):
            with pytest.raises(UnreadableColumnError, match=name):
                opened.plan().read(spark, columns=[name], types=asked)
    assert_same(opened.plan().read(spark, columns=["id"]), [{"id": 1}])


def test_columns_are_found_by_field_id_in_files_of_every_schema(spark: SparkSession, paimon: PaimonEngine) -> None:
    """Renamed, dropped and added again under the same name, moved, widened, and so inside a row."""
    row_type = {"type": "ROW", "fields": [{"name": "a", "type": "INT"}, {"name": "b", "type": "INT"}]}
    columns = {"id": "INT", "a": "INT", "b": "STRING", "x": "FLOAT", "d": "DECIMAL(9, 2)", "r": row_type, "n": "INT"}
    create(paimon, "evolved", columns, options={"bucket": "-1"})
    first = {"a": 10, "b": "old", "x": 1.1, "d": "1.25", "r": {"a": 1, "b": 2}, "n": 7}
    paimon("write", "evolved", rows=[{"id": 1, **first}])
    paimon(
        "alter",
        "evolved",
        changes=[
            {"op": "rename_column", "name": "a", "to": "aa"},
            {"op": "drop_column", "name": "b"},
            {"op": "add_column", "name": "a", "type": "STRING"},
            {"op": "change_type", "name": "x", "type": "DOUBLE"},
            {"op": "change_type", "name": "d", "type": "DECIMAL(18, 4)"},
            {"op": "move_first", "name": "n"},
        ],
    )
    paimon("alter", "evolved", changes=[{"op": "add_column", "name": "b", "type": "INT"}])
    second = {"aa": 20, "a": "text", "x": 2.2, "d": "2.5000", "r": {"a": 3, "b": 4}, "n": 8, "b": 5}
    paimon("write", "evolved", rows=[{"id": 2, **second}])
    paimon("alter", "evolved", changes=[{"op": "change_type", "name": "aa", "type": "BIGINT"}])
    paimon("alter", "evolved", changes=[{"op": "change_type", "name": "n", "type": "STRING"}])
    paimon("write", "evolved", rows=[{"id": 3, **second, "aa": 1 << 40, "n": "nine"}])
    frame = same_as_java(spark, paimon, "evolved")
    assert dict(frame.dtypes)["aa"] == "bigint"
    opened = tamis.open(str(paimon.path("evolved")))
    for where in ("aa = 10", "a is null", "b = 5", "n = '7'", "x > 1.5", "d = 1.25", "r.a = 1"):
        told = frame.filter(where).collect()
        assert opened.plan(where).read(spark).collect() == told, where


def test_a_cast_that_loses_something_is_refused_by_the_columns_name(
    spark: SparkSession, paimon: PaimonEngine
) -> None:
    """Paimon cuts numbers to the new type, Spark's cast fails: so neither is taken, and other columns are read."""
    create(paimon, "narrowed", {"id": "INT", "v": "BIGINT"}, options={"bucket": "-1"})
    paimon("write", "narrowed", rows=[{"id": 1, "v": (1 << 40) + 5}])
    paimon("alter", "narrowed", changes=[{"op": "change_type", "name": "v", "type": "INT"}])
    opened = tamis.open(str(paimon.path("narrowed")))
    with pytest.raises(UnreadableColumnError, match="'v' of type INT, which some files have as BIGINT"):
        opened.plan().read(spark)
    assert_same(opened.plan().read(spark, columns=["id"]), [{"id": 1}])


@pytest.mark.parametrize("wide", ["false", "true"], ids=["32", "64"])
def test_deletion_vectors_of_append_tables_are_applied_by_position(
    spark: SparkSession, paimon: PaimonEngine, wide: str
) -> None:
    """Pypaimon cannot read vectors of 64 bits."""
    table = f"append_vectors_{wide}"
    options = {"bucket": "-1", "deletion-vectors.enabled": "true", "deletion-vectors.bitmap64": wide}
    create(paimon, table, {"id": "INT", "v": "INT"}, options=options)
    paimon("write", table, rows=[{"id": row, "v": row} for row in range(100)])
    paimon("write", table, rows=[{"id": row, "v": row} for row in range(100, 150)])
    files = [one["file"]["name"] for one in paimon("files", table)["files"]]
    paimon("delete_by_position", table, positions={files[0]: [0, 5, 7, 49]})
    frame = same_as_java(spark, paimon, table)
    assert frame.count() == 146
    opened = tamis.open(str(paimon.path(table)))
    found = opened.plan().read(spark, metadata_columns=["_file", "_pos", "_bucket"])
    gone = {row["_pos"] for row in found.collect() if row["_file"].endswith(files[0])}
    assert gone.isdisjoint({0, 5, 7, 49})
    assert {row["_bucket"] for row in found.collect()} == {0}


@pytest.mark.parametrize("wide", ["false", "true"], ids=["32", "64"])
def test_key_tables_with_vectors_are_read_as_compaction_left_them(
    spark: SparkSession, paimon: PaimonEngine, wide: str
) -> None:
    """Level 0 is not seen before a compaction, and rows that were removed at a middle level stay away."""
    table = f"key_vectors_{wide}"
    options = {"bucket": "2", "deletion-vectors.enabled": "true", "deletion-vectors.bitmap64": wide}
    create(paimon, table, {"id": "INT NOT NULL", "v": "INT"}, primary_keys=["id"], options=options)
    paimon("write", table, rows=[{"id": row, "v": row} for row in range(100)])
    paimon("write", table, rows=[{"id": row, "v": -row} for row in range(10, 20)])
    paimon("delete", table, rows=[{"id": row, "v": row} for row in range(50, 60)])
    paimon("compact", table, full=False)
    paimon("write", table, rows=[{"id": 1, "v": 1000}], dynamic=WRITE_ONLY)
    frame = same_as_java(spark, paimon, table)
    assert frame.count() == 90


def test_partitions_with_nulls_blanks_and_escapes_keep_their_values(
    spark: SparkSession, paimon: PaimonEngine
) -> None:
    """NULL and the empty text share a folder; a value is the metadata's, not the folder's."""
    columns = {"id": "INT", "p": "STRING", "d": "DATE", "c": "CHAR(4)"}
    create(paimon, "parts", columns, partition_keys=["p", "d", "c"])
    values = ["a/b=c", None, "", " ", "%41", "ü", "a b", "x:y"]
    rows = [{"id": row, "p": value, "d": "2024-01-02", "c": "ab"} for row, value in enumerate(values)]
    paimon("write", "parts", rows=[*rows, {"id": 99, "p": "a/b=c", "d": None, "c": None}])
    frame = same_as_java(spark, paimon, "parts")
    opened = tamis.open(str(paimon.path("parts")))
    for where in (
        *("p is null", "p = ''", "p = 'a/b=c' and d is null", "p in ('%41', 'ü')", "d = date'2024-01-02'"),
        *("c is null", "c = 'ab'"),
    ):
        told = sorted(frame.filter(where).collect())
        assert sorted(opened.plan(where).read(spark).collect()) == told, where


def test_partitions_of_pypaimon_are_found_though_it_names_folders_otherwise(
    spark: SparkSession, paimon: PaimonEngine
) -> None:
    """It writes a date as a day and escapes nothing, where Java writes a number of days; both write one table."""
    schema = pa.schema([("id", pa.int32()), ("p", pa.string()), ("d", pa.date32())])
    batch = pa.table({"id": [1, 2, 3], "p": ["a:b", "ü", None], "d": [0, 19_000, 19_000]}, schema=schema)
    written_by_pypaimon(paimon, "parts_py", [batch], partition_keys=["p", "d"])
    paimon("write", "parts_py", rows=[{"id": 4, "p": "a:b", "d": "1970-01-01"}])
    opened = tamis.open(str(paimon.path("parts_py")))
    told = [dict(zip(schema.names, row, strict=True)) for row in zip(*batch.to_pydict().values(), strict=True)]
    told.append({"id": 4, "p": "a:b", "d": "1970-01-01"})
    assert_same(opened.plan().read(spark), told)


def test_a_table_of_pypaimon_with_every_type_is_read(spark: SparkSession, paimon: PaimonEngine) -> None:
    """Its files have no field ids, and other layouts of decimals."""
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            ("s", pa.string()),
            ("i", pa.int32()),
            ("y", pa.float64()),
            ("d9", pa.decimal128(9, 2)),
            ("d10", pa.decimal128(10, 2)),
            ("d30", pa.decimal128(30, 5)),
            ("dt", pa.date32()),
            ("t6", pa.timestamp("us")),
            ("l6", pa.timestamp("us", "UTC")),
            ("arr", pa.list_(pa.int32())),
            ("mp", pa.map_(pa.string(), pa.int64())),
            ("st", pa.struct([("a", pa.int32()), ("b", pa.string())])),
        ]
    )
    nested = {"arr": [1, None], "mp": [("k", 5)], "st": {"a": 1, "b": "q"}}
    batch = pa.Table.from_pylist([{"id": 1, "s": "x", "i": 3, "y": float("nan"), **nested}, {"id": 2}], schema=schema)
    newer = [{"id": 1, "s": "new", "t6": 5, "l6": 7, "dt": 0}, {"id": 3, "y": -0.0}]
    later = pa.Table.from_pylist(newer, schema=schema)
    for table, keys in (("py_append", []), ("py_keys", ["id"])):
        options = {"bucket": "1"} if keys else {}
        written_by_pypaimon(paimon, table, [batch, later], primary_keys=keys, options=options)
        same_as_java(spark, paimon, table)


def test_a_writers_changes_between_the_plan_and_the_read_are_not_read(
    spark: SparkSession, paimon: PaimonEngine
) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.int32())])
    first = pa.table({"id": [1, 2], "v": [1, 2]}, schema=schema)
    folder = written_by_pypaimon(paimon, "fixed", [first], primary_keys=["id"], options={"bucket": "1"})
    plan = tamis.open(folder).plan()
    appended_by_pypaimon(paimon, "fixed", pa.table({"id": [2, 3], "v": [20, 30]}, schema=schema))
    assert_same(plan.read(spark), [{"id": 1, "v": 1}, {"id": 2, "v": 2}])
    same_as_java(spark, paimon, "fixed")
