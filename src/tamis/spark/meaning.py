"""Settings of a session under which the text of a condition means something else than it was planned for.

A plan is made for the text as Spark reads it by default. Files were pruned by that meaning, so a session that reads
the text otherwise would filter by one condition what was pruned by another. A setting counts only where the text has
what it changes: most conditions are the same under all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyarrow import types as pt

from tamis.errors import BindError, SessionSettingError
from tamis.predicate.bind import bind
from tamis.predicate.bound import BoundPredicate
from tamis.predicate.literals import LiteralColumn
from tamis.predicate.nodes import Call, In, Node, operands_of
from tamis.predicate.schema import Schema
from tamis.predicate.sql.parse import parse
from tamis.predicate.type_names import is_text
from tamis.spark.session import CASE_SENSITIVE, is_case_sensitive, is_on

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["check_meaning"]

ANSI: Final = "spark.sql.ansi.enabled"


@dataclass(frozen=True, slots=True)
class _Setting:
    """A setting, the value that planning takes for granted, and which conditions it concerns."""

    name: str
    taken: str
    concerns: Callable[[BoundPredicate], bool]
    changes: str
    """What it changes, as in: "it changes what ... means"."""
    ansi: str | None = None
    """The value of ANSI under which alone it has an effect."""
    surely: Callable[[BoundPredicate], bool] | None = None
    """Asked last, for it takes as long as to parse the condition: whether it concerns it indeed."""


def _has(pattern: str) -> Callable[[BoundPredicate], bool]:
    compiled = re.compile(pattern, re.IGNORECASE | re.DOTALL)
    return lambda predicate: compiled.search(predicate.sql) is not None


def _has_moment(predicate: BoundPredicate) -> bool:
    return any(pt.is_date(column.type) or pt.is_timestamp(column.type) for column in predicate.columns)


def _lists_texts(predicate: BoundPredicate) -> bool:
    """Whether a list has a text in it for a column of another type.

    By ANSI rules the text becomes a value of the column's type, as beside `=`. Without them the column becomes a
    text, and 5 is not in ('05'), nor 5.50 in ('5.5').
    """
    texts = {_folded(column.path) for column in predicate.columns if is_text(column.type) or column.type == pa.uuid()}
    todo: list[Node] = [parse(predicate.sql)]
    while todo:
        node = todo.pop()
        todo += operands_of(node)
        if isinstance(node, In) and _has_text(node):
            term = node.term
            is_text_column = not isinstance(term, Call) and _folded(term.path) in texts
            if not is_text_column and not (isinstance(term, Call) and term.function == "left"):
                return True
    return False


def _has_text(node: In) -> bool:
    if isinstance(node.literals, LiteralColumn):
        return node.literals.type is not None and is_text(node.literals.type)
    return any(is_text(literal.type) for literal in node.literals)


def _folded(path: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.lower() for name in path)


SETTINGS: Final = (
    _Setting(
        "spark.sql.parser.escapedStringLiterals",
        "false",
        _has(r"\\"),
        "a backslash in a text",
    ),
    _Setting(
        "spark.sql.ansi.doubleQuotedIdentifiers",
        "false",
        _has('"'),
        "what stands in double quotes",
        "true",
    ),
    _Setting(
        "spark.sql.legacy.consecutiveStringLiterals.enabled",
        "false",
        _has("'[^']*''|\"[^\"]*\"\""),
        "a quote that is written twice",
    ),
    _Setting(
        "spark.sql.legacy.exponentLiteralAsDecimal.enabled",
        "false",
        _has(r"[\d.]e[+-]?\d+\b"),
        "a number with an exponent",
    ),
    _Setting(
        "spark.sql.legacy.allowNegativeScaleOfDecimal",
        "false",
        _has(r"[\d.]e[+-]?\d+bd\b"),
        "a decimal with an exponent",
    ),
    _Setting(
        "spark.sql.legacy.typeCoercion.datetimeToString.enabled",
        "false",
        _has_moment,
        "the comparison of a date or time with a text",
        "false",
    ),
    _Setting(
        ANSI,
        "true",
        _has(r"""\bin\b.*['"]"""),
        "a text in a list of numbers, dates or times",
        surely=_lists_texts,
    ),
    _Setting("spark.sql.timestampType", "TIMESTAMP_LTZ", _has(r"timestamp(?!_)"), "the word timestamp"),
    _Setting("spark.sql.decimalOperations.allowPrecisionLoss", "true", _has("[*/%+-]"), "arithmetic on decimals"),
    _Setting("spark.sql.legacy.literal.pickMinimumPrecision", "true", _has("[*/%+-]"), "arithmetic on decimals"),
    _Setting(
        "spark.sql.legacy.decimal.retainFractionDigitsOnTruncate",
        "false",
        _has("[*/%+-]"),
        "arithmetic on decimals",
    ),
    _Setting("spark.sql.legacy.interval.enabled", "false", _has(r"\binterval\b"), "an interval"),
    _Setting("spark.sql.legacy.nullInEmptyListBehavior", "false", _has(r"\(\s*\)"), "a list without members"),
)


