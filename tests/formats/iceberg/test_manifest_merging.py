"""Manifests of many small commits become one, as Iceberg's own library does it, and nothing is lost on the way."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import tamis
from tamis.formats.iceberg import merging
from tamis.formats.iceberg.manifest_list import DATA, DELETES, Manifest
from tamis.formats.iceberg.merging import Merging
from tests.making.edits import (
    SPECS,
    Entry,
    data_file,
    edit,
    entries,
    latest,
    listed,
    make_table,
    planned,
    position_deletes,
    writable,
)

LEAST = "commit.manifest.min-count-to-merge"
TARGET = "commit.manifest.target-size-bytes"


def manifest(size: int, spec_id: int = 0, content: int = DATA) -> Manifest:
    return Manifest("m.avro", size, spec_id, content, added_files=1, existing_files=0)


def bins(manifests: list[Manifest], new: dict[tuple[int, int], int] | None = None, **said: str) -> list[Any]:
    return Merging.of(said).bins(manifests, range(len(manifests)), Counter(new or {}))


def test_the_defaults_are_those_of_iceberg() -> None:
    assert Merging.of({}) == Merging(enabled=True, target_bytes=8 << 20, least=100)
    assert not Merging.of({merging.ENABLED: "FALSE"}).enabled


def test_few_manifests_stay_and_a_hundred_become_one() -> None:
    """Those that the commit adds count, but are merged by a later one."""
    assert bins([manifest(10)] * 98, {(0, DATA): 1}) == []
    assert bins([manifest(10)] * 99, {(0, DATA): 1}) == [tuple(range(99))]
    assert bins([manifest(10)] * 99, {(1, DATA): 1}) == []
    assert bins([manifest(10)] * 99, {(0, DATA): 1}, **{merging.ENABLED: "false"}) == []


def test_data_and_deletes_and_specs_are_never_mixed() -> None:
    kinds = [(0, DATA), (0, DELETES), (1, DATA)]
    manifests = [manifest(10, *kinds[place % 3]) for place in range(12)]
    found = bins(manifests, **{LEAST: "2"})
    assert found == [tuple(range(first, 12, 3)) for first in range(3)]


def test_bins_are_filled_from_the_oldest_on_and_full_ones_do_not_wait() -> None:
    """A bin that no later manifest will join is merged whatever their number; one manifest is left as it is."""
    said = {TARGET: "100", LEAST: "5"}
    sizes = [10, 10, 95, 40, 50, 100]  # from the newest to the oldest
    assert bins([manifest(size) for size in sizes], **said) == [(3, 4)]
    assert bins([manifest(size) for size in sizes], {(0, DATA): 3}, **said) == [(0, 1), (3, 4)]
    assert bins([manifest(300), manifest(300)], **said) == []


def appended(path: str, number: int, spec_id: int = 1) -> None:
    table = writable(path)
    table.commit(edit(table, "append", added=(data_file(path, number, spec_id),)))


def whole(path: str) -> list[Entry]:
    return sorted(entries(path), key=lambda one: one.path)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_hundred_appends_leave_few_manifests_and_every_file(tmp_path: Path, version: int) -> None:
    """Each commit wrote a manifest of its own; a plan would read them all, one by one, for ever."""
    path = make_table(tmp_path, version, properties={LEAST: "10"})
    for number in range(30):
        before = [] if number == 0 else whole(path)
        appended(path, number)
        after = whole(path)
        assert [one for one in after if one in before] == before
        assert len(after) == number + 1
        assert len(listed(path)) <= 11
    assert tamis.open(path, cache=False).plan("region = 'eu'").stats.kept == 10
    summary = latest(path)["snapshots"][-1]["summary"]
    counts = [int(summary[f"manifests-{what}"]) for what in ("created", "kept", "replaced")]
    assert counts[0] + counts[1] == len(listed(path))
    if version > 2:
        ids = [one.first_row_id for one in whole(path)]
        assert len(set(ids)) == 30
        assert None not in ids


def test_a_merge_says_what_it_created_kept_and_replaced(tmp_path: Path) -> None:
    path = make_table(tmp_path, 2, properties={LEAST: "4"})
    for number in range(5):
        appended(path, number, number % 2)
    appended(path, 6, 0)
    summary = latest(path)["snapshots"][-1]["summary"]
    told = {what: summary[f"manifests-{what}"] for what in ("created", "kept", "replaced")}
    assert told == {"created": "2", "kept": "2", "replaced": "3"}
    (merged,) = [one for one in listed(path) if one["existing_files_count"]]
    assert merged["existing_files_count"] == 3
    assert merged["existing_rows_count"] == 30
    assert (merged["added_files_count"], merged["deleted_files_count"]) == (0, 0)
    assert (merged["min_sequence_number"], merged["sequence_number"]) == (1, 6)


def test_a_job_that_planned_before_a_merge_finds_its_files(tmp_path: Path) -> None:
    """Its manifests are gone from the list, and their files stand in one that it has never seen."""
    path = make_table(tmp_path, 2, properties={LEAST: "3"})
    for number in range(3):
        appended(path, number)
    table = writable(path)
    _, removed = planned(table, lambda one: one.endswith("f1.parquet"))
    for number in (3, 4):
        appended(path, number)
    table.commit(edit(table, "delete", removed=removed))
    assert [Path(one.path).name for one in whole(path)] == [f"f{number}.parquet" for number in (0, 2, 3, 4)]


def test_manifests_of_deletes_are_merged_by_themselves(tmp_path: Path) -> None:
    path = make_table(tmp_path, 2, properties={LEAST: "3"})
    first = data_file(path, 0, 1)
    table = writable(path)
    table.commit(edit(table, "append", added=(first,)))
    for number in range(1, 6):
        table = writable(path)
        _, mine = planned(table, lambda _: True)
        deletes = (position_deletes(path, number, first),)
        table.commit(edit(table, "delete", deletes=deletes, referenced=mine))
    kinds = Counter(one["content"] for one in listed(path))
    assert kinds == {0: 1, 1: 2}
    assert len([one for one in entries(path) if one.content == 1]) == 5


def test_files_of_a_transform_that_nobody_knows_are_not_merged(tmp_path: Path) -> None:
    """What the list says of their values cannot be summed up; the manifests stay as their writer left them."""
    path = make_table(tmp_path, 2, properties={LEAST: "2"})
    for number in range(3):
        appended(path, number, 1)
    document = latest(path)
    specs = [{**SPECS[1], "fields": [{**SPECS[1]["fields"][0], "transform": "zorder"}]}]
    changed = {**document, "partition-specs": [SPECS[0], *specs, *SPECS[2:]]}
    rewritten(path, changed)
    before = [one["manifest_path"] for one in listed(path)]
    appended(path, 9, 0)
    assert set(before) <= {one["manifest_path"] for one in listed(path)}


def rewritten(path: str, document: dict[str, Any]) -> None:
    """The newest metadata file with another content."""
    files = Path(path, "metadata").glob("v*.metadata.json")
    newest = max(files, key=lambda one: int(one.name[1:].split(".")[0]))
    newest.write_text(json.dumps(document))


def test_a_damaged_manifest_is_left_as_it_is(tmp_path: Path) -> None:
    """An append does not need it, and must not fail on it: merging is there to save time."""
    path = make_table(tmp_path, 2, properties={LEAST: "4"})
    for number in range(3):
        appended(path, number)
    damaged = listed(path)[1]["manifest_path"]
    Path(damaged).write_bytes(b"Obj\x01" + b"\xff" * 40)
    appended(path, 5)
    assert damaged in {one["manifest_path"] for one in listed(path)}
