"""Values of options as people write them: numbers, sizes such as "512MB", yes or no. ValueError says what to give."""

from __future__ import annotations

import math
import re
from typing import Final

__all__ = ["choice", "flag", "number", "ratio", "size", "size_text"]

_UNITS: Final = {"": 1, "b": 1} | {
    spelling: 1 << 10 * power
    for power, letter in enumerate("kmgtp", 1)
    for spelling in (letter, f"{letter}b", f"{letter}ib")
}
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)")
LONGEST: Final = 40
"""Letters of a value beyond which it is none."""


def number(value: object) -> int:
    """A whole number, also as text.

    >>> number("12"), number(3)
    (12, 3)
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and len(value) < LONGEST and re.fullmatch(r"[+-]?\d+", value.strip(), re.ASCII):
        return int(value)
    raise ValueError("give a whole number")


def size(value: object) -> int:
    """Bytes, as a number or as text with a unit. Units are powers of 1024, as in Spark's settings: MB is MiB.

    >>> size("512MB"), size("1.5 GiB"), size(1024)
    (536870912, 1610612736, 1024)
    """
    if isinstance(value, str) and len(value) < LONGEST:
        match = _SIZE.fullmatch(value.strip().lower())
        if match and match[2] in _UNITS:
            digits, unit = match[1], _UNITS[match[2]]
            return int(digits) * unit if digits.isdigit() else math.floor(float(digits) * unit)
        raise ValueError('give bytes, such as 536870912, or a size such as "512MB"')
    try:
        return number(value)
    except ValueError:
        raise ValueError('give bytes, such as 536870912, or a size such as "512MB"') from None


def size_text(count: int) -> str:
    """A size as it can be given: in the greatest unit of which it is a multiple.

    >>> size_text(512 << 20), size_text(1000), size_text(0)
    ('512MB', '1000 bytes', '0 bytes')
    """
    for power, letter in reversed([*enumerate("KMGTP", 1)]):
        if count and not count % (1 << 10 * power):
            return f"{count >> 10 * power}{letter}B"
    return f"{count} bytes"


def ratio(value: object) -> float:
    """A finite number, also as text."""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        try:
            found = float(value)
        except (ValueError, OverflowError):
            found = math.nan
        if math.isfinite(found):
            return found
    raise ValueError("give a number, such as 0.3")


def flag(value: object) -> bool:
    """True or False, also as text."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in {"true", "false"}:
        return value.strip().lower() == "true"
    raise ValueError("give true or false")


def choice(value: object, choices: tuple[str, ...]) -> str:
    """One of these, in any case."""
    if isinstance(value, str) and value.strip().lower().replace("_", "-") in choices:
        return value.strip().lower().replace("_", "-")
    raise ValueError(f"give one of {', '.join(choices)}")
