"""From nodes back to Spark's SQL, for people and for Spark.

Law: the text means what the node means, to Spark and to parse() alike: parse(render(node)) is node, for every node
that parse() makes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Final
from uuid import UUID

import pyarrow as pa
from pyarrow import types as pt

from tamis.predicate.keys import INT32_MAX, INT32_MIN
from tamis.predicate.literals import LiteralColumn
from tamis.predicate.names import backticked, quote_name
from tamis.predicate.nodes import (
    And,
    Call,
    Compare,
    Constant,
    In,
    IsNull,
    Like,
    Literal,
    Node,
    Not,
    Opaque,
    Or,
    Ref,
    StartsWith,
    Term,
    Truth,
)
from tamis.predicate.type_names import NAMES

__all__ = ["MAX_TEXT", "brief", "render", "shortened"]

MAX_TEXT = 2000
"""Longest text of a condition for people; of a generated one of thousands of parts the beginning is shown."""

_INT32 = range(INT32_MIN, INT32_MAX + 1)
_SUFFIXES: Final = {pa.int8(): "Y", pa.int16(): "S", pa.int32(): "", pa.int64(): "L"}
_ESCAPES: Final = str.maketrans(
    {"\\": "\\\\", "'": "\\'", "\0": "\\0", "\b": "\\b", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\x1a": "\\Z"}
)
_KEYWORDS: Final = frozenset(
    {
        *("all", "and", "anti", "any", "as", "between", "both", "case", "cast", "connect_by_root", "cross"),
        *("current_date", "current_datetime", "current_role", "current_time", "current_timestamp"),
        *("current_user", "delete", "distinct", "div", "else", "end", "escape", "except", "exists", "false"),
        *("filter", "for", "from", "full", "having", "if", "ilike", "in", "inner", "insert", "intersect"),
        *("interval", "is", "join", "lateral", "leading", "left", "like", "limit", "merge", "minus", "natural"),
        *("not", "null", "on", "or", "order", "outer", "over", "partitioned_by", "regexp", "right", "rlike"),
        *("select", "semi", "session_user", "some", "then", "trailing", "true", "try_cast", "union", "unknown"),
        *("update", "user", "using", "values", "when", "where", "with", "within"),
    }
)
"""Names that are quoted since, bare, they may be read as something else."""

_Piece = str | Node | Term | Literal


def render(node: Node | Term | Literal) -> str:
    r"""The SQL text of a node, a term or a literal, complete.

    >>> render(And((Compare("=", Ref(("a", "b c")), Literal("it's", pa.string())), Not(IsNull(Ref(("x",)))))))
    "a.`b c` = 'it\\'s' AND x IS NOT NULL"
    """
    return _text(node, None)


def brief(node: Node | Term | Literal, limit: int = 8) -> str:
    """The same, for people: of a list with more than limit members, only the first few and their number.

    >>> brief(In(Ref(("id",)), tuple(Literal(i, pa.int32()) for i in range(1000))), limit=3)
    'id IN (0, 1, 2, … 997 more)'
    """
    return _text(node, limit)


def shortened(text: str, limit: int = MAX_TEXT) -> str:
    """The text, or its beginning and how long it is.

    >>> shortened("id IN (1, 2, 3)", limit=9)
    'id IN (1,… (15 characters)'
    """
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text):,} characters)"


def _text(node: Node | Term | Literal, limit: int | None) -> str:
    """The pieces in their order, put together once: neither depth nor length costs more than what is written."""
    written: list[str] = []
    todo: list[_Piece] = [node]
    while todo:
        piece = todo.pop()
        if isinstance(piece, str):
            written.append(piece)
        else:
            todo.extend(reversed(_pieces(piece, limit)))
    return "".join(written)


def _pieces(node: Node | Term | Literal, limit: int | None) -> list[_Piece]:
    """A node as text and the nodes that stand between."""
    match node:
        case Literal():
            return [_literal(node)]
        case Ref(path=path):
            return [".".join(_name(part) for part in path)]
        case Call():
            return _call(node)
        case Constant(value=value):
            return ["NULL" if value is None else str(value).lower()]
        case And(operands=operands):
            return _joined(operands, " AND ", Or, Opaque)
        case Or(operands=operands):
            return _joined(operands, " OR ", Opaque)
        case Not(operand=In() | IsNull() | Like() | Truth() as operand):
            return _predicate(operand, limit, "NOT ")
        case Not(operand=Ref() | Call() | StartsWith() | Constant() as operand):
            return ["NOT ", operand]
        case Not(operand=operand):
            return ["NOT (", operand, ")"]
        case Opaque(sql=sql):
            return [sql]
        case _:
            return _predicate(node, limit)


def _predicate(node: Node, limit: int | None, negation: str = "") -> list[_Piece]:
    """A predicate, with "NOT " at the place where SQL has it."""
    match node:
        case Compare(operator=operator, term=term, literal=literal):
            return [term, f" {operator} {_literal(literal)}"]
        case In(term=term, literals=literals):
            return [term, f" {negation}IN ({_listed(literals, limit)})"]
        case IsNull(term=term):
            return [term, f" IS {negation}NULL"]
        case Like(term=term, pattern=pattern, escape=escape):
            tail = "" if escape == "\\" else f" ESCAPE {_string(escape)}"
            return [term, f" {negation}LIKE {_string(pattern)}{tail}"]
        case StartsWith(term=term, prefix=prefix):
            return ["startswith(", term, f", {_literal(prefix)})"]
        case Truth(operand=operand, value=value):
            word = "UNKNOWN" if value is None else str(value).upper()
            shown: list[_Piece] = [operand] if isinstance(operand, Ref) else ["(", operand, ")"]
            return [*shown, f" IS {negation}{word}"]
    raise TypeError(f"{node!r} is not a predicate")


def _joined(operands: Sequence[Node], word: str, *grouped: type) -> list[_Piece]:
    """The operands with a word between them, those of some kinds in brackets."""
    pieces: list[_Piece] = []
    for operand in operands:
        pieces += [word, "(", operand, ")"] if isinstance(operand, grouped) else [word, operand]
    return pieces[1:]


def _call(call: Call) -> list[_Piece]:
    match call.function:
        case "date_trunc":
            return [f"date_trunc({_string(str(call.argument))}, ", call.term, ")"]
        case "trunc":
            return ["trunc(", call.term, f", {_string(str(call.argument))})"]
        case "left":
            return ["left(", call.term, f", {call.argument})"]
        case "cast":
            return ["cast(", call.term, f" AS {call.argument})"]
    return [f"{call.function}(", call.term, ")"]


def _listed(literals: Sequence[Literal], limit: int | None) -> str:
    if limit is None and isinstance(literals, LiteralColumn):
        return _column(literals)
    if limit is None or len(literals) <= limit:
        return ", ".join(map(_literal, literals))
    shown = ", ".join(map(_literal, literals[:limit]))
    return f"{shown}, … {len(literals) - limit} more"


def _column(column: LiteralColumn) -> str:
    """A long list: numbers as they are, and texts in quotes."""
    values = column.values.to_pylist()
    if column.type is None:
        return ", ".join("NULL" if value is None else str(value) for value in values)
    if column.type == pa.string():
        return ", ".join("NULL" if value is None else _string(value) for value in values)
    return ", ".join(map(_literal, column))


def _name(part: str) -> str:
    return backticked(part) if part.lower() in _KEYWORDS else quote_name(part)


def _literal(literal: Literal) -> str:
    value, type_ = literal.value, literal.type
    match value:
        case None:
            return "NULL" if pt.is_null(type_) else f"cast(NULL AS {_type_name(type_)})"
        case bool():
            return str(value).lower()
        case int():
            return _int(value, type_)
        case float():
            return _float(value, type_)
        case Decimal():
            return _decimal(value, type_)
        case bytes() if type_ == pa.uuid():
            return _string(str(UUID(bytes=value)))
        case bytes():
            return f"X'{value.hex().upper()}'"
        case UUID():
            return _string(str(value))
        case str():
            name = _type_name(type_)
            return _string(value) if name == "string" else f"{name} {_string(value)}"
        case datetime() | date() | time():
            return f"{_type_name(type_)} {_string(_moment(value))}"
    raise TypeError(f"{value!r} is not a literal's value")


def _int(value: int, type_: pa.DataType) -> str:
    """A bigint that no int holds is one without its suffix."""
    natural = pt.is_int64(type_) and value not in _INT32
    return f"{value}{'' if natural else _SUFFIXES.get(type_, '')}"


def _float(value: float, type_: pa.DataType) -> str:
    if math.isfinite(value):
        return f"{value!r}{'F' if pt.is_float32(type_) else 'D'}"
    word = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return f"{_type_name(type_)}('{word}')"


def _decimal(value: Decimal, type_: pa.DataType) -> str:
    """Just the digits, if the type follows from them; BD keeps a whole number from being an integer."""
    digits = value.as_tuple()
    scale = -int(digits.exponent)
    plain = f"{value:f}"
    significant = len(str(int("".join(map(str, digits.digits)))))
    natural = scale == type_.scale and scale >= 0 and type_.precision == max(significant, scale, 1)
    if natural:
        return plain if scale else f"{plain}BD"
    return f"cast({plain}{'' if scale > 0 else 'BD'} AS {_type_name(type_)})"


def _type_name(type_: pa.DataType) -> str:
    if pt.is_decimal(type_):
        return f"decimal({type_.precision}, {type_.scale})"
    if pt.is_timestamp(type_):
        return "timestamp_ntz" if type_.tz is None else "timestamp"
    if pt.is_time(type_):
        return "time"
    return NAMES.get(type_, "binary" if pt.is_fixed_size_binary(type_) else "string")


def _string(text: str) -> str:
    """Text in quotes, as Spark reads it back; `${` is broken up, since Spark would put a variable's value there."""
    return "'" + text.translate(_ESCAPES).replace("${", "$\\{") + "'"


def _moment(value: date | time) -> str:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            return value.isoformat(" ")
        return value.astimezone(UTC).replace(tzinfo=None).isoformat(" ") + "Z"
    return value.isoformat()
