"""Which state of a Paimon table is opened, and what is refused, or damaged."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pypaimon import CatalogFactory
from pypaimon.schema.schema_change import SchemaChange

import tamis
from tamis.errors import (
    CatalogError,
    NoSuchSnapshotError,
    NoSuchTableError,
    UnreadableMetadataError,
    UnsupportedFormatError,
)
from tests.making.paimon_manifests import MadeTable, entry, row
from tests.making.paimon_tables import created, written

COLUMNS = pa.schema([("id", pa.int64()), ("v", pa.int32())])
ID = {"id": 0, "name": "id", "type": "BIGINT"}


def rows(*ids: int) -> list[dict[str, object]]:
    return [{"id": one, "v": one} for one in ids]


def count(target: Path, **at: Any) -> int:  # noqa: ANN401 - what tamis.open takes
    return sum(tamis.open(target, **at).plan().files["rows"].to_pylist())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three snapshots of 1, 3 and 6 rows; the second is tagged."""
    table = created(tmp_path, COLUMNS)
    written(table, rows(1), COLUMNS)
    written(table, rows(2, 3), COLUMNS)
    table.create_tag("two")
    written(table, rows(4, 5, 6), COLUMNS)
    return tmp_path / "db.db" / "t"


def test_states_are_chosen_by_snapshot_tag_and_time(folder: Path) -> None:
    assert [count(folder, snapshot_id=one) for one in (1, 2, 3)] == [1, 3, 6]
    assert count(folder, ref="two") == 3
    assert count(folder, ref="main") == 6
    second = json.loads((folder / "snapshot" / "snapshot-2").read_text(encoding="utf-8"))
    assert count(folder, as_of_ms=second["timeMillis"]) == 3
    assert count(folder, as_of="2999-01-01") == 6


def test_tag_outlives_its_snapshot(folder: Path) -> None:
    (folder / "snapshot" / "snapshot-2").unlink()
    assert count(folder, ref="two") == 3
    with pytest.raises(NoSuchSnapshotError, match=r"has no snapshot 2\. It has 1, 3"):
        tamis.open(folder, snapshot_id=2)


@pytest.mark.parametrize(
    ("at", "said"),
    [
        ({"snapshot_id": 9}, "has no snapshot 9. It has 1, 2, 3"),
        ({"ref": "nine"}, "has no tag or branch 'nine'. It has two"),
        ({"ref": "../../x"}, "has no tag or branch"),
        ({"as_of": "2001-01-01"}, "has no snapshot at or before 2001-01-01"),
    ],
)
def test_state_that_is_not_there_is_named(folder: Path, at: dict[str, Any], said: str) -> None:
    with pytest.raises(NoSuchSnapshotError) as caught:
        tamis.open(folder, **at)
    assert said in str(caught.value)


def test_states_are_no_versions(folder: Path) -> None:
    with pytest.raises(ValueError, match="give snapshot_id="):
        tamis.open(folder, version=1)
    with pytest.raises(ValueError, match="give one of"):
        tamis.open(folder, snapshot_id=1, ref="two")


def test_branch_has_its_own_snapshots_and_schemas(folder: Path) -> None:
    home = folder / "branch" / "branch-dev"
    for name in ("schema", "snapshot"):
        (home / name).mkdir(parents=True)
    (home / "schema" / "schema-0").write_bytes((folder / "schema" / "schema-0").read_bytes())
    (home / "snapshot" / "snapshot-2").write_bytes((folder / "snapshot" / "snapshot-2").read_bytes())
    assert count(folder, ref="dev") == 3
    assert tamis.open(folder, ref="dev").snapshot_id == 2


def test_older_snapshot_has_the_columns_that_it_was_made_with(tmp_path: Path) -> None:
    table = created(tmp_path, COLUMNS)
    written(table, rows(1), COLUMNS)
    catalog = CatalogFactory.create({"warehouse": str(tmp_path)})
    catalog.alter_table("db.t", [SchemaChange.rename_column("v", "w")], ignore_if_not_exists=False)
    folder = tmp_path / "db.db" / "t"
    assert [column.name for column in tamis.open(folder).schema.columns] == ["id", "w"]
    assert [column.name for column in tamis.open(folder, snapshot_id=1).schema.columns] == ["id", "v"]


