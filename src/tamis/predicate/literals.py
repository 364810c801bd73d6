"""Long lists of literals of one kind, as a column.

A list of a million values is one Arrow array. Law: a column is the same sequence of literals that its values would be
one by one, with the same types; whoever does not know columns may take it for a tuple.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Final, overload

import numpy as np
import pyarrow as pa
from pyarrow import types as pt

from tamis.predicate.compare.exact import decimal_literal, int_literal
from tamis.predicate.nodes import Literal
from tamis.predicate.type_names import is_text

__all__ = ["MIN_COLUMN", "LiteralColumn", "column_of", "natural"]

MIN_COLUMN: Final = 100
"""Fewest literals to make a column of: shorter lists gain nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class LiteralColumn(Sequence[Literal]):
    """Literals of one kind; a null is the NULL literal."""

    values: pa.Array
    """int64, float64, date32 or large_string."""
    type: pa.DataType | None
    """The type of every literal that is not NULL. None if each has its own: integers by their size, and numbers, as
    text with or without a point, by their digits."""

    def __len__(self) -> int:
        return len(self.values)

    @overload
    def __getitem__(self, index: int) -> Literal: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Literal, ...]: ...
    def __getitem__(self, index: int | slice) -> Literal | tuple[Literal, ...]:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step == 1:
                return tuple(self._literals(self.values.slice(start, max(stop - start, 0))))
            return tuple(self)[index]
        return next(self._literals(self.values.slice(range(len(self))[index], 1)))

    def __iter__(self) -> Iterator[Literal]:
        return self._literals(self.values)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, LiteralColumn) and self.type == other.type:
            return bool(self.values.equals(other.values))
        return isinstance(other, (tuple, LiteralColumn)) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    @property
    def has_null(self) -> bool:
        """Whether NULL is in the list."""
        return bool(self.values.null_count)

    def _literals(self, values: pa.Array) -> Iterator[Literal]:
        null, type_ = Literal(None, pa.null()), self.type
        for value in values.to_pylist():
            if value is None:
                yield null
            elif type_ is not None:
                yield Literal(value, type_)
            else:
                yield natural(value)


def natural(value: int | str) -> Literal:
    """A number with the type that Spark gives it as it is written: of at most 38 digits."""
    exact = Decimal(value) if isinstance(value, str) and "." in value else int(value)
    literal = None
    if isinstance(exact, int):
        literal = int_literal(exact, pa.int32()) or int_literal(exact, pa.int64())
    literal = literal or decimal_literal(Decimal(exact))
    if literal is None:
        raise AssertionError(f"{value!r} has more digits than a decimal")
    return literal


def column_of(values: object) -> LiteralColumn | list[object] | None:
    """Python's, numpy's or Arrow's values as a column; as a list of Python's if they are an array of other kinds.

    None if they are neither an array nor a long list of values of one plain type.
    """
    if isinstance(values, np.ndarray):
        values = pa.array(values if values.dtype != object else values.tolist())
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return _of_arrow(values)
    if not isinstance(values, (list, tuple, range)) or len(values) < MIN_COLUMN:
        return None
    types = {int} if isinstance(values, range) else set(map(type, values)) - {type(None)}
    type_ = _PLAIN.get(next(iter(types))) if len(types) == 1 else None
    if type_ is None:
        return None
    try:
        array = pa.array(values, type_)
    except (pa.ArrowInvalid, OverflowError, UnicodeError):
        return None  # an integer beyond 64 bits, or half a character
    return LiteralColumn(array, _TYPES.get(type_))


def _of_arrow(array: Any) -> LiteralColumn | list[object]:  # noqa: ANN401 - either kind of array
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
    if pt.is_dictionary(array.type):
        array = array.dictionary_decode()
    if isinstance(array, pa.ExtensionArray) and array.type != pa.uuid():
        array = array.storage
    try:
        if pt.is_integer(array.type):
            array = array.cast(pa.int64())
        elif pt.is_floating(array.type):
            array = array.cast(pa.float64())
        elif is_text(array.type):
            array = array.cast(pa.large_string())
        elif pt.is_date(array.type):
            array = array.cast(pa.date32())
        elif pt.is_timestamp(array.type):
            array = array.cast(pa.timestamp("us", array.type.tz))
    except pa.ArrowInvalid:
        pass  # what does not fit is taken, or refused, one by one
    if len(array) >= MIN_COLUMN and array.type in {pa.int64(), *_TYPES}:
        return LiteralColumn(array, _TYPES.get(array.type))
    return list(array.to_pylist())


_TYPES: Final = {pa.float64(): pa.float64(), pa.large_string(): pa.string(), pa.date32(): pa.date32()}
"""The type of a literal, by the type of the array that it is in."""
_PLAIN: Final[dict[type, pa.DataType]] = {
    int: pa.int64(),
    float: pa.float64(),
    str: pa.large_string(),
    date: pa.date32(),
}
"""The array for Python's values of just this type."""
