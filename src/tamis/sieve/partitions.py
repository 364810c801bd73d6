"""Partition values of any spec as facts about columns, judged once for each distinct value.

A table that has evolved holds files of several specs. Each file is read with its own spec, so a partition value is
a fact like any other: the preimage of its transform. What cannot be decoded widens to ANY: the file is kept, counted
and noted. Unknown never excludes; an unknown spec id is an error.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from tamis.errors import UnevaluableError, UnknownSpecError
from tamis.predicate.bound import BoundPredicate
from tamis.predicate.keys import has_order
from tamis.predicate.schema import Column
from tamis.predicate.type_names import a_type
from tamis.sieve.domain import Domain, Facts
from tamis.sieve.notes import Notes
from tamis.sieve.order import Mask, mask_of
from tamis.sieve.partition_keys import (
    NAN,
    Codes,
    PartitionField,
    PartitionKey,
    PartitionSpec,
    comparable,
    distinct,
    plain_values,
)
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
    "plain_values",
]

UNDECODED = object()
"""Stands in a key for a value that could not be decoded: equal to its like, and to no value."""


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
        self._relevant = {
            spec_id: tuple(place for place, field in enumerate(spec.fields) if self._tells(field))
            for spec_id, spec in self._specs.items()
        }
        self._memo: dict[tuple[int, tuple[object, ...]], _Judged] = {}
        self._errors: set[PartitionKey] = set()
        self._open: set[PartitionKey] = set()
        self.notes = Notes()
        for text in predicate.notes:
            self.notes.add(text)
        for spec_id, reason in sorted(self._unevaluable.items()):
            self.notes.add(f"spec {spec_id} cannot be evaluated, its files are kept: {reason}")

    @property
    def stats(self) -> FilterStats:
        """The counts so far; files are counted by whoever selects candidates."""
        return FilterStats(len(self._unevaluable), len(self._errors), len(self._open))

    def matches(self, key: PartitionKey) -> bool:
        """Whether files of this key may hold a matching row; true also where that cannot be known."""
        spec = self._spec(key.spec_id)
        if key.partition is None or spec.is_unpartitioned:
            return bool(self.judge(key.spec_id, None, 1).bucket.possible[0])
        arrays = [
            _array_of(value, self._columns.get(field.source) if field.source is not None else None, field.transform)
            for field, value in zip(spec.fields, key.partition, strict=True)
        ]
        values = pa.StructArray.from_arrays(arrays, names=[field.name for field in spec.fields])
        return bool(self.judge(key.spec_id, values, 1).bucket.possible[0])

    @property
    def undecided(self) -> tuple[frozenset[PartitionKey], frozenset[PartitionKey]]:
        """The keys with a value that could not be decoded, and those that were included without a judgement.

        Several filters over parts of one table may meet the same key: their sets can be united, their counts not.
        """
        return frozenset(self._errors), frozenset(self._open)

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
        """Judge the files of one spec. partition has a child for each field of the spec, in the spec's order.

        Keys are told apart by the fields that the predicate needs: files that differ in others have one verdict.
        """
        spec = self._spec(spec_id)
        if spec_id in self._unevaluable and self._strict and count:
            reason = self._unevaluable[spec_id]
            raise UnevaluableError(
                f"spec {spec_id} cannot be evaluated: {reason}. Plan without strict=True to keep its files.",
                reason=reason,
            )
        places = () if partition is None else self._relevant[spec_id]
        failed = _by_field(part for part in undecoded if part.field in places)
        children = [] if partition is None else [_plain(child) for child in partition.flatten()]
        needed = [children[place] for place in places]
        codes, first = distinct([*needed, *(pa.array(part.rows) for part in failed.values())], count)
        values = [child.take(pa.array(first)) for child in needed]
        misread = {place: (part.rows[first], part.text) for place, part in failed.items()}
        keys = _tuples(values, [misread[place][0] if place in misread else None for place in places], len(first))
        facts, errors = self._facts(spec, places, values, misread, len(first))
        self._judge_new(spec_id, keys, facts)
        known = [self._memo[spec_id, key] for key in keys]
        by_partition, by_bucket = (
            Trial.of([getattr(one, side) for one in known]) for side in ("partition", "bucket")
        )
        fail_open = by_bucket.possible & (errors | (spec_id in self._unevaluable))
        self._count(spec, children, codes, errors, fail_open)
        return KeyedTrial(codes, by_partition, by_bucket, facts, fail_open)

    def _judge_new(self, spec_id: int, keys: list[tuple[object, ...]], facts: Facts) -> None:
        """Judge the keys that no batch has brought before, all at once."""
        new = np.array([place for place, key in enumerate(keys) if (spec_id, key) not in self._memo], np.int64)
        if not len(new):
            return
        facts = facts if len(new) == len(keys) else facts.take(new)
        by_partition = try_all(self._predicate.conjuncts, facts.without_buckets())
        by_bucket = try_all(self._predicate.conjuncts, facts)
        for place, partition, bucket in zip(new.tolist(), by_partition.rows(), by_bucket.rows(), strict=True):
            self._memo[spec_id, keys[place]] = _Judged(partition, bucket)

    def _count(
        self, spec: PartitionSpec, children: list[pa.Array], codes: Codes, errors: Mask, fail_open: Mask
    ) -> None:
        """Count whole partition keys, each once, however many batches it comes in."""
        for found, mask in ((self._errors, errors), (self._open, fail_open)):
            rows = np.flatnonzero(mask[codes]) if mask.any() else np.empty(0, np.int64)
            if len(rows):
                values = [child.take(pa.array(rows)) for child in children]
                _, first = distinct(values, len(rows))
                values = [child.take(pa.array(first)) for child in values]
                whole = _tuples(values, [None] * len(values), len(first))
                found |= {PartitionKey.of(spec, row or None) for row in whole}

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

    def _tells(self, field: PartitionField) -> bool:
        """Whether a field says anything of a column that the predicate mentions."""
        column = self._columns.get(field.source) if field.source is not None else None
        return column is not None and has_order(column.type) and field.transform.name not in {"void", "unknown"}

    def _why_not(self, spec: PartitionSpec) -> str:
        """Why a field that the predicate needs cannot be evaluated; empty if all can."""
        for field in spec.fields:
            if field.source in self._columns:
                column = self._columns[field.source]
                if field.transform.name == "unknown":
                    return f"{field.name} has the unknown transform {field.transform.text!r}"
                if field.transform.name != "void" and not has_order(column.type):
                    return f"{field.name} is made of {column.name}, {a_type(column.type)}"
        return ""

    def _facts(
        self,
        spec: PartitionSpec,
        places: Iterable[int],
        values: list[pa.Array],
        misread: dict[int, tuple[Mask, str]],
        count: int,
    ) -> tuple[Facts, Mask]:
        """What the distinct keys say of the predicate's columns, and which of them could not be decoded."""
        facts = Facts(count, {})
        errors = np.zeros(count, np.bool_)
        for place, child in zip(places, values, strict=True):
            field = spec.fields[place]
            column = self._columns[field.source]  # type: ignore[index] # relevant fields have a source
            domain, unreadable = self._domain(spec, field, column, child, misread.get(place))
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
            (found.range.keep(~unreadable),) if found.range is not None else (),
            (found.buckets.keep(~unreadable),) if found.buckets is not None else (),
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


