"""What tasks that write changed rows tell of them, beside the files: how many there are, and which places are free.

A row comes with its kind; with the file and place that it had, if deletes are to name that; and with the number of
the row of the source that it matched. Law: what is told is told once. A task that ran twice gives one answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.formats.edit import NewFile
from tamis.predicate.arrays import Int64s

__all__ = [
    "DELETED",
    "INSERTED",
    "KEPT",
    "KIND",
    "MATCHED",
    "SEEN",
    "UPDATED",
    "WAS_AT",
    "WAS_IN",
    "Changes",
    "TaskTold",
    "Telling",
    "ToldRows",
]

KEPT, UPDATED, INSERTED, DELETED, SEEN = range(5)
"""What becomes of a row. One that is deleted is told, and not written; one that is seen only says what it matched."""
_KINDS: Final = 5
KIND: Final = "__tamis_kind"
WAS_IN: Final = "__tamis_file"
WAS_AT: Final = "__tamis_place"
"""The file and the place that a row leaves, which deletes are to name; NULL if none are."""
MATCHED: Final = "__tamis_matched"
"""The number of the row of the source that it matched; NULL for none. No table has columns of these names."""


@dataclass(frozen=True, slots=True)
class ToldRows:
    """Where the columns stand that are told and not written."""

    first: int
    names: tuple[str, ...]

    def place(self, name: str) -> int | None:
        """Of a column; None if it is not told."""
        return self.first + self.names.index(name) if name in self.names else None


@dataclass(frozen=True, slots=True)
class TaskTold:
    """What one task has to tell."""

    counts: tuple[int, ...]
    """Rows of each kind."""
    places: Mapping[str, Int64s]
    """By file, the places that rows have left; each once if the rows were."""
    matched: Int64s


@dataclass(frozen=True, slots=True)
class Changes:
    """What a write of changed rows has done."""

    files: list[NewFile]
    counts: tuple[int, ...]
    places: Mapping[str, Int64s]
    """By file, in ascending order."""
    matched: Int64s
    """Numbers of rows of the source, each once."""

    @classmethod
    def of(cls, files: list[NewFile], tasks: Sequence[TaskTold]) -> Changes:
        """All tasks together."""
        places: dict[str, list[Int64s]] = {}
        for task in tasks:
            for path, one in task.places.items():
                places.setdefault(path, []).append(one)
        counts = [sum(each) for each in zip((0,) * _KINDS, *(task.counts for task in tasks), strict=True)]
        matched = np.unique(np.concatenate([np.zeros(0, np.int64), *(task.matched for task in tasks)]))
        return cls(
            files,
            tuple(counts),
            {path: np.unique(np.concatenate(parts)) for path, parts in sorted(places.items())},
            matched,
        )


@dataclass(slots=True)
class Telling:
    """One task's rows on their way to its files."""

    apart: ToldRows
    counts: Int64s = field(default_factory=lambda: np.zeros(_KINDS, np.int64))
    places: dict[str, list[Int64s]] = field(default_factory=dict)
    matched: list[Int64s] = field(default_factory=list)

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows to write, without what is told of them."""
        first, end = self.apart.first, self.apart.first + len(self.apart.names)
        for batch in batches:
            kinds = np.asarray(self._column(batch, KIND).to_numpy(zero_copy_only=False), np.int64)
            self.counts += np.bincount(kinds, minlength=_KINDS)
            if self.apart.place(WAS_IN) is not None:
                self._take_places(self._column(batch, WAS_IN), self._column(batch, WAS_AT))
            if self.apart.place(MATCHED) is not None:
                found = self._column(batch, MATCHED).drop_null()
                if len(found):
                    self.matched.append(np.asarray(found.to_numpy(zero_copy_only=False), np.int64))
            columns, names = batch.columns, batch.schema.names
            data = pa.RecordBatch.from_arrays(
                [*columns[:first], *columns[end:]], names=[*names[:first], *names[end:]]
            )
            unwritten = kinds >= DELETED
            yield data.filter(pa.array(~unwritten)) if unwritten.any() else data

    def told(self) -> TaskTold:
        """What there is to tell when all rows have gone by."""
        nothing = np.zeros(0, np.int64)
        return TaskTold(
            tuple(self.counts.tolist()),
            {path: np.concatenate(parts) for path, parts in self.places.items()},
            np.unique(np.concatenate([nothing, *self.matched])),
        )

    def _column(self, batch: pa.RecordBatch, name: str) -> pa.Array:
        place = self.apart.place(name)
        assert place is not None  # noqa: S101 - for the type checker: it was asked for
        return batch.column(place)

    def _take_places(self, files: pa.Array, places: pa.Array) -> None:
        valid = files.is_valid()
        if not pc.any(valid).as_py():
            return
        named = files.filter(valid).cast(pa.string()).dictionary_encode()
        codes = np.asarray(named.indices.to_numpy(zero_copy_only=False), np.int64)
        numbers = np.asarray(places.filter(valid).to_numpy(zero_copy_only=False), np.int64)
        order = np.argsort(codes, kind="stable")
        ends = np.searchsorted(codes[order], np.arange(len(named.dictionary) + 1))
        for code, path in enumerate(named.dictionary.to_pylist()):
            self.places.setdefault(path, []).append(numbers[order[ends[code] : ends[code + 1]]])
