"""The newest metadata file of a table's folder, or an error: never an older state in silence.

What names and the version hint say is held against what the documents say: when a table was last updated, by how many
commits, and of which files it was made (its metadata log). A catalog's table is opened so for want of its catalog:
which file is committed only the catalog knows, and a file of a commit that failed may be newer than the current one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NoReturn

from tamis.errors import AmbiguousTableError, NoSuchTableError, UnreadableMetadataError
from tamis.formats.errors import shown
from tamis.formats.iceberg.document import Document, Misfit, damaged, each, long, mapping, may, read_document, text
from tamis.formats.iceberg.locate import HINT, Candidate, candidates, hinted, version_hint
from tamis.formats.storage import Fetch
from tamis.formats.storage.local import fetch_local

__all__ = ["newest_metadata"]

MOST_READ: Final = 2000
"""Most documents to compare. A log explains a hundred files each: only a folder without logs has more to read."""
_MOST_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class _Facts:
    """What a document says of its own age."""

    uuid: str | None
    updated_ms: int
    sequence: int
    log: tuple[str, ...]
    """Names of the files that it was made of, oldest first."""

    @classmethod
    def of(cls, document: Document) -> _Facts:
        uuid = may(document, "table-uuid", text)
        return cls(
            None if uuid is None else uuid.lower(),
            may(document, "last-updated-ms", long) or 0,
            may(document, "last-sequence-number", long) or 0,
            may(document, "metadata-log", each(_logged)) or (),
        )

    def is_later(self, other: _Facts) -> bool:
        """Whether it was updated later, as the same table."""
        return self.uuid == other.uuid and self.updated_ms > other.updated_ms

    def contradicts(self, newest: _Facts, name: str) -> bool:
        """Whether it cannot be older than what is taken for the newest, a file of that name."""
        more = self.uuid == newest.uuid and self.sequence > newest.sequence
        return more or self.updated_ms > newest.updated_ms or name in self.log


def _logged(value: object) -> str:
    return (may(mapping(value), "metadata-file", text) or "").rpartition("/")[2]


def newest_metadata(folder: Path, fetch: Fetch = fetch_local) -> tuple[Path, dict[str, Any] | None]:
    """The newest metadata file of a folder and, if it had to be read, its document.

    AmbiguousTableError if names, hint and documents do not agree on which it is.
    """
    # The hint first: it is never ahead of the files that are listed after it.
    hint = version_hint(folder)
    files = candidates(folder)
    if not files:
        raise NoSuchTableError(
            f"{shown(str(folder))} is not an Iceberg table: it has no metadata/*.metadata.json. Give a table's "
            "folder, its metadata file, or its name in a catalog.",
            table=shown(str(folder)),
        )
    choice = _Choice(folder, files, hint, fetch)
    chosen = choice.newest()
    return chosen.path, choice.document if choice.read == chosen else None


@dataclass(slots=True)
class _Choice:
    """Which of a folder's metadata files is the newest."""

    folder: Path
    candidates: tuple[Candidate, ...]
    hint: str | None
    fetch: Fetch
    facts: dict[Candidate, _Facts] = field(default_factory=dict)
    """Of those that were read."""
    read: Candidate | None = None
    document: dict[str, Any] | None = None
    """The one that was read first, most often the newest: it need not be read again. All would be too much memory."""

    def newest(self) -> Candidate:
        """The one that names, hint and documents agree on."""
        hinted_file = self._hinted()
        if len(self.candidates) == 1:
            return self.candidates[0]
        numbered = {candidate.kind for candidate in self.candidates} in ({"hadoop"}, {"catalog"})
        if not numbered:
            return self._latest(hinted_file)
        greatest = max(candidate.number or 0 for candidate in self.candidates)
        last = [candidate for candidate in self.candidates if candidate.number == greatest]
        chosen = self._of_one_version(last, hinted_file)
        if chosen == hinted_file and len(last) == 1:
            return chosen  # the name and the hint agree
        made_of = self._made_of(chosen)
        if hinted_file is not None and hinted_file.name not in made_of and not self._follows(chosen, hinted_file):
            self._refuse(f"{HINT} says {self.hint!r}, and {chosen.name} was not made of that", chosen, hinted_file)
        self._check(chosen, made_of)
        return chosen

    def _hinted(self) -> Candidate | None:
        """The file that the hint names."""
        if self.hint is None:
            return None
        named = hinted(self.candidates, self.hint)
        if not named:
            self._refuse(f"{HINT} says {self.hint!r}, and there is no such file: the newest state may be lost")
        return self._of_one_version(list(named), None)

    def _of_one_version(self, same: Sequence[Candidate], hinted_file: Candidate | None) -> Candidate:
        """One of several files of a version: that of the hint, or, of v-files, any if all say the same."""
        # As Java looks for them: v1.metadata.json, v1.gz.metadata.json, v1.metadata.json.gz.
        first = min(same, key=lambda candidate: (".gz" in candidate.name, candidate.name.endswith(".gz")))
        if len(same) == 1:
            return first
        if hinted_file is not None and hinted_file in same:
            return hinted_file
        if any(
            candidate.kind != "hadoop" or self._document(candidate) != self._document(first) for candidate in same
        ):
            # Two writers have raced, or a commit failed: the files do not say who won.
            versions = {
                str(candidate.number) if candidate.number is not None else candidate.stem for candidate in same
            }
            self._refuse(f"there are several metadata files of version {', '.join(sorted(versions))}", *same)
        return first

    def _latest(self, hinted_file: Candidate | None) -> Candidate:
        """By documents alone: the one that no other was made of, if it is later than all others that are so."""
        facts = {candidate: self._facts(candidate) for candidate in self.candidates}
        older = {name for candidate in self.candidates for name in facts[candidate].log if name != candidate.name}
        ends = [candidate for candidate in self.candidates if candidate.name not in older]
        if not ends:
            self._refuse("each of its metadata files says that it was made of another")
        latest = max(ends, key=lambda candidate: (facts[candidate].updated_ms, candidate == hinted_file))
        made_of = self._made_of(latest)
        if hinted_file is not None and hinted_file != latest and hinted_file.name not in made_of:
            self._refuse(f"{HINT} says {self.hint!r}, and {latest.name} was not made of that", latest, hinted_file)
        for candidate in ends:
            if latest not in (candidate, hinted_file) and not facts[latest].is_later(facts[candidate]):
                self._refuse(
                    f"names and documents do not say which of {candidate.name} and {latest.name} is later",
                    latest,
                    candidate,
                )
        self._check(latest, made_of)
        return latest

    def _follows(self, chosen: Candidate, hinted_file: Candidate) -> bool:
        """Whether a Hadoop table's greatest version follows from a stale hint, as its readers look for it."""
        if chosen.kind != "hadoop":
            return False
        numbers = {candidate.number for candidate in self.candidates}
        every = all(number in numbers for number in range(hinted_file.number or 0, (chosen.number or 0)))
        return every or self._facts(chosen).is_later(self._facts(hinted_file))

    def _made_of(self, chosen: Candidate) -> frozenset[str]:
        """The names of all files that its log has, and those of the files in it, as far as they are needed."""
        by_name = {candidate.name: candidate for candidate in self.candidates}
        names = {chosen.name}
        log = self._facts(chosen).log
        while log and not names >= by_name.keys():
            new = [name for name in log if name in by_name and name not in names]
            names.update(log)
            oldest = self._read(by_name[new[0]]) if new else None
            log = () if oldest is None else oldest.log
        return frozenset(names)

    def _check(self, chosen: Candidate, made_of: frozenset[str]) -> None:
        """Refuse if a file that it was not made of is later than the chosen one."""
        facts = self._facts(chosen)
        for candidate in self.candidates:
            rival = None if candidate.name in made_of else self._read(candidate)
            if rival is not None and rival.contradicts(facts, chosen.name):
                self._refuse(
                    f"{candidate.name} was updated after {chosen.name}, which was not made of it", chosen, candidate
                )

    def _document(self, candidate: Candidate) -> dict[str, Any]:
        location = str(candidate.path)
        document = read_document(self.fetch(location), location)
        if self.read is None:
            self.read, self.document = candidate, document
        return document

    def _facts(self, candidate: Candidate) -> _Facts:
        if candidate not in self.facts:
            if len(self.facts) >= MOST_READ:
                self._refuse(f"more than {MOST_READ} of its metadata files are in no log, too many to compare")
            try:
                self.facts[candidate] = _Facts.of(self._document(candidate))
            except Misfit as misfit:
                raise damaged(str(candidate.path), misfit) from misfit
        return self.facts[candidate]

    def _read(self, candidate: Candidate) -> _Facts | None:
        """None for one that cannot be read: what a writer left that died. It has the smaller number."""
        try:
            return self._facts(candidate)
        except UnreadableMetadataError:
            return None

    def _refuse(self, reason: str, *about: Candidate) -> NoReturn:
        names = tuple(dict.fromkeys(candidate.name for candidate in (*about, *self._newest_first())))
        listed = ", ".join(names[:_MOST_SHOWN]) + (
            f" and {len(names) - _MOST_SHOWN} more" * (len(names) > _MOST_SHOWN)
        )
        where = shown(str(self.folder))
        raise AmbiguousTableError(
            f"cannot tell which metadata file of {where} is the newest: {reason}. It has {listed}. "
            "Name the metadata file, or open the table by its name in its catalog.",
            table=where,
            candidates=names,
            reason=reason,
        )

    def _newest_first(self) -> Iterable[Candidate]:
        return sorted(self.candidates, key=lambda candidate: (-(candidate.number or 0), candidate.name))
