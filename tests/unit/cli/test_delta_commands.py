"""The command line on Delta tables: their versions, in their own words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tamis import open as opened
from tests.making.cli_tables import Tamis, run
from tests.making.delta_logs import DeltaLog, add, metadata, protocol, remove


@pytest.fixture
def tamis(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Tamis:
    return lambda *arguments: run(capsys, monkeypatch, *arguments)


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """Three versions, made at seconds 1, 2 and 3 of 2024-01-15 as their commits say."""
    log = DeltaLog(tmp_path)
    second = 1_705_276_800_000
    on = metadata(**{"delta.enableInCommitTimestamps": "true"})
    log.commit({"commitInfo": {"inCommitTimestamp": second + 1000}}, protocol(), on, add("one", "a"))
    log.commit({"commitInfo": {"inCommitTimestamp": second + 2000}}, add("two", "b"))
    log.commit({"commitInfo": {"inCommitTimestamp": second + 3000}}, remove("one"))
    return str(tmp_path)


@pytest.mark.parametrize("command", ["explain", "inspect", "rewrite", "scan", "join"])
def test_state_that_delta_does_not_have_is_answered_with_its_options(tamis: Tamis, folder: str, command: str) -> None:
    """It once ended in a traceback, with the names of Python's arguments."""
    more = {"rewrite": ["--dry-run"], "join": ["keys.csv", "--on", "id"]}.get(command, [])
    ran = tamis(command, folder, *more, "--ref", "main")
    assert (ran.code, ran.out) == (2, "")
    said = " ".join(ran.err.replace("│", " ").split())
    assert "a Delta table has neither snapshot ids nor branches: give --table-version or --as-of" in said


def _kept(tamis: Tamis, *arguments: str) -> tuple[int, list[str]]:
    ran = tamis("explain", *arguments, "--json", "--files")
    assert (ran.code, ran.err) == (0, "")
    found = json.loads(ran.out)
    return found["table"]["snapshot_id"], [file["path"] for file in found["files"]]


def test_a_version_is_chosen_by_its_number_or_a_time(tamis: Tamis, folder: str) -> None:
    assert _kept(tamis, folder) == (2, ["two"])
    assert _kept(tamis, folder, "--table-version", "1") == (1, ["one", "two"])
    assert _kept(tamis, folder, "--table-version", "0", "--where", "part = 'a'") == (0, ["one"])
    assert _kept(tamis, folder, "--as-of", "2024-01-15T00:00:02.500Z") == (1, ["one", "two"])
    assert _kept(tamis, folder, "--as-of", "2024-01-15T02:00:01", "--time-zone", "+02:00") == (0, ["one"])
    assert json.loads(tamis("inspect", folder, "--table-version", "1", "--json").out)["snapshot_id"] == 1


@pytest.mark.parametrize("command", ["explain", "inspect"])
def test_a_version_that_is_not_there_is_refused(tamis: Tamis, folder: str, command: str) -> None:
    ran = tamis(command, folder, "--table-version", "3")
    assert ran.code == 2
    assert "has no version 3" in ran.err
    assert "0 to 2" in ran.err
    assert tamis(command, folder, "--table-version", "1", "--as-of", "2024-01-15").code == 2
    before = tamis(command, folder, "--as-of", "2024-01-15T00:00:00Z")
    assert (before.code, "version as of 2024-01-15" in before.err) == (2, True)


def test_states_are_called_versions(tamis: Tamis, folder: str) -> None:
    """A Delta table has no snapshots: what is printed has to be found in its own tools."""
    explained = tamis("explain", folder, "--table-version", "1").out
    assert ", version 1\n" in explained
    inspected = tamis("inspect", folder).out
    assert [line.split()[:2] for line in inspected.splitlines() if line.startswith("version ")] == [["version", "2,"]]
    assert "versions, the newest first" in inspected
    assert "snapshot" not in (explained + inspected).lower()
    assert "version 2" in repr(opened(folder))
