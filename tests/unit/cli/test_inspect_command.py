"""`tamis inspect` as its user sees it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyiceberg.table import Table

from tamis.explain.words import WIDTH
from tests.making.cli_tables import SCHEMA, Tamis, catalog, events, folder_of, run


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    return events(tmp_path_factory.mktemp("events"))


@pytest.fixture
def tamis(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Tamis:
    return lambda *arguments: run(capsys, monkeypatch, *arguments)


def test_inspect_shows_every_spec_and_marks_the_current_one(tamis: Tamis, table: Table) -> None:
    ran = tamis("inspect", folder_of(table))
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    facts = {line.split()[0]: line.split(maxsplit=1)[1] for line in lines[: lines.index("")]}
    assert facts["format"] == "iceberg v2"
    assert facts["snapshot"].startswith(f"{table.metadata.current_snapshot_id}, made by append at ")
    assert facts["history"] == "4 snapshots; branches: audit, main; tags: first"
    assert facts["columns"] == "3"
    assert facts["data"].startswith("4 files, 9 rows, ")
    assert facts["small"] == "4 files below 384.0 MiB, 75% of the target of 512.0 MiB"
    assert facts["deletes"] == "none"
    specs = lines[lines.index("") + 1 :]
    assert specs[0].split() == ["spec", "partitioned", "by", "files", "rows", "size", "average", "small"]
    assert specs[1].split()[:4] == ["0", "region", "2", "6"]
    assert specs[2].split()[:6] == ["1", "*", "region,", "day(ts)", "2", "3"]
    assert specs[3].split()[:3] == ["all", "4", "9"]
    assert specs[4] == "* the spec that new files are written with"


def test_inspect_shows_the_schema_and_the_snapshots(tamis: Tamis, table: Table) -> None:
    lines = tamis("inspect", folder_of(table)).out.splitlines()
    schema = lines.index("schema")
    assert [line.split() for line in lines[schema + 1 : schema + 4]] == [
        ["id", "bigint"],
        ["region", "string"],
        ["ts", "timestamp_ntz"],
    ]
    history = lines.index("snapshots, the newest first")
    newest, oldest = lines[history + 2].split(), lines[history + 5].split()
    assert (newest[0], newest[-1]) == (str(table.metadata.current_snapshot_id), "main")
    assert (oldest[0], oldest[-1]) == (str(table.history()[0].snapshot_id), "first")
    assert newest[3:5] == ["append", "+1"]
    assert max(map(len, lines[history:])) <= WIDTH


def test_snapshot_ids_are_text_as_well_in_json(tamis: Tamis, table: Table) -> None:
    """Readers that keep numbers as doubles round them."""
    found = json.loads(tamis("inspect", folder_of(table), "--json").out)
    assert found["snapshot"] == str(table.metadata.current_snapshot_id)
    assert [made["snapshot"] for made in found["history"]] == [str(made["id"]) for made in found["history"]]
    assert [column["name"] for column in found["schema"]] == ["id", "region", "ts"]


def test_json_says_the_same_and_more(tamis: Tamis, table: Table) -> None:
    found = json.loads(tamis("inspect", folder_of(table), "--json").out)
    assert found["version"] == 1
    assert found["snapshot_id"] == table.metadata.current_snapshot_id
    assert found["total"]["files"] == 4
    assert [spec["current"] for spec in found["specs"]] == [False, True]
    assert found["specs"][1]["fields"] == [
        {"name": "region", "transform": "identity", "source": "region", "dropped": False},
        {"name": "ts_day", "transform": "day", "source": "ts", "dropped": False},
    ]
    assert found["specs"][0]["average_bytes"] == found["specs"][0]["bytes"] // 2


def test_an_older_state_is_inspected_alike(tamis: Tamis, table: Table) -> None:
    found = json.loads(tamis("inspect", folder_of(table), "--json", "--ref", "first").out)
    assert (found["snapshot_id"], found["total"]["files"]) == (table.history()[0].snapshot_id, 1)


def test_empty_table_has_a_spec_and_no_file(tamis: Tamis, tmp_path: Path) -> None:
    table = catalog(tmp_path).create_table("db.empty", SCHEMA)
    out = tamis("inspect", folder_of(table)).out
    assert "none: the table is empty" in out
    assert "0 files, 0 rows, 0 B" in out
    assert "0 *   nothing             0" in out


def test_property_that_may_hold_a_secret_is_not_shown(tamis: Tamis, tmp_path: Path) -> None:
    """Users keep anything in table properties; only those that say how the table is written are facts about it."""
    properties = {
        "write.parquet.compression-codec": "zstd",
        "owner.token": "s3cr3t",
        "s3.secret-access-key": "s3cr3t",
    }
    table = catalog(tmp_path).create_table("db.secret", SCHEMA, properties=properties)
    for option in ((), ("--json",)):
        out = tamis("inspect", folder_of(table), *option).out
        assert "zstd" in out
        assert "s3cr3t" not in out
