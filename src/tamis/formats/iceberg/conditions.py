"""PyIceberg's expressions as conditions.

Law: the same rows, or an error. Iceberg's `!=`, NOT IN, "not starts with" and "not NaN" are true of NULL, SQL's are
not, and PyIceberg's own scans do now one and now the other: these are refused, with both ways to write them.
Comparisons with floats follow Spark, to which NaN is greater than every number.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from pyarrow import types as pt

from tamis.errors import BindError
from tamis.predicate.build import ColumnExpression, col, literal
from tamis.predicate.nodes import And, Compare, Constant, Node, Operator, Or, Ref
from tamis.predicate.schema import Column, Schema

__all__ = ["converted"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_OPERATORS: Final[dict[str, Operator]] = {
    "EqualTo": "=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}
_REFUSED: Final = {
    "NotEqualTo": "{term} != {value}",
    "NotIn": "{term} NOT IN ({value})",
    "NotStartsWith": "{term} NOT LIKE '...%'",
    "NotNaN": "{term} != double('NaN')",
}


def converted(expression: Any, schema: Schema) -> Node:  # noqa: ANN401 - PyIceberg's classes, known by their names
    """The condition that a PyIceberg expression states; TypeError or BindError if it cannot be stated in SQL."""
    from pyiceberg.expressions.visitors import rewrite_not

    return _node(rewrite_not(expression), schema)


def _node(expression: Any, schema: Schema) -> Node:  # noqa: ANN401 - as converted
    name = type(expression).__name__
    match name:
        case "AlwaysTrue" | "AlwaysFalse":
            return Constant(value=name == "AlwaysTrue")
        case "And" | "Or":
            kind = And if name == "And" else Or
            return kind(tuple(_node(side, schema) for side in (expression.left, expression.right)))
    if name.startswith("Bound"):
        raise TypeError(f"where is a bound expression of PyIceberg ({name}): give it unbound, as it was written.")
    column = _column(expression, schema)
    target = ColumnExpression(Ref(column.path)) if column is not None else col(expression.term.name)
    if name in _REFUSED:
        raise _ambiguous(name, str(target), expression)
    return _condition(name, target, expression, column)


def _condition(name: str, target: ColumnExpression, expression: Any, column: Column | None) -> Node:  # noqa: ANN401
    match name:
        case "IsNull":
            return target.is_null().node
        case "NotNull":
            return target.is_not_null().node
        case "IsNaN":
            return Compare("=", target.node, literal(float("nan")))
        case "In":
            return target.isin(sorted((_value(one, column) for one in expression.literals), key=repr)).node
        case "StartsWith":
            return target.startswith(_value(expression.literal, column)).node
    if name not in _OPERATORS:
        raise TypeError(f"where is {name} of PyIceberg, which tamis does not know. Write it as SQL text.")
    return Compare(_OPERATORS[name], target.node, literal(_value(expression.literal, column)))


def _column(expression: Any, schema: Schema) -> Column | None:  # noqa: ANN401
    """The column that PyIceberg means: it writes a path with dots."""
    wanted = expression.term.name
    return next((column for column in schema.columns if ".".join(column.path) == wanted), None)


def _value(given: Any, column: Column | None) -> Any:  # noqa: ANN401 - any value of SQL
    """A literal's value, as the builder takes it."""
    try:
        return _python_value(given, column)
    except (OverflowError, ValueError) as error:
        raise BindError(
            f"cannot compare with {given!r} of PyIceberg: {error}. Write the condition as SQL text.",
            column="",
            nearest=(),
        ) from error


def _python_value(literal: Any, column: Column | None) -> Any:  # noqa: ANN401 - as _value
    value = literal.value
    match type(literal).__name__:
        case "DateLiteral":
            return date(1970, 1, 1) + timedelta(days=value)
        case "TimestampLiteral":
            moment = _EPOCH + timedelta(microseconds=value)
            zoned = column is not None and pt.is_timestamp(column.type) and column.type.tz is not None
            return moment if zoned else moment.replace(tzinfo=None)
        case "TimeLiteral":
            return (datetime.min + timedelta(microseconds=value)).time()  # noqa: DTZ901 - a time of day has no zone
        case "UUIDLiteral":
            return UUID(bytes=value)
    if not isinstance(value, (bool, int, float, Decimal, str, bytes, date, time)):
        raise ValueError(f"it is a {type(literal).__name__}")  # noqa: TRY004 - the class is right, the value is not
    return value


def _ambiguous(name: str, term: str, expression: Any) -> BindError:  # noqa: ANN401
    value = "..." if not hasattr(expression, "literal") else repr(expression.literal.value)
    sql = _REFUSED[name].format(term=term, value=value)
    return BindError(
        f"{name} of PyIceberg does not say whether rows with NULL match: to Iceberg they do, to SQL they do not. "
        f'Write where="{sql}" to leave them out, or "{sql} OR {term} IS NULL" to take them.',
        column=term,
        nearest=(),
    )