def test_read_optimized_form_is_asked_for_by_name(folder: Path, tmp_path: Path) -> None:
    """An append table has all its rows in every form; a folder of that very name is itself; no rewrite is planned."""
    form = tamis.open(f"{folder}$ro")
    assert form.format == "paimon (append table, read-optimized)"
    assert sum(form.plan().files["rows"].to_pylist()) == 6
    assert tamis.open(f"{folder}$ro", ref="two").snapshot_id == 2
    keyed = created(tmp_path, COLUMNS, key=["id"], name="keyed", bucket="1", num__levels="3")
    written(keyed, rows(1, 2), COLUMNS)
    optimized = tamis.open(tmp_path / "db.db" / "keyed$ro")
    assert count(tmp_path / "db.db" / "keyed") == 2
    assert optimized.plan().files.num_rows == 0
    assert optimized.plan().stats.to_dict()["notes"] == [
        "1 file below level 2 holds rows that no read-optimized read sees until a compaction has placed them"
    ]
    with pytest.raises(UnsupportedFormatError, match=r"Open the table itself, without \$ro"):
        optimized.rewrite().plan()
    (tmp_path / "db.db" / "nothing$ro").mkdir()
    with pytest.raises(NoSuchTableError, match="is not a table"):
        tamis.open(tmp_path / "db.db" / "nothing$ro")


def test_number_of_levels_that_is_none_is_an_error(tmp_path: Path) -> None:
    created(tmp_path, COLUMNS, key=["id"], name="keyed", bucket="1", num__levels="many")
    with pytest.raises(UnreadableMetadataError, match="number of levels"):
        tamis.open(tmp_path / "db.db" / "keyed$ro")


# -- catalogs ----------------------------------------------------------------------------------------------------


def test_table_of_a_warehouse_is_opened_by_its_name(folder: Path, tmp_path: Path) -> None:
    """A warehouse of folders needs no pypaimon; its Catalog, and what it has loaded, tell the folder as well."""
    properties = {"warehouse": str(tmp_path)}
    catalog = CatalogFactory.create(properties)
    for opened in (
        tamis.open("db.t", catalog=properties, format="paimon"),
        tamis.open("db.t", catalog=catalog),
        tamis.open(catalog.get_table("db.t")),
    ):
        assert opened.location == str(folder)
        assert opened.snapshot_id == 3
    assert tamis.open("db.t", catalog=catalog, ref="two").snapshot_id == 2


def test_name_that_no_catalog_has_is_named(folder: Path, tmp_path: Path) -> None:
    del folder
    properties = {"warehouse": str(tmp_path)}
    for catalog in (properties, CatalogFactory.create(properties)):
        with pytest.raises(NoSuchTableError, match=r"there is no .*nothing"):
            tamis.open("db.nothing", catalog=catalog, format="paimon")
    with pytest.raises(NoSuchTableError, match=r"two parts, database\.table"):
        tamis.open("t", catalog=properties, format="paimon")
    with pytest.raises(CatalogError, match="no 'warehouse'"):
        tamis.open("db.t", catalog={"x": "y"}, format="paimon")
    with pytest.raises(CatalogError, match="not configured by name"):
        tamis.open("db.t", catalog="prod", format="paimon")


def test_loaded_table_that_travels_is_refused(folder: Path, tmp_path: Path) -> None:
    """Its options say another state than the folder: tamis.open is to be told which."""
    del folder
    table = CatalogFactory.create({"warehouse": str(tmp_path)}).get_table("db.t").copy({"scan.snapshot-id": "1"})
    with pytest.raises(UnsupportedFormatError, match="a snapshot in its options"):
        tamis.open(table)


