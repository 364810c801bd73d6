"""What a join's build side says of the probe side's files: its keys, their range, or a bloom filter of them.

Join keys are a predicate: a file without a row whose columns equal one of the keys adds nothing to the join. They
meet the same domains as a WHERE, judged by the same judge, whatever their number. With `=` a NULL key matches
nothing; with `<=>` (null_safe) it matches NULL. Law: a file that holds a row equal to a key, as Spark compares, is
never dropped; keys that Spark does not compare exactly with the column drop nothing, and say so.

A filter is sound only where rows without a match are not wanted: not for the preserved side of an outer join, an anti
join, or a MERGE with NOT MATCHED BY SOURCE; and only while the build side cannot change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import NoneType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.checks import check_flag, check_names, check_type, kind
from tamis.errors import FilterInputError
from tamis.predicate.arrays import Mask
from tamis.predicate.keys import has_order
from tamis.predicate.schema import Column, Schema
from tamis.predicate.values import ValueSet
from tamis.printable import printable
from tamis.sieve.domain import Facts
from tamis.sieve.join.bloom import Bloom
from tamis.sieve.join.bloom_lookup import narrowed
from tamis.sieve.join.column_bloom import JoinBloom
from tamis.sieve.join.key_input import ColumnName, KeyInput, column_paths, key_arrays
from tamis.sieve.join.keys import Converted, convert, plain
from tamis.sieve.join.ranges import JoinRange, describe
from tamis.sieve.join.tuples import NULL_CODE, Axis, KeyTuples, dense, distinct_rows
from tamis.sieve.judge import may_hold
from tamis.sieve.order import encode

__all__ = ["MAX_KEYS", "BoundRuntimeFilter", "Collected", "Probe", "RuntimeFilter"]

MAX_KEYS = 100_000
"""Most distinct keys to collect from a DataFrame. They are a megabyte or so, sorted in milliseconds. With more of
them most joins hit nearly every file: shipping them costs more than it saves."""


@dataclass(frozen=True, slots=True)
class Collected:
    """How a filter's keys came from a DataFrame."""

    keys: int
    """Distinct keys of the build side."""
    exact: bool
    """False if they were too many to list: the number is an estimate, within a few percent."""
    seconds: float
    """From the first Spark job to the finished filter; the build side's own work is part of it."""


@dataclass(frozen=True, slots=True, eq=False)
class _JoinKeys:
    """Distinct tuples in ascending order, a column for each of the filter's."""

    table: pa.Table


