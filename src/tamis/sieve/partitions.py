"""Partition values of any spec as facts about columns, judged once for each distinct value.

A table that has evolved holds files of several specs. Each file is read with its own spec, so a partition value is
a fact like any other: the preimage of its transform. What cannot be decoded widens to ANY: the file is kept, counted
and noted. Unknown never excludes; an unknown spec id is an error.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy import typing as npt
from pyarrow import types as pt

from tamis.errors import UnevaluableError, UnknownSpecError
from tamis.predicate.bound import BoundPredicate
from tamis.predicate.keys import has_order
from tamis.predicate.schema import Column, ColumnId
from tamis.sieve.domain import Domain, Facts
from tamis.sieve.notes import Notes
from tamis.sieve.order import Mask, mask_of
from tamis.sieve.transforms import Transform, preimage
from tamis.sieve.trial import Trial, try_all

__all__ = [
    "FilterStats",
    "KeyedTrial",
    "MultiSpecPartitionFilter",
    "PartitionField",
    "PartitionKey",
    "PartitionSpec",
    "Undecoded",
    "distinct",
]

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PartitionField:
    """One field of a spec: which column it is made of, and how."""

    name: str
    source: ColumnId | None
    """The source column's id; None if it has several, or one that no schema of the table knows."""
    transform: Transform


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """How files of one age are partitioned."""

    spec_id: int
    fields: tuple[PartitionField, ...] = ()

    @property
    def is_unpartitioned(self) -> bool:
        """True if no field says anything: dropped fields of version 1 tables stay as void."""
        return all(field.transform.name == "void" for field in self.fields)


@dataclass(frozen=True, slots=True)
class PartitionKey:
    """What files have in common that lie in one partition of one spec; no partition if the spec has none."""

    spec_id: int
    partition: tuple[object, ...] | None = None

    @classmethod
    def of(cls, spec: PartitionSpec, values: tuple[object, ...] | None) -> PartitionKey:
        """The key of a file, by its own spec: whether it is unpartitioned is that spec's to say."""
        if spec.is_unpartitioned or values is None:
            return cls(spec.spec_id)
        return cls(spec.spec_id, tuple(map(_comparable, values)))

    @property
    def sort_key(self) -> tuple[int, str]:
        """A stable order over keys of different types."""
        return self.spec_id, repr(self.partition)


@dataclass(frozen=True, slots=True)
class FilterStats:
    """How often the filter had to include what it could not judge."""

    unevaluable_specs: int = 0
    """Specs that cannot be evaluated for this predicate."""
    eval_errors: int = 0
    """Distinct partition keys of which a value could not be decoded."""
    fail_open_partitions: int = 0
    """Distinct partition keys that were included because they could not be judged."""
    fail_open_files: int = 0
    """Candidate files, after all other selection, that lie in such partitions."""


@dataclass(frozen=True, slots=True)
class Undecoded:
    """Partition values that the format could not decode: of which field, in which rows, and why."""

    field: int
    rows: Mask
    text: str


@dataclass(frozen=True, slots=True)
class KeyedTrial:
    """The outcome for each distinct key, and which key each file has."""

    codes: Codes
    partition: Trial
    """Judged by every partition field but buckets."""
    bucket: Trial
    """Judged by buckets as well."""
    facts: Facts
    """What each distinct key says of the predicate's columns."""
    fail_open: Mask


@dataclass(frozen=True, slots=True)
class _Judged:
    """One key's outcome: possible, certain and the deciding part; without and with buckets."""

    partition: tuple[bool, bool, int]
    bucket: tuple[bool, bool, int]


