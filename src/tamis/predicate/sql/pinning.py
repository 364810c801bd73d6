"""The text of a condition as it is planned for: at one moment, and of one table.

Law: the text that comes out means to Spark, whenever it is evaluated, what the text that goes in means at the moment
of planning. `now()`, `current_date()` and their like become literals, so that files are pruned and rows are filtered
by one and the same time; the table's name, or its alias, in front of a column is left out, for the rows are read
without either. Nothing else is touched: strings, comments and names of columns stay as they are written, and so does
what a lambda calls its parameters, whatever else is called so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from sqlglot.tokenizer_core import Token
from sqlglot.tokenizer_core import TokenType as Kind

from tamis.errors import BindError
from tamis.predicate.compare.calendar import date_text, instant_text
from tamis.predicate.compare.zones import Zone
from tamis.predicate.schema import Schema
from tamis.predicate.sql.tokens import Words, read
from tamis.predicate.units import DAY

__all__ = ["Pinned", "pinned"]

_INSTANT: Final = frozenset({"now", "current_timestamp"})
_DATE: Final = frozenset({"current_date", "curdate"})
_BARE: Final = frozenset({"current_timestamp", "current_date"})
"""Functions that need no brackets; a column of the name comes before them."""
_WALL: Final = "localtimestamp"
_CLOCKS: Final = _INSTANT | _DATE | {_WALL}
_CLOCK_WORD: Final = re.compile(rf"\b(?:{'|'.join(sorted(_CLOCKS))})\b", re.IGNORECASE)
_AFTER_LAMBDA: Final = frozenset({Kind.COMMA, Kind.R_PAREN, Kind.R_BRACKET})
_QUERY: Final = frozenset({Kind.SELECT, Kind.WITH, Kind.FROM, Kind.VALUES})


@dataclass(frozen=True, slots=True)
class Pinned:
    """The text, and what it was planned for."""

    text: str
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Edits:
    """Places in the text, each with what stands there instead; and what the clock was said to show."""

    edits: list[tuple[int, int, str]] = field(default_factory=list)
    told: dict[str, str] = field(default_factory=dict)

    def apply(self, text: str) -> str:
        pieces, offset = [], 0
        for start, end, instead in sorted(self.edits):
            pieces += [text[offset:start], instead]
            offset = end
        return "".join([*pieces, text[offset:]])


def pinned(
    text: str,
    schema: Schema,
    *,
    instant: int,
    zone: Zone,
    names: Sequence[str] = (),
    alias: str | None = None,
    case_sensitive: bool = False,
) -> Pinned:
    """The text for a table of this schema at an instant, in microseconds since 1970.

    names are the parts of the table's name, the last one its own; alias is what else the text calls it. The date of
    the instant is left to Spark if the zone's rules do not tell it.
    """
    asked_clock = _CLOCK_WORD.search(text) is not None
    called = [name for name in (alias, names[-1] if names else None) if name]
    asked_names = any(name.lower() in text.lower() for name in called)
    if not asked_clock and not asked_names:
        return Pinned(text)
    words, edits = read(text), _Edits()
    lambdas = tuple(_lambdas(words, case_sensitive=case_sensitive))
    if asked_clock:
        _pin_clock(words, schema, instant, zone, lambdas, edits)
    if asked_names:
        find = _Finder(schema, tuple(names), alias, case_sensitive)
        _strip_names(words, find, lambdas, edits)
    notes = [f"{shown} is taken as {value}" for shown, value in edits.told.items()]
    said = (f"{', '.join(notes)}: for the plan, and for the rows that are read by it.",) if notes else ()
    return Pinned(edits.apply(text), said)


@dataclass(frozen=True, slots=True)
class _Lambda:
    """`x -> ...`, or `(x, y) -> ...`: names of its own in a range of tokens."""

    parameters: frozenset[str]
    start: int
    end: int
    case_sensitive: bool

    def names(self, words: Words, index: int) -> bool:
        """Whether the token at index is one of its parameters."""
        name = words.tokens[index].text
        return self.start <= index < self.end and (name if self.case_sensitive else name.lower()) in self.parameters


def _lambdas(words: Words, *, case_sensitive: bool) -> Iterator[_Lambda]:
    opening = {close: start for start, close in words.closing.items()}
    for arrow in range(1, len(words.tokens)):
        if words.kind(arrow) is not Kind.ARROW:
            continue
        start = opening.get(arrow - 1, arrow - 1)
        names = (words.tokens[index].text for index in range(start, arrow) if _is_name(words.tokens[index]))
        ends = (index for index in words.steps(arrow + 1, len(words.tokens)) if words.kind(index) in _AFTER_LAMBDA)
        parameters = frozenset(name if case_sensitive else name.lower() for name in names)
        yield _Lambda(parameters, start, next(ends, len(words.tokens)), case_sensitive)


def _pin_clock(
    words: Words, schema: Schema, instant: int, zone: Zone, lambdas: Sequence[_Lambda], edits: _Edits
) -> None:
    columns = {column.path[0].lower() for column in schema.columns}
    for index, token in enumerate(words.tokens):
        word = token.text.lower()
        if word not in _CLOCKS or token.token_type is Kind.IDENTIFIER or token.token_type is Kind.STRING:
            continue
        if index and words.kind(index - 1) is Kind.DOT:
            continue
        called = words.kind(index + 1) is Kind.L_PAREN
        if called and words.kind(index + 2) is not Kind.R_PAREN:
            continue
        bare = word in _BARE and word not in columns and words.kind(index + 1) is not Kind.DOT
        bare = bare and not any(one.names(words, index) for one in lambdas)
        if not called and not bare:
            continue
        last = words.tokens[index + 2] if called else token
        literal = _literal(word, instant, zone)
        if literal is not None:
            # In brackets, so that a cast that follows is one of the literal, not of its text.
            edits.edits.append((token.start, last.end + 1, f"({literal[0]})"))
            edits.told[f"{word}()"] = literal[1]


def _literal(word: str, instant: int, zone: Zone) -> tuple[str, str] | None:
    """What a function of the clock gives, as SQL and for people; None if the zone's rules do not tell."""
    if word in _INSTANT:
        shown = instant_text(instant)
        return None if shown is None else (f"timestamp_ltz '{shown}Z'", f"{shown} UTC")
    low, high = zone.walls(instant)
    if word == _WALL:
        shown = instant_text(low)
        return None if shown is None or low != high else (f"timestamp_ntz '{shown}'", f"{shown} in {zone.name}")
    day = date_text(low // DAY)
    return None if day is None or low // DAY != high // DAY else (f"date '{day}'", f"{day} in {zone.name}")


@dataclass(frozen=True, slots=True)
class _Finder:
    schema: Schema
    names: tuple[str, ...]
    alias: str | None
    case_sensitive: bool

    def qualifier(self, path: tuple[str, ...]) -> int:
        """How many parts in front of a path name the table: the alias first, then a column, then the table's name."""
        if self.alias is not None and self._same((self.alias,), path[:1]) and self._is_column(path[1:]):
            return 1
        if self._is_column(path):
            return 0
        for count in range(1, min(len(self.names), len(path) - 1) + 1):
            if self._same(self.names[-count:], path[:count]) and self._is_column(path[count:]):
                return count
        return 0

    def _same(self, names: tuple[str, ...], parts: tuple[str, ...]) -> bool:
        if self.case_sensitive:
            return names == parts
        return [name.lower() for name in names] == [part.lower() for part in parts]

    def _is_column(self, path: tuple[str, ...]) -> bool:
        try:
            self.schema.find(path, case_sensitive=self.case_sensitive)
        except BindError:
            return False
        return True


def _strip_names(words: Words, find: _Finder, lambdas: Sequence[_Lambda], edits: _Edits) -> None:
    """Leave the table's name out, but in a query within the condition, which may have tables of its own."""
    index = 0
    while index < len(words.tokens):
        if words.kind(index) is Kind.L_PAREN and words.kind(index + 1) in _QUERY:
            index = words.closing[index] + 1
            continue
        end = index
        while words.kind(end + 1) is Kind.DOT and end + 2 < len(words.tokens) and _is_name(words.tokens[end]):
            end += 2
        is_own = any(one.names(words, index) for one in lambdas)
        if end > index and words.kind(end + 1) is not Kind.L_PAREN and _is_name(words.tokens[end]) and not is_own:
            count = find.qualifier(tuple(token.text for token in words.tokens[index : end + 1 : 2]))
            if count:
                edits.edits.append((words.tokens[index].start, words.tokens[index + 2 * count].start, ""))
        index = end + 1


def _is_name(token: Token) -> bool:
    text = token.text.replace("_", "a")
    word = (
        text.isalnum() and not text.isdigit() and token.token_type not in {Kind.STRING, Kind.NUMBER, Kind.HEX_STRING}
    )
    return token.token_type is Kind.IDENTIFIER or word
