"""Random edits of tables of several specs: what is live afterwards is what was, less what left, and what came."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from itertools import pairwise
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.formats.edit import NewFile
from tests.making.edits import (
    Entry,
    data_file,
    edit,
    entries,
    latest,
    listed,
    make_table,
    planned,
    position_deletes,
    totals,
    vector,
    writable,
)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([1, 2, 3]), st.sampled_from([1, 3, 100]))
def test_a_commit_changes_what_its_edit_says_and_nothing_else(seed: int, version: int, least: int) -> None:
    """Every field of an entry that stays is kept: sequence numbers, row ids, statistics, split offsets.

    Also where the manifests of earlier commits are merged, as soon as there are so many of a kind.
    """
    chance = random.Random(seed)  # noqa: S311 - chance, not a secret
    with tempfile.TemporaryDirectory() as folder:
        path = make_table(Path(folder), version, properties={"commit.manifest.min-count-to-merge": str(least)})
        files: dict[str, NewFile] = {}
        before: list[Entry] = []
        lists: list[str] = []
        for step in range(5):
            count = chance.randint(0, 6)
            added = [data_file(path, 100 * step + n, chance.choice([0, 1, 2, 3, None])) for n in range(count)]
            table = writable(path)
            gone = {one for one in files if step and chance.random() < 0.3}
            if not added and not gone:
                continue
            _, removed = planned(table, gone.__contains__)
            staying = [files[one] for one in files.keys() - gone]
            deletes, replaced = _deletes(chance, path, step, version, staying, before)
            operation = "append" if not gone and not deletes else "overwrite"
            last = latest(path).get("last-sequence-number", 0)
            coming = {"added": tuple(added), "deletes": tuple(deletes)}
            table.commit(edit(table, operation, removed=removed, replaced=frozenset(replaced), **coming))
            files = {key: value for key, value in files.items() if key not in gone} | {one.path: one for one in added}
            after = entries(path)
            left = [one for one in before if one.path not in gone and (one.path, one.offset) not in replaced]
            if version > 2:
                left = [one for one in left if one.offset is None or one.referenced not in gone]
            came = Counter(one.path for one in (*added, *deletes))
            if operation != "append":
                oldest = min([last, *(one.sequence for one in left if one.content == 0)])
                left = [one for one in left if one.content == 0 or one.sequence >= oldest]
            expected = Counter(one.path for one in left) + came
            assert Counter(one.path for one in after) == expected
            kept = [one for one in after if one.path not in came]
            assert sorted(map(repr, kept)) == sorted(map(repr, left))
            _check_structure(path, gone, version)
            _check_carried(path, lists, operation, least)
            before, lists = after, [one["manifest_path"] for one in listed(path)]


def _check_carried(path: str, before: list[str], operation: str, least: int) -> None:
    """An append lists all manifests again, where it merges none; if it merges any two, one of a kind is left."""
    now = [one for one in listed(path) if one["manifest_path"] in before]
    if least == 100:
        assert operation != "append" or len(now) == len(before)
    if least == 1:
        live = [one for one in now if one["added_files_count"] or one["existing_files_count"]]
        kinds = Counter((one["partition_spec_id"], one.get("content", 0)) for one in live)
        assert max(kinds.values(), default=0) <= 1


def _deletes(
    chance: random.Random, path: str, step: int, version: int, files: list[NewFile], before: list[Entry]
) -> tuple[list[NewFile], set[tuple[str, int | None]]]:
    chosen = sorted((one for one in files if chance.random() < 0.3), key=lambda one: one.path)
    if version == 1:
        return [], set()
    if version == 2:
        return [position_deletes(path, 100 * step + n, one) for n, one in enumerate(chosen)], set()
    old = {one.referenced: (one.path, one.offset) for one in before if one.offset is not None}
    made = [vector(path, step, one, 4 + 40 * n) for n, one in enumerate(chosen)]
    return made, {old[one.path] for one in chosen if one.path in old}


def _check_structure(path: str, gone: set[str], version: int) -> None:
    """A manifest is of one spec and content, its counts are true, and the summary's totals are the table's."""
    current = latest(path)["current-snapshot-id"]
    assert {one.path for one in entries(path, (2,)) if one.snapshot_id == current and one.content == 0} == gone
    live = entries(path)
    widths = {0: 0, 1: 1, 2: 2, 3: 2}
    assert all(len(one.partition) == widths[one.spec_id] for one in live)
    data = [one for one in live if one.content == 0]
    deletes = [one for one in live if one.content == 1]
    told = totals(path)
    assert told["total-data-files"] == len(data)
    assert told["total-records"] == sum(one.rows for one in data)
    assert told["total-delete-files"] == len(deletes)
    assert told["total-position-deletes"] == sum(one.rows for one in deletes)
    if version > 2:
        ids = sorted((one.first_row_id or 0, one.rows) for one in data)
        assert all(one.first_row_id is not None for one in data)
        assert all(a + rows <= b for (a, rows), (b, _) in pairwise(ids))
        assert latest(path)["next-row-id"] >= max((first + rows for first, rows in ids), default=0)
