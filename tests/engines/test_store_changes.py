"""Changes of tables in an object store: files are read and written with whose settings the caller says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest
from pyiceberg.catalog import Catalog, load_catalog

import tamis
from tamis.errors import SparkStorageError, TamisError, UnwritableFileError
from tests.engines.servers import ObjectStore, jars_of
from tests.engines.stores import deleted_from, properties, upgraded
from tests.making.clusters import cluster, run
from tests.making.sparks import Started

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.engine

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def spark(started_spark: Started) -> SparkSession:
    if started_spark.missing or started_spark.storeless:
        pytest.skip(started_spark.missing or started_spark.storeless or "")
    return started_spark.session


@pytest.fixture(scope="module")
def given(store: ObjectStore, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    uri = f"sqlite:///{tmp_path_factory.mktemp('changes') / 'catalog.db'}"
    return properties(store.endpoint, uri, store.key, store.secret)


@pytest.fixture(scope="module")
def catalog(given: Mapping[str, str]) -> Catalog:
    return load_catalog(**given)


def changed(table: tamis.Table, spark: SparkSession, storage: Literal["session", "catalog"]) -> list[str]:
    """One statement after another of each kind, in both modes; the rows that they leave."""
    new = spark.createDataFrame(
        [(40, 40, "eu", "new"), (41, 41, "us", None)], "id long, row long, region string, name string"
    )
    table = table.append(new, storage=storage).table
    table = table.delete("id in (2, 16, 40)", spark=spark, mode="merge-on-read", storage=storage).table
    table = table.delete("id = 5 or row = 20", spark=spark, mode="copy-on-write", storage=storage).table
    table = table.update({"name": "'u' || id"}, where="id % 7 = 3", spark=spark, storage=storage).table
    table = table.update(
        {"name": "upper(name)"}, where="region = 'us'", spark=spark, mode="merge-on-read", storage=storage
    ).table
    source = spark.createDataFrame([(3, "three"), (23, "much"), (50, "fifty")], "id long, name string")
    for mode in ("copy-on-write", "merge-on-read"):
        merge = table.merge(source, "t.id = s.id", mode=mode, storage=storage).when_matched_update(
            {"name": "s.name || t.name"}
        )
        table = merge.when_not_matched_insert({"id": "s.id", "name": "s.name"}).run(spark).table
    last = spark.createDataFrame([(60, "sixty")], "id long, name string")
    table = table.overwrite(last, "id between 8 and 11", storage=storage).table
    rows = table.plan("true").read(spark, columns=["id", "region", "name"], storage=storage)
    return sorted(map(repr, rows.collect()))


@pytest.mark.parametrize("version", ["2", "3"])
def test_changes_in_a_store_leave_the_rows_that_they_leave_on_disk(
    spark: SparkSession, catalog: Catalog, given: Mapping[str, str], tmp_path: Path, version: str
) -> None:
    """Nobody but the catalog knows how to enter the store: neither the session nor the environment does."""
    uri = f"sqlite:///{tmp_path / 'catalog.db'}"
    disk = load_catalog("disk", type="sql", uri=uri, warehouse=tmp_path.as_uri())
    name = f"changed_{version}"
    for one in (disk, catalog):
        table = deleted_from(one, name)
        if version == "3":
            upgraded(one, table)
    here = changed(tamis.open(f"db.{name}", catalog=disk), spark, "session")
    there = changed(tamis.open(f"db.{name}", catalog=given), spark, "catalog")
    assert there == here
    assert len(here) == 23


def test_a_change_without_access_to_the_store_says_what_to_do_and_leaves_the_table(
    spark: SparkSession, catalog: Catalog, given: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Executors know nothing of the catalog unless they are told."""
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    deleted_from(catalog, "closed")
    table = tamis.open("db.closed", catalog=given)
    rows = spark.createDataFrame([(1, "x")], "id long, name string")
    with pytest.raises(UnwritableFileError, match="storage='catalog'") as caught:
        table.append(rows)
    assert caught.value.path.startswith("s3://lake/warehouse/db/closed/data/")
    assert "\n" not in str(caught.value)
    with pytest.raises(SparkStorageError, match="storage='catalog'"):
        table.delete("id = 3", spark=spark)
    assert tamis.open("db.closed", catalog=given).snapshot_id == table.snapshot_id


def test_access_that_cannot_be_handed_on_is_refused_before_anything_is_written(
    spark: SparkSession, catalog: Catalog, given: Mapping[str, str]
) -> None:
    deleted_from(catalog, "signed")
    table = tamis.open(
        "db.signed", catalog={**given, "s3.signer": "S3V4RestSigner", "s3.signer.uri": "http://127.0.0.1:9"}
    )
    with pytest.raises(TamisError, match=r"s3\.signer"):
        table.append(spark.createDataFrame([(1, "x")], "id long, name string"), storage="catalog")


def test_a_connect_server_keeps_no_credentials_of_a_change(
    catalog: Catalog, given: Mapping[str, str], store: ObjectStore, tmp_path: Path
) -> None:
    """What writes files travels to it with its requests, which it writes into its event log."""
    deleted_from(catalog, "served")
    events = tmp_path / "events"
    events.mkdir()
    jars = ",".join(map(str, jars_of("hadoop-aws").glob("*.jar")))
    keeps = ("spark.eventLog.enabled=true", f"spark.eventLog.dir={events}", "spark.eventLog.compress=false")
    with cluster("server", tmp_path / "server", f"spark.jars={jars}", *keeps) as server:
        found = run(server, HERE / "connect_changes.py", json.dumps(dict(given)))
    assert found == {"appended": 2, "updated": 3, "left": 29}
    logged = b"".join(path.read_bytes() for path in events.rglob("*") if path.is_file())
    assert b"mapInArrow" in logged or b"MapInArrow" in logged
    assert store.secret.encode() not in logged
    assert store.key.encode() not in logged
