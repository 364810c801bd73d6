"""What a join's build side says of the probe side's files: its keys, their range, or a bloom filter of them.

Join keys are a predicate: a file without a row whose columns equal one of the keys adds nothing to the join. They
meet the same domains as a WHERE, judged by the same judge, whatever their number. With `=` a NULL key matches
nothing; with `<=>` (null_safe) it matches NULL. Law: a file that holds a row equal to a key, as Spark compares, is
never dropped; keys that Spark does not compare exactly with the column drop nothing, and say so.

A filter is sound only where rows without a match are not wanted: not for the preserved side of an outer join, an anti
join, or a MERGE with NOT MATCHED BY SOURCE; and only while the build side cannot change.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy import typing as npt
from pyarrow import types as pt

from tamis.errors import FilterInputError
from tamis.predicate.keys import has_order, uses_bytes
from tamis.predicate.schema import Column, Schema
from tamis.predicate.values import ValueSet
from tamis.sieve.bloom import Bloom
from tamis.sieve.domain import Facts
from tamis.sieve.joinkeys import Converted, convert, plain
from tamis.sieve.joinrange import JoinRange, describe
from tamis.sieve.judge import may_hold
from tamis.sieve.order import Mask, encode
from tamis.sieve.probe import narrowed
from tamis.sieve.tuples import NULL_CODE, Axis, KeyTuples, dense, distinct_rows

__all__ = ["BoundRuntimeFilter", "Probe", "RuntimeFilter"]

ColumnName: TypeAlias = str | tuple[str, ...]
"""`id`, `a.b` for a struct's field, with backticks where SQL needs them; or the parts of the path."""
KeyColumn: TypeAlias = pa.Array | pa.ChunkedArray | Sequence[Any] | npt.NDArray[Any]
KeyInput: TypeAlias = pa.Table | pa.RecordBatch | Mapping[str, KeyColumn] | KeyColumn

MAX_FALSE_POSITIVES: Final = 0.9
"""A bloom filter that finds more than this share of foreign keys is not asked: it tells next to nothing."""

_PART: Final = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")


@dataclass(frozen=True, slots=True, eq=False)
class _JoinKeys:
    """Distinct tuples in ascending order, a column for each of the filter's."""

    table: pa.Table


@dataclass(frozen=True, slots=True, eq=False)
class _JoinBloom:
    """A bloom filter over the keys of values of one type, and what else is known of them."""

    bloom: Bloom
    type: pa.DataType | None
    range: JoinRange


