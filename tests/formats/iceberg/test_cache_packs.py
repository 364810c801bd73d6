"""Manifests share packs, and come out of them as they went in: now or before, few or many, full or empty."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from tamis.errors import TamisError
from tamis.formats.iceberg import stored
from tamis.formats.iceberg.manifest_list import Manifest
from tamis.formats.iceberg.manifests import live_manifests
from tamis.formats.storage import cache as cache_module
from tamis.formats.storage.cache import FOLDER, MetadataCache
from tests.formats.iceberg.test_cache import digest, load, numbers, save
from tests.formats.iceberg.test_cache_hostile import Store, bounds, cache_in, packs
from tests.making.manifests import entry


@pytest.mark.parametrize("have", [[0], [2], [5], [1, 2], [0, 5], [1, 3, 5], [0, 1, 2, 3, 4]])
def test_partial_hits_within_one_task_keep_every_file_and_its_place(tmp_path: Path, have: list[int]) -> None:
    """What was decoded now stands between what was kept: each file once, in the list's order, under its manifest."""
    store = Store(6)
    plain = store.read(None)
    store.read(cache_in(tmp_path), have)
    assert store.read(cache_in(tmp_path)) == plain
    assert store.fetched == [f"s3://b/m{place}.avro" for place in range(6) if place not in have]
    assert store.read(cache_in(tmp_path)) == plain
    assert not store.fetched


@pytest.mark.parametrize("chosen", [[0, 2], [1, 2, 5], [5, 0], [3, 2, 1], [4], [2, 2, 3]])
def test_some_manifests_of_a_pack_come_out_alone(tmp_path: Path, chosen: list[int]) -> None:
    """Another predicate prunes manifests in between: the rows of those must not come in their stead."""
    store = Store(6)
    store.read(cache_in(tmp_path))
    plain = store.read(None, chosen)
    assert store.read(cache_in(tmp_path), chosen) == plain
    assert not store.fetched


def test_no_flipped_bit_goes_unnoticed(tmp_path: Path) -> None:
    """Every byte of a pack, one after the other: what comes out is what was put in, or nothing."""
    cache = cache_in(tmp_path)
    names = [bytes([place]) * 32 for place in range(3)]
    batch = pa.record_batch({"x": pa.array([1, 2, 3, 4], pa.int64())})
    shelf = cache.shelf("a", 1)
    assert shelf is not None
    assert cache.save(shelf, names, [1, 1, 2], batch)
    (path,) = packs(tmp_path)
    content = path.read_bytes()
    rest = []
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        shelf = cache.shelf("a", 1)
        assert shelf is not None
        found = [shelf.find(name) for name in names]
        assert found in (
            [None] * 3,
            [(f"many/{path.name}", 0, 1), (f"many/{path.name}", 1, 1), (f"many/{path.name}", 2, 2)],
        )
        loaded = None if found[0] is None else shelf.load(found[0].pack)
        assert loaded is None or loaded.equals(batch)
        rest += [place] if loaded is not None else []
    # Only what fills up to the next multiple of 64 has no meaning.
    assert len(rest) < 64


