"""Rows as text: aligned for people, or as lines of CSV or JSON that Spark itself makes.

CSV is as RFC 4180 has it: quotes are doubled, NULL is empty and an empty text is `""`. What has no place in a field,
a struct or a list, is JSON there. Binary values are base64, times have six digits and the session's offset.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tamis.cli.progress import SparkWatch
from tamis.predicate.names import backticked

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

__all__ = ["CSV", "JSON", "Shown", "csv_rows", "flat", "json_rows", "table_lines"]

TIMES: Final = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",  # Spark's own format would cut the microseconds
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
CSV: Final = {
    **TIMES,
    "escape": '"',  # Spark's own is a backslash, which no spreadsheet knows
    "ignoreLeadingWhiteSpace": "false",  # blanks are part of a value
    "ignoreTrailingWhiteSpace": "false",
}
JSON: Final = {**TIMES, "ignoreNullFields": "false"}
WIDEST: Final = 40
"""Columns of the screen that a value may take."""
NULL: Final = "NULL"
NUMBERS: Final = frozenset({"byte", "short", "integer", "long", "float", "double", "decimal"})
NESTED: Final = frozenset({"struct", "array", "map", "variant"})


@dataclass(frozen=True, slots=True)
class Shown:
    """A table for the screen."""

    lines: Sequence[str]
    count: int
    more: bool
    """Whether there are rows that it does not show."""


def csv_rows(frame: DataFrame) -> DataFrame:
    """Each row as a line of CSV."""
    from pyspark.sql import functions as f

    return flat(frame).select(f.to_csv(f.struct("*"), CSV))


def json_rows(frame: DataFrame) -> DataFrame:
    """Each row as a line of JSON. NULLs are there as well."""
    from pyspark.sql import functions as f

    return frame.select(f.to_json(f.struct("*"), JSON))


def flat(frame: DataFrame) -> DataFrame:
    """The rows, with values that CSV can hold."""
    from pyspark.sql import functions as f

    def field(column: Column, type_: DataType) -> Column:
        kind = _kind(type_)
        if kind in NESTED:
            return f.to_json(column, TIMES)
        if kind == "binary":
            return f.base64(column)
        return column.cast("string") if "interval" in kind or kind == "void" else column

    return frame.select(*(field(column, type_).alias(name) for name, column, type_ in _columns(frame)))


def table_lines(frame: DataFrame, most: int) -> Shown:
    """The first rows side by side, as Spark shows values; long ones are cut."""
    from pyspark.sql import functions as f
    from rich.cells import cell_len

    def text(column: Column, type_: DataType) -> Column:
        kind = _kind(type_)
        shown = f.hex(column) if kind == "binary" else column.cast("string")
        return f.left(shown, f.lit(WIDEST + 1))  # what the screen does not show need not travel

    columns = list(_columns(frame))
    with SparkWatch(frame.sparkSession):
        collected = frame.select(*(text(column, type_).alias(name) for name, column, type_ in columns)).collect()
    rows = [[_cell(value) for value in row] for row in collected[:most]]
    cells = [[_cell(name) for name, _, _ in columns], *rows]
    widths = [max(cell_len(row[index]) for row in cells) for index in range(len(columns))]
    right = [_kind(type_) in NUMBERS for _, _, type_ in columns]
    lines = [
        "  ".join(
            " " * (width - cell_len(cell)) + cell if to_right else cell + " " * (width - cell_len(cell))
            for cell, width, to_right in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in cells
    ]
    rule = "  ".join("-" * width for width in widths)
    return Shown([lines[0], rule, *lines[1:]], len(rows), len(collected) > most)


def _columns(frame: DataFrame) -> list[tuple[str, Column, DataType]]:
    from pyspark.sql import functions as f

    return [(field.name, f.col(backticked(field.name)), field.dataType) for field in frame.schema]


def _kind(type_: DataType) -> str:
    return type_.typeName().partition("(")[0]


def _cell(value: str | None) -> str:
    r"""A value on one line, without anything that a terminal would obey.

    >>> _cell(None), _cell("a\nb"), _cell("x" * 50)
    ('NULL', 'a\\nb', 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…')
    """
    from rich.cells import cell_len, set_cell_size

    if value is None:
        return NULL
    text = "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii") for letter in value
    )
    return text if cell_len(text) <= WIDEST else set_cell_size(text, WIDEST - 1) + "…"
