"""The JSON of a metadata file, plain or gzipped, and how its values are asked for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

from tamis.errors import UnreadableMetadataError
from tamis.formats.document import (
    Document,
    Misfit,
    boolean,
    each,
    integer,
    kind_of,
    location,
    long,
    mapping,
    may,
    need,
    text,
    within,
)
from tamis.formats.errors import unreadable
from tamis.formats.storage.inflate import inflate_gzip

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

MOST_BYTES: Final = 1 << 30
"""A gibibyte of JSON, a million snapshots: more is no table's metadata, and takes ten times that in memory."""
OLDER: Final = "Restore the file, or open an older metadata file of the table by its name."
_GZIP: Final = b"\x1f\x8b"
_LONGEST_PLACE: Final = 200


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
        raise _no_metadata(path, f"it is not table metadata ({kind_of(document)}, not an object)")
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
