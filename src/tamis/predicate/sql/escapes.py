"""Escapes in Spark's strings."""

from __future__ import annotations

import re
import sys

__all__ = ["has_surrogate", "unescaped"]

_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([01][0-7]{2})|(.))", re.DOTALL)
_NAMED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_SURROGATE = re.compile("[\ud800-\udfff]")


def unescaped(raw: str) -> str:
    """What stands between the quotes of a string, as Spark reads it; half a character if it is none."""
    return _ESCAPE.sub(_character, raw)


def has_surrogate(text: str) -> bool:
    """Whether there is half of a character in it, which may or may not have its other half."""
    return _SURROGATE.search(text) is not None


def _character(match: re.Match[str]) -> str:
    short, long, octal, other = match.groups()
    if other is not None:
        return _NAMED.get(other, other)
    code = int(octal, 8) if octal else int(short or long, 16)
    return chr(code) if code <= sys.maxunicode else "\ufffd\ud800"  # no character: unsure
