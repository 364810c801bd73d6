"""What is importable from archives between the tasks of a Python worker."""

from __future__ import annotations

import importlib
import os
import sys
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from zipimport import zipimporter

import pytest

from tamis.spark.archives import remember_archives


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An archive on the path, with one module in it that has been looked for."""
    path = tmp_path / "modules.zip"
    packed(path, "tamis_test_one")
    monkeypatch.syspath_prepend(path)
    assert find_spec("tamis_test_one") is not None
    yield path
    sys.path_importer_cache.pop(str(path), None)


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The archives that are read anew, as that happens."""
    seen: list[str] = []
    anew = zipimporter.invalidate_caches

    def counted(self: zipimporter) -> None:
        seen.append(self.archive)
        anew(self)

    monkeypatch.setattr(zipimporter, "invalidate_caches", counted)
    return seen


def packed(path: Path, *modules: str) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for module in modules:
            archive.writestr(f"{module}.py", "")


def next_task() -> None:
    """What Spark has a worker do before a task, and what ours leaves behind."""
    importlib.invalidate_caches()
    remember_archives()


def test_an_archive_that_stays_the_same_is_read_once_more_and_never_again(archive: Path, readings: list[str]) -> None:
    """Each reading of the connectors' jars costs a third of a second, before every task."""
    remember_archives()
    for _ in range(4):
        next_task()
    assert readings.count(str(archive)) == 1
    assert find_spec("tamis_test_one") is not None


def test_what_an_archive_gains_and_loses_is_noticed_by_the_next_task(archive: Path) -> None:
    """The archive may be another also where it has the same size and says that it is as old."""
    remember_archives()
    for _ in range(2):
        next_task()
    before = archive.stat()
    packed(archive, "tamis_test_two")
    os.utime(archive, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert archive.stat().st_size == before.st_size
    next_task()
    assert find_spec("tamis_test_two") is not None
    assert find_spec("tamis_test_one") is None


def test_what_changed_before_the_first_look_is_noticed(archive: Path) -> None:
    """When the finder read it is not known: only a reading after the stamp was taken counts."""
    packed(archive, "tamis_test_two")
    remember_archives()
    next_task()
    assert find_spec("tamis_test_two") is not None


def test_an_archive_that_goes_and_comes_back_is_read(archive: Path) -> None:
    remember_archives()
    for _ in range(2):
        next_task()
    moved = archive.rename(archive.with_suffix(".old"))
    next_task()
    assert find_spec("tamis_test_one") is None
    moved.rename(archive)
    next_task()
    assert find_spec("tamis_test_one") is not None