# -- refused -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"data-evolution.enabled": "true"}, "data evolution"),
        ({"type": "format-table"}, "a table of type format-table"),
        ({"scan.fallback-branch": "x"}, "a fallback branch"),
        ({"chain-table.enabled": "true"}, "chain tables"),
        ({"query-auth.enabled": "true"}, "row filters"),
        ({"scan.snapshot-id": "3"}, "a snapshot in its options"),
        ({"scan.mode": "incremental"}, "scan.mode=incremental"),
        ({"log.scan": "from-timestamp"}, "scan.mode=from-timestamp"),
        ({"log.scan.timestamp-millis": "1"}, "a timestamp in its options"),
        ({"scan.creation-time-millis": "1"}, "a timestamp in its options"),
        ({"scan.file-creation-time-millis": "1"}, "a timestamp in its options"),
        ({"scan.fallback-delta-branch": "x"}, "a fallback branch"),
        ({"batch-scan-mode": "compact"}, "batch-scan-mode"),
        ({"blob-field": "id"}, "blobs"),
    ],
)
def test_what_a_plain_read_would_show_otherwise_is_refused(
    tmp_path: Path, options: dict[str, str], said: str
) -> None:
    table = MadeTable(tmp_path / "t", [ID], options=options)
    with pytest.raises(UnsupportedFormatError, match=said):
        tamis.open(table.folder)


def test_merge_engine_that_is_not_known_is_refused(tmp_path: Path) -> None:
    table = MadeTable(tmp_path / "t", [ID], key=["id"], options={"merge-engine": "newest"})
    with pytest.raises(UnsupportedFormatError, match="merge-engine=newest"):
        tamis.open(table.folder)


@pytest.mark.parametrize(
    "name", ["data-evolution.enabled", "deletion-vectors.enabled", "partition.legacy-name", "ignore-delete"]
)
def test_switch_that_is_neither_on_nor_off_is_an_error(tmp_path: Path, name: str) -> None:
    """Paimon's own readers fail on it. Taken for off, a table that is refused would be read as another."""
    for place, said in enumerate((" TRUE ", "False", "")):
        table = MadeTable(tmp_path / str(place), [ID], options={name: said})
        if (name, said) != ("data-evolution.enabled", " TRUE "):
            tamis.open(table.folder)
    for place, said in enumerate(("yes", "1", "on", "truе")):  # noqa: RUF001 - a letter that only looks like an e
        table = MadeTable(tmp_path / f"odd {place}", [ID], options={name: said})
        with pytest.raises(UnreadableMetadataError, match="neither true nor false"):
            tamis.open(table.folder)


def test_numbers_of_more_digits_than_any_has_are_no_traceback(tmp_path: Path) -> None:
    """Python itself refuses to read them."""
    table = MadeTable(tmp_path / "t", [ID], options={"bucket": "9" * 5000})
    with pytest.raises(UnreadableMetadataError, match="which is no number"):
        tamis.open(table.folder)
    table = MadeTable(tmp_path / "u", [ID], options={"target-file-size": "9" * 5000})
    assert tamis.open(table.folder).inspect().target_file_size == 256 << 20
    assert tamis.open(table.folder).rewrite().plan().candidates.num_rows == 0


@pytest.mark.parametrize("type_", ["BLOB", "INTERVAL", "INT(3)", "DECIMAL(99, 2)", {"type": "VECTOR"}])
def test_type_that_is_not_known_is_refused_by_its_name(tmp_path: Path, type_: object) -> None:
    table = MadeTable(tmp_path / "t", [ID, {"id": 1, "name": "x", "type": type_}])
    with pytest.raises(UnsupportedFormatError, match=r"fields\[1\]\.type.* is of the type"):
        tamis.open(table.folder)


def test_folder_without_schemas_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(NoSuchTableError, match="is not a Paimon table"):
        tamis.open(tmp_path, format="paimon")
    with pytest.raises(NoSuchTableError, match="there is no such folder"):
        tamis.open(tmp_path / "nowhere", format="paimon")


# -- damaged -----------------------------------------------------------------------------------------------------


