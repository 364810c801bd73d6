"""Which columns Spark must not look into while it reads: where a filter in a file's reader would lose rows.

Spark hands filters on columns to the readers of files, which skip what their statistics rule out. It finds columns by
their expressions, so that one that is no plain column is filtered after it was read, and never in the file. Law: a
column is veiled wherever the reader of its files may answer otherwise than Spark; every other keeps push-down. The
veil lies on what a relation gives, so filters that users or joins add later meet it as well.

What the readers get wrong:

- Parquet and ORC: NaN is in no bound, though Spark has it above all numbers. And -0.0, which Spark takes for 0.0, is
  another value in dictionaries and bloom filters, and a lesser one in bounds.
- ORC: a field whose struct is NULL is not counted as NULL; a list of values with a NULL in it fails.
- Parquet, found by name: of a decimal the file may have a narrower one, and of a time a coarser one, to which Spark
  cuts a filter's value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pyarrow import types as pt
from pyspark.sql import Column
from pyspark.sql.functions import array, col, element_at, expr

from tamis.formats.scan import FileFormat, ReadField
from tamis.predicate.names import backticked
from tamis.spark.types import read_name

__all__ = ["Veil", "may_list_null"]

_LITERAL: Final = r"""[-+]?[0-9][0-9a-z.]*|(?:(?:date|timestamp(?:_ntz|_ltz)?)\s*)?'[^'\\]*'|true|false"""
_SAFE_LIST: Final = re.compile(rf"\(\s*(?:{_LITERAL})\s*(?:,\s*(?:{_LITERAL})\s*)*\)", re.IGNORECASE)
_IN: Final = re.compile(r"\bin\b\s*", re.IGNORECASE)


def may_list_null(sql: str) -> bool:
    """Whether a list of values in the condition may have a NULL in it: False only if all of them are plain literals.

    >>> may_list_null("id in (1, 2)"), may_list_null("id in (1, NULL)"), may_list_null("id in (nullif(1, 1))")
    (False, True, True)
    """
    return any(_SAFE_LIST.match(sql, match.end()) is None for match in _IN.finditer(sql))


@dataclass(frozen=True, slots=True)
class Veil:
    """What is known of a group of files that Spark reads as one."""

    file_format: FileFormat
    ordinary: frozenset[tuple[str, ...]] = frozenset()
    """Columns that surely hold neither NaN nor a zero there."""
    safe: frozenset[tuple[str, ...]] = frozenset()
    """Columns that the condition names, if it has no list with a NULL. What comes later may have one."""

    def column(self, field: ReadField, name: str) -> Column:
        """A column that was read under that name, veiled where it has to be: the same values in any case."""
        plain = backticked(field.written_as or name)
        if self.is_whole(field):
            return element_at(array(col(plain)), 1)
        if not field.children:
            return expr(self.text(field, name))
        veiled = col(plain)
        for path, names, leaf in _leaves(field, (field.name,), ()):
            if self._is_veiled(leaf, path):
                inside = ".".join(map(backticked, names))
                veiled = veiled.withField(inside, expr(_veiled(f"{plain}.{inside}", leaf)))
        return veiled

    def text(self, field: ReadField, name: str) -> str:
        """The same of a column that has no fields inside it, as SQL."""
        plain = backticked(field.written_as or name)
        return _veiled(plain, field) if self._is_veiled(field, (field.name,)) else plain

    def is_whole(self, field: ReadField) -> bool:
        """Whether Spark must not even take parts of the column.

        Where a query needs one part of a column, Spark reads that part alone, and finds it by name: of the id it
        knows no more.
        """
        if field.id is None:
            return _has_decimal(field)
        return bool(field.children) and not field.own_path

    def _is_veiled(self, field: ReadField, path: tuple[str, ...]) -> bool:
        if field.counts is not None or field.variant:
            return True  # the file's statistics are of another type; parts of variants are found by name
        if self.file_format == "avro":
            return False  # Spark looks at each row itself
        if pt.is_floating(field.type):
            return path not in self.ordinary
        if self.file_format == "orc":
            return len(path) > 1 or path not in self.safe
        return field.id is None and pt.is_timestamp(field.type)


def _veiled(sql: str, field: ReadField) -> str:
    """An expression of the same value that Spark does not see through.

    A float times one is the same float, zeros and NaN included. It costs nothing, and that it is not NULL can still
    be asked of the file.
    """
    if pt.is_float64(field.type):
        return f"({sql} * 1D)"
    if pt.is_float32(field.type):
        return f"({sql} * 1F)"
    return f"element_at(array({sql}), 1)"


def _has_decimal(field: ReadField) -> bool:
    return pt.is_decimal(field.type) or any(map(_has_decimal, field.children))


def _leaves(
    field: ReadField, path: tuple[str, ...], names: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...], ReadField]]:
    """What filters can name inside a struct: each with its path in the table, the names to reach it by, and itself.

    What is in lists and maps Spark does not push down.
    """
    for child in field.children if pt.is_struct(field.type) else ():
        below = (*path, child.name), (*names, read_name(child))
        yield from _leaves(child, *below)
        if not child.children:
            yield (*below, child)
