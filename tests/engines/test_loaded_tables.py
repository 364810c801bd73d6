"""Tables as libraries hold them, in a real store: their options are all that is known of who enters it."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import tamis
from tamis.errors import CatalogError, UnreadableMetadataError, UnsupportedFormatError
from tests.engines.servers import ObjectStore
from tests.making.paimon_tables import written

deltalake = pytest.importorskip("deltalake")
pypaimon = pytest.importorskip("pypaimon")
pytestmark = pytest.mark.engine

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})


@pytest.fixture(autouse=True)
def _stranger(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An environment that knows nothing of the store, nor of any other."""
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return


def options(store: ObjectStore) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL": store.endpoint,
        "aws_region": "us-east-1",
        "ACCESS_KEY_ID": store.key,
        "aws_secret_access_key": store.secret,
        "AWS_ALLOW_HTTP": "true",
        "aws_conditional_put": "etag",
    }


def test_a_delta_table_of_deltalake_brings_its_version_and_its_options(store: ObjectStore) -> None:
    for _ in range(3):
        deltalake.write_deltalake("s3://lake/loaded", ROWS, mode="append", storage_options=options(store))
    loaded = deltalake.DeltaTable("s3://lake/loaded", version=1, storage_options=options(store))
    table = tamis.open(loaded)
    assert (table.snapshot_id, table.name) == (1, "s3://lake/loaded/")
    assert table.plan("id > 1").stats.kept == 2
    assert tamis.open(loaded, version=2).plan().stats.kept == 3
    access = table.source.access()
    assert (access.endpoint, access.key, access.secret) == (store.endpoint, store.key, store.secret)
    shown = repr((table, table.source, table.plan()))
    assert store.secret not in shown
    assert store.secret.encode() not in pickle.dumps(table)
    wrong = deltalake.DeltaTable("s3://lake/loaded", storage_options=options(store))
    wrong._storage_options["aws_secret_access_key"] = "wrongAndUnknown"  # noqa: S105 - of no store
    with pytest.raises(UnreadableMetadataError) as caught:
        tamis.open(wrong)
    assert "wrongAndUnknown" not in str(caught.value)


def test_a_local_delta_table_of_deltalake_is_opened_at_its_version(tmp_path: Path) -> None:
    for _ in range(3):
        deltalake.write_deltalake(tmp_path / "t", ROWS, mode="append")
    loaded = deltalake.DeltaTable(tmp_path / "t", version=1)
    assert tamis.open(loaded).snapshot_id == 1
    assert tamis.open(loaded).plan().stats.kept == 2
    assert tamis.open(loaded, as_of="2999-01-01").snapshot_id == 2
    with pytest.raises(TypeError, match="leave catalog= out"):
        tamis.open(loaded, catalog="prod")
    with pytest.raises(ValueError, match="leave format= out"):
        tamis.open(loaded, format="iceberg")


def test_options_of_another_store_are_an_error(tmp_path: Path) -> None:
    """To leave them out in silence would be to read with the environment's instead."""

    class Elsewhere(deltalake.DeltaTable):  # type: ignore[name-defined, misc]
        table_uri = "az://box/table"

    deltalake.write_deltalake(tmp_path / "t", ROWS)
    with pytest.raises(UnsupportedFormatError, match="takes those of S3 alone"):
        tamis.open(Elsewhere(tmp_path / "t", storage_options={"account_key": "x"}))


@pytest.mark.parametrize("name", ["AWS_IAM_ROLE_ARN", "aws_profile", "AWS_WEB_IDENTITY_TOKEN_FILE"])
def test_credentials_that_deltalake_asks_others_for_are_an_error(tmp_path: Path, name: str) -> None:
    """Read without them, the table would be entered by whoever the environment says."""

    class Elsewhere(deltalake.DeltaTable):  # type: ignore[name-defined, misc]
        table_uri = "s3://box/table"

    deltalake.write_deltalake(tmp_path / "t", ROWS)
    with pytest.raises(UnsupportedFormatError, match=name.lower()):
        tamis.open(Elsewhere(tmp_path / "t", storage_options={name: "x", "AWS_REGION": "eu-west-1"}))


def paimon_options(store: ObjectStore) -> dict[str, str]:
    return {
        "warehouse": "s3://lake/paimon",
        "fs.s3.endpoint": store.endpoint,
        "s3.region": "us-east-1",
        "s3.access-key": store.key,
        "fs.s3a.secret.key": store.secret,
        "s3.path.style.access": "true",
    }


def test_a_table_of_pypaimon_brings_its_options(store: ObjectStore) -> None:
    catalog = pypaimon.CatalogFactory.create(paimon_options(store))
    catalog.create_database("db", ignore_if_exists=True)
    catalog.create_table("db.t", pypaimon.Schema.from_pyarrow_schema(ROWS.schema), ignore_if_exists=False)
    loaded = catalog.get_table("db.t")
    written(loaded, ROWS.to_pylist(), ROWS.schema)
    found: list[tamis.Table] = [
        tamis.open(loaded),
        tamis.open("db.t", catalog=catalog),
        tamis.open("db.t", catalog=paimon_options(store), format="paimon"),
    ]
    for table in found:
        assert table.plan().stats.kept == 1
        assert table.source.access().secret == store.secret
        assert store.secret not in repr((table, table.source))
        assert store.secret.encode() not in pickle.dumps(table)


def test_a_table_of_pypaimon_brings_what_its_catalog_vends(store: ObjectStore) -> None:
    """A REST catalog gives a token for each table: its files have it, the catalog's options have not."""
    from pypaimon.catalog.rest.rest_token import RESTToken
    from pypaimon.catalog.rest.rest_token_file_io import RESTTokenFileIO

    catalog = pypaimon.CatalogFactory.create(paimon_options(store))
    catalog.create_database("db", ignore_if_exists=True)
    catalog.create_table("db.vended", pypaimon.Schema.from_pyarrow_schema(ROWS.schema), ignore_if_exists=False)
    loaded = catalog.get_table("db.vended")
    written(loaded, ROWS.to_pylist(), ROWS.schema)
    client = {"uri": "http://127.0.0.1:9", "token.provider": "bear", "token": "ofTheCatalog"}
    files = RESTTokenFileIO(loaded.identifier, loaded.table_path, client)
    vended = {name: value for name, value in paimon_options(store).items() if name != "warehouse"}
    files.token = RESTToken(vended, int(time.time() * 1000) + 10**8)
    loaded.file_io = files
    table = tamis.open(loaded)
    assert table.plan().stats.kept == 1
    assert table.source.access().secret == store.secret
    files.token = RESTToken(vended, 0)
    with pytest.raises(CatalogError) as caught:
        tamis.open(loaded)
    assert "ofTheCatalog" not in str(caught.value)


class DeltaTable:
    """Of another library, as delta-spark's is: it has no version of its own, and no options."""


class FileStoreTable(DeltaTable):
    table_path = "/w"
    table_schema = None


@pytest.mark.parametrize("lookalike", [DeltaTable(), FileStoreTable(), object(), 7])
def test_a_lookalike_is_an_error_that_says_what_to_give(lookalike: object) -> None:
    with pytest.raises(TypeError, match="a DeltaTable of deltalake or a table of pypaimon"):
        tamis.open(lookalike)