@dataclass(frozen=True, slots=True, eq=False)
class _JoinRanges:
    """A range for each of the filter's columns."""

    ranges: tuple[JoinRange, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RuntimeFilter:
    """The keys of a join's build side, by the names of the columns that they are compared with.

    >>> keys = RuntimeFilter.of("customer_id", pa.array([7, 5, None, 7]))
    >>> keys.text
    'customer_id in 2 join keys [5 … 7]'
    """

    columns: tuple[tuple[str, ...], ...]
    source: _JoinKeys | _JoinRanges | JoinBloom
    null_safe: bool = False
    collected: Collected | None = None
    """How the keys were collected; None if they were given."""
    dataframe: Any = None
    """The build side that they were collected from, pinned: join with this one. None if they were given."""

    def __repr__(self) -> str:
        return f"<tamis runtime filter: {printable(self.text)}>"

    @classmethod
    def of(
        cls, columns: ColumnName | Sequence[ColumnName], keys: KeyInput, *, null_safe: bool = False
    ) -> RuntimeFilter:
        """All keys, in any order, repeated or not.

        One column takes an array; several take a table or a dict, whose columns are found by the same names, or,
        if those are not all there, taken in their order. With `=` (not null_safe) rows with a NULL are left out.
        """
        check_flag("null_safe", null_safe)
        paths = column_paths(columns)
        names = [".".join(path) for path in paths]
        arrays = key_arrays(names, keys)
        codes = [dense(encode(array, array.type))[0] for array in arrays]
        rows, _ = distinct_rows(list(codes))
        if not null_safe:
            rows = rows[np.logical_and.reduce([code[rows] != NULL_CODE for code in codes])]
        table = pa.Table.from_arrays([array.take(pa.array(rows)) for array in arrays], names)
        return cls(paths, _JoinKeys(table), null_safe)

    @classmethod
    def of_range(cls, column: ColumnName, low: object, high: object, *, null_safe: bool = False) -> RuntimeFilter:
        """Keys between low and high, both included; None is unbounded. null_safe: NULL may be a key as well."""
        return cls.of_ranges([column], [(low, high)], null_safe=null_safe)

    @classmethod
    def of_ranges(
        cls, columns: Sequence[ColumnName], ranges: Sequence[tuple[object, object]], *, null_safe: bool = False
    ) -> RuntimeFilter:
        """As of_range, for keys of several columns: each lies within its own range."""
        check_flag("null_safe", null_safe)
        paths = column_paths(columns)
        check_type("ranges", ranges, list, tuple, expected="a list of pairs (low, high)")
        pairs: Sequence[object] = ranges
        for ends in pairs:
            if not isinstance(ends, (list, tuple)) or len(ends) != 2:  # noqa: PLR2004 - a pair
                raise TypeError(f"a member of ranges is {kind(ends)}: give a pair (low, high).")
        if len(paths) != len(ranges):
            raise FilterInputError(
                f"there are {len(paths)} columns and {len(ranges)} ranges. Give one range for each column.",
                columns=tuple(".".join(path) for path in paths),
                reason=f"{len(ranges)} ranges",
            )
        return cls(paths, _JoinRanges(tuple(JoinRange.of(*ends) for ends in ranges)), null_safe)

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
        check_type("bloom", bloom, Bloom, expected="a Bloom, such as Bloom.from_bytes() reads")
        check_type("type", type, pa.DataType, NoneType, expected="the Arrow type of the keys")
        check_flag("null_safe", null_safe)
        return cls(column_paths([column]), JoinBloom(bloom, type, JoinRange.of(low, high)), null_safe)

    @classmethod
    def from_dataframe(
        cls,
        df: Any,  # noqa: ANN401 - a Spark DataFrame: this room does not know Spark
        columns: str | Sequence[str],
        *,
        names: ColumnName | Sequence[ColumnName] | None = None,
        max_keys: int = MAX_KEYS,
        null_safe: bool = False,
        bloom: bool = True,
        pin: bool = True,
    ) -> RuntimeFilter:
        """The distinct keys in these columns of a Spark DataFrame, or their range if they are more than max_keys.

        names are the table's columns that the keys are compared with, if they are called otherwise. Join with the
        filter's `dataframe`: df, pinned so that it cannot change between collecting and joining.
        pin=False leaves df as it is, for a build side that is known not to change. bloom adds a bloom filter to the
        range of a single column, at the cost of Python workers on the executors. FilterInputError if the keys are of
        a type that cannot be used.
        """
        if not hasattr(df, "sparkSession"):
            raise TypeError(f"df is {kind(df)}: give a DataFrame of Spark.")
        check_names("columns", columns)
        check_type("columns", columns, str, Sequence, expected="the names of the key columns")
        check_type("max_keys", max_keys, int, expected="a number of keys")
        for name, flag in (("null_safe", null_safe), ("bloom", bloom), ("pin", pin)):
            check_flag(name, flag)
        from tamis.spark.keys import collect

        return collect(df, columns, names=names, max_keys=max_keys, null_safe=null_safe, with_bloom=bloom, pin=pin)

    @property
    def keys(self) -> int | None:
        """How many distinct keys there are, perhaps estimated; None if nobody counted them."""
        if self.collected is not None:
            return self.collected.keys
        return len(self.source.table) if isinstance(self.source, _JoinKeys) else None

    @property
    def text(self) -> str:
        """The filter in a line, for explaining."""
        names = ", ".join(".".join(path) for path in self.columns)
        names = f"({names})" if len(self.columns) > 1 else names
        or_null = " or null" if self.null_safe and not isinstance(self.source, _JoinKeys) else ""
        match self.source:
            case _JoinKeys(table=table):
                return f"{names} in {_count(len(table))}{_ends(table)}"
            case _JoinRanges(ranges=ranges):
                spans = ", ".join(span.text for span in ranges)
                return f"{names} in join keys {f'({spans})' if len(ranges) > 1 else spans}{or_null}"
            case JoinBloom(bloom=bloom, range=span):
                within = "" if span.low is None and span.high is None else f" {span.text}"
                return f"{names} in a bloom filter of {_count(bloom.items)}{within}{or_null}"

    def ends(self, most: int = 0) -> Iterator[tuple[tuple[str, ...], pa.Scalar, pa.Scalar, pa.Array | None]]:
        """For each column whose keys are known to have a least and a greatest: its path, and these. NULL is apart.

        Then all keys of the column, in ascending order, if they are listed and not more than most; else None.
        """
        found: list[tuple[pa.Scalar | None, pa.Scalar | None, pa.Array | None]]
        match self.source:
            case _JoinKeys(table=table):
                found = [_extremes(column, most) for column in table.columns]
            case _JoinRanges(ranges=ranges):
                found = [(span.low, span.high, None) for span in ranges]
            case JoinBloom(range=span):
                found = [(span.low, span.high, None)]
        for path, (low, high, values) in zip(self.columns, found, strict=True):
            if low is not None and high is not None and low.is_valid and high.is_valid:
                yield path, low, high, values

    def bind(self, schema: Schema, *, case_sensitive: bool = False) -> BoundRuntimeFilter:
        """The filter in terms of the table's columns; BindError if one does not exist.

        A column whose values do not compare exactly with the keys does not prune: the notes say why.
        """
        found = tuple(schema.find(path, case_sensitive=case_sensitive) for path in self.columns)
        match self.source:
            case _JoinKeys(table=table):
                bound = self._bind_keys(table, found)
            case _JoinRanges(ranges=ranges):
                bound = self._bind_ranges(ranges, found)
            case JoinBloom() as source:
                bound = self._bind_bloom(source, found)
        return replace(bound, keys=self.keys, collected=self.collected)

    def _bind_ranges(self, ranges: tuple[JoinRange, ...], columns: tuple[Column, ...]) -> BoundRuntimeFilter:
        sides = [
            (column, span.accepted(column, nulls=self.null_safe))
            for column, span in zip(columns, ranges, strict=True)
        ]
        notes = tuple(_note(column, why) for column, why in sides if isinstance(why, str))
        accepted = tuple((column, values) for column, values in sides if isinstance(values, ValueSet))
        return BoundRuntimeFilter(columns, self.text, notes, accepted)

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

    def _bind_bloom(self, source: JoinBloom, columns: tuple[Column, ...]) -> BoundRuntimeFilter:
        column, fault = columns[0], source.fault(columns[0])
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
    keys: int | None = None
    """How many distinct keys there are; None if nobody counted them."""
    collected: Collected | None = None
    """How the keys were collected from a DataFrame; None if they were given."""

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
        if facts is not None and not any(column.id in facts.domains for column in useful) and not self._hashes(facts):
            names = ", ".join(column.name for column in useful)
            return f"no statistics for {names} in these files"
        return None

    def blind(self, facts: Facts) -> str | None:
        """As idle, and why also if the facts are there but say nothing of any file's values. For explaining only."""
        idle, columns = self.idle(facts), [column for column, _ in self.accepted]
        if idle is not None or self.nothing or self._hashes(facts):
            return idle
        if not all(facts.of(column).unknown().all() for column in columns):
            return None
        return f"no bounds for {', '.join(column.name for column in columns)} in these files"

    def _hashes(self, facts: Facts) -> bool:
        """Whether the keys choose buckets of several columns."""
        return self.tuples is not None and any(self.tuples.hashes(fact) for fact in facts.buckets)

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
            notes = (*notes, *(f"buckets do not prune: {why}" for why in self.tuples.faults))
        return Probe(possible, notes)


def _extremes(column: pa.ChunkedArray, most: int) -> tuple[pa.Scalar | None, pa.Scalar | None, pa.Array | None]:
    if not has_order(column.type):
        return None, None, None
    ends = pc.min_max(column)
    values = column.unique().drop_null() if most else column.slice(0, 0)
    few = values.take(pc.sort_indices(values)) if 0 < len(values) <= most else None
    return ends["min"], ends["max"], few


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
