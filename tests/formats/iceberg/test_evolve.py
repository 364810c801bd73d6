"""Changes of the partition spec: by PyIceberg's rules, through a catalog or in a folder, with all else as it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType, TimestampType

import tamis
from tamis.errors import CommitRefused
from tamis.formats.edit import NewFile
from tamis.formats.iceberg.homes import FolderHome, Lost
from tests.making.cli_tables import run
from tests.making.edits import data_file, edit, entries, latest, make_table, writable


def fields(path: str) -> list[tuple[str, str, int]]:
    document = latest(path)
    spec = next(one for one in document["partition-specs"] if one["spec-id"] == document["default-spec-id"])
    return [(one["name"], one["transform"], one["field-id"]) for one in spec["fields"]]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_folders_table_evolves_and_keeps_all_else(tmp_path: Path, version: int) -> None:
    """Files that there are keep their spec, and what nobody here knows stays in the document."""
    path = make_table(tmp_path, version, **{"of-a-later-version": {"a": [1]}, "default-spec-id": 1})
    table = writable(path)
    table.commit(edit(table, "append", added=(data_file(path, 1, 1), data_file(path, 2, 3))))
    before = latest(path)
    done = tamis.open(path, cache=False).evolve(add=["truncate(3, id) as part"], drop=["region"])
    after = latest(path)
    kept = [] if version > 1 else [("region", "void", 1000)]
    assert (done.changed, done.spec_id) == (True, after["default-spec-id"])
    assert fields(path) == [*kept, ("part", "truncate[3]", 1004)]
    changed = {"partition-specs", "default-spec-id", "last-partition-id", "metadata-log", "last-updated-ms"}
    assert {key for key in after if after[key] != before.get(key)} <= changed | {"partition-spec"}
    assert after["of-a-later-version"] == {"a": [1]}
    assert sorted(one.spec_id for one in entries(path)) == [1, 3]
    assert done.table.plan("region = 'eu'").stats.kept == 2
    again = done.table.evolve()
    assert (again.spec_id, again.changed, latest(path)) == (done.spec_id, False, after)
    assert [one["metadata-file"] for one in after["metadata-log"]][-1].endswith("v2.metadata.json")


@pytest.mark.parametrize("ids", [True, False])
def test_the_only_spec_of_the_oldest_tables_stays(tmp_path: Path, *, ids: bool) -> None:
    """Their document has it under a name of its own, perhaps without ids: files of it are still to be found."""
    path = make_table(tmp_path, 1)
    only = [{"name": "region", "transform": "identity", "source-id": 2, **({"field-id": 1000} if ids else {})}]
    document = {**latest(path), "partition-spec": only}
    for name in ("partition-specs", "default-spec-id", "last-partition-id"):
        del document[name]
    Path(path, "metadata", "v1.metadata.json").write_text(json.dumps(document))
    table = writable(path)
    table.commit(edit(table, "append", added=(NewFile(f"{path}/data/a.parquet", 9, 9, 0, ("eu",)),)))
    done = tamis.open(path, cache=False).evolve(add=["bucket(4, id)"])
    assert fields(path) == [("region", "identity", 1000), ("id_bucket_4", "bucket[4]", 1001)]
    assert [one["spec-id"] for one in latest(path)["partition-specs"]] == [0, done.spec_id]
    assert latest(path)["last-partition-id"] == 1001
    assert [tamis.open(path, cache=False).plan(f"region = '{one}'").stats.kept for one in ("eu", "us")] == [1, 0]


def test_a_field_is_replaced_by_name_or_by_what_it_is_made_of(tmp_path: Path) -> None:
    path = make_table(tmp_path, 2)
    tamis.open(path, cache=False).evolve(replace={"days(day)": "month(day)"}, drop=["amount"])
    assert [one[:2] for one in fields(path)] == [("day_month", "month")]
    tamis.open(path, cache=False).evolve(add=["Region", "bucket(8, id)"])
    assert [one[:2] for one in fields(path)] == [
        ("day_month", "month"),
        ("region", "identity"),
        ("id_bucket_8", "bucket[8]"),
    ]
    # The same field again has the id that it had: readers tie values by it.
    assert fields(path)[1][2] == 1000


def test_what_cannot_be_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    path = make_table(tmp_path, 2, **{"default-spec-id": 0})  # a spec to which anything else can be added
    table, before = tamis.open(path, cache=False), sorted(tmp_path.rglob("*"))
    for said in (
        {"add": ["nowhere"]},
        {"add": ["bucket(id)"]},
        {"add": ["years(region)"]},
        {"drop": ["region"]},
        {"drop": ["bucket(2, id)"]},
        {"add": ["lower(region)"]},
        # Java reads no such width, and then not the table.
        {"add": ["bucket(0, id)"]},
        {"add": ["truncate(0, id)"]},
        {"add": ["bucket(2147483648, id)"]},
        {"add": [f"bucket({'9' * 5000}, id)"]},
        {"add": ["bucket(\u0668, id)"]},
    ):
        with pytest.raises(CommitRefused):
            table.evolve(**said)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        table.evolve(add="region")
    with pytest.raises(TypeError, match="replace is a list"):
        table.evolve(replace=["region"])  # type: ignore[arg-type]
    assert sorted(tmp_path.rglob("*")) == before


def test_columns_that_differ_in_case_alone_are_told_apart(tmp_path: Path) -> None:
    columns = [
        {"id": number, "name": name, "required": False, "type": "long"}
        for number, name in enumerate(["id", "ID", "Other"], start=1)
    ]
    schemas = [{"type": "struct", "schema-id": 0, "fields": columns}]
    specs: list[object] = [{"spec-id": 0, "fields": []}]
    path = make_table(tmp_path, 2, **{"schemas": schemas, "partition-specs": specs, "default-spec-id": 0})
    tamis.open(path, cache=False).evolve(add=["bucket(004, id)", "truncate(9, ID)", "other"])
    sources = [one["source-id"] for one in latest(path)["partition-specs"][-1]["fields"]]
    assert (sources, [one[1] for one in fields(path)]) == ([1, 2, 3], ["bucket[4]", "truncate[9]", "identity"])
    with pytest.raises(CommitRefused, match="'Id' may be 'id' or 'ID'"):
        tamis.open(path, cache=False).evolve(add=["truncate(3, Id)"])
    tamis.open(path, cache=False).evolve(drop=["truncate(9, ID)"])
    assert [one[1] for one in fields(path)] == ["bucket[4]", "identity"]


def test_through_a_catalog_others_see_it(tmp_path: Path) -> None:
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path / 'c.db'}", warehouse=tmp_path.as_uri())
    catalog.create_namespace("db")
    schema = Schema(
        NestedField(1, "id", LongType()), NestedField(2, "s", StringType()), NestedField(3, "ts", TimestampType())
    )
    catalog.create_table("db.t", schema)
    done = tamis.open("db.t", catalog=catalog, cache=False).evolve(add=["days(ts)", "truncate(2, s)"])
    theirs = catalog.load_table("db.t")
    assert [str(field.transform) for field in theirs.spec().fields] == ["day", "truncate[2]"]
    assert (theirs.spec().spec_id, done.changed) == (done.spec_id, True)
    with theirs.update_spec() as update:
        update.remove_field("ts_day")
    # No field is left: that is the first spec again.
    assert done.table.evolve(drop=["truncate(2, s)"]).spec_id == catalog.load_table("db.t").spec().spec_id == 0


def test_an_answer_that_was_lost_loses_no_metadata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client asks again, and hears of its own change as another's: the file that it wrote is the table."""
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path / 'c.db'}", warehouse=tmp_path.as_uri())
    catalog.create_namespace("db")
    catalog.create_table("db.t", Schema(NestedField(1, "id", LongType())))
    commit, tries = SqlCatalog.commit_table, [1]

    def unheard(mine: SqlCatalog, *said: object) -> object:
        answer = commit(mine, *said)  # type: ignore[arg-type]
        if tries:
            tries.pop()
            raise CommitFailedException("the table has changed")
        return answer

    table = tamis.open("db.t", catalog=catalog, cache=False)
    monkeypatch.setattr(SqlCatalog, "commit_table", unheard)
    done = table.evolve(add=["bucket(4, id)"])
    assert [str(field.transform) for field in catalog.load_table("db.t").spec().fields] == ["bucket[4]"]
    assert (done.changed, done.spec_id) == (True, 1)


