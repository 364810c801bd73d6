"""Decoded metadata kept on local disk, so that the next plan reads it there instead of decoding it again.

It is for files that never change, such as manifests: what was decoded from one stays true. Law: a hit is what reading
would give. Whatever is wrong with the cache, missing, damaged, unwritable or somebody else's, is a miss: never an
error, never another plan. And it touches nothing but what it wrote: files with its own names, in a folder that it
made and marked. Links are not followed.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from tamis.errors import SettingError
from tamis.formats.storage.packs import DAMAGE, FRESH, MANY, ONE, PACK_NAME, PART_NAME, Shelf

__all__ = ["MetadataCache", "code_stamp"]

LIMIT: Final = 2 << 30
"""Most bytes to keep: the metadata of ten million files, about as many as one machine plans over."""
MOST_PACKS: Final = 4096
"""Most packs of many metadata files on one shelf: the heads of all are read before a plan, in a tenth of a second."""
FOLDER: Final = "metadata-packs"
MARK: Final = "CACHEDIR.TAG"
"""Says what the folder is: to us, and to programs that leave caches out of backups."""
MARKED: Final = (
    b"Signature: 8a477f597d28d172789f06886806bc55\n"
    b"# Made by tamis for metadata of tables that it has decoded. It may be removed at any time.\n"
)
_ON: Final = frozenset({"", "on", "1", "yes", "true"})
_OFF: Final = frozenset({"off", "0", "no", "false"})
_FORMAT: Final = 2
"""Raise it when the same decoded metadata is to be stored in another way."""
_SHELF_NAME: Final = re.compile(r"[0-9a-f]{64}")
_AFTER: Final = 0.9
"""How full the cache is after it was trimmed: so that not every run has to."""
_SIZE: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(?:([kmgt])(i?b)?|b)?\s*", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class _Kept:
    """A pack on disk, for whoever makes room."""

    used: float
    path: Path
    size: int


class MetadataCache:
    """A folder of packs, sorted onto shelves. Any number of processes may share it."""

    def __init__(self, folder: Path, limit: int = LIMIT) -> None:
        self.folder = folder
        self.limit = limit
        self._usable: bool | None = None
        self._writable = True
        self._written = 0

    @classmethod
    def chosen(cls, wanted: bool | None = None) -> MetadataCache | None:  # noqa: FBT001 - the user's own three-way choice
        """The user's cache, if it is wanted; by TAMIS_CACHE, and else on, if that is not said.

        SettingError if a setting of a cache that is wanted cannot be understood.
        """
        if wanted is None:
            setting = os.environ.get("TAMIS_CACHE", "").strip().lower()
            if setting not in _ON | _OFF:
                raise _unclear("TAMIS_CACHE", setting, "neither on nor off", "Say on or off.")
            wanted = setting in _ON
        limit = _limit() if wanted else 0
        folder = _folder() if limit > 0 else None
        return None if folder is None else cls(folder, limit)

    def shelf(self, key: str, lookups: int) -> Shelf | None:
        """The packs of that key, for so many lookups; None if the cache cannot be used."""
        if not self._ready():
            return None
        digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=32).digest()
        return Shelf(self.folder / digest.hex(), digest, lookups)

    def save(self, shelf: Shelf, digests: Sequence[bytes], counts: Sequence[int], batch: pa.RecordBatch) -> bool:
        """Keep the rows of these metadata files on the shelf; False if there is no room or no permission."""
        # A table that is larger than the limit would push out everything, itself included.
        if not self._writable or self._written + batch.nbytes > self.limit:
            return False
        try:
            self._written += shelf.save(digests, counts, batch)
        except DAMAGE:
            # A full disk does not get better by trying again for every file.
            self._writable = False
            return False
        return True

    def trim(self) -> None:
        """Remove what was used longest ago until the limits are kept; only after something was saved."""
        if not self._written or not self._ready():
            return
        self._written = 0
        with suppress(OSError):
            packs: dict[Path, list[_Kept]] = defaultdict(list)
            for pack in self._packs():
                packs[pack.path.parent].append(pack)
            kept = []
            for folder, shelved in packs.items():
                shelved.sort(reverse=True)
                most = MOST_PACKS if folder.name == MANY else len(shelved)
                kept += shelved[:most]
                for pack in shelved[most:]:
                    pack.path.unlink(missing_ok=True)
            size = sum(pack.size for pack in kept)
            if size <= self.limit:
                return
            for pack in sorted(kept):
                if size <= self.limit * _AFTER:
                    break
                pack.path.unlink(missing_ok=True)
                size -= pack.size

    def _packs(self) -> Iterator[_Kept]:
        """Every pack. Files of ours that nobody finished, and shelves that have long been empty, are removed."""
        for shelf in _plain_folders(self.folder, _SHELF_NAME):
            for folder in _plain_folders(shelf, re.compile(f"{ONE}|{MANY}")):
                with os.scandir(folder) as entries:
                    for entry in entries:
                        with suppress(FileNotFoundError):  # another process was faster
                            status = entry.stat(follow_symlinks=False)
                            if not stat.S_ISREG(status.st_mode):
                                continue
                            if PACK_NAME.fullmatch(entry.name):
                                yield _Kept(status.st_mtime, Path(entry.path), status.st_size)
                            elif PART_NAME.fullmatch(entry.name) and time.time() - status.st_mtime > FRESH:
                                Path(entry.path).unlink()
                _remove_if_empty(folder)
            _remove_if_empty(shelf)

    def _ready(self) -> bool:
        """Whether the folder is there, is the user's own and our own, and nobody else can write to it."""
        if self._usable is None:
            try:
                self._usable = _made(self.folder)
            except OSError:
                self._usable = False
        return self._usable


