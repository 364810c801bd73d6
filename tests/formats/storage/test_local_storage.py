"""Files of this machine: put whole or not at all, listed in order, and never one writer's over another's."""

from __future__ import annotations

import errno
import os
import pickle
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tamis.errors import UnreadableMetadataError, UnwritableFileError
from tamis.formats.storage import Listed, Storage
from tamis.formats.storage import disk as disk_module
from tamis.formats.storage.disk import UNFINISHED, LocalStorage

STORAGE = LocalStorage()
NAMES = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=40).filter(
    lambda name: name not in (".", "..") and not UNFINISHED.fullmatch(name)
)
is_root = hasattr(os, "geteuid") and os.geteuid() == 0


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def race(folder: Path, writers: int, rounds: int) -> list[list[bool]]:
    """Who won, by round: all writers put the same names, at the same time."""
    barrier = threading.Barrier(writers)

    def writer(number: int) -> list[bool]:
        won = []
        for version in range(rounds):
            barrier.wait()
            won.append(STORAGE.put_if_absent(str(folder / f"{version:020}.json"), f"writer {number}".encode()))
        return won

    with ThreadPoolExecutor(writers) as pool:
        return list(zip(*pool.map(writer, range(writers)), strict=True))  # type: ignore[arg-type] # tuples will do


def test_one_of_many_threads_puts_a_file(tmp_path: Path) -> None:
    folder = tmp_path / "_delta_log"
    for version, won in enumerate(race(folder, 8, 40)):
        assert sum(won) == 1
        assert STORAGE(str(folder / f"{version:020}.json")) == f"writer {won.index(True)}".encode()
    assert len(list(folder.iterdir())) == 40, "nothing is left of those who lost"


def put_all(folder: str, number: int, rounds: int) -> list[bool]:
    return [
        LocalStorage().put_if_absent(f"{folder}/{version:020}.json", f"writer {number}".encode())
        for version in range(rounds)
    ]


def test_one_of_several_processes_puts_a_file(tmp_path: Path) -> None:
    """A lock of one process, or a rename after a look, loses commits here: both are common."""
    rounds, folder = 100, str(tmp_path)
    with get_context("spawn").Pool(3) as pool:
        won = pool.starmap(put_all, [(folder, number, rounds) for number in range(3)])
    for version in range(rounds):
        (winner,) = (number for number in range(3) if won[number][version])
        assert STORAGE(f"{folder}/{version:020}.json") == f"writer {winner}".encode()


def test_file_that_is_there_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "0.json"
    for before in (b"", b"first"):
        path.write_bytes(before)
        assert STORAGE.put_if_absent(str(path), b"second") is False
        assert path.read_bytes() == before
    (tmp_path / "folder").mkdir()
    (tmp_path / "broken").symlink_to(tmp_path / "nothing")
    os.mkfifo(tmp_path / "pipe")
    for name in ("folder", "broken", "pipe"):
        assert STORAGE.put_if_absent(str(tmp_path / name), b"x") is False
    assert not (tmp_path / "nothing").exists(), "a link is not followed to where another file may appear"
    assert stat.S_ISFIFO((tmp_path / "pipe").lstat().st_mode)


CRASH = """
import os, sys
from tamis.formats.storage.disk import LocalStorage
def die(*_, **__): os._exit(9)
setattr(os, sys.argv[2], die)
getattr(LocalStorage(), sys.argv[3])(sys.argv[1], b"x" * 100_000)
"""


@pytest.mark.parametrize("step", ["write", "fsync", "link"])
def test_crash_before_the_end_leaves_nothing_to_see(tmp_path: Path, step: str) -> None:
    path = tmp_path / "log" / "0.json"
    done = subprocess.run([sys.executable, "-c", CRASH, str(path), step, "put_if_absent"], check=False)
    assert done.returncode == 9
    assert STORAGE.list(str(path.parent)) == []
    assert all(UNFINISHED.fullmatch(name) for name in names(path.parent)), "what is left is known as such"
    assert STORAGE.put_if_absent(str(path), b"again")
    assert STORAGE.list(str(path.parent)) == [Listed("0.json", 5)]


@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
def test_crash_while_a_file_is_replaced_leaves_the_old_one(tmp_path: Path, step: str) -> None:
    path = tmp_path / "hint"
    path.write_bytes(b"old")
    assert subprocess.run([sys.executable, "-c", CRASH, str(path), step, "put"], check=False).returncode == 9
    assert path.read_bytes() == b"old"
    STORAGE.put(str(path), b"new")
    assert path.read_bytes() == b"new"


def test_file_is_on_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a power cut there may be a name without bytes, else: a commit that was promised, and is empty."""
    steps = []
    for name in ("fsync", "link", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *args, name=name, real=real: (steps.append(name), real(*args))[1])
    assert STORAGE.put_if_absent(str(tmp_path / "a"), b"a")
    STORAGE.put(str(tmp_path / "a"), b"b")
    assert steps == ["fsync", "link", "fsync", "fsync", "replace", "fsync"]


def test_link_whose_answer_was_lost_counts_by_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over NFS a request is sent again when its answer is lost, and then finds its own file."""
    real = os.link

    def link(source: str, target: str) -> None:
        real(source, target)
        raise FileExistsError(errno.EEXIST, "File exists")

    monkeypatch.setattr(os, "link", link)
    assert STORAGE.put_if_absent(str(tmp_path / "a"), b"mine") is True


