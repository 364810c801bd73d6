"""The words of a WHERE text, as Spark's lexer reads them.

sqlglot finds the words. Where Spark reads one otherwise, it is put right here: escapes in strings, adjacent strings,
suffixes of numbers, `!>` and `!<`, names that are keywords elsewhere. Every token keeps its place in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise, takewhile
from typing import ClassVar

from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from tamis.errors import ParseError
from tamis.predicate.literals import LiteralColumn
from tamis.predicate.nodes import Literal
from tamis.predicate.sql.comments import without_comments
from tamis.predicate.sql.escapes import has_surrogate, unescaped
from tamis.predicate.sql.lists import ListColumn, long_lists
from tamis.predicate.sql.numbers import beyond

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
_TYPES = {"DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ"}
"""Words that make a literal of one string."""
_HEX = re.compile(r"[0-9a-f]*", re.IGNORECASE)
_CUT_NUMBER = re.compile(r"[0-9]+e", re.IGNORECASE)
"""A name to Spark, a number without its exponent to sqlglot."""


_CALLABLE = {Kind.IN, Kind.AND, Kind.OR, Kind.BETWEEN}
"""Operators that are functions as well."""
_BEFORE_VALUE = {*_CALLABLE, Kind.EQ, Kind.NEQ, Kind.LT, Kind.LTE, Kind.GT, Kind.GTE, Kind.NULLSAFE_EQ, Kind.COMMA,
                 Kind.L_PAREN, Kind.L_BRACKET, Kind.PLUS, Kind.DASH, Kind.STAR, Kind.SLASH, Kind.MOD, Kind.DIV,
                 Kind.DPIPE, Kind.CASE, Kind.WHEN, Kind.THEN, Kind.ELSE, Kind.LIKE, Kind.ILIKE, Kind.RLIKE,
                 Kind.ARROW, Kind.FROM, Kind.TILDE, Kind.AMP, Kind.PIPE, Kind.CARET}  # fmt: skip
"""After these a value begins."""
_TILDES = {Kind.LIKE, Kind.ILIKE, Kind.IRLIKE, Kind.GLOB}
"""What sqlglot makes of several signs that begin with `~`."""
_POINTED_INT = re.compile(r"[0-9]*\.[0-9]*[LSY]", re.IGNORECASE)


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
    lists: dict[int, LiteralColumn | tuple[Literal, ...]] = field(default_factory=dict)
    """Long lists that were read at once: each is one token, at this index."""

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
            written.append(_BLANKS.sub(lambda match: match[1] or " ", source) if index in self.lists else source)
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
    bare, hint = without_comments(_without(text, lists))
    if hint is not None:
        raise complain(text, hint, "/*+ begins a hint, not a comment", "A condition has no hints: write /* + .")
    try:
        raw = _Tokenizer(dialect=Spark()).tokenize(bare)
    except TokenError:
        raise _unfinished(text) from None
    if not raw:
        raise complain(text, 0, "the condition is empty", 'Write one, such as "a > 1"; "true" is every row.')
    unsure: set[int] = set()
    names = {Kind.UNKNOWN} if any(token.token_type is Kind.SELECT for token in raw) else {Kind.UNKNOWN, *_CLAUSES}
    tokens = _called(list(_named(_merged(text, raw, unsure), names)))
    words = Words(text, tokens, {}, frozenset(unsure))
    _match(words)
    _insert(words, lists)
    return words


def _without(text: str, lists: list[ListColumn]) -> str:
    """The text with a number in place of each list, and blanks behind it: all else stays where it is."""
    pieces, offset = [], 0
    for listed in lists:
        pieces += [text[offset : listed.start], "0".ljust(listed.end - listed.start)]
        offset = listed.end
    return "".join([*pieces, text[offset:]])


def _insert(words: Words, lists: list[ListColumn]) -> None:
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
    written = text[begin:].split("\n", 1)[0].rstrip()
    cut = max(0, min(column - 1 - SHOWN // 2, len(written) - SHOWN))
    before, after = "…" if cut else "", "…" if len(written) > cut + SHOWN else ""
    shown = "".join(char if char.isprintable() else " " for char in written[cut : cut + SHOWN])
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
    offset = 0
    while offset < len(text):
        match = _CLOSED.match(text, offset)
        if match is None:
            opened = "/*" if text[offset] == "/" else text[offset]
            closing = "*/" if opened == "/*" else opened
            what = f"what {opened} begins here is never closed"
            return complain(text, offset, what, f"Add the missing {closing}")
        offset = match.end()
    return complain(text, 0, "it cannot be read as SQL", "Is there an X'..' with other than hexadecimal digits?")


def _merged(text: str, tokens: list[Token], unsure: set[int]) -> Iterator[Token]:
    """Tokens, where several of sqlglot's are one of Spark's."""
    index = 0
    while index < len(tokens):
        token = tokens[index]
        following = tokens[index + 1] if index + 1 < len(tokens) else None
        if token.token_type in _STRINGS:
            rest = map(tokens.__getitem__, range(index, len(tokens)))
            strings = list(takewhile(lambda one: one.token_type in _STRINGS, rest))
            if index and _makes_literal(tokens, index - 1):
                _refuse_gap(text, strings)
            yield _string(text, strings, unsure)
            index += len(strings)
        elif token.token_type is Kind.NUMBER:
            # A suffix arrives as a cast in three tokens of one place: `5L` as `5 :: L`.
            yield _number(text, token, negative=index > 0 and tokens[index - 1].token_type is Kind.DASH)
            index += 3 if following is not None and following.start == token.start else 1
        elif token.token_type is Kind.HEX_STRING and text[token.start] == "0":
            yield _at(Kind.VAR, text[token.start : token.end + 1], token, token)  # to Spark 0x1F is a name
            index += 1
        elif token.text.startswith("~") and token.token_type in _TILDES:
            # To sqlglot `~~` is LIKE, as in PostgreSQL; to Spark it is a `~` of a `~`.
            for place, sign in enumerate(token.text, token.start):
                yield Token(Kind.TILDE if sign == "~" else Kind.STAR, sign, token.line, token.col, place, place)
            index += 1
        elif _is_bang(token, following) and following is not None:
            kind = Kind.LTE if following.token_type is Kind.GT else Kind.GTE
            yield _at(kind, text[token.start : following.end + 1], token, following)
            index += 2
        elif _is_hex(tokens, index) and following is not None:
            yield _hex(text, token, following)
            index += 2
        elif _is_shift(tokens, index):
            yield from (token, _at(Kind.GT, ">>", tokens[index + 1], tokens[index + 2]))
            index += 3
        else:
            yield token
            index += 1


def _number(text: str, token: Token, *, negative: bool) -> Token:
    """A number as it is written; ParseError if its type cannot hold it. `5e` is a name."""
    if _CUT_NUMBER.fullmatch(token.text):
        return _at(Kind.VAR, token.text, token, token)
    written = text[token.start : token.end + 1]
    if _POINTED_INT.fullmatch(written):
        raise complain(text, token.start, "an integer of a type has no point", "Write 5L, or 5.0.")
    if (type_ := beyond(written, negative=negative)) is not None:
        what = f"the number is too large for a {type_}, or has too many digits"
        raise complain(text, token.start, what, "Spark has no such literal: write a number that it can hold.")
    return _at(Kind.NUMBER, written, token, token)


def _makes_literal(tokens: list[Token], index: int) -> bool:
    """Whether the word at index is a type's, as in DATE '2024-01-15'; after a dot it is a name."""
    return tokens[index].text.upper() in _TYPES and (index == 0 or tokens[index - 1].token_type is not Kind.DOT)


