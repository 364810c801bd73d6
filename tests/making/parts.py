"""Plans that are made in parts which share nothing, as executors make them; and all that a plan tells, to compare.

Law of the seam: whoever reads the units of a listing, wherever and in whatever order, the parts add up to the plan
of one process.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import pyarrow as pa

import tamis
from tamis.formats.listing import Listing, finished
from tamis.predicate.build import Expression
from tamis.sieve.merging import merge
from tamis.sieve.plan import ScanPlan
from tamis.spark import planning
from tamis.spark.judging import judge_units

__all__ = ["kept", "said", "sent", "shared_out"]


def said(plan: ScanPlan) -> dict[str, Any]:
    """The counts without the times, and without the note that says where the plan was made."""
    found = plan.stats.to_dict()
    found.pop("read_seconds")
    for layer in found["layers"]:
        layer.pop("seconds")
    found["notes"] = [note for note in found["notes"] if note != planning.NOTE]
    return found


def kept(plan: ScanPlan) -> list[Any]:
    """All that the plan knows of each kept file, whatever batch it came in."""
    rows = []
    for outcome in plan.outcomes:
        batch = outcome.batch
        told = {one.name: getattr(outcome, one.name) for one in fields(outcome) if one.name != "batch"}
        parts = {name: values for name, values in told.items() if values is not None}
        parts |= {f"extra.{name}": values.to_pylist() for name, values in batch.extra.items()}
        parts |= {
            f"stats.{id_}.{one.name}": values.to_pylist()
            for id_, stats in batch.stats.items()
            for one in fields(stats)
            if (values := getattr(stats, one.name)) is not None
        }
        if batch.partition is not None:
            parts["partition"] = batch.partition.to_pylist()
        if batch.deletes is not None:
            parts["deletes"] = batch.deletes.to_pylist()
        rows += [
            {name: str(values[row]) for name, values in parts.items()} | {"spec_id": batch.spec_id}
            for row in np.flatnonzero(outcome.kept).tolist()
        ]
    return rows


def sent(listing: Listing) -> list[pa.RecordBatch]:
    """What executors are sent of a listing: a row for each file of a unit."""
    return [
        pa.RecordBatch.from_pydict(
            {
                "unit": [number],
                "location": [location],
                "about": pa.array([None if place else pickle.dumps(unit.about)], pa.binary()),
                "content": [listing.fetch(location)],
            }
        )
        for number, unit in enumerate(listing.units)
        for place, location in enumerate(unit.locations)
    ]


def shared_out(
    table: tamis.Table,
    where: str | Expression | None,
    filters: list[tamis.RuntimeFilter],
    order: Sequence[int] | None = None,
) -> ScanPlan:
    """The plan as executors make it, each unit from what would be sent to it; but in this process, for speed.

    Units come in this order; backwards, if none is given.
    """
    here = table.plan(where, runtime_filters=filters)
    # What was used already, pickled as it is then: nothing that was kept in it on the way may hinder that.
    sieve = pickle.loads(pickle.dumps(here.sieve))  # noqa: S301 - our own
    listing = table.source.list(here.sieve)
    reader = pickle.loads(pickle.dumps(listing.reader))  # noqa: S301 - our own
    batches = sent(listing)
    # Units come in any order; the files of one unit come together.
    order = list(reversed(range(len(listing.units)))) if order is None else order
    batches.sort(key=lambda batch: order.index(batch["unit"][0].as_py()))
    found = {}
    for row in judge_units(batches, sieve, reader):
        found[row["unit"][0].as_py()] = pickle.loads(row["answer"][0].as_py())  # noqa: S301 - our own
    parts = [found[number] for number in sorted(found)]
    return finished(listing, merge(here.sieve, parts, listing.unread))
