"""Packs: files of the cache, each with what was decoded from one metadata file or from many small ones.

A pack holds one Arrow batch, and in its head whose rows these are: a digest for each metadata file, and how many rows
it has. Law: what comes out of a pack under a digest is what was put in under it. Both parts have checksums, which are
compared before anything is believed. What is no sound pack of this shelf, is gone, or is no plain file, is a miss.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import struct
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import accumulate, repeat
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa

__all__ = ["DAMAGE", "FRESH", "MANY", "ONE", "PACK_NAME", "PART_NAME", "Extent", "Shelf"]

ONE: Final = "one"
"""Packs of one metadata file, each under the file's own digest: found without looking around."""
MANY: Final = "many"
"""Packs of several metadata files: all heads are read to find one."""
PACK_NAME: Final = re.compile(r"[0-9a-f]{64}\.pack")
PART_NAME: Final = re.compile(r"[0-9a-f]{64}\.[0-9a-f]{16}\.part")
FRESH: Final = 3600.0
"""Seconds within which a pack counts as just used, and an unfinished file as being written."""
DAMAGE: Final = (OSError, ValueError, pa.ArrowException, struct.error)
LISTED: Final = 64
"""Metadata files to look up from which on the names of single packs are listed once, in place of asking for each."""
_MAGIC: Final = b"tamis\x00pk"
_HEAD: Final = struct.Struct("<8sIIQQ32s")
"""The magic, checksums of the index and of the batch, their lengths, and the shelf's digest: 64 bytes."""
_DIGEST: Final = 32
_ENTRY: Final = _DIGEST + 4
"""Bytes of the index for a metadata file: its digest, and how many rows it has. All digests come first."""
_FIRST_READ: Final = 1 << 14
_MOST: Final = 1 << 31
"""Bytes of the largest pack."""
_OPEN: Final = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)

Entry = tuple[bytes, int]
"""A metadata file's digest, and how many rows it has."""


class Extent(NamedTuple):
    """The rows of a metadata file: in which pack, and which of the pack's rows."""

    pack: str
    """The path within the shelf."""
    start: int
    rows: int


class Shelf:
    """A folder of packs that have the same columns of one table, made by the same code."""

    def __init__(self, folder: Path, digest: bytes, lookups: int) -> None:
        """Read which metadata files it has, for so many lookups; none if the folder is not there, or is no folder."""
        self._folder = folder
        self._digest = digest
        self._extents: dict[bytes, Extent] = {}
        self._packs: dict[str, tuple[bytes, ...]] = {}
        self._saved: set[str] = set()
        for name in _names(folder / MANY):
            pack = f"{MANY}/{name}"
            entries = self._index(pack)
            if entries is not None:
                self._learn(pack, entries)
        self._single = frozenset(_names(folder / ONE)) if lookups > LISTED else None
        self._plain = _is_folder(folder / ONE)

    @property
    def empty(self) -> bool:
        """Whether it certainly has nothing."""
        return not self._extents and (not self._plain or self._single == frozenset())

    def find(self, digest: bytes) -> Extent | None:
        """Where the file's rows are; None if they are not here."""
        extent = self._extents.get(digest)
        if extent is not None or not self._plain:
            return extent
        name = f"{digest.hex()}.pack"
        if self._single is not None and name not in self._single:
            return None
        pack = f"{ONE}/{name}"
        entries = self._index(pack)
        if entries is None or len(entries) != 1 or entries[0][0] != digest:
            return None
        self._learn(pack, entries)
        return self._extents[digest]

    def load(self, pack: str) -> pa.RecordBatch | None:
        """The batch of a pack, in memory of its own: what happens to the file later does not matter."""
        path = self._folder / pack
        try:
            data, modified = _read(path, _MOST)
            index, body = _unpacked(data, self._digest)
            rows = sum(count for _, count in index)
            batch = pa.ipc.open_file(body).get_batch(0)
            digests = tuple(digest for digest, _ in index)
            if (batch.num_columns and batch.num_rows != rows) or digests != self._packs[pack]:
                return None
            if time.time() - modified > FRESH:
                os.utime(path, follow_symlinks=False)
        except (*DAMAGE, KeyError, NotImplementedError):
            return None
        return batch

    def save(self, digests: Sequence[bytes], counts: Sequence[int], batch: pa.RecordBatch) -> int:
        """Keep the rows of these files, whole or not at all, and say how many bytes that took; or OSError."""
        names = b"".join(digests)
        single = len(digests) == 1
        name = names.hex() if single else hashlib.blake2b(names, digest_size=_DIGEST).hexdigest()
        folder = self._folder / (ONE if single else MANY)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_folder(self._folder) or not _is_folder(folder):
            raise NotADirectoryError(str(folder))
        body = _as_file(batch)
        index = names + struct.pack(f"<{len(counts)}I", *counts)
        head = _HEAD.pack(_MAGIC, zlib.crc32(index), zlib.crc32(body), len(index), body.size, self._digest)
        part = folder / f"{name}.{os.urandom(8).hex()}.part"
        target = folder / f"{name}.pack"
        try:
            with open(os.open(part, _CREATE, 0o600), "wb", buffering=0) as file:  # noqa: PTH123 - opened with care
                for piece in (head + index + bytes(-(len(head) + len(index)) % 64), body):
                    _write(file.fileno(), piece)
            part.replace(target)
        except OSError:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            raise
        self._saved.add(f"{folder.name}/{target.name}")
        return len(head) + len(index) + int(body.size)

    def replaced(self, packs: Sequence[str], digests: frozenset[bytes]) -> None:
        """Remove those of the packs that have nothing but these metadata files, which other packs have now."""
        for pack in packs:
            if pack not in self._saved and digests.issuperset(self._packs[pack]):
                with suppress(OSError):
                    (self._folder / pack).unlink()

    def discard(self, pack: str) -> None:
        """Forget and remove a pack whose head was sound, and so ours, and whose batch is not."""
        for digest in self._packs.get(pack, ()):
            extent = self._extents.get(digest)
            if extent is not None and extent.pack == pack:
                self._extents.pop(digest, None)
        with suppress(OSError):
            if stat.S_ISREG((self._folder / pack).lstat().st_mode):
                (self._folder / pack).unlink()

    def _learn(self, pack: str, entries: Sequence[Entry]) -> None:
        digests, counts = zip(*entries, strict=True)
        self._packs[pack] = digests
        starts = accumulate(counts, initial=0)
        self._extents.update(zip(digests, map(Extent, repeat(pack), starts, counts), strict=True))

    def _index(self, pack: str) -> list[Entry] | None:
        """Whose rows a pack has, by its head; None if that is not sound or the pack is another shelf's."""
        try:
            data, _ = _read(self._folder / pack, _FIRST_READ)
            size = int.from_bytes(data[16:24], "little")
            if _HEAD.size + size > len(data):
                data, _ = _read(self._folder / pack, min(_HEAD.size + size, _MOST))
            return _entries(data, self._digest)
        except DAMAGE:
            return None


