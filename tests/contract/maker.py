"""What a format gives to join the contract: a maker of its tables.

A maker acts out a history with the format's own writers, as its users would. It says what its format can do; what it
cannot do is not asked of it. It says nothing about what a table must hold, nor of what may be pruned: that is the
suite's own to know. Put a maker into MAKERS, and every law is asked of its format.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path as Folder
from typing import Any, Protocol

import pyarrow as pa

from tests.contract.history import History, State, StepName
from tests.making.oracle import Path

__all__ = ["Made", "Maker", "Refused"]


class Refused(Exception):
    """The format's own writers do not do this; the suite then tries another history. It fails if most are refused."""


@dataclass(frozen=True, slots=True)
class Made:
    """A table that a maker has made."""

    history: History
    target: str
    """What tamis.open is given."""
    folder: Folder
    """Where all its files are."""
    states: tuple[tuple[int, Mapping[str, Any]], ...]
    """Of each state that can be travelled to: how many steps had been done, and what tamis.open is told beside."""
    unknown: Mapping[str, Any]
    """What tamis.open is told for a state that is not there."""
    file: Callable[[str], Folder]
    """Where a data file is; by its path, as plans or the column `_file` have it."""
    rows_in: Callable[[str], Sequence[int]]
    """The numbers (`row`) of all rows in a data file, deleted and outdated ones too, in order; by the same path."""
    metadata: tuple[Folder, ...]
    """The metadata files without which the files of the newest state, and their deletes, cannot be known."""
    heads: frozenset[Folder] = frozenset()
    """Those of them without which the table is an older state of itself, and nobody can tell."""
    removes_by_path: bool = False
    """Whether a file goes by an entry that has its path: then a damaged path may leave in the table what had gone."""

    @property
    def last(self) -> State:
        """What the table must hold now."""
        return self.history.last


class Maker(Protocol):
    """Makes tables of one format, or of one kind of its tables."""

    name: str
    """In the tests' names."""
    format: str
    """What users choose the format by: its key in FORMATS."""
    types: tuple[pa.DataType, ...]
    """The types that its columns may have."""
    steps: frozenset[StepName]
    """What can happen to its tables; "append" always can."""
    forbidden: str
    """Characters that names of columns cannot have."""
    metadata_columns: tuple[str, ...]
    """What reads offer beside a table's columns: of `_file`, `_pos` and the format's own."""

    def transforms(self, path: Path, type_: pa.DataType) -> tuple[str, ...]:
        """By what a table may be partitioned, of a column: `identity`, `bucket[16]`, `day`; nothing if by none."""

    def bounded(self, path: Path, type_: pa.DataType) -> bool:
        """Whether a file is dropped alone by the least and the greatest value, and the nulls, of such a column.

        Not if its writers do not note them, nor if a file may hold an older version of a row than another.
        """

    def exact(self, type_: pa.DataType) -> bool:
        """Whether such bounds are the least and the greatest value themselves, and not rounded ones around them."""

    def small_units(self) -> AbstractContextManager[object]:
        """While it lasts, metadata is listed in units as small as the format can read alone."""

    def make(self, folder: Folder, history: History) -> Made:
        """Act the history out, in an empty folder; or Refused."""
