"""Updates and merges up to the point where Spark is needed: plans, dry runs, and what cannot be meant."""

from __future__ import annotations

from pathlib import Path

import pytest

import tamis
from tamis.errors import BindError, ExecutorError
from tamis.formats.edit import NewFile
from tests.making.cli_tables import run
from tests.making.edits import data_file, edit, latest, make_table, writable


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Files of the ids 0 to 9, 10 to 19 and so on, in four specs."""
    found = make_table(tmp_path, 2)
    table = writable(found)
    files: tuple[NewFile, ...] = tuple(data_file(found, number, number % 4) for number in range(8))
    table.commit(edit(table, "append", added=files))
    return found


def test_a_plan_tells_files_that_are_replaced_from_those_that_are_read(path: str) -> None:
    table = tamis.open(path, cache=False)
    plan = table.plan_update({"amount": "amount * 2"}, where="id between 10 and 19 or id = 52")
    assert sorted(plan.files["action"].to_pylist()) == ["rewrite", "rewrite"]
    assert "1 file with 10 rows rewritten whole (every row matches)" in " ".join(plan.explain().split())
    assert "1 file read and rewritten if a row matches, 6 files not touched" in " ".join(plan.explain().split())
    marks = table.plan_update({"amount": 1}, where="id between 10 and 19 or id = 52", mode="merge-on-read")
    assert sorted(marks.files["action"].to_pylist()) == ["mark rows", "rewrite"]
    assert marks.explain("json") == marks.plan.explain("json")
    assert "amount" in repr(marks)


def test_no_file_that_may_match_is_no_snapshot_and_needs_no_spark(path: str) -> None:
    before = latest(path)
    done = tamis.open(path, cache=False).update({"amount": 1}, where="id > 1000")
    assert (done.rows, done.attempts, done.snapshot_id) == (0, 0, before["current-snapshot-id"])
    assert latest(path) == before


def test_what_cannot_be_meant_is_an_error_at_once(path: str) -> None:
    table, before = tamis.open(path, cache=False), latest(path)
    with pytest.raises(ExecutorError, match="cannot update rows"):
        table.update({"amount": 1}, where="id = 5")
    with pytest.raises(BindError, match="no column amoun"):
        table.update({"amoun": 1}, where="id = 5")
    with pytest.raises(TypeError, match="where is None: give a condition; 'true' updates every row"):
        table.update({"amount": 1}, where=None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="set is a list"):
        table.update([("amount", 1)], where="true")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="no option 'dry_run': plan_update shows what update would do"):
        table.update({"amount": 1}, where="true", dry_run=True)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="snapshot_properties is a list"):
        table.update({"amount": 1}, where="true", snapshot_properties=["a"])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="spark is a str"):
        table.update({"amount": 1}, where="true", spark="x")  # type: ignore[arg-type]
    assert latest(path) == before


def test_the_command_shows_what_would_happen_and_says_what_is_wrong(
    path: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    where = ("--where", "id between 10 and 19 or id = 52")
    shown = run(capsys, monkeypatch, "update", path, "--set", "amount=amount * 2", *where, "--dry-run")
    assert shown.code == 0
    assert "UPDATE of amount (copy-on-write)" in shown.out
    lines = shown.out.splitlines()
    files = [number for number, line in enumerate(lines) if line.endswith(".parquet")]
    assert [lines[number - 1].split()[0] for number in files] == ["rewrite"] * 2
    for arguments, said in (
        (("--set", "amount", *where), "write column=value"),
        (("--set", "amount=1", "--set", "amount=2", *where), "set twice"),
        (("--set", "amoun=1", *where), "no column amoun"),
        (("--set", "amount=1", "--where", "idd = 5"), "no column idd"),
        (("--set", "amount=1"), "--where"),
    ):
        ran = run(capsys, monkeypatch, "update", path, *arguments, "--dry-run")
        assert (ran.code, said in ran.err) == (2, True), ran.err
    on = ("--source", path, "--on", "t.id = s.id")
    for arguments, said in (
        (on, "give at least one"),
        ((*on, "--when-matched", "INSERT *"), "write UPDATE or DELETE"),
        ((*on, "--when-not-matched", "DELETE"), "write INSERT"),
        ((*on, "--when-matched", "UPDATE SET amoun = 1"), "no column amoun"),
        ((*on, "--when-matched", "UPDATE"), "does not end in an action"),
        (("--source", "nowhere.csv", "--on", "true", "--when-matched", "DELETE"), "there is no file"),
        (("--source", path, "--on", "t.id = ", "--when-matched", "DELETE"), "cannot parse the condition"),
    ):
        ran = run(capsys, monkeypatch, "merge", path, *arguments, "--dry-run")
        assert (ran.code, said in ran.err) == (2, True), ran.err
