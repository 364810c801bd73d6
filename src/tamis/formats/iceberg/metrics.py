"""What a table wants to know of each column of its files: its `write.metadata.metrics.*` properties.

Modes: none, counts, truncate(n), full. The default is truncate(16), for the first hundred columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from tamis.formats.edit import WriteField

__all__ = ["Mode", "metrics_modes"]

DEFAULT: Final = "write.metadata.metrics.default"
COLUMN: Final = "write.metadata.metrics.column."
MOST_INFERRED: Final = "write.metadata.metrics.max-inferred-column-defaults"
INFERRED: Final = 100
LENGTH: Final = 16
_TRUNCATE: Final = re.compile(r"truncate\((\d{1,9})\)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Mode:
    """How much is kept of a column; length is that of bounds of texts and binaries, None for all of them."""

    kind: Literal["none", "counts", "truncate", "full"] = "truncate"
    length: int | None = LENGTH

    @property
    def has_bounds(self) -> bool:
        """Whether bounds are kept."""
        return self.kind in {"truncate", "full"}


def metrics_modes(
    fields: Sequence[WriteField], properties: Mapping[str, str], sorted_ids: frozenset[int] = frozenset()
) -> dict[int, Mode]:
    """The mode of every column without parts, by its id. What cannot be read is the default, as Java takes it."""
    leaves = list(_leaves(fields, ""))
    asked = _mode(properties.get(DEFAULT, ""))
    if asked is None:
        limit = properties.get(MOST_INFERRED, "").strip()
        most = int(limit) if limit.isascii() and limit.isdigit() else INFERRED
        first = {id_ for id_, _ in leaves[:most]} if len(fields) > most else {id_ for id_, _ in leaves}
        found = {id_: Mode() if id_ in first else Mode("none", None) for id_, _ in leaves}
    else:
        found = {id_: asked for id_, _ in leaves}
    for id_, name in leaves:
        if id_ in sorted_ids and not found[id_].has_bounds:
            found[id_] = Mode()  # bounds of a sorted column tell most
        own = _mode(properties.get(f"{COLUMN}{name}", ""))
        if own is not None:
            found[id_] = own
    return found


def _mode(text: str) -> Mode | None:
    word = text.strip().lower()
    match word:
        case "none" | "counts":
            return Mode(word, None)
        case "full":
            return Mode("full", None)
    found = _TRUNCATE.fullmatch(word)
    return Mode("truncate", int(found[1])) if found and int(found[1]) else None


def _leaves(fields: Sequence[WriteField], parents: str) -> Iterator[tuple[int, str]]:
    """Columns that hold values themselves, those of the outer level first."""
    for one in fields:
        if not one.children:
            yield one.id, f"{parents}{one.name}"
    for one in fields:
        if one.children:
            yield from _leaves(one.children, f"{parents}{one.name}.")
