"""What a statement assigns: columns of the table, and for each the SQL of its new value.

Law: each column is found in the table before anything runs, and none is assigned twice, be it as a part of another.
What a value means is Spark's to say: only it knows all of its functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tamis.checks import kind
from tamis.errors import BindError, UnsupportedValueError
from tamis.predicate.build import literal
from tamis.predicate.names import dotted, split_name
from tamis.predicate.schema import Schema
from tamis.predicate.sql.rendering import render

__all__ = ["DEFAULT", "Assignment", "assignments", "value_sql"]

DEFAULT: Final = "DEFAULT"
"""In place of a value: the column's write default, or NULL."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """A column, or a field inside one, and the SQL of the value that it gets."""

    path: tuple[str, ...]
    sql: str

    @property
    def name(self) -> str:
        """The column as SQL writes it."""
        return dotted(self.path)

    @property
    def is_default(self) -> bool:
        """Whether it is the word DEFAULT."""
        return self.sql.strip().upper() == DEFAULT


def assignments(
    values: Mapping[str, object], schema: Schema, *, alias: str | None = None, case_sensitive: bool = False
) -> tuple[Assignment, ...]:
    """Each column with its value, as the table has its name; BindError for one that is not there, or assigned twice.

    >>> import pyarrow as pa
    >>> schema = Schema.of(id=pa.int64(), price=pa.float64())
    >>> assignments({"t.PRICE": "price * 2"}, schema, alias="t")
    (Assignment(path=('price',), sql='price * 2'),)
    """
    found: list[Assignment] = []
    for name, value in values.items():
        if not isinstance(name, str):
            raise TypeError(f"a column to set is {kind(name)}: give its name, such as 'price'.")
        path = split_name(name.strip())
        if path is None:
            raise BindError(
                f"cannot read the column name {name!r}. Write it as a.b, with backticks around a part that has dots "
                "or backticks.",
                column=name,
                nearest=(),
            )
        if alias is not None and len(path) > 1 and path[0].lower() == alias.lower() and not _has(schema, path[0]):
            path = path[1:]
        column = schema.find(path, case_sensitive=case_sensitive)
        for other in found:
            shorter = min(len(other.path), len(column.path))
            if other.path[:shorter] == column.path[:shorter]:
                raise BindError(
                    f"column {column.name} is assigned twice: as {other.name}, and as {name}. Assign it once.",
                    column=column.name,
                    nearest=(),
                )
        found.append(Assignment(column.path, value_sql(value, column.name)))
    return tuple(found)


def value_sql(value: object, column: str) -> str:
    """The SQL of a value: text is SQL already, any other Python value is a literal."""
    if isinstance(value, str):
        if not value.strip():
            raise BindError(
                f"the value of {column} is empty: write SQL, such as 'price * 2'; for an empty text, \"''\".",
                column=column,
                nearest=(),
            )
        return value
    try:
        return render(literal(value))
    except UnsupportedValueError:
        raise TypeError(
            f"the value of {column} is {kind(value)}: give SQL text, or a plain value such as 5 or None."
        ) from None


def _has(schema: Schema, name: str) -> bool:
    return any(column.path[0].lower() == name.lower() for column in schema.columns)
