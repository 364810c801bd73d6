"""Deletes that cover whole files: by metadata alone, without Spark, whatever the files' specs are."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

import tamis
from tamis.cli.sparks import Session
from tamis.errors import CommitConflict, CommitRefused, ExecutorError
from tamis.formats.edit import Committed, Edit, Marked, NewFile
from tamis.formats.iceberg.commit import WritableIceberg
from tamis.formats.iceberg.single_values import encoded
from tamis.jobs import delete as jobs
from tests.making.cli_tables import run
from tests.making.edits import (
    data_file,
    edit,
    entries,
    latest,
    make_table,
    planned,
    position_deletes,
    writable,
)


def append(path: str, *files: NewFile) -> None:
    table = writable(path)
    table.commit(edit(table, "append", added=files))


class FakeSession:
    """What a job asks of a session that reads nothing."""

    version = "0"


def names(path: str) -> list[str]:
    return sorted(Path(one.path).name.removesuffix(".parquet") for one in entries(path) if one.content == 0)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_files_of_every_spec_go_by_metadata_alone(tmp_path: Path, version: int) -> None:
    """Ids 10 to 49 fill the files 1 to 4, each of another spec. PyIceberg sees what is left."""
    path = make_table(tmp_path, version)
    append(path, *(data_file(path, number, number % 4) for number in range(8)))
    done = tamis.open(path, cache=False).delete("id between 10 and 49")
    assert names(path) == ["f0", "f5", "f6", "f7"]
    told = (done.rows, done.files_dropped, done.files_rewritten, done.files_added, done.bytes_removed)
    assert told == (40, 4, 0, 0, 1001 + 1002 + 1003 + 1004)
    assert done.table.snapshot_id == done.snapshot_id == latest(path)["current-snapshot-id"]
    assert latest(path)["snapshots"][-1]["summary"]["operation"] == "delete"
    if version < 3:
        newest = max(Path(path, "metadata").glob("v*.metadata.json"))
        files = [task.file.file_path for task in StaticTable.from_metadata(str(newest)).scan().plan_files()]
        assert len(files) == 4
    assert "pyspark" not in sys.modules or done.attempts == 1


def test_a_null_partition_stays_where_the_condition_is_null_of_it(tmp_path: Path) -> None:
    """`region < 'z'` is NULL of a NULL region. Java's own DELETE drops such files: theirs is the wrong one."""
    path = make_table(tmp_path, 2)
    append(path, *(data_file(path, number, 1) for number in range(6)))
    tamis.open(path, cache=False).delete("region < 'z'")
    assert names(path) == ["f0", "f3"]


def test_no_match_is_no_snapshot(tmp_path: Path) -> None:
    path = make_table(tmp_path, 2)
    append(path, data_file(path, 1, 1))
    before = latest(path)
    done = tamis.open(path, cache=False).delete("id > 1000")
    assert (done.rows, done.attempts, done.snapshot_id) == (0, 0, before["current-snapshot-id"])
    assert latest(path) == before
    assert tamis.open(path, cache=False).delete("id > 1000", snapshot_properties={"a": "b"}).attempts == 1
    assert latest(path)["snapshots"][-1]["summary"]["a"] == "b"


def test_everything_can_go(tmp_path: Path) -> None:
    path = make_table(tmp_path, 2)
    append(path, *(data_file(path, number, number % 4) for number in range(8)))
    append(path, data_file(path, 9, 0))
    table = writable(path)
    table.commit(edit(table, "delete", deletes=(position_deletes(path, 3, data_file(path, 9, 0)),)))
    tamis.open(path, cache=False).delete("true")
    assert entries(path) == [] or {one.content for one in entries(path)} == {1}
    assert tamis.open(path, cache=False).plan().stats.files == 0


