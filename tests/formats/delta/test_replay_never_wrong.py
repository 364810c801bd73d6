"""Chance-made histories: whatever the log was folded into, the files that are left are those of a naive replay."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tamis.formats.delta.checkpoints import AddColumns, read_adds, read_top, vectors_of
from tamis.formats.delta.keys import file_keys
from tamis.formats.delta.log import list_log
from tamis.formats.delta.replay import left_over, replay
from tamis.formats.storage.disk import LocalStorage
from tests.making.delta_logs import Action, DeltaLog, add, key_of, remove, vector

SPELLINGS = {"a b": ("a b", "a%20b"), "é": ("é", "%C3%A9"), "p=1/x": ("p=1/x", "p%3D1/x"), "plain": ("plain",)}
KINDS = ("classic", "multi-part", "v2-parquet", "v2-json", "v2-classic", "v2-no-sidecars")
VECTORS = (None, vector("one"), vector("one", 2), vector("in", None, "i"))


@st.composite
def _histories(draw: st.DrawFn) -> tuple[list[list[Action]], list[tuple[int, str]], list[tuple[int, int]]]:
    """Commits, each with at most one action of a logical file; checkpoints at some versions; compactions of some."""
    commits: list[list[Action]] = []
    for _ in range(draw(st.integers(1, 8))):
        actions: dict[Any, Action] = {}
        for _ in range(draw(st.integers(0, 4))):
            path = draw(st.sampled_from(SPELLINGS[draw(st.sampled_from(sorted(SPELLINGS)))]))
            dv = draw(st.sampled_from(VECTORS))
            action = add(path, dv=dv) if draw(st.booleans()) else remove(path, dv)
            actions[key_of(action)] = action
        commits.append(list(actions.values()))
    versions = st.integers(0, len(commits))
    checkpoints = draw(st.lists(st.tuples(versions, st.sampled_from(KINDS)), max_size=3))
    spans = draw(st.lists(st.tuples(versions, versions), max_size=3))
    return commits, checkpoints, [(first, last) for first, last in spans if first < last]


def _live(root: str, version: int) -> set[bytes]:
    storage = LocalStorage()
    log = list_log(storage, root, hint=False)
    segment = log.segment(version)
    tail = replay({one.location: storage(one.location) for one in segment.commits}, ("part",))
    found = [tail.adds]
    if segment.checkpoint is not None:
        top = read_top(storage, segment.checkpoint, log.folder, described=False)
        assert top.protocol is not None
        assert top.metadata is not None
        columns = AddColumns(("part",), ())
        files = (*segment.checkpoint.locations, *(one.location for one in top.sidecars))
        found += [left_over(read_adds(one, storage(one), columns), tail.touched) for one in files]
    keys = [key for one in found for key in file_keys(one.field("path"), vectors_of(one)).to_pylist()]
    assert len(set(keys)) == len(keys)
    return set(keys)


@given(_histories())
def test_what_is_left_is_what_a_naive_replay_leaves(
    history: tuple[list[list[Action]], list[tuple[int, str]], list[tuple[int, int]]],
) -> None:
    commits, checkpoints, spans = history
    with tempfile.TemporaryDirectory() as folder:
        log = DeltaLog(Path(folder))
        log.begin()
        for actions in commits:
            log.commit(*actions)
        for version, kind in checkpoints:
            log.checkpoint(version, kind)
        for first, last in spans:
            log.compact(first, last)
        for version in {len(commits), *(one for one, _ in checkpoints[:1])}:
            expected = {path.encode() + (b"\0" + dv.encode() if dv else b"") for path, dv in log.live(version)}
            assert _live(folder, version) == expected