class MultiSpecPartitionFilter:
    """Judges partition keys of every spec of a table against one predicate, each distinct key once."""

    def __init__(
        self,
        predicate: BoundPredicate,
        specs: Iterable[PartitionSpec],
        *,
        strict: bool = False,
        also: Iterable[Column] = (),
    ) -> None:
        """Judge by predicate; `also` are further columns of which facts are wanted, such as a join's keys."""
        self._predicate = predicate
        self._columns = {column.id: column for column in (*predicate.columns, *also)}
        self._specs = {spec.spec_id: spec for spec in specs}
        self._strict = strict
        self._unevaluable = {
            spec_id: reason for spec_id, spec in self._specs.items() if (reason := self._why_not(spec))
        }
        self._memo: dict[PartitionKey, _Judged] = {}
        self._errors: set[PartitionKey] = set()
        self._open: set[PartitionKey] = set()
        self.notes = Notes()
        for spec_id, reason in sorted(self._unevaluable.items()):
            self.notes.add(f"spec {spec_id} cannot be evaluated, its files are kept: {reason}")

    @property
    def stats(self) -> FilterStats:
        """The counts so far; files are counted by whoever selects candidates."""
        return FilterStats(len(self._unevaluable), len(self._errors), len(self._open))

    def matches(self, key: PartitionKey) -> bool:
        """Whether files of this key may hold a matching row; true also where that cannot be known."""
        if key not in self._memo:
            spec = self._spec(key.spec_id)
            values = None
            if key.partition is not None:
                arrays = [pa.array([value]) for value in key.partition]
                values = pa.StructArray.from_arrays(arrays, names=[field.name for field in spec.fields])
            self.judge(key.spec_id, values, 1)
        return self._memo[key].bucket[0]

    def is_fail_open(self, key: PartitionKey) -> bool:
        """Whether the key was included only because it could not be judged."""
        return key in self._open

    def judge(
        self,
        spec_id: int,
        partition: pa.StructArray | None,
        count: int,
        undecoded: Iterable[Undecoded] = (),
    ) -> KeyedTrial:
        """Judge the files of one spec. partition has a child for each field of the spec, in the spec's order."""
        spec = self._spec(spec_id)
        if spec_id in self._unevaluable and self._strict and count:
            reason = self._unevaluable[spec_id]
            raise UnevaluableError(
                f"spec {spec_id} cannot be evaluated: {reason}. Plan without strict=True to keep its files.",
                reason=reason,
            )
        if partition is None or spec.is_unpartitioned:
            values: list[pa.Array] = []
            codes, first = np.zeros(count, np.int64), np.zeros(min(count, 1), np.int64)
        else:
            values = [_plain(child) for child in partition.flatten()]
            codes, first = distinct(values)
            values = [child.take(pa.array(first)) for child in values]
        facts, errors = self._facts(spec, values, len(first), undecoded, codes)
        keys = self._keys(spec, values, len(first))
        self._judge_new(spec, keys, facts, errors)
        known = [self._memo[key] for key in keys]
        by_partition, by_bucket = (
            Trial.of([getattr(one, side) for one in known]) for side in ("partition", "bucket")
        )
        fail_open = np.array([key in self._open for key in keys], np.bool_)
        return KeyedTrial(codes, by_partition, by_bucket, facts, fail_open)

    def _judge_new(self, spec: PartitionSpec, keys: list[PartitionKey], facts: Facts, errors: Mask) -> None:
        """Judge the keys that no batch has brought before, all at once, and count them."""
        new = np.array([place for place, key in enumerate(keys) if key not in self._memo], np.int64)
        if not len(new):
            return
        facts = facts if len(new) == len(keys) else facts.take(new)
        by_partition = try_all(self._predicate.conjuncts, facts.without_buckets())
        by_bucket = try_all(self._predicate.conjuncts, facts)
        for place, partition, bucket in zip(new.tolist(), by_partition.rows(), by_bucket.rows(), strict=True):
            key = keys[place]
            self._memo[key] = _Judged(partition, bucket)
            if errors[place]:
                self._errors.add(key)
            if bucket[0] and (errors[place] or spec.spec_id in self._unevaluable):
                self._open.add(key)

    def _keys(self, spec: PartitionSpec, values: list[pa.Array], count: int) -> list[PartitionKey]:
        columns = [child.to_pylist() for child in values]
        rows = zip(*columns, strict=True) if columns else [None] * count
        return [PartitionKey.of(spec, row) for row in rows]

    def _spec(self, spec_id: int) -> PartitionSpec:
        if spec_id not in self._specs:
            known = tuple(sorted(self._specs))
            raise UnknownSpecError(
                f"a file has partition spec {spec_id}, but the table's metadata knows only {known}. "
                "The metadata is corrupt: do not change the table, restore it from an older metadata file.",
                spec_id=spec_id,
                known=known,
            )
        return self._specs[spec_id]

    def _why_not(self, spec: PartitionSpec) -> str:
        """Why a field that the predicate needs cannot be evaluated; empty if all can."""
        for field in spec.fields:
            if field.source in self._columns:
                column = self._columns[field.source]
                if field.transform.name == "unknown":
                    return f"{field.name} has the unknown transform {field.transform.text!r}"
                if field.transform.name != "void" and not has_order(column.type):
                    return f"{field.name} is made of {column.name}, a {column.type}"
        return ""

    def _facts(
        self, spec: PartitionSpec, values: list[pa.Array], count: int, undecoded: Iterable[Undecoded], codes: Codes
    ) -> tuple[Facts, Mask]:
        """What the distinct keys say of the predicate's columns, and which of them could not be decoded."""
        facts = Facts(count, {})
        errors = np.zeros(count, np.bool_)
        failed = _failed_keys(undecoded, codes, count)
        for place, (field, child) in enumerate(zip(spec.fields, values, strict=False)):
            column = self._columns.get(field.source) if field.source is not None else None
            if column is None or not has_order(column.type):
                continue
            domain, unreadable = self._domain(spec, field, column, child, failed.get(place))
            errors |= unreadable
            facts = facts.and_also(Facts(count, {column.id: domain}))
        return facts, errors

    def _domain(
        self,
        spec: PartitionSpec,
        field: PartitionField,
        column: Column,
        values: pa.Array,
        failed: tuple[Mask, str] | None,
    ) -> tuple[Domain, Mask]:
        found = preimage(field.transform, column.type, values, values)
        unreadable = np.zeros(len(values), np.bool_)
        problems = [(problem.mask, problem.text) for problem in found.problems]
        for mask, text in [*problems, *([failed] if failed else [])]:
            if mask.any():
                unreadable |= mask
                self._fail(spec, field, values, mask, text)
        if not found.null_is_null:
            return Domain.any(len(values)), unreadable
        null = mask_of(values.is_null())
        nan = (
            mask_of(pc.fill_null(pc.is_nan(values), fill_value=False))
            if pt.is_floating(values.type)
            else null & False
        )
        domain = Domain(
            null | unreadable,
            nan | unreadable,
            ~(null | nan) | unreadable,
            (found.range,) if found.range is not None else (),
            (found.buckets,) if found.buckets is not None else (),
        )
        return domain, unreadable

    def _fail(self, spec: PartitionSpec, field: PartitionField, values: pa.Array, mask: Mask, text: str) -> None:
        example = values[int(np.flatnonzero(mask)[0])]
        reason = f"spec {spec.spec_id}, partition field {field.name}, value {example}: {text}"
        if self._strict:
            raise UnevaluableError(
                f"cannot judge a partition: {reason}. Plan without strict=True to keep its files.", reason=reason
            )
        self.notes.add(f"partition value ignored: {reason}")


