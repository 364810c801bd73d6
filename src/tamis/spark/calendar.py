"""Dates before 1582-10-15 in ORC files, which Spark takes for days of the Julian calendar.

Iceberg writes the days of one calendar, and so its files say nothing of calendars that Spark would understand: for it
they hold Julian days, which it moves to the date of the same name. Law: a date is what its writer meant, or reading
it fails.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from pyarrow import types as pt
from pyspark.sql import Column
from pyspark.sql import functions as f

from tamis.formats.scan import ReadField

__all__ = ["corrected", "with_known_calendar"]

GREGORIAN: Final = "1582-10-15"
"""The first day of the Gregorian calendar: from it on Spark moves nothing."""
CURE: Final = "Rewrite such files as Parquet with the table's own engine, or read without this column."


def with_known_calendar(field: ReadField, ordinary: frozenset[tuple[str, ...]]) -> ReadField:
    """The field; the dates in it that are surely not before 1582-10-15 need no correction."""
    return _known(field, (field.name,), ordinary)


def _known(field: ReadField, path: tuple[str, ...], ordinary: frozenset[tuple[str, ...]]) -> ReadField:
    if field.calendar != "known" and path in ordinary:
        return replace(field, calendar="known")
    if not pt.is_struct(field.type):
        return field
    inside = tuple(_known(child, (*path, child.name), ordinary) for child in field.children)
    return field if inside == field.children else replace(field, children=inside)


def corrected(column: Column, field: ReadField) -> Column:
    """The date that was written, of the one that Spark reads; an error where that cannot be told.

    Spark reads day n as the date whose name n has in the Julian calendar. Of a name, the day there is later than in
    the Gregorian calendar by Y // 100 - Y // 400 - 2 days, for years Y that begin in March: add them, and n is back.
    But a 29th of February that the Gregorian calendar does not have became a 1st of March, like the day after it.
    """
    old = column < f.lit(GREGORIAN).cast("date")
    if field.calendar == "unknown":
        why = "was written by a program whose calendar is not known"
        return f.when(old, _error(column, field, why)).otherwise(column)
    # Years that begin in March: leap days end them.
    year = f.year(f.add_months(column, -2))
    century = (year - f.pmod(year, f.lit(100))) / 100
    cycle = (year - f.pmod(year, f.lit(400))) / 400
    moved = f.date_add(column, (century - cycle - 2).cast("int"))
    leap = (f.pmod(year, f.lit(100)) == 0) & (f.pmod(year, f.lit(400)) != 0)
    lost = leap & (f.month(column) == 3) & (f.day(column) == 1)  # noqa: PLR2004 - March
    why = "is one of two days of which Spark shows the same"
    return f.when(old & lost, _error(column, field, why)).when(old, moved).otherwise(column)


def _error(column: Column, field: ReadField, why: str) -> Column:
    told = f"Spark cannot tell which date column {field.name!r} has: an ORC file has one near "
    return f.raise_error(f.concat(f.lit(told), column.cast("string"), f.lit(f", which {why}. {CURE}"))).cast("date")