def _refuse_gap(text: str, strings: list[Token]) -> None:
    """Of a typed literal Spark takes one string; two with nothing between them are one, with a quote in it."""
    for before, after in pairwise(strings):
        if before.end + 1 < after.start:
            raise complain(text, after.start, "a second string follows", "Write the literal as one string.")


def _is_hex(tokens: list[Token], index: int) -> bool:
    """Whether X "1F" begins here, or X '1F' with a blank: to sqlglot a name and a string."""
    if tokens[index].text.upper() != "X" or tokens[index].token_type is not Kind.VAR:
        return False
    named = index > 0 and tokens[index - 1].token_type is Kind.DOT
    return not named and index + 1 < len(tokens) and tokens[index + 1].token_type is Kind.STRING


def _hex(text: str, first: Token, digits: Token) -> Token:
    if not _HEX.fullmatch(digits.text):
        raise complain(text, digits.start, "X'..' has other than hexadecimal digits in it")
    return _at(Kind.HEX_STRING, digits.text, first, digits)


def _is_shift(tokens: list[Token], index: int) -> bool:
    """Whether `>>>` begins here: Spark's shift of the bits without their sign, of which sqlglot has no word."""
    signs = tokens[index : index + 3]
    adjacent = len(signs) == 3 and signs[2].start == signs[0].start + 2  # noqa: PLR2004 - the length of the sign
    return adjacent and all(sign.token_type is Kind.GT for sign in signs)


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


def _called(tokens: list[Token]) -> list[Token]:
    """The same, where operators that stand as functions are names: `in(x, 1, 2)`, `and(a, b)`."""
    value = False  # whether a value has just ended, so that an operator may follow
    made: list[Token] = []
    for index, token in enumerate(tokens):
        kind = token.token_type
        called = index + 1 < len(tokens) and tokens[index + 1].token_type is Kind.L_PAREN
        if kind in _CALLABLE and called and not value:
            made.append(_at(Kind.VAR, token.text, token, token))
            continue
        made.append(token)
        if kind is not Kind.NOT:
            value = kind not in _BEFORE_VALUE
    return made


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
