"""Counts and bounds of a data file's columns, gathered while it is written.

Law: they are those of exactly the rows that were written. Columns inside lists and maps have no counts and no bounds:
nobody agrees on what they would count.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from tamis.formats.edit import WriteField
from tamis.formats.iceberg.metrics import Mode
from tamis.formats.iceberg.single_values import cut_lower, cut_upper, encoded

__all__ = ["Statistics", "leaf_ids"]


@dataclass(slots=True)
class _Column:
    """What is known of one column so far."""

    type: pa.DataType
    values: int = 0
    nulls: int = 0
    nans: int = 0
    least: Any = None
    greatest: Any = None

    def add(self, array: pa.Array, *, bounds: bool) -> None:
        self.values += len(array)
        self.nulls += array.null_count
        if pt.is_floating(self.type):
            numbers = array.drop_null().to_numpy(zero_copy_only=False)
            nan = np.isnan(numbers)
            self.nans += int(nan.sum())
            if bounds:
                self._widen(*_float_ends(numbers[~nan]))
        elif bounds and array.null_count < len(array):
            ends = pc.min_max(_plain(array)).as_py()
            self._widen(ends["min"], ends["max"])

    def _widen(self, least: Any, greatest: Any) -> None:  # noqa: ANN401 - a value of the column
        if least is None:
            return
        if self.least is None or _key(least) < _key(self.least):
            self.least = least
        if self.greatest is None or _key(greatest) > _key(self.greatest):
            self.greatest = greatest


@dataclass(slots=True)
class Statistics:
    """The statistics of one file."""

    fields: Sequence[WriteField]
    modes: Mapping[int, Mode]
    columns: dict[int, _Column] = field(default_factory=dict)

    def add(self, arrays: Sequence[pa.Array]) -> None:
        """Take in rows: a column each for the fields."""
        for id_, type_, array in _flat(self.fields, arrays):
            mode = self.modes[id_]
            if mode.kind != "none":
                self.columns.setdefault(id_, _Column(type_)).add(array, bounds=mode.has_bounds)

    def told(self) -> dict[str, dict[int, Any]]:
        """Counts and bounds, as NewFile takes them."""
        lower: dict[int, bytes] = {}
        upper: dict[int, bytes] = {}
        for id_, column in self.columns.items():
            if column.least is None:
                continue
            low, high = column.least, column.greatest
            length = self.modes[id_].length
            if isinstance(low, bytes):
                if pt.is_string(column.type):
                    low, high = low.decode(), high.decode()
                if length is not None:
                    low, high = cut_lower(low, length), cut_upper(high, length)
            lower[id_] = encoded(column.type, low)
            if high is not None:
                upper[id_] = encoded(column.type, high)
        return {
            "value_counts": {id_: column.values for id_, column in self.columns.items()},
            "null_counts": {id_: column.nulls for id_, column in self.columns.items()},
            "nan_counts": {id_: one.nans for id_, one in self.columns.items() if pt.is_floating(one.type)},
            "lower": lower,
            "upper": upper,
        }


def leaf_ids(fields: Sequence[WriteField]) -> Iterator[int]:
    """The ids of the columns that a Parquet file has, in their order."""
    for one in fields:
        if one.children:
            yield from leaf_ids(one.children)
        else:
            yield one.id


def _flat(fields: Sequence[WriteField], arrays: Sequence[pa.Array]) -> Iterator[tuple[int, pa.DataType, pa.Array]]:
    """Columns and fields of structs, a value for each row: null where a struct around it is."""
    for one, array in zip(fields, arrays, strict=True):
        if pt.is_struct(one.type):
            yield from _flat(one.children, array.flatten())
        elif not one.children:
            yield one.id, one.type, array


def _plain(array: pa.Array) -> pa.Array:
    """Values that Arrow can order and Python can hold: counts for dates and times, bytes for texts."""
    kind = array.type
    if pt.is_temporal(kind):
        return array.view(pa.int32() if kind.bit_width == 32 else pa.int64())  # noqa: PLR2004 - bits
    return array.cast(pa.binary()) if pt.is_string(kind) else array


def _float_ends(numbers: np.ndarray[Any, Any]) -> tuple[float | None, float | None]:
    """The least and greatest; a zero is stated so that both zeros lie within.

    -0.0 lies below 0.0 to Java and equals it to SQL: an upper bound of -0.0 would hide the row from `x = 0.0`.
    """
    if not len(numbers):
        return None, None
    least, greatest = float(numbers.min()), float(numbers.max())
    return -0.0 if least == 0 else least, 0.0 if greatest == 0 else greatest


def _key(value: Any) -> Any:  # noqa: ANN401 - a value of the column
    return (value, math.copysign(1, value)) if isinstance(value, float) else value
