"""Join keys as they are given: names of columns, arrays, tables, dicts. What cannot be a key is refused by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
from numpy import typing as npt
from pyarrow import types as pt

from tamis.checks import kind
from tamis.errors import FilterInputError
from tamis.predicate.keys import has_order
from tamis.predicate.names import split_name
from tamis.predicate.type_names import type_name
from tamis.sieve.join.keys import plain

__all__ = ["ColumnName", "KeyColumn", "KeyInput", "column_paths", "key_arrays"]

ColumnName: TypeAlias = str | tuple[str, ...]
"""`id`, `a.b` for a struct's field, with backticks where SQL needs them; or the parts of the path."""
KeyColumn: TypeAlias = pa.Array | pa.ChunkedArray | Sequence[Any] | npt.NDArray[Any]
KeyInput: TypeAlias = pa.Table | pa.RecordBatch | Mapping[str, KeyColumn] | KeyColumn


def column_paths(columns: ColumnName | Sequence[ColumnName]) -> tuple[tuple[str, ...], ...]:
    """The parts of each column's name; FilterInputError if there is none, or one is no name.

    >>> column_paths("a.b"), column_paths(["`a.b`", ("a", "b")])
    ((('a', 'b'),), (('a.b',), ('a', 'b')))
    """
    given: object = columns
    if isinstance(given, bytes) or not isinstance(given, Sequence):
        raise TypeError(f"the columns of a runtime filter are {kind(given)}: give a name, or several.")
    paths = tuple(_path(name) for name in ([columns] if isinstance(columns, str) else columns))
    if not paths:
        raise FilterInputError(
            "a runtime filter needs at least one column. Name those that the join compares.",
            columns=(),
            reason="no columns",
        )
    return paths


def key_arrays(names: Sequence[str], keys: KeyInput) -> list[pa.Array]:
    """An array for each name, all of one length and of types that have an order."""
    arrays = [_key_array(name, array) for name, array in zip(names, _arrays(names, keys), strict=True)]
    if len({len(array) for array in arrays}) > 1:
        lengths = {name: len(array) for name, array in zip(names, arrays, strict=True)}
        raise FilterInputError(
            f"the key columns have unequal lengths: {lengths}. A row of each makes one key.",
            columns=tuple(names),
            reason="unequal lengths",
        )
    return arrays


def _path(name: ColumnName) -> tuple[str, ...]:
    if isinstance(name, tuple) and name and all(isinstance(part, str) for part in name):
        return name
    if not isinstance(name, str):
        raise TypeError(f"a column of a runtime filter is {kind(name)}: give its name, or its path's parts.")
    parts = split_name(name)
    if parts is None:
        raise FilterInputError(
            f"{name!r} is not a column name. Write a.b for a field, and `a b` in backticks.",
            columns=(name,),
            reason="no column name",
        )
    return parts


def _arrays(names: Sequence[str], keys: KeyInput) -> list[KeyColumn]:
    if hasattr(keys, "sparkSession"):
        raise TypeError(f"the join keys are {kind(keys)}: collect them with RuntimeFilter.from_dataframe.")
    if hasattr(keys, "columns") and hasattr(keys, "__arrow_c_stream__"):
        keys = pa.table(keys)  # a DataFrame of pandas or Polars
    if isinstance(keys, pa.RecordBatch):
        keys = pa.Table.from_batches([keys])
    if isinstance(keys, pa.Table):
        keys = dict(zip(keys.column_names, keys.columns, strict=True))
    if not isinstance(keys, Mapping):
        if len(names) == 1:
            return [keys]
        raise FilterInputError(
            f"the keys of {len(names)} columns came as one array. Pass a table or a dict of {len(names)} columns.",
            columns=tuple(names),
            reason="one array",
        )
    if all(name in keys for name in names):
        return [keys[name] for name in names]
    if len(keys) == len(names):
        return list(keys.values())
    raise FilterInputError(
        f"the filter has {len(names)} columns ({', '.join(names)}), and the keys have {len(keys)} "
        f"({', '.join(keys)}). Pass one key column for each.",
        columns=tuple(names),
        reason=f"keys of {len(keys)} columns",
    )


def _key_array(name: str, keys: KeyColumn) -> pa.Array:
    if isinstance(keys, (str, bytes, bytearray, memoryview)):
        # A text is a sequence of letters, and would be taken for a list of them.
        raise TypeError(f"the join keys of {name} are one value, {kind(keys)}: give a list of keys.")
    try:
        array = plain(keys if isinstance(keys, (pa.Array, pa.ChunkedArray)) else pa.array(keys))
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise FilterInputError(
            f"the join keys of {name} cannot be an Arrow array: {error}", columns=(name,), reason=str(error)
        ) from error
    if not has_order(array.type) and not pt.is_null(array.type):
        raise FilterInputError(
            f"join keys of type {type_name(array.type)} have no order, and cannot prune {name}. "
            "Leave that column out.",
            columns=(name,),
            reason=f"no order of {array.type}",
        )
    return array
