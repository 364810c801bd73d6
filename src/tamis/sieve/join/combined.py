"""Join keys and a predicate that only together have a value for every column of a bucket key.

    bucket key (a, b)      join on a, keys 1 and 2      predicate b in (7, 8)
    rows that match and join have (a, b) in {(1, 7), (1, 8), (2, 7), (2, 8)}: four keys choose at most four buckets

Law: a file is dropped only if none of these keys, of which every row that matches and joins has one, can lie in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Final

import numpy as np

from tamis.predicate.arrays import Int64s
from tamis.predicate.bound import BoundPredicate
from tamis.predicate.keys import Key, key_span, uses_bytes
from tamis.predicate.schema import Column, ColumnId
from tamis.sieve.buckets import MAX_VALUES, limits
from tamis.sieve.hashing import key_array
from tamis.sieve.join.runtime import BoundRuntimeFilter
from tamis.sieve.join.tuples import Axis, KeyTuples, dense, distinct_rows
from tamis.sieve.judge import Same

__all__ = ["MAX_COMBINED", "Combined", "combined_keys"]

MAX_COMBINED: Final = 1_000_000
"""Most keys to put together. Beyond it nearly every bucket is hit, and hashing them takes longer than it saves."""


@dataclass(frozen=True, slots=True, eq=False)
class Combined:
    """Whole keys of a bucket key, and the first of the filters that they are made of."""

    number: int
    tuples: KeyTuples


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """Keys of some of the columns: codes of each, a row for each key."""

    axes: dict[ColumnId, Axis]
    codes: dict[ColumnId, Int64s]
    size: int


def combined_keys(
    predicate: BoundPredicate, filters: Sequence[BoundRuntimeFilter], columns: tuple[Column, ...]
) -> Combined | None:
    """The keys that filters and predicate leave together; None if too many, or if one filter has all columns."""
    return _kept(Same(predicate), tuple(Same(each) for each in filters), columns)


@lru_cache(maxsize=8)
def _kept(predicate: Same, filters: tuple[Same, ...], columns: tuple[Column, ...]) -> Combined | None:
    """They meet many batches, one after the other."""
    parts: list[_Part] = []
    first: int | None = None
    covered: set[ColumnId] = set()
    for number, each in enumerate(filters):
        part = _of_filter(each.same, columns)
        if part is None or covered & set(part.axes):
            continue
        if len(part.axes) == len(columns):
            return None
        covered |= set(part.axes)
        parts.append(part)
        first = number if first is None else first
    missing = tuple(column for column in columns if column.id not in covered)
    if first is None:
        return None
    if missing:
        rest = _of_predicate(predicate.same, columns, missing)
        if rest is None:
            return None
        parts.append(rest)
    if float(np.prod([float(part.size) for part in parts])) > MAX_COMBINED:
        return None
    return Combined(first, _product(parts, columns))


def _of_filter(runtime: BoundRuntimeFilter, columns: tuple[Column, ...]) -> _Part | None:
    """The keys of a filter in those of the columns that it has, each distinct one once."""
    wanted = {column.id: column for column in columns}
    if runtime.nothing:
        return None
    if runtime.tuples is not None:
        places = [
            place
            for place, axis in enumerate(runtime.tuples.axes)
            if axis.step == 1 and wanted.get(axis.column.id) == axis.column
        ]
        if not places:
            return None
        rows, _ = distinct_rows([runtime.tuples.codes[place] for place in places])
        axes = {runtime.tuples.axes[place].column.id: runtime.tuples.axes[place] for place in places}
        codes = {runtime.tuples.axes[place].column.id: runtime.tuples.codes[place][rows] for place in places}
        return _Part(axes, codes, len(rows))
    for column, values in runtime.accepted:
        points = values.points(MAX_COMBINED, key_span(column.type)) if wanted.get(column.id) == column else None
        if points is not None:
            codes_ = np.arange(len(points), dtype=np.int64)
            codes_ = np.append(codes_, -1) if values.nulls else codes_
            return _Part({column.id: Axis.of(column, points)}, {column.id: codes_}, len(codes_))
    return None


def _of_predicate(
    predicate: BoundPredicate, columns: tuple[Column, ...], missing: tuple[Column, ...]
) -> _Part | None:
    """The values that a predicate leaves of the columns that no filter has, branch by branch."""
    places = [columns.index(column) for column in missing]
    found: dict[tuple[Key | None, ...], None] = {}
    for branch in limits(predicate, columns, places):
        if branch is None:
            return None
        found.update(dict.fromkeys(product(*branch)))
        if len(found) > MAX_VALUES:
            return None
    if not found:
        return None  # nothing matches, and nothing is left to choose
    axes, codes = {}, {}
    for place, column in enumerate(missing):
        keys = [row[place] for row in found]
        filled = np.empty(len(keys), object)
        filled[:] = [(b"" if uses_bytes(column.type) else 0) if key is None else key for key in keys]
        code, distinct = dense(key_array(filled, column.type, np.array([key is not None for key in keys], np.bool_)))
        axes[column.id], codes[column.id] = Axis.of(column, distinct), code
    return _Part(axes, codes, len(found))


def _product(parts: list[_Part], columns: tuple[Column, ...]) -> KeyTuples:
    """Every key of each part with every key of the others."""
    grid = np.indices([part.size for part in parts]).reshape(len(parts), -1)
    axes: dict[ColumnId, Axis] = {}
    codes: dict[ColumnId, Int64s] = {}
    for part, rows in zip(parts, grid, strict=True):
        axes |= part.axes
        codes |= {id_: each[rows] for id_, each in part.codes.items()}
    return KeyTuples(tuple(axes[column.id] for column in columns), tuple(codes[column.id] for column in columns))
