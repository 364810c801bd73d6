"""Intervals of constants: `INTERVAL 3 MONTHS`, `INTERVAL '1-2' YEAR TO MONTH`, sums and negations of them.

Spark has two kinds, of months and of microseconds, and refuses to mix them. What is not surely one of them, such as
an interval with a column in it, is None.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from sqlglot import exp

from tamis.predicate.compare.calendar import Interval
from tamis.predicate.sql.units import INTERVAL_MICROS, INTERVAL_MONTHS

__all__ = ["interval"]

_COUNT: Final = re.compile(r"[+-]?[0-9]{1,18}")
_SECONDS: Final = re.compile(r"[+-]?[0-9]{1,12}(\.[0-9]{1,6})?")
_YEARS_MONTHS: Final = re.compile(r"([+-]?)([0-9]{1,9})-([0-9]|1[01])")
_DAYS: Final = {"week", "day"}


def interval(expression: exp.Expression) -> Interval | None:
    """The interval that expression always is; None if it is none, or too long for Spark."""
    match expression:
        case exp.Paren():
            return interval(expression.this)
        case exp.Neg():
            inside = interval(expression.this)
            return None if inside is None else -inside
        case exp.Add() | exp.Sub():
            left, right = interval(expression.this), interval(expression.expression)
            if left is None or right is None:
                return None
            return left + (right if isinstance(expression, exp.Add) else -right)
        case exp.Interval():
            return _written(expression)
    return None


def _written(expression: exp.Interval) -> Interval | None:
    value, unit = expression.this, expression.args.get("unit")
    sign = 1
    if isinstance(value, exp.Neg):
        sign, value = -1, value.this
    if not isinstance(value, exp.Literal):
        return None
    text = str(value.this).strip()
    if isinstance(unit, exp.IntervalSpan):
        made = _span(text, unit)
    elif isinstance(unit, exp.Var):
        made = _single(text, unit.name.lower())
    else:
        made = None
    return None if made is None else (made if sign > 0 else -made).checked()


def _single(text: str, word: str) -> Interval | None:
    unit = word.removesuffix("s")
    if unit == "second" and _SECONDS.fullmatch(text):
        return Interval(None, int(Decimal(text) * INTERVAL_MICROS[unit]), only_days=False)
    if not _COUNT.fullmatch(text):
        return None
    if unit in INTERVAL_MONTHS:
        return Interval(int(text) * INTERVAL_MONTHS[unit])
    if unit in INTERVAL_MICROS:
        return Interval(None, int(text) * INTERVAL_MICROS[unit], only_days=unit in _DAYS)
    return None


def _span(text: str, unit: exp.IntervalSpan) -> Interval | None:
    """Only YEAR TO MONTH; those of days and clocks are left to Spark."""
    match = _YEARS_MONTHS.fullmatch(text)
    if match is None or (unit.this.name.lower(), unit.expression.name.lower()) != ("year", "month"):
        return None
    months = int(match[2]) * INTERVAL_MONTHS["year"] + int(match[3])
    return Interval(-months if match[1] == "-" else months)
