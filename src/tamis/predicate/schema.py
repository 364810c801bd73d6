"""The columns that a predicate may name, as the table has them now.

A column is known by its stable id; its name is only how the user refers to it today.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa
from pyarrow import types as pt

from tamis.errors import BindError
from tamis.predicate.names import dotted, nearest

__all__ = ["Column", "ColumnId", "Schema"]

ColumnId = int | str
"""A field id (Iceberg, Paimon) or a physical name (Delta): whatever survives a rename."""

MAX_NAMES = 10
"""Most columns that an error lists where no name is near."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column or nested field: its id, where it stands, and the type that its values compare in."""

    id: ColumnId
    path: tuple[str, ...]
    type: pa.DataType
    required: bool = False
    """True if no row is NULL there: it is required, and so is every struct around it, and both have always been."""
    inside_required: bool = False
    """True if no struct around it is ever NULL: then only its own NULLs count."""

    @property
    def name(self) -> str:
        """The path as SQL writes it: `a.b`, with parts quoted where they must be."""
        return dotted(self.path)

    @property
    def nested(self) -> bool:
        """True inside a struct."""
        return len(self.path) > 1

    @property
    def null_with_struct(self) -> bool:
        """True if its rows are NULL also where a struct around it is NULL."""
        return self.nested and not self.inside_required


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a table, nested struct fields included, each once."""

    columns: tuple[Column, ...]
    _by_folded: dict[tuple[str, ...], tuple[Column, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_folded: dict[tuple[str, ...], tuple[Column, ...]] = {}
        for column in self.columns:
            key = _folded(column.path)
            by_folded[key] = (*by_folded.get(key, ()), column)
        object.__setattr__(self, "_by_folded", by_folded)

    @classmethod
    def of(cls, **types: pa.DataType) -> Schema:
        """A flat schema with ids 1, 2, 3: for examples and tests."""
        return cls(tuple(Column(i, (name,), type_) for i, (name, type_) in enumerate(types.items(), 1)))

    def find(self, path: tuple[str, ...], *, case_sensitive: bool = False) -> Column:
        """The column that path names; BindError with the nearest names if there is none, or more than one."""
        columns = self._by_folded.get(_folded(path), ())
        if case_sensitive:
            columns = tuple(column for column in columns if column.path == path)
        if len(columns) == 1:
            return columns[0]
        written = dotted(path)
        if columns:
            names = tuple(column.name for column in columns)
            raise BindError(
                f"column {written} is ambiguous: it may be any of {', '.join(names)}. "
                "Write the name exactly and plan with case_sensitive=True, to read in a session with "
                "spark.sql.caseSensitive=true.",
                column=written,
                nearest=names,
            )
        near = nearest(".".join(path), {".".join(column.path): column.name for column in self.columns})
        hint = f"Did you mean {', '.join(near)}?" if near else f"The table has {self._some_names()}."
        raise BindError(f"no column {written} in the table. {hint}", column=written, nearest=near)

    def read(self, path: tuple[str, ...], *, case_sensitive: bool = False) -> tuple[Column, bool]:
        """The column that path reads, and whether it is that column itself.

        `m.k` may be a value of the map m, and `a.x` the fields x of an array's structs: no columns of their own.
        BindError as find() has it.
        """
        for count in range(len(path) - 1, 0, -1):
            inside = self._by_folded.get(_folded(path[:count]), ())
            if any(pt.is_map(column.type) or pt.is_list(column.type) for column in inside):
                return self.find(path[:count], case_sensitive=case_sensitive), False
        return self.find(path, case_sensitive=case_sensitive), True

    @property
    def has_twins(self) -> bool:
        """Whether two names at one place differ in case alone."""
        return len(self._by_folded) < len(self.columns)

    def _some_names(self) -> str:
        names = [column.name for column in self.columns if not column.nested]
        rest = len(names) - MAX_NAMES
        return ", ".join(names[:MAX_NAMES]) + (f" and {rest} more" if rest > 0 else "") if names else "no columns"


def _folded(path: Iterable[str]) -> tuple[str, ...]:
    return tuple(name.lower() for name in path)  # as Spark does: casefold would join more names