@pytest.mark.parametrize("code", [errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS])
def test_file_system_without_links_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """Never a look and then a rename: another writer fits between the two."""

    def link(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", link)
    with pytest.raises(UnwritableFileError, match="makes no hard links") as caught:
        STORAGE.put_if_absent(str(tmp_path / "a"), b"a")
    assert (caught.value.path, caught.value.unknown) == (str(tmp_path / "a"), False)
    assert names(tmp_path) == []


def test_disk_that_fails_after_the_link_leaves_the_outcome_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = os.fsync, []

    def fsync(file: int) -> None:
        calls.append(file)
        if len(calls) == 2:
            raise OSError(errno.EIO, "Input/output error")
        real(file)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(UnwritableFileError, match="is not known: look before you try again") as caught:
        STORAGE.put_if_absent(str(tmp_path / "a"), b"a")
    assert caught.value.unknown


@pytest.mark.parametrize("name", ["a\0b", "x" * 300])
def test_name_that_no_file_can_have_is_refused(tmp_path: Path, name: str) -> None:
    location = str(tmp_path / "folder") + "/" + name
    for putting in (STORAGE.put, STORAGE.put_if_absent):
        with pytest.raises(UnwritableFileError, match=r"cannot write .*No file can have"):
            putting(location, b"x")
    for reading in (STORAGE, STORAGE.open):
        with pytest.raises(UnreadableMetadataError):
            reading(location)
    assert STORAGE.size(location) is None
    if "\0" in name:
        with pytest.raises(UnwritableFileError, match="cannot remove"):
            STORAGE.remove(location)
        with pytest.raises(UnreadableMetadataError):
            STORAGE.list(location)
    assert names(tmp_path / "folder") == []


def test_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for reading in (STORAGE, STORAGE.open):
        with pytest.raises(UnreadableMetadataError, match="not a file, but a pipe"):
            reading(str(tmp_path / "pipe"))


@pytest.mark.skipif(is_root, reason="root may write anywhere")
def test_folder_without_permission_says_what_to_do(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(UnwritableFileError, match="the permission to write there"):
            STORAGE.put_if_absent(str(tmp_path / "a"), b"x")
    finally:
        tmp_path.chmod(0o700)


def test_permission_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the system says it, also where the tests run as root."""

    def denied(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", denied)
    for putting in (STORAGE.put, STORAGE.put_if_absent):
        with pytest.raises(
            UnwritableFileError, match=r"Permission denied\. Give the user .* to write there"
        ) as caught:
            putting(str(tmp_path / "a"), b"x")
        assert (caught.value.reason, caught.value.unknown) == ("Permission denied", False)


def test_file_in_the_way_of_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UnwritableFileError, match=r"cannot write .*: (Not a directory|File exists)"):
        STORAGE.put(str(tmp_path / "file" / "below"), b"x")
    (tmp_path / "folder").mkdir()
    with pytest.raises(UnwritableFileError, match="Is a directory"):
        STORAGE.put(str(tmp_path / "folder"), b"x")
    with pytest.raises(UnwritableFileError, match="cannot remove"):
        STORAGE.remove(str(tmp_path / "folder"))
    STORAGE.remove(str(tmp_path / "nothing"))


@given(names=st.sets(NAMES, max_size=12), after=st.one_of(st.just(""), NAMES))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_list_has_every_file_in_the_order_of_its_name(
    tmp_path_factory: pytest.TempPathFactory, names: set[str], after: str
) -> None:
    folder = tmp_path_factory.mktemp("list")
    names = {name for name in names if len(name.encode()) < 200}
    for name in names:
        STORAGE.put(f"{folder}/{name}", name.encode())
    (folder / ".tamis-0123456789abcdef0123456789abcdef.tmp").touch()
    wanted = sorted((name for name in names if name > after), key=str.encode)
    assert STORAGE.list(str(folder), after) == [Listed(name, len(name.encode())) for name in wanted]
    assert STORAGE.list(folder.as_uri(), after) == STORAGE.list(str(folder), after)


def test_list_hides_no_file_and_shows_no_folder(tmp_path: Path) -> None:
    """A link that leads nowhere may be a commit that is lost: whoever reads it is told."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "broken").symlink_to(tmp_path / "nothing")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "file").write_bytes(b"abc")
    assert STORAGE.list(str(tmp_path)) == [Listed("broken", None), Listed("file", 3), Listed("link", 3)]
    assert STORAGE.list(str(tmp_path / "nothing")) == STORAGE.list(str(tmp_path / "file")) == []


@pytest.mark.parametrize("there", ["a%20b", "a b", None])
def test_file_uri_is_put_where_it_is_read(tmp_path: Path, there: str | None) -> None:
    """Writers put a scheme before a plain path: a % is a %. Who escapes a URI means the folder that is there."""
    if there is not None:
        (tmp_path / there).mkdir()
    location = f"file://{tmp_path}/a%20b/_delta_log/0%2C1.json"
    assert STORAGE.put_if_absent(location, b"x")
    assert not STORAGE.put_if_absent(location, b"y")
    assert STORAGE(location) == b"x"
    assert STORAGE.size(location) == 1
    with STORAGE.open(location) as file:
        assert file.read() == b"x"
    assert [path.name for path in tmp_path.iterdir()] == [there or "a%20b"]
    STORAGE.remove(location)
    assert STORAGE.size(location) is None


def test_storage_is_a_storage_and_can_be_pickled(tmp_path: Path) -> None:
    again = pickle.loads(pickle.dumps(STORAGE))  # noqa: S301 - made in this line
    assert isinstance(again, Storage)
    again.put(str(tmp_path / "a" / "b"), b"")
    assert again(str(tmp_path / "a" / "b")) == b""
    with pytest.raises(IsADirectoryError):
        again.size(str(tmp_path))
    assert disk_module.unfinished_name() != disk_module.unfinished_name()
