"""What stands at either side of a comparison: a term, a literal, or words that only Spark understands."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError as SqlglotError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token
from sqlglot.tokenizer_core import TokenType as Kind

from tamis.errors import ParseError
from tamis.predicate.compare.zones import Zone
from tamis.predicate.nodes import Literal, Opaque, Ref, Term
from tamis.predicate.sql.folding import fold
from tamis.predicate.sql.strictness import refused_type
from tamis.predicate.sql.terms import refs, term
from tamis.predicate.sql.tokens import Words

__all__ = ["Operand", "Operands"]

Operand = Term | Literal | None
"""None is an expression that is not analysed."""

_SPECIAL_SYNTAX = {
    *("CAST", "CEIL", "EXTRACT", "FLOOR", "OVERLAY", "POSITION", "SUBSTR", "SUBSTRING", "TRIM", "TRY_CAST"),
}
_NO_NAMES = {Kind.NULL, Kind.TRUE, Kind.FALSE, Kind.CURRENT_DATE, Kind.CURRENT_TIMESTAMP, Kind.CURRENT_USER,
             Kind.CURRENT_TIME, Kind.CURRENT_DATETIME, Kind.SESSION_USER, Kind.CURRENT_ROLE, Kind.CASE, Kind.NOT,
             Kind.STRING, Kind.NUMBER, Kind.HEX_STRING, Kind.SELECT, Kind.DISTINCT}  # fmt: skip
"""Words that do not name a column, though they may stand alone."""
_QUERY = {Kind.SELECT, Kind.WITH, Kind.FROM, Kind.VALUES}
_LITERALS = {Kind.NUMBER, Kind.STRING}
_BEFORE_STRING = {Kind.AND, Kind.OR, Kind.NOT, Kind.BETWEEN, Kind.LIKE, Kind.ILIKE, Kind.RLIKE, Kind.WHEN, Kind.THEN}
"""Words that make no literal of the string behind them."""
_SIGNED = {Kind.NUMBER, Kind.R_PAREN, Kind.VAR, Kind.IDENTIFIER, Kind.STRING, Kind.R_BRACKET}
"""What a plus follows if it adds; else it is a sign."""


class _Parser(SparkParser):
    """sqlglot's parser, with every function as it is written: none is translated to another."""

    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: reader for name, reader in SparkParser.FUNCTION_PARSERS.items() if name in _SPECIAL_SYNTAX
    }
    # Without other dialects' `->` into JSON, which is checked and logged; of a lambda it is no operator.
    COLUMN_OPERATORS: ClassVar[dict[Kind, Any]] = {
        kind: reader for kind, reader in SparkParser.COLUMN_OPERATORS.items() if kind in {Kind.DOT, Kind.DCOLON}
    }


