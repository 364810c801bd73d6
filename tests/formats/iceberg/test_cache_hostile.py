"""What the cache does with files that are not its own, or not any more: it reads past them, and leaves them alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tamis.formats.iceberg import stored
from tamis.formats.iceberg.manifest_list import Manifest
from tamis.formats.iceberg.manifests import read_data_files
from tamis.formats.storage.cache import FOLDER, MARK, MARKED, MetadataCache
from tests.making.manifests import avro_bytes, entry, entry_schema, parsed, table_document

ROOT = Path(__file__).parents[3]
WANTED = {1: pa.int64(), 2: pa.string()}


class Store:
    """Manifests in memory, and a list of those that were fetched."""

    def __init__(self, count: int, **listed: int | None) -> None:
        self.fetched: list[str] = []
        self._files: dict[str, bytes] = {}
        self.manifests: list[Manifest] = []
        for place in range(count):
            rows = range(1 + place % 3)
            self.add([entry(f"{place}-{row}.parquet", **bounds(place + row)) for row in rows], **listed)

    def add(self, entries: list[dict[str, Any]], *, version: int = 2, **listed: int | None) -> None:
        """One more manifest, at the list's end."""
        path = f"s3://b/m{len(self.manifests)}.avro"
        self._files[path] = avro_bytes(entry_schema(version=version), entries)
        given_: dict[str, Any] = {"sequence_number": 1, "snapshot_id": 7, **listed}
        self.manifests.append(Manifest(path, len(self._files[path]), 0, 0, **given_))

    def fetch(self, location: str) -> bytes:
        """A manifest's bytes."""
        self.fetched.append(location)
        return self._files[location]

    def read(self, cache: MetadataCache | None, chosen: Sequence[int] | None = None) -> list[tuple[object, ...]]:
        """All that is known of each file, in its order; manifests are counted among those chosen."""
        self.fetched.clear()
        manifests = self.manifests if chosen is None else [self.manifests[place] for place in chosen]
        found: list[tuple[object, ...]] = []
        table = parsed(table_document())
        for batch in read_data_files(table, manifests, self.fetch, WANTED, cache=cache, threads=1):
            columns = [batch.path, batch.rows, *(batch.extra[name] for name in sorted(batch.extra))]
            columns += [batch.stats[1].lower, batch.stats[1].upper, batch.stats[1].null_count, batch.stats[2].lower]
            found += zip(*(column.to_pylist() for column in columns), strict=True)
        return found


def bounds(number: int) -> dict[str, Any]:
    """Statistics of a file."""
    bound = {1: number.to_bytes(8, "little"), 2: f"n{number}".encode()}
    return {"lower_bounds": bound, "upper_bounds": bound, "null_value_counts": {1: number % 2, 2: 0}}


def cache_in(folder: Path, limit: int = 1 << 20) -> MetadataCache:
    """A cache as a new process would open it."""
    return MetadataCache(folder / FOLDER, limit)


def packs(folder: Path) -> list[Path]:
    """The cache's files."""
    return sorted((folder / FOLDER).glob("*/*/*.pack"))


def test_foreign_files_are_neither_removed_nor_read(tmp_path: Path) -> None:
    """A user may have chosen a folder that holds other things, or may put some there."""
    store = Store(5)
    plain = store.read(None)
    store.read(cache_in(tmp_path))
    own = packs(tmp_path)
    shelf = own[0].parents[1]
    root = tmp_path / FOLDER
    foreign = [
        tmp_path / "notes.txt",
        root / "notes.txt",
        root / "ab" / "old.part",
        root / "ab" / "x.arrow",
        root / ("0" * 64) / "many" / "notes.part",
        shelf / "notes.part",
        shelf / "many" / "notes.pack",
        shelf / "many" / f"{'0' * 64}.pack.bak",
        shelf / "one" / "x.part",
        shelf / "two" / f"{'0' * 64}.pack",
    ]
    for path in foreign:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"mine" * 1000)
        os.utime(path, (1, 1))
    assert store.read(cache_in(tmp_path)) == plain
    for path in own:
        path.unlink()
    # Written again, with hardly any room: whatever may go has to go.
    small = cache_in(tmp_path, limit=2000)
    store.read(small)
    small._written, small.limit = 1, 1
    small.trim()
    assert not [path for path in own if path.exists()]
    assert [path.read_bytes() for path in foreign] == [b"mine" * 1000] * len(foreign)