def test_a_file_that_has_to_be_read_needs_spark_and_nothing_is_left_behind(tmp_path: Path) -> None:
    path = make_table(tmp_path, 2)
    append(path, *(data_file(path, number, 1) for number in range(3)))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ExecutorError, match=r"of 1 file some rows may match"):
        tamis.open(path, cache=False).delete("id between 10 and 22")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_delete_that_has_read_nothing_is_planned_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that match came in between: serializable, so they go as well."""
    path = make_table(tmp_path, 2)
    append(path, *(data_file(path, number, 1) for number in range(3)))
    commit = WritableIceberg.commit
    again = NewFile(**{name: getattr(data_file(path, 1, 1), name) for name in NewFile.__slots__} | {"path": "again"})
    raced: list[int] = []

    def late(table: WritableIceberg, made: object) -> object:
        if not raced:
            raced.append(1)
            append(path, again)
        return commit(table, made)  # type: ignore[arg-type]

    table = tamis.open(path, cache=False)
    monkeypatch.setattr(WritableIceberg, "commit", late)
    done = table.delete("id between 10 and 19")
    assert (names(path), done.files_dropped) == (["f0", "f2"], 2)
    raced.clear()
    table.delete("id between 20 and 29", isolation="snapshot")
    assert names(path) == ["again", "f0"]


def test_a_conflict_that_does_not_end_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_table(tmp_path, 2, properties={"commit.retry.num-retries": "2"})
    append(path, data_file(path, 1, 1))
    tries: list[int] = []

    def always(table: WritableIceberg, made: object) -> object:  # noqa: ARG001 - as commit has it
        tries.append(1)
        raise CommitConflict("no", table="t", base=1, head=2, reason="no", retryable=False)

    monkeypatch.setattr(WritableIceberg, "commit", always)
    with pytest.raises(CommitConflict):
        tamis.open(path, cache=False).delete("id between 10 and 19")
    assert len(tries) == 3


def test_an_interrupt_behind_the_commit_removes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has happened: files that the job has written are the table's."""
    path = make_table(tmp_path, 2)
    append(path, *(data_file(path, number, 1) for number in range(3)))
    commit = WritableIceberg.commit
    removed: list[str] = []
    happened: list[int] = []

    def committed(table: WritableIceberg, made: Edit) -> Committed:
        done = commit(table, made)
        happened.append(done.snapshot_id)
        return done

    def interrupted(files: object, column: str) -> int:
        if happened:
            raise KeyboardInterrupt
        return total(files, column)  # type: ignore[arg-type]

    total = jobs.total
    monkeypatch.setattr(WritableIceberg, "commit", committed)
    monkeypatch.setattr(WritableIceberg, "remove", lambda _, paths: removed.extend(paths))
    monkeypatch.setattr(jobs, "total", interrupted)
    monkeypatch.setattr(jobs._Work, "_new_rows", lambda work: work.kept([data_file(path, 9, 3)]))
    with suppress(KeyboardInterrupt):
        tamis.open(path, cache=False).delete("id between 10 and 19")
    assert happened == [latest(path)["current-snapshot-id"]]
    assert (names(path), removed) == (["f0", "f2", "f9"], [])


