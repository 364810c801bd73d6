"""What clients of stores and catalogs say, without the secrets that they were given.

Law: no value of a property that is called secret, and no credential or query of a URI, is in what comes out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Final

from tamis.formats.errors import shown, unreachable

__all__ = ["explained", "safe_message", "safe_reason", "silence"]

_QUERY: Final = re.compile(r"\?[^\s'\")]*=[^\s'\")]*")
"""What follows a path in a URI, whether the URI is whole or a client quotes its path alone."""
_SECRET: Final = re.compile(
    "token|secret|passw|passphrase|credential|access[-_]?key|account[-_]?key|api[-_]?key|private[-_]?key|sas"
    "|authorization|cookie|signature|connection[-_]?string",
    re.IGNORECASE,
)
"""Names of properties whose values are secret: those of clients, and those of headers that they are told to send."""
SHORTEST_SECRET: Final = 4
"""Shorter values occur in any text by chance."""
LONGEST_SCHEME: Final = 9
"""Words up to this length say how one authenticates: Basic, Bearer, Negotiate."""
LONGEST_MESSAGE: Final = 300


def safe_message(error: BaseException, properties: Mapping[str, Any] = MappingProxyType({})) -> str:
    """The first line of a message, without credentials or query in any URI, secret values and its full stop."""
    line = _without_values(str(error).strip().partition("\n")[0], properties)
    line = " ".join(shown(word) for word in line.split(" "))
    return _QUERY.sub("?…", line)[:LONGEST_MESSAGE].rstrip(".")


def safe_reason(error: BaseException, location: str) -> str:
    """The kind of an error about a file, and its message if that can be told.

    A client may quote half a URI (bucket name 'key:secret@bucket'): with a credential in it, the kind alone.
    """
    kind = type(error).__name__
    return kind if shown(location) != location else f"{kind}: {safe_message(error)}"


@contextmanager
def explained(location: str) -> Iterator[None]:
    """Whatever a store's client raises about a file, as one error that names the file and the kind of failure."""
    try:
        yield
    except Exception as error:
        found = unreachable(location, error, safe_reason(error, location))
        silence(error, location)
        raise found from error


def silence(error: BaseException, location: str = "", properties: Mapping[str, Any] = MappingProxyType({})) -> None:
    """Take the message from an error that may tell a secret, and from those that it was raised from or after.

    It is the cause of what is raised in its place, and so a traceback shows it. To be done last: afterwards nobody
    can tell by it what went wrong.
    """
    hides = shown(location) != location
    chain: list[BaseException | None] = [error]
    for one in chain:
        if one is None:
            continue
        text = str(one)
        if hides or _without_values(text, properties) != text:
            one.args = ()
            if isinstance(one, OSError):
                one.strerror = one.filename = one.filename2 = None
        chain += (each for each in (one.__cause__, one.__context__) if each not in chain)


def _without_values(text: str, properties: Mapping[Any, Any]) -> str:
    """The text without any value that a property keeps secret, however deep it stands."""
    for value in sorted(_secrets(properties, secret=False), key=len, reverse=True):
        text = text.replace(value, "…")
    return text


def _secrets(value: object, *, secret: bool) -> Iterator[str]:
    match value:
        case Mapping():
            for name, inner in value.items():
                yield from _secrets(inner, secret=secret or _SECRET.search(str(name)) is not None)
        case list() | tuple():
            for inner in value:
                yield from _secrets(inner, secret=secret)
        case str() if secret and len(value) >= SHORTEST_SECRET:
            # A header says how it authenticates before what with.
            yield from {value, *(word for word in value.split() if len(word) > LONGEST_SCHEME)}
