"""Partition values of any spec as facts about columns, judged once for each distinct value.

A table that has evolved holds files of several specs. Each file is read with its own spec, so a partition value is
a fact like any other: the preimage of its transform. What cannot be decoded widens to ANY: the file is kept, counted
and noted. Unknown never excludes; an unknown spec id is an error.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import repeat

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from tamis.errors import UnevaluableError, UnknownSpecError
from tamis.predicate.arrays import Mask
from tamis.predicate.bound import BoundPredicate
from tamis.predicate.keys import has_order
from tamis.predicate.schema import Column
from tamis.predicate.type_names import a_type, is_clock
from tamis.sieve.domain import Domain, Facts
from tamis.sieve.notes import Notes
from tamis.sieve.order import mask_of
from tamis.sieve.partition_keys import (
    NAN,
    Codes,
    PartitionField,
    PartitionKey,
    PartitionSpec,
    comparable,
    comparable_values,
    distinct,
    plain_values,
    spec_label,
    spec_order,
)
from tamis.sieve.transforms import Transform, preimage
from tamis.sieve.trial import Trial, Trials, try_all

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
    written: pa.Array | None = None
    """Each file's value as the metadata writes it, as text: in these rows, equal texts are one value. Null where the
    metadata has none, or the format does not tell: then nobody knows which files share a partition."""
    empty: bool = False
    """Whether it is one of two values, NULL or the empty text or bytes: of a field of that very column."""


@dataclass(frozen=True, slots=True)
class KeyedTrial:
    """The trial of each distinct key, and which key each file has."""

    codes: Codes
    partition: Trial
    """Judged by every partition field but buckets."""
    bucket: Trial
    """Judged by buckets as well."""
    facts: Facts
    """What each distinct key says of the predicate's columns."""
    fail_open: Mask


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
            spec_id: tuple(position for position, field in enumerate(spec.fields) if self._tells(field))
            for spec_id, spec in self._specs.items()
        }
        self._memo: dict[int | None, dict[tuple[object, ...], int]] = {}
        """Of each spec, the number of each key that has been judged: its place in the two trials."""
        self._by_partition, self._by_bucket = Trials(), Trials()
        """The trials of all keys so far, without buckets and with them."""
        self._errors: set[PartitionKey] = set()
        self._open: set[PartitionKey] = set()
        self.begun = (
            *predicate.notes,
            *(
                f"{spec_label(spec_id)} cannot be evaluated, its files are kept: {self._unevaluable[spec_id]}"
                for spec_id in sorted(self._unevaluable, key=spec_order)
            ),
        )
        """The notes that there are before any file is judged."""
        self.notes = Notes.of(self.begun)

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
        spec_id: int | None,
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
                f"{spec_label(spec_id)} cannot be evaluated: {reason}. Plan without strict=True to keep its files.",
                reason=reason,
            )
        positions = () if partition is None else self._relevant[spec_id]
        faults = tuple(undecoded)
        failed = _by_field(fault for fault in faults if fault.field in positions and not fault.empty)
        children = [] if partition is None else [_plain(child) for child in partition.flatten()]
        empties = {fault.field: fault for fault in faults if fault.empty and fault.field in positions}
        for position, fault in empties.items():
            children[position] = _with_empties(children[position], fault.rows)
        needed = [children[position] for position in positions]
        codes, first = distinct([*needed, *(pa.array(fault.rows) for fault in failed.values())], count)
        values = [child.take(pa.array(first)) for child in needed]
        misread = {position: (fault.rows[first], fault.text) for position, fault in failed.items()}
        either = {position: fault.text for position, fault in empties.items()}
        keys = _tuples(
            values, [misread[position][0] if position in misread else None for position in positions], len(first)
        )
        facts, errors = self._facts(spec, positions, values, misread, either, len(first))
        numbers = self._judged(spec_id, keys, facts)
        by_partition, by_bucket = self._by_partition.take(numbers), self._by_bucket.take(numbers)
        fail_open = by_bucket.possible & (errors | (spec_id in self._unevaluable))
        self._count(spec, children, faults, errors[codes], fail_open[codes])
        return KeyedTrial(codes, by_partition, by_bucket, facts, fail_open)

    def _judged(self, spec_id: int | None, keys: list[tuple[object, ...]], facts: Facts) -> Codes:
        """The numbers of these keys; those that no batch has brought before are judged, all at once."""
        known = self._memo.setdefault(spec_id, {})
        numbers = np.fromiter(map(known.get, keys, repeat(-1)), np.int64, len(keys))
        new = np.flatnonzero(numbers < 0)
        if len(new):
            facts = facts if len(new) == len(keys) else facts.take(new)
            numbers[new] = len(self._by_partition) + np.arange(len(new))
            self._by_partition.add(try_all(self._predicate.conjuncts, facts.without_buckets()))
            self._by_bucket.add(try_all(self._predicate.conjuncts, facts))
            known.update(zip((keys[index] for index in new.tolist()), numbers[new].tolist(), strict=True))
        return numbers

    def _count(
        self,
        spec: PartitionSpec,
        children: list[pa.Array],
        faults: tuple[Undecoded, ...],
        errors: Mask,
        fail_open: Mask,
    ) -> None:
        """Count whole partition keys, each once, however many batches it comes in.

        A value that could not be decoded stands in its key as it is written: two of them are two partitions.
        """
        for counted, mask in ((self._errors, errors), (self._open, fail_open)):
            rows = np.flatnonzero(mask)
            if len(rows):
                texts = _texts(faults)
                values, written = (
                    [child.take(pa.array(rows)) for child in columns] for columns in (children, texts.values())
                )
                _, first = distinct([*values, *written], len(rows))
                keys = _tuples([child.take(pa.array(first)) for child in values], [None] * len(values), len(first))
                for place, child in zip(texts, written, strict=True):
                    told = child.take(pa.array(first)).to_pylist()
                    keys = [
                        key if text is None else (*key[:place], (text,), *key[place + 1 :])
                        for key, text in zip(keys, told, strict=True)
                    ]
                counted |= {PartitionKey.of(spec, row or None) for row in keys}

    def _spec(self, spec_id: int | None) -> PartitionSpec:
        if spec_id not in self._specs:
            known = tuple(sorted(id_ for id_ in self._specs if id_ is not None))
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
        positions: Iterable[int],
        values: list[pa.Array],
        misread: dict[int, tuple[Mask, str]],
        either: dict[int, str],
        count: int,
    ) -> tuple[Facts, Mask]:
        """What the distinct keys say of the predicate's columns, and which of them could not be decoded."""
        facts = Facts(count, {})
        errors = np.zeros(count, np.bool_)
        for position, child in zip(positions, values, strict=True):
            field = spec.fields[position]
            column = self._columns[field.source]  # type: ignore[index] # relevant fields have a source
            domain, unreadable = self._domain(spec, field, column, child, misread.get(position))
            errors |= unreadable
            if position in either:
                empty = mask_of(pc.fill_null(pc.equal(pc.binary_length(child), 0), fill_value=False)) & ~unreadable
                if empty.any():
                    self._fail(spec, field, child, empty, either[position])
                domain, errors = replace(domain, may_null=domain.may_null | empty), errors | empty
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
        source_values = preimage(field.transform, column.type, values, values)
        unreadable = np.zeros(len(values), np.bool_)
        problems = [(problem.mask, problem.text) for problem in source_values.problems]
        for mask, text in [*problems, *([failed] if failed else [])]:
            if mask.any():
                unreadable |= mask
                self._fail(spec, field, values, mask, text)
        if not source_values.null_is_null:
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
            (source_values.range.keep(~unreadable),) if source_values.range is not None else (),
            (source_values.buckets.keep(~unreadable),) if source_values.buckets is not None else (),
        )
        return domain, unreadable

    def _fail(self, spec: PartitionSpec, field: PartitionField, values: pa.Array, mask: Mask, text: str) -> None:
        example = values[int(np.flatnonzero(mask)[0])]
        reason = f"{spec_label(spec.spec_id)}, partition field {field.name}, value {example}: {text}"
        if self._strict:
            raise UnevaluableError(
                f"cannot judge a partition: {reason}. Plan without strict=True to keep its files.", reason=reason
            )
        self.notes.add(f"partition value ignored: {reason}")