def test_links_are_not_followed(tmp_path: Path) -> None:
    """What a link points to is somebody else's, whatever it is called."""
    store = Store(3)
    plain = store.read(None)
    store.read(cache_in(tmp_path))
    shelf = packs(tmp_path)[0].parents[1]
    outside = tmp_path / "outside" / "many"
    shutil.copytree(shelf / "many", outside)
    for name in (f"{'1' * 64}.pack", f"{'1' * 64}.{'2' * 16}.part"):
        (outside / name).write_bytes(b"x" * 5000)
        os.utime(outside / name, (1, 1))
    (tmp_path / FOLDER / ("3" * 64)).mkdir()
    (tmp_path / FOLDER / ("3" * 64) / "many").symlink_to(outside)
    (tmp_path / FOLDER / ("5" * 64)).symlink_to(outside.parent)
    shutil.rmtree(shelf / "many")
    (shelf / "many").symlink_to(outside)
    before = sorted(path.name for path in outside.iterdir())
    small = cache_in(tmp_path)
    assert store.read(small) == plain
    assert len(store.fetched) == 3
    small._written, small.limit = 1, 1
    small.trim()
    assert sorted(path.name for path in outside.iterdir()) == before


@pytest.mark.parametrize("kind", ["a link", "not marked", "marked by a link", "another mark"])
def test_a_folder_that_is_not_its_own_is_not_used(tmp_path: Path, kind: str) -> None:
    """Names are only its own where it made the folder."""
    store = Store(3)
    root = tmp_path / FOLDER
    if kind == "a link":
        (tmp_path / "other").mkdir(mode=0o700)
        (tmp_path / "other" / MARK).write_bytes(MARKED)
        root.symlink_to(tmp_path / "other")
    else:
        root.mkdir(mode=0o700)
        if kind == "marked by a link":
            (tmp_path / "mark").write_bytes(MARKED)
            (root / MARK).symlink_to(tmp_path / "mark")
        elif kind == "another mark":
            (root / MARK).write_bytes(MARKED.replace(b"tamis", b"sieve"))
    before = sorted(tmp_path.rglob("*"))
    plain = store.read(None)
    for _ in range(2):
        assert store.read(cache_in(tmp_path)) == plain
        assert len(store.fetched) == 3
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize("kind", ["fifo", "folder", "device", "link"])
def test_what_is_no_plain_file_is_a_miss_and_never_waited_for(tmp_path: Path, kind: str, number: int) -> None:
    """To open a pipe waits for a writer; a device may never end."""
    store = Store(number)
    plain = store.read(None)
    store.read(cache_in(tmp_path))
    for path in packs(tmp_path):
        content = path.read_bytes()
        path.unlink()
        match kind:
            case "fifo":
                os.mkfifo(path)
            case "folder":
                path.mkdir()
            case "device":
                path.symlink_to("/dev/zero")
            case _:
                path.with_suffix(".kept").write_bytes(content)
                path.symlink_to(path.with_suffix(".kept"))
    assert store.read(cache_in(tmp_path)) == plain
    assert len(store.fetched) == number


