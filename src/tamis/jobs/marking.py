"""Places that tasks have told, made into deletes of the table here: only files with such a place get any.

Places come as numbers, a file's together. In version 2 they become files of position deletes, in version 3 vectors.
Law: every place that was told is in a delete afterwards, and no row that stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tamis.formats.edit import NewDeletes, Planned
from tamis.jobs.work import Work
from tamis.predicate.arrays import Int64s

__all__ = ["Deletes", "marked"]


@dataclass(frozen=True, slots=True)
class Deletes:
    """New deletes, and the data files that they are of."""

    deletes: NewDeletes
    referenced: tuple[Planned, ...]


def marked(work: Work, places: Mapping[str, Int64s]) -> Deletes:
    """The deletes of these places, written; every file of them is one of the work from here on."""
    if not places:
        return Deletes(NewDeletes(()), ())
    from tamis.spark.changes import named, places_in

    paths = frozenset(places)
    referenced = work.planned(lambda outcome: outcome.kept & named(outcome, paths))
    stage = work.table.stage_deletes(referenced, work.plan.deletes)
    told: dict[str, Int64s] = dict(places)
    if stage.whole:
        # Of these every row is named that is gone, however: so those that stay are told.
        live = places_in(work.spark, work.source, work.plan, stage.whole)
        told |= {
            path: np.setdiff1d(live.get(path, np.zeros(0, np.int64)), places[path]) for path in sorted(stage.whole)
        }
    marks = []
    for mark in stage.write(_batches(told), f"00000-0-{work.token}"):
        work.written += [] if mark.file is None else [mark.file.path]
        marks.append(mark)
    new = stage.finish(marks, work.token)
    work.written += dict.fromkeys(file.path for file in new.files if file.path not in work.written)
    return Deletes(new, referenced)


def _batches(places: Mapping[str, Int64s]) -> Iterator[pa.RecordBatch]:
    for path, numbers in sorted(places.items()):
        files = pa.repeat(pa.scalar(path, pa.string()), len(numbers))
        yield pa.RecordBatch.from_arrays([files, pa.array(numbers, pa.int64())], ["path", "place"])
