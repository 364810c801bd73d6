"""A plan from the cache is the plan without it, whatever has happened to the table or the cache in between."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.formats.delta import checkpoints, units
from tamis.formats.storage.cache import FOLDER
from tests.making.delta_logs import SCHEMA, Action, DeltaLog, add, metadata, remove, vector

PREDICATES = (None, "part = 'a'", "id >= 15", "part = 'a' and id < 5", "part = 'b' or id = 3", "id is null")


def _stats(low: int, high: int, rows: int = 10) -> str:
    return json.dumps(
        {"numRecords": rows, "minValues": {"id": low}, "maxValues": {"id": high}, "nullCount": {"id": 0}},
        separators=(",", ":"),
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the cache of these tests is, and nothing in it yet."""
    chosen = tmp_path / "cache"
    monkeypatch.setenv("TAMIS_CACHE_DIR", str(chosen))
    monkeypatch.delenv("TAMIS_CACHE")
    return chosen


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    made = DeltaLog(tmp_path / "t")
    made.begin(
        *(add(str(place), "ab"[place % 2], stats=_stats(place, place + 9)) for place in range(20)),
        reader=3,
        features=("deletionVectors",),
    )
    made.commit(remove("3"), add("3", "b", dv=vector("x"), stats=_stats(3, 12)))
    made.checkpoint(1)
    return made


def _told(root: Path, where: str | None, *, cache: bool) -> list[object]:
    plan = tamis.open(root, cache=cache).plan(where)
    return [plan.files.to_pylist(), plan.verdicts.to_pylist(), plan.stats.notes, plan.stats.kept]


def _same(root: Path) -> None:
    for where in PREDICATES:
        assert _told(root, where, cache=True) == _told(root, where, cache=False), where


