"""What a table's name asks for behind a `$`: branches, the read-optimized form, and what is refused by its name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pypaimon import CatalogFactory

import tamis
from tamis.errors import NoSuchSnapshotError, NoSuchTableError, UnsupportedFormatError
from tests.making.paimon_manifests import MadeTable
from tests.making.paimon_tables import created, written

COLUMNS = pa.schema([("id", pa.int64())])


def count(target: object, **at: Any) -> int:  # noqa: ANN401 - what tamis.open takes
    return sum(tamis.open(target, **at).plan().files["rows"].to_pylist())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Snapshots of 1, 3 and 6 rows, the first tagged dev; and a branch dev of the first two, with a tag one."""
    table = created(tmp_path, COLUMNS)
    written(table, [{"id": 1}], COLUMNS)
    table.create_tag("dev")
    written(table, [{"id": 2}, {"id": 3}], COLUMNS)
    found = tmp_path / "db.db" / "t"
    home = found / "branch" / "branch-dev"
    for name in ("schema", "snapshot", "tag"):
        (home / name).mkdir(parents=True)
    (home / "schema" / "schema-0").write_bytes((found / "schema" / "schema-0").read_bytes())
    for number in (1, 2):
        content = (found / "snapshot" / f"snapshot-{number}").read_bytes()
        (home / "snapshot" / f"snapshot-{number}").write_bytes(content)
    (home / "tag" / "tag-one").write_bytes((found / "snapshot" / "snapshot-1").read_bytes())
    written(table, [{"id": 4}] * 3, COLUMNS)
    return found


def named(folder: Path, form: str) -> list[tuple[Any, dict[str, Any]]]:
    """The table's form by path, in a warehouse, and in a catalog of pypaimon's."""
    properties = {"warehouse": str(folder.parents[1])}
    return [
        (f"{folder}{form}", {}),
        (f"{folder}{form}/", {}),
        (Path(f"{folder}{form}"), {}),
        (f"file://{folder}{form}", {}),
        (f"{folder}{form}", {"format": "paimon"}),
        (f"db.t{form}", {"catalog": properties, "format": "paimon"}),
        (f"db.t{form}", {"catalog": CatalogFactory.create(properties)}),
    ]


def test_branch_is_opened_by_its_name(folder: Path) -> None:
    """Not the tag of that name, and not the table's own newest state."""
    assert count(folder) == 6
    for target, more in named(folder, "$branch_dev"):
        opened = tamis.open(target, **more)
        assert opened.snapshot_id == 2
        assert opened.location == str(folder)
        assert count(target, **more) == 3
    for target, more in named(folder, "$branch_main"):
        assert count(target, **more) == 6


def test_states_of_a_branch_are_its_own(folder: Path) -> None:
    target = f"{folder}$branch_dev"
    assert count(target, snapshot_id=1) == 1
    assert count(target, ref="one") == 1
    assert count(target, as_of="2999-01-01") == 3
    with pytest.raises(NoSuchSnapshotError, match=r"has no snapshot 3\. It has 1, 2"):
        tamis.open(target, snapshot_id=3)
    for other in ("dev", "main"):
        with pytest.raises(NoSuchSnapshotError, match=rf"has no tag '{other}'. It has one"):
            tamis.open(target, ref=other)
    assert tamis.open(target).inspect().history[-1].refs == ("one",)


def test_loaded_branch_is_itself_and_not_a_tag_of_its_name(folder: Path) -> None:
    """What pypaimon has loaded says its branch: it was looked for among the tags first."""
    catalog = CatalogFactory.create({"warehouse": str(folder.parents[1])})
    assert count(catalog.get_table("db.t$branch_dev")) == 3


@pytest.mark.parametrize("form", ["$ro", "$RO", "$branch_dev$ro"])
def test_read_optimized_form_is_asked_for_by_name(folder: Path, form: str) -> None:
    for target, more in named(folder, form):
        opened = tamis.open(target, **more)
        assert opened.format.endswith("read-optimized)")
        assert opened.snapshot_id == (2 if "dev" in form else 3)


@pytest.mark.parametrize("branch", ["nothing", "..", "x/../y"])
def test_branch_that_is_not_there_is_an_error(folder: Path, branch: str) -> None:
    properties = {"warehouse": str(folder.parents[1])}
    with pytest.raises(NoSuchSnapshotError, match="has no branch"):
        tamis.open(f"db.t$branch_{branch}", catalog=properties, format="paimon")
    if branch == "nothing":
        with pytest.raises(NoSuchSnapshotError, match="has no branch 'nothing'"):
            tamis.open(f"{folder}$branch_{branch}")
        with pytest.raises(NoSuchTableError, match="there is no table"):
            tamis.open(f"db.t$branch_{branch}", catalog=CatalogFactory.create(properties))


@pytest.mark.parametrize("form", ["files", "snapshots", "audit_log", "binlog", "Branch_dev", "whatever"])
def test_system_table_is_refused_by_its_name(folder: Path, form: str) -> None:
    """Its rows are not those of the table."""
    for before in ("", "$branch_dev"):
        for target, more in named(folder, f"{before}${form}"):
            with pytest.raises(UnsupportedFormatError, match=rf"\${form} is none of the forms") as caught:
                tamis.open(target, **more)
            assert caught.value.feature == f"the system table ${form}"


@pytest.mark.parametrize("form", ["$", "$branch_", "$ro$ro", "$files$ro", "$branch_dev$ro$x", "$branch_dev$"])
def test_name_that_names_nothing_is_an_error(folder: Path, form: str) -> None:
    for target, more in named(folder, form):
        with pytest.raises(NoSuchTableError, match="names nothing"):
            tamis.open(target, **more)


def test_folder_of_that_very_name_is_itself(tmp_path: Path) -> None:
    """A path is what the file system calls it; a name in a catalog never has such a table."""
    plain = MadeTable(tmp_path / "t", [{"id": 0, "name": "id", "type": "BIGINT"}])
    odd = MadeTable(tmp_path / "t$branch_x", [{"id": 0, "name": "other", "type": "BIGINT"}])
    for target in (odd.folder, f"file://{odd.folder}", f"{odd.folder}/"):
        assert [column.name for column in tamis.open(target).schema.columns] == ["other"]
    assert [column.name for column in tamis.open(plain.folder).schema.columns] == ["id"]


def test_option_that_leads_to_another_branch_is_refused(folder: Path) -> None:
    """Paimon's readers follow it, whichever branch has it."""
    for home, branch in ((folder, "dev"), (folder / "branch" / "branch-dev", "main")):
        path = home / "schema" / "schema-0"
        document = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps(document | {"options": {"branch": branch}}), encoding="utf-8")
    for target, said in ((f"{folder}", "dev"), (f"{folder}$branch_dev", "main")):
        with pytest.raises(UnsupportedFormatError, match=f"its option branch says {said}") as caught:
            tamis.open(target)
        assert caught.value.feature == "the option branch"