def _made(folder: Path) -> bool:
    """Make and mark the folder, if there is none; whether it is one of ours, and nobody else's."""
    if not os.path.lexists(folder):
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # It gets its name when it is marked. Whoever finds one without a mark has found somebody else's.
        new = folder.with_name(f"{folder.name}.{os.urandom(8).hex()}")
        new.mkdir(mode=0o700)
        (new / MARK).write_bytes(MARKED)
        try:
            new.rename(folder)
        except OSError:  # another process was faster
            (new / MARK).unlink()
            new.rmdir()
    status, mark = folder.lstat(), (folder / MARK).lstat()
    owned = not hasattr(os, "getuid") or status.st_uid == os.getuid()
    closed = os.name != "posix" or not status.st_mode & 0o022
    marked = stat.S_ISREG(mark.st_mode) and (folder / MARK).read_bytes() == MARKED
    return stat.S_ISDIR(status.st_mode) and owned and closed and marked


def _plain_folders(folder: Path, name: re.Pattern[str]) -> list[Path]:
    with os.scandir(folder) as entries:
        return [
            Path(entry.path)
            for entry in entries
            if name.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)
        ]


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):
        if time.time() - folder.lstat().st_mtime > FRESH:
            folder.rmdir()


def _folder() -> Path | None:
    """Where the user's cache is; None for a user without a home."""
    chosen = os.environ.get("TAMIS_CACHE_DIR")
    if chosen:
        try:
            return Path(chosen).expanduser().absolute() / FOLDER
        except RuntimeError as error:
            next_ = "Give a folder that is there, or can be made."
            raise _unclear("TAMIS_CACHE_DIR", chosen, "a home that nobody has", next_) from error
    base = os.environ.get("XDG_CACHE_HOME", "")
    try:
        # By its specification a relative path is to be ignored.
        return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "tamis" / FOLDER
    except RuntimeError:
        return None


def _limit() -> int:
    """The most bytes to keep.

    >>> os.environ["TAMIS_CACHE_BYTES"] = "1.5 GiB"
    >>> _limit() == 3 << 29
    True
    >>> del os.environ["TAMIS_CACHE_BYTES"]
    """
    text = os.environ.get("TAMIS_CACHE_BYTES", "")
    if not text.strip():
        return LIMIT
    match = _SIZE.fullmatch(text)
    if match is None:
        next_ = "Give bytes, or a number with KB, MB, GB, KiB, MiB or GiB, such as 2GiB; 0 keeps nothing."
        raise _unclear("TAMIS_CACHE_BYTES", text, "no size", next_)
    number, unit, suffix = match.groups()
    # As Spark has it, a letter alone counts in steps of 1024.
    step = 1000 if (suffix or "").lower() == "b" else 1024
    return int(float(number) * step ** ("kmgt".index(unit.lower()) + 1)) if unit else int(float(number))


def _unclear(setting: str, value: str, is_: str, next_: str) -> SettingError:
    return SettingError(
        f"the environment variable {setting} is {value!r}, which is {is_}. {next_} cache=False, or "
        "TAMIS_CACHE=off, does without the cache.",
        variable=setting,
        value=value,
    )


def code_stamp(decoder: str, folder: Path = Path(__file__).parents[1]) -> str:
    """Which code decodes, and with which decoder: another release, or an edited file, reads nothing of ours.

    In a zip the files have no times of their own: then the archive's size and time stand in.
    """
    archive = getattr(getattr(sys.modules.get(__name__), "__loader__", None), "archive", None)
    paths = [Path(archive)] if archive else sorted(folder.rglob("*.py"))
    try:
        files = [(str(path), path.stat()) for path in paths]
    except OSError:
        files = []
    stamps = "\n".join(f"{name} {status.st_size} {status.st_mtime_ns}" for name, status in files)
    package: Any = sys.modules.get("tamis")
    releases = (_FORMAT, getattr(package, "__version__", ""), pa.__version__, decoder)
    return f"{releases} {hashlib.sha256(stamps.encode()).hexdigest()}"
