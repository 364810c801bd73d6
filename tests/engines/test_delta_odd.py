"""Delta logs that other writers could have made: the connector and tamis read the same rows of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tamis
from tests.making.delta_logs import DeltaLog, add, inline_vector, remove
from tests.making.sparks import Started

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def spark(started_spark: Started) -> SparkSession:
    if started_spark.missing:
        pytest.skip(started_spark.missing)
    return started_spark.session


def test_inline_vectors_odd_paths_and_empty_texts(spark: SparkSession, tmp_path: Path) -> None:
    """A path with escapes, an absolute one, an empty partition value, and a vector in the log."""
    root, elsewhere = tmp_path / "t", tmp_path / "else where"
    sizes = {}
    for number, path in enumerate(
        (root / "p=a%3Ab c" / "é [1].parquet", elsewhere / "two.parquet", root / "3.parquet")
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"id": pa.array(range(number * 10, number * 10 + 10), pa.int64())}), path)
        sizes[number] = path.stat().st_size
    log = DeltaLog(root)
    first = quote("p=a%3Ab c/é [1].parquet")
    log.begin(
        add(first, "a:b c", size=sizes[0], stats=None),
        add((elsewhere / "two.parquet").as_uri(), "", size=sizes[1], stats=None),
        reader=3,
        features=("deletionVectors",),
    )
    dv = inline_vector([0, 4, 9])
    log.commit(remove(first), add(first, "a:b c", dv=dv, size=sizes[0], stats=None))
    log.commit(add("3.parquet", None, size=sizes[2], stats=None))
    for where in ("true", "part = 'a:b c'", "part = ''", "part is null", "id >= 8 and id < 22"):
        mine = tamis.open(root).plan(where, spark=spark).read(spark)
        theirs = spark.read.format("delta").load(str(root)).filter(where)
        assert sorted(map(repr, mine.collect())) == sorted(map(repr, theirs.collect())), where
    assert [row.id for row in tamis.open(root).plan("part = 'a:b c'").read(spark).orderBy("id").collect()] == [
        1,
        2,
        3,
        5,
        6,
        7,
        8,
    ]


ZONELESS = (
    "2024-01-15 12:00:00",
    "2024-11-03 01:30:00",  # twice in New York
    "2024-03-10 02:30:00.5",  # never in New York
    "1969-07-20 20:17:40.123456",
    "2024-01-15T17:00:00.000000Z",
    "2024-01-16",
    "2024-1-5 1:2:3.25",
    "2024-01-15 17:00",
    "2024-01-15 17:00:00 UTC",
    "2024-01-15T17:00:00+8",
)


@pytest.mark.parametrize("zone", ["America/New_York", "+05:00"])
def test_times_of_partitions_without_a_zone_are_the_sessions(spark: SparkSession, tmp_path: Path, zone: str) -> None:
    """The protocol has them in the writer's zone and names none: the connector takes its session's, and so do we."""
    log = DeltaLog(tmp_path)
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in (("id", "long"), ("ts", "timestamp"), ("ntz", "timestamp_ntz"))
    ]
    files = []
    for number, text in enumerate(ZONELESS):
        pq.write_table(pa.table({"id": pa.array([number], pa.int64())}), tmp_path / f"{number}.parquet")
        size = (tmp_path / f"{number}.parquet").stat().st_size
        values = {"ts": text, "ntz": text.removesuffix(" UTC").removesuffix("+8").rstrip("Z").replace("T", " ")}
        files.append(add(f"{number}.parquet", size=size, stats=None, values=values))
    log.begin(
        *files,
        reader=3,
        features=("timestampNtz",),
        schema={"type": "struct", "fields": fields},
        partitions=("ts", "ntz"),
    )
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        table = tamis.open(tmp_path)
        frame = spark.read.format("delta").load(str(tmp_path))
        plans = {
            "true": table.plan(),
            f"ts = timestamp'{ZONELESS[1]}'": table.plan(f"ts = timestamp'{ZONELESS[1]}'", spark=spark),
            f"ts <= timestamp'{ZONELESS[2]}'": table.plan(f"ts <= timestamp'{ZONELESS[2]}'", time_zone=zone),
            f"ntz = '{ZONELESS[3]}'": table.plan(f"ntz = '{ZONELESS[3]}'"),
        }
        for where, plan in plans.items():
            mine = sorted(plan.read(spark, metadata_columns=["_partition"]).collect())
            assert all(row._partition.ts == row.ts for row in mine)
            assert [repr(row[:3]) for row in mine] == [repr(row[:]) for row in sorted(frame.filter(where).collect())]
        noon = table.plan(f"ts = timestamp'{ZONELESS[0]}'", spark=spark)
        assert noon.files["path"].to_pylist() == (
            ["0.parquet"] if zone != "America/New_York" else ["0.parquet", "4.parquet", "8.parquet"]
        )
        there = table.plan(f"ts = timestamp'{ZONELESS[0]}'", spark=spark, executors="always")
        assert sorted(there.files["path"].to_pylist()) == noon.files["path"].to_pylist()
        unknown = table.plan(f"ts = timestamp'{ZONELESS[0]}Z'")
        assert unknown.stats.kept >= 5
        assert any("says no time zone" in note for note in unknown.stats.notes)
        unasked = table.plan("id = 1", spark=spark)
        zoned = table.plan("ts > timestamp'2024-01-01 00:00:00Z'", spark=spark)
        spark.conf.set("spark.sql.session.timeZone", "Pacific/Auckland")
        with pytest.raises(tamis.errors.TimeZoneError, match="partition values without a time zone"):
            zoned.read(spark)
        theirs = spark.read.format("delta").load(str(tmp_path)).filter("id = 1")
        assert unasked.read(spark).collect() == theirs.collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


SPARKS_ALONE = {
    "integer": ("+7", " 8 ", "8", None),
    "decimal(10,2)": ("1.505", "-1.505", " 2.50 "),
    "boolean": ("t", "0", "Y", " no "),
    "string": ("", "__HIVE_DEFAULT_PARTITION__"),
    "date": ("2024", "2024-01", "2024-01-15T10:00:00", " 2024-01-15"),
}


def test_partition_values_that_engines_read_differently_are_sparks(spark: SparkSession, tmp_path: Path) -> None:
    """Their files are kept whatever is asked, and their rows are filtered by what Spark's cast makes of the text."""
    log = DeltaLog(tmp_path)
    columns = {f"p{place}": kind for place, kind in enumerate(SPARKS_ALONE)}
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in {"id": "long", **columns}.items()
    ]
    files = []
    for number in range(4):
        pq.write_table(pa.table({"id": pa.array([number], pa.int64())}), tmp_path / f"{number}.parquet")
        size = (tmp_path / f"{number}.parquet").stat().st_size
        texts = zip(columns, SPARKS_ALONE.values(), strict=True)
        values = {name: of[number % len(of)] for name, of in texts}
        files.append(add(f"{number}.parquet", size=size, stats=None, values=values))
    log.begin(*files, schema={"type": "struct", "fields": fields}, partitions=tuple(columns))
    table, theirs = tamis.open(tmp_path), spark.read.format("delta").load(str(tmp_path))
    for where in ("true", "p0 = 8 or p0 is null", "p1 > 0 and p2", "p4 = '2024-01-15' and p3 >= ''"):
        mine = table.plan(where, spark=spark).read(spark)
        assert sorted(map(repr, mine.collect())) == sorted(map(repr, theirs.filter(where).collect())), where


