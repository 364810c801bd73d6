"""Versions of rows become rows, by Spark's own sort: for whatever Spark reads, and however much of it there is.

Rows of a section that have one key are versions of one row. A window over them, in their order, tells the newest or
the oldest, or what each column is put together to. Law: as if the versions were merged one by one, in their order,
as tamis.formats.scan.Merging has it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from pyarrow import types as pt
from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as f

from tamis.formats.scan import Merging, Newer, OwnNames, ReadField, Scan
from tamis.predicate.names import backticked
from tamis.spark.types import output_type

__all__ = ["FUNCTIONS", "SECTION", "VERSION_FILE", "merged", "without_removals"]

SECTION: Final = "section"
"""The section of a row's file."""
VERSION_FILE: Final = "version_file"
"""The place of a row's file among those that are read."""
_SIGN: Final = "sign_{}"
_PLACE: Final = "place"
_COUNT: Final = "count"

Made = Callable[[Column, WindowSpec, ReadField, str], Column]


def merged(scan: Scan, frame: DataFrame) -> DataFrame:
    """The rows of a frame of versions, with the fields alone.

    The frame has the fields, the hidden ones, SECTION, and VERSION_FILE: of equal versions the later file's is newer.
    """
    assert scan.merging is not None  # noqa: S101 - for the type checker: there are merged groups
    merging, own = scan.merging, scan.own
    fields = {field.name: field for field in (*scan.fields, *scan.hidden)}
    grouping, frame = _grouping(merging, fields, own, frame)
    file = f.col(own(VERSION_FILE))
    order = [*(one for newer in merging.order for one in _ordering(newer, fields, oldest=True)), file.asc()]
    backwards = [*(one for newer in merging.order for one in _ordering(newer, fields, oldest=False)), file.desc()]
    removes = f.col(backticked(merging.kind)).isin(*merging.removing)
    if merging.ignores_removals:
        frame = frame.filter(~removes)
    columns = [field.name for field in scan.fields if field.name in frame.columns]
    groups = Window.partitionBy(*grouping)
    if merging.removal is not None:
        # Of a row that has but one version, a removal is nothing; with others it cannot be merged.
        frame = frame.withColumn(own(_COUNT), f.count("*").over(groups))
        refused = f.raise_error(f.lit(merging.removal)).cast("boolean")
        frame = frame.filter(f.when(removes & (f.col(own(_COUNT)) > 1), refused).otherwise(~removes))
    chosen = groups.orderBy(*(order if merging.engine == "oldest" else backwards))
    place = f.row_number().over(chosen).alias(own(_PLACE))
    if merging.engine == "by column":
        whole = groups.orderBy(*order).rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
        made = [
            _made(f.col(backticked(name)), whole, fields[name], merging.functions.get(name)).alias(name, metadata={})
            for name in columns
        ]
        frame = frame.select(*made, place).filter(f.col(own(_PLACE)) == 1)
    else:
        frame = frame.withColumn(own(_PLACE), place).filter((f.col(own(_PLACE)) == 1) & ~removes)
    return frame.select(*(f.col(backticked(name)) for name in columns))


def without_removals(frame: DataFrame, kind: str, removing: Sequence[int]) -> DataFrame:
    """The rows that are none of these kinds."""
    return frame.filter(~f.col(backticked(kind)).isin(*removing))


def _grouping(
    merging: Merging, fields: Mapping[str, ReadField], own: OwnNames, frame: DataFrame
) -> tuple[list[Column], DataFrame]:
    """What versions of one row share. To Spark -0.0 is 0.0, and to the writer two keys."""
    grouping, signs = [f.col(own(SECTION))], {}
    for number, name in enumerate(merging.keys):
        grouping.append(f.col(backticked(name)))
        if pt.is_floating(fields[name].type):
            signs[own(_SIGN.format(number))] = _is_minus_zero(f.col(backticked(name)))
    return [*grouping, *map(f.col, signs)], frame.withColumns(signs) if signs else frame


