"""Literals against columns, by Spark's rules of comparison.

What cannot be compared is a BindError; what compares, but not in the column's own order (`string_col = 5` casts every
string), is None: only Spark can tell.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from uuid import UUID

import pyarrow as pa
from pyarrow import types as pt

from tamis.predicate.compare.kinds import clashing, kind_of
from tamis.predicate.compare.moments import date_split, time_split, timestamp_split
from tamis.predicate.compare.numbers import exact_number, floating, listed_numbers
from tamis.predicate.compare.split import Split, incomparable, unordered
from tamis.predicate.compare.zones import Zone
from tamis.predicate.keys import uses_bytes
from tamis.predicate.literals import LiteralColumn
from tamis.predicate.nodes import Literal
from tamis.predicate.type_names import is_number, is_text

__all__ = ["check_kinds", "listed", "split"]

_TRUE, _FALSE = {"t", "true", "y", "yes", "1"}, {"f", "false", "n", "no", "0"}
_UUID_TEXT = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_DATE_KIND = str(pa.date32())
_MIXES = {
    _DATE_KIND: frozenset({_DATE_KIND, "text"}),
    "instant": frozenset({_DATE_KIND, "text", "instant", "wall"}),
    "wall": frozenset({_DATE_KIND, "text", "wall"}),
}
"""Kinds of literals that one list may mix against a kind of column, all brought to the column's own type."""


def check_kinds(type_: pa.DataType, literals: Sequence[Literal], where: str) -> None:
    """BindError if Spark's analyzer has no comparison of a term of type_ with all of the literals, NULLs included.

    A NULL has a type as well: `int_col = CAST(NULL AS date)` is refused, not unknown.
    """
    if pt.is_map(type_):
        raise unordered(where, type_)
    if isinstance(literals, LiteralColumn):
        first = literals.values.is_valid().index(True).as_py()
        literals = () if first < 0 else (literals[first],)  # the others are of its kind
    kinds = [kind_of(literal.type) for literal in literals]
    if clashing([kind_of(type_), *kinds]) is None:
        return
    for place, literal in enumerate(literals):
        # The first that does not fit is named: beside the term, or beside a literal before it.
        if clashing([kind_of(type_), kinds[place]]) is not None:
            raise incomparable(where, type_, literal)
        for before, kind in zip(literals[:place], kinds, strict=False):
            if clashing([kind_of(type_), kind, kinds[place]]) is not None:
                raise incomparable(where, type_, literal, before)


def split(type_: pa.DataType, literal: Literal, zone: Zone, where: str) -> Split | None:
    """Where the literal splits a term of type_; None if only Spark can tell. `where` names the term in errors."""
    match type_:
        case _ if pt.is_boolean(type_):
            return _boolean(literal, where)
        case _ if is_number(type_):
            return exact_number(type_, literal, where)
        case _ if pt.is_floating(type_):
            return floating(type_, literal, where)
        case _ if pt.is_date32(type_):
            return date_split(literal, zone, where)
        case _ if pt.is_timestamp(type_):
            return timestamp_split(type_, literal, zone, where)
        case _ if pt.is_time(type_):
            return time_split(type_, literal, where)
        case _ if type_ == pa.uuid():
            return _uuid(literal, where)
        case _ if is_text(type_) or uses_bytes(type_):
            return _bytes(type_, literal)
    return None


def listed(type_: pa.DataType, literals: Sequence[Literal], zone: Zone, where: str) -> list[Split] | None:
    """The splits of an IN list's members, none of them NULL; None if only Spark can tell.

    Spark compares a list in one common type, that grows from member to member: a double or a text makes numbers
    doubles, or not, by its place. So where kinds are mixed a number is taken both ways, and nothing is certain.
    """
    present = [literal for literal in literals if literal.value is not None]
    kinds = {_kind(literal.type) for literal in literals} - {"null"}
    if is_number(type_):
        return listed_numbers(type_, literals, present, kinds, where)
    if len(kinds) > 1 and pt.is_temporal(type_) and not kinds <= _MIXES.get(_kind(type_), frozenset()):
        return None
    splits = [split(type_, literal, zone, where) for literal in present]
    return None if None in splits else [cut for cut in splits if cut is not None]


def _kind(type_: pa.DataType) -> str:
    """Which literals Spark brings to one type without a question."""
    match type_:
        case _ if is_number(type_):
            return "number"
        case _ if pt.is_floating(type_):
            return "double"
        case _ if pt.is_timestamp(type_):
            return "instant" if type_.tz is not None else "wall"
        case _ if is_text(type_):
            return "text"
        case _:
            return str(type_)


def _boolean(literal: Literal, where: str) -> Split:
    match literal.value:
        case bool(value):
            return Split.key(int(value))
        case str(text) if is_text(literal.type) and text.strip().lower() in _TRUE | _FALSE:
            return Split.key(int(text.strip().lower() in _TRUE))
    raise incomparable(where, pa.bool_(), literal)


def _uuid(literal: Literal, where: str) -> Split:
    """Spark reads a uuid as its lower-case text, whose order is that of the bytes."""
    match literal.value:
        case UUID() as value:
            return Split.key(value.bytes)
        case bytes(value):
            return Split.key(value)
        case str(text) if is_text(literal.type) and _UUID_TEXT.fullmatch(text):
            return Split.key(bytes.fromhex(text.replace("-", "")))
        case str(text) if is_text(literal.type):
            at = _first_uuid(lambda uuid: uuid >= text)
            after = _first_uuid(lambda uuid: uuid > text)
            return Split((at, at), (after, after))
    raise incomparable(where, pa.uuid(), literal)


def _first_uuid(reached: Callable[[str], bool]) -> bytes:
    """The least uuid whose text reaches the mark; past the last one if none does."""
    low, high = 0, 1 << 128
    while low < high:
        middle = (low + high) // 2
        if reached(str(UUID(int=middle))):
            high = middle
        else:
            low = middle + 1
    return low.to_bytes(16, "big") if low < 1 << 128 else b"\xff" * 16 + b"\x00"


def _bytes(type_: pa.DataType, literal: Literal) -> Split | None:
    match literal.value:
        case str(text) if is_text(literal.type):
            return Split.key(text.encode())
        case bytes(value) if not is_text(type_) or pt.is_binary(literal.type):
            return Split.key(value)
        case UUID() as value if is_text(type_):
            return Split.key(str(value).encode())
    return None  # Spark casts the column, not the literal
