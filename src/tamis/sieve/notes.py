"""What was kept without proof, told to the user: bounded, each note once."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["MAX_NOTES", "Notes"]

MAX_NOTES = 20
"""Most distinct notes to keep. A table with ten thousand bad partitions has one problem, not ten thousand."""


class Notes:
    """The first few distinct notes, and how many came after."""

    def __init__(self, limit: int = MAX_NOTES) -> None:
        self._limit = limit
        self._texts: dict[str, int] = {}
        self.omitted = 0

    @classmethod
    def of(cls, texts: Iterable[str]) -> Notes:
        """These notes, as if they had been added one after the other."""
        notes = cls()
        for text in texts:
            notes.add(text)
        return notes

    def add(self, text: str) -> None:
        """Note it, unless it is noted already or there are too many."""
        if text in self._texts:
            self._texts[text] += 1
        elif len(self._texts) < self._limit:
            self._texts[text] = 1
        else:
            self.omitted += 1

    @property
    def counts(self) -> dict[str, int]:
        """How often each note came, in the order in which they came."""
        return dict(self._texts)

    def to_list(self) -> list[str]:
        """The notes in the order in which they came, and a last line if some were left out."""
        texts = list(self._texts)
        return [*texts, f"and {self.omitted} more"] if self.omitted else texts
