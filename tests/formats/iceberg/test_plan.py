"""Planning over tables that have evolved: no file with a matching row is missed, and few are kept in vain."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform, MonthTransform
from pyiceberg.types import IntegerType, LongType, NestedField, StringType, TimestampType

import tamis
from tamis.errors import BindError, UnevaluableError
from tamis.formats.iceberg.table import IcebergTable
from tests.making.cli_tables import catalog, events, folder_of

Row = dict[int, Any]
"""Values by field id: names come and go."""
Value = TypeVar("Value")
ID, REGION, TS, SCORE = 1, 2, 3, 4

SCHEMA = Schema(
    NestedField(ID, "id", IntegerType()),
    NestedField(REGION, "region", StringType()),
    NestedField(TS, "ts", TimestampType()),
    NestedField(SCORE, "score", LongType()),
)


def data(names: tuple[str, str, str, str], first: int, regions: list[str | None], wide: bool = False) -> pa.Table:
    """Three rows a region, a day each."""
    count = 3 * len(regions)
    ids = list(range(first, first + count))
    return pa.table(
        {
            names[0]: pa.array(ids, pa.int64() if wide else pa.int32()),
            names[1]: pa.array([region for region in regions for _ in range(3)], pa.string()),
            names[2]: pa.array([dt.datetime(2024, 1 + n % 3, 1 + n % 28, n % 24) for n in ids], pa.timestamp("us")),
            names[3]: pa.array([None if n % 5 == 0 else n * 7 % 40 for n in ids], pa.int64()),
        }
    )


@pytest.fixture(scope="module")
def evolved(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Five specs, one of them on a column that is dropped later; a renamed column, and a promoted type."""
    spec = PartitionSpec(PartitionField(REGION, 1000, IdentityTransform(), "region"))
    table = catalog(tmp_path_factory.mktemp("evolved")).create_table("db.t", SCHEMA, partition_spec=spec)
    table.append(data(("id", "region", "ts", "score"), 0, ["eu", "us", None]))
    with table.update_spec() as update:
        update.remove_field("region")
        update.add_field("ts", MonthTransform(), "ts_month")
    table.append(data(("id", "region", "ts", "score"), 10, ["eu", "us", None]))
    with table.update_schema() as change:
        change.rename_column("region", "area")
        change.update_column("id", LongType())
    with table.update_spec() as update:
        update.remove_field("ts_month")
        update.add_field("id", BucketTransform(4), "id_bucket")
        update.add_field("area", IdentityTransform(), "area")
    table.append(data(("id", "area", "ts", "score"), 20, ["eu", "uk"], wide=True))
    with table.update_spec() as update:
        update.remove_field("id_bucket")
        update.remove_field("area")
        update.add_field("score", IdentityTransform(), "score")
    table.append(data(("id", "area", "ts", "score"), 30, ["us"], wide=True))
    with table.update_spec() as update:
        update.remove_field("score")
    table.append(data(("id", "area", "ts", "score"), 40, ["uk", "eu"], wide=True))
    return table


def rows_of(path: str) -> list[Row]:
    """The rows of a data file, by field id."""
    found = pq.read_table(unquote(path.removeprefix("file://")), partitioning=None)
    ids = [int(field.metadata[b"PARQUET:field_id"]) for field in found.schema]
    return [dict(zip(ids, row.values(), strict=True)) for row in found.to_pylist()]


def known(test: Callable[[Value], bool], value: Value | None) -> bool:
    """A condition on a value; on NULL none is true."""
    return value is not None and test(value)


