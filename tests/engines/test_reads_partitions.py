# ruff: noqa: S608 - SQL made of the tests' own names
"""Identity partition columns: where a file lacks one, the partition's value stands in, whatever its metrics say."""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tamis
from tests.engines.conftest import Warehouse
from tests.engines.reading import METADATA, Java, bag, connector, delete_rows, make, same, tamis_rows

pytestmark = pytest.mark.engine

ID = b"PARQUET:field_id"


def ids(**columns: tuple[int, pa.DataType]) -> pa.Schema:
    """A schema whose columns carry these field ids."""
    return pa.schema([pa.field(name, kind, metadata={ID: str(number)}) for name, (number, kind) in columns.items()])


def add_file(
    warehouse: Warehouse, name: str, rows: pa.Table, partition: list[str | None], claimed: pa.Table | None = None
) -> Path:
    """Append a Parquet file that holds exactly rows, with the metrics of a file that holds what is claimed."""
    java = Java(warehouse.spark)
    loaded = java.load(name)
    folder = Path(warehouse.path(name)) / "data"
    folder.mkdir(exist_ok=True)
    path = folder / f"foreign-{len(list(folder.rglob('*.parquet')))}.parquet"
    pq.write_table(rows if claimed is None else claimed, path)
    config = java.iceberg.MetricsConfig.forTable(loaded)
    metrics = java.iceberg.parquet.ParquetUtil.fileMetrics(java.iceberg.Files.localInput(str(path)), config)
    pq.write_table(rows, path)
    file = (
        java.iceberg.DataFiles.builder(loaded.spec())
        .withPath(str(path))
        .withFormat("parquet")
        .withFileSizeInBytes(path.stat().st_size)
        .withMetrics(metrics)
        .withPartitionValues(java.listed(partition))
        .build()
    )
    loaded.newAppend().appendFile(file).commit()
    return path


@pytest.mark.parametrize("files", [1, 5])
def test_columns_that_files_lack_have_the_partitions_value(warehouse: Warehouse, files: int) -> None:
    """Metrics count the column all the same: it was read as NULL, and a row filter then lost the row."""
    name = f"lacking_{files}"
    make(warehouse, name, "id bigint, region string, k int, event string", partition="region, k")
    schema = ids(id=(1, pa.int64()), event=(4, pa.string()))
    full = ids(id=(1, pa.int64()), region=(2, pa.string()), k=(3, pa.int32()), event=(4, pa.string()))
    for number in range(files):
        rows = pa.table([[number, number + 100], ["click", "view"]], schema=schema)
        values = [rows["id"], [f"r{number}"] * 2, [40 + number] * 2, rows["event"]]
        add_file(warehouse, name, rows, [f"r{number}", str(40 + number)], pa.table(values, schema=full))
    assert same(warehouse, name) == 2 * files
    assert same(warehouse, name, "k = 40 and upper(event) = 'CLICK'") == 1
    assert same(warehouse, name, "region = 'r0' and id >= 0", ["id"]) == 2
    assert same(warehouse, name, "region is null and id % 2 >= 0") == 0
    assert same(warehouse, name, "coalesce(k, -1) < 42 and event <> 'x'", ["k", "region"]) == min(files, 2) * 2
    frame = tamis_rows(warehouse, name).where("k >= 40 and region like 'r%'")  # a filter that comes later
    assert frame.count() == 2 * files


def test_files_that_have_the_column_and_files_that_lack_it_are_read_together(warehouse: Warehouse) -> None:
    """One table, several writers, a spec without the column, NULL partitions, deletes of both kinds."""
    name = "mixed_lacking"
    insert = "insert into {{t}} select id, id % 3, id * 2 from (select int(id) as id from range({}, {}))"
    make(warehouse, name, "id int, p int, x int", insert.format(0, 30), partition="p")
    schema = ids(id=(1, pa.int32()), x=(3, pa.int32()))
    for key in ("0", "7", None):
        rows = pa.table([[200 + int(key or 9), 300], [1, 2]], schema=schema)
        add_file(warehouse, name, rows, [key])
    warehouse.spark.sql(f"delete from ice.db.{name} where id in (3, 207)")
    warehouse.spark.sql(f"alter table ice.db.{name} drop partition field p")
    warehouse.spark.sql(insert.format(30, 40).replace("{t}", f"ice.db.{name}"))
    delete_rows(warehouse, name, [{"p": 2}])
    assert same(warehouse, name) == 31
    for where in ("p = 7", "p is null and x >= 0", "p in (0, 7) and x % 2 >= 0", "p > 0 or x = 1", "id > 100"):
        same(warehouse, name, where)
    ours = tamis_rows(warehouse, name, metadata_columns=METADATA)
    assert bag(ours) == bag(connector(warehouse, name, columns=["id", "p", "x", *METADATA]))
    grouped = tamis_rows(warehouse, name).groupBy("p").count()
    assert bag(grouped) == bag(connector(warehouse, name).groupBy("p").count())


