# ruff: noqa: S608 - SQL made of the tests' own names
"""Files that Spark's readers cannot read right are read with Arrow: rows are those of Iceberg's own connector."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import tamis
from tamis.spark import deletes
from tests.engines.conftest import Warehouse
from tests.engines.reading import METADATA, Java, bag, connector, delete_rows, make
from tests.making.clusters import KINDS, cluster, run

pytestmark = pytest.mark.engine

HERE: Final = Path(__file__).parent
LONG: Final = os.environ.get("TAMIS_HYPOTHESIS_PROFILE") == "soak"
"""Every kind of Spark, not Spark Connect alone."""

ZONE: Final = "Europe/Paris"
COLUMNS: Final = (
    "id bigint, b boolean, i int, f float, d double, dt date, ts timestamp, ntz timestamp_ntz, s string, bin binary, "
    "dec decimal(9, 2), wide decimal(30, 4), st struct<a: int, b: string, t: timestamp>, li array<int>, "
    "ls array<struct<x: int, n: timestamp_ntz>>, m map<string, int>, md map<int, struct<x: date>>"
)
ROWS: Final = """
    id, id % 2 = 0, nullif(cast(id as int), 4), cast(id / 4 as float), if(id = 5, double('NaN'), -id / 8),
    date_add(date'1500-02-25', cast(id as int)),
    timestamp_micros((id - 4) * 86400000000 * 146097 + 123456 - id), timestamp_ntz'1900-01-01 00:00:00.123456'
    + make_dt_interval(cast(id * 4000 as int)), 's' || id, nullif(unhex(hex(id)), x'02'),
    cast(id / 3 as decimal(9, 2)), -cast(id / 3 as decimal(30, 4)) * 1000000000000000,
    if(id % 3 = 0, null, named_struct('a', cast(id as int), 'b', 'x', 't', timestamp'2024-03-31 00:30:00')),
    if(id = 7, null, array(1, null, cast(id as int))),
    array(named_struct('x', 1, 'n', timestamp_ntz'9999-12-31 23:59:59'), null), map('k', cast(id as int)),
    map(1, named_struct('x', date'0001-01-01'), 2, null)
"""
CONDITIONS: Final = (
    None,
    "id >= 3 and ts < timestamp'1970-01-01 00:00:00'",
    "ntz between timestamp_ntz'1930-01-01 00:00:00' and timestamp_ntz'1980-01-01 00:00:00' or id = 9",
    "dt = date'1500-03-01'",
    "st.t is null or li is null",
    "isnan(d) or d < -1",
    "ts is not null and s in ('s2', 's3', 's11')",
)


@pytest.fixture
def paris(warehouse: Warehouse) -> Iterator[Warehouse]:
    """A session in a zone that has summer time."""
    before = warehouse.spark.conf.get("spark.sql.session.timeZone")
    warehouse.spark.conf.set("spark.sql.session.timeZone", ZONE)
    yield warehouse
    warehouse.spark.conf.set("spark.sql.session.timeZone", str(before))


def alike(warehouse: Warehouse, name: str, where: str | None = None, columns: list[str] | None = None) -> int:
    """Assert that a plan for the session's own zone gives the connector's rows; how many there are.

    All of them, filtered by Spark: what the connector itself lets ORC's reader filter, it loses rows of.
    """
    plan = tamis.open(warehouse.path(name)).plan(where, spark=warehouse.spark)
    theirs = connector(warehouse, name)
    if where is not None:
        theirs = theirs.localCheckpoint().where(where)
    ours, theirs = plan.read(warehouse.spark, columns=columns), theirs.select(*(columns or theirs.columns))
    assert ours.schema.simpleString() == theirs.schema.simpleString()
    found, wanted = bag(ours), bag(theirs)
    assert found == wanted, where
    return found.total()


@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_every_type_with_deletes_reads_as_the_connector_reads_it(paris: Warehouse, file_format: str) -> None:
    """Times before 1970, in a lost hour, beyond the years of nanoseconds; dates of 1500; deletes by place."""
    name = make(
        paris,
        f"second_{file_format}",
        COLUMNS,
        f"insert into {{t}} select /*+ coalesce(1) */ {ROWS} from range(12)",
        "delete from {t} where id in (1, 8)",
        f"insert into {{t}} select /*+ coalesce(1) */ {ROWS} from range(12, 20)",
        write_format_default=file_format,
    )
    for where in CONDITIONS:
        alike(paris, name, where)
    alike(paris, name, "id > 2", ["st", "ts"])
    opened = tamis.open(paris.path(name)).plan("id > 2")
    ours = opened.read(paris.spark, columns=["id"], metadata_columns=METADATA)
    assert bag(ours) == bag(connector(paris, name, "id > 2", ["id", *METADATA]))
    assert opened.read(paris.spark).count() == 16


@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_vectors_and_row_lineage_hold_in_other_formats(warehouse: Warehouse, file_format: str) -> None:
    """A vector names places. Rows that an update moves keep their ids in their new file, beside the columns."""
    name = make(
        warehouse,
        f"vectors_{file_format}",
        "id bigint, s string",
        "insert into {t} select id, 's' || id from range(0, 40, 1, 2)",
        "delete from {t} where id % 7 = 3",
        "update {t} set s = 'moved' where id in (5, 25)",
        "delete from {t} where id in (0, 5)",
        version=3,
        write_format_default=file_format,
    )
    lineage = ["_row_id", "_last_updated_sequence_number"]
    for where in (None, "s = 'moved' or id > 30"):
        ours = tamis.open(warehouse.path(name)).plan(where)
        found = ours.read(warehouse.spark, metadata_columns=[*METADATA, *lineage])
        assert bag(found) == bag(connector(warehouse, name, where, ["id", "s", *METADATA, *lineage]))
    assert tamis.open(warehouse.path(name)).plan().read(warehouse.spark).count() == 32


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_rows_deleted_by_position_never_leave_the_tasks_that_read_them(
    warehouse: Warehouse, file_format: str, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each file is rid of its own, also by delete files that name rows of several; a join does the same."""
    name = make(
        warehouse,
        f"rid_{file_format}_{version}",
        "id bigint, s string",
        "insert into {t} select id, 's' || id from range(0, 60, 1, 3)",
        "delete from {t} where id % 7 = 3",
        "delete from {t} where id % 9 in (0, 3)",
        version=version,
        write_format_default=file_format,
        write_delete_granularity="partition",
    )
    deleted = [one for one in range(60) if one % 7 == 3 or one % 9 in (0, 3)]
    plan = tamis.open(warehouse.path(name)).plan()
    rows = plan.read(warehouse.spark, metadata_columns=METADATA)
    shown = rows._jdf.queryExecution().executedPlan().toString()
    assert "MapInArrow" in shown
    assert "Join" not in shown
    wanted = bag(connector(warehouse, name, None, ["id", "s", *METADATA]))
    assert bag(rows) == wanted
    assert wanted.total() == 60 - len(deleted)
    assert plan.read(warehouse.spark).count() == wanted.total()
    with monkeypatch.context() as patched:
        patched.setattr(deletes, "is_here", lambda _: False)
        joined = plan.read(warehouse.spark, metadata_columns=METADATA)
    assert "Join" in joined._jdf.queryExecution().executedPlan().toString()
    assert bag(joined) == wanted


