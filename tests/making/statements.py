"""Statements on one table, as SQL for the library and as plain Python for the truth: what a serial order must give.

Every row tells which statement made it and has a number of its own, so that one that is lost or comes twice is seen.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

__all__ = [
    "COLUMNS",
    "IDS",
    "MARK",
    "MORE",
    "REGIONS",
    "SEEDED",
    "Condition",
    "Row",
    "Statement",
    "drawn",
    "replayed",
]

COLUMNS: Final = "id bigint, region string, n bigint, made_by string"
REGIONS: Final = ("eu", "us", None)
MORE: Final = 1000
"""What an update, or a merge, adds to n."""
IDS: Final = 40
"""Ids are of so few values that conditions meet."""
MARK: Final = "statement"
"""The property of a snapshot that names its statement."""


class Row(NamedTuple):
    """A row of the table."""

    id: int
    region: str | None
    n: int
    made_by: str


SEEDED: Final = tuple(Row(id_, REGIONS[id_ % 3], id_, "seed") for id_ in range(IDS))
"""What is there before."""


@dataclass(frozen=True, slots=True)
class Condition:
    """Rows of these ids, and of this region if one is given."""

    low: int
    high: int
    region: str | None = None

    @property
    def sql(self) -> str:
        """The condition as the library takes it."""
        ids = f"id >= {self.low} and id <= {self.high}"
        return ids if self.region is None else f"{ids} and region = '{self.region}'"

    def is_true_of(self, row: Row) -> bool:
        """Whether it is true; NULL is not."""
        return self.low <= row.id <= self.high and (self.region is None or row.region == self.region)


@dataclass(frozen=True, slots=True)
class Statement:
    """One change of the table."""

    name: str
    kind: Literal["append", "delete", "overwrite", "update", "merge"]
    where: Condition = Condition(0, IDS)
    rows: tuple[Row, ...] = ()
    mode: Literal["copy-on-write", "merge-on-read"] = "copy-on-write"

    def applied(self, before: Iterable[Row]) -> list[Row]:
        """The table's rows after it."""
        rows = list(before)
        if self.kind == "update":
            return [row._replace(n=row.n + MORE) if self.where.is_true_of(row) else row for row in rows]
        if self.kind == "merge":  # those that are there get more, the others are inserted
            given, there = {row.id for row in self.rows}, {row.id for row in rows}
            changed = [row._replace(n=row.n + MORE) if row.id in given else row for row in rows]
            return [*changed, *(row for row in self.rows if row.id not in there)]
        kept = rows if self.kind == "append" else [row for row in rows if not self.where.is_true_of(row)]
        return [*kept, *self.rows]


def drawn(chance: random.Random, name: str, modes: tuple[str, ...], high: float = 0.0) -> Statement:
    """A statement by chance: mostly of few rows, now and then of a whole region; some of ids that are beyond IDS."""
    kind = chance.choice(("append", "append", "delete", "overwrite"))
    count = 0 if kind == "delete" else chance.randint(1, 6)
    region = chance.choice(REGIONS)
    rows = tuple(Row(chance.randrange(IDS), region, number, name) for number in range(count))
    if chance.random() < high:
        low = IDS + chance.randrange(IDS)
        return Statement(name, "delete", Condition(low, low + 1), mode=chance.choice(modes))  # type: ignore[arg-type]
    low = chance.randrange(IDS)
    spread = (low, low + chance.randint(0, 4), None)
    where = Condition(*chance.choice((spread, spread, (*spread[:2], "eu"), (0, IDS, chance.choice(("eu", "us"))))))
    return Statement(name, kind, where, rows, chance.choice(modes))  # type: ignore[arg-type] # one of the two


def replayed(before: Iterable[Row], order: Iterable[Statement]) -> list[Row]:
    """The rows after these statements, one after the other."""
    rows = list(before)
    for one in order:
        rows = one.applied(rows)
    return rows