CASES: list[tuple[str, Callable[[Row], bool]]] = [
    ("id = 21", lambda row: row[ID] == 21),
    ("id > 12 and id < 15", lambda row: 12 < row[ID] < 15),
    ("id in (1, 13, 44)", lambda row: row[ID] in {1, 13, 44}),
    ("id not in (1, 13, 44)", lambda row: row[ID] not in {1, 13, 44}),
    ("area = 'eu'", lambda row: row[REGION] == "eu"),
    ("area is null", lambda row: row[REGION] is None),
    ("area is not null and id < 5", lambda row: row[REGION] is not None and row[ID] < 5),
    ("area >= 'uk'", lambda row: known(lambda value: value >= "uk", row[REGION])),
    ("area = 'nowhere'", lambda _: False),
    ("ts >= '2024-03-01T00:00:00'", lambda row: row[TS] >= dt.datetime(2024, 3, 1)),
    ("ts < '2024-01-02T00:00:00' or id = 33", lambda row: row[TS] < dt.datetime(2024, 1, 2) or row[ID] == 33),
    ("score = 14", lambda row: row[SCORE] == 14),
    ("score is null", lambda row: row[SCORE] is None),
    ("score > 30 and area = 'us'", lambda row: known(lambda value: value > 30, row[SCORE]) and row[REGION] == "us"),
    ("not (area = 'eu' or area = 'us')", lambda row: known(lambda value: value not in {"eu", "us"}, row[REGION])),
]


@pytest.mark.parametrize(("where", "matches"), CASES, ids=[where for where, _ in CASES])
def test_every_file_with_a_matching_row_is_kept_and_none_that_pyiceberg_drops(
    evolved: Table, where: str, matches: Callable[[Row], bool]
) -> None:
    paths = [one["file_path"] for one in evolved.inspect.data_files().to_pylist()]
    holding = {path for path in paths if any(matches(row) for row in rows_of(path))}
    plan = tamis.open(folder_of(evolved)).plan(where)
    kept = set(plan.files["path"].to_pylist())
    assert holding <= kept
    assert kept <= {task.file.file_path for task in evolved.scan(where).plan_files()}
    whole = {one["path"] for one in plan.files.to_pylist() if one["verdict"] == "all"}
    assert whole <= {path for path in paths if all(matches(row) for row in rows_of(path))}
    assert plan.stats.files == len(paths)


def test_evolved_table_is_pruned_by_every_spec(evolved: Table) -> None:
    """What lies under a spec that has the column is dropped by its partition; statistics do the rest."""
    stats = tamis.open(folder_of(evolved)).plan("area = 'eu' and id = 21").stats
    assert stats.kept == 1
    assert len(stats.specs) == 5


def test_dropped_source_column_still_tells_partitions_apart(tmp_path: Path) -> None:
    """Its type is found in a historical schema; an old file's partition reads as ever."""
    table = catalog(tmp_path).create_table(
        "db.t", SCHEMA, partition_spec=PartitionSpec(PartitionField(SCORE, 1000, IdentityTransform(), "score"))
    )
    table.append(data(("id", "region", "ts", "score"), 1, ["eu"]))
    with table.update_spec() as update:
        update.remove_field("score")
    with table.update_schema() as change:
        change.delete_column("score")
    plan = tamis.open(folder_of(table)).plan("id = 2")
    assert plan.files["partition"].to_pylist() == ["score=14"]
    with pytest.raises(BindError):
        tamis.open(folder_of(table)).plan("score = 14")


def test_void_field_of_a_version_1_table_says_nothing(tmp_path: Path) -> None:
    """Version 1 drops a field by turning it into void: its nulls are no NULLs of the column."""
    spec = PartitionSpec(
        PartitionField(REGION, 1000, IdentityTransform(), "region"),
        PartitionField(TS, 1001, DayTransform(), "ts_day"),
    )
    table = catalog(tmp_path).create_table("db.t", SCHEMA, partition_spec=spec, properties={"format-version": "1"})
    table.append(data(("id", "region", "ts", "score"), 1, ["eu"]))
    with table.update_spec() as update:
        update.remove_field("region")
    table.append(data(("id", "region", "ts", "score"), 31, ["us"]))
    assert "void" in {str(field.transform) for field in table.spec().fields}
    opened = tamis.open(folder_of(table))
    assert opened.format == "iceberg v1"
    assert {one["spec_id"] for one in opened.plan("region = 'us'").files.to_pylist()} == {1}
    assert opened.plan("region is null").stats.kept == 0
    assert opened.plan("region = 'us' and ts >= '2024-01-01'").stats.kept == 3


