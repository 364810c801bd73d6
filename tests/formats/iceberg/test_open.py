"""A table is found by its folder, its metadata file or its name, at any of its states."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyiceberg.catalog
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.table import Table
from pyiceberg.utils.config import Config

import tamis
from tamis.errors import (
    AmbiguousTableError,
    CatalogError,
    NoSuchSnapshotError,
    NoSuchTableError,
    UnreadableMetadataError,
)
from tamis.formats.iceberg.catalogs import list_catalog
from tamis.formats.iceberg.fileio import file_io
from tests.making.cli_tables import events, folder_of
from tests.making.manifests import table_document


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("events")


@pytest.fixture(scope="module")
def table(home: Path) -> Table:
    return events(home)


def files(opened: tamis.Table) -> int:
    return opened.plan().stats.files


def test_folder_opens_the_newest_metadata(table: Table) -> None:
    for target in (folder_of(table), table.location()):
        opened = tamis.open(target)
        assert opened.snapshot_id == table.metadata.current_snapshot_id
        assert files(opened) == 4
        assert (opened.name, opened.format) == (target, "iceberg v2")


def test_metadata_file_opens_the_table_as_it_was_then(table: Table) -> None:
    assert files(tamis.open(table.metadata_location)) == 4
    (early,) = Path(folder_of(table), "metadata").glob("00001-*.metadata.json")
    assert files(tamis.open(str(early))) == 1


def test_gzipped_metadata_opens_alike(table: Table, tmp_path: Path) -> None:
    plain = Path(table.metadata_location.removeprefix("file://")).read_bytes()
    packed = tmp_path / "00007-0b54a0ba-5bd2-4a3c-b9bb-2c6f93a8a34d.gz.metadata.json"
    packed.write_bytes(gzip.compress(plain))
    assert files(tamis.open(str(packed))) == 4


def hadoop(folder: Path, versions: int) -> Path:
    metadata = folder / "metadata"
    metadata.mkdir(parents=True)
    for version in range(1, versions + 1):
        document = table_document(properties={"version": str(version)})
        (metadata / f"v{version}.metadata.json").write_text(json.dumps(document), encoding="utf-8")
    return metadata


@pytest.mark.parametrize("hint", ["1", "11", None, ""])
def test_stale_or_missing_version_hint_does_not_hide_a_newer_version(tmp_path: Path, hint: str | None) -> None:
    """The hint is written after the file, by a second write that may be lost. 11 comes after 9, by number."""
    metadata = hadoop(tmp_path, 11)
    if hint is not None:
        (metadata / "version-hint.text").write_text(hint, encoding="utf-8")
    opened = tamis.open(str(tmp_path))
    assert opened.source.metadata.properties["version"] == "11"  # type: ignore[attr-defined] # an Iceberg table
    assert opened.snapshot_id is None


def test_two_files_of_one_version_are_not_guessed_between(tmp_path: Path) -> None:
    (tmp_path / "metadata").mkdir()
    for part in ("0b54a0ba-5bd2-4a3c-b9bb-2c6f93a8a34d", "1b54a0ba-5bd2-4a3c-b9bb-2c6f93a8a34d"):
        path = tmp_path / "metadata" / f"00001-{part}.metadata.json"
        path.write_text(json.dumps(table_document()), encoding="utf-8")
    with pytest.raises(NoSuchTableError, match="several metadata files of version 1"):
        tamis.open(str(tmp_path))


@pytest.mark.parametrize(
    ("other", "mark", "refusal"),
    [("delta", "_delta_log/_", "has no version"), ("paimon", "schema/schema-3", "it is not JSON")],
)
def test_folder_of_two_formats_opens_as_the_one_that_is_chosen(
    tmp_path: Path, other: str, mark: str, refusal: str
) -> None:
    """Delta's UniForm and Paimon write Iceberg's metadata beside their own: the two may be of different age."""
    hadoop(tmp_path, 1)
    (tmp_path / mark).parent.mkdir()
    (tmp_path / mark).touch()
    with pytest.raises(AmbiguousTableError, match=f"format='iceberg' or format='{other}'") as caught:
        tamis.open(str(tmp_path))
    assert caught.value.candidates == ("iceberg", other)
    assert tamis.open(str(tmp_path), format="iceberg").format == "iceberg v2"
    with pytest.raises((UnreadableMetadataError, NoSuchTableError), match=refusal):
        tamis.open(str(tmp_path), format=other)


def test_folder_that_is_no_table_of_the_chosen_format_says_what_it_is(tmp_path: Path) -> None:
    hadoop(tmp_path, 1)
    with pytest.raises(NoSuchTableError, match=r"is not a Delta table: it has no _delta_log; it has metadata/\*"):
        tamis.open(str(tmp_path), format="delta")
    (tmp_path / "delta" / "_delta_log").mkdir(parents=True)
    with pytest.raises(NoSuchTableError, match="is not an Iceberg table"):
        tamis.open(str(tmp_path / "delta"), format="iceberg")
    for target in (str(tmp_path / "metadata" / "v1.metadata.json"), "a.b.c"):
        with pytest.raises(NoSuchTableError, match="there is no Paimon table at"):
            tamis.open(target, format="paimon")
    with pytest.raises(ValueError, match="'hudi' is not a table format"):
        tamis.open(str(tmp_path), format="hudi")


@pytest.mark.parametrize("target", ["a\0b", "x" * 300, "x" * 5000 + "/y"])
def test_name_that_no_file_can_have_is_no_table(target: str) -> None:
    with pytest.raises(NoSuchTableError, match="no table"):
        tamis.open(target)


def test_name_opens_through_a_catalog_given_by_its_properties(table: Table, home: Path) -> None:
    # A SQL catalog keeps its tables under its own name; one that is given by its properties is called tamis.
    properties = {"type": "sql", "uri": f"sqlite:///{home / 'catalog.db'}"}
    named = load_catalog("tamis", **properties)
    named.create_namespace("db")
    named.register_table("db.events", table.metadata_location)
    opened = tamis.open("db.events", catalog=properties)
    assert opened.snapshot_id == table.metadata.current_snapshot_id
    with pytest.raises(NoSuchTableError, match=r"has no table 'db\.other'"):
        tamis.open("db.other", catalog=properties)


def test_name_opens_through_a_configured_catalog(table: Table, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment is one of the places of PyIceberg's configuration; it is read anew for a new process only."""
    monkeypatch.setenv("PYICEBERG_CATALOG__TEST__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__TEST__URI", f"sqlite:///{home / 'catalog.db'}")
    monkeypatch.setattr(pyiceberg.catalog, "_ENV_CONFIG", Config())
    for opened in (tamis.open("test.db.events"), tamis.open("db.events", catalog="test")):
        assert opened.snapshot_id == table.metadata.current_snapshot_id


