"""The clauses of a MERGE: for which rows each is, what it does, and on what condition.

As in Spark: of the clauses for a row the first whose condition is true applies, and no other. Law: a clause that
could never apply, since one without a condition stands before it, is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from tamis.predicate.assigning import Assignment

__all__ = ["BY_SOURCE", "MATCHED", "NOT_MATCHED", "Clause", "Rows", "check_order", "needs_one_match", "of"]

Rows = Literal["matched", "not matched", "not matched by source"]
MATCHED: Final = "matched"
NOT_MATCHED: Final = "not matched"
BY_SOURCE: Final = "not matched by source"


@dataclass(frozen=True, slots=True)
class Clause:
    """One WHEN ... THEN."""

    rows: Rows
    action: Literal["update", "delete", "insert"]
    values: tuple[Assignment, ...] = ()
    every: bool = False
    """All columns of the table get those of the source of the same names."""
    condition: str | None = None

    def __str__(self) -> str:
        """As SQL has it.

        >>> str(Clause("matched", "delete", condition="s.gone"))
        'WHEN MATCHED AND s.gone THEN DELETE'
        """
        condition = "" if self.condition is None else f" AND {self.condition}"
        action = self.action.upper()
        if self.every:
            action += " SET *" if self.action == "update" else " *"
        elif self.action == "update":
            action += f" SET {', '.join(f'{one.name} = {one.sql}' for one in self.values)}"
        elif self.action == "insert":
            columns, values = (", ".join(part) for part in zip(*((v.name, v.sql) for v in self.values), strict=True))
            action += f" ({columns}) VALUES ({values})"
        return f"WHEN {self.rows.upper()}{condition} THEN {action}"


def of(clauses: Sequence[Clause], rows: Rows) -> list[tuple[int, Clause]]:
    """The clauses for such rows, in order, each with its number among all."""
    return [(number, clause) for number, clause in enumerate(clauses) if clause.rows == rows]


def check_order(clauses: Sequence[Clause], new: Clause) -> None:
    """ValueError for a clause behind one of its kind that takes every row."""
    if any(clause.rows == new.rows and clause.condition is None for clause in clauses):
        raise ValueError(
            f"{new} can never apply: a WHEN {new.rows.upper()} clause without a condition stands before it. Give "
            "that one a condition, or put it last."
        )


def needs_one_match(clauses: Sequence[Clause]) -> bool:
    """Whether it matters which row of the source a row matches: not if all that match are deleted, or left alone.

    >>> (
    ...     needs_one_match([Clause("matched", "delete")]),
    ...     needs_one_match([Clause("matched", "delete", condition="s.x")]),
    ... )
    (False, True)
    """
    mine = [clause for _, clause in of(clauses, MATCHED)]
    return bool(mine) and not (len(mine) == 1 and mine[0].action == "delete" and mine[0].condition is None)