def test_columns_without_a_value_or_an_order_of_bytes_are_read(spark: SparkSession, tmp_path: Path) -> None:
    """What compares by a collation does so when rows are filtered, and a column that no file has is NULL."""
    fields = [
        {"name": "id", "type": "long", "nullable": True, "metadata": {}},
        {"name": "c", "type": "string", "nullable": True, "metadata": {"__COLLATIONS": {"c": "icu.UNICODE_CI"}}},
        {"name": "n", "type": "void", "nullable": True, "metadata": {}},
    ]
    fields.append(fields[0] | {"name": "s", "type": {"type": "struct", "fields": [fields[2], fields[0]]}})
    columns = {"id": pa.array([1, 2, 3], pa.int64()), "c": pa.array(["a", "A", "b"])}
    columns["s"] = pa.array([{"id": 1}, None, {"id": None}], pa.struct([("id", pa.int64())]))
    pq.write_table(pa.table(columns), tmp_path / "1.parquet")
    size = (tmp_path / "1.parquet").stat().st_size
    stats = json.dumps({"numRecords": 3, "minValues": {"id": 1, "c": "A"}, "maxValues": {"id": 3, "c": "b"}})
    log = DeltaLog(tmp_path)
    log.begin(
        add("1.parquet", size=size, stats=stats, values={}),
        schema={"type": "struct", "fields": fields},
        partitions=(),
    )
    table, theirs = tamis.open(tmp_path), spark.read.format("delta").load(str(tmp_path))
    for where in ("true", "c = 'A'", "c > 'A'", "id > 1", "n is null", "id > 9"):
        mine = table.plan(where, spark=spark).read(spark)
        assert mine.columns == theirs.columns
        assert sorted(map(repr, mine.collect())) == sorted(map(repr, theirs.filter(where).collect())), where


