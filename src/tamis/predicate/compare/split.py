"""Where a literal splits the order of a type.

A split is two keys: the least key that is `>=` the literal and the least that is `>` it. If they are equal, the type
has no such value (`int_col = 5.5`). Each is a pair, (at least, at most): they differ where Spark's answer depends on
settings, or on clocks being set back.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import pyarrow as pa

from tamis.errors import BindError
from tamis.predicate.keys import Key, successor
from tamis.predicate.nodes import Literal
from tamis.predicate.type_names import a_type

__all__ = ["Pair", "Split", "incomparable", "unordered", "unreadable"]

Pair = tuple[Key, Key]


@dataclass(frozen=True, slots=True)
class Split:
    """The least keys at or above, and above, a literal; each as the least and the most that it may be."""

    at: Pair
    after: Pair
    exact: bool = True
    """False if Spark may compare otherwise, or fail, for some values: then nothing is certain."""

    @classmethod
    def key(cls, key: Key) -> Split:
        """The literal is a value of the type."""
        above = successor(key)
        return cls((key, key), (above, above))

    @classmethod
    def number(cls, value: Fraction) -> Split:
        """The literal lies somewhere among whole keys."""
        at, after = math.ceil(value), math.floor(value) + 1
        return cls((at, at), (after, after))

    def hull(self, other: Split) -> Split:
        """Either may be what Spark does."""
        return Split(
            (min(self.at[0], other.at[0]), max(self.at[1], other.at[1])),
            (min(self.after[0], other.after[0]), max(self.after[1], other.after[1])),
            self.exact and other.exact,
        )


def incomparable(where: str, type_: pa.DataType, literal: Literal, beside: Literal | None = None) -> BindError:
    """The error for types that do not compare, in a list maybe only because of another literal beside it."""
    among = "" if beside is None else f" in one list with {_shown(beside)}"
    return BindError(
        f"cannot compare {where}, {a_type(type_)}, with {_shown(literal)}{among}. "
        f"Write the value as {a_type(type_)}, or cast one side.",
        column=where,
        nearest=(),
    )


def _shown(literal: Literal) -> str:
    value = "NULL" if literal.value is None else repr(literal.value)
    return f"{value}, {a_type(literal.type)}"


def unordered(where: str, type_: pa.DataType) -> BindError:
    """The error for types of which Spark compares no values."""
    return BindError(
        f"cannot compare {where}, {a_type(type_)}: Spark compares no maps. Compare one of its values: m['key'] = 5.",
        column=where,
        nearest=(),
    )


def unreadable(where: str, type_: pa.DataType, text: str) -> BindError:
    """The error for text that is no value of the type."""
    return BindError(
        f"cannot read {text!r} as {a_type(type_)}, to compare it with {where}. Check its format.",
        column=where,
        nearest=(),
    )