def configured(monkeypatch: pytest.MonkeyPatch, home: Path, *variables: str, file: str | None = None) -> None:
    """Let PyIceberg see this configuration only."""
    home.mkdir()
    if file is not None:
        (home / ".pyiceberg.yaml").write_text(file, encoding="utf-8")
    for name in [one for one in os.environ if one.upper().startswith("PYICEBERG_")]:
        monkeypatch.delenv(name)
    for name in variables:
        monkeypatch.setenv(f"PYICEBERG_CATALOG__{name}", "s3cr3t")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home)
    monkeypatch.setattr(pyiceberg.catalog, "_ENV_CONFIG", Config())


def test_catalog_that_nobody_configured_is_named_with_those_that_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PyIceberg says that a URI is missing, and does not say that the whole catalog is."""
    file = "catalog:\n  prod:\n    uri: http://us3r:s3cr3t@localhost:1/\n"
    configured(monkeypatch, tmp_path / "some", "MY_CAT__TOKEN", file=file)
    for name, catalog in (("No-Such.db.t", None), ("db.t", "No-Such")):
        with pytest.raises(CatalogError) as caught:
            tamis.open(name, catalog=catalog)
        assert caught.value.message.startswith(
            "no catalog 'No-Such' is configured to open 'db.t' with; configured: my-cat, prod. "
        )
        assert "PYICEBERG_CATALOG__NO_SUCH__URI" in caught.value.message
        assert (caught.value.catalog, caught.value.table) == ("No-Such", "db.t")
        assert "s3cr3t" not in str(caught.value)
    configured(monkeypatch, tmp_path / "nothing")
    with pytest.raises(CatalogError, match=r"^no catalog 'nosuch' is configured .*; configured: none\."):
        tamis.open("nosuch.db.t")


def test_catalog_with_half_a_configuration_is_not_called_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has an entry, whatever the case of its name: what that lacks is PyIceberg's to say."""
    configured(monkeypatch, tmp_path / "half", "HALF__TOKEN")
    with pytest.raises(CatalogError, match="URI missing") as caught:
        tamis.open("Half.db.t")
    assert "s3cr3t" not in str(caught.value)
    configured(monkeypatch, tmp_path / "odd", file="catalog: nonsense\n")
    with pytest.raises(CatalogError, match="needs to be an object"):
        tamis.open("nosuch.db.t")


