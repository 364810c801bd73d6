"""Variants, of tables of version 3: rows are those of Iceberg's connector, whatever form the files have them in."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame

import tamis
from tamis.errors import UnreadableColumnError
from tests.engines.conftest import Warehouse
from tests.engines.reading import bag, connector, make

pytestmark = pytest.mark.engine

JSON = """parse_json('{"a": ' || id || ', "b": [1, {"c": null}], "d": "x"}')"""
ROWS = (
    f"select cast(id as int), if(id % 5 = 3, null, {JSON}), "
    "named_struct('v', parse_json('[' || id || ']'), 'n', id), "
    "array(parse_json('null'), null)"
)
SHOWN = ("id", "to_json({v}) as v", "to_json(st.v) as sv", "st.n", "to_json(lv[0]) as first", "lv[1] is null")
CONDITIONS = (
    None,
    "{v} is null or id = 1",
    "variant_get({v}, '$.a', 'int') > 4 and id < 30",
    "try_variant_get(st.v, '$[0]', 'int') in (2, 21) and {v} is not null",
)


def shown(rows: DataFrame, name: str) -> DataFrame:
    return rows.selectExpr(*(one.replace("{v}", name) for one in SHOWN))


@pytest.mark.parametrize("shredded", ["false", "true"])
def test_variants_read_as_the_connector_reads_them(warehouse: Warehouse, shredded: str) -> None:
    """Renamed, filtered, beside deletes by position and by vector, whole or in parts, in structs and lists."""
    name = make(
        warehouse,
        f"variants_{shredded}",
        "id int, v variant, st struct<v: variant, n: bigint>, lv array<variant>",
        f"insert into {{t}} {ROWS} from range(0, 10, 1, 1)",
        "delete from {t} where id in (2, 7)",
        "alter table {t} rename column v to w",
        "alter table {t} add column v variant",
        f"insert into {{t}} {ROWS}, parse_json('true') from range(20, 26, 1, 1)",
        version=3,
        write_parquet_shred__variants=shredded,
        read_parquet_vectorization_enabled="false",  # with it the connector fails on them
    )
    files = sorted(Path(warehouse.path(name)).rglob("data/*.parquet"))
    assert all((b"typed_value" in file.read_bytes()) is (shredded == "true") for file in files)
    opened = tamis.open(warehouse.path(name))
    for where in CONDITIONS:
        condition = None if where is None else where.replace("{v}", "w")
        ours = opened.plan(condition).read(warehouse.spark)
        theirs = connector(warehouse, name, condition)
        assert ours.schema.simpleString() == theirs.schema.simpleString()
        found = bag(shown(ours, "w"))
        assert found == bag(shown(theirs, "w")), where
        assert found
    late = opened.plan("v is not null").read(warehouse.spark, columns=["v", "id"], metadata_columns=["_pos"])
    assert bag(late.selectExpr("to_json(v)", "id", "_pos")) == bag(
        connector(warehouse, name, "v is not null").selectExpr("to_json(v)", "id", "_pos")
    )
    assert late.count() == 6


def test_variants_in_avro_files_are_refused_by_name(warehouse: Warehouse) -> None:
    """Other columns of such files are read."""
    name = make(
        warehouse,
        "variants_avro",
        "id int, v variant",
        "insert into {t} select cast(id as int), parse_json('1') from range(0, 3, 1, 1)",
        version=3,
        write_format_default="avro",
    )
    plan = tamis.open(warehouse.path(name)).plan()
    assert plan.read(warehouse.spark, columns=["id"]).count() == 3
    with pytest.raises(UnreadableColumnError, match="'v' of type variant from files that are read with Arrow"):
        plan.read(warehouse.spark)