def test_variants_are_read(spark: SparkSession, tmp_path: Path) -> None:
    """On their own, in structs, lists and maps, as NULL of SQL and of JSON, before and after the column was added."""
    table = f"delta.`{tmp_path / 't'}`"
    columns = "v variant, s struct<v: variant, n: int>, a array<variant>, m map<string, variant>"
    spark.sql(f"create table {table} (id bigint, {columns}) using delta")
    rows = (
        "select id, parse_json(if(id = 3, null, if(id = 2, 'null', concat('{\"a\":', id, '}')))) v,"
        " named_struct('v', parse_json(concat('[', id, ']')), 'n', 1) s,"
        " array(parse_json('\"x\"'), null) a, map('k', parse_json(cast(id as string))) m from range(5)"
    )
    spark.sql(f"insert into {table} {rows}")
    spark.sql(f"alter table {table} add column w variant")
    more = f"select 9, v, s, a, m, parse_json('true') from ({rows}) where id = 1"  # noqa: S608 - our own
    spark.sql(f"insert into {table} {more}")
    opened, theirs = tamis.open(tmp_path / "t"), spark.table(table)
    shown = ["id", "to_json(v)", "to_json(s)", "to_json(a)", "to_json(m)", "to_json(w)"]
    for where in (
        "true",
        "id > 1",
        "v is null",
        "w is not null",
        "variant_get(v, '$.a', 'int') = 1",
        "id > 100",
    ):
        mine = opened.plan(where, spark=spark).read(spark)
        assert mine.schema == theirs.schema
        assert sorted(map(repr, mine.selectExpr(*shown).collect())) == sorted(
            map(repr, theirs.filter(where).selectExpr(*shown).collect())
        ), where


def test_shredded_variants_are_read(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's own reader puts them together."""
    table = f"delta.`{tmp_path / 't'}`"
    shredding = "tblproperties ('delta.enableVariantShredding' = 'true')"
    spark.sql(f"create table {table} (id bigint, v variant) using delta {shredding}")
    spark.conf.set("spark.sql.variant.forceShreddingSchemaForTest", "a int")
    try:
        spark.sql(f"insert into {table} select id, parse_json(concat('{{\"a\":', id, '}}')) from range(5)")  # noqa: S608 - our own
    finally:
        spark.conf.unset("spark.sql.variant.forceShreddingSchemaForTest")
    assert any(b"typed_value" in path.read_bytes() for path in (tmp_path / "t").glob("*.parquet"))
    for where in ("id > 1", "variant_get(v, '$.a', 'int') = 1"):
        shown = [
            frame.selectExpr("id", "to_json(v)")
            for frame in (
                tamis.open(tmp_path / "t").plan(where, spark=spark).read(spark),
                spark.table(table).filter(where),
            )
        ]
        mine, theirs = (sorted(map(repr, frame.collect())) for frame in shown)
        assert mine == theirs


def test_padded_texts_are_read_and_compared_as_the_connector_does(spark: SparkSession, tmp_path: Path) -> None:
    """A char(n) is a string with a note in the schema: by it Spark pads what is read, and what it compares."""
    table = f"delta.`{tmp_path / 't'}`"
    spark.sql(f"create table {table} (id bigint, c char(5), v varchar(4), p char(3)) using delta partitioned by (p)")
    spark.sql(f"insert into {table} values (1, 'ab', 'x', 'q'), (2, null, 'y', 'qq'), (3, 'abcde', 'ab  ', 'q')")  # noqa: S608 - our own
    log = DeltaLog(tmp_path / "t")
    pq.write_table(
        pa.table({"id": pa.array([4, 5], pa.int64()), "c": ["ab", "longer"]}), tmp_path / "t" / "4.parquet"
    )
    size = (tmp_path / "t" / "4.parquet").stat().st_size
    stats = json.dumps({"numRecords": 2, "minValues": {"c": "ab"}, "maxValues": {"c": "longer"}})
    (log.folder / f"{2:020d}.json").write_text(
        json.dumps(add("4.parquet", size=size, stats=stats, values={"p": "q"}))
    )
    opened, theirs = tamis.open(tmp_path / "t"), spark.table(table)
    for where in (
        "true",
        "c = 'ab'",
        "c in ('ab', 'x') and p = 'q'",
        "p <> 'q' or c > 'ab'",
        "length(c) = 5",
        "id > 9",
    ):
        mine = opened.plan(where, spark=spark).read(spark)
        assert sorted(map(repr, mine.collect())) == sorted(map(repr, theirs.filter(where).collect())), where
    rows = opened.plan(spark=spark).read(spark)
    assert rows.filter("c = 'ab'").count() == theirs.filter("c = 'ab'").count() == 2
