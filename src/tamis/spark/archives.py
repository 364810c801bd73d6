"""Archives on a Python worker's path, read again between tasks only if they have changed.

Spark has a worker look for new modules before each task. Python 3.11 and 3.12 then read through every archive that
modules were looked for in, once for each of its folders: a third of a second a task where the jars of connectors are
on the path. Law: what is importable after a look for new modules is what would be without this.

This module runs on executors: it imports only the standard library.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from zipimport import zipimporter

__all__ = ["remember_archives"]

_NAME: Final = "invalidate_caches"
Stamp = tuple[int, int, int, int, int]
"""Device, inode, size and the times of both kinds of change: another file, or other content, has another stamp."""


def remember_archives() -> None:
    """Have every archive that this process has looked into known by its stamp, from the next look on."""
    for finder in list(sys.path_importer_cache.values()):
        if isinstance(finder, zipimporter) and _NAME not in vars(finder):
            vars(finder)[_NAME] = _Again(finder)


@dataclass(slots=True)
class _Again:
    """A finder's own reading of its archive anew, done once and then only of a changed one."""

    finder: zipimporter
    read: Stamp | None = None
    """What the archive was when it was read; None if it was not since this is here."""

    def __call__(self) -> None:
        # Before the reading: what changes meanwhile is read again the next time.
        stamp = _stamp(self.finder.archive)
        if stamp is None or stamp != self.read:
            type(self.finder).invalidate_caches(self.finder)
        self.read = stamp


def _stamp(path: str) -> Stamp | None:
    """None for a file that is not there."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