@dataclass(frozen=True, slots=True, eq=False)
class RuntimeFilter:
    """The keys of a join's build side, by the names of the columns that they are compared with.

    >>> keys = RuntimeFilter.of("customer_id", pa.array([7, 5, None, 7]))
    >>> keys.text
    'customer_id in 2 join keys [5 … 7]'
    """

    columns: tuple[tuple[str, ...], ...]
    source: _JoinKeys | JoinRange | _JoinBloom
    null_safe: bool = False

    @classmethod
    def of(
        cls, columns: ColumnName | Sequence[ColumnName], keys: KeyInput, *, null_safe: bool = False
    ) -> RuntimeFilter:
        """All keys, in any order, repeated or not.

        One column takes an array; several take a table or a dict, whose columns are found by the same names, or,
        if those are not all there, taken in their order. With `=` (not null_safe) rows with a NULL are left out.
        """
        paths = tuple(_path(name) for name in ([columns] if isinstance(columns, str) else columns))
        if not paths:
            raise FilterInputError("a runtime filter needs at least one column. Name those that the join compares.")
        names = [".".join(path) for path in paths]
        arrays = [_key_array(name, array) for name, array in zip(names, _arrays(names, keys), strict=True)]
        if len({len(array) for array in arrays}) > 1:
            lengths = {name: len(array) for name, array in zip(names, arrays, strict=True)}
            raise FilterInputError(
                f"the key columns have unequal lengths: {lengths}. A row of each makes one key.", lengths=lengths
            )
        codes = [dense(encode(array, array.type))[0] for array in arrays]
        rows, _ = distinct_rows(list(codes))
        if not null_safe:
            rows = rows[np.logical_and.reduce([code[rows] != NULL_CODE for code in codes])]
        table = pa.Table.from_arrays([array.take(pa.array(rows)) for array in arrays], names)
        return cls(paths, _JoinKeys(table), null_safe)

    @classmethod
    def of_range(cls, column: ColumnName, low: object, high: object, *, null_safe: bool = False) -> RuntimeFilter:
        """Keys between low and high, both included; None is unbounded. null_safe: NULL may be a key as well."""
        return cls((_path(column),), JoinRange.of(low, high), null_safe)

    @classmethod
    def of_bloom(
        cls,
        column: ColumnName,
        bloom: Bloom,
        low: object = None,
        high: object = None,
        *,
        type: pa.DataType | None = None,  # noqa: A002 - the type of the keys
        null_safe: bool = False,
    ) -> RuntimeFilter:
        """Keys that a bloom filter holds, within [low, high] if given. null_safe: NULL may be a key as well.

        The filter holds keys as `order.encode` makes them of values of `type`; the column's own type if None.
        """
        return cls((_path(column),), _JoinBloom(bloom, type, JoinRange.of(low, high)), null_safe)

    @property
    def text(self) -> str:
        """The filter in a line, for explaining."""
        names = ", ".join(".".join(path) for path in self.columns)
        names = f"({names})" if len(self.columns) > 1 else names
        or_null = " or null" if self.null_safe and not isinstance(self.source, _JoinKeys) else ""
        match self.source:
            case _JoinKeys(table=table):
                return f"{names} in {_count(len(table))}{_ends(table)}"
            case JoinRange() as span:
                return f"{names} in join keys {span.text}{or_null}"
            case _JoinBloom(bloom=bloom, range=span):
                within = "" if span.low is None and span.high is None else f" {span.text}"
                return f"{names} in a bloom filter of {_count(bloom.items)}{within}{or_null}"

    def bind(self, schema: Schema, *, case_sensitive: bool = False) -> BoundRuntimeFilter:
        """The filter in terms of the table's columns; BindError if one does not exist.

        A column whose values do not compare exactly with the keys does not prune: the notes say why.
        """
        found = tuple(schema.find(path, case_sensitive=case_sensitive) for path in self.columns)
        match self.source:
            case _JoinKeys(table=table):
                return self._bind_keys(table, found)
            case JoinRange() as span:
                accepted = span.accepted(found[0], nulls=self.null_safe)
                if isinstance(accepted, str):
                    return BoundRuntimeFilter(found, self.text, (_note(found[0], accepted),))
                return BoundRuntimeFilter(found, self.text, (), ((found[0], accepted),))
            case _JoinBloom() as source:
                return self._bind_bloom(source, found)

    def _bind_keys(self, table: pa.Table, columns: tuple[Column, ...]) -> BoundRuntimeFilter:
        converted = [convert(plain(table.column(i)), column.type) for i, column in enumerate(columns)]
        exact = [
            (column, part) for column, part in zip(columns, converted, strict=True) if isinstance(part, Converted)
        ]
        notes = tuple(_note(c, why) for c, why in zip(columns, converted, strict=True) if isinstance(why, str))
        fits = np.ones(len(table), np.bool_)
        for _, part in exact:
            fits &= part.fits
        rows = np.flatnonzero(fits)
        if not len(rows):
            return BoundRuntimeFilter(columns, self.text, notes, nothing=True)
        axes, codes = [], []
        for column, part in exact:
            code, distinct = dense(part.keys.take(rows))
            axes.append(Axis.of(column, distinct, part.step))
            codes.append(code)
        accepted = tuple(
            (axis.column, axis.accepted(nulls=bool((code == NULL_CODE).any())))
            for axis, code in zip(axes, codes, strict=True)
        )
        tuples = None
        if len(axes) > 1:
            kinds, _ = distinct_rows(list(codes))
            tuples = KeyTuples(tuple(axes), tuple(code[kinds] for code in codes))
        return BoundRuntimeFilter(columns, self.text, notes, accepted, tuples)

    def _bind_bloom(self, source: _JoinBloom, columns: tuple[Column, ...]) -> BoundRuntimeFilter:
        column, fault = columns[0], _bloom_fault(source, columns[0])
        within: ValueSet | str | None = source.range.accepted(column, nulls=self.null_safe)
        notes = tuple(_note(column, why) for why in (fault, within) if isinstance(why, str))
        if isinstance(within, str) or (fault and source.range.is_open):
            within = None if fault else JoinRange().accepted(column, nulls=self.null_safe)
        accepted = ((column, within),) if isinstance(within, ValueSet) else ()
        return BoundRuntimeFilter(columns, self.text, notes, accepted, bloom=None if fault else source.bloom)


@dataclass(frozen=True, slots=True)
class Probe:
    """A runtime filter's answer for a batch of files, and what it could not use."""

    possible: Mask
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class BoundRuntimeFilter:
    """A runtime filter that has met its table: a set of keys for each column that it can judge."""

    columns: tuple[Column, ...]
    text: str
    notes: tuple[str, ...] = ()
    """Why a column, or a bloom filter, does not prune."""
    accepted: tuple[tuple[Column, ValueSet], ...] = ()
    tuples: KeyTuples | None = None
    bloom: Bloom | None = None
    nothing: bool = False
    """No key can equal any value: no file has a match."""

    @property
    def prunes(self) -> bool:
        """Whether the filter can drop any file at all, whatever is known of it."""
        return self.idle() is None

    def idle(self, facts: Facts | None = None) -> str | None:
        """Why the filter cannot drop any of these files, or any file at all; None if it may. Found out cheaply."""
        if self.nothing:
            return None
        useful = [column for column, values in self.accepted if not values.is_everything or self.bloom is not None]
        if not useful:
            return "; ".join(self.notes) or "any value, and NULL, may be a join key"
        if facts is not None and not any(column.id in facts.domains for column in useful):
            names = ", ".join(column.name for column in useful)
            return f"nothing is known of {names} in these files"
        return None

    def possible(self, facts: Facts) -> Mask:
        """For each file, False only if it can hold no row that equals a key."""
        return self.probe(facts).possible

    def probe(self, facts: Facts) -> Probe:
        """As possible, with the notes on what was not used."""
        if self.nothing:
            return Probe(np.zeros(facts.count, np.bool_), self.notes)
        idle = self.idle(facts)
        if idle is not None:
            return Probe(np.ones(facts.count, np.bool_), tuple(dict.fromkeys((*self.notes, idle))))
        possible = np.ones(facts.count, np.bool_)
        notes = self.notes
        for column, values in self.accepted:
            domain = facts.of(column)
            possible &= may_hold(values, column, domain if self.bloom is None else narrowed(domain, self.bloom))
        rows = np.flatnonzero(possible)
        if self.tuples is not None and len(rows):
            possible[rows], untested = self.tuples.possible(facts.take(rows))
            if untested:
                notes = (*notes, f"whole keys were not tested for {untested:,} files: each column was, on its own")
        return Probe(possible, notes)