def test_files_of_which_no_row_has_left_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copy-on-write reads them, and finds that nothing matches: no snapshot, and nothing is left behind."""
    path = make_table(tmp_path, 2)
    append(path, *(data_file(path, number, 1) for number in range(3)))
    before = latest(path)
    copy = dataclasses.replace(data_file(path, 1, 3), path=f"{path}/data/copy.parquet")
    removed: list[str] = []
    monkeypatch.setattr(WritableIceberg, "remove", lambda _, paths: removed.extend(paths))
    monkeypatch.setattr(jobs._Work, "_check_condition", lambda _: None)
    monkeypatch.setattr(jobs._Work, "_survivors", lambda work, _: work.kept([copy]))
    monkeypatch.setattr("tamis.changing.check_session", lambda _: None)
    monkeypatch.setattr(tamis.Table, "_judged", lambda table, source, where, *_: table._at(source).plan(where))
    done = tamis.open(path, cache=False).delete("id = 12", spark=object())  # type: ignore[arg-type]
    assert (done.rows, done.attempts, done.snapshot_id) == (0, 0, before["current-snapshot-id"])
    assert (latest(path), set(removed)) == (before, {copy.path})


def of_some_rows(monkeypatch: pytest.MonkeyPatch, *hit: str) -> None:
    """Let jobs read without Spark; these are the files that have a matching row."""
    monkeypatch.setattr(jobs._Work, "_check_condition", lambda _: None)
    monkeypatch.setattr("tamis.spark.changes.touched", lambda *_: frozenset(hit))
    monkeypatch.setattr("tamis.changing.check_session", lambda _: None)
    monkeypatch.setattr(tamis.Table, "_judged", lambda table, source, where, *_: table._at(source).plan(where))


@pytest.mark.parametrize("hit", [1, None])
def test_files_without_a_matching_row_are_not_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hit: int | None
) -> None:
    """Bounds say of all three that a row may match: written anew is the one that has such a row, or none."""
    path = make_table(tmp_path, 2)
    files = [data_file(path, number, 1) for number in range(3)]
    append(path, *files)
    before = latest(path)["current-snapshot-id"]
    rest = dataclasses.replace(data_file(path, 7, 3), rows=9)
    asked: list[frozenset[str]] = []

    def survivors(work: jobs._Work, only: frozenset[str]) -> tuple[NewFile, ...]:
        asked.append(only)
        return work.kept([rest])

    of_some_rows(monkeypatch, *([] if hit is None else [files[hit].path]))
    monkeypatch.setattr(jobs._Work, "_survivors", survivors)
    done = tamis.open(path, cache=False).delete("id % 10 = 5", spark=FakeSession())  # type: ignore[arg-type]
    if hit is None:
        assert (asked, names(path), done.snapshot_id, done.rows) == ([], ["f0", "f1", "f2"], before, 0)
    else:
        assert (asked, names(path)) == ([{files[hit].path}], ["f0", "f2", "f7"])
        assert (done.rows, done.files_rewritten, done.files_added) == (1, 1, 1)


def test_a_file_that_is_read_and_loses_no_row_may_be_replaced_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Merge-on-read: a compaction of files that get no deletes takes nothing from these."""
    path = make_table(tmp_path, 2)
    files = [data_file(path, number, 1) for number in range(3)]
    append(path, *files)
    deletes = position_deletes(path, 5, files[1])

    def mark(*_: object) -> list[Marked]:
        compacted = writable(path)
        _, read = planned(compacted, lambda one: one == files[0].path)
        compacted.commit(edit(compacted, "replace", added=(data_file(path, 8, 1),), removed=read))
        return [Marked((files[1].path,), 2, deletes)]

    of_some_rows(monkeypatch)
    monkeypatch.setattr("tamis.spark.changes.rows_taken", lambda *_: None)
    monkeypatch.setattr("tamis.spark.write.mark_rows", mark)
    table = tamis.open(path, cache=False)
    done = table.delete("id % 10 = 5", spark=FakeSession(), mode="merge-on-read")  # type: ignore[arg-type]
    assert (done.rows, done.delete_files_added, names(path)) == (2, 1, ["f1", "f2", "f8"])


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_another_table_of_the_same_name_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """It was dropped, and made again: the condition was never meant for what is there now."""
    path = make_table(tmp_path, 2, **{"table-uuid": "6a5a5f36-52d2-4ab3-9b8e-36a6f0a2d0a1"})
    append(path, *(data_file(path, number, 1) for number in range(3)))
    table, commit = tamis.open(path, cache=False), WritableIceberg.commit

    def replaced() -> None:
        other = {**latest(path), "table-uuid": "0b7c3a7e-9ad8-4a39-8a0c-0d4d1c1f6a52"}
        Path(path, "metadata", "v3.metadata.json").write_text(json.dumps(other))

    def late(mine: WritableIceberg, made: Edit) -> Committed:
        replaced()
        return commit(mine, made)

    if when == "before":
        replaced()
    else:
        monkeypatch.setattr(WritableIceberg, "commit", late)
    with pytest.raises(CommitConflict, match="another table has its name now") as caught:
        table.delete("id between 10 and 19")
    assert not caught.value.retryable
    assert names(path) == ["f0", "f1", "f2"]
    if when == "before":
        with pytest.raises(CommitConflict, match="another table has its name now"):
            table.evolve(add=["region"])


def test_a_branch_is_deleted_from_alone(tmp_path: Path) -> None:
    path = make_table(tmp_path, 2)
    append(path, *(data_file(path, number, 1) for number in range(3)))
    table = writable(path)
    with pytest.raises(CommitRefused, match="audit"):
        tamis.open(path, cache=False).delete("true", branch="audit")
    document = latest(path)
    document["refs"]["audit"] = {"snapshot-id": document["current-snapshot-id"], "type": "branch"}
    Path(path, "metadata", "v3.metadata.json").write_text(json.dumps(document))
    done = tamis.open(path, cache=False).delete("id between 10 and 19", branch="audit")
    assert done.table.plan().stats.files == 2
    assert names(path) == ["f0", "f1", "f2"]
    assert tamis.open(path, ref="audit", cache=False).plan().stats.files == 2
    assert table.head("main") == latest(path)["current-snapshot-id"]
    assert planned(writable(path), lambda _: True)[0].stats.files == 3


def test_a_table_that_was_opened_at_a_branch_is_changed_there(tmp_path: Path) -> None:
    """Main is what nobody has named. A tag does not move."""
    path = make_table(tmp_path, 2)
    append(path, *(data_file(path, number, 1) for number in range(4)))
    document = latest(path)
    for name, kind in (("audit", "branch"), ("old", "tag")):
        document["refs"][name] = {"snapshot-id": document["current-snapshot-id"], "type": kind}
    Path(path, "metadata", "v3.metadata.json").write_text(json.dumps(document))
    table = tamis.open(path, ref="audit", cache=False)
    assert "3 files not touched" in repr(table.plan_delete("id between 10 and 19"))
    done = table.delete("id between 10 and 19")
    # What it gives back is of the branch, and so is what is done with it.
    again = done.table.delete("id between 20 and 29")
    assert names(path) == ["f0", "f1", "f2", "f3"]
    assert (again.files_dropped, again.table.plan().stats.files) == (1, 2)
    assert tamis.open(path, ref="audit", cache=False).plan().stats.files == 2
    assert again.table.delete("id between 0 and 9", branch="main").table.delete("id between 30 and 39").rows == 10
    assert names(path) == ["f1", "f2"]
    with pytest.raises(CommitRefused, match=r"'old' of .* is a tag"):
        tamis.open(path, ref="old", cache=False).delete("true")
    with pytest.raises(CommitRefused, match="branch ''"):
        tamis.open(path, cache=False).delete("true", branch="")
    assert names(path) == ["f1", "f2"]