def _by_field(undecoded: Iterable[Undecoded]) -> dict[int, Undecoded]:
    """What could not be decoded, each field once; the first reason stands for all."""
    found: dict[int, Undecoded] = {}
    for part in undecoded:
        first = found.get(part.field)
        found[part.field] = part if first is None else Undecoded(part.field, first.rows | part.rows, first.text)
    return found


def _tuples(values: list[pa.Array], misread: list[Mask | None], count: int) -> list[tuple[object, ...]]:
    """The rows as tuples that can be hashed and compared; what could not be decoded equals only its like."""
    columns = [
        [comparable(value) for value in plain_values(child)]
        if mask is None
        else [UNDECODED if bad else comparable(value) for value, bad in zip(plain_values(child), mask, strict=True)]
        for child, mask in zip(values, misread, strict=True)
    ]
    return list(zip(*columns, strict=True)) if columns else [()] * count


def _plain(array: pa.Array) -> pa.Array:
    """The storage of an extension type."""
    return array.storage if isinstance(array, pa.ExtensionArray) else array


def _array_of(value: object, column: Column | None, transform: Transform) -> pa.Array:
    """A key's value as a partition array of one entry."""
    if column is None or transform.name != "identity":
        return pa.array([value])
    if pt.is_floating(column.type) and value == NAN:
        return pa.array([float("nan")], column.type)
    return pa.array([value], pa.binary(16) if column.type == pa.uuid() else column.type)
