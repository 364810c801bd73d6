"""What happens to a table, in words that every format has; and what it must hold after each step.

A history is columns, a partitioning and steps. A format's maker acts it out with the format's own writers; what the
table then has to hold is worked out here, row by row, without any of them. Every table has two columns of its own:
`id`, by which rows are deleted and updated, and `row`, which no two rows ever share: by it a row is known wherever
it lies, and an updated row is another one. Neither is renamed, dropped or null.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, Literal, get_args

import pyarrow as pa

from tests.making.harness import arrow
from tests.making.oracle import Path
from tests.making.strategies import PartitionField, Row, Types

__all__ = [
    "ID",
    "ROW",
    "STEPS",
    "Add",
    "Append",
    "Delete",
    "Drop",
    "History",
    "Rename",
    "Repartition",
    "Rewrite",
    "State",
    "Step",
    "StepName",
    "Update",
    "arrow_rows",
    "arrow_type",
]

ID: Final[Path] = ("id",)
ROW: Final[Path] = ("row",)
StepName = Literal["append", "delete", "update", "rewrite", "add", "rename", "drop", "repartition"]
STEPS: Final[tuple[StepName, ...]] = get_args(StepName)


@dataclass(frozen=True, slots=True)
class Append:
    """Rows come."""

    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Delete:
    """The rows with these ids go."""

    ids: frozenset[int]
    way: int = 0
    """A number to choose by, where a format has several ways to do it."""


@dataclass(frozen=True, slots=True)
class Update:
    """The rows with the ids of these are replaced by these."""

    rows: tuple[Row, ...]
    way: int = 0


@dataclass(frozen=True, slots=True)
class Rewrite:
    """All files are written anew; no row changes."""


@dataclass(frozen=True, slots=True)
class Add:
    """A column comes; rows that are there have NULL in it. Perhaps another had the name before."""

    name: str
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class Rename:
    """A column, or a struct, gets another name; perhaps one that another had before."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Drop:
    """A column, or a struct, goes."""

    name: str


@dataclass(frozen=True, slots=True)
class Repartition:
    """Rows that come from now on are partitioned by these; by nothing, if there are none."""

    fields: tuple[PartitionField, ...]


Step = Append | Delete | Update | Rewrite | Add | Rename | Drop | Repartition


@dataclass(frozen=True, slots=True)
class State:
    """What the table is after a step."""

    types: Types
    partition: tuple[PartitionField, ...]
    written: Mapping[int, Row] = field(default_factory=dict)
    """All rows ever, by number, under today's names. A row has no value of a column that it is older than."""
    live: frozenset[int] = frozenset()
    """The rows that are there, by number."""

    @property
    def rows(self) -> dict[int, Row]:
        """The rows that are there, by number."""
        return {number: self.row(number) for number in sorted(self.live)}

    def row(self, number: int) -> Row:
        """A row, deleted or not, as a reader of today's columns sees it."""
        return {path: self.written[number].get(path) for path in self.types}

    def numbers(self, ids: frozenset[int]) -> frozenset[int]:
        """The rows with these ids that are there."""
        return frozenset(number for number in self.live if self.written[number][ID] in ids)

    def after(self, step: Step) -> State:
        """What the step makes of it."""
        match step:
            case Append(rows):
                return self._with(rows)
            case Delete(ids):
                return replace(self, live=self.live - self.numbers(ids))
            case Update(rows):
                gone = self.numbers(frozenset(_int(row[ID]) for row in rows))
                return replace(self, live=self.live - gone)._with(rows)
            case Rewrite():
                return self
            case Add(name, type_):
                return replace(self, types={**self.types, (name,): type_})
            case Rename(old, new):
                return self._named(lambda path: (new, *path[1:]) if path[0] == old else path)
            case Drop(name):
                return self._named(lambda path: None if path[0] == name else path)
            case Repartition(fields):
                return replace(self, partition=fields)
        raise TypeError(f"no such step: {step!r}")

    def _with(self, rows: Sequence[Row]) -> State:
        more = {_int(row[ROW]): row for row in rows}
        return replace(self, written={**self.written, **more}, live=self.live | more.keys())

    def _named(self, name: Callable[[Path], Path | None]) -> State:
        def renamed(values: Mapping[Path, object]) -> dict[Path, object]:
            return {new: value for path, value in values.items() if (new := name(path)) is not None}

        fields = tuple(replace(one, source=name(one.source) or one.source) for one in self.partition)
        written = {number: renamed(row) for number, row in self.written.items()}
        return replace(self, types=renamed(self.types), partition=fields, written=written)


@dataclass(frozen=True)
class History:
    """A table's life."""

    types: Types
    """The columns that it is made with: each a path, in structs where it has several names."""
    steps: tuple[Step, ...]
    partition: tuple[PartitionField, ...] = ()

    @cached_property
    def states(self) -> tuple[State, ...]:
        """What the table is when it has been made, and after each step."""
        found = [State(self.types, self.partition)]
        for step in self.steps:
            found.append(found[-1].after(step))
        return tuple(found)

    @property
    def last(self) -> State:
        """What the table is in the end."""
        return self.states[-1]


def _int(value: object) -> int:
    assert isinstance(value, int)
    return value


# -- rows for a writer ------------------------------------------------------------------------------------------


def arrow_type(types: Types) -> pa.StructType:
    """The columns of a table as a struct: fields of one name stand together, where the first of them stands."""
    names = dict.fromkeys(path[0] for path in types)
    return pa.struct([pa.field(name, _inner(name, types)) for name in names])


def _inner(name: str, types: Types) -> pa.DataType:
    below = {path[1:]: type_ for path, type_ in types.items() if path[0] == name}
    return below[()] if () in below else arrow_type(below)


def arrow_rows(rows: Sequence[Row], types: Types) -> pa.Table:
    """Rows for a writer. A struct is NULL where all that is in it is NULL."""
    columns = _arrays(rows, types)
    return pa.table(list(columns.values()), names=list(columns))


def _arrays(rows: Sequence[Mapping[Path, object]], types: Types) -> dict[str, pa.Array]:
    found = {}
    for name in dict.fromkeys(path[0] for path in types):
        below = {path[1:]: type_ for path, type_ in types.items() if path[0] == name}
        inner = [{path[1:]: value for path, value in row.items() if path[0] == name} for row in rows]
        if () in below:
            found[name] = arrow([row[()] for row in inner], below[()])
            continue
        children = _arrays(inner, below)
        nothing = pa.array([all(value is None for value in row.values()) for row in inner], pa.bool_())
        found[name] = pa.StructArray.from_arrays(list(children.values()), names=list(children), mask=nothing)
    return found