def _names(folder: Path) -> Iterator[str]:
    """The names of packs in a folder, in their order; none if it is missing or a link."""
    if not _is_folder(folder):
        return
    with suppress(OSError):
        yield from sorted(name for name in os.listdir(folder) if PACK_NAME.fullmatch(name))  # noqa: PTH208 - names only


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except OSError:
        return False


def _read(path: Path, most: int) -> tuple[bytes, float]:
    """A plain file's first bytes, and when it was last changed. Pipes and devices are not waited for."""
    with open(os.open(path, _OPEN), "rb", buffering=0) as file:  # noqa: PTH123 - opened with care
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{path} is no plain file")
        pieces = []
        left = min(status.st_size, most)
        while left > 0 and (piece := file.read(left)):
            pieces.append(piece)
            left -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces), status.st_mtime


def _entries(data: bytes, shelf: bytes) -> list[Entry]:
    magic, checksum, _, size, _, digest = _HEAD.unpack_from(data)
    index = data[_HEAD.size : _HEAD.size + size]
    if magic != _MAGIC or digest != shelf or len(index) != size or zlib.crc32(index) != checksum or not index:
        raise ValueError("no sound pack of this shelf")
    number = size // _ENTRY
    counts = struct.unpack(f"<{number}I", index[_DIGEST * number :])
    digests = (index[start : start + _DIGEST] for start in range(0, _DIGEST * number, _DIGEST))
    return list(zip(digests, counts, strict=True))


def _unpacked(data: bytes, shelf: bytes) -> tuple[list[Entry], pa.Buffer]:
    """A pack's index and the Arrow file in it; ValueError if a byte of it is not as it was written."""
    entries = _entries(data, shelf)
    _, _, checksum, size, length, _ = _HEAD.unpack_from(data)
    start = _HEAD.size + size
    body = pa.py_buffer(data).slice(start + -start % 64)
    if body.size != length or zlib.crc32(body) != checksum:
        raise ValueError("the batch is damaged")
    return entries, body


def _as_file(batch: pa.RecordBatch) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def _write(file: int, data: bytes | pa.Buffer) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
