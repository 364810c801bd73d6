"""Tables in a real object store: PyIceberg writes, tamis plans; and what a user sees when the store says no."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.table import Table
from pyiceberg.transforms import BucketTransform, DayTransform

import tamis
from tamis.errors import CatalogError, TamisError, UnreadableMetadataError
from tests.engines.servers import ObjectStore
from tests.making.cli_tables import BY_REGION, SCHEMA, Ran, rows, run_process

pytestmark = pytest.mark.engine

PREDICATES = (
    None,
    "region = 'eu'",
    "id > 6",
    "region = 'eu' and id < 3",
    "when >= '2024-01-03T00:00:00'",
    "when < '2024-01-02T00:00:00' or region = 'uk'",
    "region is null",
    "id = 4711",
)
COLUMNS = ["partition", "rows", "spec_id", "deletes", "verdict"]
WRONG = "wr0ngAndNobodyKnowsIt"


@pytest.fixture(scope="module")
def properties(store: ObjectStore, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A catalog in a SQLite file, its warehouse in the store; a bucket is a path, for 127.0.0.1 has no subdomains."""
    return {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path_factory.mktemp('catalog') / 'catalog.db'}",
        "warehouse": "s3://lake/warehouse",
        "s3.endpoint": store.endpoint,
        "s3.region": "us-east-1",
        "s3.force-virtual-addressing": "false",
        "s3.access-key-id": store.key,
        "s3.secret-access-key": store.secret,
    }


@pytest.fixture(scope="module")
def table(properties: Mapping[str, str]) -> Table:
    return evolve(load_catalog("tamis", **properties))


def evolve(catalog: Catalog) -> Table:
    """By region, then by day as well, then by a bucket of id; a column is renamed, rows are deleted."""
    catalog.create_namespace("db")
    table = catalog.create_table("db.events", SCHEMA, partition_spec=BY_REGION)
    table.append(rows([1, 2, 3], "eu", 1))
    table.append(rows([4, 5], None, 2))
    with table.update_spec() as spec:
        spec.add_field("ts", DayTransform(), "ts_day")
    table.append(rows([6, 7], "eu", 3))
    with table.update_schema() as schema:
        schema.rename_column("ts", "when")
    with table.update_spec() as spec:
        spec.remove_field("region")
        spec.add_field("id", BucketTransform(4), "id_bucket")
    renamed = rows([8, 9, 10], "uk", 4).rename_columns(["id", "region", "when"])
    table.append(renamed)
    table.delete("id = 2")
    return table


def planned(opened: tamis.Table, where: str | None) -> set[str]:
    return set(opened.plan(where).files["path"].to_pylist())


def by_pyiceberg(table: Table, where: str | None) -> set[str]:
    """What PyIceberg keeps: it knows the same facts, and no fewer files are right."""
    return {task.file.file_path for task in table.scan(row_filter=where or AlwaysTrue()).plan_files()}


@pytest.mark.parametrize("where", PREDICATES)
def test_plan_over_the_store_keeps_what_pyiceberg_keeps(
    table: Table, properties: Mapping[str, str], where: str | None
) -> None:
    opened = tamis.open("db.events", catalog=properties)
    found = planned(opened, where)
    assert found == by_pyiceberg(table, where)
    assert all(path.startswith("s3://lake/warehouse/db/events/data/") for path in found)
    assert opened.snapshot_id == table.metadata.current_snapshot_id


def test_plan_over_the_store_is_the_plan_over_a_folder(
    table: Table, properties: Mapping[str, str], tmp_path: Path
) -> None:
    """The same commits on local disk; names of files differ, and nothing else."""
    local = evolve(load_catalog("local", uri=f"sqlite:///{tmp_path / 'catalog.db'}", warehouse=tmp_path.as_uri()))
    here, there = tamis.open(local.metadata_location), tamis.open("db.events", catalog=properties)
    for where in PREDICATES:
        plans = [opened.plan(where).files.select(COLUMNS).to_pylist() for opened in (here, there)]
        assert Counter(map(str, plans[0])) == Counter(map(str, plans[1])), where
    assert local.metadata_location != table.metadata_location