def distinct(values: list[pa.Array]) -> tuple[Codes, Codes]:
    """Number the distinct tuples: for each row its number, and for each number the first row that has it."""
    codes: Codes = np.zeros(len(values[0]), np.int64)
    for child in values:
        part = child.dictionary_encode(null_encoding="encode")
        size = len(part.dictionary)
        # Codes stay below the number of rows, and so does a dictionary: their product fits 64 bits.
        mixed = codes * max(size, 1) + part.indices.to_numpy(zero_copy_only=False)
        _, codes = np.unique(mixed, return_inverse=True)
    first = np.full(int(codes.max(initial=-1)) + 1, len(codes), np.int64)
    np.minimum.at(first, codes, np.arange(len(codes)))
    # Number by first appearance, so that the same input gives the same order.
    order = np.argsort(first, kind="stable")
    renumber = np.empty(len(order), np.int64)
    renumber[order] = np.arange(len(order))
    return renumber[codes], first[order]


def _failed_keys(undecoded: Iterable[Undecoded], codes: Codes, count: int) -> dict[int, tuple[Mask, str]]:
    """Which distinct keys have a value, by field, that the format could not decode."""
    failed: dict[int, tuple[Mask, str]] = {}
    for part in undecoded:
        mask, text = failed.get(part.field, (np.zeros(count, np.bool_), part.text))
        mask[codes[part.rows]] = True
        failed[part.field] = (mask, text)
    return failed


def _plain(array: pa.Array) -> pa.Array:
    """Storage of extension types; times as the integers that they are, so that they hash and compare."""
    return array.storage if isinstance(array, pa.ExtensionArray) else array


def _comparable(value: Any) -> object:  # noqa: ANN401 - a partition value of any type
    """NaN as something that equals itself."""
    return "NaN" if isinstance(value, float) and value != value else value  # noqa: PLR0124 - the definition of NaN
