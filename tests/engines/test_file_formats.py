# ruff: noqa: S608 - SQL made of the tests' own names
"""Files that Spark cannot read by field ids: ORC, Avro, and files from elsewhere that carry no ids."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

import tamis
from tamis.errors import UnsupportedFormatError
from tests.engines.conftest import Warehouse
from tests.engines.reading import delete_rows
from tests.engines.tables import execute

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = pytest.mark.engine

FORMATS = ("parquet", "orc", "avro")
ROW = (
    "id, 'x' || id as name, named_struct('a', id, 'b', 'q') as st, array(named_struct('x', id)) as li, "
    "map('k', named_struct('y', id)) as m, date_add(date'1969-12-20', cast(id as int)) as d, "
    "case when id % 4 = 0 then null else cast(id / 7 as decimal(9, 3)) end as amount, unhex(hex(id)) as bin"
)
COLUMNS = (
    "id bigint, name string, st struct<a: bigint, b: string>, li array<struct<x: bigint>>, "
    "m map<string, struct<y: bigint>>, d date, amount decimal(9, 3), bin binary, region string"
)
CONDITIONS = (
    None,
    "id > 5 and reg = 'eu'",
    "reg is null or st.z between 3 and 8",
    "m['k'].y = 3 or label = 'n105'",
    "amount > 0.5 and d < date'1970-01-01'",
    "name is null",
)


def bag(rows: DataFrame) -> Counter[str]:
    return Counter(map(str, rows.collect()))


def imported(warehouse: Warehouse, file_format: str) -> str:
    """A table with files of its own and files of a plain Spark folder, whose regions stand in paths alone.

    Afterwards columns are renamed at every depth, and one comes back under an old name.
    """
    spark, table = warehouse.spark, f"ice.db.imported_{file_format}"
    source = warehouse.folder / f"plain {file_format}"
    rows = spark.sql(f"select {ROW}, array('eu', 'us', null)[id % 3] as region from range(21)")
    rows.write.format(file_format).partitionBy("region").save(str(source))
    properties = f"tblproperties ('write.format.default' = '{file_format}')"
    execute(
        spark,
        f"create table {table} ({COLUMNS}) using iceberg partitioned by (region) {properties}",
        f"insert into {table} select {ROW.replace('x', 'n', 1)}, 'uk' from range(100, 110)",
        f"call ice.system.add_files(table => 'db.imported_{file_format}', "
        f"source_table => '`{file_format}`.`{source}`')",
        f"alter table {table} rename column name to label",
        f"alter table {table} rename column st.a to z",
        f"alter table {table} rename column li.element.x to xx",
        f"alter table {table} rename column region to reg",
        f"alter table {table} add column name string",
        f"insert into {table} select id, 'y', named_struct('z', id, 'b', 'r'), array(), map(), null, 1, null, 'eu', "
        "'z' from range(200, 204)",
    )
    return table


@pytest.mark.parametrize("file_format", FORMATS)
def test_imported_files_without_ids_read_as_the_connector_reads_them(warehouse: Warehouse, file_format: str) -> None:
    """Names tie nothing but through the name mapping, and identity partition values stand in metadata alone."""
    table = imported(warehouse, file_format)
    opened = tamis.open(warehouse.path(f"imported_{file_format}"))
    for where in CONDITIONS:
        plan = opened.plan(where)
        theirs = warehouse.spark.table(table)
        expected = bag(theirs if where is None else theirs.where(where))
        assert bag(plan.read(warehouse.spark)) == expected, where
    assert opened.plan("reg = 'eu'").stats.kept < opened.plan().stats.kept


@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_files_of_their_own_read_as_the_connector_reads_them(warehouse: Warehouse, file_format: str) -> None:
    """ORC and Avro files carry ids, but Spark's readers go by the names that columns had when they were written."""
    table = f"ice.db.own_{file_format}"
    times = "" if file_format == "orc" else ", ts timestamp, ntz timestamp_ntz"
    values = "" if file_format == "orc" else ", timestamp'1969-12-31 23:59:59.5', timestamp_ntz'2020-02-29 12:00:00'"
    columns = f"id int, `a b` string, f float, st struct<a: int, b: string>, li array<int>{times}"
    execute(
        warehouse.spark,
        f"create table {table} ({columns}) using iceberg tblproperties ('write.format.default' = '{file_format}')",
        f"insert into {table} select cast(id as int), 'x' || id, id / 4, named_struct('a', 1, 'b', 'q'), "
        f"array(1, null){values} from range(5)",
        f"alter table {table} rename column `a b` to ab",
        f"alter table {table} rename column st.a to z",
        f"alter table {table} alter column id type bigint",
        f"alter table {table} drop column st.b",
        f"alter table {table} add column st.b string",
    )
    opened = tamis.open(warehouse.path(f"own_{file_format}"))
    for where in (None, "id >= 3", "st.z = 1 and f > 0.5"):
        theirs = warehouse.spark.table(table)
        ours = opened.plan(where).read(warehouse.spark, metadata_columns=["_file"])
        assert bag(ours) == bag((theirs if where is None else theirs.where(where)).select("*", "_file")), where


