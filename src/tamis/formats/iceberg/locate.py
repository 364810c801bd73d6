"""Which metadata files a table's folder has, and what their names and the version hint say."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from tamis.formats.errors import unreachable
from tamis.formats.storage.local import fetch_local

__all__ = ["Candidate", "candidates", "hinted", "is_metadata_name", "version_hint"]

_METADATA: Final = re.compile(r"(?!\.)(.+?)(?:\.gz)?\.metadata\.json(?:\.gz)?", re.DOTALL)
_HADOOP: Final = re.compile(r"v(\d{1,30})")
_CATALOG: Final = re.compile(r"(\d{1,30})-.*", re.DOTALL)
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
HINT: Final = "version-hint.text"
_LONGEST_HINT: Final = 1000

Kind = Literal["hadoop", "catalog", "temporary", "other"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A metadata file that may be the newest, by its name: `v3`, `00003-…` as catalogs write it, or anything else."""

    path: Path
    stem: str
    kind: Kind
    number: int | None = None

    @classmethod
    def of(cls, path: Path) -> Candidate | None:
        """None if the file's name is not that of a metadata file."""
        match = _METADATA.fullmatch(path.name)
        if match is None:
            return None
        stem = match[1]
        if numbered := _HADOOP.fullmatch(stem):
            return cls(path, stem, "hadoop", int(numbered[1]))
        # A UUID may begin with eight digits: one alone is the name that Hadoop tables write under, and rename.
        if _UUID.fullmatch(stem):
            return cls(path, stem, "temporary")
        if numbered := _CATALOG.fullmatch(stem):
            return cls(path, stem, "catalog", int(numbered[1]))
        return cls(path, stem, "other")

    @property
    def name(self) -> str:
        """The file's name."""
        return self.path.name


def is_metadata_name(name: str) -> bool:
    """Whether a file of that name is a metadata file."""
    return _METADATA.fullmatch(name) is not None


def candidates(folder: Path) -> tuple[Candidate, ...]:
    """The metadata files of a table's folder, by name. Not those of commits that were not finished."""
    metadata = folder / "metadata"
    try:
        with os.scandir(metadata) as entries:
            # Only the few metadata files are looked at, not the manifests beside them.
            files = [Path(entry.path) for entry in entries if _METADATA.fullmatch(entry.name) and entry.is_file()]
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        raise unreachable(str(metadata), error) from error
    named = [candidate for candidate in map(Candidate.of, sorted(files)) if candidate is not None]
    # A Hadoop table's commit writes <uuid>.metadata.json, then renames it to v<N>: until then nothing is committed.
    is_hadoop = any(candidate.kind == "hadoop" for candidate in named)
    return tuple(candidate for candidate in named if not (is_hadoop and candidate.kind == "temporary"))


def version_hint(folder: Path) -> str | None:
    """What version-hint.text says; None if there is none, or it is empty.

    Writers write it after the file that it names: it may be stale, and is never ahead.
    """
    path = folder / "metadata" / HINT
    try:
        if not path.exists():
            return None
    except OSError as error:
        raise unreachable(str(path), error) from error
    return fetch_local(str(path))[:_LONGEST_HINT].decode("utf-8", "replace").strip() or None


def hinted(files: Iterable[Candidate], hint: str) -> tuple[Candidate, ...]:
    """The files that a hint names: by a version's number, or by their name without its ending, or with it."""
    every = tuple(files)
    for names in ({hint}, {f"v{hint}"}):
        named = tuple(candidate for candidate in every if candidate.stem in names or candidate.name in names)
        if named:
            return named
    number = int(hint) if hint.isascii() and hint.isdigit() and len(hint) <= 30 else None  # noqa: PLR2004 - as the names
    return tuple(candidate for candidate in every if number is not None and candidate.number == number)
