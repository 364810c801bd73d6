"""The least and the greatest key of a join's build side, as a condition on a column.

Law: whatever Spark finds equal to a key within the range is accepted. The ends are compared as literals are, by the
binder's own rules; an end that cannot be expressed is open.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

import pyarrow as pa
from pyarrow import types as pt

from tamis.errors import BindError, FilterInputError
from tamis.predicate.bind import bind
from tamis.predicate.bound import AllOf, Bound, Known, Leaf
from tamis.predicate.keys import has_order
from tamis.predicate.nodes import Compare, Literal, Operator, Ref
from tamis.predicate.schema import Column, Schema
from tamis.predicate.type_names import a_type, is_clock, type_name
from tamis.predicate.units import NANOS_IN_MICRO
from tamis.predicate.values import ValueSet
from tamis.sieve.join.keys import convert

__all__ = ["JoinRange", "describe"]

MAX_SHOWN: Final = 40
"""Characters of a key to show in a text."""


@dataclass(frozen=True, slots=True, eq=False)
class JoinRange:
    """Keys lie in [low, high]; None is unbounded."""

    low: pa.Scalar | None = None
    high: pa.Scalar | None = None

    @classmethod
    def of(cls, low: object, high: object) -> JoinRange:
        """From Python values or Arrow scalars; a null is unbounded."""
        return cls(_scalar(low), _scalar(high))

    @property
    def is_open(self) -> bool:
        """Unbounded on both sides."""
        return self.low is None and self.high is None

    @property
    def text(self) -> str:
        """The range as explain shows it."""
        if self.is_open:
            return "of any value"
        low, high = ("" if end is None else describe(end) for end in (self.low, self.high))
        return f"[{low} … {high}]"

    def accepted(self, column: Column, *, nulls: bool) -> ValueSet | str:
        """The column's values that may equal a key, or why that cannot be said."""
        if not has_order(column.type):
            return f"values of type {type_name(column.type)} have no order"
        accepted = ValueSet.not_null()
        for end, operator in ((self.low, ">="), (self.high, "<=")):
            if end is None:
                continue
            reason = convert(pa.array([], end.type), column.type)
            if isinstance(reason, str):
                return reason
            accepted = accepted.intersect(_side(column, end, operator))  # type: ignore[arg-type] # both are operators
        return ValueSet(accepted.cuts, accepted.inside_first, nulls)


def _side(column: Column, end: pa.Scalar, operator: Operator) -> ValueSet:
    try:
        value: Any = _whole_micros(end, operator).as_py()
        if operator == "<=" and getattr(column.type, "unit", None) == "ns":
            # Spark reads nanoseconds as microseconds: all of the last one may equal the end.
            value, operator = value + timedelta(microseconds=1), "<"
        schema = Schema((Column(column.id, ("x",), column.type),))
        return _values(bind(Compare(operator, Ref(("x",)), Literal(value, end.type)), schema).root)
    except (BindError, OverflowError, TypeError, ValueError):
        return ValueSet.not_null()  # beyond what Python's dates express, or a time of day: open


def _whole_micros(end: pa.Scalar, operator: Operator) -> pa.Scalar:
    """A time in nanoseconds to the microsecond, outwards."""
    if not is_clock(end.type) or end.type.unit != "ns":
        return end
    nanos = end.value
    micros = nanos // NANOS_IN_MICRO if operator == ">=" else -(-nanos // NANOS_IN_MICRO)
    wanted = pa.timestamp("us", end.type.tz) if pt.is_timestamp(end.type) else pa.time64("us")
    return pa.scalar(micros, pa.int64()).cast(wanted)


def _values(node: Bound) -> ValueSet:
    """The values of the one column that node accepts, or more."""
    match node:
        case Leaf(outer=outer):
            return outer
        case Known(value=False):
            return ValueSet.nothing()
        case AllOf(operands=operands):
            accepted = ValueSet.not_null()
            for operand in operands:
                accepted = accepted.intersect(_values(operand))
            return accepted
    return ValueSet.not_null()


def _scalar(value: object) -> pa.Scalar | None:
    if isinstance(value, UUID):
        value = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([value.bytes], pa.binary(16)))[0]
    try:
        scalar = value if isinstance(value, pa.Scalar) else pa.scalar(value)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise FilterInputError(
            f"{value!r} cannot be the end of a range of join keys: {error}", columns=(), reason=str(error)
        ) from error
    if not scalar.is_valid:
        return None
    if not has_order(scalar.type):
        raise FilterInputError(
            f"a range of join keys cannot end at {a_type(scalar.type)}: its values have no order.",
            columns=(),
            reason=f"no order of {scalar.type}",
        )
    return scalar


def describe(scalar: pa.Scalar) -> str:
    """A key for people to read."""
    try:
        value = scalar.as_py()
    except (OverflowError, ValueError):
        value = scalar.value  # a date or timestamp beyond Python's years, as its number
    text = value.hex() if isinstance(value, bytes) else str(value)
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"
