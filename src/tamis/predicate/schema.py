"""The columns that a predicate may name, as the table has them now.

A column is known by its stable id; its name is only how the user refers to it today.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches

import pyarrow as pa

from tamis.errors import BindError

__all__ = ["Column", "ColumnId", "Schema"]

ColumnId = int | str
"""A field id (Iceberg, Paimon) or a physical name (Delta): whatever survives a rename."""

MAX_SUGGESTIONS = 3
MAX_NAMES = 10
"""Most columns that an error lists where no name is near."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column or nested field: its id, where it stands, and the type that its values compare in."""

    id: ColumnId
    path: tuple[str, ...]
    type: pa.DataType

    @property
    def name(self) -> str:
        """The path as SQL writes it: `a.b`, with parts quoted where they must be."""
        return ".".join(quote_name(part) for part in self.path)

    @property
    def nested(self) -> bool:
        """True inside a struct: its rows are null also where the struct is null."""
        return len(self.path) > 1


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
        found = self._by_folded.get(_folded(path), ())
        if case_sensitive:
            found = tuple(column for column in found if column.path == path)
        if len(found) == 1:
            return found[0]
        written = ".".join(quote_name(part) for part in path)
        if found:
            names = tuple(column.name for column in found)
            raise BindError(
                f"column {written} is ambiguous: it may be any of {', '.join(names)}. "
                "Write the name exactly and plan with case_sensitive=True.",
                column=written,
                nearest=names,
            )
        nearest = self._nearest(path)
        hint = f"Did you mean {', '.join(nearest)}?" if nearest else f"The table has {self._some_names()}."
        raise BindError(f"no column {written} in the table. {hint}", column=written, nearest=nearest)

    def _nearest(self, path: tuple[str, ...]) -> tuple[str, ...]:
        by_name = {".".join(_folded(column.path)): column.name for column in self.columns}
        close = get_close_matches(".".join(_folded(path)), by_name, n=MAX_SUGGESTIONS, cutoff=0.5)
        return tuple(by_name[name] for name in close)

    def _some_names(self) -> str:
        names = [column.name for column in self.columns if not column.nested]
        rest = len(names) - MAX_NAMES
        return ", ".join(names[:MAX_NAMES]) + (f" and {rest} more" if rest > 0 else "") if names else "no columns"


def _folded(path: Iterable[str]) -> tuple[str, ...]:
    return tuple(part.lower() for part in path)  # as Spark does: casefold would join more names


def quote_name(part: str) -> str:
    """The name as Spark SQL accepts it: in backticks unless it is a plain identifier.

    >>> quote_name("ts"), quote_name("a b"), quote_name("a`b")
    ('ts', '`a b`', '`a``b`')
    """
    if part.isascii() and part.isidentifier():
        return part
    return "`" + part.replace("`", "``") + "`"
