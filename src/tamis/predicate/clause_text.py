"""A clause of a MERGE as a command line has it: `s.gone THEN DELETE`, `UPDATE SET n = s.n`, `INSERT *`.

clause = [ condition THEN ] action
action = DELETE | UPDATE SET * | UPDATE SET column = value, ... | INSERT * | INSERT (column, ...) VALUES (value, ...)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from sqlglot.tokenizer_core import TokenType as Kind

from tamis.errors import ParseError
from tamis.predicate.sql.tokens import Words, read

__all__ = ["WrittenClause", "parse_clause"]

_CURE = "Write DELETE, UPDATE SET *, UPDATE SET a = s.a, INSERT *, or INSERT (a, b) VALUES (s.a, s.b)."


@dataclass(frozen=True, slots=True)
class WrittenClause:
    """What the text says; columns and values are not looked at."""

    condition: str | None
    action: Literal["update", "delete", "insert"]
    values: dict[str, str] | None
    """None for all columns, or none."""


def parse_clause(text: str) -> WrittenClause:
    """The clause; ParseError, with its place, for what is none.

    >>> parse_clause("s.op = 'd' then delete")
    WrittenClause(condition="s.op = 'd'", action='delete', values=None)
    >>> parse_clause("UPDATE SET n = t.n + s.n, `a b` = greatest(1, s.x)").values
    {'n': 't.n + s.n', '`a b`': 'greatest(1, s.x)'}
    >>> parse_clause("insert (id, n) values (s.id, 0)").values
    {'id': 's.id', 'n': '0'}
    """
    words = read(text)
    end = len(words.tokens)
    thens = [index for index in words.steps(0, end) if words.kind(index) is Kind.THEN]
    at = thens[-1] + 1 if thens else 0
    condition = words.source(0, at - 1) if thens else None
    if condition == "":
        raise words.error(0, "a condition is missing before THEN", "Leave THEN out, if the clause is for all rows.")
    first = _word(words, at)
    if first == "delete" and at + 1 == end:
        return WrittenClause(condition, "delete", None)
    if first == "update" and _word(words, at + 1) in {"set", "*"}:
        start = at + 2 if _word(words, at + 1) == "set" else at + 1
        if _word(words, start) == "*" and start + 1 == end:
            return WrittenClause(condition, "update", None)
        return WrittenClause(condition, "update", _assigned(words, start, end))
    if first == "insert" and _word(words, at + 1) == "*" and at + 2 == end:
        return WrittenClause(condition, "insert", None)
    if first == "insert" and words.kind(at + 1) is Kind.L_PAREN:
        return WrittenClause(condition, "insert", _inserted(words, at + 1, end))
    raise words.error(at, "a clause does not end in an action", _CURE)


def _word(words: Words, index: int) -> str:
    return words.tokens[index].text.lower() if index < len(words.tokens) else ""


def _assigned(words: Words, start: int, end: int) -> dict[str, str]:
    found: dict[str, str] = {}
    for first, last in _parts(words, start, end):
        equals = next((index for index in words.steps(first, last) if words.kind(index) is Kind.EQ), None)
        if equals is None or equals == first or equals + 1 == last:
            raise words.error(first, "an assignment is column = value", _CURE)
        _add(words, found, first, words.source(first, equals), words.source(equals + 1, last))
    return found


def _inserted(words: Words, start: int, end: int) -> dict[str, str]:
    close = words.closing[start]
    second = close + 2
    if _word(words, close + 1) != "values" or words.kind(second) is not Kind.L_PAREN:
        raise words.error(close + 1, "VALUES (...) is expected after the columns", _CURE)
    if words.closing[second] + 1 != end:
        raise words.error(words.closing[second] + 1, "the clause goes on after its values", _CURE)
    columns, values = list(_parts(words, start + 1, close)), list(_parts(words, second + 1, end - 1))
    if len(columns) != len(values):
        raise words.error(second, f"there are {len(columns)} columns and {len(values)} values", "Give one for each.")
    found: dict[str, str] = {}
    for column, value in zip(columns, values, strict=True):
        _add(words, found, column[0], words.source(*column), words.source(*value))
    return found


def _add(words: Words, found: dict[str, str], at: int, column: str, value: str) -> None:
    if column in found:
        raise words.error(at, f"{column} is set twice", "Set it once.")
    found[column] = value


def _parts(words: Words, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The ranges between commas; ParseError for an empty one."""
    begin = start
    for index in [*words.steps(start, end), end]:
        if index == end or words.kind(index) is Kind.COMMA:
            if index == begin:
                raise _missing(words, index)
            yield begin, index
            begin = index + 1


def _missing(words: Words, index: int) -> ParseError:
    return words.error(index, "a column or a value is missing", _CURE)
