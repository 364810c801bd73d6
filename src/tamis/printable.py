"""Text of strangers made safe to print: names, values and paths come from whoever wrote the table.

Law: nothing that is printed moves the cursor, changes colours or titles, turns the direction of writing round, or
begins a line of its own. What would do so is shown as an escape; everything else, in any script, stays as it is.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["UNSAFE", "printable", "printable_lines"]

_CONTROLS: Final = (
    "\x00-\x1f\x7f-\x9f"  # C0, DEL, C1: escape sequences begin with one of these
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # marks and overrides of the direction of writing
    "\u2028\u2029"  # line and paragraph separators
    "\ufeff"  # a byte order mark, which is not seen
    "\ud800-\udfff"  # halves of a pair, which no encoding can write
)
UNSAFE: Final = re.compile(f"[{_CONTROLS}]")


def printable(text: str) -> str:
    r"""The text on one line, with nothing in it that a terminal or a page obeys.

    >>> printable("eu\x1b]0;title\x07"), printable("a\nb"), printable("naïve 😀")
    ('eu\\x1b]0;title\\x07', 'a\\nb', 'naïve 😀')
    """
    return UNSAFE.sub(_escaped, text)


def printable_lines(text: str) -> str:
    """The same for a text of several lines: its line breaks stay."""
    return "\n".join(printable(line) for line in text.split("\n"))


def _escaped(found: re.Match[str]) -> str:
    return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(found[0]) or _numbered(ord(found[0]))


def _numbered(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"  # noqa: PLR2004 - two hexadecimal digits
