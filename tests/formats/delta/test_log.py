"""Which files of a log tell the state at a version."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import tamis
from tamis.errors import NoSuchSnapshotError, NoSuchTableError, UnreadableMetadataError
from tamis.formats.delta.log import list_log
from tamis.formats.storage.disk import LocalStorage
from tests.making.delta_logs import DeltaLog, add, metadata, protocol, remove


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    made = DeltaLog(tmp_path / "t")
    made.begin(add("0"))
    for number in range(1, 8):
        made.commit(add(str(number)))
    return made


def _versions(
    log: DeltaLog, version: int | None = None, *, hint: bool = True
) -> tuple[int | None, list[tuple[int, int]]]:
    found = list_log(LocalStorage(), str(log.root), hint=hint)
    segment = found.segment(found.newest if version is None else version)  # type: ignore[arg-type] # there is one
    base = None if segment.checkpoint is None else segment.checkpoint.version
    return base, [(one.first, one.last) for one in segment.commits]


def test_commits_alone_are_read_from_the_first(log: DeltaLog) -> None:
    assert _versions(log) == (None, [(number, number) for number in range(8)])


def test_the_newest_whole_checkpoint_comes_first(log: DeltaLog) -> None:
    log.checkpoint(2)
    log.checkpoint(5, "multi-part")
    assert _versions(log) == (5, [(6, 6), (7, 7)])
    assert _versions(log, 5) == (5, [])
    assert _versions(log, 4) == (2, [(3, 3), (4, 4)])


def test_a_set_of_parts_that_lacks_one_is_no_checkpoint(log: DeltaLog) -> None:
    """A writer that died left it: with it files of the missing part would be lost."""
    log.checkpoint(2)
    log.checkpoint(5, "multi-part")[1].unlink()
    assert _versions(log)[0] == 2


def test_a_part_of_billions_costs_no_more_than_any(log: DeltaLog) -> None:
    for name in ("0000000001.9999999999", "0000000000.0000000001", "0000000002.0000000001", "0000000001.0000000000"):
        (log.folder / f"{5:020d}.checkpoint.{name}.parquet").write_bytes(b"x")
    assert _versions(log)[0] is None


def test_a_checkpoint_that_the_hint_names_and_that_is_gone_is_named(log: DeltaLog) -> None:
    """It is what has to be restored: the commits before it were cleaned up."""
    (lost,) = log.checkpoint(5)
    log.hint({"version": 5})
    for version in range(5):
        (log.folder / f"{version:020d}.json").unlink()
    lost.unlink()
    with pytest.raises(UnreadableMetadataError, match="version 0 is missing") as raised:
        _versions(log)
    assert lost.name in str(raised.value)


@pytest.mark.parametrize("content", [b"", b"\n \n"])
def test_an_empty_commit_is_an_error_and_not_a_version_that_changed_nothing(log: DeltaLog, content: bytes) -> None:
    """A writer that died, or a disk that was full, left it: its files would be lost in silence."""
    (log.folder / f"{7:020d}.json").write_bytes(content)
    with pytest.raises(UnreadableMetadataError, match="it is empty: what version 7 changed is lost") as raised:
        tamis.open(log.root)
    assert raised.value.path.endswith(f"{7:020d}.json")
    assert len(tamis.open(log.root, version=6).plan().files) == 7


@pytest.mark.parametrize(("damaged", "meant"), [(b"aDd", "add"), (b"ald", "add"), (b"2emove", "remove")])
def test_a_misspelt_action_is_an_error_and_an_unknown_one_is_not(log: DeltaLog, damaged: bytes, meant: str) -> None:
    """A bit that flips in a name would lose a file, or bring its deleted rows back."""
    log.commit(remove("0"), add("8"))
    path = log.folder / f"{8:020d}.json"
    content = path.read_bytes()
    assert f'"{meant}"'.encode() in content
    path.write_bytes(content.replace(f'"{meant}"'.encode(), b'"' + damaged + b'"'))
    with pytest.raises(UnreadableMetadataError, match=f"where {meant} must be meant") as raised:
        tamis.open(log.root)
    assert raised.value.path == str(path)
    path.write_bytes(content + b'\n{"ofAVendor": {"add": {"path": "x"}}}\n')
    assert len(tamis.open(log.root).plan().files) == 8


def test_a_checkpoint_whose_column_of_files_is_misspelt_is_an_error(log: DeltaLog) -> None:
    (path,) = log.checkpoint(7)
    table = pq.read_table(path)
    pq.write_table(table.rename_columns(["aed" if name == "add" else name for name in table.column_names]), path)
    with pytest.raises(UnreadableMetadataError, match="an action aed, where add must be meant"):
        tamis.open(log.root).plan()


def test_progress_ends_with_all_files_though_a_checkpoint_has_rows_of_other_actions(log: DeltaLog) -> None:
    log.checkpoint(5)
    log.commit(remove("0"))
    table = tamis.open(log.root)
    for job in (lambda tell: table.plan(progress=tell), table.inspect):
        told: list[tuple[int, int]] = []
        job(lambda done, total, told=told: told.append((done, total)))
        assert told[-1] == (7, 7)


def test_a_version_that_is_missing_is_named(log: DeltaLog) -> None:
    log.checkpoint(2)
    (log.folder / f"{4:020d}.json").unlink()
    with pytest.raises(UnreadableMetadataError, match="version 4 is missing") as raised:
        _versions(log)
    assert raised.value.path.endswith(f"{4:020d}.json")
    assert _versions(log, 3) == (2, [(3, 3)])


def test_a_version_beyond_all_others_takes_no_longer_to_be_told(log: DeltaLog) -> None:
    """A stray file names a version that is quadrillions away: nothing counts up to it."""
    log.checkpoint(2)
    (log.folder / f"{10**15:020d}.json").write_text("{}")
    (log.folder / f"{9:020d}.{10**15:020d}.compacted.json").write_text("{}")
    assert list_log(LocalStorage(), str(log.root)).readable() == list(range(8))
    with pytest.raises(NoSuchSnapshotError, match="can be read: 0 to 7"):
        tamis.open(log.root, version=-1)
    with pytest.raises(UnreadableMetadataError, match="version 8 is missing"):
        tamis.open(log.root)
    assert tamis.open(log.root, version=7).snapshot_id == 7


def test_the_first_version_is_missing_without_a_checkpoint(log: DeltaLog) -> None:
    (log.folder / f"{0:020d}.json").unlink()
    with pytest.raises(UnreadableMetadataError, match="version 0 is missing"):
        _versions(log)


def test_commits_that_a_checkpoint_covers_may_be_gone(log: DeltaLog) -> None:
    log.checkpoint(5)
    for number in range(6):
        (log.folder / f"{number:020d}.json").unlink()
    assert _versions(log) == (5, [(6, 6), (7, 7)])
    with pytest.raises(UnreadableMetadataError, match="version 0 is missing"):
        _versions(log, 3, hint=False)


def test_compacted_commits_stand_for_their_versions(log: DeltaLog) -> None:
    log.checkpoint(1)
    log.compact(2, 4)
    log.compact(2, 5)
    log.compact(0, 3)
    assert _versions(log) == (1, [(2, 5), (6, 6), (7, 7)])
    assert _versions(log, 4) == (1, [(2, 4)])
    assert _versions(log, 3) == (1, [(2, 2), (3, 3)])


@pytest.mark.parametrize(
    "hint",
    [
        "",
        "{",
        "[]",
        "null",
        '{"version":"5"}',
        '{"version":-1}',
        '{"version":99}',
        '{"version":3}',
        '{"version":1e400}',
        '{"version":true}',
        '{"version":100000000000000000000000}',
        b"\xff",
    ],
)
def test_a_hint_that_is_wrong_does_no_harm(log: DeltaLog, hint: str | bytes) -> None:
    """It is written after the checkpoint, and not with it: it may be stale, torn, or of a checkpoint that is gone."""
    log.checkpoint(5)
    log.hint(hint)
    assert _versions(log) == (5, [(6, 6), (7, 7)])


def test_a_stale_hint_does_not_hide_what_came_later(log: DeltaLog) -> None:
    log.checkpoint(2)
    log.checkpoint(5)
    log.hint({"version": 2, "size": 3})
    assert _versions(log) == (5, [(6, 6), (7, 7)])


def test_a_hint_shortens_the_listing(log: DeltaLog) -> None:
    log.checkpoint(5)
    log.hint(json.dumps({"version": 5}))
    found = list_log(LocalStorage(), str(log.root))
    assert found.since == 5
    assert sorted(found.commits) == [5, 6, 7]


def test_files_that_are_none_of_the_logs_are_passed_over(log: DeltaLog) -> None:
    for name in (
        "00000000000000000099.json.tmp",
        "99.json",
        f"{9:020d}.crc",
        f"{9:020d}.checkpoint.parquet.crc",
        f".{9:020d}.json.x.tmp",
        f"{9:020d}.{8:020d}.compacted.json",
        f"{9:020d}.checkpoint.x.parquet",
    ):
        (log.folder / name).write_text("")
    assert _versions(log) == (None, [(number, number) for number in range(8)])


def test_a_folder_without_versions_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "_delta_log").mkdir()
    with pytest.raises(NoSuchTableError, match="no version"):
        list_log(LocalStorage(), str(tmp_path))


@pytest.mark.parametrize("content", [b"\n", b'{"checkpointMetadata": {"version": 7}}\n'])
def test_a_checkpoint_that_was_never_filled_is_an_error_though_later_commits_describe_the_table(
    log: DeltaLog, content: bytes
) -> None:
    """With all that is asked of it told elsewhere, it would be one that has no files: the table would lose them."""
    (top,) = log.checkpoint(7, "v2-json")
    log.commit(protocol(), metadata(), add("8"))
    for version in range(8):
        (log.folder / f"{version:020d}.json").unlink()
    assert len(tamis.open(log.root).plan().files) == 9
    top.write_bytes(content)
    with pytest.raises(UnreadableMetadataError, match="no protocol or no metaData action") as raised:
        tamis.open(log.root).plan()
    assert raised.value.path == str(top)


def test_a_compaction_that_was_never_filled_is_passed_over(log: DeltaLog) -> None:
    """It would stand for versions that changed nothing, and lose their files in silence."""
    path = log.compact(2, 6)
    assert _versions(log) == (None, [(0, 0), (1, 1), (2, 6), (7, 7)])
    path.write_bytes(b"")
    assert _versions(log) == (None, [(version, version) for version in range(8)])
    assert len(tamis.open(log.root).plan().files) == 8
