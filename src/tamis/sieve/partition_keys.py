"""Partition specs, and the keys that tell their partitions apart.

Law: two files have the same key exactly if they have the same spec and the same partition value, here and in another
process. Whether a file is unpartitioned is its own spec's to say, not the table's current one's.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import types as pt

from tamis.predicate.arrays import Int64s
from tamis.predicate.schema import ColumnId
from tamis.predicate.type_names import is_clock
from tamis.sieve.transforms import Transform

__all__ = [
    "NAN",
    "Codes",
    "PartitionField",
    "PartitionKey",
    "PartitionSpec",
    "comparable",
    "comparable_values",
    "distinct",
    "plain_values",
    "spec_label",
    "spec_order",
]

Codes = Int64s
NAN = "NaN"
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - counts are in UTC


@dataclass(frozen=True, slots=True)
class PartitionField:
    """One field of a spec: which column it is made of, and how."""

    name: str
    source: ColumnId | None
    """The source column's id; None if it has several, or one that no schema of the table knows."""
    transform: Transform
    derived: bool = False
    """True if its values follow from other fields' values: then it is no part of a partition's name."""


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """How files of one age are partitioned."""

    spec_id: int | None
    """None in a format that has no ids: there a table has one spec."""
    fields: tuple[PartitionField, ...] = ()

    @property
    def is_unpartitioned(self) -> bool:
        """True if no field says anything: dropped fields of version 1 tables stay as void."""
        return all(field.transform.name == "void" for field in self.fields)


class PartitionKey(NamedTuple):
    """What files have in common that lie in one partition of one spec; no partition if the spec has none.

    A tuple: tables have tens of thousands of keys, each of them is looked up several times, and a tuple's hash costs
    a fifth of a dataclass's.
    """

    spec_id: int | None
    partition: tuple[object, ...] | None = None

    @classmethod
    def of(cls, spec: PartitionSpec, values: tuple[object, ...] | None) -> PartitionKey:
        """The key of a file, by its own spec: whether it is unpartitioned is that spec's to say."""
        if spec.is_unpartitioned or values is None:
            return cls(spec.spec_id)
        return cls(spec.spec_id, tuple(map(comparable, values)))

    @classmethod
    def of_columns(cls, spec: PartitionSpec, columns: list[pa.Array]) -> list[PartitionKey]:
        """The keys of many files: a column for each field, at least one; what `of` says of each row."""
        if spec.is_unpartitioned:
            return [cls(spec.spec_id)] * len(columns[0])
        return [cls(spec.spec_id, row) for row in zip(*map(comparable_values, columns), strict=True)]

    @property
    def sort_key(self) -> tuple[int, str]:
        """A stable order over keys of different types."""
        return spec_order(self.spec_id), repr(self.partition)


def spec_order(spec_id: int | None) -> int:
    """Where a spec stands among others."""
    return -1 if spec_id is None else spec_id


def spec_label(spec_id: int | None) -> str:
    """What a spec is called.

    >>> spec_label(3), spec_label(None)
    ('spec 3', 'the partition spec')
    """
    return "the partition spec" if spec_id is None else f"spec {spec_id}"


def distinct(values: list[pa.Array], count: int) -> tuple[Codes, Codes]:
    """Number the distinct tuples of count rows: for each row its number, for each number its first row.

    Numbers go by first appearance, so that the same input gives the same order.
    """
    codes: Codes = np.zeros(count, np.int64)
    for child in values:
        part = child.dictionary_encode(null_encoding="encode")
        # Codes and the dictionary's size are at most the number of rows: their product fits 64 bits.
        mixed = codes * max(len(part.dictionary), 1) + part.indices.to_numpy(zero_copy_only=False)
        renumbered = pa.array(mixed).dictionary_encode()  # numbers by first appearance
        codes = renumbered.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    first = np.full(int(codes.max(initial=-1)) + 1, count, np.int64)
    np.minimum.at(first, codes, np.arange(count))
    return codes, first


def plain_values(array: pa.Array) -> list[object]:
    """The values as keys have them: as Python does, but dates and times as counts of days and microseconds.

    Python has neither nanoseconds nor years beyond 9999. Nanoseconds stay what they are.
    """
    if is_clock(array.type):
        if array.type.unit in {"s", "ms"}:
            tz = getattr(array.type, "tz", None)
            array = array.cast(pa.timestamp("us", tz) if pt.is_timestamp(array.type) else pa.time64("us"))
        array = array.view(pa.int64())
    elif pt.is_date32(array.type):
        array = array.view(pa.int32())
    return list(array.to_pylist())


def comparable_values(array: pa.Array) -> list[object]:
    """All values of a column as keys have them."""
    values = plain_values(array)
    # What else has several faces, dates and times, has become a number already.
    return list(map(comparable, values)) if pt.is_floating(array.type) else values


def comparable(value: Any) -> object:  # noqa: ANN401 - a partition value of any type
    """A value that equals its like, here and in another process: NaN, zeros, dates and times have many faces."""
    match value:
        case float():
            return NAN if value != value else value + 0.0  # noqa: PLR0124 - the definition of NaN; -0.0 + 0.0 is 0.0
        case dt.datetime():
            naive = value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)
            return (naive - _EPOCH) // dt.timedelta(microseconds=1)
        case dt.date():
            return value.toordinal() - _EPOCH.toordinal()
        case dt.time():
            return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
        case _:
            return value