def check_meaning(predicate: BoundPredicate, schema: Schema, spark: SparkSession) -> None:
    """SessionSettingError if the session reads the condition's text otherwise than it was planned."""
    if not predicate.columns:
        return
    for setting in SETTINGS:
        concerned = setting.concerns(predicate) and _differs(setting, spark)
        if concerned and (setting.surely is None or setting.surely(predicate)):
            value = str(spark.conf.get(setting.name))
            raise SessionSettingError(
                f"this session has {setting.name}={value}, which changes what {setting.changes} means in the "
                f"condition: files were pruned by its default meaning. Set it to {setting.taken}: "
                f"spark.conf.set({setting.name!r}, {setting.taken!r}).",
                setting=setting.name,
                value=value,
            )
    if is_case_sensitive(spark):
        _check_names(predicate, schema)
    elif schema.has_twins:
        _check_twins(predicate, schema)


def _differs(setting: _Setting, spark: SparkSession) -> bool:
    if str(spark.conf.get(setting.name, setting.taken)).strip().lower() == setting.taken.lower():
        return False
    return setting.ansi is None or is_on(spark, ANSI, "true") is (setting.ansi == "true")


def _check_twins(predicate: BoundPredicate, schema: Schema) -> None:
    """A session that ignores case cannot tell which of two columns a name means."""
    try:
        bind(parse(predicate.sql), schema, time_zone=predicate.time_zone)
    except BindError as error:
        raise SessionSettingError(
            f"this session ignores the case of names, and the condition names one of several columns that differ in "
            f"it alone: {', '.join(error.nearest)}. Set {CASE_SENSITIVE} to true: "
            f"spark.conf.set({CASE_SENSITIVE!r}, 'true').",
            setting=CASE_SENSITIVE,
            value="false",
        ) from error


def _check_names(predicate: BoundPredicate, schema: Schema) -> None:
    """A session that tells cases apart must find the columns that were planned for, under the very names."""
    try:
        bound = bind(parse(predicate.sql), schema, case_sensitive=True, time_zone=predicate.time_zone)
    except BindError as error:
        raise SessionSettingError(
            f"this session has {CASE_SENSITIVE}=true, and the condition names a column in other letters than the "
            f"table: {error} Write the names as they are, or plan with spark=..., which heeds the session.",
            setting=CASE_SENSITIVE,
            value="true",
        ) from error
    if {column.id for column in bound.columns} != {column.id for column in predicate.columns}:
        raise SessionSettingError(
            f"this session has {CASE_SENSITIVE}=true, and the condition names other columns then than it was planned "
            "for. Plan with spark=... or with case_sensitive=True.",
            setting=CASE_SENSITIVE,
            value="true",
        )