def test_an_option_that_is_not_there_is_not_passed_over(tmp_path: Path) -> None:
    path = make_table(tmp_path, 2)
    append(path, data_file(path, 1, 1))
    table = tamis.open(path, cache=False)
    with pytest.raises(TypeError, match="no option 'dry_run': plan_delete shows"):
        table.delete("true", dry_run=True)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="no option 'brunch': there are mode, isolation, branch"):
        table.delete("true", brunch="audit")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="no option"):
        table.plan_delete("true", brunch="audit")  # type: ignore[call-arg]
    assert names(path) == ["f1"]


def test_what_cannot_be_meant_is_an_error_at_once(tmp_path: Path) -> None:
    path = make_table(tmp_path, 2)
    table = tamis.open(path, cache=False)
    with pytest.raises(TypeError, match="'true' deletes every row"):
        table.delete(None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="copy-on-write"):
        table.delete("true", mode="merge")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="serializable"):
        table.delete("true", isolation="none")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="storage is 'there': give one of 'session', 'catalog'"):
        table.delete("true", storage="there")  # type: ignore[arg-type]


def test_the_command_shows_what_it_would_do_and_does_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_table(tmp_path, 2)
    append(path, *(data_file(path, number, number % 4) for number in range(8)))
    shown = run(capsys, monkeypatch, "delete", path, "--where", "id between 10 and 19 or id = 52", "--dry-run")
    assert shown.code == 0, shown.err
    said = " ".join(shown.out.split())
    assert "1 file with 10 rows dropped by metadata alone" in said
    assert "1 file read and rewritten without the rows that match, 6 files not touched" in said
    lines = shown.out.splitlines()
    assert said.startswith(f"TABLE {path} iceberg v2, snapshot ")
    assert all(len(line) <= 80 for line in lines[1:])
    files = [number for number, line in enumerate(lines) if line.endswith(".parquet")]
    assert [lines[number - 1].split()[0] for number in files] == ["drop", "rewrite"]
    assert len(names(path)) == 8
    done = run(capsys, monkeypatch, "delete", path, "--where", "id between 10 and 19")
    assert done.code == 0, done.err
    assert done.out.strip() == str(latest(path)["current-snapshot-id"])
    assert "10 rows deleted: 1 file dropped" in done.err
    assert len(names(path)) == 7


def test_the_command_asks_the_session_what_a_time_means(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scan reads such a condition in the session's zone: the rows that it shows are those that are to go."""
    columns = [{"id": 1, "name": "ts", "required": False, "type": "timestamptz"}]
    schemas = [{"type": "struct", "schema-id": 0, "fields": columns}]
    specs: list[object] = [{"spec-id": 0, "fields": []}]
    path = make_table(tmp_path, 2, **{"schemas": schemas, "partition-specs": specs, "default-spec-id": 0})
    hour = {1: encoded(pa.int64(), 1_704_070_800_000_000)}  # 2024-01-01 01:00 UTC, in New York the year before
    append(path, NewFile(f"{path}/data/a.parquet", 1, 1, 0, null_counts={1: 0}, lower=hour, upper=hour))
    started: list[int] = []

    @contextmanager
    def session(_: Session) -> Iterator[None]:
        started.append(1)
        yield None

    monkeypatch.setattr(Session, "started", session)
    where = ("--where", "ts < timestamp '2024-01-01 00:00:00'")
    shown = run(capsys, monkeypatch, "delete", path, *where, "--dry-run")
    assert "--time-zone" in shown.err
    assert "DELETE (copy-on-write): 1 file not touched." in shown.out
    assert run(capsys, monkeypatch, "delete", path, *where).code == 0
    assert (started, names(path)) == ([1], ["a"])
    # With a zone that is named, in either way, it is known without Spark.
    told = ("--conf", "spark.sql.session.timeZone=UTC")
    assert run(capsys, monkeypatch, "delete", path, *where, *told).code == 0
    assert (started, names(path)) == ([1], ["a"])
    assert run(capsys, monkeypatch, "delete", path, *where, "--time-zone", "America/New_York").code == 0
    assert (started, names(path)) == ([1], [])
