"""The JSON of a metadata file, asked for values of a kind: what does not fit says where it stands.

Own code in place of a schema library: these few functions are all that is needed, and they cost nothing to import.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar

from tamis.errors import UnreadableMetadataError
from tamis.formats.errors import unreadable
from tamis.formats.iceberg.inflate import inflate_gzip

__all__ = [
    "Document",
    "Misfit",
    "boolean",
    "damaged",
    "each",
    "integer",
    "location",
    "long",
    "mapping",
    "may",
    "need",
    "read_document",
    "text",
    "within",
]

Document = Mapping[str, Any]
Value = TypeVar("Value")
Read = Callable[[object], Value]
"""A value of JSON to one of a kind; Misfit if it is none."""

MOST_BYTES: Final = 1 << 30
"""A gibibyte of JSON, a million snapshots: more is no table's metadata, and takes ten times that in memory."""
OLDER: Final = "Restore the file, or open an older metadata file of the table by its name."
_GZIP: Final = b"\x1f\x8b"
_PLAIN_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_LONGEST: Final = 40
_LONGEST_PLACE: Final = 200


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


def read_document(data: bytes, path: str) -> dict[str, Any]:
    """The object that a metadata file holds, plain or gzipped. UnreadableMetadataError if it is none."""
    constants: list[str] = []
    try:
        raw = inflate_gzip(path, data) if data[:2] == _GZIP else data
        if len(raw) > MOST_BYTES:
            raise _no_metadata(path, f"it has {len(raw):,} bytes, more than the limit of {MOST_BYTES:,}")
        document = json.loads(raw, parse_constant=_noted(constants))
    except ValueError as error:
        raise unreadable(path, f"it is not JSON ({error})", getattr(error, "pos", None), cure=OLDER) from error
    except RecursionError as error:
        raise _no_metadata(path, "its JSON is nested deeper than that of any table's metadata") from error
    if not isinstance(document, dict):
        raise _no_metadata(path, f"it is not table metadata ({_kind(document)}, not an object)")
    if constants:
        place = next(_places(document), "")
        raise unreadable(path, f"it is not JSON ({constants[0]} is not a JSON number)", place=place, cure=OLDER)
    return document


def damaged(path: str, misfit: Misfit) -> UnreadableMetadataError:
    """The error for a metadata file in which something does not fit."""
    place = misfit.place
    if len(place) > _LONGEST_PLACE:
        place = f"{place[: _LONGEST_PLACE // 2]}…{place[-_LONGEST_PLACE // 2 :]}"
    return unreadable(path, misfit.reason, place=place or None, cure=OLDER)


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
    return Misfit(f"it is {_kind(value)}, and {wanted} belongs there")


def _kind(value: object) -> str:
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


def _no_metadata(path: str, reason: str) -> UnreadableMetadataError:
    return unreadable(path, reason, cure=OLDER)


class _Constant(str):
    """Infinity or NaN, which Python's parser takes and JSON does not have."""

    __slots__ = ()


def _noted(found: list[str]) -> Callable[[str], _Constant]:
    def note(name: str) -> _Constant:
        found.append(name)
        return _Constant(name)

    return note


def _places(document: object) -> Iterator[str]:
    """Where the document has Infinity or NaN, in no order. It may be nested deeply: no recursion."""
    left: list[tuple[tuple[str | int, ...], object]] = [((), document)]
    while left:
        path, value = left.pop()
        match value:
            case _Constant():
                misfit = Misfit("")
                for key in reversed(path):
                    misfit = misfit.below(key)
                yield misfit.place
            case dict():
                left += [((*path, key), one) for key, one in value.items()]
            case list():
                left += [((*path, place), one) for place, one in enumerate(value)]
