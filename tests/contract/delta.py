"""Delta tables for the contract, written by the deltalake package.

By the number of its steps, a history leaves one of three kinds of log: commits alone; a checkpoint, from which the
commits before it are gone, as a writer's cleanup leaves it; and a checkpoint that still has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path as Folder
from typing import Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.exceptions import DeltaError

from tests.contract.history import (
    ROW,
    Add,
    Append,
    Delete,
    History,
    Repartition,
    Rewrite,
    State,
    Step,
    StepName,
    Update,
    arrow_rows,
    arrow_type,
)
from tests.contract.maker import Made, Refused
from tests.making.oracle import Path

__all__ = ["DELTA", "DeltaMaker"]

TYPES: Final[tuple[pa.DataType, ...]] = (
    pa.bool_(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.decimal128(5, 2),
    pa.decimal128(20, 10),
    pa.decimal128(38, 0),
    pa.date32(),
    pa.timestamp("us"),
    pa.timestamp("us", tz="UTC"),
    pa.string(),
    pa.binary(),
)


@dataclass(frozen=True, repr=False)
class DeltaMaker:
    """Tables without column mapping: so none of their columns is renamed or dropped."""

    name: str = "delta"
    format: str = "delta"
    types: tuple[pa.DataType, ...] = TYPES
    steps: frozenset[StepName] = frozenset({"append", "delete", "update", "rewrite", "add", "repartition"})
    forbidden: str = " ,;{}()\n\t="
    metadata_columns: tuple[str, ...] = ("_file", "_pos", "_partition")

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def transforms(self, path: Path, type_: pa.DataType) -> tuple[str, ...]:
        """Columns themselves, not what is inside structs.

        deltalake writes the decimal -0.5 as the partition `0.-50`, and no folder whose name has control characters.
        """
        able = len(path) == 1 and path[0].isprintable() and not pa.types.is_decimal(type_)
        return ("identity",) if able else ()

    def bounded(self, path: Path, type_: pa.DataType) -> bool:
        """The protocol has no bounds of booleans and bytes."""
        del path
        return not (pa.types.is_boolean(type_) or pa.types.is_binary(type_))

    def exact(self, type_: pa.DataType) -> bool:
        """Those of timestamps may be cut to milliseconds, and those of decimals went through a double.

        The empty text of a partition may stand for NULL or for itself.
        """
        wide = pa.types.is_decimal(type_) and type_.precision > 14
        return not (wide or pa.types.is_timestamp(type_) or pa.types.is_string(type_))

    def small_units(self) -> AbstractContextManager[object]:
        """Units are as small as they get: each file of the checkpoint, and all commits after it."""
        return nullcontext()

    def make(self, folder: Folder, history: History) -> Made:
        """In the folder itself."""
        writer = _Writer(folder, history.states[0])
        versions = {0: 0}
        middle, kind = len(history.steps) // 2, len(history.steps) % 3
        checkpoint = -1
        for place in range(len(history.steps) + 1):
            if place:
                writer.act(history.steps[place - 1], history.states[place])
            versions[place] = writer.table.version()
            if place == middle and kind:
                writer.table.create_checkpoint()
                checkpoint = versions[place]
        log = folder / "_delta_log"
        newest = versions[len(history.steps)]
        metadata = [log / f"{version:020d}.json" for version in range(newest, checkpoint, -1)]
        oldest = 0
        if kind == 1 and checkpoint > 0:
            oldest = checkpoint
            for version in range(checkpoint):
                (log / f"{version:020d}.json").unlink()
            metadata.append(log / f"{checkpoint:020d}.checkpoint.parquet")
        return Made(
            history,
            target=str(folder),
            folder=folder,
            states=tuple((place, {"version": one}) for place, one in versions.items() if one >= oldest),
            unknown={"version": 99999},
            file=lambda path: _local(folder, path),
            rows_in=cache(lambda path: _numbers(_local(folder, path))),
            metadata=tuple(metadata),
            heads=frozenset(metadata[:1]),
            removes_by_path=True,
        )


DELTA: Final = (DeltaMaker(),)


def _local(folder: Folder, path: str) -> Folder:
    """A file of the table: its path in the log is that of a URL, most often below the table's folder."""
    return folder / unquote(path.removeprefix("file://"))


def _numbers(path: Folder) -> Sequence[int]:
    found: list[int] = pq.ParquetFile(path).read(columns=[ROW[0]])[ROW[0]].to_pylist()
    return found


class _Writer:
    """Acts steps out."""

    def __init__(self, folder: Folder, state: State) -> None:
        self.table = DeltaTable.create(
            str(folder), schema=pa.schema(list(arrow_type(state.types))), partition_by=_columns(state)
        )

    def act(self, step: Step, after: State) -> None:
        """Do what the step says; or Refused."""
        try:
            self._act(step, after)
        except DeltaError as error:
            if "File name too long" in str(error):
                raise Refused(
                    "deltalake writes the digits of 1e308 into a folder's name, which are too many"
                ) from error
            raise
        self.table.update_incremental()

    def _act(self, step: Step, after: State) -> None:
        match step:
            case Append(rows):
                write_deltalake(self.table, arrow_rows(rows, after.types), mode="append")
            case Delete(ids):
                self.delete(ids)
            case Update(rows):
                self.delete(frozenset(int(str(row["id",])) for row in rows))
                write_deltalake(self.table, arrow_rows(rows, after.types), mode="append")
            case Rewrite():
                write_deltalake(self.table, _live(after), mode="overwrite")
            case Add(name, type_):
                self.table.alter.add_columns([Field.from_arrow(pa.field(name, type_))])
            case Repartition():
                # A table is partitioned in one way: its rows are written anew with it.
                write_deltalake(
                    self.table,
                    _live(after),
                    mode="overwrite",
                    schema_mode="overwrite",
                    partition_by=_columns(after),
                )
            case _:
                raise TypeError(f"not without column mapping: {step!r}")

    def delete(self, ids: frozenset[int]) -> None:
        """By new files without the rows."""
        self.table.delete(f"id IN ({', '.join(map(str, sorted(ids)))})")


def _live(state: State) -> pa.Table:
    return arrow_rows(list(state.rows.values()), state.types)


def _columns(state: State) -> list[str]:
    return [one.source[0] for one in state.partition]
