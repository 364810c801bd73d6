"""Values that Spark has no type for by default, as a reader asks to see them: times of day, times in nanoseconds.

In files and in metadata both are whole numbers, and as numbers they are read: microseconds of the day, nanoseconds
since 1970. So deletes by value compare what was written. Then, before rows are filtered, they become what Spark
compares: TIME, and timestamps to the microsecond, of two the earlier. What is asked for in the place of TIME is made
of the rows that are left. Law: a condition means the same, whatever its columns are shown as.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyarrow import types as pt
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from tamis.errors import SessionSettingError
from tamis.formats.scan import ReadField, Scan, has_counts
from tamis.predicate.bound import BoundPredicate
from tamis.predicate.names import backticked
from tamis.predicate.type_names import is_list
from tamis.spark.session import TIME_TYPE, is_on
from tamis.spark.types import moment, output_type, unreadable_column

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Ways", "as_compared", "as_numbers", "as_shown", "check_shown", "chosen_ways", "shown_as"]

_SECOND: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Ways:
    """How columns are shown for which Spark has no type by default."""

    shown: Mapping[str, str]
    """By the table's name of a type, Spark's name of the one that is shown. What is not here is not read."""
    has_time: bool
    """Whether the session has the type TIME."""


def chosen_ways(
    types: Mapping[str, str] | None, predicate: BoundPredicate, spark: SparkSession, *, filters: bool
) -> Ways:
    """What is asked for, and TIME where the session has it; SessionSettingError for what needs it where it is not."""
    shown = dict(types or {})
    if is_on(spark, TIME_TYPE):
        return Ways({"time": "time", **shown}, has_time=True)
    named = next((column.name for column in predicate.columns if pt.is_time(column.type)), None) if filters else None
    if shown.get("time") == "time" or (named is not None and "time" in shown):
        what = "types= asks for it" if named is None else f"the condition compares {named} as one"
        raise SessionSettingError(
            f"this session has no TIME type, and {what}. Set {TIME_TYPE} to true: "
            f"spark.conf.set({TIME_TYPE!r}, 'true').",
            setting=TIME_TYPE,
            value="false",
        )
    return Ways(shown, has_time=False)


def as_numbers(scan: Scan) -> Scan:
    """The scan, with numbers in the place of all times of day, and of times in nanoseconds."""

    def numbered(fields: Sequence[ReadField]) -> tuple[ReadField, ...]:
        return tuple(map(_numbered, fields))

    changed = numbered((*scan.fields, *scan.hidden))
    if not any(map(has_counts, changed)):
        return scan
    counted = {field.name for field in changed if field.counts is not None}
    return replace(
        scan,
        fields=changed[: len(scan.fields)],
        hidden=changed[len(scan.fields) :],
        groups=tuple(replace(group, fields=numbered(group.fields)) for group in scan.groups),
        constants={
            name: values.cast(pa.int64()) if name in counted else values for name, values in scan.constants.items()
        },
        equality=tuple(
            replace(
                part,
                groups=tuple(replace(group, fields=numbered(group.fields)) for group in part.groups),
            )
            for part in scan.equality
        ),
    )


def _numbered(field: ReadField) -> ReadField:
    kind = field.type
    if _name(kind):
        default = None if field.default is None else field.default.cast(pa.int64())
        return replace(field, type=pa.int64(), counts=kind, default=default)
    inside = tuple(_numbered(child) for child in field.children)
    if not any(map(has_counts, inside)):
        return field
    if pt.is_struct(kind):
        kind = pa.struct([pa.field(child.name, child.type) for child in inside])
    elif pt.is_map(kind):
        if _has_nanos(inside[0]):
            return field  # two keys may have one microsecond
        kind = pa.map_(inside[0].type, inside[1].type)
    elif is_list(kind):
        kind = pa.list_(inside[0].type)
    return replace(field, type=kind, children=inside)


def check_shown(field: ReadField, ways: Ways, inside: str = "") -> None:
    """UnreadableColumnError for a column, or what is inside it, of which nobody said as what it is shown."""
    if field.counts is not None and _name(field.counts) not in ways.shown:
        raise unreadable_column(f"{inside}{field.name}", field.described)
    for child in field.children:
        check_shown(child, ways, f"{inside}{field.name}.")


def _name(kind: pa.DataType) -> str:
    if pt.is_timestamp(kind) and kind.unit == "ns":
        return "timestamp_ns" if kind.tz is None else "timestamptz_ns"
    return "time" if pt.is_time(kind) else ""


def _has_nanos(field: ReadField) -> bool:
    return (field.counts is not None and pt.is_timestamp(field.counts)) or any(map(_has_nanos, field.children))


def as_compared(frame: DataFrame, fields: Sequence[ReadField], ways: Ways) -> DataFrame:
    """The rows, with what Spark compares in the place of numbers."""

    def change(number: Column, kind: pa.DataType) -> Column:
        if not pt.is_timestamp(kind):
            return _time(number) if ways.has_time else number
        # Towards the earlier: div goes towards 1970, and before it leaves a rest below zero.
        late = f.when(number % 1000 < 0, f.lit(1)).otherwise(f.lit(0))
        return moment(f.call_function("div", number, f.lit(1000)) - late, kind)

    return _changed(frame, fields, change)


def as_shown(frame: DataFrame, fields: Sequence[ReadField], ways: Ways) -> DataFrame:
    """The rows, with what is asked for in the place of what Spark compares."""
    asked = ways.shown.get("time", "time")

    def change(column: Column, kind: pa.DataType) -> Column:
        if pt.is_timestamp(kind):
            return column
        if asked == "bigint":
            return _number(column) if ways.has_time else column
        return column.cast("string") if ways.has_time else _text(column)

    return frame if asked == "time" else _changed(frame, fields, change)


def shown_as(field: ReadField, ways: Ways) -> t.DataType:
    """The type of a column that is shown."""
    if field.counts is not None:
        if pt.is_timestamp(field.counts):
            return t.TimestampNTZType() if field.counts.tz is None else t.TimestampType()
        times = {"time": t.TimeType(6), "bigint": t.LongType(), "string": t.StringType()}
        return times[ways.shown["time"]]
    if not has_counts(field):
        return output_type(field)
    inside = [shown_as(child, ways) for child in field.children]
    if pt.is_struct(field.type):
        return t.StructType([t.StructField(c.name, kind) for c, kind in zip(field.children, inside, strict=True)])
    return t.MapType(inside[0], inside[1]) if pt.is_map(field.type) else t.ArrayType(inside[0])


_Change = Callable[[Column, pa.DataType], Column]


def _changed(frame: DataFrame, fields: Sequence[ReadField], change: _Change) -> DataFrame:
    """The rows, with all that counts something changed, at any depth."""
    by_name = {field.name: field for field in fields if has_counts(field)}
    if by_name.keys().isdisjoint(frame.columns):
        return frame
    columns = []
    for name in frame.columns:
        column = f.col(backticked(name))
        columns.append(_inside(column, by_name[name], change).alias(name, metadata={}) if name in by_name else column)
    return frame.select(*columns)


def _inside(column: Column, field: ReadField, change: _Change) -> Column:
    if field.counts is not None:
        return change(column, field.counts)
    if not has_counts(field):
        return column
    if pt.is_struct(field.type):
        parts = [_inside(column.getField(c.name), c, change).alias(c.name, metadata={}) for c in field.children]
        return f.when(column.isNotNull(), f.struct(*parts))
    if pt.is_map(field.type):
        key, value = field.children
        values = f.transform_values(column, lambda _, element: _inside(element, value, change))
        return f.transform_keys(values, lambda element, _: _inside(element, key, change))
    return f.transform(column, lambda element: _inside(element, field.children[0], change))


def _parts(number: Column) -> tuple[Column, Column, Column]:
    """Hours, minutes, and the microseconds of the minute."""
    hour, minute = (f.call_function("div", number, f.lit(unit * _SECOND)) for unit in (3600, 60))
    return hour, minute % 60, number % (60 * _SECOND)


def _time(number: Column) -> Column:
    hour, minute, rest = _parts(number)
    second = (rest.cast("decimal(8,0)") * f.lit("0.000001").cast("decimal(7,6)")).cast("decimal(16,6)")
    return f.call_function("make_time", hour.cast("int"), minute.cast("int"), second)


def _number(time: Column) -> Column:
    second = f.date_part(f.lit("SECOND"), time) * _SECOND
    return (f.hour(time) * 60 + f.minute(time)).cast("bigint") * (60 * _SECOND) + second.cast("bigint")


def _text(number: Column) -> Column:
    """As Spark writes a TIME: a fraction without the zeros that end it, and none if it is zero."""
    hour, minute, rest = _parts(number)
    second = f.call_function("div", rest, f.lit(_SECOND))
    whole = [f.lpad(one.cast("string"), 2, "0") for one in (hour, minute, second)]
    digits = f.concat(f.lit("."), f.lpad((rest % _SECOND).cast("string"), 6, "0"))
    fraction = f.when(rest % _SECOND == 0, f.lit("")).otherwise(f.regexp_replace(digits, "0+$", ""))
    return f.concat(f.concat_ws(":", *whole), fraction)
