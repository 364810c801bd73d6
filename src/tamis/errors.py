"""What can go wrong, as few kinds as a caller can act on.

Every error says what, where, why and what next; its facts are attributes, so that no caller parses the text.
"""

from __future__ import annotations

from tamis.printable import printable_lines

__all__ = [
    "BindError",
    "FilterInputError",
    "MissingDependency",
    "ParseError",
    "TamisError",
    "UnevaluableError",
    "UnknownSpecError",
]


class TamisError(Exception):
    """The root of every error that tamis raises on purpose.

    Its message may be printed anywhere: names and values in it are escaped. Its facts are as they are.
    """

    def __init__(self, message: str, **facts: object) -> None:
        self.message = printable_lines(message)
        super().__init__(self.message)
        self.facts = facts
        for name, value in facts.items():
            setattr(self, name, value)


class ParseError(TamisError):
    """The WHERE text is not valid SQL."""

    text: str
    line: int
    column: int


class BindError(TamisError):
    """The predicate does not fit the table: an unknown or ambiguous column, or types that do not compare."""

    column: str
    nearest: tuple[str, ...]


class UnknownSpecError(TamisError):
    """A file names a partition spec that the table's metadata does not have: the metadata is corrupt."""

    spec_id: int
    known: tuple[int, ...]


class UnevaluableError(TamisError):
    """Raised in strict mode only, where otherwise a file would be kept because it cannot be judged."""

    reason: str


class FilterInputError(TamisError):
    """A runtime filter was built from keys that cannot be used: no columns, unequal lengths, unordered types."""


class MissingDependency(TamisError):
    """An optional package is needed for this job; the message names the extra that brings it."""

    package: str
    extra: str