@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_equality_deletes_in_other_formats_delete_what_they_say(warehouse: Warehouse, file_format: str) -> None:
    """Read by id they would be NULLs: deleted rows would come back, and rows without a value would go."""
    name = f"equality_{file_format}"
    execute(
        warehouse.spark,
        f"create table ice.db.{name} (id int, s string) using iceberg "
        f"tblproperties ('format-version' = '2', 'write.format.default' = '{file_format}')",
        f"insert into ice.db.{name} select nullif(cast(id as int), 5), 'x' || id from range(10)",
    )
    delete_rows(warehouse, name, [{"id": 3}, {"id": 7}])
    execute(
        warehouse.spark,
        f"alter table ice.db.{name} rename column id to key",
        f"insert into ice.db.{name} values (3, 'new')",
    )
    expected = warehouse.spark.table(f"ice.db.{name}")
    found = tamis.open(warehouse.path(name)).plan().read(warehouse.spark)
    assert bag(found) == bag(expected)
    assert found.count() == 9


def test_widened_decimal_of_a_file_without_ids_is_filtered_right(warehouse: Warehouse) -> None:
    """Spark would cut the filter's number to the width that the file has, and find no row below it."""
    spark, table = warehouse.spark, "ice.db.widened"
    source = warehouse.folder / "narrow decimals"
    spark.sql("select cast(id as decimal(9, 2)) as d from range(1, 4)").write.parquet(str(source))
    execute(
        spark,
        f"create table {table} (d decimal(9, 2)) using iceberg",
        f"call ice.system.add_files(table => 'db.widened', source_table => '`parquet`.`{source}`')",
        f"alter table {table} alter column d type decimal(20, 2)",
    )
    opened = tamis.open(warehouse.path("widened"))
    for limit in ("21474836.48", "30000000.00", "99999999999.00"):
        assert opened.plan(f"d < {limit} and d + 0 < {limit}").read(spark).count() == 3, limit


@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_files_without_ids_or_mapping_are_read_by_the_names_of_now(warehouse: Warehouse, file_format: str) -> None:
    """As Iceberg's own readers do, whatever the columns were called when the files came."""
    spark, name = warehouse.spark, f"unmapped_{file_format}"
    table = f"ice.db.{name}"
    source = warehouse.folder / f"unmapped source {file_format}"
    rows = spark.sql("select id, 'x' || id as name, named_struct('a', id, 'b', 2 * id) as st from range(0, 3, 1, 1)")
    rows.write.format(file_format).save(str(source))
    columns = "id bigint, name string, st struct<a: bigint, b: bigint>"
    properties = f"tblproperties ('write.format.default' = '{file_format}')"
    execute(
        spark,
        f"create table {table} ({columns}) using iceberg {properties}",
        f"call ice.system.add_files(table => 'db.{name}', source_table => '`{file_format}`.`{source}`')",
        f"alter table {table} unset tblproperties ('schema.name-mapping.default')",
        f"alter table {table} rename column st.b to c",
        f"alter table {table} rename column name to label",
        f"alter table {table} add column name string",
        f"insert into {table} select 10, 'new', named_struct('a', 1, 'c', 2), 'late'",
    )
    opened = tamis.open(warehouse.path(name))
    for where in (None, "id > 0", "name is not null"):
        theirs = spark.table(table).localCheckpoint()
        expected = bag(theirs if where is None else theirs.where(where))
        assert bag(opened.plan(where).read(spark)) == expected, where


