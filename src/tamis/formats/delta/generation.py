"""Generation expressions, as far as a partition value of one says which values its source has.

Law: an expression that is not understood says nothing. One that is understood names its source column, and what the
generated value tells of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from tamis.predicate.names import split_name

__all__ = ["Generated", "Kind", "parse_expression"]

Kind = Literal["identity", "date", "year", "month", "day", "hour", "format", "substring", "trunc"]

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<name>(?:`(?:[^`]|``)+`|[A-Za-z_]\w*)(?:\s*\.\s*(?:`(?:[^`]|``)+`|[A-Za-z_]\w*))*)"
    r"|(?P<number>\d+)|'(?P<text>[^'\\]*)'|\"(?P<quoted>[^\"\\]*)\"|(?P<mark>[(),]))"
)
_UNITS: Final = {
    "year": "year",
    "yyyy": "year",
    "yy": "year",
    "quarter": "quarter",
    "month": "month",
    "mon": "month",
    "mm": "month",
    "week": "week",
    "day": "day",
    "dd": "day",
    "hour": "hour",
    "minute": "minute",
    "second": "second",
    "millisecond": "second",
    "microsecond": "second",
}
"""Of trunc and date_trunc; what is finer than a second is taken for one, which is wider."""
_DATE_UNITS: Final = frozenset({"year", "quarter", "month", "week"})
_FORMATS: Final = re.compile(r"yyyy(?:[^A-Za-z']?MM(?:[^A-Za-z']?dd(?:[^A-Za-z']?HH)?)?)?")
_PARTS: Final = {"year": "year", "month": "month", "day": "day", "dayofmonth": "day", "hour": "hour"}
_DATES: Final = frozenset({"date", "to_date"})


@dataclass(frozen=True, slots=True)
class Generated:
    """What an expression makes of its source."""

    kind: Kind
    source: tuple[str, ...]
    """The source's path of names."""
    unit: str = ""
    """Of trunc its unit, of format its pattern."""
    length: int = 0
    """Of substring."""
    as_date: bool = False
    """The source is made a date first."""


def parse_expression(text: str) -> Generated | None:
    """What the expression makes of one column; None if it is any other.

    >>> parse_expression("CAST(ts AS DATE)")
    Generated(kind='date', source=('ts',), unit='', length=0, as_date=False)
    >>> parse_expression("SUBSTRING(s, 1, 3)").length, parse_expression("ts + 1")
    (3, None)
    """
    tokens = _tokens(text)
    match tokens:
        case None:
            return None
        case [("name", name)]:
            return _of("identity", name)
        case [("name", function), ("mark", "("), *inside, ("mark", ")")]:
            return _call(function.lower(), inside)
    return None


Tokens = list[tuple[str, str]]


def _tokens(text: str) -> Tokens | None:
    found: Tokens = []
    at, end = 0, len(text.rstrip())
    while at < end:
        token = _TOKEN.match(text, at, end)
        if token is None:
            return None
        kind = token.lastgroup or ""
        found.append(("text" if kind == "quoted" else kind, token[kind]))
        at = token.end()
    return found


def _of(kind: Kind, name: str, *, unit: str = "", length: int = 0, as_date: bool = False) -> Generated | None:
    path = split_name(re.sub(r"\s*\.\s*", ".", name) if "`" not in name else name)
    return None if path is None else Generated(kind, path, unit, length, as_date)


def _call(function: str, inside: Tokens) -> Generated | None:
    match function, inside:
        case "cast", [("name", name), ("name", word), ("name", type_)] if _is_date(word, type_):
            return _of("date", name)
        case (("date" | "to_date"), [("name", name)]):
            return _of("date", name)
        case (("substring" | "substr"), [("name", name), _, ("number", first), _, ("number", length)]):
            # Spark counts from 1, and takes 0 for 1.
            return _of("substring", name, length=int(length)) if int(first) <= 1 and int(length) > 0 else None
        case "date_format", [*source, ("mark", ","), ("text", pattern)] if _FORMATS.fullmatch(pattern):
            return _from(source, "format", unit=pattern)
        case "date_trunc", [("text", unit), ("mark", ","), *source]:
            known = _UNITS.get(unit.lower())
            return _from(source, "trunc", unit=known) if known else None
        case "trunc", [*source, ("mark", ","), ("text", unit)]:
            known = _UNITS.get(unit.lower())
            return _from(source, "trunc", unit=known, dated=True) if known in _DATE_UNITS else None
    part = _PARTS.get(function)
    return _from(inside, part) if part else None  # type: ignore[arg-type] # one of Kind


def _is_date(word: str, type_: str) -> bool:
    return word.lower() == "as" and type_.lower() == "date"


def _from(tokens: Tokens, kind: Kind, *, unit: str = "", dated: bool = False) -> Generated | None:
    """The expression of a column, or of a column made a date."""
    match tokens:
        case [("name", name)]:
            return _of(kind, name, unit=unit, as_date=dated)
        case [("name", cast), ("mark", "("), ("name", name), ("name", word), ("name", type_), ("mark", ")")]:
            if cast.lower() == "cast" and _is_date(word, type_):
                return _of(kind, name, unit=unit, as_date=True)
        case [("name", function), ("mark", "("), ("name", name), ("mark", ")")] if function.lower() in _DATES:
            return _of(kind, name, unit=unit, as_date=True)
    return None
