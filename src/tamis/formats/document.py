"""Documents of JSON, asked for values of a kind: what does not fit says where it stands.

Own code in place of a schema library: these few functions are all that is needed, and they cost nothing to import.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

__all__ = [
    "Document",
    "Misfit",
    "boolean",
    "each",
    "integer",
    "kind_of",
    "location",
    "long",
    "mapping",
    "may",
    "need",
    "text",
    "within",
]

Document = Mapping[str, Any]
Value = TypeVar("Value")
Read = Callable[[object], Value]
"""A value of JSON to one of a kind; Misfit if it is none."""

_PLAIN_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_LONGEST: Final = 40


class Misfit(ValueError):
    """A value that is not what belongs there; place is its path in the document, as far as it is known yet."""

    def __init__(self, reason: str, place: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.place = place

    def below(self, key: str | int) -> Misfit:
        """The same, with a step of its path more.

        >>> Misfit("it is null").below("manifest-list").below(3).below("snapshots").place
        'snapshots[3].manifest-list'
        """
        step = key if isinstance(key, str) and _PLAIN_KEY.fullmatch(key) else f"[{_quoted(key)}]"
        joint = "." if self.place and not self.place.startswith("[") else ""
        return Misfit(self.reason, f"{step}{joint}{self.place}")


def need(document: Document, key: str, read: Read[Value]) -> Value:
    """The value of that key, which has to be there."""
    if key not in document:
        raise Misfit("it is missing", key)
    return within(key, read, document[key])


def may(document: Document, key: str, read: Read[Value]) -> Value | None:
    """The value of that key; None if there is none, or null."""
    value = document.get(key)
    return None if value is None else within(key, read, value)


def within(key: str | int, read: Read[Value], value: object) -> Value:
    """What the value reads as; a misfit in it is one of that key."""
    try:
        return read(value)
    except Misfit as misfit:
        raise misfit.below(key) from None


def each(read: Read[Value]) -> Read[tuple[Value, ...]]:
    """How a list is read of which every item is read so."""

    def items(value: object) -> tuple[Value, ...]:
        if not isinstance(value, list):
            raise _wrong(value, "a list")
        found: list[Value] = []
        try:
            found.extend(map(read, value))
        except Misfit as misfit:
            raise misfit.below(len(found)) from None
        return tuple(found)

    return items


def mapping(value: object) -> Document:
    """An object."""
    if not isinstance(value, dict):
        raise _wrong(value, "an object")
    return value


def long(value: object) -> int:
    """A whole number of 64 bits. Neither a truth value nor a text of digits is one, nor is 1.0."""
    return _whole(value, 64)


def integer(value: object) -> int:
    """A whole number of 32 bits."""
    return _whole(value, 32)


def boolean(value: object) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise _wrong(value, "true or false")
    return value


def text(value: object) -> str:
    """A text, of characters that can be written down."""
    if not isinstance(value, str):
        raise _wrong(value, "a text")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise Misfit("it holds half a character, which no text can") from None
    return value


def location(value: object) -> str:
    """The place of a file or folder: a text that is not empty, without a NUL."""
    found = text(value)
    if not found:
        raise Misfit("it is empty, and names no file")
    if "\0" in found:
        raise Misfit("it holds a NUL character, which no file's name can")
    return found


def _whole(value: object, bits: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong(value, "a whole number")
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise Misfit(f"it is a number of more than {bits} bits")
    return value


def _wrong(value: object, wanted: str) -> Misfit:
    return Misfit(f"it is {kind_of(value)}, and {wanted} belongs there")


def kind_of(value: object) -> str:
    """What a value of JSON is. Never the value of a list or an object: it may be endless."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            return f"the text {_quoted(value)}"
        case int() if abs(value) < 1 << 64:
            return f"the number {value}"
        case float():
            return f"the number {value}"
        case int():
            return "a very long number"
        case list():
            return "a list"
    return "an object"


def _quoted(key: str | int) -> str:
    if isinstance(key, int):
        return str(key)
    return json.dumps(key if len(key) <= _LONGEST else f"{key[:_LONGEST]}…", ensure_ascii=not key.isprintable())
