"""Why each file was dropped or kept, in a sentence: the deciding part of the predicate and the fact against it.

Sentences are put together for whole columns at once; a plan of a million files explains itself in a second.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy import typing as npt
from pyarrow import types as pt

from tamis.predicate.arrays import Int64s
from tamis.predicate.bound import Bound, Known, Leaf, columns_of
from tamis.predicate.keys import key_span
from tamis.predicate.schema import ColumnId
from tamis.predicate.type_names import is_text
from tamis.predicate.values import ValueSet
from tamis.sieve.domain import ColumnStats
from tamis.sieve.files import FileBatch
from tamis.sieve.hashing import ANY_BUCKET, BucketHash, hash_keys, key_array, variants
from tamis.sieve.order import mask_of
from tamis.sieve.outcome import BASES, Outcome
from tamis.sieve.partitions import PartitionField, PartitionSpec, distinct
from tamis.sieve.sieve import Sieve
from tamis.sieve.transforms.bucket import ICEBERG
from tamis.sieve.trial import NOBODY, WHOLE

__all__ = ["partition_texts", "reasons"]

Rows = Int64s
Texts = str | npt.NDArray[np.object_]
BY_BUCKET = BASES.index("bucket")
WITH_ITS_BUCKET = "dropped with its whole bucket: "
FOR_ITS_BUCKET = "kept: another file of its bucket may match"
MOST_SHOWN = 8
"""Most values of which a reason says where they hash to."""
_EPOCH = dt.date(1970, 1, 1)


def partition_texts(batch: FileBatch, spec: PartitionSpec | None, rows: Rows) -> pa.Array:
    """Partitions as people write them: `ts_day=2024-01-15/region=eu`; null where there is none."""
    if batch.partition is None or spec is None or not spec.fields:
        return pa.nulls(len(rows), pa.string())
    named = [
        (field, child.storage if isinstance(child, pa.ExtensionArray) else child)
        for field, child in zip(spec.fields, batch.partition.flatten(), strict=False)
        if not field.derived
    ]
    codes, first = distinct([child for _, child in named], len(batch))
    columns = [
        [f"{field.name}={_value(field, value)}" for value in _readable(child.take(pa.array(first)))]
        for field, child in named
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
    texts = np.full(len(outcome.batch), "", object)
    texts[outcome.kept & outcome.certain] = "every row matches"
    texts[outcome.kept & ~outcome.certain] = "may match"
    for index, layer in enumerate(layers):
        dropped = outcome.layer == index
        for decider in np.unique(outcome.decider[dropped]).tolist():
            mask = dropped & (outcome.decider == decider)
            texts[mask] = teller.dropped(layer, decider, np.flatnonzero(mask))
    if outcome.together is not None:
        went = outcome.together & ~outcome.kept
        texts[went] = WITH_ITS_BUCKET + texts[went]
    undecided = outcome.kept & ~outcome.certain
    for decider in np.unique(outcome.decider[undecided]).tolist():
        if decider != NOBODY:
            mask = undecided & (outcome.decider == decider)
            texts[mask] = f"may match: {teller.text(decider)}"
            without = f"(no statistics for {teller.name(decider)})"
            texts[mask & outcome.unknown] = f"may match: {teller.text(decider)} {without}"
    if outcome.together is not None:
        texts[outcome.together & outcome.kept] = FOR_ITS_BUCKET
    return pa.array(texts, pa.string())


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
            return "the file has no rows"
        if decider == WHOLE:
            within = "" if layer == "bucket" else "within what the file holds, "
            return self._other_buckets(f"{within}{self.sieve.predicate.root.text}", rows)
        text = self.text(decider)
        conjuncts = self.sieve.predicate.conjuncts
        conjunct = conjuncts[decider] if decider < len(conjuncts) else None
        if isinstance(conjunct, Known):
            return f"{text} is never true"
        if conjunct is None and self.outcome.batch.buckets and bool((self.outcome.basis[rows] == BY_BUCKET).all()):
            return self._other_buckets(text, rows)
        if (
            layer == "bucket"
            and isinstance(conjunct, Leaf)
            and (sentences := self._bucket(conjunct, rows)) is not None
        ):
            return sentences
        if layer in {"partition", "bucket"} and self.outcome.batch.partition is not None:
            made = self._generated_from(conjunct)
            return _glue(f"{text} excludes partition ", self.partition.take(pa.array(rows)), made)
        stats = self.outcome.batch.stats.get(conjunct.column.id) if isinstance(conjunct, Leaf) else None
        if isinstance(conjunct, Leaf) and stats is not None:
            return _bounds(text, conjunct, stats, rows)
        return f"{text} excludes what the file holds"

    def _generated_from(self, conjunct: Bound | None) -> str:
        """By which expressions the partition tells of the columns that the part names, where it has none of them."""
        batch = self.outcome.batch
        spec = next((spec for spec in self.sieve.specs if spec.spec_id == batch.spec_id), None)
        named = {column.id for column in columns_of(conjunct)} if conjunct is not None else set()
        made = [field.name for field in spec.fields if field.derived and field.source in named] if spec else []
        return f" by {', '.join(made)}" if made else ""

    def _bucket(self, leaf: Leaf, rows: Rows) -> Texts | None:
        """Where the values hash to, and where the file is; None if that does not tell why all these files go."""
        for by, own, totals in self._buckets_of(leaf.column.id, rows):
            points = leaf.outer.points(MOST_SHOWN, key_span(leaf.column.type))
            if points is None or (leaf.outer.nulls and by != ICEBERG) or own.null_count or totals.null_count:
                continue
            sentences = np.full(len(rows), "", object)
            for total in pc.unique(totals).to_pylist():
                hashed: set[int] = set()
                for each in variants(by):
                    found = hash_keys(each, [key_array(points, leaf.column.type)], [leaf.column.type], total)
                    if isinstance(found, str) or ANY_BUCKET in found:
                        return None
                    hashed.update(found.tolist())
                alike = mask_of(pc.equal(totals, total))
                here = own.filter(pa.array(alike))
                buckets = sorted(hashed)
                if pc.any(pc.is_in(here, pa.array(buckets, pa.int64()))).as_py():
                    return None
                listed = f"bucket {buckets[0]}" if len(buckets) == 1 else f"buckets {', '.join(map(str, buckets))}"
                sentences[alike] = _glue(
                    f"{leaf.text} hashes to {listed}, this file is in bucket ", here.cast(pa.string())
                )
            return sentences
        return None

    def _buckets_of(self, column: ColumnId, rows: Rows) -> Iterator[tuple[BucketHash, pa.Array, pa.Array]]:
        """The buckets that rows are placed in by this column alone: the hash, the files' buckets and totals."""
        batch, taken = self.outcome.batch, pa.array(rows)
        for stated in batch.buckets:
            if stated.hash is not None and [key.id for key in stated.columns] == [column]:
                yield stated.hash, *(array.take(taken).cast(pa.int64()) for array in (stated.bucket, stated.total))
        spec = next((spec for spec in self.sieve.specs if spec.spec_id == batch.spec_id), None)
        if spec is None or batch.partition is None:
            return
        for field, values in zip(spec.fields, batch.partition.flatten(), strict=False):
            if field.source == column and field.transform.name == "bucket" and field.transform.width is not None:
                total = pa.array(np.full(len(rows), field.transform.width, np.int64))
                yield ICEBERG, values.take(taken).cast(pa.int64()), total

    def _other_buckets(self, text: str, rows: Rows) -> Texts:
        """Keys of several columns, or of a join, hash elsewhere than where the file is."""
        stated = [fact for fact in self.outcome.batch.buckets if fact.hash is not None] or self.outcome.batch.buckets
        taken = pa.array(rows)
        bucket, total = (array.take(taken).cast(pa.string()) for array in (stated[0].bucket, stated[0].total))
        return _glue(f"{text} hashes to other buckets of {stated[0].key} than ", bucket, " of ", total)