@pytest.mark.parametrize("vectorised", ["true", "false"])
def test_every_type_stands_in_alone_and_among_others(warehouse: Warehouse, vectorised: str) -> None:
    """One value is a default of the reader, several are looked up by file: both ways give the connector's values."""
    name = f"lacking_types_{vectorised}"
    columns = {
        "i": ("int", "-7", "8"),
        "l": ("bigint", str(-(2**63)), str(2**63 - 1)),
        "f": ("float", "-Infinity", "0.1"),
        "g": ("double", "1.5", "2.25"),
        "b": ("boolean", "true", "false"),
        "s": ("string", "it's a \\ n\u00fcmber", ""),
        "d": ("date", "0001-01-01", "9999-12-31"),
        "c": ("decimal(9, 2)", "-1.25", "9999999.99"),
        "e": ("decimal(38, 2)", "-1.25", "99999999999999999999.25"),
        "bin": ("binary", "AP8=", ""),
    }
    listed = ", ".join(f"{column} {kind}" for column, (kind, _, _) in columns.items())
    make(warehouse, name, f"id bigint, {listed}", partition=", ".join(columns))
    warehouse.spark.conf.set("spark.sql.parquet.enableVectorizedReader", vectorised)
    try:
        schema = ids(id=(1, pa.int64()))
        firsts = [first for _, first, _ in columns.values()]
        add_file(warehouse, name, pa.table([[1, 2]], schema=schema), firsts)
        assert same(warehouse, name) == 2
        assert same(warehouse, name, "i = -7 and id % 2 >= 0 and s like '%\\\\\\\\%' and b") == 2
        seconds = [second for _, _, second in columns.values()]
        add_file(warehouse, name, pa.table([[3]], schema=schema), seconds)
        add_file(warehouse, name, pa.table([[4]], schema=schema), [None] * len(columns))
        texts = [f"cast({column} as string) as {column}" for column in ("id", *columns)]
        ours, theirs = tamis_rows(warehouse, name).selectExpr(*texts), connector(warehouse, name).selectExpr(*texts)
        assert bag(ours) == bag(theirs)
        assert same(warehouse, name, "i is null and id % 2 >= 0") == 1
    finally:
        warehouse.spark.conf.set("spark.sql.parquet.enableVectorizedReader", "true")


def bits(value: float) -> bytes:
    return struct.pack("<d", math.nan if math.isnan(value) else value)


def test_floats_that_files_have_are_the_files(warehouse: Warehouse) -> None:
    """A partition of 0.0 may hold -0.0; NaN and infinities are what they are. Where the file lacks them: metadata."""
    make(warehouse, "floats", "id bigint, g double, f float", partition="g")
    both = ids(id=(1, pa.int64()), g=(2, pa.float64()), f=(3, pa.float32()))
    files = {"0.0": [0.0, -0.0], "-0.0": [-0.0], "NaN": [math.nan], "Infinity": [math.inf], "-Infinity": [-math.inf]}
    for key, values in files.items():
        rows = pa.table([[1] * len(values), values, [0.5] * len(values)], schema=both)
        add_file(warehouse, "floats", rows, [key])
    wanted = sorted(bits(value) for values in files.values() for value in values)
    assert sorted(bits(row.g) for row in tamis_rows(warehouse, "floats").collect()) == wanted
    lacking = pa.table([[2], [0.5]], schema=ids(id=(1, pa.int64()), f=(3, pa.float32())))
    for key in ("-0.0", "NaN", "2.5"):
        add_file(warehouse, "floats", lacking, [key])
    found = [bits(row.g) for row in tamis_rows(warehouse, "floats", "id = 2 and f < 1").collect()]
    assert sorted(found) == sorted(map(bits, (-0.0, math.nan, 2.5)))
    assert tamis_rows(warehouse, "floats", "g = 2.5D and id % 2 = 0").count() == 1


def physical(frame: Any) -> str:  # noqa: ANN401
    return str(frame._jdf.queryExecution().executedPlan().toString())


def test_partition_columns_cost_no_join_and_no_reading_where_nobody_asks(warehouse: Warehouse) -> None:
    """A join for each row was the price: a value is looked up only for rows whose file lacks it."""
    name = "joinless"
    insert = "insert into {t} select id, id % 5, id * 2 from range(50)"
    make(warehouse, name, "id bigint, p bigint, x bigint", insert, partition="p")
    every = physical(tamis_rows(warehouse, name, "x > 10 and p <> 3"))
    assert "Join" not in every
    assert "GreaterThan(x,10)" in every
    one = physical(tamis_rows(warehouse, name, "x > 10 and p = 3"))
    assert "Subquery" not in one
    assert "EqualTo(p,3)" in one
    unasked = physical(tamis_rows(warehouse, name).select("x"))
    assert "ReadSchema: struct<x:bigint" in unasked
    assert "p:bigint" not in unasked
    assert "Subquery" not in unasked


def test_a_default_does_not_stand_in_for_a_partition(warehouse: Warehouse) -> None:
    """A NULL partition is NULL, though the column has an initial default: the partition's value comes first."""
    name = "defaulted_partition"
    make(warehouse, name, "id bigint", "insert into {t} values (1)", version=3)
    java = Java(warehouse.spark)
    literal = java.iceberg.expressions.Literal.of(9)
    loaded = java.load(name)
    loaded.updateSchema().addColumn("k", java.types.IntegerType.get(), literal).commit()
    warehouse.spark.sql(f"refresh table ice.db.{name}")
    warehouse.spark.sql(f"alter table ice.db.{name} add partition field k")
    schema = ids(id=(1, pa.int64()))
    for number, key in enumerate((None, "4")):
        add_file(warehouse, name, pa.table([[10 + number]], schema=schema), [key])
        opened = tamis.open(warehouse.path(name))
        wanted = [(1, 9), (10, None), (11, 4)][: number + 2]
        assert sorted(map(tuple, opened.plan().read(warehouse.spark).collect())) == wanted
