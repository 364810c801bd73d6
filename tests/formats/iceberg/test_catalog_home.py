"""Commits through a catalog: what they ask of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

import tamis
from tamis.errors import CatalogError, NoSuchTableError
from tamis.formats import writable_table
from tests.making.edits import data_file, edit, latest, make_table, writable

SCHEMA = Schema(NestedField(1, "id", LongType(), required=False), NestedField(2, "n", LongType(), required=False))


def asked(folder: Path, manifests: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How often a delete asks the catalog for a table of so many manifests."""
    folder.mkdir()
    catalog = SqlCatalog("c", uri=f"sqlite:///{folder / 'c.db'}", warehouse=folder.as_uri())
    catalog.create_namespace("db")
    catalog.create_table("db.t", SCHEMA)
    for number in range(manifests):
        to = writable_table(tamis.open("db.t", catalog=catalog, cache=False).source)
        to.commit(edit(to, "append", added=(data_file(str(folder), number, 0),)))
    table = tamis.open("db.t", catalog=catalog, cache=False)
    calls: list[object] = []
    load = SqlCatalog.load_table

    def counting(mine: SqlCatalog, name: object) -> object:
        calls.append(name)
        return load(mine, name)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(SqlCatalog, "load_table", counting)
        done = table.delete("id < 20")
    assert done.files_dropped == 2
    catalog.close()
    return len(calls)


def test_a_commit_asks_the_catalog_as_often_for_many_manifests_as_for_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer has all of the table's metadata: asked for each manifest, it made commits several times slower."""
    assert asked(tmp_path / "few", 3, monkeypatch) == asked(tmp_path / "many", 12, monkeypatch)


def test_a_table_that_was_dropped_or_a_catalog_that_is_gone_is_an_error_of_ours(tmp_path: Path) -> None:
    """Whatever the catalog's client raises: scripts catch errors of tamis."""
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path / 'c.db'}", warehouse=tmp_path.as_uri())
    catalog.create_namespace("db")
    catalog.create_table("db.t", SCHEMA)
    table = tamis.open("db.t", catalog=catalog, cache=False)
    catalog.drop_table("db.t")
    with pytest.raises(NoSuchTableError, match=r"no table 'db\.t' any more"):
        table.delete("id < 20")
    (tmp_path / "c.db").write_bytes(b"not a database" * 100)
    with pytest.raises(CatalogError, match=r"newest state of 'db\.t'"):
        table.delete("id < 20")
    catalog.close()


OLD = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "2"}


def grown(path: str) -> list[str]:
    """The metadata files of a table that has got five files, each by a commit."""
    for number in range(5):
        to = writable(path)
        to.commit(edit(to, "append", added=(data_file(path, number, 3),)))
    return sorted(one.name for one in Path(path, "metadata").glob("v*.metadata.json"))


def test_metadata_files_that_the_log_forgets_are_deleted_if_the_table_asks_for_it(tmp_path: Path) -> None:
    """As Iceberg's own library does; by default they stay, and a folder of many commits grows."""
    assert len(grown(make_table(tmp_path / "kept", 2, properties={**OLD, next(iter(OLD)): "false"}))) == 6
    path = make_table(tmp_path / "deleted", 2, properties=OLD)
    assert grown(path) == ["v4.metadata.json", "v5.metadata.json", "v6.metadata.json"]
    log = [Path(one["metadata-file"]).name for one in latest(path)["metadata-log"]]
    assert log == ["v4.metadata.json", "v5.metadata.json"]


def test_what_a_log_names_elsewhere_is_not_deleted(tmp_path: Path) -> None:
    """A log may say anything: it must not have the files of others deleted, nor the state that is about to come."""
    path = make_table(tmp_path / "t", 2, properties=OLD)
    mine = [tmp_path / "other.metadata.json", tmp_path / "t" / "metadata" / "notes.txt"]
    for one in mine:
        one.write_text("mine")
    newest = tmp_path / "t" / "metadata" / "v1.metadata.json"
    named = [*map(str, mine), f"{path}/metadata/../../other.metadata.json", f"{path}/metadata/v2.metadata.json"]
    log = [{"timestamp-ms": 1, "metadata-file": one} for one in named]
    newest.write_text(json.dumps({**json.loads(newest.read_text()), "metadata-log": log}))
    assert grown(path)[-1] == "v6.metadata.json"
    assert all(one.read_text() == "mine" for one in mine)


def test_a_catalogs_metadata_files_are_deleted_as_well(tmp_path: Path) -> None:
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path / 'c.db'}", warehouse=tmp_path.as_uri())
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", SCHEMA, properties=OLD)
    for number in range(5):
        to = writable_table(tamis.open("db.t", catalog=catalog, cache=False).source)
        to.commit(edit(to, "append", added=(data_file(str(tmp_path), number, 0),)))
    folder = Path(table.metadata_location.removeprefix("file://")).parent
    there = {one.as_uri() for one in folder.glob("*.metadata.json")}
    newest = catalog.load_table("db.t")
    assert there == {newest.metadata_location, *(one.metadata_file for one in newest.metadata.metadata_log)}
    assert len(there) == 3
    catalog.close()
