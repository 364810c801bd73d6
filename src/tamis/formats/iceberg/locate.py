"""Where a table's newest metadata file is, given its folder or the file itself."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from tamis.formats.errors import NoSuchTableError, shown
from tamis.formats.iceberg.reading import local_file

__all__ = ["is_table_folder", "local_path", "newest_metadata"]

_HADOOP: Final = re.compile(r"v(\d+)(?:\.gz)?\.metadata\.json(?:\.gz)?")
_CATALOG: Final = re.compile(r"(\d+)-[0-9a-fA-F-]+(?:\.gz)?\.metadata\.json(?:\.gz)?")
HINT: Final = "version-hint.text"


def local_path(target: str) -> Path | None:
    """The local path that a path or file: URI names; None for a URI of another kind."""
    is_file = target.startswith("file:") or "://" not in target
    return Path(local_file(target)) if is_file else None


def is_table_folder(folder: Path) -> bool:
    """Whether a local folder is laid out as an Iceberg table."""
    metadata = folder / "metadata"
    return metadata.is_dir() and any(_version(path.name) is not None for path in metadata.iterdir())


def newest_metadata(folder: Path) -> Path:
    """The metadata file that the version hint names, or a newer one, or else the newest by its number.

    Writers of Hadoop tables write the hint after the file: a hint may be stale, never ahead.
    """
    metadata = folder / "metadata"
    # The few metadata files are put in order, not the manifests beside them.
    versions = dict(
        sorted((path, version) for path in metadata.iterdir() if (version := _version(path.name)) is not None)
    )
    if not versions:
        raise NoSuchTableError(
            f"{shown(str(folder))} has no metadata file. Give a table's folder, its metadata file, or its name.",
            table=shown(str(folder)),
        )
    newest = max(versions.values())
    at_newest = [path for path, version in versions.items() if version == newest]
    if len(at_newest) > 1 and not all(_HADOOP.fullmatch(path.name) for path in at_newest):
        # Two catalogs' writers have raced, or a commit failed: the files do not say who won.
        names = ", ".join(path.name for path in at_newest)
        raise NoSuchTableError(
            f"{shown(str(folder))} has several metadata files of version {newest}: {names}. "
            "Only the table's catalog knows which one is current: open it by name, or name the file.",
            table=shown(str(folder)),
        )
    return at_newest[0]


def _version(name: str) -> int | None:
    found = _HADOOP.fullmatch(name) or _CATALOG.fullmatch(name)
    return None if found is None else int(found[1])
