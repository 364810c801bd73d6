"""A file in memory that is written piece by piece, for a decoder that reads files by their path.

Law: what is read is what was written, nothing that an earlier file left behind; and a file that something went wrong
with is not written again.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

__all__ = ["Sheet", "new_sheet"]

_PIECES: Final = 1024
"""Most that Linux takes in one call."""
_FLUSH_BYTES: Final = 512 << 10
"""Bytes to hold back before they are written: few calls, and the processor's cache still has them."""
_KEPT_BYTES: Final = 8 << 20
"""Most that a thread keeps for its next file. New memory costs more than what is written to it."""
_BINARY: Final = getattr(os, "O_BINARY", 0)


class Sheet:
    """A file to write and then to read by its path; in memory where the system can."""

    def __init__(self) -> None:
        self.size = 0
        self.owner = os.getpid()
        self._held: list[bytes | memoryview] = []
        self._held_bytes = 0
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        if hasattr(os, "memfd_create") and Path("/proc/self/fd").is_dir():
            self._descriptor = os.memfd_create("tamis")
            self.path = f"/proc/self/fd/{self._descriptor}"
        else:
            self._folder = tempfile.TemporaryDirectory(prefix="tamis-")
            self.path = str(Path(self._folder.name, "blocks"))
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | _BINARY, 0o600)

    def write(self, piece: bytes | memoryview) -> None:
        """Add a piece at the end."""
        self._held.append(piece)
        self._held_bytes += len(piece)
        self.size += len(piece)
        if self._held_bytes >= _FLUSH_BYTES or len(self._held) >= _PIECES:
            self._flush()

    def overwrite(self, at: int, piece: bytes) -> None:
        """Replace what was written there."""
        self._flush()
        os.lseek(self._descriptor, at, os.SEEK_SET)
        _write_all(self._descriptor, [piece])
        os.lseek(self._descriptor, self.size, os.SEEK_SET)

    def finish(self) -> None:
        """Let the file be what was written, and no more."""
        self._flush()
        os.ftruncate(self._descriptor, self.size)

    def content(self) -> bytes:
        """All of a finished sheet."""
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        with open(self._descriptor, "rb", closefd=False) as file:
            return file.read(self.size)

    def clear(self) -> None:
        """Begin anew. Its memory stays, up to what was written."""
        self._held.clear()
        self.size = self._held_bytes = 0
        os.lseek(self._descriptor, 0, os.SEEK_SET)

    def close(self) -> None:
        """Give it back; nothing if that was done."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)
        if self._folder is not None:
            self._folder.cleanup()

    def __del__(self) -> None:
        # The thread that kept it has ended.
        if hasattr(self, "_descriptor"):
            self.close()

    def _flush(self) -> None:
        if self._held:
            _write_all(self._descriptor, self._held)
            self._held.clear()
            self._held_bytes = 0


_KEPT: Final = threading.local()


@contextmanager
def new_sheet() -> Iterator[Sheet]:
    """An empty sheet. Threads keep theirs for the next time, if it went well and did not grow large."""
    kept: Sheet | None = getattr(_KEPT, "sheet", None)
    _KEPT.sheet = None
    # A fork has its parent's descriptors, and would write into its parent's file.
    sheet = kept if kept is not None and kept.owner == os.getpid() else Sheet()
    try:
        yield sheet
    except BaseException:
        sheet.close()
        raise
    if sheet.size > _KEPT_BYTES:
        sheet.close()
        return
    sheet.clear()
    _KEPT.sheet = sheet


def _write_all(descriptor: int, pieces: list[bytes | memoryview] | list[bytes]) -> None:
    """All pieces, many in one call: there may be one for each record."""
    size = sum(map(len, pieces))
    done = os.writev(descriptor, pieces) if hasattr(os, "writev") else 0
    while done < size:
        # The system takes 2 GiB at once at most, and less when a signal comes.
        done += os.write(descriptor, memoryview(b"".join(pieces))[done:])
