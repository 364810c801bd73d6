"""The words of a WHERE text, as Spark's lexer reads them.

sqlglot finds the words. Where Spark reads one otherwise, it is put right here: escapes in strings, adjacent strings,
suffixes of numbers, `!>` and `!<`, names that are keywords elsewhere. Every token keeps its place in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from tamis.errors import ParseError
from tamis.predicate.escapes import has_surrogate, unescaped
from tamis.predicate.lists import FoundList, long_lists
from tamis.predicate.literals import LiteralColumn

__all__ = ["Words", "complain", "read"]

Kind = TokenType
SHOWN = 76
"""Characters of the faulty line that an error shows: it fits a terminal."""

_CLOSED = re.compile(
    r"""--[^\n]* | /\*.*?\*/ | r'[^']*' | r"[^"]*" | '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" | `(?:[^`]|``)*`
    | /(?!\*) | [^'"`/]""",
    re.DOTALL | re.VERBOSE | re.IGNORECASE,
)
"""A string, name or comment that is closed, or a character that opens none."""
_BLANKS = re.compile(r"""('(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+")|\s+""", re.DOTALL)
"""Blanks in a list; strings keep theirs."""
_OPENING = {Kind.L_PAREN: Kind.R_PAREN, Kind.L_BRACKET: Kind.R_BRACKET, Kind.CASE: Kind.END}
_CLOSING = {Kind.R_PAREN, Kind.R_BRACKET}
_SHOWN_CLOSING = {Kind.L_PAREN: ")", Kind.L_BRACKET: "]", Kind.CASE: "END"}
_NO_CASE = {Kind.EQ, Kind.NEQ, Kind.LT, Kind.LTE, Kind.GT, Kind.GTE, Kind.NULLSAFE_EQ, Kind.IN, Kind.IS, Kind.DOT,
            Kind.BETWEEN, Kind.LIKE, Kind.AND, Kind.OR, Kind.COMMA, Kind.R_PAREN}  # fmt: skip
"""What follows `case` where it is a column's name."""
_CLAUSES = {
    *(Kind.ALTER, Kind.COMMAND, Kind.CREATE, Kind.CROSS, Kind.DELETE, Kind.DROP, Kind.EXCEPT, Kind.EXECUTE),
    *(Kind.FETCH, Kind.GLOB, Kind.GRANT, Kind.HAVING, Kind.INNER, Kind.INSERT, Kind.INTERSECT, Kind.INTO),
    *(Kind.JOIN, Kind.LATERAL, Kind.MERGE, Kind.NOTNULL, Kind.ON, Kind.OUTER, Kind.QUALIFY, Kind.RENAME),
    *(Kind.RETURNING, Kind.REVOKE, Kind.ROLLBACK, Kind.SERDE_PROPERTIES, Kind.SHOW, Kind.TABLE_SAMPLE),
    *(Kind.UNCACHE, Kind.UNION, Kind.UPDATE, Kind.USING, Kind.VALUES, Kind.WHERE, Kind.WITH, Kind.XOR),
}
"""Words that mean something only in a query or a command; in a condition without one they are names."""
_STRINGS = {Kind.STRING, Kind.RAW_STRING}


class _Tokenizer(Spark.Tokenizer):
    """The tokenizer of sqlglot, for conditions: `show = 1` compares a column, and is no command."""

    COMMANDS: ClassVar[set[TokenType]] = set()


@dataclass(frozen=True, slots=True)
class Words:
    """A text and its tokens; brackets, and CASE with its END, know their partner."""

    text: str
    tokens: list[Token]
    closing: dict[int, int] = field(default_factory=dict)
    """Where the bracket or CASE that opens at an index is closed."""
    unsure: frozenset[int] = frozenset()
    """Where strings start whose value only Spark knows: it replaces `${name}` before it parses."""
    lists: dict[int, LiteralColumn] = field(default_factory=dict)
    """Long lists that were read as a column: each is one token, at this index."""

    def kind(self, index: int) -> TokenType | None:
        """The kind of token at index; None past the end."""
        return self.tokens[index].token_type if index < len(self.tokens) else None

    def source(self, start: int, end: int) -> str:
        """The tokens of [start, end) as they are written, without comments, on one line."""
        written: list[str] = []
        last = None
        for index, token in enumerate(self.tokens[start:end], start):
            if last is not None and token.start > last + 1:
                written.append(" ")
            source = self.text[token.start : token.end + 1]
            written.append(_BLANKS.sub(lambda found: found[1] or " ", source) if index in self.lists else source)
            last = token.end
        return "".join(written)

    def steps(self, start: int, end: int) -> Iterator[int]:
        """Indices of [start, end) outside of brackets and CASEs; of those only where they open."""
        index = start
        while index < end:
            yield index
            index = self.closing.get(index, index) + 1

    def error(self, index: int, what: str, cure: str = "") -> ParseError:
        """A complaint about the token at index, or about the end of the text."""
        if index < len(self.tokens):
            return complain(self.text, self.tokens[index].start, what, cure)
        return complain(self.text, len(self.text.rstrip()), what, cure)