def test_parquet_without_ids_or_mapping_is_read_by_position(warehouse: Warehouse) -> None:
    """As Iceberg's own readers do: the columns are counted from 1. Spark ended in an error of its own."""
    spark, table = warehouse.spark, "ice.db.by_position"
    source = warehouse.folder / "by position"
    spark.sql("select id as x, 'v' || id as y, 'late' as w from range(0, 5, 1, 1)").write.parquet(str(source))
    execute(
        spark,
        f"create table {table} (id bigint, name string) using iceberg",
        f"insert into {table} values (100, 'own')",
        f"call ice.system.add_files(table => 'db.by_position', source_table => '`parquet`.`{source}`')",
        f"alter table {table} unset tblproperties ('schema.name-mapping.default')",
        f"alter table {table} rename column name to label",
        f"alter table {table} add column more string",
        f"alter table {table} add column beyond int",
    )
    opened = tamis.open(warehouse.path("by_position"))
    for where in (None, "id > 2", "label = 'v3' and id % 2 >= 0", "more = 'late'", "beyond is null and id < 100"):
        theirs = spark.table(table)
        expected = bag(theirs if where is None else theirs.where(where))
        assert bag(opened.plan(where).read(spark)) == expected, where
    assert opened.plan("label = 'v3'").read(spark).count() == 1


def test_nested_parquet_without_ids_or_mapping_is_refused_by_name(warehouse: Warehouse) -> None:
    """Fields of a struct are not counted: to the connector they are NULL. What is beside it is as it reads it."""
    spark, table = warehouse.spark, "ice.db.nested_by_position"
    source = warehouse.folder / "nested by position"
    rows = "select id, named_struct('a', id) as st, array(id) as li, id + 7 as late from range(0, 3, 1, 1)"
    spark.sql(rows).write.parquet(str(source))
    execute(
        spark,
        f"create table {table} (id bigint, st struct<a: bigint>, li array<bigint>, n bigint) using iceberg",
        f"call ice.system.add_files(table => 'db.nested_by_position', source_table => '`parquet`.`{source}`')",
        f"alter table {table} unset tblproperties ('schema.name-mapping.default')",
    )
    opened = tamis.open(warehouse.path("nested_by_position"))
    for where in (None, "n > 7 and id < 2 and li[0] = 1"):
        theirs = spark.table(table).select("id", "li", "n")
        expected = bag(theirs if where is None else theirs.where(where))
        assert expected
        assert bag(opened.plan(where).read(spark, columns=["id", "li", "n"])) == expected
    for columns, where in ((None, None), (["id"], "st.a > 1")):
        with pytest.raises(UnsupportedFormatError, match=r"carries no field ids.*inside column 'st' cannot"):
            opened.plan(where).read(spark, columns=columns)


def test_one_parquet_file_without_ids_among_others_is_read_by_position(warehouse: Warehouse) -> None:
    """Neither the first nor the last: it is found by its name, which is not as Iceberg names files."""
    spark, table = warehouse.spark, "ice.db.one_by_position"
    source = warehouse.folder / "one by position"
    spark.sql("select id as x, 'v' || id as y from range(0, 3, 1, 1)").write.parquet(str(source))
    execute(
        spark,
        f"create table {table} (id bigint, name string) using iceberg",
        f"insert into {table} values (100, 'first')",
        f"call ice.system.add_files(table => 'db.one_by_position', source_table => '`parquet`.`{source}`')",
        f"alter table {table} unset tblproperties ('schema.name-mapping.default')",
        f"insert into {table} values (200, 'last')",
        f"alter table {table} rename column name to label",
    )
    opened = tamis.open(warehouse.path("one_by_position"))
    for where in (None, "label = 'v1' or id > 150"):
        theirs = spark.table(table)
        expected = bag(theirs if where is None else theirs.where(where))
        assert len(expected) == (5 if where is None else 2)
        assert bag(opened.plan(where).read(spark)) == expected, where
