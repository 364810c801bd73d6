r"""Comments in a WHERE text, as Spark's lexer reads them.

A line's comment goes on after a backslash at the end of the line; one in `/* */` may hold others; and what begins
with `/*+` is a hint, which no condition has.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["without_comments"]

_SKIPPED: Final = re.compile(
    r"""r'[^']*+' | r"[^"]*+" | '(?:[^'\\]|\\.)*+' | "(?:[^"\\]|\\.)*+" | `(?:[^`]|``)*+`
    | (?P<line>--(?:\\\n|[^\r\n])*+) | (?P<block>/\*)""",
    re.DOTALL | re.VERBOSE | re.IGNORECASE,
)
_BLOCK: Final = re.compile(r"/\*\+?|\*/")


def without_comments(text: str) -> tuple[str, int | None]:
    """The text with blanks in the place of its comments, and where a hint begins; None if none does.

    A comment that is not closed stays as it is.

    >>> without_comments("a = 1 -- one")
    ('a = 1       ', None)
    >>> without_comments("a /*+ b */ = 1")
    ('a /*+ b */ = 1', 2)
    """
    if "--" not in text and "/*" not in text:
        return text, None
    pieces, offset, at = [], 0, 0
    while (match := _SKIPPED.search(text, at)) is not None:
        at = match.end()
        if match["block"] is not None:
            closed = _end_of_block(text, match.start())
            if closed is None:
                break
            at, hint = closed
            if hint is not None:
                return text, hint
        elif match["line"] is None:
            continue
        pieces += [text[offset : match.start()], " " * (at - match.start())]
        offset = at
    return "".join([*pieces, text[offset:]]), None


def _end_of_block(text: str, start: int) -> tuple[int, int | None] | None:
    """Where the comment that begins at start ends, and where a hint begins in it; None if it never ends."""
    depth = 0
    for match in _BLOCK.finditer(text, start):
        if match[0] == "/*+":
            return match.end(), match.start()
        depth += 1 if match[0] == "/*" else -1
        if depth == 0:
            return match.end(), None
    return None