def _path(name: ColumnName) -> tuple[str, ...]:
    """The parts of a column's name.

    >>> _path("a.b"), _path("`a.b`"), _path(("a", "b"))
    (('a', 'b'), ('a.b',), ('a', 'b'))
    """
    if not isinstance(name, str):
        return tuple(name)
    found = list(_PART.finditer(name))
    if not found or ".".join(part.group() for part in found) != name:
        raise FilterInputError(
            f"{name!r} is no column name. Write a.b for a field, and `a b` in backticks.", name=name
        )
    return tuple(part.group(2) or part.group(1).replace("``", "`") for part in found)


def _arrays(names: list[str], keys: KeyInput) -> list[KeyColumn]:
    if isinstance(keys, pa.RecordBatch):
        keys = pa.Table.from_batches([keys])
    if isinstance(keys, pa.Table):
        keys = dict(zip(keys.column_names, keys.columns, strict=True))
    if not isinstance(keys, Mapping):
        if len(names) == 1:
            return [keys]
        raise FilterInputError(
            f"the keys of {len(names)} columns came as one array. Pass a table or a dict of {len(names)} columns."
        )
    if all(name in keys for name in names):
        return [keys[name] for name in names]
    if len(keys) == len(names):
        return list(keys.values())
    raise FilterInputError(
        f"the filter has {len(names)} columns ({', '.join(names)}), and the keys have {len(keys)} "
        f"({', '.join(keys)}). Pass one key column for each.",
        columns=tuple(names),
        keys=tuple(keys),
    )


def _key_array(name: str, keys: KeyColumn) -> pa.Array:
    try:
        array = plain(keys if isinstance(keys, (pa.Array, pa.ChunkedArray)) else pa.array(keys))
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise FilterInputError(f"the join keys of {name} are no Arrow array: {error}", column=name) from error
    if not has_order(array.type) and not pt.is_null(array.type):
        raise FilterInputError(
            f"join keys of type {array.type} have no order, and cannot prune {name}. Leave that column out.",
            column=name,
            type=str(array.type),
        )
    return array


def _bloom_fault(source: _JoinBloom, column: Column) -> str | None:
    """Why the bloom filter cannot be asked for values of the column; None if it can."""
    if not has_order(column.type):
        return f"values of type {column.type} have no order"
    if source.bloom.of_bytes != uses_bytes(column.type):
        return "the bloom filter is over keys of another kind"
    given = column.type if source.type is None else source.type
    if not _same_keys(given, column.type):
        return f"a bloom filter over {given} cannot be asked for {column.type} values"
    if source.bloom.false_positives > MAX_FALSE_POSITIVES:
        return f"the bloom filter is full: it finds {source.bloom.false_positives:.0%} of all other keys as well"
    return None


def _same_keys(given: pa.DataType, type_: pa.DataType) -> bool:
    """Whether equal values of the two types have equal keys. Nanoseconds have not: Spark reads microseconds."""
    if (pt.is_timestamp(type_) or pt.is_time(type_)) and type_.unit == "ns":
        return False
    if given == type_:
        return True
    if pt.is_timestamp(given) and pt.is_timestamp(type_):
        return bool(given.unit == type_.unit and (given.tz is None) == (type_.tz is None))
    if pt.is_decimal128(given) and pt.is_decimal128(type_):
        return bool(given.scale == type_.scale)  # of one key kind, which was checked
    alike = (pt.is_signed_integer, pt.is_floating, _is_bytes)
    return any(family(given) and family(type_) for family in alike)


def _is_bytes(type_: pa.DataType) -> bool:
    return uses_bytes(type_) and not pt.is_decimal128(type_) and type_ != pa.uuid()


def _note(column: Column, why: str) -> str:
    return f"{column.name} does not prune: {why}"


def _count(number: int) -> str:
    return f"{number:,} join key{'' if number == 1 else 's'}"


def _ends(table: pa.Table) -> str:
    """The least and the greatest key, of one column."""
    if table.num_columns > 1 or not len(table):
        return ""
    ends = [describe(table.column(0)[row]) for row in ([0, -1] if len(table) > 1 else [0])]
    return f" [{' … '.join(ends)}]"
