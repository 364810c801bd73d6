"""The columns of rows that a statement changes: old values, and new ones where a clause says so, fitted to the table.

Law: every value is of the row as it was, whatever else is assigned; a column that nobody assigns keeps its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql import types as t

from tamis.errors import BindError
from tamis.formats.edit import WriteField
from tamis.predicate.assigning import Assignment
from tamis.spark.fitting import Fit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Value", "analysed", "bracketed", "check_conditions", "new_value", "value_types"]

Value = tuple[Assignment, t.DataType]
"""What is assigned, and the type of the value; of a default it is not used."""
NON_DETERMINISTIC = "INVALID_NON_DETERMINISTIC_EXPRESSIONS"


def value_types(frame: DataFrame, values: Sequence[Assignment], where: str) -> list[Value]:
    """Each value with the type that it has over the frame's columns; BindError for one that Spark does not take."""
    asked = [one for one in values if not one.is_default]
    types: dict[Assignment, t.DataType] = {}
    if asked:
        columns = [f.expr(bracketed(one.sql)).alias(f"v{place}") for place, one in enumerate(asked)]
        try:
            fields = frame.select(*columns).schema.fields
        except AnalysisException:
            for one in asked:
                analysed(lambda one=one: frame.select(f.expr(bracketed(one.sql))).schema, one.sql, where)  # type: ignore[misc]
            raise
        types = {one: field.dataType for one, field in zip(asked, fields, strict=True)}
    return [(one, types.get(one, t.NullType())) for one in values]


def analysed(work: Callable[[], object], text: str, where: str) -> None:
    """BindError, with Spark's own words, if Spark does not take the text."""
    try:
        work()
    except AnalysisException as error:
        raise _refused(error, text, where) from error


def check_conditions(spark: SparkSession, frame: DataFrame, texts: Sequence[str], where: str) -> None:
    """BindError for a condition that Spark does not take over the frame's columns, or that is not deterministic.

    A condition that may answer otherwise when it is asked again cannot be relied on: Spark's own statements refuse
    it as well. Spark tells by the condition of a join, where it takes no such.
    """
    one = spark.range(1).select(f.lit(1).alias("__tamis_one"))

    def asked(condition: str) -> object:
        frame.where(f.expr(condition)).schema  # noqa: B018 - analysed here
        return frame.join(one, f.expr(condition), "left_semi").schema

    if not texts:
        return
    try:
        asked(" AND ".join(map(bracketed, texts)))
    except AnalysisException:
        for text in texts:
            try:
                asked(bracketed(text))
            except AnalysisException as error:
                if _condition_of(error) == NON_DETERMINISTIC:
                    raise BindError(
                        f"the condition of {where} is not deterministic: {text}. It may answer otherwise when it is "
                        "asked again, and nobody could say which rows were meant. Compute such a value once, into a "
                        "column.",
                        column=None,
                        nearest=(),
                    ) from error
                if "SUBQUERY" not in str(_condition_of(error)):  # a subquery cannot be asked in a join
                    raise _refused(error, text, where) from error


def new_value(
    fit: Fit, one: WriteField, old: tuple[Column, t.DataType] | None, values: Sequence[Value], depth: int = 0
) -> Column:
    """The value of a column, or of a part of one, when these are assigned; without an old one, the default."""
    mine = [value for value in values if len(value[0].path) == depth + 1]
    if mine:
        (assignment, kind), *_ = mine
        dotted = ".".join(assignment.path)
        if assignment.is_default:
            return fit.missing(one, dotted)
        return fit.fitted(f.expr(bracketed(assignment.sql)), kind, one, dotted)
    if not values:
        return fit.missing(one, one.name) if old is None else fit.fitted(*old, one, one.name)
    parts = []
    for child in one.children:
        inside = [value for value in values if value[0].path[depth + 1] == child.name]
        field = None if old is None else _field(fit, old, child)
        parts.append(new_value(fit, child, field, inside, depth + 1).alias(child.name, metadata={}))
    return f.struct(*parts)


def _field(fit: Fit, old: tuple[Column, t.DataType], child: WriteField) -> tuple[Column, t.DataType] | None:
    """A field of an old struct; None if it has none of the name. Of a NULL struct each is NULL."""
    column, kind = old
    field = fit.find(kind.fields, child) if isinstance(kind, t.StructType) else None
    return None if field is None else (column.getField(field.name), field.dataType)


def bracketed(sql: str) -> str:
    """The text as one expression; a comment in its last line does not hide the bracket."""
    return f"({sql}\n)"


def _condition_of(error: AnalysisException) -> str:
    return str(error.getCondition() or "")


def _refused(error: AnalysisException, text: str, where: str) -> BindError:
    reason = str(error).partition(";")[0].partition("\n")[0]
    return BindError(f"Spark cannot read {text!r} in {where}: {reason}", column=None, nearest=())