def read(text: str) -> Words:
    """The tokens of text; ParseError if it has none, or if a string or bracket is not closed."""
    lists = long_lists(text)
    try:
        found = _Tokenizer(dialect=Spark()).tokenize(_without(text, lists))
    except TokenError:
        raise _unfinished(text) from None
    if not found:
        raise complain(text, 0, "the condition is empty", 'Write one, such as "a > 1"; "true" is every row.')
    unsure: set[int] = set()
    names = {Kind.UNKNOWN} if any(token.token_type is Kind.SELECT for token in found) else {Kind.UNKNOWN, *_CLAUSES}
    tokens = list(_named(_merged(text, found, unsure), names))
    words = Words(text, tokens, {}, frozenset(unsure))
    _match(words)
    _place(words, lists)
    return words


def _without(text: str, lists: list[FoundList]) -> str:
    """The text with a number in place of each list, and blanks behind it: all else stays where it is."""
    parts, place = [], 0
    for listed in lists:
        parts += [text[place : listed.start], "0".ljust(listed.end - listed.start)]
        place = listed.end
    return "".join([*parts, text[place:]])


def _place(words: Words, lists: list[FoundList]) -> None:
    """Let the number that stands for a list be the list: its members as they are written, and as a column."""
    by_start = {listed.start: listed for listed in lists}
    for index, token in enumerate(words.tokens if lists else ()):
        if (listed := by_start.get(token.start)) is not None:
            written = Token(Kind.NUMBER, "0", token.line, token.col, listed.start, listed.end - 1)
            words.tokens[index], words.lists[index] = written, listed.column


