"""Rows on Spark of tables in an object store are those of the same tables on disk: every format, kind of delete."""
# ruff: noqa: S608 - statements are made of the tests' own names

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest
from pyiceberg.catalog import Catalog, load_catalog

import tamis
from tamis.errors import SparkStorageError, TamisError
from tamis.formats.storage.objects import EnvironmentStorage
from tests.engines.paimon_engine import PaimonEngine
from tests.engines.servers import ObjectStore, Unavailable, jars_of, rest_server
from tests.engines.stores import deleted_from, properties, told
from tests.making.clusters import Cluster, cluster, run
from tests.making.delta_logs import DeltaLog, add
from tests.making.sparks import Started

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.engine

HERE = Path(__file__).parent
WRONG = "wr0ngAndNobodyKnowsIt"


@pytest.fixture(scope="module")
def spark(started_spark: Started) -> SparkSession:
    if started_spark.missing or started_spark.storeless:
        pytest.skip(started_spark.missing or started_spark.storeless or "")
    return started_spark.session


@pytest.fixture(scope="module")
def on_disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("disk")


@pytest.fixture(scope="module")
def given(store: ObjectStore, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    uri = f"sqlite:///{tmp_path_factory.mktemp('catalog') / 'catalog.db'}"
    return properties(store.endpoint, uri, store.key, store.secret)


@pytest.fixture(scope="module")
def catalog(given: Mapping[str, str]) -> Catalog:
    """With a table that has deletes of two kinds."""
    found = load_catalog(**given)
    deleted_from(found)
    return found


@pytest.fixture
def environment(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """What this process is told of the store; Spark's was started before."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", store.endpoint)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", store.key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", store.secret)


@pytest.fixture
def entered(spark: SparkSession, store: ObjectStore) -> Iterator[None]:
    """A session that may enter the bucket by its own settings."""
    settings = {
        "fs.s3a.bucket.lake.endpoint": store.endpoint,
        "fs.s3a.bucket.lake.endpoint.region": "us-east-1",
        "fs.s3a.bucket.lake.path.style.access": "true",
        "fs.s3a.bucket.lake.access.key": store.key,
        "fs.s3a.bucket.lake.secret.key": store.secret,
        # Clients are kept by scheme and bucket: that of another test's store is not to be met.
        "fs.s3a.impl.disable.cache": "true",
    }
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield
    for name in settings:
        spark.conf.unset(name)


def put(folder: Path, location: str) -> None:
    """Copy a folder into the store as clients do: what comes there otherwise has no ETag, and Hadoop asks for it."""
    storage = EnvironmentStorage()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            storage.put(f"{location}/{path.relative_to(folder)}", path.read_bytes())


@pytest.mark.usefixtures("catalog")
def test_iceberg_in_a_store_gives_the_rows_that_it_gives_on_disk(
    spark: SparkSession, given: Mapping[str, str], on_disk: Path
) -> None:
    """Position deletes by path, equality deletes, specs, a renamed column; paths say s3://, and Spark has s3a://."""
    uri = f"sqlite:///{on_disk / 'catalog.db'}"
    local = deleted_from(load_catalog("disk", type="sql", uri=uri, warehouse=on_disk.as_uri()))
    here = told(tamis.open(local), spark, "session")
    there = told(tamis.open("db.events", catalog=given), spark, "catalog")
    assert there == here
    assert len(here["rows"]["true"]) == 28
    assert here["places"][1] == {True}
    assert here["planned"] == (True, True)


@pytest.mark.usefixtures("catalog", "entered")
def test_a_session_with_settings_of_its_own_reads_by_the_scheme_that_it_has(
    spark: SparkSession, given: Mapping[str, str]
) -> None:
    """And rows still show the path as the metadata has it."""
    table = tamis.open("db.events", catalog=given)
    plan = table.plan("id < 20", spark=spark, executors="always")
    rows = plan.read(spark, columns=["id"], metadata_columns=["_file"]).collect()
    assert sorted(row["id"] for row in rows) == [0, 2, 3, 5, *range(6, 17), 19]
    assert {row["_file"] for row in rows} <= set(plan.files["path"].to_pylist())
    assert all(row["_file"].startswith("s3://") for row in rows)


@pytest.mark.usefixtures("environment")
def test_vectors_in_a_store_delete_the_rows_that_they_delete_on_disk(
    spark: SparkSession, store: ObjectStore, on_disk: Path
) -> None:
    """Written by Spark's own Iceberg, in both places; opened by the metadata file with the environment's access."""
    client = "org.apache.hadoop.fs.s3a.S3AFileSystem"
    settings = {"impl": client, "impl.disable.cache": "true"}
    s3a = {"endpoint": store.endpoint, "endpoint.region": "us-east-1", "path.style.access": "true"}
    s3a |= {"access.key": store.key, "secret.key": store.secret}
    found = []
    for name, warehouse in (("vectors_here", str(on_disk)), ("vectors_there", "s3://lake/spark")):
        home = f"spark.sql.catalog.{name}"
        spark.conf.set(home, "org.apache.iceberg.spark.SparkCatalog")
        spark.conf.set(f"{home}.type", "hadoop")
        spark.conf.set(f"{home}.warehouse", warehouse)
        for key, value in settings.items():
            spark.conf.set(f"{home}.hadoop.fs.s3.{key}", value)
        for key, value in s3a.items():
            spark.conf.set(f"{home}.hadoop.fs.s3a.{key}", value)
        table = f"{name}.db.vectors"
        keeps = "'format-version' = '3', 'write.delete.mode' = 'merge-on-read'"
        spark.sql(
            f"create table {table} (id bigint, region string, name string) using iceberg tblproperties ({keeps})"
        )
        rows = ("id", "case id % 3 when 0 then 'eu' when 1 then 'us' end as region", "'n' || id % 8 as name")
        spark.range(0, 32, 1, 2).selectExpr(*rows).writeTo(table).append()
        spark.sql(f"delete from {table} where id in (3, 4, 20, 31)")
        entries = f"{warehouse}/db/vectors/metadata/v3.metadata.json"
        found.append(told(tamis.open(entries), spark, "catalog"))
        assert [row[0] for row in spark.sql(f"select count(*) from {table}").collect()] == [28]
    assert found[0] == found[1]
    assert len(found[0]["rows"]["true"]) == 28


@pytest.mark.usefixtures("environment")
def test_delta_in_a_store_gives_the_rows_that_it_gives_on_disk(spark: SparkSession, on_disk: Path) -> None:
    """With deletion vectors, which lie in files of their own."""
    folder = on_disk / "delta"
    spark.sql(
        f"create table delta.`{folder}` (id bigint, region string, name string) using delta partitioned by (region) "
        "tblproperties ('delta.enableDeletionVectors' = 'true')"
    )
    values = ", ".join(f"({n}, {('null', chr(39) + 'eu' + chr(39))[n % 2]}, 'n{n % 8}')" for n in range(32))
    spark.sql(f"insert into delta.`{folder}` values {values}")
    spark.sql(f"delete from delta.`{folder}` where id in (3, 8)")
    put(folder, "s3://lake/delta")
    here = told(tamis.open(folder), spark, "session", places=False)
    assert told(tamis.open("s3://lake/delta"), spark, "catalog", places=False) == here
    assert len(here["rows"]["true"]) == 30


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize("keys", [[], ["id"]], ids=["append", "keys"])
def test_paimon_in_a_store_gives_the_rows_that_it_gives_on_disk(
    spark: SparkSession, paimon: PaimonEngine, keys: list[str]
) -> None:
    """A table with keys is merged by Spark there, and file by file here."""
    name = f"store_{len(keys)}"
    columns = {"id": "BIGINT NOT NULL", "region": "STRING", "name": "STRING"}
    options = {"bucket": "2" if keys else "-1", "write-only": "true"}
    folder = paimon.create(name, columns, primary_keys=keys, options=options)
    rows = [{"id": n, "region": ("eu", None)[n % 2], "name": f"n{n % 8}"} for n in range(32)]
    paimon("write", name, rows=rows)
    paimon("write", name, rows=[{"id": n, "region": "us", "name": "n7"} for n in range(28, 36)])
    put(folder, f"s3://lake/{name}")
    here = told(tamis.open(folder), spark, "session", places=False)
    assert told(tamis.open(f"s3://lake/{name}"), spark, "catalog", places=False) == here
    assert len(here["rows"]["true"]) == (36 if keys else 40)


@pytest.mark.usefixtures("catalog")
def test_credentials_are_in_nothing_that_is_shown_or_sent(
    spark: SparkSession, given: Mapping[str, str], store: ObjectStore, capfd: pytest.CaptureFixture[str]
) -> None:
    table = tamis.open("db.events", catalog=given)
    plan = table.plan("id > 3", spark=spark, executors="always", storage="catalog")
    frame = plan.read(spark, metadata_columns=["_file"])
    for mode in ("extended", "codegen", "cost", "formatted"):
        frame.explain(mode=mode)
    shown = [capfd.readouterr().out, repr(frame), repr(plan), plan.explain(), plan.explain("json"), str(plan.stats)]
    shown += [repr(table), repr(table.source.access()), *frame.inputFiles(), frame._jdf.queryExecution().toString()]
    shown += [str(row) for row in spark.sql("set -v").collect()]
    sent = [pickle.dumps(one) for one in (table, plan)]
    for secret in (store.key, store.secret):
        assert not [text for text in shown if secret in text]
        assert not [data for data in sent if secret.encode() in data]
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(table.source.access())
    assert pickle.loads(sent[1]).storage == "catalog"  # noqa: S301 - our own


def test_what_one_table_was_given_serves_no_other(
    spark: SparkSession, catalog: Catalog, given: Mapping[str, str]
) -> None:
    """Hadoop keeps one client for a scheme and a bucket: credentials of the first reader would serve the second."""
    loaded = catalog.load_table("db.events")
    right = tamis.open("db.events", catalog=given).plan()
    assert right.read(spark, storage="catalog").count() == 28
    loaded.io.properties |= {"s3.secret-access-key": WRONG}
    opened = tamis.open(load_catalog(**given).load_table("db.events"))
    plan = opened.plan()
    opened.source.fetch.io.properties |= {"s3.secret-access-key": WRONG}
    with pytest.raises(SparkStorageError, match="refuses who enters") as caught:
        plan.read(spark, storage="catalog").count()
    assert WRONG not in str(caught.value)
    assert WRONG not in str(caught.value.__cause__)
    assert right.read(spark, storage="catalog").count() == 28


@pytest.mark.usefixtures("catalog")
def test_a_session_without_credentials_is_told_which_settings_it_needs(
    spark: SparkSession, given: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(SparkStorageError) as caught:
        tamis.open("db.events", catalog=given).plan("id < 20").read(spark)
    error = caught.value
    assert (error.scheme, error.package) == ("s3", None)
    assert error.path.startswith("s3://lake/warehouse/db/events/data/")
    assert "spark.hadoop.fs.s3a.access.key" in error.settings
    assert "storage='catalog'" in str(error)
    assert "\n" not in str(error)


@pytest.fixture(scope="module")
def rest(store: ObjectStore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A REST catalog with its warehouse in the store, which vends credentials."""
    try:
        home = tmp_path_factory.mktemp("rest")
        with rest_server(home, Path(pyspark.__file__).parent / "jars", store) as uri:
            yield uri
    except Unavailable as reason:
        pytest.skip(str(reason))


def test_credentials_that_a_rest_catalog_vends_are_handed_on(
    spark: SparkSession, rest: str, store: ObjectStore
) -> None:
    """The client is given none: they come with the table."""
    client = {"name": "rest", "type": "rest", "uri": rest, "s3.endpoint": store.endpoint, "s3.region": "us-east-1"}
    deleted_from(load_catalog(**client))
    table = tamis.open("db.events", catalog=client)
    assert table.plan().read(spark, storage="catalog").count() == 28
    with pytest.raises(TamisError):
        table.plan().read(spark)


@pytest.mark.usefixtures("catalog")
def test_a_store_that_takes_no_access_from_here_is_an_error(spark: SparkSession, given: Mapping[str, str]) -> None:
    table = tamis.open("db.events", catalog=given)
    plan = table.plan()
    table.source.fetch.io.properties |= {"s3.signer": "S3V4RestSigner"}
    with pytest.raises(SparkStorageError, match=r"s3\.signer") as caught:
        plan.read(spark, storage="catalog")
    assert caught.value.settings == ()


@pytest.mark.usefixtures("catalog")
def test_a_connect_server_is_given_credentials_only_if_it_does_not_keep_them(
    given: Mapping[str, str], store: ObjectStore, tmp_path: Path
) -> None:
    """It writes requests, with the options of readers, into its event log."""
    events = tmp_path / "events"
    events.mkdir()
    jars = ",".join(map(str, jars_of("hadoop-aws").glob("*.jar")))
    keeps = ("spark.eventLog.enabled=true", f"spark.eventLog.dir={events}", "spark.eventLog.compress=false")
    with cluster("server", tmp_path / "server", f"spark.jars={jars}", *keeps) as server:
        found = run(server, HERE / "connect_store.py", json.dumps(dict(given)))
    assert found["refused"].startswith("cannot hand the credentials of s3://lake to a Connect server")
    assert (found["rows"], found["joined"], found["planned"]) == (28, 2, True)
    logged = b"".join(path.read_bytes() for path in events.rglob("*") if path.is_file())
    assert b"spark.sql.redaction.string.regex" in logged
    assert store.secret.encode() not in logged
    assert store.key.encode() not in logged


@pytest.mark.usefixtures("catalog", "environment")
def test_a_spark_without_a_client_for_the_store_is_one_message_that_names_the_package(
    given: Mapping[str, str], tmp_path: Path
) -> None:
    """For each kind of work the same, and not a page of Java. Planning goes on without Spark, and says so."""
    folder = tmp_path / "delta"
    DeltaLog(folder).begin(add("1", "a"))
    put(folder, "s3://lake/bare")
    bare = Cluster("classic", tmp_path, {"PYSPARK_PYTHON": sys.executable})
    found = run(bare, HERE / "without_stores.py", json.dumps(dict(given)))
    package = "org.apache.hadoop:hadoop-aws:3.4.2"
    for message, scheme, needs, path in found["told"].values():
        assert (scheme, needs) == ("s3a", package)
        assert path.startswith("s3://lake/")
        assert message.startswith(f"Spark has no client to read {path}")
        assert f"spark.jars.packages={package}" in message
        assert "\n" not in message
    assert set(found["told"]) == {"read", "handed", "join", "planned", "delta"}
    assert not [note for note in found["notes"] if "planned by this process" in note]