def test_cache_serves_manifests_that_the_store_has_lost(
    table: Table,
    store: ObjectStore,
    properties: Mapping[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The plan is the same without a cache, with an empty one and with a full one, which asks the store no more."""
    monkeypatch.setenv("TAMIS_CACHE_DIR", str(tmp_path))
    without = tamis.open("db.events", catalog=properties, cache=False)
    cached = tamis.open("db.events", catalog=properties, cache=True)
    wanted = {where: planned(without, where) for where in PREDICATES}
    assert {where: planned(cached, where) for where in PREDICATES} == wanted
    again = tamis.open("db.events", catalog=properties, cache=True)
    with lost(store, "*-m?.avro"):
        assert {where: planned(again, where) for where in PREDICATES} == wanted
    assert len(wanted[None]) == len(list(table.scan().plan_files()))


@contextmanager
def lost(store: ObjectStore, pattern: str) -> Iterator[list[str]]:
    """For a while the store lacks what has such a name; gives the names."""
    away = store.folder.with_name("away")
    away.mkdir()
    gone = {path: away / path.name for path in store.folder.rglob(pattern)}
    for path, kept in gone.items():
        path.rename(kept)
    try:
        yield [path.name for path in gone]
    finally:
        for path, kept in gone.items():
            path.parent.mkdir(parents=True, exist_ok=True)  # the store sweeps folders that are empty
            kept.rename(path)
        away.rmdir()


def refused(kind: type[TamisError], opening: Callable[[], object], secrets: Mapping[str, str]) -> TamisError:
    """The error, of which no word that is shown gives away who may enter the store."""
    with pytest.raises(kind) as caught:
        opening()
    said = f"{caught.value} {vars(caught.value)}"
    assert not [name for name, secret in secrets.items() if secret in said]
    assert "\n" not in str(caught.value)
    return caught.value


def secrets_of(properties: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in properties.items() if name.endswith(("-key", "-key-id"))}


@pytest.mark.parametrize("wrong", ["s3.secret-access-key", "s3.access-key-id"])
@pytest.mark.usefixtures("table")
def test_wrong_credentials_are_an_error_without_them(properties: Mapping[str, str], wrong: str) -> None:
    given = {**properties, wrong: WRONG}
    error = refused(CatalogError, lambda: tamis.open("db.events", catalog=given), secrets_of(given))
    assert "ACCESS_DENIED" in str(error)
    assert "Check the catalog's settings" in str(error)


def test_missing_bucket_is_an_error_that_names_it(
    table: Table, store: ObjectStore, properties: Mapping[str, str]
) -> None:
    opened = tamis.open("db.events", catalog=properties)
    with lost(store, "lake"):
        for opening in (lambda: tamis.open("db.events", catalog=properties), lambda: opened.plan("region = 'eu'")):
            error = refused(TamisError, opening, secrets_of(properties))
            assert "lake/warehouse/db/events/metadata/" in str(error)
    assert planned(opened, None) == by_pyiceberg(table, None)


@pytest.mark.usefixtures("table")
def test_missing_manifest_is_an_error_that_names_it(store: ObjectStore, properties: Mapping[str, str]) -> None:
    """A manifest that cannot be had is never taken for an empty one."""
    opened = tamis.open("db.events", catalog=properties, cache=False)
    with lost(store, "*-m?.avro") as names:
        error = refused(UnreadableMetadataError, opened.plan, secrets_of(properties))
        assert str(error).startswith("cannot read s3://lake/warehouse/db/events/metadata/")
        assert any(name in str(error) for name in names)


def explained(location: str, store: ObjectStore, **variables: str) -> Ran:
    """The command line in a process of its own, with no more than AWS's variables."""
    given = {
        "AWS_ENDPOINT_URL": store.endpoint,
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": store.key,
        "AWS_SECRET_ACCESS_KEY": store.secret,
        "AWS_SESSION_TOKEN": "",
        "AWS_ENDPOINT_URL_S3": "",
    }
    return run_process("explain", location, "--where", "region = 'uk'", "--files", env=given | variables)


def test_metadata_file_opens_by_its_address_with_credentials_of_the_environment(
    table: Table, store: ObjectStore
) -> None:
    ran = explained(table.metadata_location, store)
    assert (ran.code, ran.err) == (0, "")
    # Paths are shown relative to the table.
    listed = {f"{table.location()}/{word}" for word in ran.out.split() if word.endswith(".parquet")}
    assert listed == by_pyiceberg(table, "region = 'uk'")


@pytest.mark.parametrize("variable", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])
def test_wrong_credentials_of_the_environment_are_one_line_without_them(
    table: Table, store: ObjectStore, variable: str
) -> None:
    ran = explained(table.metadata_location, store, **{variable: WRONG})
    assert ran.code != 0
    assert ran.err.count("\n") == 1
    assert f"cannot read {table.metadata_location}" in ran.err
    assert not [secret for secret in (store.key, store.secret, WRONG) if secret in ran.out + ran.err]
