"""Units of metadata judged on an executor: their files pass the funnel there, and only what is kept comes back."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from tamis.errors import TamisError
from tamis.formats.errors import unreadable
from tamis.formats.listing import Reader, Unit
from tamis.sieve.funnel import sift
from tamis.sieve.merging import Part
from tamis.sieve.sieve import Sieve

__all__ = ["ANSWER", "Contents", "judge_unit", "judge_units"]

ANSWER: Final = "unit int, answer binary"
"""What judge_units gives: a row for each unit, with its Part or its error."""


@dataclass(frozen=True, slots=True)
class Contents:
    """The files of one unit, by their locations: all that a reader can fetch on an executor."""

    files: Mapping[str, bytes]

    def __call__(self, location: str) -> bytes:
        """The file's content."""
        if location not in self.files:
            raise unreadable(location, "it was not sent with its unit")
        return self.files[location]


def judge_units(batches: Iterable[pa.RecordBatch], sieve: Sieve, reader: Reader) -> Iterator[pa.RecordBatch]:
    """Runs on executors. Rows of one unit stand together, in order: unit, place, location, about, content.

    A unit whose metadata is unreadable, or that strict planning refuses, gives its error; the driver raises it.
    """
    for number, about, contents in _units(batches):
        answer: Part | TamisError
        try:
            answer = judge_unit(sieve, reader, about, contents)
        except TamisError as error:
            answer = error
        arrays = [pa.array([number], pa.int32()), pa.array([pickle.dumps(answer, protocol=5)], pa.binary())]
        yield pa.RecordBatch.from_arrays(arrays, names=["unit", "answer"])


def judge_unit(sieve: Sieve, reader: Reader, about: Any, contents: Mapping[str, bytes]) -> Part:  # noqa: ANN401 - the format's own
    """What became of one unit's files."""
    unit = Unit(tuple(contents), sum(map(len, contents.values())), about)
    return Part.of(sift(sieve, reader(unit, Contents(contents))))


def _units(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Any, dict[str, bytes]]]:
    current, about, contents = -1, None, dict[str, bytes]()
    for batch in batches:
        rows = zip(*(batch.column(name) for name in ("unit", "location", "about", "content")), strict=True)
        for row in rows:
            unit, location, pickled, content = (value.as_py() for value in row)
            if unit != current and contents:
                yield current, about, contents
                about, contents = None, {}
            current = unit
            about = about if pickled is None else pickle.loads(pickled)  # noqa: S301 - the driver's own
            contents[location] = content
    if contents:
        yield current, about, contents