def test_a_lost_race_is_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_table(tmp_path, 2, **{"default-spec-id": 0})
    swap, lost = FolderHome.swap, [1]

    def late(home: FolderHome, *said: object) -> str:
        if lost:
            lost.pop()
            document = {**latest(path), "properties": {"theirs": "1"}}
            Path(path, "metadata", "v2.metadata.json").write_text(json.dumps(document))
            raise Lost("another was first")
        return swap(home, *said)  # type: ignore[arg-type]

    monkeypatch.setattr(FolderHome, "swap", late)
    monkeypatch.setattr("time.sleep", lambda _: None)
    assert tamis.open(path, cache=False).evolve(add=["region"]).changed
    assert latest(path)["properties"] == {"theirs": "1"}
    assert fields(path)[-1][0] == "region"


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_table(tmp_path, 2)
    change = ("--replace", "day=years(day)", "--drop", "amount")
    shown = run(capsys, monkeypatch, "evolve", path, *change, "--dry-run")
    assert "spec 3: day (day), amount (identity); 0 files" in shown.out, shown
    assert "new files would have spec 4: day_year (year)" in shown.out
    assert latest(path)["default-spec-id"] == 3
    wrong = run(capsys, monkeypatch, "evolve", path, "--add", "nosuch", "--dry-run")
    assert (wrong.code, wrong.out) == (2, "")
    assert "nosuch" in wrong.err
    done = run(capsys, monkeypatch, "evolve", path, *change)
    assert (done.code, done.out.strip()) == (0, str(latest(path)["default-spec-id"])), done.err
    again = tamis.open(path).plan_evolve(add=["years(day)"], drop=["day_year"])
    assert not again.changed, again
    assert run(capsys, monkeypatch, "evolve", path).code == 2
