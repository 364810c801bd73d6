"""Which columns `--select` means. A name that is not there is an error before any row is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tamis.errors import BindError

__all__ = ["Selected", "selected"]


@dataclass(frozen=True, slots=True)
class Selected:
    """One column of the output: a column, or a field inside of one."""

    column: str
    fields: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """As Spark takes it."""
        return ".".join("`" + part.replace("`", "``") + "`" for part in (self.column, *self.fields))


def selected(
    texts: Sequence[str] | None, known: Sequence[str], *, case_sensitive: bool = False
) -> tuple[Selected, ...]:
    """The columns that texts name, of those that are known; all of them, if there is no text. BindError if not."""
    if not texts:
        return tuple(Selected(name) for name in known)
    found = tuple(_found(path, known, case_sensitive=case_sensitive) for text in texts for path in _paths(text))
    names = [(one.fields or (one.column,))[-1].lower() for one in found]
    for one, name in zip(found, names, strict=True):
        if names.count(name) > 1:
            raise BindError(
                f"--select names two columns {(one.fields or (one.column,))[-1]!r}: the output can have only one.",
                column=name,
                nearest=(),
            )
    return found


def _found(path: tuple[str, ...], known: Sequence[str], *, case_sensitive: bool) -> Selected:
    first, *fields = path
    same = [one for one in known if one == first]
    if not same and not case_sensitive:
        same = [one for one in known if one.lower() == first.lower()]
    if len(same) == 1:
        return Selected(same[0], tuple(fields))
    why = f"may be any of {', '.join(same)}" if same else f"is none of {', '.join(known)}"
    raise BindError(f"--select: {first!r} {why}.", column=first, nearest=tuple(same))


def _paths(text: str) -> Iterator[tuple[str, ...]]:
    """The names in a text, by their parts.

    >>> list(_paths("a, b.c,`x, y`"))
    [('a',), ('b', 'c'), ('x, y',)]
    """
    from tamis.sieve.keyinput import column_paths

    for name in _split(text):
        if not name:
            raise BindError(f"--select {text!r} has an empty name between its commas.", column="", nearest=())
        yield column_paths(name)[0]


def _split(text: str) -> list[str]:
    """At commas that are outside of backticks."""
    parts, quoted = [""], False
    for letter in text:
        quoted ^= letter == "`"
        if letter == "," and not quoted:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]