def complain(text: str, offset: int, what: str, cure: str = "") -> ParseError:
    """A ParseError that shows the place in the text and says what next."""
    offset = min(offset, len(text))
    line = text.count("\n", 0, offset) + 1
    begin = text.rfind("\n", 0, offset) + 1
    column = offset - begin + 1
    whole = text[begin:].split("\n", 1)[0].rstrip()
    cut = max(0, min(column - 1 - SHOWN // 2, len(whole) - SHOWN))
    before, after = "…" if cut else "", "…" if len(whole) > cut + SHOWN else ""
    shown = "".join(char if char.isprintable() else " " for char in whole[cut : cut + SHOWN])
    pointer = " " * (len(before) + column - 1 - cut) + "^"
    message = (
        f"cannot parse the condition: {what} (line {line}, column {column})\n"
        f"    {before}{shown}{after}\n"
        f"    {pointer}\n"
        f"{cure or 'Write it as in the WHERE of a Spark SQL query.'}"
    )
    return ParseError(message, text=text, line=line, column=column)


def _unfinished(text: str) -> ParseError:
    """What sqlglot cannot cut into words: a string, name or comment that is not closed, or a bad X'..'."""
    place = 0
    while place < len(text):
        found = _CLOSED.match(text, place)
        if found is None:
            opened = "/*" if text[place] == "/" else text[place]
            closing = "*/" if opened == "/*" else opened
            what = f"what {opened} begins here is never closed"
            return complain(text, place, what, f"Add the missing {closing}")
        place = found.end()
    return complain(text, 0, "it cannot be read as SQL", "Is there an X'..' with other than hexadecimal digits?")


def _merged(text: str, tokens: list[Token], unsure: set[int]) -> Iterator[Token]:
    """Tokens, where several of sqlglot's are one of Spark's."""
    index = 0
    while index < len(tokens):
        token = tokens[index]
        following = tokens[index + 1] if index + 1 < len(tokens) else None
        if token.token_type in _STRINGS:
            end = index
            while end < len(tokens) and tokens[end].token_type in _STRINGS:
                end += 1
            yield _string(text, tokens[index:end], unsure)
            index = end
            continue
        if token.token_type is Kind.NUMBER:
            # A suffix arrives as a cast in three tokens of one place: `5L` as `5 :: L`.
            suffixed = following is not None and following.start == token.start
            yield _at(Kind.NUMBER, text[token.start : token.end + 1], token, token)
            index += 3 if suffixed else 1
            continue
        if _is_bang(token, following) and following is not None:
            kind = Kind.LTE if following.token_type is Kind.GT else Kind.GTE
            yield _at(kind, text[token.start : following.end + 1], token, following)
            index += 2
            continue
        yield token
        index += 1


def _is_bang(token: Token, following: Token | None) -> bool:
    """Spark writes `<=` also as `!>`, and `>=` as `!<`."""
    return (
        token.text == "!"
        and following is not None
        and following.token_type in {Kind.GT, Kind.LT}
        and following.start == token.end + 1
    )


def _string(text: str, tokens: list[Token], unsure: set[int]) -> Token:
    """Adjacent strings are one; two with nothing between them had their quote doubled."""
    value: list[str] = []
    last: Token | None = None
    for token in tokens:
        raw = text[token.start : token.end + 1]
        if token.token_type is Kind.RAW_STRING:
            value.append(raw[2:-1])
        else:
            # 'a''b' is a'b
            if last is not None and last.end + 1 == token.start and text[last.end] == raw[0]:
                value.append(raw[0])
            value.append(unescaped(raw[1:-1]))
        last = token
    joined = "".join(value)
    if has_surrogate(joined):
        joined = joined.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        if "\ufffd" in joined:
            unsure.add(tokens[0].start)
    if "${" in text[tokens[0].start : tokens[-1].end]:
        unsure.add(tokens[0].start)
    return _at(Kind.STRING, joined, tokens[0], tokens[-1])


def _named(tokens: Iterator[Token], names: set[TokenType]) -> Iterator[Token]:
    """What follows a dot is a name, whatever the word; so are some others, except after IS."""
    before: list[TokenType | None] = [None, None]
    for token in tokens:
        kind = token.token_type
        word = token.text[:1].isalpha() or token.text[:1] == "_"
        after_is = before[1] is Kind.IS or (before[1] is Kind.NOT and before[0] is Kind.IS)
        query = kind is Kind.VALUES and before[1] is Kind.L_PAREN
        keyword = kind not in {Kind.VAR, Kind.IDENTIFIER, Kind.STRING, Kind.NUMBER}
        if word and keyword and (before[1] is Kind.DOT or (kind in names and not after_is and not query)):
            kind = Kind.VAR
        yield token if kind is token.token_type else _at(kind, token.text, token, token)
        before = [before[1], kind]


def _match(words: Words) -> None:
    """Find the partner of every bracket and CASE."""
    opened: list[int] = []
    for index, token in enumerate(words.tokens):
        kind = token.token_type
        if kind is Kind.CASE and (words.kind(index + 1) is None or words.kind(index + 1) in _NO_CASE):
            continue
        if kind in _OPENING:
            opened.append(index)
        elif opened and kind is _OPENING[words.tokens[opened[-1]].token_type]:
            words.closing[opened.pop()] = index
        elif kind in _CLOSING:
            if opened:
                missing = _SHOWN_CLOSING[words.tokens[opened[-1]].token_type]
                raise words.error(index, f"{token.text!r} where {missing!r} is to come first")
            raise words.error(index, f"{token.text!r} closes nothing", "Remove it, or open it before.")
    if opened:
        token = words.tokens[opened[-1]]
        missing = _SHOWN_CLOSING[token.token_type]
        raise words.error(opened[-1], f"{token.text!r} is never closed", f"Add the missing {missing!r}.")


def _at(kind: TokenType, value: str, first: Token, last: Token) -> Token:
    """A token of this kind and value, from the place of the first to that of the last."""
    return Token(kind, value, first.line, first.col, first.start, last.end)