def _unread(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """From now on the checkpoints whose files are read are noted."""
    read: list[str] = []
    original = checkpoints.add_chunks

    def noted(location: str, *arguments: Any) -> Any:  # noqa: ANN401 - as it is called
        read.append(location)
        return original(location, *arguments)

    monkeypatch.setattr(units, "add_chunks", noted)
    return read


@pytest.mark.parametrize("kind", ["classic", "multi-part", "v2-parquet", "v2-json", "v2-no-sidecars"])
def test_what_was_decoded_is_not_read_again(folder: Path, log: DeltaLog, kind: str, monkeypatch: Any) -> None:  # noqa: ANN401 - a fixture
    for one in log.folder.glob("*.checkpoint*"):
        one.unlink()
    log.checkpoint(1, kind)
    for _ in range(2):  # where partitions leave few files, statistics of all are decoded the second time
        _same(log.root)
    assert (folder / FOLDER).is_dir()
    read = _unread(monkeypatch)
    for where in PREDICATES:
        tamis.open(log.root, cache=True).plan(where)
    assert read == []
    tamis.open(log.root, cache=False).plan(None)
    assert len(read) > 0


def test_commits_after_a_cached_checkpoint_are_seen(folder: Path, log: DeltaLog) -> None:
    del folder
    for _ in range(2):
        _same(log.root)
    log.commit(remove("4"), add("new", "a", stats=_stats(100, 109)))
    _same(log.root)
    paths = tamis.open(log.root, cache=True).plan(None).files["path"].to_pylist()
    assert "4" not in paths
    assert "new" in paths
    log.commit(remove("3", vector("x")), add("3", "b", dv=vector("y"), stats=_stats(3, 12)))
    _same(log.root)


@pytest.mark.parametrize("how", ["in its place", "at the same time"])
def test_a_checkpoint_that_was_written_again_is_read_again(folder: Path, log: DeltaLog, how: str) -> None:
    del folder
    (path,) = log.folder.glob("*.checkpoint.parquet")
    pq.write_table(pq.read_table(path), path, compression="none", use_dictionary=False)
    for _ in range(2):
        _same(log.root)
    before, content = path.stat(), path.read_bytes()
    changed = content.replace(b'"minValues":{"id":14}', b'"minValues":{"id":10}')
    changed = changed.replace(b'"maxValues":{"id":23}', b'"maxValues":{"id":11}')
    assert changed != content
    if how == "in its place":
        path.write_bytes(changed)
    else:
        new = path.with_suffix(".new")
        new.write_bytes(changed)
        os.utime(new, ns=(before.st_atime_ns, before.st_mtime_ns))
        new.replace(path)
    assert path.stat().st_size == before.st_size
    kept = tamis.open(log.root, cache=True).plan("id >= 15").files["path"].to_pylist()
    assert "14" not in kept
    _same(log.root)


def test_another_schema_has_its_own_entries(folder: Path, tmp_path: Path) -> None:
    del folder
    log = DeltaLog(tmp_path / "t")
    log.begin(*(add(str(place), str(place), stats=_stats(place, place)) for place in range(12)))
    log.checkpoint(0)
    for _ in range(2):
        assert tamis.open(log.root, cache=True).plan("part >= '2'").stats.kept == 8
    fields = [{**one, "type": "integer"} if one["name"] == "part" else one for one in SCHEMA["fields"]]  # type: ignore[attr-defined] # JSON
    log.commit(metadata({"type": "struct", "fields": fields}))
    assert tamis.open(log.root, cache=True).plan("part >= 2").stats.kept == 10


def test_a_damaged_cache_is_a_miss(folder: Path, log: DeltaLog) -> None:
    for _ in range(2):
        _same(log.root)
    packs = sorted((folder / FOLDER).rglob("*.pack"))
    assert packs
    for cut in (lambda data: data[:-1], lambda data: data[: len(data) // 2], lambda data: data[:0], _flipped):
        for pack in sorted((folder / FOLDER).rglob("*.pack")):
            pack.write_bytes(cut(pack.read_bytes()))
        _same(log.root)
        _same(log.root)


def _flipped(data: bytes) -> bytes:
    place = len(data) * 2 // 3
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


def test_statistics_that_cannot_be_read_are_noted_each_time(folder: Path, log: DeltaLog) -> None:
    del folder
    log.commit(add("odd", "a", stats='{"numRecords":3,"minValues":{"id":'), remove("5"))
    log.checkpoint(2)
    for _ in range(3):
        plan = tamis.open(log.root, cache=True).plan("id >= 15")
        assert any("cannot be read" in note for note in plan.stats.notes)
        assert "odd" in plan.files["path"].to_pylist()


@pytest.mark.usefixtures("folder")
def test_rewrite_groups_files_of_values_that_cannot_be_decoded_from_the_cache_as_without(tmp_path: Path) -> None:
    """Such values are told apart by how they are written: a cache that forgets it leaves every file alone."""
    numbers = {**SCHEMA, "fields": [SCHEMA["fields"][0], {**SCHEMA["fields"][1], "type": "integer"}]}  # type: ignore[index,dict-item] # a list of dicts
    made = DeltaLog(tmp_path / "n")
    made.begin(*(add(str(place), "xy"[place % 2], stats=_stats(1, 2)) for place in range(10)), schema=numbers)
    made.checkpoint(0)
    plain, *kept = (
        tamis.open(made.root, cache=cache).rewrite("part = 1").plan_with_stats() for cache in (False, True, True)
    )
    assert list(map(len, plain.plan.groups["files"].to_pylist())) == [5, 5]
    for found in kept:
        assert found.plan.groups.equals(plain.plan.groups)
        assert found.filter_stats == plain.filter_stats
    assert (plain.filter_stats.eval_errors, plain.filter_stats.fail_open_partitions) == (2, 2)


@pytest.mark.usefixtures("folder")
def test_candidates_of_a_rewrite_are_the_same_whatever_is_known_already(log: DeltaLog) -> None:
    """Of files that partitions leave out nobody asks for row counts: they are not shown, though they are known."""
    opened = tamis.open(log.root, cache=False)
    first = opened.rewrite("part = 'a'").plan().candidates
    assert first["rows"].null_count == 10
    opened.plan("id >= 0").verdicts  # noqa: B018 - what makes all of them known
    for table in (opened, *(tamis.open(log.root, cache=True) for _ in range(2))):
        assert table.rewrite("part = 'a'").plan().candidates.equals(first)
        assert table.plan("part = 'a'").stats.kept == 10


def test_no_room_is_no_error(folder: Path, log: DeltaLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAMIS_CACHE_BYTES", "100")
    _same(log.root)
    assert not list(folder.rglob("*.pack"))


def test_texts_that_an_open_table_has_no_room_for_are_read_again(log: DeltaLog, monkeypatch: Any) -> None:  # noqa: ANN401 - a fixture
    expected = {where: _told(log.root, where, cache=False) for where in PREDICATES}
    for room, reads in ((1 << 20, 1), (0, 2)):
        monkeypatch.setattr(units, "MOST_HELD", room)
        with monkeypatch.context() as patch:
            read = _unread(patch)
            table = tamis.open(log.root, cache=False)
            for where in PREDICATES:
                plan = table.plan(where)
                assert [plan.files.to_pylist(), plan.verdicts.to_pylist()] == expected[where][:2]
            assert len(read) == reads


@st.composite
def _histories(draw: st.DrawFn) -> list[list[Action]]:
    commits: list[list[Action]] = []
    for _ in range(draw(st.integers(1, 4))):
        actions: dict[str, Action] = {}
        for _ in range(draw(st.integers(0, 5))):
            path = str(draw(st.integers(0, 9)))
            low = draw(st.integers(-20, 20))
            stats = draw(st.sampled_from([_stats(low, low + 9), _stats(low, low + 9, 0), None, '{"numRecords":4']))
            action = add(path, draw(st.sampled_from(["a", "b", None])), stats=stats)
            actions[path] = action if draw(st.booleans()) else remove(path)
        commits.append(list(actions.values()))
    return commits


@settings(max_examples=max(settings.default.max_examples // 4, 1))
@given(_histories(), st.lists(st.sampled_from(PREDICATES), min_size=1, max_size=2), st.data())
def test_plans_of_any_history_are_the_same(
    commits: list[list[Action]], asked: list[str | None], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TAMIS_CACHE_DIR", f"{name}/cache")
        patch.setattr(checkpoints, "CHUNK", data.draw(st.sampled_from([1, 2, 3, 1000])))
        log = DeltaLog(Path(name) / "t")
        log.begin()
        for actions in commits:
            log.commit({"commitInfo": {}}, *actions)
            if data.draw(st.booleans()):
                log.checkpoint(len(log.history) - 1, data.draw(st.sampled_from(["classic", "multi-part", "v2-json"])))
            for where in asked:
                assert _told(log.root, where, cache=True) == _told(log.root, where, cache=False)


def test_row_counts_are_kept_of_texts_for_which_there_is_no_room(
    log: DeltaLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(units, "MOST_HELD", 0)
    read = _unread(monkeypatch)
    table = tamis.open(log.root, cache=False)
    assert table.plan("part = 'a' and id < 5").stats.kept == 3
    rows = table.plan("part = 'b'").files["rows"].to_pylist()
    assert rows == [10] * 10
    assert len(read) == 1
