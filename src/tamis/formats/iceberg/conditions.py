"""PyIceberg's expressions as conditions.

Law: the same rows, or an error. Iceberg's `!=`, NOT IN, "not starts with" and "not NaN" are true of NULL, SQL's are
not, and PyIceberg's own scans do now one and now the other: these are refused, with both ways to write them.
Comparisons with floats follow Spark, to which NaN is greater than every number. A value is first brought to the
column's type as PyIceberg does it, which is not always what Spark does; see icevalues.py.
"""

from __future__ import annotations

from typing import Any, Final

from tamis.errors import BindError
from tamis.formats.iceberg.icevalues import value_of
from tamis.predicate.build import ColumnExpression, col, literal
from tamis.predicate.nodes import And, Compare, Constant, Node, Operator, Or, Ref
from tamis.predicate.schema import Column, Schema

__all__ = ["converted"]

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
            connective = And if name == "And" else Or
            return connective(tuple(_node(side, schema) for side in (expression.left, expression.right)))
    if name.startswith("Bound"):
        raise TypeError(f"where is a bound expression of PyIceberg ({name}): give it unbound, as it was written.")
    column = _column(expression.term.name, schema)
    target = ColumnExpression(Ref(column.path)) if column is not None else col(expression.term.name)
    if name in _REFUSED:
        raise _ambiguous(name, str(target), expression)
    return _condition(name, target, expression, column or _in_any_case(expression.term.name, schema))


def _condition(name: str, target: ColumnExpression, expression: Any, column: Column | None) -> Node:  # noqa: ANN401
    match name:
        case "IsNull":
            return target.is_null().node
        case "NotNull":
            return target.is_not_null().node
        case "IsNaN":
            return Compare("=", target.node, literal(float("nan")))
        case "In":
            return target.isin(sorted((value_of(value, column) for value in expression.literals), key=repr)).node
        case "StartsWith":
            return target.startswith(value_of(expression.literal, None)).node
    if name not in _OPERATORS:
        raise TypeError(f"where is {name} of PyIceberg, which tamis does not know. Write it as SQL text.")
    return Compare(_OPERATORS[name], target.node, literal(value_of(expression.literal, column)))


def _column(name: str, schema: Schema) -> Column | None:
    """The column that PyIceberg means: it writes a path with dots."""
    return next((column for column in schema.columns if ".".join(column.path) == name), None)


def _in_any_case(name: str, schema: Schema) -> Column | None:
    """The one column that is meant if case does not matter: what it is not called is found out by binding."""
    folded = [column for column in schema.columns if ".".join(column.path).lower() == name.lower()]
    return folded[0] if len(folded) == 1 else None


def _ambiguous(name: str, term: str, expression: Any) -> BindError:  # noqa: ANN401
    value = "..." if not hasattr(expression, "literal") else repr(expression.literal.value)
    sql = _REFUSED[name].format(term=term, value=value)
    return BindError(
        f"{name} of PyIceberg does not say whether rows with NULL match: to Iceberg they do, to SQL they do not. "
        f'Write where="{sql}" to leave them out, or "{sql} OR {term} IS NULL" to take them.',
        column=term,
        nearest=(),
    )