def test_schema_that_a_snapshot_was_made_with_must_be_there(folder: Path) -> None:
    path = folder / "snapshot" / "snapshot-3"
    document = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(document | {"schemaId": 4}), encoding="utf-8")
    with pytest.raises(UnreadableMetadataError, match="schema-4: it is missing"):
        tamis.open(folder)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"version": 4}, "a snapshot of version 4"),
        ({"id": 7}, "it says that it is snapshot 7"),
        ({"baseManifestList": None}, "baseManifestList"),
        ({"deltaManifestList": "../../etc/passwd"}, "no file's name"),
        ({"schemaId": "0"}, "schemaId"),
        ({"deltaManifestList": None}, "deltaManifestList"),
    ],
)
def test_damaged_snapshot_says_what_is_wrong(folder: Path, change: dict[str, object], said: str) -> None:
    path = folder / "snapshot" / "snapshot-3"
    document = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(document | change), encoding="utf-8")
    with pytest.raises(UnreadableMetadataError, match=said):
        tamis.open(folder).plan()


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ([entry("f") | {"_VERSION": 3}], "its entries are of version 3"),
        ([entry("f", kind=2)], "its _KIND is 2"),
    ],
)
def test_damaged_entry_says_what_is_wrong(tmp_path: Path, entries: list[dict[str, Any]], said: str) -> None:
    table = MadeTable(tmp_path / "t", [ID])
    table.commit(entry("g"), *entries, meta={"_NUM_ADDED_FILES": 2, "_NUM_DELETED_FILES": 0})
    with pytest.raises(UnreadableMetadataError, match=said):
        tamis.open(table.folder).plan()


def test_lists_that_contradict_their_manifests_are_errors(tmp_path: Path) -> None:
    """Else a deleted file would come back, or a file would be read twice."""
    table = MadeTable(tmp_path / "t", [ID])
    table.commit(entry("f"))
    table.commit(entry("f", kind=1), entry("g"), meta={"_NUM_DELETED_FILES": 0})
    with pytest.raises(UnreadableMetadataError, match="it deletes files, and its manifest list says"):
        tamis.open(table.folder).plan()
    table = MadeTable(tmp_path / "u", [ID])
    table.commit(entry("f"))
    table.commit(entry("g"), meta={"_FILE_NAME": "manifest-1"})
    with pytest.raises(UnreadableMetadataError, match="a manifest stands twice"):
        tamis.open(table.folder).plan()


def test_partition_that_cannot_be_decoded_keeps_its_files(tmp_path: Path) -> None:
    table = MadeTable(tmp_path / "t", [ID, {"id": 1, "name": "p", "type": "INT"}], partition=["p"])
    table.commit(entry("f", partition=b"\0\0\0\1"))
    plan = tamis.open(table.folder).plan("p = 1")
    assert plan.files.num_rows == 1
    assert plan.stats.filter_stats.fail_open_files == 1


def test_names_of_strangers_are_not_trusted(tmp_path: Path) -> None:
    """A manifest's name leads to no other folder; a data file's path is shown escaped, and is not opened."""
    table = MadeTable(tmp_path / "t", [ID])
    table.commit(entry("f"), meta={"_FILE_NAME": "../manifest/manifest-1"})
    with pytest.raises(UnreadableMetadataError, match="which is no file's name"):
        tamis.open(table.folder).plan()


@pytest.mark.parametrize(
    ("type_", "stored", "value", "folder"),
    [
        ("CHAR(4)", "STRING", "ab", "ab"),
        ("CHAR(4)", "STRING", "a:b ", "a%3Ab "),
        ("DECIMAL(20, 10)", "DECIMAL(20, 10)", Decimal("0.0000000100"), "0.0000000100"),
        ("STRING", "STRING", "\u00a0", "\u00a0"),
        ("STRING", "STRING", "\u2003", "__DEFAULT_PARTITION__"),
    ],
)
def test_folder_is_named_as_java_prints_the_value(
    tmp_path: Path, type_: str, stored: str, value: object, folder: str
) -> None:
    """Values that are not compared name their folder as well; decimals have no exponent; to Java few are blanks."""
    table = MadeTable(tmp_path / "t", [ID, {"id": 1, "name": "p", "type": type_}], partition=["p"])
    table.commit(entry("f", partition=row(p=(stored, value))))
    for where in ("p is not null", "id = 1"):
        assert tamis.open(table.folder).plan(where).files["path"].to_pylist() == [f"p={folder}/bucket-0/f"]