def test_a_file_that_shrinks_under_a_live_plan_changes_nothing(tmp_path: Path) -> None:
    """Memory that is mapped from a file ends the process if the file is cut: SIGBUS."""
    store = Store(1)
    store.read(cache_in(tmp_path))
    table = parsed(table_document())
    (batch,) = read_data_files(table, store.manifests, store.fetch, WANTED, cache=cache_in(tmp_path))
    assert len(store.fetched) == 1
    for path in packs(tmp_path):
        os.truncate(path, 0)
    assert batch.path.to_pylist() == ["0-0.parquet"]
    assert batch.stats[2].lower is not None
    assert batch.stats[2].lower.to_pylist() == ["n0"]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_whatever_has_happened_to_it_the_files_are_the_same(tmp_path: Path, data: st.DataObject) -> None:
    """Bytes flipped, cut, swapped and added by chance, then used again and again."""
    shutil.rmtree(tmp_path / FOLDER, ignore_errors=True)
    store = Store(6)
    store.read(cache_in(tmp_path), [0])
    store.read(cache_in(tmp_path), [2, 3])
    store.read(cache_in(tmp_path))
    plain = store.read(None)
    for _ in range(data.draw(st.integers(1, 4))):
        found = packs(tmp_path)
        path = data.draw(st.sampled_from(found))
        content = bytearray(path.read_bytes())
        match data.draw(st.sampled_from(["flip", "cut", "grow", "swap", "remove", "zero"])):
            case "flip" if content:
                place = data.draw(st.integers(0, len(content) - 1) | st.integers(0, min(len(content), 300) - 1))
                content[place] ^= 1 << data.draw(st.integers(0, 7))
            case "cut":
                del content[data.draw(st.integers(0, len(content))) :]
            case "grow":
                content += data.draw(st.binary(min_size=1, max_size=70))
            case "swap":
                content[:] = data.draw(st.sampled_from(found)).read_bytes()
            case "zero":
                content[64:] = bytes(len(content[64:]))
            case _:
                path.unlink()
                continue
        path.write_bytes(content)
    for _ in range(3):
        assert store.read(cache_in(tmp_path)) == plain
    # It has healed: nothing was fetched the last time.
    assert not store.fetched


def test_a_full_disk_is_no_error_and_leaves_no_half_file(tmp_path: Path) -> None:
    """What does not fit is not kept; a plan is made all the same."""
    program = """
import resource, sys
from pathlib import Path
from tests.formats.iceberg.test_cache_hostile import Store, cache_in, entry
store, folder = Store(0), Path(sys.argv[1])
store.add([entry("a" * 1000) for _ in range(500)])
plain = store.read(None)
# Less than what is kept (531 kB), and more than what the decoder holds in a file in memory (513 kB).
resource.setrlimit(resource.RLIMIT_FSIZE, (522_000, 522_000))
assert store.read(cache_in(folder)) == plain
assert store.read(cache_in(folder)) == plain
assert len(store.fetched) == 1
"""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, cwd=ROOT, env=environment)
    assert [path.name for path in (tmp_path / FOLDER).rglob("*") if path.is_file()] == [MARK]


def test_a_folder_that_became_read_only_is_still_read(tmp_path: Path) -> None:
    """An image with a filled cache serves its readers."""
    if os.getuid() == 0:
        pytest.skip("nothing is read-only for root")
    store = Store(4)
    store.read(cache_in(tmp_path), [0, 1])
    folders = [path for path in tmp_path.rglob("*") if path.is_dir()]
    for path in folders:
        path.chmod(0o500)
    try:
        plain = store.read(None)
        assert store.read(cache_in(tmp_path)) == plain
        assert len(store.fetched) == 2
    finally:
        for path in folders:
            path.chmod(0o700)


def test_the_stamp_knows_the_versions_also_from_a_zip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other code may decode otherwise: it reads nothing that this has written. Executors have it in a zip."""
    code_stamp = stored._stamp.__wrapped__
    stamp = code_stamp()
    for name in ("tamis.__version__", "pyarrow.__version__"):
        with monkeypatch.context() as patched:
            patched.setattr(name, "99")
            assert code_stamp() != stamp
    with monkeypatch.context() as patched:
        patched.setattr(stored.decoder, "version", lambda: "datafusion 99")
        assert code_stamp() != stamp
    assert code_stamp() == stamp
    assert "datafusion-" in stored.decoder.version()
    archive = tmp_path / "tamis.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in sorted((ROOT / "src").rglob("*.py")):
            file.write(path, path.relative_to(ROOT / "src"))
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import tamis; from tamis.formats.iceberg.stored import _stamp\n"
        "assert tamis.__file__.startswith(sys.argv[1]), tamis.__file__\n"
        "print(_stamp())"
    )

    def said() -> str:
        command = [sys.executable, "-c", program, str(archive)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    first = said()
    assert first == said()
    os.utime(archive, (1, 1))
    assert said() != first