class Operands:
    """Reads expressions from ranges of tokens, each a half-open [start, end)."""

    def __init__(self, words: Words, zone: Zone | None = None) -> None:
        self.words = words
        self.zone = zone
        self.parser = _Parser(dialect=Spark())

    def read(self, start: int, end: int) -> Operand:
        """The literal or the term that the tokens are; None if neither. ParseError if they are no expression."""
        start, end = self._bare(start, end)
        path = self._path(start, end)
        if path:
            return Ref(path)
        if end - start == 1 and self.words.kind(start) in _LITERALS and self.plain(start, end):
            text, quoted = self.words.tokens[start].text, self.words.kind(start) is Kind.STRING
            return fold(exp.Literal(this=text, is_string=quoted))
        expression = self.expression(start, end)
        if not self.plain(start, end):
            return None
        try:
            return fold(expression, self.zone) or term(expression)
        except RecursionError:
            return None  # a sum of a thousand summands: Spark may add them up

    def opaque(self, start: int, end: int) -> Opaque:
        """The tokens as they are written, and the columns that they read."""
        start, end = self._bare(start, end)
        path = self._path(start, end)
        columns = (Ref(path),) if path else refs(self.expression(start, end))
        return Opaque(self.words.source(start, end), columns)

    def expression(self, start: int, end: int) -> exp.Expression:
        """The tokens as sqlglot reads them; ParseError if it cannot."""
        if start >= end:
            before = self.words.tokens[start - 1].text
            raise self.words.error(start, f"an expression is missing after {before!r}")
        tokens = self.words.tokens[start:end]
        try:
            return self._checked(self._parsed(tokens), start)
        except SqlglotError as error:
            # A path into a variant, `v:a.b`, is none of sqlglot's Spark; without it, the columns are the same.
            without = self._without_paths(start, end)
            if len(without) == len(tokens):
                raise self._complaint(error, start, end) from None
        try:
            return self._checked(self._parsed(without), start)
        except SqlglotError as error:
            raise self._complaint(error, start, end) from None

    def _checked(self, expression: exp.Expression, start: int) -> exp.Expression:
        """The same, if every type in it is one of Spark's."""
        if (fault := refused_type(expression)) is not None:
            raise self.words.error(start, fault)
        return expression

    def _parsed(self, tokens: list[Token]) -> exp.Expression:
        (expression,) = self.parser.parse_into(exp.Condition, tokens, self.words.text)
        if not isinstance(expression, exp.Expression):
            raise SqlglotError("no expression")
        return expression

    def _bare(self, start: int, end: int) -> tuple[int, int]:
        """The same tokens without brackets around them, unless they make a row or a query of them."""
        words = self.words
        while words.kind(start) is Kind.L_PAREN and words.closing[start] == end - 1 and start + 1 < end - 1:
            inside = words.steps(start + 1, end - 1)
            if words.kind(start + 1) in _QUERY or any(words.kind(index) is Kind.COMMA for index in inside):
                break
            start, end = start + 1, end - 1
        return start, end

    def _path(self, start: int, end: int) -> tuple[str, ...]:
        """The names of `a.b.c`; empty if the tokens are anything else. A keyword alone is a name to Spark."""
        tokens = self.words.tokens[start:end]
        if len(tokens) % 2 == 0 or (len(tokens) == 1 and tokens[0].token_type in _NO_NAMES):
            return ()
        if any(dot.token_type is not Kind.DOT for dot in tokens[1::2]):
            return ()
        names = [token for token in tokens[::2] if token.token_type is Kind.IDENTIFIER or _is_word(token)]
        return tuple(token.text for token in names) if len(names) == len(tokens[::2]) else ()

    def plain(self, start: int, end: int) -> bool:
        """False where sqlglot's tree does not say what Spark computes."""
        words, comma = self.words, False
        for index in range(start, end):
            kind, following = words.kind(index), words.kind(index + 1)
            if kind is Kind.COLON or words.tokens[index].start in words.unsure:
                return False
            # substring(s, 1 FOR 3): of its length the tree knows nothing.
            if kind is Kind.FOR and comma:
                return False
            comma = kind is Kind.COMMA or (comma and kind is not Kind.FROM)
            # A sign is lost in the tree, and +'5' is a number.
            signs = kind is Kind.PLUS and (index == start or words.kind(index - 1) not in _SIGNED)
            if signs and following is not Kind.NUMBER:
                return False
            # DATE '…'::STRING casts the date. In the tree it is the text that is cast, and a date made of that.
            before = words.tokens[index - 1] if index > start else None
            typed = kind is Kind.STRING and before is not None and before.token_type not in _BEFORE_STRING
            typed = typed and before is not None and before.text[:1].isalpha()
            if typed and following is Kind.DCOLON:
                return False
        return True

    def _without_paths(self, start: int, end: int) -> list[Token]:
        words, kept, index = self.words, [], start
        while index < end:
            if words.kind(index) is Kind.COLON and index > start:
                index += 1 if words.kind(index + 1) is Kind.L_BRACKET else 2
                while index < end and words.kind(index) in {Kind.DOT, Kind.L_BRACKET}:
                    index = words.closing[index] + 1 if words.kind(index) is Kind.L_BRACKET else index + 2
                continue
            kept.append(words.tokens[index])
            index += 1
        return kept

    def _complaint(self, error: SqlglotError, start: int, end: int) -> ParseError:
        """The first complaint of sqlglot, at its place, in plain words."""
        details = error.errors[0] if error.errors else {}
        index, shown = self._token_index(details, start, end), str(details.get("highlight") or "")
        described = str(details.get("description") or "")
        cure = ""
        if "Expecting" in described:
            what = f"{described[0].lower()}{described[1:]} near {shown!r}"
        elif "Required" in described or not shown:
            what = f"something is missing near {shown or self.words.tokens[end - 1].text!r}"
        else:
            what = f"unexpected {shown!r}"
            if shown.isidentifier():
                cure = f"If it is a column's name, write `{shown}` in backticks."
        return self.words.error(index, what, cure)

    def _token_index(self, details: dict[str, object], start: int, end: int) -> int:
        for index in range(start, end):
            token = self.words.tokens[index]
            if (token.line, token.col) == (details.get("line"), details.get("col")):
                return index
        return end - 1


def _is_word(token: Token) -> bool:
    """A name without quotes: letters, digits and underscores; sqlglot knows many of them as keywords."""
    text = token.text.replace("_", "a")
    return text.isalnum() and not text.isdigit() and token.token_type not in {*_LITERALS, Kind.HEX_STRING}
