"""What a caller hands in is what it should be, or a TypeError or ValueError that says what to write.

Law: a value is looked at by its class before anything is asked of it: objects of pandas, Polars and PySpark answer
`==`, `in` and `bool()` with errors of their own, or with another object that counts as true.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from tamis.printable import printable

__all__ = [
    "check_choice",
    "check_flag",
    "check_form",
    "check_known",
    "check_names",
    "check_progress",
    "check_type",
    "kind",
    "shown",
]

LONGEST: Final = 80
"""Characters of a caller's text in a message."""


def check_type(name: str, value: object, *types: type, expected: str) -> None:
    """TypeError unless value is of one of the types. A bool is no number here."""
    if isinstance(value, types) and not (isinstance(value, bool) and bool not in types):
        return
    raise TypeError(f"{name} is {kind(value)}: give {expected}.")


def check_flag(name: str, value: object) -> None:
    """TypeError unless value is True or False."""
    check_type(name, value, bool, expected="True or False")


def check_choice(name: str, value: object, choices: Sequence[str], *, or_none: bool = False) -> None:
    """TypeError unless value is text, or None where that is allowed; ValueError unless it is one of the choices."""
    if value is None and or_none:
        return
    expected = f"one of {', '.join(map(repr, choices))}"
    check_type(name, value, str, expected=expected)
    if value not in choices:
        raise ValueError(f"{name} is {shown(value)}: give {expected}.")


def check_known(options: Iterable[str], known: Iterable[str], cure: str | None = None) -> None:
    """TypeError for an option that is not known; cure says what to write in its place, else all are named."""
    known = tuple(known)
    for name in options:
        if name not in known:
            raise TypeError(f"there is no option {shown(name)}: {cure or 'there are ' + ', '.join(known)}.")


def check_form(form: object, *, timing: object = False) -> None:
    """TypeError, or ValueError, unless a plan can be explained so."""
    check_choice("form", form, ("text", "json"))
    check_flag("timing", timing)


def check_progress(progress: object) -> None:
    """TypeError unless progress can be told how many of how many files have come in."""
    if progress is not None and not callable(progress):
        raise TypeError(f"progress is {kind(progress)}: give a function of two numbers.")


def check_names(name: str, names: object) -> None:
    """TypeError unless names is None, a name, or several."""
    if names is None or isinstance(names, str):
        return
    if isinstance(names, (Mapping, bytes)) or not isinstance(names, Sequence):
        raise TypeError(f"{name} is {kind(names)}: give a list of column names.")
    for one in names:
        check_type(f"a member of {name}", one, str, expected="a column's name")


def kind(value: object) -> str:
    """What a value is, in words.

    >>> kind(None), kind([1]), kind(1.5)
    ('None', 'a list', 'a float')
    """
    if value is None:
        return "None"
    of = type(value)
    name = of.__qualname__ if of.__module__ == "builtins" else f"{of.__module__}.{of.__qualname__}"
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def shown(text: object) -> str:
    """A caller's text in quotes, safe to print and not too long.

    >>> shown("eu"), len(shown("x" * 1000))
    ("'eu'", 83)
    """
    safe = printable(str(text))
    return f"'{safe if len(safe) <= LONGEST else safe[:LONGEST] + '…'}'"
