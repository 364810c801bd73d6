"""Deletes in processes of their own: killed between any two steps, and several at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tamis
from tests.making.edits import data_file, edit, entries, latest, make_table, writable

ROOT = Path(__file__).parents[3]
KILLED = 9
CRASH = """
import os, sys
import tamis
from tamis.formats.iceberg.homes import FolderHome
path, step = sys.argv[1], int(sys.argv[2])
calls = []
def dying(name):
    real = getattr(FolderHome, name)
    def call(*said, **more):
        calls.append(name)
        done = real(*said, **more)
        if len(calls) == step:
            os._exit(9)
        return done
    setattr(FolderHome, name, call)
for name in ("put", "publish"):
    dying(name)
tamis.open(path, cache=False).delete("id between 10 and 49")
os._exit(0)
"""
WORK = """
import sys
import tamis
from tests.making.edits import data_file, edit, writable
from tamis.jobs.retrying import committed
path, worker = sys.argv[1], int(sys.argv[2])
for number in range(6):
    mine = 100 * worker + number
    table = writable(path)
    committed(table, edit(table, "append", added=(data_file(path, mine, number % 4),)))
    if number % 2:
        first = 10 * (mine - 1)
        done = tamis.open(path, cache=False).delete(f"id between {first} and {first + 9}")
        assert done.files_dropped == 1, done
"""


def names(path: str) -> set[str]:
    return {Path(one.path).stem for one in entries(path) if one.content == 0}


@pytest.mark.parametrize("step", [1, 2, 3, 4])
def test_a_process_that_is_killed_leaves_the_old_table_or_the_new(tmp_path: Path, step: int) -> None:
    """It is killed once it has written its manifests, their list, or the new state: the next delete works."""
    path = make_table(tmp_path, 2)
    table = writable(path)
    table.commit(edit(table, "append", added=tuple(data_file(path, number, number % 2) for number in range(8))))
    every = names(path)
    ran = subprocess.run([sys.executable, "-c", CRASH, path, str(step)], cwd=ROOT, check=False)
    assert ran.returncode == KILLED
    old, new = every, every - {"f1", "f2", "f3", "f4"}
    assert names(path) == (new if step == 4 else old)
    tamis.open(path, cache=False).delete("id between 10 and 49")
    assert names(path) == new
    assert tamis.open(path, cache=False).plan("id = 25").stats.kept == 0


def test_processes_at_once_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    """Each appends and deletes its own files: whatever the order, what is left is what nobody has deleted."""
    patient = {"commit.retry.num-retries": "200", "commit.retry.min-wait-ms": "10", "commit.retry.max-wait-ms": "200"}
    path = make_table(tmp_path, 2, properties=patient)
    workers = [subprocess.Popen([sys.executable, "-c", WORK, path, str(number)], cwd=ROOT) for number in (1, 2, 3)]
    assert [worker.wait(300) for worker in workers] == [0, 0, 0]
    assert names(path) == {f"f{100 * worker + number}" for worker in (1, 2, 3) for number in (1, 3, 5)}
    document = latest(path)
    assert len(document["snapshots"]) == 3 * 9
    assert [one["sequence-number"] for one in document["snapshots"]] == list(range(1, 28))