def _by_field(undecoded: Iterable[Undecoded]) -> dict[int, Undecoded]:
    """What could not be decoded, each field once; the first reason stands for all."""
    by_field: dict[int, Undecoded] = {}
    for fault in undecoded:
        first = by_field.get(fault.field)
        by_field[fault.field] = (
            fault if first is None else Undecoded(fault.field, first.rows | fault.rows, first.text)
        )
    return by_field


def _texts(faults: Iterable[Undecoded]) -> dict[int, pa.Array]:
    """By field, how values are written that could not be decoded; null of all others."""
    texts: dict[int, pa.Array] = {}
    for fault in faults:
        if fault.written is not None:
            own = pc.if_else(pa.array(fault.rows), fault.written, pa.scalar(None, pa.string()))
            texts[fault.field] = pc.coalesce(texts[fault.field], own) if fault.field in texts else own
    return texts


def _with_empties(values: pa.Array, rows: Mask) -> pa.Array:
    """The values, with the empty one in these rows: NULL is another that they may have."""
    return pc.if_else(pa.array(rows), pa.scalar(b"", pa.binary()).cast(values.type), values)


def _tuples(values: list[pa.Array], misread: list[Mask | None], count: int) -> list[tuple[object, ...]]:
    """The rows as tuples that can be hashed and compared; what could not be decoded equals only its like."""
    columns = [
        comparable_values(child)
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
    if is_clock(column.type) and column.type.unit in {"s", "ms"}:
        # A key counts in microseconds, whatever the column does.
        count = pa.timestamp("us", column.type.tz) if pt.is_timestamp(column.type) else pa.time64("us")
        return pa.array([value], count).cast(column.type)
    return pa.array([value], pa.binary(16) if column.type == pa.uuid() else column.type)