def _bounds(text: str, leaf: Leaf, stats: ColumnStats, rows: Rows) -> Texts:
    name = leaf.column.name
    if leaf.outer == ValueSet.null():
        return f"{text} excludes {name}, which has no nulls"
    text_column = is_text(leaf.column.type)
    lower, upper = (_shown(bound, rows, text=text_column) for bound in (stats.lower, stats.upper))
    low, high = (pa.nulls(len(rows), pa.string()) if shown is None else shown for shown in (lower, upper))
    texts = _glue(f"{text} excludes {name} in [", low, ", ", high, "]")
    texts[mask_of(pc.and_(low.is_null(), high.is_null()))] = f"{text} excludes {name}, which has no values but nulls"
    return texts


def _shown(bound: pa.Array | None, rows: Rows, *, text: bool) -> pa.Array | None:
    """Bounds as people write them. Those of a text column may be bytes: a bound need not be a text."""
    if bound is None:
        return None
    taken = bound.take(pa.array(rows))
    if isinstance(taken, pa.ExtensionArray):
        taken = taken.storage
    if pt.is_binary(taken.type) or pt.is_large_binary(taken.type) or pt.is_fixed_size_binary(taken.type):
        said = [None if value is None else _bytes_shown(value, text=text) for value in taken.to_pylist()]
        return pa.array(said, pa.string())
    return taken.cast(pa.string())


def _bytes_shown(value: bytes, *, text: bool) -> str:
    return value.decode(errors="backslashreplace") if text else "0x" + value.hex()


def _glue(*pieces: str | pa.Array) -> npt.NDArray[np.object_]:
    """Texts and columns of texts, side by side; what is not there is "unknown"."""
    columns = [pa.scalar(piece) if isinstance(piece, str) else pc.fill_null(piece, "unknown") for piece in pieces]
    return np.array(pc.binary_join_element_wise(*columns, "").to_pylist(), object)
