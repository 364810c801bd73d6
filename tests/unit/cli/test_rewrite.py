"""`tamis rewrite`: a plan as text and JSON, and what it says to what it does not do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyiceberg.table import Table

from tests.making.cli_tables import Tamis, events, folder_of, rows, run
from tests.making.delta_logs import DeltaLog, add, metadata, protocol, vector


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    made = events(tmp_path_factory.mktemp("events"))
    for day in range(5, 9):
        made.append(rows([day], "eu", 3))
    return made


@pytest.fixture
def tamis(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Tamis:
    return lambda *arguments: run(capsys, monkeypatch, *arguments)


def test_dry_run_shows_totals_groups_and_candidates(tamis: Tamis, table: Table) -> None:
    said = tamis("rewrite", folder_of(table), "--dry-run", "--where", "region = 'eu'")
    assert said.code == 0, said.err
    lines = said.out.splitlines()
    assert lines[0].startswith("TABLE  ")
    assert "WHERE  region = 'eu'" in lines
    assert any(line.startswith("would rewrite 5 of 8 files in 1 group") for line in lines)
    assert "candidates: 6 files, " in said.out
    assert "    6  smaller than 384MB" in lines
    (header,) = [line for line in lines if line.startswith("group")]
    assert header.split() == ["group", "files", "size", "new", "files", "spec", "partition"]
    assert lines[-1].endswith("region=eu/ts_day=2024-01-03")
    assert all(len(line) <= 80 for line in lines[1:])


def test_json_has_groups_stats_and_options_for_programs(tamis: Tamis, table: Table) -> None:
    said = tamis("rewrite", folder_of(table), "--dry-run", "--json", "--target-file-size-bytes", "256MB")
    found = json.loads(said.out)
    assert found["options"]["target-file-size-bytes"] == 256 << 20
    assert found["totals"]["rewritten_files"] == 5
    assert found["totals"]["expected_files"] == 4
    assert found["groups"][0]["files"][0].endswith(".parquet")
    assert found["filter_stats"]["fail_open_files"] == 0
    assert "candidates" not in found
    listed = json.loads(tamis("rewrite", folder_of(table), "--dry-run", "--json", "--candidates", "--limit", "2").out)
    assert len(listed["candidates"]) == 2


def test_candidates_say_why(tamis: Tamis, table: Table) -> None:
    said = tamis("rewrite", folder_of(table), "--dry-run", "--candidates", "--limit", "3", "--where", "id = 2")
    assert "pruned by " in said.out
    assert "more" in said.out.splitlines()[-1]


def test_nothing_to_do_is_said_in_a_line(tamis: Tamis, table: Table) -> None:
    said = tamis("rewrite", folder_of(table), "--dry-run", "--where", "region = 'uk'")
    assert "nothing to rewrite in 8 files" in said.out


def test_without_dry_run_it_says_that_it_does_not_rewrite_yet(tamis: Tamis, table: Table) -> None:
    said = tamis("rewrite", folder_of(table))
    assert said.code == 2
    assert not said.out
    words = " ".join(said.err.replace("│", " ").split())
    assert "does not run them yet. Add --dry-run" in words
    assert "rewrite_data_files" in words


def test_options_may_stand_before_the_table(tamis: Tamis, table: Table) -> None:
    said = tamis("rewrite", "--min-input-files", "2", "--rewrite-all", "--dry-run", folder_of(table))
    assert said.code == 0
    assert "would rewrite 8 of 8 files" in said.out


def test_wrong_options_are_told_together_with_code_two(tamis: Tamis, table: Table) -> None:
    wrong = ("--min-input-files", "no", "--option", "targt-file-size-bytes=1")
    said = tamis("rewrite", folder_of(table), "--dry-run", *wrong)
    assert said.code == 2
    assert "min-input-files" in said.err.replace("_", "-")
    assert "target-file-size-bytes" in said.err
    unknown = tamis("rewrite", folder_of(table), "--dry-run", "--target-file-size", "1")
    assert unknown.code == 2
    assert "--target-file-size-bytes" in unknown.err


def test_delta_table_takes_its_own_words_and_refuses_what_it_has_not(tamis: Tamis, tmp_path: Path) -> None:
    log = DeltaLog(tmp_path / "delta")
    log.commit(protocol(reader=3, writer=7, features=["deletionVectors"]), metadata())
    vectors = [vector("ab^-aqEH.-t@S}K{vb[*k^", cardinality=1), *[None] * 5]
    log.commit(*(add(f"part-{n}.parquet", "eu", dv, 1000) for n, dv in enumerate(vectors)))
    said = tamis("rewrite", str(tmp_path / "delta"), "--dry-run", "--option", "maxFileSize=256MB", "--json")
    assert said.code == 0, said.err
    found = json.loads(said.out)
    assert found["options"]["target-file-size-bytes"] == 256 << 20
    assert found["groups"][0]["partition"] == "part=eu"
    assert found["groups"][0]["spec_id"] is None
    (path,) = found["groups"][0]["delete_files"]
    assert path.endswith(".bin")
    refused = tamis("rewrite", str(tmp_path / "delta"), "--dry-run", "--only-old-specs")
    assert refused.code == 2
    assert "only_old_specs: a Delta table is partitioned in one way" in refused.err


def test_option_that_is_given_twice_is_refused(tamis: Tamis, table: Table) -> None:
    start = ("rewrite", folder_of(table), "--dry-run")
    twice = tamis(*start, "--option", "min-input-files=2", "--option", "min-input-files=3")
    assert twice.code == 2
    assert "min-input-files is given twice" in twice.err
    both = tamis(*start, "--rewrite-all", "--option", "rewrite_all=false")
    assert both.code != 0
    assert "rewrite_all: it is given twice" in both.err


def test_text_shows_no_credentials_of_paths(tamis: Tamis, tmp_path: Path) -> None:
    log = DeltaLog(tmp_path / "t")
    log.begin(add("s3://key:secret@bucket/1.parquet", "a"))
    said = tamis("rewrite", str(tmp_path / "t"), "--dry-run", "--candidates")
    assert said.code == 0, said.err
    assert "bucket/1.parquet" in said.out
    assert "secret" not in said.out


def test_damaged_vector_is_told_with_its_own_file(tamis: Tamis, tmp_path: Path) -> None:
    """Of several files of a group, the one whose vector cannot be found is named, not the first."""
    log = DeltaLog(tmp_path / "t")
    good = vector("ab^-aqEH.-t@S}K{vb[*k^")
    files = (add("1.parquet", dv=good), add("2.parquet", dv=vector("short")))
    log.begin(*files, reader=3, features=("deletionVectors",))
    said = tamis("rewrite", str(tmp_path / "t"), "--dry-run", "--rewrite-all")
    assert said.code != 0
    assert "2.parquet" in said.err
    assert "1.parquet" not in said.err
