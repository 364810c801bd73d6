"""Why each file was dropped or kept, in a sentence: the deciding part of the predicate and the fact against it.

Sentences are put together for whole columns at once; a plan of a million files explains itself in a second.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy import typing as npt
from pyarrow import types as pt

from tamis.predicate.bound import Known, Leaf, columns_of
from tamis.predicate.keys import key_span
from tamis.predicate.values import ValueSet
from tamis.sieve.domain import ColumnStats
from tamis.sieve.files import FileBatch
from tamis.sieve.hashing import bucket_of_keys
from tamis.sieve.order import mask_of
from tamis.sieve.outcome import Outcome, Sieve
from tamis.sieve.partitions import PartitionField, PartitionSpec, distinct
from tamis.sieve.trial import NOBODY

__all__ = ["partition_texts", "reasons"]

Rows = npt.NDArray[np.int64]
Texts = str | npt.NDArray[np.object_]
MOST_SHOWN = 8
"""Most values of which a reason says where they hash to."""
_EPOCH = dt.date(1970, 1, 1)


def partition_texts(batch: FileBatch, spec: PartitionSpec | None, rows: Rows) -> pa.Array:
    """Partitions as people write them: `ts_day=2024-01-15/region=eu`; null where there is none."""
    if batch.partition is None or spec is None or not spec.fields:
        return pa.nulls(len(rows), pa.string())
    flat = batch.partition.flatten()
    children = [child.storage if isinstance(child, pa.ExtensionArray) else child for child in flat]
    codes, first = distinct(children, len(batch))
    columns = [
        [f"{field.name}={_value(field, value)}" for value in _readable(child.take(pa.array(first)))]
        for field, child in zip(spec.fields, children, strict=False)
    ]
    texts = pa.array(["/".join(parts) for parts in zip(*columns, strict=True)], pa.string())
    return texts.take(pa.array(codes[rows]))


def _readable(values: pa.Array) -> list[object]:
    """Values as Python has them; dates and times as text, since Python lacks nanoseconds and far years."""
    return list((values.cast(pa.string()) if pt.is_temporal(values.type) else values).to_pylist())


def _value(field: PartitionField, value: Any) -> str:  # noqa: ANN401 - a partition value of any type
    if value is None:
        return "null"
    name = field.transform.name
    if isinstance(value, int) and name in {"year", "month", "day", "hour"}:
        return _period(name, value)
    if isinstance(value, bytes):
        return "0x" + value.hex()
    return str(value)


def _period(name: str, ordinal: int) -> str:
    """A count of years, months, days or hours since 1970 as a date."""
    try:
        match name:
            case "year":
                return f"{1970 + ordinal:04d}"
            case "month":
                return f"{1970 + ordinal // 12:04d}-{ordinal % 12 + 1:02d}"
            case "day":
                return str(_EPOCH + dt.timedelta(days=ordinal))
            case _:
                return f"{_EPOCH + dt.timedelta(days=ordinal // 24)}-{ordinal % 24:02d}"
    except OverflowError:
        return str(ordinal)


def reasons(sieve: Sieve, layers: Sequence[str], outcome: Outcome, partition: pa.Array) -> pa.Array:
    """A sentence for every file of a batch."""
    teller = _Teller(sieve, outcome, partition)
    said = np.full(len(outcome.batch), "", object)
    said[outcome.kept & outcome.certain] = "every row matches"
    said[outcome.kept & ~outcome.certain] = "may match"
    for place, layer in enumerate(layers):
        dropped = outcome.layer == place
        for decider in np.unique(outcome.decider[dropped]).tolist():
            mask = dropped & (outcome.decider == decider)
            said[mask] = teller.dropped(layer, decider, np.flatnonzero(mask))
    undecided = outcome.kept & ~outcome.certain
    for decider in np.unique(outcome.decider[undecided]).tolist():
        if decider != NOBODY:
            mask = undecided & (outcome.decider == decider)
            said[mask] = f"may match: {teller.text(decider)}"
            without = f"(no statistics for {teller.name(decider)})"
            said[mask & outcome.unknown] = f"may match: {teller.text(decider)} {without}"
    return pa.array(said, pa.string())


@dataclass(frozen=True, slots=True)
class _Teller:
    """Puts sentences together. A decider is the place of a part of the predicate, or after those of a filter."""

    sieve: Sieve
    outcome: Outcome
    partition: pa.Array

    def text(self, decider: int) -> str:
        conjuncts = self.sieve.predicate.conjuncts
        if decider < len(conjuncts):
            return conjuncts[decider].text
        return self.sieve.runtime_filters[decider - len(conjuncts)].text

    def name(self, decider: int) -> str:
        return ", ".join(column.name for column in columns_of(self.sieve.predicate.conjuncts[decider]))

    def dropped(self, layer: str, decider: int, rows: Rows) -> Texts:
        if decider == NOBODY:
            return self._other_buckets(rows) if layer == "bucket" else "the file has no rows"
        text = self.text(decider)
        conjuncts = self.sieve.predicate.conjuncts
        part = conjuncts[decider] if decider < len(conjuncts) else None
        if isinstance(part, Known):
            return f"{text} is never true"
        if layer == "bucket" and isinstance(part, Leaf) and (said := self._bucket(part, rows)) is not None:
            return said
        if layer in {"partition", "bucket"} and self.outcome.batch.partition is not None:
            return _glue(f"{text} excludes partition ", self.partition.take(pa.array(rows)))
        stats = self.outcome.batch.stats.get(part.column.id) if isinstance(part, Leaf) else None
        if isinstance(part, Leaf) and stats is not None:
            return _bounds(text, part, stats, rows)
        return f"{text} excludes what the file holds"

    def _bucket(self, part: Leaf, rows: Rows) -> Texts | None:
        """Where the values hash to, and where the file is; None if that does not tell why all these files go."""
        batch = self.outcome.batch
        spec = next((spec for spec in self.sieve.specs if spec.spec_id == batch.spec_id), None)
        if spec is None or batch.partition is None:
            return None
        for field, values in zip(spec.fields, batch.partition.flatten(), strict=False):
            if field.source != part.column.id or field.transform.name != "bucket" or field.transform.width is None:
                continue
            points = part.outer.points(MOST_SHOWN, key_span(part.column.type))
            hashed = None if points is None else bucket_of_keys(points, part.column.type, field.transform.width)
            mine = values.take(pa.array(rows)).cast(pa.int64())
            if hashed is None or mine.null_count or pc.any(pc.is_in(mine, pa.array(hashed))).as_py():
                return None
            buckets = sorted(set(hashed.tolist()))
            listed = f"bucket {buckets[0]}" if len(buckets) == 1 else f"buckets {', '.join(map(str, buckets))}"
            return _glue(f"{part.text} hashes to {listed}, this file is in bucket ", mine.cast(pa.string()))
        return None

    def _other_buckets(self, rows: Rows) -> Texts:
        taken = pa.array(rows)
        bucket, total = (
            pa.nulls(len(rows), pa.string()) if part is None else part.take(taken).cast(pa.string())
            for part in (self.outcome.batch.bucket, self.outcome.batch.total_buckets)
        )
        return _glue(f"{self.sieve.predicate.root.text} hashes to other buckets than ", bucket, " of ", total)


def _bounds(text: str, leaf: Leaf, stats: ColumnStats, rows: Rows) -> Texts:
    name = leaf.column.name
    if leaf.outer == ValueSet.null():
        return f"{text} excludes {name}, which has no nulls"
    lower, upper = (_shown(bound, rows) for bound in (stats.lower, stats.upper))
    low, high = (pa.nulls(len(rows), pa.string()) if part is None else part for part in (lower, upper))
    said = _glue(f"{text} excludes {name} in [", low, ", ", high, "]")
    said[mask_of(pc.and_(low.is_null(), high.is_null()))] = f"{text} excludes {name}, which has no values but nulls"
    return said


def _shown(bound: pa.Array | None, rows: Rows) -> pa.Array | None:
    if bound is None:
        return None
    taken = bound.take(pa.array(rows))
    if isinstance(taken, pa.ExtensionArray):
        taken = taken.storage
    if pt.is_binary(taken.type) or pt.is_large_binary(taken.type) or pt.is_fixed_size_binary(taken.type):
        return pa.array([None if value is None else "0x" + value.hex() for value in taken.to_pylist()], pa.string())
    return taken.cast(pa.string())


def _glue(*parts: str | pa.Array) -> npt.NDArray[np.object_]:
    """Texts and columns of texts, side by side; what is not there is "unknown"."""
    columns = [pa.scalar(part) if isinstance(part, str) else pc.fill_null(part, "unknown") for part in parts]
    return np.array(pc.binary_join_element_wise(*columns, "").to_pylist(), object)
