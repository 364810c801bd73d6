r"""Long lists of plain literals in a WHERE text, read as columns before the text is cut into words.

    id IN (1, 2, -3, NULL)      s IN ('a', 'it''s', 'b\n')      x IN (1.5, 2, '3')      d IN (date '2024-01-15', ...)

Law: a list is read here only if it means the same as its members one by one would. What is not sure is left to the
words: a comment before it, other kinds of literals, a string that only Spark can read.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from tamis.predicate.literals import MIN_COLUMN, LiteralColumn, natural
from tamis.predicate.nodes import Literal
from tamis.predicate.sql.escapes import has_surrogate, unescaped

__all__ = ["ListColumn", "long_lists"]

MIN_TEXT: Final = 2 * MIN_COLUMN
"""A shorter text holds no long list."""
MAX_DIGITS: Final = 36
"""Longest number, its sign and point included, that is surely a decimal of Spark's."""

_START: Final = re.compile(
    r"""--|/\*                                    # a comment: what it holds is no text of ours
    | \br'[^']*+' | \br"[^"]*+"                   # a raw string
    | '[^'\\]*+(?:\\.[^'\\]*+)*+' | "[^"\\]*+(?:\\.[^"\\]*+)*+" | `[^`]*+`
    | ['"`]                                       # one that is never closed
    | (?<![\w.])IN\s*+\(""",
    re.DOTALL | re.VERBOSE | re.IGNORECASE,
)


def _list(item: str) -> re.Pattern[str]:
    """What is between the brackets of a list of such items and NULLs, and the closing bracket."""
    return re.compile(rf"\s*+(?:{item}|NULL)\s*+(?:,\s*+(?:{item}|NULL)\s*+)*+\)", re.IGNORECASE | re.DOTALL)


_SINGLE, _DOUBLE = r"'[^'\\]*+(?:(?:''|\\.)[^'\\]*+)*+'", r'"[^"\\]*+(?:(?:""|\\.)[^"\\]*+)*+"'
_MEMBER: Final = re.compile(rf"{_SINGLE}|-?[0-9]++(?:\.[0-9]++)?+|NULL", re.IGNORECASE | re.DOTALL)
_NULL: Final = Literal(None, pa.null())
_DAY, _CLOCK = "[0-9]{4}-[0-9]{2}-[0-9]{2}", r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?"
_ESCAPED: Final = re.compile(r"""''|""|\\(?:u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[01][0-7]{2}|.)""", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ListColumn:
    """A list's members as a column, and where they stand in the text: [start, end) between the brackets."""

    start: int
    end: int
    column: LiteralColumn | tuple[Literal, ...]
    """A tuple where kinds are mixed."""


def long_lists(text: str) -> list[ListColumn]:
    """The lists after IN that can be read as columns, in their order."""
    lists: list[ListColumn] = []
    offset = 0
    while len(text) >= MIN_TEXT and (begin := _START.search(text, offset)) is not None:
        offset = begin.end()
        if begin[0] in {"--", "/*", "'", '"', "`"}:
            break
        if begin[0][-1] != "(" or begin[0][0] in "'\"`":
            continue
        listed = _read(text, offset)
        if listed is not None:
            lists.append(listed)
            offset = listed.end
    return lists


def _read(text: str, start: int) -> ListColumn | None:
    for shape, read in _SHAPES:
        match = shape.match(text, start)
        if match is not None:
            end = match.end() - 1
            try:
                column = read(text[start:end])
            except (pa.ArrowInvalid, UnicodeError):
                return None
            return None if column is None or len(column) < MIN_COLUMN else ListColumn(start, end, column)
    return None


def _pieces(body: str) -> pa.Array:
    """What stands between commas, with null for NULL."""
    pieces = pc.utf8_trim_whitespace(pa.array(body.split(","), pa.large_string()))
    if "null" in body.lower():
        pieces = pc.if_else(pc.equal(pc.utf8_upper(pieces), "NULL"), pa.scalar(None, pa.large_string()), pieces)
    return pieces


def _ints(body: str) -> LiteralColumn:
    return LiteralColumn(_pieces(body).cast(pa.int64()), None)


def _numbers(body: str) -> LiteralColumn | None:
    pieces = _pieces(body)
    longest = pc.max(pc.utf8_length(pieces)).as_py()
    return None if longest is None or longest > MAX_DIGITS else LiteralColumn(pieces, None)


def _strings(quote: str) -> Callable[[str], LiteralColumn | None]:
    item = re.compile(f"{_SINGLE if quote == chr(39) else _DOUBLE}|NULL", re.IGNORECASE | re.DOTALL)

    def read(body: str) -> LiteralColumn | None:
        if "${" in body:
            return None  # Spark puts a variable's value there
        items = item.findall(body)
        values: list[str | None] = [value[1:-1] if value[0] == quote else None for value in items]
        if "\\" in body or quote * 2 in body:
            values = [None if value is None else _plain(value, quote) for value in values]
            if any(value is not None and has_surrogate(value) for value in values):
                return None
        return LiteralColumn(pa.array(values, pa.large_string()), pa.string())

    return read


def _mixed(body: str) -> tuple[Literal, ...] | None:
    """Numbers among texts: each as it would be by itself, without cutting the text into words."""
    if "${" in body:
        return None
    members: list[Literal] = []
    for item in _MEMBER.findall(body):
        if item[0] == "'":
            value = _plain(item[1:-1], "'")
            if has_surrogate(value):
                return None
            members.append(Literal(value, pa.string()))
        elif item[0] in "nN":
            members.append(_NULL)
        elif len(item) > MAX_DIGITS:
            return None
        else:
            members.append(natural(item))
    return tuple(members)


def _plain(raw: str, quote: str) -> str:
    """A string's characters, from what stands between its quotes."""
    if "\\" not in raw:
        return raw.replace(quote * 2, quote)
    return _ESCAPED.sub(lambda match: quote if match[0] == quote * 2 else unescaped(match[0]), raw)


def _typed(type_: pa.DataType, check: pa.DataType) -> Callable[[str], LiteralColumn]:
    item = re.compile(r"'([^']*)'|NULL", re.IGNORECASE)

    def read(body: str) -> LiteralColumn:
        values = pa.array([item_text or None for item_text in item.findall(body)], pa.large_string())
        values.cast(check)  # a day or time that does not exist: then what to do is decided member by member
        return LiteralColumn(values, type_)

    return read


_ZONED, _WALL = pa.timestamp("us", "UTC"), pa.timestamp("us")
_SHAPES: Final = (
    (_list("-?[0-9]++"), _ints),
    (_list(r"-?[0-9]++(?:\.[0-9]++)?+"), _numbers),
    (_list(_SINGLE), _strings("'")),
    (_list(_DOUBLE), _strings('"')),
    (_list(rf"date\s*+'{_DAY}'"), _typed(pa.date32(), pa.date32())),
    (_list(rf"timestamp\s*+'{_DAY}[ T]{_CLOCK}'"), _typed(_ZONED, _WALL)),
    (_list(rf"timestamp_ntz\s*+'{_DAY}[ T]{_CLOCK}'"), _typed(_WALL, _WALL)),
    (_list(rf"-?[0-9]++(?:\.[0-9]++)?+|{_SINGLE}"), _mixed),
)
"""Kinds of lists that are read as columns, the commonest first."""
