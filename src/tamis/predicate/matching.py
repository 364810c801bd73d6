"""The condition by which a MERGE matches rows of a target with rows of a source, taken apart for pruning.

Law: nothing is taken for what it may not be. A comparison counts as one of keys only if one side is surely a column
of the target, and the other names columns of the source alone; a condition counts as one on the target only if it
names no other column. All else prunes nothing, and is left to Spark, which joins by the text as it was written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from sqlglot.tokenizer_core import TokenType as Kind

from tamis.predicate.names import backticked
from tamis.predicate.nodes import Ref
from tamis.predicate.schema import Schema
from tamis.predicate.sql.operands import Operands
from tamis.predicate.sql.tokens import Words, read

__all__ = ["KeyPair", "Matching", "Sides", "matching", "qualified"]

_EQUALS: Final = {Kind.EQ, Kind.NULLSAFE_EQ}
_OTHER: Final = {
    *(Kind.NEQ, Kind.LT, Kind.LTE, Kind.GT, Kind.GTE, Kind.IN, Kind.IS, Kind.LIKE, Kind.ILIKE, Kind.RLIKE),
    *(Kind.BETWEEN, Kind.NOT, Kind.OR, Kind.AND),
}
"""With one of these beside it, an equals sign does not compare all of both sides."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A column of the target that has to equal what is computed of the source."""

    column: tuple[str, ...]
    source: str
    """SQL over the source alone."""
    null_safe: bool


@dataclass(frozen=True, slots=True)
class Matching:
    """What all matches have in common."""

    pairs: tuple[KeyPair, ...]
    target_only: tuple[str, ...]
    """Conditions that every row of the target meets that matches; SQL."""


@dataclass(frozen=True, slots=True)
class Sides:
    """Who a column in the text belongs to."""

    schema: Schema
    source: tuple[str, ...]
    """The names of the source's columns."""
    target_alias: str
    source_alias: str

    def owner(self, path: tuple[str, ...]) -> Literal["target", "source"] | None:
        """Whose column it is; None if that is not sure, or nobody's."""
        first = path[0].lower()
        mine = {column.path[0].lower() for column in self.schema.columns}
        theirs = {name.lower() for name in self.source}
        aliases = {self.target_alias.lower(): "target", self.source_alias.lower(): "source"}
        if len(path) > 1 and first in aliases:
            named: Literal["target", "source"] = "target" if aliases[first] == "target" else "source"
            return None if first in mine | theirs else named
        if (first in mine) is (first in theirs):
            return None
        return "target" if first in mine else "source"

    def bare(self, path: tuple[str, ...]) -> tuple[str, ...]:
        """The path of the target's column, without its alias."""
        return path[1:] if len(path) > 1 and path[0].lower() == self.target_alias.lower() else path

    def owners(self, refs: Iterable[Ref]) -> Collection[str | None]:
        """Whose columns these are."""
        return {self.owner(ref.path) for ref in refs}


def matching(text: str, sides: Sides) -> Matching:
    """What the condition says of keys and of the target; ParseError if the text is no condition.

    >>> import pyarrow as pa
    >>> sides = Sides(Schema.of(id=pa.int64(), region=pa.string()), ("id", "op"), "t", "s")
    >>> matching("t.id = s.id and region = 'eu' and op <> 'x'", sides)
    Matching(pairs=(KeyPair(column=('id',), source='s.id', null_safe=False),), target_only=("region = 'eu'",))
    """
    words = read(text)
    operands = Operands(words)
    pairs: list[KeyPair] = []
    alone: list[str] = []
    for start, end in _conjuncts(words, 0, len(words.tokens)):
        kinds = {words.kind(index) for index in range(start, end)}
        if Kind.SELECT in kinds or Kind.COLON in kinds:
            continue
        pair = _pair(operands, sides, start, end)
        if pair is not None:
            pairs.append(pair)
        elif sides.owners(operands.opaque(start, end).refs) == {"target"}:
            alone.append(words.source(start, end))
    return Matching(tuple(pairs), tuple(alone))


def _conjuncts(words: Words, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The ranges of conditions that all have to be true."""
    while words.kind(start) is Kind.L_PAREN and words.closing.get(start) == end - 1:
        start, end = start + 1, end - 1
    top = list(words.steps(start, end))
    if any(words.kind(index) is Kind.OR for index in top):
        yield start, end
        return
    betweens, begin = 0, start
    for index in top:
        kind = words.kind(index)
        if kind is Kind.BETWEEN:
            betweens += 1
        elif kind is Kind.AND and betweens:
            betweens -= 1
        elif kind is Kind.AND:
            yield from _conjuncts(words, begin, index)
            begin = index + 1
    if begin == start:
        yield start, end
    else:
        yield from _conjuncts(words, begin, end)


def _pair(operands: Operands, sides: Sides, start: int, end: int) -> KeyPair | None:
    words = operands.words
    top = list(words.steps(start, end))
    equals = [index for index in top if words.kind(index) in _EQUALS]
    if len(equals) != 1 or any(words.kind(index) in _OTHER for index in top):
        return None
    (at,) = equals
    left, right = (start, at), (at + 1, end)
    for mine, other in ((left, right), (right, left)):
        column = operands.read(*mine)
        if not isinstance(column, Ref) or sides.owner(column.path) != "target":
            continue
        refs = operands.opaque(*other).refs
        if refs and sides.owners(refs) == {"source"}:
            return KeyPair(sides.bare(column.path), words.source(*other), words.kind(at) is Kind.NULLSAFE_EQ)
    return None


def qualified(alias: str, name: str) -> str:
    """A column of a side, as SQL."""
    return f"{backticked(alias)}.{backticked(name)}"
