"""Iceberg tables for the contract, written by PyIceberg: versions 1 and 2 of the format.

PyIceberg deletes by writing files anew. Delete files, by position and by value, are committed through its own
transactions, as writers of version 2 do.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from pathlib import Path as Folder
from typing import Final
from unittest.mock import patch
from warnings import catch_warnings, filterwarnings

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import types as pt
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.expressions import In
from pyiceberg.table import Table
from pyiceberg.transforms import parse_transform

from tamis.formats.iceberg import manifests
from tests.contract.history import (
    ROW,
    STEPS,
    Add,
    Append,
    Delete,
    Drop,
    History,
    Rename,
    Repartition,
    Rewrite,
    State,
    Step,
    StepName,
    Update,
    arrow_rows,
    arrow_type,
)
from tests.contract.iceberg_deletes import commit_deletes
from tests.contract.maker import Made, Refused
from tests.making.oracle import Path

__all__ = ["ICEBERG", "IcebergMaker"]

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
    pa.time64("us"),
    pa.timestamp("us"),
    pa.timestamp("us", tz="UTC"),
    pa.string(),
    pa.binary(),
    pa.binary(4),
)


@dataclass(frozen=True, repr=False)
class IcebergMaker:
    """Tables of one format version."""

    version: int
    format: str = "iceberg"
    types: tuple[pa.DataType, ...] = TYPES
    steps: frozenset[StepName] = frozenset(STEPS)
    forbidden: str = ""
    metadata_columns: tuple[str, ...] = ("_file", "_pos", "_spec_id", "_partition")

    @property
    def name(self) -> str:
        """With its version."""
        return f"iceberg v{self.version}"

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def transforms(self, path: Path, type_: pa.DataType) -> tuple[str, ...]:
        """All that PyIceberg can write.

        It knows no partition of a time of day, none of NaN, and no multiple of ten below the least decimal of all.
        """
        del path
        if pt.is_time(type_):
            return ()
        found = [] if pt.is_floating(type_) else ["identity"]
        if not (pt.is_boolean(type_) or pt.is_floating(type_)):
            found += ["bucket[2]", "bucket[7]"]
        narrow = pt.is_decimal(type_) and type_.precision < 38
        if pt.is_integer(type_) or narrow or pt.is_string(type_) or pt.is_binary(type_):
            found += ["truncate[2]", "truncate[10]"]
        if pt.is_date(type_) or pt.is_timestamp(type_):
            found += ["year", "month", "day"]
        if pt.is_timestamp(type_):
            found.append("hour")
        return tuple(found)

    def bounded(self, path: Path, type_: pa.DataType) -> bool:
        """PyIceberg writes no bounds of what is inside structs."""
        del type_
        return len(path) == 1

    def exact(self, type_: pa.DataType) -> bool:
        """All of them; of long texts prefixes, which the suite leaves out."""
        del type_
        return True

    def small_units(self) -> AbstractContextManager[object]:
        """A unit for each manifest."""
        return patch.object(manifests, "JOIN_FILES", 1)

    def make(self, folder: Folder, history: History) -> Made:
        """In a catalog that lives in memory."""
        catalog = InMemoryCatalog("test", warehouse=folder.as_uri())
        catalog.create_namespace("db")
        properties = {"format-version": str(self.version)}
        schema = pa.schema(list(arrow_type(history.types)))
        writer = _Writer(catalog.create_table("db.t", schema, properties=properties))
        writer.repartition(history.states[0])
        states: dict[int, int] = {}
        for place, step in enumerate(history.steps, 1):
            writer.act(step, history.states[place - 1], history.states[place])
            if (now := writer.table.metadata.current_snapshot_id) is not None:
                states.setdefault(now, place)
        metadata = writer.metadata()
        return Made(
            history,
            target=str(local(writer.table.location())),
            folder=folder,
            states=tuple((place, {"snapshot_id": snapshot}) for snapshot, place in states.items()),
            unknown={"snapshot_id": 7},
            file=local,
            rows_in=cache(_numbers),
            metadata=metadata,
            heads=frozenset(metadata[:1]),
        )


ICEBERG: Final = (IcebergMaker(1), IcebergMaker(2))


def local(location: str) -> Folder:
    """A file's path."""
    return Folder(location.removeprefix("file://"))


def _numbers(path: str) -> Sequence[int]:
    found: list[int] = pq.ParquetFile(local(path)).read(columns=[ROW[0]])[ROW[0]].to_pylist()
    return found


class _Writer:
    """Acts steps out."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.deletes = False
        """Whether there are delete files. PyIceberg's own delete would forget them."""
        self._fields = 0

    def _append(self, rows: pa.Table) -> None:
        """Refused for decimals next to the least, whose partition is below it: no writer has bytes for that."""
        try:
            self.table.append(rows)
        except ValueError as error:
            if "precision of value is greater" not in str(error):
                raise
            raise Refused(str(error)) from error

    def act(self, step: Step, before: State, after: State) -> None:
        """Do what the step says."""
        match step:
            case Append(rows):
                self._append(arrow_rows(rows, after.types))
            case Delete(ids, way):
                self.delete(ids, way, before)
            case Update(rows, way):
                self.delete(frozenset(int(str(row["id",])) for row in rows), way, before)
                self._append(arrow_rows(rows, after.types))
            case Rewrite():
                with catch_warnings():
                    filterwarnings("ignore", "Delete operation did not match")
                    self.table.overwrite(arrow_rows(list(after.rows.values()), after.types))
                self.deletes = False
            case Add(name, type_):
                with self.table.update_schema() as change:
                    change.union_by_name(pa.schema([pa.field(name, type_)]))
            case Rename(old, new):
                with self.table.update_schema() as change:
                    change.rename_column(old, new)
            case Drop(name):
                with self.table.update_schema(allow_incompatible_changes=True) as change:
                    change.delete_column(name)
            case Repartition():
                self.repartition(after)

    def repartition(self, state: State) -> None:
        """Other fields in place of those that there are."""
        old = [one.name for one in self.table.spec().fields if str(one.transform) != "void"]
        if not old and not state.partition:
            return
        ids = {self.table.schema().find_field(".".join(one.source)).field_id for one in state.partition}
        if self.table.metadata.format_version == 1 and ids & {one.source_id for one in self.table.spec().fields}:
            raise Refused("PyIceberg writes no file of a spec of version 1 in which a void field has the same source")
        with self.table.update_spec() as update:
            for name in old:
                update.remove_field(name)
            for one in state.partition:
                self._fields += 1
                name = f"p{self._fields} {'.'.join(one.source)}"
                update.add_field(".".join(one.source), parse_transform(one.transform), name)

    def delete(self, ids: frozenset[int], way: int, before: State) -> None:
        """By new files, by positions, or by values."""
        gone = before.numbers(ids)
        if self.table.metadata.format_version == 1 or (way == 0 and not self.deletes):
            self.table.delete(In("id", sorted(ids)))
        elif gone:
            commit_deletes(self.table, gone, ids, by_value=way == 2)
            self.deletes = True

    def metadata(self) -> tuple[Folder, ...]:
        """The metadata file, the manifest list, and the manifests that have live files."""
        found = [local(self.table.metadata_location)]
        if (snapshot := self.table.current_snapshot()) is not None:
            listed = snapshot.manifests(self.table.io)
            live = (one for one in listed if one.has_added_files() or one.has_existing_files())
            found += [local(snapshot.manifest_list), *(local(one.manifest_path) for one in live)]
        return tuple(found)
