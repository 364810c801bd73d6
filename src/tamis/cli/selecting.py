"""Which columns `--select` means. A name that is not there is an error before any row is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tamis.errors import BindError
from tamis.predicate.names import backticked

__all__ = ["Selected", "selected"]


@dataclass(frozen=True, slots=True)
class Selected:
    """One column of the output: a column, or a field inside of one."""

    column: str
    fields: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """As Spark takes it."""
        return ".".join(map(backticked, (self.column, *self.fields)))


def selected(
    texts: Sequence[str] | None, known: Sequence[str], *, case_sensitive: bool = False
) -> tuple[Selected, ...]:
    """The columns that texts name, of those that are known; all of them, if there is no text. BindError if not."""
    if not texts:
        return tuple(Selected(name) for name in known)
    columns = tuple(_selected(path, known, case_sensitive=case_sensitive) for text in texts for path in _paths(text))
    written = [(choice.fields or (choice.column,))[-1] for choice in columns]
    names = [name.lower() for name in written]
    for last, name in zip(written, names, strict=True):
        if names.count(name) > 1:
            raise BindError(
                f"--select names two columns {last!r}: the output can have only one.",
                column=name,
                nearest=(),
            )
    return columns


def _selected(path: tuple[str, ...], known: Sequence[str], *, case_sensitive: bool) -> Selected:
    first, *fields = path
    same = [name for name in known if name == first]
    if not same and not case_sensitive:
        same = [name for name in known if name.lower() == first.lower()]
    if len(same) == 1:
        return Selected(same[0], tuple(fields))
    why = f"may be any of {', '.join(same)}" if same else f"is none of {', '.join(known)}"
    raise BindError(f"--select: {first!r} {why}.", column=first, nearest=tuple(same))


def _paths(text: str) -> Iterator[tuple[str, ...]]:
    """The names in a text, by their parts.

    >>> list(_paths("a, b.c,`x, y`"))
    [('a',), ('b', 'c'), ('x, y',)]
    """
    from tamis.sieve.join.key_input import column_paths

    for name in _split(text):
        if not name:
            raise BindError(f"--select {text!r} has an empty name between its commas.", column=None, nearest=())
        yield column_paths(name)[0]


def _split(text: str) -> list[str]:
    """At commas that are outside of backticks."""
    names, quoted = [""], False
    for letter in text:
        quoted ^= letter == "`"
        if letter == "," and not quoted:
            names.append("")
        else:
            names[-1] += letter
    return [name.strip() for name in names]
