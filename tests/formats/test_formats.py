"""A format is one entry of FORMATS: it is detected, chosen, opened and named in errors by that alone."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import StaticTable, Table

import tamis
from tamis import formats
from tamis.errors import AmbiguousTableError, NoSuchTableError, UnsupportedFormatError
from tamis.formats import FORMATS, Format
from tamis.formats.iceberg.origin import Origin
from tamis.formats.opening import Opening
from tamis.formats.storage import Storage
from tamis.predicate.nodes import Constant
from tests.making.cli_tables import events, folder_of


@dataclass(frozen=True)
class Orc:
    """What a toy format's library might load."""

    name: str


@dataclass(frozen=True)
class Opened:
    """A table of the toy format, as far as opening goes."""

    name: str
    format: str = "ark v1"
    snapshot_id: int = 7


def has_ark(folder: str, storage: Storage) -> bool:
    return folder.startswith("s3://lake/ark") or Path(folder, "_ark").is_dir() or bool(storage.list(f"{folder}/_ark"))


def ark(opening: Opening) -> Any:  # noqa: ANN401 - a table as far as it is looked at
    return Opened(opening.shown)


@pytest.fixture
def extended(monkeypatch: pytest.MonkeyPatch) -> Format:
    """One more format: an entry, and nothing else."""
    new = Format(
        "ark",
        "Ark",
        "_ark",
        has_ark,
        ark,
        lambda target: isinstance(target, Orc),
        lambda expression, _: Constant(value=True) if expression == "everything" else None,
    )
    monkeypatch.setattr(formats, "FORMATS", (*FORMATS, new))
    return new


def test_folder_of_a_new_format_opens_as_it(extended: Format, tmp_path: Path) -> None:
    assert extended.a_name == "an Ark"
    (tmp_path / "_ark").mkdir()
    for chosen in (None, "ark"):
        opened = tamis.open(str(tmp_path), format=chosen)
        assert (opened.name, opened.format) == (str(tmp_path), "ark v1")


def test_mark_is_looked_for_in_the_folder_that_is_there(tmp_path: Path) -> None:
    """`a%20b` may be a folder's own name: then `a b` beside it is another."""
    (tmp_path / "a%20b").mkdir()
    (tmp_path / "a b" / "_delta_log").mkdir(parents=True)
    (tmp_path / "a b" / "schema").mkdir()
    (tmp_path / "a b" / "schema" / "schema-0").touch()
    with pytest.raises(NoSuchTableError, match="is not a table"):
        tamis.open(f"file://{tmp_path}/a%20b")


def test_folder_of_an_object_store_is_asked_only_of_formats_that_open_them(
    extended: Format, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Iceberg's newest metadata file cannot be told from a listing; Delta's newest commit can."""
    local = tuple(replace(entry, opens_remote_folders=False) for entry in FORMATS)
    monkeypatch.setattr(formats, "FORMATS", (*local, extended))
    with pytest.raises(NoSuchTableError, match="is not a metadata file"):
        tamis.open("s3://lake/ark")
    monkeypatch.setattr(formats, "FORMATS", (*local, replace(extended, opens_remote_folders=True)))
    assert tamis.open("s3://lake/ark").format == "ark v1"
    named = formats._format(Opening("s3://lake/ark/metadata/v1.metadata.json?x=1"), None)
    assert named.key == "iceberg", "a metadata file is no folder, and its store need not let itself be listed"
    two = (replace(extended, opens_remote_folders=True), replace(extended, key="arc", opens_remote_folders=True))
    monkeypatch.setattr(formats, "FORMATS", (*local, *two))
    with pytest.raises(AmbiguousTableError, match="format='ark' or format='arc'"):
        tamis.open("s3://lake/ark")


@pytest.mark.usefixtures("extended")
def test_errors_speak_of_a_new_format_as_of_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        NoSuchTableError,
        match=r"it has no metadata/\*\.metadata\.json nor _delta_log nor schema/schema-\* nor _ark\. Give",
    ):
        tamis.open(str(tmp_path))
    (tmp_path / "_ark").mkdir()
    with pytest.raises(NoSuchTableError, match="is not a Delta table: it has no _delta_log; it has _ark"):
        tamis.open(str(tmp_path), format="delta")
    (tmp_path / "_delta_log").mkdir()
    with pytest.raises(AmbiguousTableError, match=r"it has _delta_log \(Delta\) and _ark \(Ark\)") as caught:
        tamis.open(str(tmp_path))
    assert caught.value.candidates == ("delta", "ark")
    (tmp_path / "schema").mkdir()
    (tmp_path / "schema" / "schema-0").touch()
    unread = tuple(replace(entry, open=None) if entry.key == "paimon" else entry for entry in formats.FORMATS)
    with monkeypatch.context() as patched:
        patched.setattr(formats, "FORMATS", unread)
        with pytest.raises(
            UnsupportedFormatError, match=r"does not read Paimon\. Iceberg, Delta and Ark tables are read"
        ):
            tamis.open(str(tmp_path), format="paimon")
    with pytest.raises(ValueError, match="one of iceberg, delta, paimon, ark"):
        tamis.open(str(tmp_path), format="hudi")
    with pytest.raises(TypeError, match="'iceberg', 'delta', 'paimon', 'ark'"):
        tamis.open(str(tmp_path), format=7)  # type: ignore[arg-type] # the point of the test


@pytest.mark.usefixtures("extended")
def test_object_and_condition_of_another_library_go_to_the_format_that_knows_them() -> None:
    assert formats.open_table(Orc("o"), formats.At(), None).format == "ark v1"
    with pytest.raises(ValueError, match="this is an Ark table, which its own library has loaded"):
        formats.open_table(Orc("o"), formats.At(), None, format="iceberg")
    schema = tamis.predicate.schema.Schema(())
    assert formats.converted_condition("everything", schema) == Constant(value=True)
    assert formats.converted_condition("something", schema) is None


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    return events(tmp_path_factory.mktemp("events"))


def origin(opened: tamis.Table) -> Origin:
    found: Origin = opened.source.origin  # type: ignore[attr-defined] # an Iceberg table
    return found


def test_table_knows_where_it_was_opened_from(table: Table) -> None:
    """Only a catalog, or a folder of versions, can be committed to."""
    identifier = ".".join(table.name())
    for opened in (tamis.open(table), tamis.open(identifier, catalog=table.catalog)):
        found = origin(opened)
        assert (found.kind, found.name, found.identifier) == ("catalog", identifier, table.name())
        assert found.catalog is table.catalog
    folder = origin(tamis.open(table.location()))
    assert (folder.kind, folder.name, folder.catalog) == ("folder", folder_of(table), None)
    location = table.metadata_location
    for opened in (tamis.open(location), tamis.open(StaticTable.from_metadata(location))):
        assert origin(opened).kind == "file"
        assert origin(opened).name.endswith(".metadata.json")


def test_origin_shows_and_pickles_no_credentials(table: Table) -> None:
    opened = tamis.open(table)
    table.catalog.properties["token"] = "hush-hush"  # noqa: S105 - nobody's
    try:
        said = f"{opened!r} {opened.source!r} {origin(opened)!r} {origin(opened)}"
        pickled = pickle.dumps(opened)
    finally:
        del table.catalog.properties["token"]
    assert "hush" not in said
    assert b"hush" not in pickled
    again = origin(pickle.loads(pickled))  # noqa: S301 - made above
    assert (again.kind, again.identifier, again.catalog) == ("catalog", table.name(), None)