@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_evolved_columns_and_partitions_hold_on_the_second_way(warehouse: Warehouse, file_format: str) -> None:
    """By id: renamed, moved, dropped and added again, widened, at every depth; old files with specs of their own."""
    name = make(
        warehouse,
        f"moved_{file_format}",
        "id int, p string, f float, dec decimal(6, 2), at timestamp, gone int, st struct<a: int, b: string, z: int>, "
        "li array<struct<x: int, y: date>>, m map<string, struct<v: float>>",
        "insert into {t} select cast(id as int), 'p' || id % 2, id / 4, id / 3, timestamp_micros(id), 1, "
        "named_struct('a', cast(id as int), 'b', 'b', 'z', 9), array(named_struct('x', cast(id as int), 'y', "
        "date'1200-02-29')), map('k', named_struct('v', cast(id as float))) from range(0, 10, 1, 1)",
        "delete from {t} where id in (2, 5)",
        "alter table {t} add partition field p",
        "insert into {t} select cast(id as int), 'p' || id % 3, id / 4, id / 3, null, 1, null, null, null "
        "from range(10, 16, 1, 1)",
        "alter table {t} alter column id type bigint",
        "alter table {t} alter column f type double",
        "alter table {t} alter column dec type decimal(20, 2)",
        "alter table {t} drop column gone",
        "alter table {t} rename column st.a to c",
        "alter table {t} drop column st.z",
        "alter table {t} add column st.z string",
        "alter table {t} alter column li.element.x type bigint",
        "alter table {t} rename column li.element.y to when",
        "alter table {t} alter column m.value.v type double",
        "alter table {t} add column gone string after id",
        "alter table {t} rename column p to part",
        "alter table {t} alter column st first",
        "insert into {t} select null, id, 'new', 'p9', 1, 1, null, null, null from range(30, 33, 1, 1)",
        "delete from {t} where id in (0, 12, 31)",
        write_format_default=file_format,
    )
    assert alike(warehouse, name) == 14
    for where in ("gone = 'new' or st.c > 3", "part = 'p1'", "li[0].when < date'1500-01-01'", "dec > 2.5 and f < 3"):
        alike(warehouse, name, where)
    alike(warehouse, name, "st.z is null", ["li", "part", "dec"])


