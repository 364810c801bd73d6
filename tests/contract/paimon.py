"""Paimon tables for the contract, written by the pypaimon package: append tables, and tables with a primary key.

Rows of an append table are deleted, updated and rewritten by overwriting: new files without the old rows. A row of a
table with a primary key is updated by another version of it in another file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path as Folder
from typing import Any, Final

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pypaimon import CatalogFactory, Schema
from pypaimon.schema.data_types import PyarrowFieldParser
from pypaimon.schema.schema_change import SchemaChange

from tamis.formats.paimon import units
from tests.contract.history import (
    ROW,
    Add,
    Append,
    Delete,
    Drop,
    History,
    Rename,
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

__all__ = ["PAIMON", "PaimonMaker"]

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
_NAME: Final = "db.t"


@dataclass(frozen=True, repr=False)
class PaimonMaker:
    """Tables of pypaimon with statistics; key says whether they have a primary key."""

    key: bool
    name: str
    format: str = "paimon"
    types: tuple[pa.DataType, ...] = TYPES
    steps: frozenset[StepName] = frozenset({"append", "delete", "update", "rewrite", "add", "rename", "drop"})
    forbidden: str = ""
    metadata_columns: tuple[str, ...] = ("_file", "_pos", "_partition", "_bucket")
    """A row of a table with a key may be put together of several files: it lies in none."""

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def transforms(self, path: Path, type_: pa.DataType) -> tuple[str, ...]:
        """Columns themselves, of append tables: a key would have to hold them.

        pypaimon writes texts into the names of folders as they are, and bytes and moments as Python prints them.
        """
        plain = pa.types.is_integer(type_) or pa.types.is_date(type_) or pa.types.is_string(type_)
        return ("identity",) if not self.key and len(path) == 1 and path[0].isidentifier() and plain else ()

    def bounded(self, path: Path, type_: pa.DataType) -> bool:
        """Of a key all columns; of values a file of a bucket is dropped with all others of it."""
        del type_
        return path == ("id",) if self.key else len(path) == 1

    def exact(self, type_: pa.DataType) -> bool:
        """With full statistics they are."""
        del type_
        return True

    @contextmanager
    def small_units(self) -> Iterator[None]:
        """A unit for each manifest."""
        before = units.JOIN_BYTES
        units.JOIN_BYTES = 0  # type: ignore[misc] # for the test alone
        try:
            yield
        finally:
            units.JOIN_BYTES = before  # type: ignore[misc] # as above

    def make(self, folder: Folder, history: History) -> Made:
        """In a warehouse of its own, which is the folder."""
        writer = _Writer(folder, history.states[0], key=self.key)
        table = folder / "db.db" / "t"
        states = []
        for place, step in enumerate(history.steps, 1):
            if writer.act(step, history.states[place]):
                states.append((place, {"snapshot_id": writer.newest()}))
        newest = writer.newest()
        schemas = sorted((table / "schema").iterdir(), key=lambda path: int(path.name.partition("-")[2]))
        head = table / "snapshot" / f"snapshot-{newest}"
        metadata = [head, *_manifests(table, head), schemas[-1]] if newest else [schemas[-1]]
        return Made(
            history,
            target=str(table),
            folder=table,
            states=tuple(states),
            unknown={"snapshot_id": 99999},
            file=cache(lambda path: _local(table, path)),
            rows_in=cache(lambda path: _numbers(_local(table, path))),
            metadata=tuple(metadata),
            heads=frozenset({head, schemas[-1]}),
            removes_by_path=True,
        )


PAIMON: Final = (PaimonMaker(key=False, name="paimon"), PaimonMaker(key=True, name="paimon-key", metadata_columns=()))


def _local(table: Folder, path: str) -> Folder:
    """A file of the table, by its name: pypaimon names folders in its own way."""
    (found,) = table.rglob(path.rpartition("/")[2])
    return found


def _numbers(path: Folder) -> Sequence[int]:
    found: list[int] = pq.ParquetFile(path).read(columns=[ROW[0]])[ROW[0]].to_pylist()
    return found


def _manifests(table: Folder, snapshot: Folder) -> list[Folder]:
    """The manifest lists of a snapshot, and the manifests that they name."""
    document = json.loads(snapshot.read_text(encoding="utf-8"))
    lists = [table / "manifest" / document[name] for name in ("baseManifestList", "deltaManifestList")]
    named = []
    for path in lists:
        with path.open("rb") as file:
            named += [table / "manifest" / str(one["_FILE_NAME"]) for one in fastavro.reader(file)]  # type: ignore[index,call-overload] # a record
    return [*lists, *named]


class _Writer:
    """Acts steps out."""

    def __init__(self, warehouse: Folder, state: State, *, key: bool) -> None:
        self.catalog = CatalogFactory.create({"warehouse": str(warehouse)})
        self.catalog.create_database("db", ignore_if_exists=True)
        options = {"metadata.stats-mode": "full", "dynamic-partition-overwrite": "false"}
        options |= {"bucket": "2"} if key else {"bucket": "-1"}
        # A key cannot be NULL.
        columns = pa.schema([one.with_nullable(one.name != "id") for one in arrow_type(state.types)])
        partition = [one.source[0] for one in state.partition]
        try:
            schema = Schema.from_pyarrow_schema(columns, partition, ["id"] if key else [], options)
            self.catalog.create_table(_NAME, schema, ignore_if_exists=False)
        except ValueError as error:
            raise Refused(str(error)) from error

    @property
    def table(self) -> Any:  # noqa: ANN401 - pypaimon has no types
        return self.catalog.get_table(_NAME)

    def newest(self) -> int:
        """The newest snapshot; 0 if there is none."""
        snapshot = self.table.snapshot_manager().get_latest_snapshot()
        return 0 if snapshot is None else int(snapshot.id)

    def act(self, step: Step, after: State) -> bool:
        """Do what the step says, or Refused. Whether there is a snapshot of it."""
        match step:
            case Append(rows):
                return self._write(arrow_rows(rows, after.types), overwrite=False)
            case Update(rows) if self.table.primary_keys:
                return self._write(arrow_rows(rows, after.types), overwrite=False)
            case Delete() | Update() | Rewrite():
                return self._write(arrow_rows(list(after.rows.values()), after.types), overwrite=True)
            case Add(name, type_):
                kind = PyarrowFieldParser.to_paimon_type(type_, nullable=True)
                return self._alter(SchemaChange.add_column(name, kind))
            case Rename(old, new):
                return self._alter(SchemaChange.rename_column(old, new))
            case Drop(name):
                return self._alter(SchemaChange.drop_column(name))
        raise TypeError(f"no such step: {step!r}")

    def _alter(self, change: Any) -> bool:  # noqa: ANN401 - pypaimon has no types
        self.catalog.alter_table(_NAME, [change], ignore_if_not_exists=False)
        return False

    def _write(self, rows: pa.Table, *, overwrite: bool) -> bool:
        before = self.newest()
        table = self.table
        builder = table.new_batch_write_builder()
        if overwrite:
            builder = builder.overwrite()
        write, commit = builder.new_write(), builder.new_commit()
        columns = PyarrowFieldParser.from_paimon_schema(table.fields)
        write.write_arrow(pa.table([rows[one.name].cast(one.type) for one in columns], schema=columns))
        commit.commit(write.prepare_commit())
        write.close()
        commit.close()
        return self.newest() > before
