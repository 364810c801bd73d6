"""Numbers and lines for people: sizes, durations, counts, and text that fits a terminal of 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence
from typing import Final

from tamis.printable import printable

__all__ = [
    "WIDTH",
    "aligned",
    "readable_bytes",
    "readable_files",
    "readable_seconds",
    "shortened",
    "wrapped",
]

WIDTH: Final = 80
"""Columns of a terminal that nobody has widened."""
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_STEP: Final = 1024


def readable_bytes(count: int) -> str:
    """A size in the unit that leaves at most four digits.

    >>> readable_bytes(0), readable_bytes(1536), readable_bytes(5 * 1024**3)
    ('0 B', '1.5 KiB', '5.0 GiB')
    """
    size = float(count)
    for unit in _UNITS[:-1]:
        if abs(size) < _STEP:
            return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= _STEP
    return f"{size:.1f} {_UNITS[-1]}"


def readable_files(count: int) -> str:
    """How many files.

    >>> readable_files(1), readable_files(12000)
    ('1 file', '12,000 files')
    """
    return f"{count:,} file" if count == 1 else f"{count:,} files"


def readable_seconds(seconds: float) -> str:
    """A duration in the unit that suits it.

    >>> readable_seconds(0.00041), readable_seconds(0.0123), readable_seconds(23.594), readable_seconds(754)
    ('0.4 ms', '12 ms', '23.6 s', '12 min 34 s')
    """
    milliseconds = seconds * 1000
    if milliseconds < 9.95:  # noqa: PLR2004 - what is rounded to 10
        return f"{milliseconds:.1f} ms"
    if milliseconds < 999.5:  # noqa: PLR2004 - what is rounded to 1000
        return f"{milliseconds:.0f} ms"
    if seconds < 99.95:  # noqa: PLR2004 - what is rounded to 100
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"


def shortened(text: str, longest: int) -> str:
    """The text, or its beginning and how long it is.

    >>> shortened("id IN (1, 2, 3, 4)", 10)
    'id IN (1, … (18 characters)'
    """
    return text if len(text) <= longest else f"{text[:longest].rstrip()} … ({len(text):,} characters)"


def wrapped(text: str, first: str = "", rest: str | None = None) -> list[str]:
    """The text, made printable, on lines of at most WIDTH columns; a word that is longer has a line of its own."""
    following = " " * len(first) if rest is None else rest
    lines = textwrap.wrap(
        printable(text),
        WIDTH,
        initial_indent=first,
        subsequent_indent=following,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return lines or [first.rstrip()]


def aligned(rows: Sequence[Sequence[str]], left: Collection[int] = (0,)) -> list[str]:
    """Columns side by side, those in left to the left, numbers to the right; the last one runs free."""
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max(len(row[index]) for row in cells) for index in range(len(cells[0]))]
    return [
        "  ".join(
            cell.ljust(width) if index in left else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