@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_deletes_by_value_of_a_time_are_found_in_other_formats(warehouse: Warehouse, file_format: str) -> None:
    """The delete files, of Parquet or of the table's format, name times that Spark cannot read from ORC."""
    name = make(
        warehouse,
        f"by_time_{file_format}",
        "id int, at timestamp_ntz",
        "insert into {t} select cast(id as int), timestamp_ntz'2024-01-01 00:00:00' + "
        "make_dt_interval(cast(id as int)) from range(0, 10, 1, 1)",
        write_format_default=file_format,
    )
    java = Java(warehouse.spark)
    times = [java.jvm.java.time.LocalDateTime.of(2024, 1, day, 0, 0) for day in (3, 7)]
    delete_rows(warehouse, name, [{"at": time} for time in times])
    assert alike(warehouse, name) == 8
    assert alike(warehouse, name, "at > timestamp_ntz'2024-01-05 00:00:00'") == 4


def test_orc_files_of_every_compression_have_their_times(warehouse: Warehouse) -> None:
    """What the end of a file says of its times is compressed as the rest is. Without it none of them was read."""
    codec = "alter table {{t}} set tblproperties ('write.orc.compression-codec' = '{}')"
    insert = "insert into {{t}} select id, timestamp_micros((id - 2) * {}), date'1500-01-01' from range(0, 5, 1, 1)"
    name = make(
        warehouse,
        "compressed_times",
        "id bigint, at timestamp, d date",
        *(
            part
            for one in ("snappy", "lz4", "lzo", "zstd")
            for part in (codec.format(one), insert.format(10**15 + 1), insert.format(10**16 + 1))
        ),
        write_format_default="orc",
    )
    assert alike(warehouse, name) == 40
    assert alike(warehouse, name, "at < timestamp'1500-01-01 00:00:00' and d < date'1582-01-01'") == 4


def test_only_the_files_that_need_it_go_the_second_way(warehouse: Warehouse) -> None:
    """The fast way stays: of a table with files of two formats Spark's own reader reads the Parquet ones."""
    name = make(
        warehouse,
        "two_ways",
        "id int, at timestamp",
        "insert into {t} select cast(id as int), timestamp_micros(id) from range(0, 5, 1, 1)",
        "alter table {t} set tblproperties ('write.format.default' = 'orc')",
        "insert into {t} select cast(id as int), timestamp_micros(id) from range(5, 9, 1, 1)",
    )
    rows = tamis.open(warehouse.path(name)).plan().read(warehouse.spark)
    shown = rows._jdf.queryExecution().executedPlan().toString()
    assert shown.count("FileScan parquet") == 1
    assert shown.count("MapInArrow") == 1
    assert alike(warehouse, name) == 9


@pytest.mark.parametrize("kind", KINDS if LONG else KINDS[:1])
def test_a_plain_spark_reads_avro_and_orc_without_a_package(warehouse: Warehouse, tmp_path: Path, kind: str) -> None:
    """Executors have Python and pyarrow, and no more. Deletes by place and by value are Avro files there as well."""
    names = [f"plain_avro_{kind}", f"plain_orc_{kind}"]
    for name in names:
        make(
            warehouse,
            name,
            "id bigint, at timestamp, s string, p int",
            "insert into {t} select id, timestamp_micros(id * 1000000007), 's' || id, id % 2 from range(0, 20, 1, 2)",
            "delete from {t} where id in (3, 4, 15)",
            write_format_default=name.split("_")[1],
        )
        delete_rows(warehouse, name, [{"s": "s5"}, {"s": "s9"}])
    with cluster(kind, tmp_path) as plain:
        reader, found = run(plain, HERE / "plain_reads.py", "id > 4", *map(warehouse.path, names))
    assert not reader, "this Spark has the package"
    for name in names:
        rows = connector(warehouse, name, "id > 4", ["id", "at", "s", "p", "_pos"]).collect()
        assert found[warehouse.path(name)] == sorted(map(str, rows))
        assert len(rows) == 12


def test_explain_says_of_how_many_files_and_why(warehouse: Warehouse) -> None:
    """In the text and in JSON; nothing of a table that Spark's own reader reads."""
    name = make(
        warehouse,
        "told",
        "id int, at timestamp, d date",
        "insert into {t} select cast(id as int), timestamp_micros(id), date'2020-01-01' from range(0, 4, 1, 2)",
    )
    assert not tamis.open(warehouse.path(name)).plan().stats.notes
    warehouse.spark.sql(f"alter table ice.db.{name} set tblproperties ('write.format.default' = 'orc')")
    warehouse.spark.sql(f"insert into ice.db.{name} select 9, null, null")
    plan = tamis.open(warehouse.path(name)).plan()
    (note,) = plan.stats.notes
    assert note == (
        "1 ORC file is read with Arrow, not by Spark's own reader, where a file has times with a zone; or where "
        "column 'd' has dates before 1582-10-15; or where rows are deleted by position, or their positions are asked "
        "for"
    )
    assert note in json.dumps(json.loads(plan.explain("json")))
    assert "1 ORC file is read with Arrow" in plan.explain()
    assert not tamis.open(warehouse.path(name)).plan("id < 4").stats.notes
