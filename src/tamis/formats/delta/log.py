"""What a table's log folder holds, and which of its files tell the state at one version.

Law: a state is told by one whole checkpoint, or none, and by every version after it: a version that is missing is an
error that names it, never a state without it. The hint `_last_checkpoint` shortens the listing and decides nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tamis.errors import NoSuchSnapshotError, NoSuchTableError, UnreadableMetadataError
from tamis.formats.errors import shown, unreadable
from tamis.formats.storage import Listed, Storage

__all__ = ["LOG", "Checkpoint", "Commit", "Log", "Segment", "list_log"]

LOG: Final = "_delta_log"
HINT: Final = "_last_checkpoint"
_COMMIT: Final = re.compile(r"(\d{20})\.json")
_COMPACTED: Final = re.compile(r"(\d{20})\.(\d{20})\.compacted\.json")
_CLASSIC: Final = re.compile(r"(\d{20})\.checkpoint\.parquet")
_PART: Final = re.compile(r"(\d{20})\.checkpoint\.(\d{10})\.(\d{10})\.parquet")
_NAMED: Final = re.compile(r"(\d{20})\.checkpoint\.([0-9a-fA-F-]{36})\.(?:json|parquet)")
_CHECKPOINTS: Final = (_CLASSIC, _PART, _NAMED)
_GREATEST: Final = (1 << 63) - 1
"""Versions are longs to every reader."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A file of the log that tells the actions of some versions: of one, or, compacted, of several."""

    first: int
    last: int
    location: str
    size: int

    @property
    def compacted(self) -> bool:
        """Whether it stands for several versions: then its actions are reconciled already."""
        return self.location.endswith(".compacted.json")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A whole checkpoint: all actions that are left at a version, in one file or several parts."""

    version: int
    locations: tuple[str, ...]
    sizes: tuple[int, ...]

    @property
    def kind(self) -> str:
        """How it is laid out, as the protocol calls it."""
        if len(self.locations) > 1 or _PART.fullmatch(_name(self.locations[0])):
            return "multi-part"
        return "UUID-named" if _NAMED.fullmatch(_name(self.locations[0])) else "classic"


@dataclass(frozen=True, slots=True)
class Segment:
    """The files that tell the state at one version: a checkpoint, then commits in the order of their versions."""

    version: int
    checkpoint: Checkpoint | None
    commits: tuple[Commit, ...]


@dataclass(frozen=True, slots=True)
class Log:
    """What the log folder holds, as far as it was listed."""

    folder: str
    commits: Mapping[int, Commit]
    compacted: tuple[Commit, ...]
    checkpoints: tuple[Checkpoint, ...]
    """Whole ones, none of whose files is empty; the oldest first, at one version the one to take last."""
    since: int = 0
    """Nothing was looked at that is older."""
    hinted: int | None = None
    """The version of a checkpoint that `_last_checkpoint` names and that is not there, or not whole."""
    unfilled: str | None = None
    """The newest file of a checkpoint that is empty."""

    @property
    def newest(self) -> int | None:
        """The newest version; None if there is none."""
        versions = [*self.commits, *(one.version for one in self.checkpoints[-1:])]
        return max(versions, default=None)

    def segment(self, version: int) -> Segment:
        """The files that tell the state at a version. An error names the version that is missing."""
        found = [one for one in self.checkpoints if one.version <= version]
        checkpoint = found[-1] if found else None
        at = 0 if checkpoint is None else checkpoint.version + 1
        commits: list[Commit] = []
        while at <= version:
            commit = self._next(at, version)
            if commit is None:
                raise self._missing(at, version, checkpoint)
            commits.append(commit)
            at = commit.last + 1
        return Segment(version, checkpoint, tuple(commits))

    def _next(self, at: int, version: int) -> Commit | None:
        """What tells this version, and as many after it as can be, up to the last that is asked for."""
        # An empty compaction was never filled: the commits that it stands for tell what they did.
        spans = [one for one in self.compacted if one.first == at and one.last <= version and one.size]
        return max(spans, key=lambda one: one.last) if spans else self.commits.get(at)

    def _missing(self, missing: int, version: int, checkpoint: Checkpoint | None) -> UnreadableMetadataError:
        base = "there is no checkpoint before it" if checkpoint is None else f"its checkpoint is {checkpoint.version}"
        if self.hinted is not None and missing <= self.hinted:
            base += f", and {self.hinted:020d}.checkpoint.parquet, which {HINT} names, is not there or not whole"
        elif self.unfilled is not None and missing <= int(self.unfilled[:20]):
            base += f", and {self.unfilled} is empty"
        return unreadable(
            f"{self.folder}/{missing:020d}.json",
            f"version {missing} is missing from the log, which version {version} needs: {base}",
            cure="Restore the file, or open a version that does not need it.",
        )

    def readable(self) -> list[int]:
        """The versions that can be told, ascending."""
        starts = {one.version for one in self.checkpoints}
        found: list[int] = []
        for version in sorted({*self.commits, *starts}):
            follows = bool(found) and found[-1] == version - 1 and version in self.commits
            if version in starts or follows or (version == 0 and 0 in self.commits):
                found.append(version)
        return found


def list_log(storage: Storage, root: str, *, hint: bool = True) -> Log:
    """The log of the table at root; NoSuchTableError if it has none.

    With hint the listing begins at the checkpoint that `_last_checkpoint` names, if that is there and whole.
    """
    folder = f"{root.rstrip('/')}/{LOG}"
    since = _hinted(storage, folder) if hint else None
    if since is not None:
        found = _log(folder, storage.list(folder, f"{since:020d}"), since)
        if any(one.version == since for one in found.checkpoints):
            return found
    found = replace(_log(folder, storage.list(folder), 0), hinted=since)
    if found.newest is None:
        raise NoSuchTableError(
            f"{shown(root)} is not a Delta table: {LOG} has no version in it. Give the folder of a table.",
            table=shown(root),
        )
    return found


def no_version(log: Log, wanted: str, known: Sequence[str]) -> NoSuchSnapshotError:
    """The error for a state that the log does not tell."""
    listed = f"{known[0]} to {known[-1]}" if known else "none"
    return NoSuchSnapshotError(
        f"{shown(log.folder)} has no {wanted}. Its versions that can be read: {listed}.",
        wanted=wanted,
        known=tuple(known),
    )


def _hinted(storage: Storage, folder: str) -> int | None:
    """The version that the hint names; None if there is none, or it says nothing that can be used."""
    try:
        found = json.loads(storage(f"{folder}/{HINT}"))
    except (UnreadableMetadataError, ValueError, RecursionError):
        return None
    version = found.get("version") if isinstance(found, dict) else None
    return version if type(version) is int and 0 <= version <= _GREATEST else None


def _log(folder: str, listed: Iterable[Listed], since: int) -> Log:
    commits: dict[int, Commit] = {}
    compacted: list[Commit] = []
    whole: list[tuple[int, int, str, Checkpoint]] = []
    parts: dict[tuple[int, int], dict[int, Listed]] = {}
    unfilled: list[str] = []
    for one in listed:
        location, size = f"{folder}/{one.name}", one.size or 0
        if one.size == 0 and any(kind.fullmatch(one.name) for kind in _CHECKPOINTS):
            unfilled.append(one.name)  # a writer died before it wrote anything: Spark passes these over, too
        elif found := _COMMIT.fullmatch(one.name):
            version = int(found[1])
            commits[version] = Commit(version, version, location, size)
        elif found := _COMPACTED.fullmatch(one.name):
            if int(found[1]) <= int(found[2]):
                compacted.append(Commit(int(found[1]), int(found[2]), location, size))
        elif found := _CLASSIC.fullmatch(one.name):
            whole.append((int(found[1]), 0, one.name, Checkpoint(int(found[1]), (location,), (size,))))
        elif found := _NAMED.fullmatch(one.name):
            whole.append((int(found[1]), 2, one.name, Checkpoint(int(found[1]), (location,), (size,))))
        elif found := _PART.fullmatch(one.name):
            parts.setdefault((int(found[1]), int(found[3])), {})[int(found[2])] = one
    for (version, count), by_number in parts.items():
        # A writer that died left some parts alone: such a set is no checkpoint.
        if count and len(by_number) == count and min(by_number) == 1 and max(by_number) == count:
            files = [by_number[number] for number in range(1, count + 1)]
            checkpoint = Checkpoint(
                version, tuple(f"{folder}/{one.name}" for one in files), tuple(one.size or 0 for one in files)
            )
            whole.append((version, 1, files[0].name, checkpoint))
    checkpoints = tuple(one[3] for one in sorted(whole, key=lambda one: one[:3]))
    return Log(folder, commits, tuple(compacted), checkpoints, since, unfilled=max(unfilled, default=None))


def _name(location: str) -> str:
    return location.rpartition("/")[2]