def test_partial_hits_of_two_layouts_keep_the_order(tmp_path: Path) -> None:
    """Manifests of other writers stand between those that were kept."""
    store = Store(0)
    for place in range(8):
        store.add([entry(f"{place}.parquet", **bounds(place))], version=1 + place // 2 % 2)
    plain = store.read(None)
    assert [row[0] for row in plain] == [f"{place}.parquet" for place in range(8)]
    store.read(cache_in(tmp_path), [1, 4, 6])
    assert store.read(cache_in(tmp_path)) == plain
    assert store.read(cache_in(tmp_path)) == plain
    assert not store.fetched


def test_a_list_without_counts_reads_every_manifest_once(tmp_path: Path) -> None:
    """An old writer does not say how many files a manifest has: it may have live ones, or none at all."""
    store = Store(3, added_files=None, existing_files=None)
    store.add([entry("gone.parquet", status=2), entry("gone, too.parquet", status=2)])
    store.add([entry("gone.parquet", status=2), entry("there.parquet", **bounds(1))])
    assert live_manifests(store.manifests) == store.manifests
    plain = store.read(None)
    assert [row[0] for row in plain][-2:] == ["2-2.parquet", "there.parquet"]
    assert store.read(cache_in(tmp_path)) == plain
    assert len(store.fetched) == 5
    assert store.read(cache_in(tmp_path)) == plain
    assert not store.fetched
    # Nothing but a manifest that has no live file.
    assert store.read(cache_in(tmp_path), [3]) == []
    assert not store.fetched


@pytest.mark.parametrize("name", ["added_files", "existing_files", "deleted_files", "sequence_number", "content"])
def test_a_list_that_says_something_else_of_a_manifest_is_not_answered_from_the_cache(
    tmp_path: Path, name: str
) -> None:
    """Entries are checked against what the list says: a contradiction is an error, also if it was read before."""
    store = Store(1, added_files=1, existing_files=0, deleted_files=0)
    store.read(cache_in(tmp_path))
    store.read(cache_in(tmp_path))
    assert not store.fetched
    store.manifests = [replace(store.manifests[0], **{name: 2})]
    with suppress(TamisError):
        store.read(cache_in(tmp_path))
    assert store.fetched


@pytest.mark.parametrize(("added", "existing"), [(None, None), (0, None), (None, 0), (None, 3)])
def test_a_manifest_with_one_count_missing_may_have_files(added: int | None, existing: int | None) -> None:
    """Zero added says nothing of those that were carried over."""
    manifest = Manifest("m", 1, 0, 0, added_files=added, existing_files=existing)
    assert live_manifests([manifest]) == [manifest]


def test_many_small_packs_become_a_few(tmp_path: Path) -> None:
    """A plan after each commit leaves a pack each; fifty thousand of them would take longer than the manifests."""
    store = Store(40)
    plain = store.read(None)
    for place in range(40):
        store.read(cache_in(tmp_path), [place])
    assert len(packs(tmp_path)) == 40 * 3
    assert store.read(cache_in(tmp_path)) == plain
    assert len(packs(tmp_path)) == 3
    assert store.read(cache_in(tmp_path)) == plain
    assert not store.fetched


def test_packs_that_also_have_other_manifests_stay(tmp_path: Path) -> None:
    """What a plan did not ask for is not lost when it tidies up."""
    store = Store(40)
    for place in range(0, 40, 2):
        store.read(cache_in(tmp_path), [place, place + 1])
    store.read(cache_in(tmp_path), range(39))
    store.read(cache_in(tmp_path))
    assert not store.fetched


def test_large_manifests_have_packs_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever wants one of them need not read the others."""
    monkeypatch.setattr(stored, "PACK_BYTES", 600)
    store = Store(0)
    for place, size in enumerate([1, 1, 30, 1, 40, 50, 1, 1]):
        store.add([entry(f"{place}-{row}.parquet", **bounds(row)) for row in range(size)])
    plain = store.read(None)
    store.read(cache_in(tmp_path))
    shelf = packs(tmp_path)[0].parents[1]
    assert len(list((shelf / "one").iterdir())) >= 4
    assert list((shelf / "many").iterdir())
    assert store.read(cache_in(tmp_path)) == plain
    assert not store.fetched


def test_packs_of_many_manifests_stay_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The heads of all are read before each plan."""
    monkeypatch.setattr(cache_module, "MOST_PACKS", 2)
    cache = MetadataCache(tmp_path / FOLDER)
    for place in range(4):
        shelf = cache.shelf("s", 1)
        assert shelf is not None
        cache.save(shelf, [digest(f"a{place}"), digest(f"b{place}")], [1, 1], numbers(place, place))
        save(cache, "s", f"c{place}", numbers(place))
        for path in set(packs(tmp_path)):
            if path.stat().st_mtime > 2_000_000:
                os.utime(path, (1_000_000 + place, 1_000_000 + place))
    cache.trim()
    assert [load(cache, "s", f"a{place}") for place in range(4)] == [None, None, 2, 3]
    assert [load(cache, "s", f"c{place}") for place in range(4)] == [0, 1, 2, 3]
