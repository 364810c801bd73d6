"""Delta tables that deltalake cannot write: mapped columns, deletion vectors, checkpoints in parts and with sidecars.

Written by hand, by the protocol's text. By the number of its steps a history leaves one of four kinds of log: commits
alone; a checkpoint in parts, beside its commits; and one with sidecars, in JSON or in Parquet, from which the commits
before it are gone. And by that of its columns they are mapped by name or by id.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from hashlib import sha256
from pathlib import Path as Folder
from typing import Any, Final
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tests.contract.history import (
    ID,
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
from tests.contract.maker import Made, Refused
from tests.making.delta_logs import Action, DeltaLog, add, inline_vector, metadata, protocol, remove
from tests.making.oracle import Path

__all__ = ["MAPPED", "MappedMaker"]

TYPES: Final = {
    pa.bool_(): "boolean",
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.float64(): "double",
    pa.decimal128(5, 2): "decimal(5,2)",
    pa.date32(): "date",
    pa.timestamp("us"): "timestamp_ntz",
    pa.timestamp("us", tz="UTC"): "timestamp",
    pa.string(): "string",
    pa.binary(): "binary",
}
FEATURES: Final = ("columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint")
KINDS: Final = ("v2-json", None, "multi-part", "v2-parquet")
_CUT: Final = 32


@dataclass(frozen=True, repr=False)
class MappedMaker:
    """Tables whose columns have names of their own in files: so they are renamed and dropped."""

    name: str = "delta-mapped"
    format: str = "delta"
    types: tuple[pa.DataType, ...] = tuple(TYPES)
    steps: frozenset[StepName] = frozenset(
        {"append", "delete", "update", "rewrite", "add", "rename", "drop", "repartition"}
    )
    forbidden: str = ""
    metadata_columns: tuple[str, ...] = ("_file", "_pos", "_partition")

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def transforms(self, path: Path, type_: pa.DataType) -> tuple[str, ...]:
        """Columns themselves, of types whose text leaves no doubt."""
        able = pa.types.is_integer(type_) or pa.types.is_string(type_) or pa.types.is_date(type_)
        return ("identity",) if able and len(path) == 1 else ()

    def bounded(self, path: Path, type_: pa.DataType) -> bool:
        """The protocol has no bounds of booleans and bytes."""
        del path
        return not (pa.types.is_boolean(type_) or pa.types.is_binary(type_))

    def exact(self, type_: pa.DataType) -> bool:
        """Those of timestamps are cut to milliseconds; the empty text of a partition may stand for NULL."""
        return not (pa.types.is_timestamp(type_) or pa.types.is_string(type_))

    def small_units(self) -> AbstractContextManager[object]:
        """Units are as small as they get: each file of the checkpoint, and all commits after it."""
        return nullcontext()

    def make(self, folder: Folder, history: History) -> Made:
        """In the folder itself."""
        writer = _Writer(folder, ("name", "id")[len(history.types) % 2], history.states[0])
        versions = {0: writer.version}
        middle, kind = len(history.steps) // 2, KINDS[len(history.steps) % len(KINDS)]
        checkpoint, tops = -1, list[Folder]()
        for place in range(len(history.steps) + 1):
            if place:
                writer.act(history.steps[place - 1], history.states[place])
            versions[place] = writer.version
            if place == middle and kind:
                tops = writer.log.checkpoint(writer.version, kind)
                checkpoint = writer.version
        log = writer.log.folder
        oldest, metadata_files = 0, [log / f"{one:020d}.json" for one in range(writer.version, checkpoint, -1)]
        if kind and kind != "multi-part":  # whose commits are there still: without a part the state is told by them
            oldest = checkpoint
            for version in range(checkpoint):
                (log / f"{version:020d}.json").unlink()
            metadata_files += [*tops, *sorted((log / "_sidecars").iterdir())]
        return Made(
            history,
            target=str(folder),
            folder=folder,
            states=tuple((place, {"version": one}) for place, one in versions.items() if one >= oldest),
            unknown={"version": 99999},
            file=lambda path: folder / unquote(path.removeprefix("file://")),
            rows_in=lambda path: writer.written[(folder / unquote(path.removeprefix("file://"))).name],
            metadata=tuple(metadata_files),
            # Nothing names a checkpoint that has an id for a name: without it the first version is missed.
            heads=frozenset([*metadata_files[:1], *tops]),
            removes_by_path=True,
        )


MAPPED: Final = (MappedMaker(),)


@dataclass(slots=True)
class _Column:
    """A column, or a field of a struct: what files call it, forever."""

    physical: str
    number: int
    type: pa.DataType | None
    children: dict[str, _Column] = field(default_factory=dict)


@dataclass(slots=True)
class _File:
    """A file that is there: where it is, what is in it, and what is gone."""

    path: str
    numbers: list[int]
    values: dict[str, str | None]
    size: int
    stats: str
    gone: list[int] = field(default_factory=list)

    @property
    def vector(self) -> Action | None:
        return dict(inline_vector(self.gone)) if self.gone else None

    @property
    def added(self) -> Action:
        return add(self.path, values=self.values, size=self.size, stats=self.stats, dv=self.vector)

    @property
    def removed(self) -> Action:
        return remove(self.path, dv=self.vector)


class _Writer:
    """Acts steps out, a commit for each."""

    def __init__(self, folder: Folder, mode: str, state: State) -> None:
        self.folder, self.mode = folder, mode
        self.log = DeltaLog(folder)
        self.count = 0
        self.columns: dict[str, _Column] = {}
        self.files: list[_File] = []
        self.written: dict[str, list[int]] = {}
        for struct in arrow_type(state.types):
            self.columns[struct.name] = self._column(struct.type)
        self.partition = [one.source[0] for one in state.partition]
        self.log.commit(_info(), protocol(3, 7, FEATURES), self._metadata())

    @property
    def version(self) -> int:
        return len(self.log.history) - 1

    def _column(self, type_: pa.DataType) -> _Column:
        self.count += 1
        number = self.count
        children = {one.name: self._column(one.type) for one in type_} if pa.types.is_struct(type_) else {}
        return _Column(f"col-{number:04x}", number, None if children else type_, children)

    def act(self, step: Step, after: State) -> None:
        """Do what the step says; or Refused."""
        actions: list[Action] = []
        match step:
            case Append(rows):
                actions += self._append([_number(row) for row in rows], after)
            case Delete(ids):
                actions += self._delete(ids, after)
            case Update(rows):
                actions += self._delete(frozenset(int(str(row[ID])) for row in rows), after)
                actions += self._append([_number(row) for row in rows], after)
            case Rewrite():
                actions += self._rewrite(after)
            case Add(name, type_):
                self.columns[name] = self._column(type_)
                actions.append(self._metadata())
            case Rename(old, new):
                self.columns = {new if name == old else name: one for name, one in self.columns.items()}
                self.partition = [new if name == old else name for name in self.partition]
                actions.append(self._metadata())
            case Drop(name):
                if name in self.partition:
                    raise Refused("a partition column is not dropped")
                del self.columns[name]
                actions.append(self._metadata())
            case Repartition():
                self.partition = [one.source[0] for one in after.partition]
                actions += [self._metadata(), *self._rewrite(after)]
        self.log.commit(_info(), *actions)

    def _delete(self, ids: frozenset[int], after: State) -> Iterable[Action]:
        left = []
        for file in self.files:
            gone = [place for place, one in enumerate(file.numbers) if after.written[one][ID] in ids]
            more = sorted({*file.gone, *gone})
            if more == file.gone:
                left.append(file)
                continue
            yield file.removed
            file.gone = more
            if len(more) < len(file.numbers):
                yield file.added
                left.append(file)
        self.files = left

    def _rewrite(self, after: State) -> list[Action]:
        actions = [file.removed for file in self.files]
        self.files = []
        return [*actions, *self._append(sorted(after.live), after)]

    def _append(self, numbers: Sequence[int], state: State) -> list[Action]:
        groups: dict[tuple[object, ...], list[int]] = {}
        for number in numbers:
            row = state.row(number)
            groups.setdefault(tuple(row[name,] for name in self.partition), []).append(number)
        return [self._write(key, group, state) for key, group in groups.items()]

    def _write(self, key: tuple[object, ...], numbers: list[int], state: State) -> Action:
        table = arrow_rows([state.row(number) for number in numbers], state.types)
        arrays, fields, stats = [], [], _Stats(len(numbers))
        for name in table.column_names:
            if name not in self.partition:
                column = self.columns[name]
                array = _physical(table[name].combine_chunks(), column)
                arrays.append(array)
                fields.append(_field(column, array.type))
                stats.add(column, table[name].combine_chunks(), (stats.least, stats.greatest, stats.nulls))
        # No two names are one flipped bit apart, as no writer's are.
        name = f"a b-{sha256(str(len(self.written)).encode()).hexdigest()[:16]}.parquet"
        self.written[name] = numbers
        pq.write_table(pa.Table.from_arrays(arrays, schema=pa.schema(fields)), self.folder / name)
        values = {self.columns[one].physical: _text(value) for one, value in zip(self.partition, key, strict=True)}
        size = (self.folder / name).stat().st_size
        self.files.append(_File(quote(name), numbers, values, size, json.dumps(stats.document)))
        return self.files[-1].added

    def _metadata(self) -> Action:
        schema = {"type": "struct", "fields": [_described(name, one) for name, one in self.columns.items()]}
        settings = {"delta.columnMapping.mode": self.mode, "delta.columnMapping.maxColumnId": str(self.count)}
        return metadata(schema, self.partition, **settings)


def _number(row: Mapping[Path, object]) -> int:
    return int(str(row["row",]))


def _info() -> Action:
    return {"commitInfo": {"timestamp": 1, "operation": "WRITE"}}


def _described(name: str, column: _Column) -> dict[str, Any]:
    type_: object = (
        TYPES[column.type]
        if column.type is not None
        else {"type": "struct", "fields": [_described(*one) for one in column.children.items()]}
    )
    known = {"delta.columnMapping.id": column.number, "delta.columnMapping.physicalName": column.physical}
    return {"name": name, "type": type_, "nullable": True, "metadata": known}


def _physical(array: pa.Array, column: _Column) -> pa.Array:
    """The values under the names that files have."""
    if not column.children:
        return array
    children = [_physical(array.field(name), one) for name, one in column.children.items()]
    fields = [_field(one, child.type) for one, child in zip(column.children.values(), children, strict=True)]
    return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null())


def _field(column: _Column, type_: pa.DataType) -> pa.Field:
    return pa.field(column.physical, type_, metadata={"PARQUET:field_id": str(column.number)})


def _text(value: object) -> str | None:
    return None if value is None else str(value)


@dataclass(slots=True)
class _Stats:
    """A file's statistics, as Spark would write them."""

    rows: int
    least: dict[str, Any] = field(default_factory=dict)
    greatest: dict[str, Any] = field(default_factory=dict)
    nulls: dict[str, Any] = field(default_factory=dict)

    @property
    def document(self) -> dict[str, Any]:
        return {
            "numRecords": self.rows,
            "minValues": self.least,
            "maxValues": self.greatest,
            "nullCount": self.nulls,
        }

    def add(self, column: _Column, array: pa.Array, into: tuple[dict[str, Any], ...]) -> None:
        """Note a column's, or what is inside it."""
        least, greatest, nulls = into
        if column.children:
            below = tuple(one.setdefault(column.physical, {}) for one in into)
            for name, child in column.children.items():
                self.add(child, pc.struct_field(array, name), below)
            return
        nulls[column.physical] = array.null_count
        if pa.types.is_boolean(array.type) or pa.types.is_binary(array.type) or array.null_count == len(array):
            return
        if pa.types.is_floating(array.type) and pc.any(pc.is_nan(array)).as_py():
            return
        found = pc.min_max(array).as_py()
        low, high = _bound(found["min"]), _bound(found["max"])
        if isinstance(low, str) and isinstance(found["min"], str):
            low = low[:_CUT]
        least[column.physical] = low
        if not isinstance(found["max"], str) or len(found["max"]) <= _CUT:
            greatest[column.physical] = high


def _bound(value: object) -> object:
    match value:
        case datetime():
            zone = "" if value.tzinfo is None else "Z"
            return value.replace(tzinfo=None).isoformat(timespec="milliseconds") + zone
        case date():
            return value.isoformat()
        case Decimal():
            return float(value)
    return value
