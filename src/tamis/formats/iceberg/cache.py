"""Decoded manifests kept on local disk, so that the next plan maps them into memory instead of decoding them again.

A manifest never changes, so what was decoded from it stays true. Law: a hit is what reading would give. The name of a
record holds everything that its content depends on, its checksum is compared, and whatever is wrong with the cache,
missing, damaged, unwritable or somebody else's, is a miss: never an error, never another plan.
"""

from __future__ import annotations

import hashlib
import os
import struct
import tempfile
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa

__all__ = ["ManifestCache", "code_stamp"]

LIMIT: Final = 2 << 30
"""Most bytes to keep: the manifests of ten million files, about as many as one machine plans over."""
OFF: Final = frozenset({"off", "0", "no", "false"})
_FORMAT: Final = 1
"""Raise it when the same decoded manifest is to be stored in another way."""
_MAGIC: Final = b"tamis\x00mf"
_HEADER: Final = struct.Struct("<8sIQ")
"""The magic, the checksum of what follows, and its length."""
_START: Final = 64
"""Where the Arrow file begins: its buffers stay aligned."""
_SUFFIX: Final = ".arrow"
_UNFINISHED: Final = ".part"
_FRESH: Final = 3600.0
"""Seconds within which a record counts as just used, and an unfinished file as being written."""
_AFTER: Final = 0.9
"""How full the cache is after it was trimmed: so that not every run has to."""
_DAMAGE: Final = (OSError, ValueError, pa.ArrowException, struct.error)


class ManifestCache:
    """A folder of Arrow files, each named by what it was made from. Any number of processes may share it."""

    def __init__(self, folder: Path, limit: int = LIMIT) -> None:
        self.folder = folder
        self.limit = limit
        self._usable: bool | None = None
        self._written = 0
        self._lock = threading.Lock()

    @classmethod
    def chosen(cls, wanted: bool | None = None) -> ManifestCache | None:  # noqa: FBT001 - the user's own three-way choice
        """The user's cache, if it is wanted; by TAMIS_CACHE, and else on, if that is not said."""
        if wanted is None:
            wanted = os.environ.get("TAMIS_CACHE", "").strip().lower() not in OFF
        limit = _limit()
        folder = _folder() if wanted and limit > 0 else None
        return None if folder is None else cls(folder, limit)

    def load(self, key: str) -> pa.RecordBatch | None:
        """What was saved under the key, its memory mapped from the file; None if it is not there or not sound."""
        if not self._ready():
            return None
        path = self._path(key)
        try:
            with pa.memory_map(str(path)) as file:
                body = _checked(file.read_buffer())
            if body is None:
                return None
            found = pa.ipc.open_file(body).get_batch(0)
            if time.time() - path.stat().st_mtime > _FRESH:
                os.utime(path)
        except _DAMAGE:
            return None
        return found

    def save(self, key: str, batch: pa.RecordBatch) -> None:
        """Keep the batch under the key, whole or not at all; nothing if there is no room or no permission."""
        if not self._ready():
            return
        path = self._path(key)
        try:
            body = _as_file(batch)
            with self._lock:
                if self._written + body.size > self.limit:
                    return
                self._written += body.size
            path.parent.mkdir(mode=0o700, exist_ok=True)
            head = _HEADER.pack(_MAGIC, zlib.crc32(body), body.size).ljust(_START, b"\0")
            with tempfile.NamedTemporaryFile(dir=path.parent, suffix=_UNFINISHED, delete=False) as file:
                try:
                    file.write(head)
                    file.write(body)
                    file.close()
                    Path(file.name).replace(path)
                except OSError:
                    Path(file.name).unlink(missing_ok=True)
                    raise
        except _DAMAGE:
            # A full disk does not get better by trying again for every manifest.
            self._usable = False

    def trim(self) -> None:
        """Remove what was used longest ago until the limit is kept; only after something was saved."""
        if not self._written or not self._usable:
            return
        self._written = 0
        try:
            found = sorted(self._records())
            size = sum(one[1] for one in found)
            if size <= self.limit:
                return
            for _, bytes_, path in found:
                if size <= self.limit * _AFTER:
                    break
                path.unlink(missing_ok=True)
                size -= bytes_
        except OSError:
            self._usable = False

    def _records(self) -> Iterator[tuple[float, int, Path]]:
        """When each record was last used, its size and its path. Files that nobody finished are removed."""
        for path in self.folder.glob("*/*"):
            try:
                status = path.stat()
                if path.suffix == _SUFFIX:
                    yield status.st_mtime, status.st_size, path
                elif time.time() - status.st_mtime > _FRESH:
                    path.unlink()
            except FileNotFoundError:
                continue  # another process was faster

    def _path(self, key: str) -> Path:
        name = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
        return self.folder / name[:2] / f"{name}{_SUFFIX}"

    def _ready(self) -> bool:
        """Whether the folder is there, is the user's own, and nobody else can write to it."""
        if self._usable is None:
            try:
                self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                status = self.folder.stat()
                mine = not hasattr(os, "getuid") or status.st_uid == os.getuid()
                self._usable = mine and not (os.name == "posix" and status.st_mode & 0o022)
            except OSError:
                self._usable = False
        return self._usable


def _checked(data: pa.Buffer) -> pa.Buffer | None:
    """The Arrow file in a record's bytes; None if a byte of it is not as it was written."""
    magic, checksum, size = _HEADER.unpack_from(data)
    body = data.slice(_START)
    sound = magic == _MAGIC and body.size == size and zlib.crc32(body) == checksum
    return body if sound else None


def _as_file(batch: pa.RecordBatch) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def _folder() -> Path | None:
    """Where the user's cache is; None for a user without a home."""
    chosen = os.environ.get("TAMIS_CACHE_DIR")
    if chosen:
        return Path(chosen) / "manifests"
    try:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:
        return None
    return Path(base) / "tamis" / "manifests"


def _limit() -> int:
    text = os.environ.get("TAMIS_CACHE_BYTES", "")
    return int(text) if text.strip().isdigit() else LIMIT


def code_stamp(folder: Path = Path(__file__).parent) -> str:
    """Which code decodes: another release or an edited file reads nothing that this one has written."""
    try:
        files = [(path.name, path.stat()) for path in sorted(folder.glob("*.py"))]
    except OSError:
        files = []
    stamps = "\n".join(f"{name} {status.st_size} {status.st_mtime_ns}" for name, status in files)
    return f"{_FORMAT} {pa.__version__} {hashlib.sha256(stamps.encode()).hexdigest()}"
