"""Files as storage has them, beside what metadata says: how long they are, and whether they are files at all.

Law: a file that was replaced under its name is not read as if it were the one that the metadata describes. What
cannot be asked from here is unknown, and whoever reads it has to look.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from stat import S_ISDIR
from typing import Final

import pyarrow as pa

from tamis.errors import UnreadableMetadataError
from tamis.formats.errors import unreadable
from tamis.formats.storage.local import is_local

__all__ = ["SizeOf", "local_size", "unknown_sizes"]

SizeOf = Callable[[str], int | None]
"""The size of a file by its location: None if it cannot be asked from here, IsADirectoryError for a folder."""
THREADS: Final = 64
"""Files of an object store that are asked at a time: each is one small request."""
FEW: Final = 8
"""Files that are asked before all others: if none of them can be, none will be."""
CURE: Final = "Something other than the table's writers did that: restore the file, or read a snapshot without it."


def local_size(path: str) -> int | None:
    """The size of a file of this machine; None if it is not here."""
    try:
        status = os.stat(path)  # noqa: PTH116 - a Path for each of 100,000 files takes longer than the question
    except (OSError, ValueError):
        return None
    if S_ISDIR(status.st_mode):
        raise IsADirectoryError(path)
    return status.st_size


def unknown_sizes(files: pa.Table, size_of: SizeOf) -> Mapping[str, int | None]:
    """Those of these files (path and size) that cannot be asked from here, with what they should have.

    UnreadableMetadataError for one that is of another size than the metadata says, or no file. Those of this machine
    are asked one by one, a few microseconds each; others many at a time.
    """
    sizes = dict(zip(files["path"].to_pylist(), files["size"].to_pylist(), strict=True))
    near = [path for path in sizes if is_local(path)]
    far = [path for path in sizes if not is_local(path)] if len(near) < len(sizes) else []
    actual_sizes = dict(zip(near, (_asked(path, size_of) for path in near), strict=True))
    actual_sizes |= zip(far, _asked_many(far, size_of), strict=True)
    for path, actual in actual_sizes.items():
        if actual is not None and sizes[path] is not None and actual != sizes[path]:
            raise replaced(path, actual, sizes[path])
    return {path: sizes[path] for path, actual in actual_sizes.items() if actual is None}


def replaced(path: str, actual: int, announced: int) -> UnreadableMetadataError:
    """The error for a file that is not the one that the metadata describes."""
    return unreadable(path, f"it has {actual:,} bytes, and the table's metadata says {announced:,}", cure=CURE)


def _asked(path: str, size_of: SizeOf) -> int | None:
    try:
        return size_of(path)
    except IsADirectoryError as error:
        raise unreadable(path, "it is a folder, and the table names it as a file", cure=CURE) from error


def _asked_many(paths: Sequence[str], size_of: SizeOf) -> list[int | None]:
    first = [_asked(path, size_of) for path in paths[:FEW]]
    if all(size is None for size in first):
        return [None] * len(paths)
    with ThreadPoolExecutor(THREADS, thread_name_prefix="tamis-sizes") as pool:
        return [*first, *pool.map(lambda path: _asked(path, size_of), paths[FEW:])]
