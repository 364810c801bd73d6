"""Rows of a table that may equal a join's keys, named by a condition that the readers of its files understand.

The plan has dropped files by their statistics; readers skip parts of the others by theirs, row groups and pages, if
they are told what is asked for. Law: a row that equals a key, as Spark compares them, stays.

Of each value that it is told Parquet's reader asks the dictionary of a part as well, and for each it makes a set of
all values in there: a list of twenty takes longer than to read the part. So dictionaries are left out (UNASKED).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa
from pyarrow import types as pt

from tamis.formats import FormatTable
from tamis.predicate.schema import Column
from tamis.sieve.join.runtime import RuntimeFilter
from tamis.sieve.partitions import PartitionSpec

__all__ = ["UNASKED", "within"]

FEW: Final = 60
"""Keys of a column up to which each of them is named; of more only the least and the greatest are."""
AT_ONCE: Final = 10
"""Of a longer list Spark hands readers the ends alone (spark.sql.parquet.pushdown.inFilterThreshold)."""
UNASKED: Final[Mapping[str, str]] = {"parquet.filter.dictionary.enabled": "false"}
"""What the reader of a file is to be told with the keys."""


def within(
    keys: RuntimeFilter | None, table: FormatTable, named: Callable[[str], str], *, sensitive: bool
) -> str | None:
    """A condition that is true of all rows of the table but some that equal no key; None if there is nothing to tell.

    named tells what SQL calls a column; sensitive, whether the session tells names apart that differ in case alone.
    """
    if keys is None or keys.null_safe:
        return None
    found = []
    for path, low, high, values in keys.ends(FEW):
        column = table.schema.find(path, case_sensitive=sensitive)
        if len(path) > 1 or _divides(table.specs, column):
            continue
        # Whole numbers are compared with whole numbers as numbers, and dates with dates as days: exactly.
        if any(is_(column.type) and is_(low.type) for is_ in (pt.is_signed_integer, pt.is_date32)):
            found.append(f"({' OR '.join(_conditions(named(path[0]), low, high, values))})")
    return " AND ".join(found) or None


def _divides(specs: Sequence[PartitionSpec], column: Column) -> bool:
    """Whether files have one value of the column each, which the plan has judged, and may not have it in them."""
    return any(
        field.source == column.id and field.transform.name == "identity" for one in specs for field in one.fields
    )


def _conditions(column: str, low: pa.Scalar, high: pa.Scalar, values: pa.Array | None) -> Iterator[str]:
    if values is None:
        yield f"{column} BETWEEN {_literal(low)} AND {_literal(high)}"
        return
    for start in range(0, len(values), AT_ONCE):
        yield f"{column} IN ({', '.join(map(_literal, values[start : start + AT_ONCE]))})"


def _literal(value: pa.Scalar) -> str:
    """A whole number or a date as Spark SQL writes it, whichever it is."""
    if pt.is_date32(value.type):
        return f"date_from_unix_date({value.value})"
    return f"CAST('{value.as_py()}' AS BIGINT)"