def test_catalog_that_cannot_be_used_is_named_without_its_secrets() -> None:
    properties = {"type": "rest", "uri": "http://us3r:p4ss@localhost:1/", "token": "t0k3n"}
    with pytest.raises(CatalogError) as caught:
        tamis.open("db.t", catalog=properties)
    assert "the given catalog" in caught.value.message
    assert not [secret for secret in ("us3r", "p4ss", "t0k3n") if secret in str(caught.value)]


def test_endpoint_of_the_environment_serves_files_outside_a_catalog(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow takes credentials from AWS's variables, but asks Amazon whatever their endpoint says."""
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    assert "s3.region" not in file_io("s3://bucket/t", {}).properties, "Amazon's buckets say where they are"
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://all")
    found = file_io("s3://bucket/t", {}).properties
    assert (found["s3.endpoint"], found["s3.region"]) == ("http://all", "eu-west-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://s3")
    assert file_io("s3://bucket/t", {}).properties["s3.endpoint"] == "http://s3"
    assert file_io("s3://bucket/t", {"s3.endpoint": "http://mine"}).properties["s3.endpoint"] == "http://mine"


def test_states_are_chosen_by_snapshot_branch_tag_and_time(table: Table) -> None:
    first, second, third, _ = table.history()
    folder = folder_of(table)
    assert files(tamis.open(folder, snapshot_id=second.snapshot_id)) == 2
    assert files(tamis.open(folder, ref="first")) == 1
    assert files(tamis.open(folder, ref="audit")) == 2
    assert files(tamis.open(folder, ref="main")) == 4
    assert files(tamis.open(folder, as_of_ms=third.timestamp_ms)) == 3
    with pytest.raises(NoSuchSnapshotError):
        tamis.open(folder, as_of_ms=first.timestamp_ms - 1)


def test_two_states_at_once_are_a_mistake_of_the_caller(table: Table) -> None:
    with pytest.raises(ValueError, match="one of"):
        tamis.open(folder_of(table), ref="main", as_of_ms=1)


@pytest.mark.parametrize(
    "properties",
    [
        {"header.Authorization": "Bearer s3cr3t-of-mine"},
        {"header.X-API-Key": "s3cr3t-of-mine"},
        {"adls.connection-string": "AccountName=a;AccountKey=s3cr3t-of-mine"},
        {"auth": {"type": "basic", "basic": {"username": "me", "password": "s3cr3t-of-mine"}}},
        {"s3.secret-access-key": "s3cr3t/of@mine?a=b"},
    ],
)
def test_secrets_of_any_property_stay_out_of_errors(properties: dict[str, Any]) -> None:
    """Headers, connection strings and nested settings hold secrets as well as those that are called so."""
    (value,) = (one for one in _texts(properties) if "s3cr3t" in one)
    secret = value.rpartition(" ")[2]

    class Failing(InMemoryCatalog):
        def load_table(self, identifier: Any) -> Any:  # noqa: ANN401 - as PyIceberg has it
            raise RuntimeError(f"refused {identifier} with {secret}, that is {value}.")

    catalog = Failing("failing")
    catalog.properties.update(properties)
    with pytest.raises(CatalogError, match=r"refused db\.t with …, that is ") as caught:
        tamis.open("db.t", catalog=catalog)
    assert "s3cr3t" not in str(caught.value)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, str):
        yield value


def test_secrets_of_a_configured_catalog_stay_out_of_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A catalog that fails while it is loaded is known by name alone: its secrets stand in the configuration."""
    file = "catalog:\n  prod:\n    type: s3cr3t-kind\n    token: s3cr3t-kind\n"
    configured(monkeypatch, tmp_path / "some", file=file)
    with pytest.raises(CatalogError, match="'…' is not a valid CatalogType") as caught:
        tamis.open("prod.db.t")
    assert "s3cr3t" not in str(caught.value)


def test_configuration_that_lists_no_catalogs_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Listing is the first thing to try where something is wrong with it."""
    configured(monkeypatch, tmp_path / "odd", file="catalog: nonsense\n")
    with pytest.raises(CatalogError, match=r"^cannot read PyIceberg's configuration: .*needs to be an object"):
        list_catalog(None)
