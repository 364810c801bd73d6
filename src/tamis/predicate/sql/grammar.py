"""Conditions, by Spark's grammar.

    condition   = conjunction { OR conjunction }          conjunction = negation { AND negation }
    negation    = { NOT } predicate                       predicate   = value [ [NOT] IN | LIKE | BETWEEN | IS ... ]
    value       = operand { comparison operand }

Conditions and predicates are read here, from the tokens: a predicate applies to the whole comparison before it
(`a = 1 IS TRUE` is `(a = 1) IS TRUE`), and neither depth nor length is bounded by Python's stack. Operands are
sqlglot's work. What is not analysed keeps the user's own words.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from sqlglot.tokenizer_core import TokenType as Kind

from tamis.errors import ParseError
from tamis.predicate.compare.zones import Zone
from tamis.predicate.nodes import (
    MAX_NESTING,
    And,
    Call,
    IsNull,
    Node,
    Not,
    Opaque,
    Or,
    Ref,
    Truth,
    operands_of,
)
from tamis.predicate.sql.comparisons import Comparisons
from tamis.predicate.sql.operands import Operands
from tamis.predicate.sql.strictness import check_words
from tamis.predicate.sql.tokens import Words, read

__all__ = ["condition"]

_STATEMENTS = {"SELECT", "WITH", "INSERT", "DELETE", "UPDATE", "MERGE"}
_QUERY = {Kind.SELECT, Kind.WITH, Kind.FROM, Kind.VALUES}
MAX_COMPARED: Final = 30
"""Most conditions compared with truth values in one another: `((a = 1) = true) = true`. Deeper ones are opaque."""
_TRUTH = {Kind.TRUE: True, Kind.FALSE: False, Kind.UNKNOWN: None, Kind.NULL: None}


@dataclass(slots=True)
class _Frame:
    """What has been read since a bracket opened."""

    start: int
    ors: list[Node] = field(default_factory=list)
    ands: list[Node] = field(default_factory=list)
    nots: int = 0
    operand: Node | None = None
    operand_start: int = 0
    asked: bool = False
    """Whether IN, LIKE, BETWEEN or IS has been applied to the operand: Spark takes one of them, not two."""

    def settle(self) -> None:
        """The operand is complete: no IS can follow it."""
        node = self.operand
        if node is None:
            return
        for _ in range(self.nots):
            node = Not(node)
        self.nots, self.operand = 0, None
        self.ands.extend(node.operands if isinstance(node, And) else (node,))

    def alternative(self) -> None:
        """An OR, or the end."""
        self.settle()
        node = self.ands[0] if len(self.ands) == 1 else And(tuple(self.ands))
        self.ands = []
        self.ors.extend(node.operands if isinstance(node, Or) else (node,))

    def close(self) -> Node:
        """All of it."""
        self.alternative()
        return self.ors[0] if len(self.ors) == 1 else Or(tuple(self.ors))


def condition(text: str, zone: Zone | None = None) -> Node:
    """The condition that the text states; ParseError if it states none, or more than one."""
    words = read(text)
    _refuse_statements(words)
    check_words(words)
    try:
        node = _Reader(Operands(words, zone), 0, len(words.tokens)).read()
    except RecursionError:
        raise words.error(0, "an expression in it is nested too deeply", "Take it apart.") from None
    if _depth(node) > MAX_NESTING:
        what = f"it nests AND, OR, NOT and IS more than {MAX_NESTING:,} deep"
        raise words.error(0, what, "Write it flatter: ANDs of ANDs, and ORs of ORs, need no brackets.")
    return node


def _refuse_statements(words: Words) -> None:
    for index, token in enumerate(words.tokens):
        if token.token_type is Kind.SEMICOLON:
            raise words.error(index, "';' ends a statement", "Write one condition, without ';'.")
    first, named = words.tokens[0].text.upper(), words.kind(0) is Kind.IDENTIFIER
    if named or words.kind(1) not in {Kind.VAR, Kind.IDENTIFIER, Kind.L_PAREN, Kind.NUMBER, Kind.STRING, Kind.STAR}:
        return
    if first == "WHERE":
        raise words.error(0, "it begins with WHERE", "Leave out the word, and write the condition alone.")
    if first in _STATEMENTS:
        raise words.error(0, "it is a statement, not a condition", "Write what would follow the WHERE of a query.")


class _Reader:
    """One pass over the words of [start, end), with a frame for each bracket that is open."""

    def __init__(self, operands: Operands, start: int, end: int, depth: int = 0) -> None:
        self.words = operands.words
        self.operands = operands
        self.comparisons = Comparisons(self.words, operands, self._inside)
        self.start, self.end, self.depth = start, end, depth
        self.frames = [_Frame(start)]

    def read(self) -> Node:
        at = self.start
        while at < self.end:
            at = self._after_operand(at) if self.frames[-1].operand is not None else self._operand(at)
        if self.frames[-1].operand is None:
            raise self.words.error(at, f"a condition is missing after {self.words.tokens[at - 1].text!r}")
        return self.frames[-1].close()

    def _inside(self, start: int, end: int) -> Node | None:
        """The condition of a range that is compared with a truth value; None if such are nested too deeply."""
        return None if self.depth == MAX_COMPARED else _Reader(self.operands, start, end, self.depth + 1).read()

    def _kind(self, at: int) -> Kind | None:
        return self.words.kind(at) if at < self.end else None

    def _operand(self, at: int) -> int:
        """Read NOTs, an opening bracket, or a predicate up to the AND, OR, IS or bracket that ends it."""
        words, frame = self.words, self.frames[-1]
        if words.kind(at) is Kind.NOT:
            frame.nots += 1
            return at + 1
        if self._is_group(at):
            self.frames.append(_Frame(at))
            return at + 1
        end = self._end(at)
        if end == at:
            what = f"a condition is expected before {words.tokens[at].text!r}"
            raise words.error(at, what)
        frame.operand, frame.operand_start = self.comparisons.read(at, end), at
        frame.asked = self.comparisons.keyword(at, end) is not None
        return end

    def _after_operand(self, at: int) -> int:
        frame = self.frames[-1]
        match self.words.kind(at):
            case Kind.AND:
                frame.settle()
            case Kind.OR:
                frame.alternative()
            case Kind.IS:
                return self._is(at)
            case Kind.R_PAREN if len(self.frames) > 1:
                closed = self.frames.pop()
                self.frames[-1].operand, self.frames[-1].operand_start = closed.close(), closed.start
                self.frames[-1].asked = False
            case _:
                raise self._unexpected(at)
        return at + 1

    def _is(self, at: int) -> int:
        """Apply IS [NOT] NULL, TRUE, FALSE or UNKNOWN to what stands before it."""
        words, frame = self.words, self.frames[-1]
        if frame.asked:
            what = "IS follows another IS, IN, LIKE or BETWEEN"
            raise words.error(at, what, "Spark takes one of them: put the first in brackets.")
        frame.asked = True
        negated = words.kind(at + 1) is Kind.NOT
        end = at + 2 + negated
        kind = words.kind(end - 1)
        if kind not in _TRUTH:
            raise words.error(end - 1, "IS is followed by [NOT] NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM")
        operand = frame.operand
        if operand is None or isinstance(operand, Opaque):
            frame.operand = self.operands.opaque(frame.operand_start, end)
            return end
        on_term = kind is Kind.NULL and isinstance(operand, (Ref, Call))
        node = IsNull(operand) if on_term else Truth(operand, _TRUTH[kind])  # type: ignore[arg-type] # as on_term says
        frame.operand = Not(node) if negated else node
        return end

    def _is_group(self, at: int) -> bool:
        """Whether the bracket at this place holds a condition, not an operand, a row or a query."""
        words = self.words
        if words.kind(at) is not Kind.L_PAREN or words.kind(at + 1) in _QUERY:
            return False
        close = words.closing[at]
        ends = self._kind(close + 1) in {None, Kind.AND, Kind.OR, Kind.R_PAREN} or self._is_suffix(close + 1)
        return ends and all(words.kind(index) is not Kind.COMMA for index in words.steps(at + 1, close))

    def _is_suffix(self, at: int) -> bool:
        """Whether IS at this place is one of a condition; IS DISTINCT FROM is a comparison."""
        words = self.words
        after = at + 2 if words.kind(at + 1) is Kind.NOT else at + 1
        return self._kind(at) is Kind.IS and words.kind(after) is not Kind.DISTINCT

    def _end(self, start: int) -> int:
        """Where the predicate that begins at start ends."""
        words = self.words
        betweens = 0
        for index in words.steps(start, self.end):
            kind = words.kind(index)
            if kind is Kind.BETWEEN and index > start:
                betweens += 1
            elif kind is Kind.AND and betweens:
                betweens -= 1
            elif kind in {Kind.AND, Kind.OR, Kind.R_PAREN} or (index > start and self._is_suffix(index)):
                return index
        return self.end

    def _unexpected(self, at: int) -> ParseError:
        return self.words.error(at, f"unexpected {self.words.tokens[at].text!r}")


def _depth(root: Node) -> int:
    """Levels of conditions, counted without recursion."""
    deepest, level = 0, [root]
    while level:
        deepest += 1
        level = [operand for node in level for operand in operands_of(node)]
    return deepest