def _ordering(newer: Newer, fields: Mapping[str, ReadField], *, oldest: bool) -> list[Column]:
    """What to sort by, so that the oldest version comes first, or the newest.

    NULL is the oldest, whatever the order of values is; of floats -0.0 is before 0.0, as Java compares them.
    """
    column = f.col(backticked(newer.column))
    found = [column, ~_is_minus_zero(column)] if pt.is_floating(fields[newer.column].type) else [column]
    if oldest:
        return [one.desc_nulls_first() if newer.descending else one.asc_nulls_first() for one in found]
    return [one.asc_nulls_last() if newer.descending else one.desc_nulls_last() for one in found]


def _is_minus_zero(number: Column) -> Column:
    return f.when(number == 0, number.cast("string") == "-0.0").otherwise(f.lit(False))  # noqa: FBT003 - a column


def _made(column: Column, versions: WindowSpec, field: ReadField, function: str | None) -> Column:
    """The value of a column, of all versions of a row; of a key any version has it."""
    if function is None:
        return f.last(column).over(versions)
    name, _, argument = function.partition(" ")
    return FUNCTIONS[name](column, versions, field, argument)


def _last(column: Column, versions: WindowSpec, _: ReadField, __: str, *, nulls: bool) -> Column:
    return f.last(column, ignorenulls=not nulls).over(versions)


def _first(column: Column, versions: WindowSpec, _: ReadField, __: str, *, nulls: bool) -> Column:
    return f.first(column, ignorenulls=not nulls).over(versions)


def _folded(
    column: Column, versions: WindowSpec, field: ReadField, _: str, *, step: Callable[[Column, Column], Column]
) -> Column:
    """Values put together one by one, in order, in the column's own type; NULL where all are NULL."""
    kind = output_type(field)
    values = f.collect_list(column).over(versions)  # which leaves NULLs out
    rest = f.slice(values, 2, f.greatest(f.size(values) - 1, f.lit(0)))
    return f.aggregate(rest, f.get(values, f.lit(0)), lambda a, b: step(a, b).cast(kind))


def _extreme(column: Column, versions: WindowSpec, field: ReadField, _: str, *, greatest: bool) -> Column:
    if pt.is_floating(field.type):
        # Of -0.0 and 0.0, the same to Spark, Java takes the one with the sign that fits.
        signed = f.struct(column.alias("v"), (~_is_minus_zero(column)).alias("s"))
        some = f.when(column.isNotNull(), signed)
        return (f.max(some) if greatest else f.min(some)).over(versions).getField("v")
    return (f.max(column) if greatest else f.min(column)).over(versions)


def _joined(column: Column, versions: WindowSpec, field: ReadField, delimiter: str) -> Column:
    """Texts one after the other; an empty one is left out, if there is another."""

    def step(texts: Column, text: Column) -> Column:
        both = f.concat(texts, f.lit(delimiter), text)
        return f.when(f.length(text) == 0, texts).when(f.length(texts) == 0, text).otherwise(both)

    return _folded(column, versions, field, delimiter, step=step)


FUNCTIONS: Final[Mapping[str, Made]] = {
    "last_value": partial(_last, nulls=True),
    "last_non_null_value": partial(_last, nulls=False),
    "first_value": partial(_first, nulls=True),
    "first_non_null_value": partial(_first, nulls=False),
    "first_not_null_value": partial(_first, nulls=False),
    "sum": partial(_folded, step=lambda a, b: a + b),
    "product": partial(_folded, step=lambda a, b: a * b),
    "max": partial(_extreme, greatest=True),
    "min": partial(_extreme, greatest=False),
    "bool_and": lambda column, versions, _, __: f.bool_and(column).over(versions),
    "bool_or": lambda column, versions, _, __: f.bool_or(column).over(versions),
    "listagg": _joined,
}
"""What a column's values can be put together by, under the names of Paimon's `fields.*.aggregate-function`."""