def with_unknown_transform(table: Table) -> str:
    """The table as a newer writer might have partitioned it."""
    path = Path(table.metadata_location.removeprefix("file://"))
    document = json.loads(path.read_text(encoding="utf-8"))
    document["partition-specs"][0]["fields"][0]["transform"] = "zorder[7]"
    path.write_text(json.dumps(document), encoding="utf-8")
    return str(path)


def test_unknown_transform_keeps_files_is_counted_and_fails_in_strict_mode(tmp_path: Path) -> None:
    opened = tamis.open(with_unknown_transform(events(tmp_path)))
    plan = opened.plan("region = 'nowhere' or id < 100")
    assert plan.stats.kept == 4
    assert plan.stats.filter_stats.unevaluable_specs == 1
    assert plan.stats.filter_stats.fail_open_files == 2
    assert "kept without proof: 2 files" in plan.explain()
    with pytest.raises(UnevaluableError):
        opened.plan("region = 'eu'", strict=True)


def test_unknown_transform_does_not_hinder_statistics(tmp_path: Path) -> None:
    assert tamis.open(with_unknown_transform(events(tmp_path))).plan("region = 'uk'").stats.kept == 1


# -- manifests ------------------------------------------------------------------------------------------------


def counted(table: Table) -> tuple[tamis.Table, list[str]]:
    """The table, and the list of metadata files that it will have fetched."""
    opened = tamis.open(folder_of(table))
    source = opened.source
    assert isinstance(source, IcebergTable)
    fetched: list[str] = []
    fetch = source.fetch

    def counting(location: str) -> bytes:
        fetched.append(location)
        return fetch(location)

    return tamis.Table(replace(source, fetch=counting)), fetched


@pytest.mark.parametrize(
    ("where", "manifests"),
    [
        ("true", 4),
        ("region = 'eu'", 2),
        ("region = 'uk'", 1),
        ("region = 'uk' and ts < '2024-01-01'", 0),
        ("ts >= '2024-01-04'", 3),
        ("id = 1", 4),
        ("region in ('eu', 'us') and ts > '2024-01-03 23:59:59.999999'", 2),
        ("region is null", 0),
    ],
)
def test_manifest_that_cannot_match_is_not_fetched(
    tmp_path_factory: pytest.TempPathFactory, where: str, manifests: int
) -> None:
    """Four manifests: eu and us by region, eu on the 3rd and uk on the 4th by region and day."""
    opened, fetched = counted(events(tmp_path_factory.mktemp("t")))
    plan = opened.plan(where)
    assert len(fetched) == 1 + manifests
    assert plan.stats.layers[0].files_before - plan.stats.layers[0].files_after == 4 - manifests
    assert plan.stats.files == 4


def test_manifests_that_a_join_prunes_are_credited_to_its_filter(tmp_path: Path) -> None:
    """What the predicate prunes anyway is not the filter's merit, and of two filters the first one counts."""
    opened, fetched = counted(events(tmp_path))
    regions = tamis.RuntimeFilter.of("region", ["us", "uk"])
    nobody = tamis.RuntimeFilter.of("region", ["nowhere"])
    plan = opened.plan("ts >= '2024-01-04'", runtime_filters=[regions])
    (credit,) = plan.stats.runtime_filters
    assert (credit.files, credit.dropped["manifest"], credit.idle) == (1, 1, None)
    assert plan.files["partition"].to_pylist() == ["region=uk/ts_day=2024-01-04"]
    assert len(fetched) == 3  # the manifest list, and the manifests of us and uk
    both = opened.plan(runtime_filters=[regions, nobody]).stats.runtime_filters
    assert [one.dropped["manifest"] for one in both] == [2, 2]
    assert [one.idle for one in both] == [None, None]
