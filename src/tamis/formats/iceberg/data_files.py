"""Rows to Parquet files of an Iceberg table, on an executor: one file open at a time, its statistics beside it.

Law: every row goes into exactly one file, whose partition value is the row's own. What a task has written that fails
is removed; of one that is killed, or that ran twice, files may stay to which nothing refers.

It imports only what every executor has: pyarrow, numpy and tamis itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import types as pt

from tamis.formats.edit import NULL_IN_REQUIRED, NewFile, WriteField
from tamis.formats.iceberg.data_paths import Place
from tamis.formats.iceberg.metrics import Mode
from tamis.formats.iceberg.statistics import Statistics, leaf_ids
from tamis.formats.storage.local import is_local, local_file
from tamis.formats.storage.sinks import DataStore, Sink
from tamis.sieve.partition_keys import distinct, plain_values

__all__ = ["DataFiles", "ParquetOptions", "conformed"]

FIELD_ID: Final = b"PARQUET:field_id"
BUFFERED: Final = 64 << 20
"""Most bytes of rows, in memory, before they become a row group: a Python worker holds them twice."""


@dataclass(frozen=True, slots=True)
class ParquetOptions:
    """The table's `write.parquet.*` properties, as far as pyarrow's writer knows them."""

    codec: str = "zstd"
    level: int | None = None
    row_group_bytes: int = 128 << 20
    row_group_rows: int = 1_048_576
    page_bytes: int = 1 << 20
    dictionary_bytes: int = 2 << 20


@dataclass(frozen=True, slots=True)
class DataFiles:
    """How rows of one table become files; it travels to executors."""

    fields: tuple[WriteField, ...]
    """The columns that files have, in their order."""
    spec_id: int
    partition_types: tuple[pa.DataType, ...]
    given: tuple[int, ...]
    """Which fields of the spec have a value in the batches; the others are void, and NULL."""
    place: Place
    storage: DataStore
    modes: Mapping[int, Mode]
    target_bytes: int
    options: ParquetOptions
    sort_order_id: int

    def __call__(self, batches: Iterable[pa.RecordBatch], name: str) -> Iterator[NewFile]:
        """The files, each when it is finished. name is a part of every file's name and unlike any other task's."""
        writing = _Writing(self, name)
        try:
            for batch in batches:
                yield from writing.take(batch)
            yield from writing.finish()
        except BaseException:
            writing.abandon()
            raise

    def discard(self, token: str) -> None:
        """Remove the files that have the token in their names: on local disk, where they can be listed."""
        if is_local(self.place.folder):
            for path in Path(local_file(self.place.folder)).rglob(f"*-{token}-*.parquet"):
                self.storage.remove(str(path))

    @property
    def schema(self) -> pa.Schema:
        """What the files hold."""
        return pa.schema([_arrow(one, top=True) for one in self.fields])


@dataclass(slots=True)
class _Writing:
    """The work of one task."""

    plan: DataFiles
    name: str
    open: _OpenFile | None = None
    written: list[str] = field(default_factory=list)
    count: int = 0

    def take(self, batch: pa.RecordBatch) -> Iterator[NewFile]:
        """Write the rows of a batch, those of one partition together."""
        if not batch.num_rows:
            return
        plan, width = self.plan, len(self.plan.fields)
        arrays = [conformed(batch.column(place), one) for place, one in enumerate(plan.fields)]
        keys = [
            batch.column(width + place).cast(plan.partition_types[given]) for place, given in enumerate(plan.given)
        ]
        if not keys:
            yield from self._write(arrays, ())
            return
        codes, first = distinct([_told_apart(key) for key in keys], batch.num_rows)
        values = [plain_values(key.take(pa.array(first))) for key in keys]
        order = np.argsort(codes, kind="stable")
        bounds = np.searchsorted(codes[order], np.arange(len(first) + 1))
        for code in range(len(first)):
            rows = order[bounds[code] : bounds[code + 1]]
            # Sorted input: nearly always one run, which a slice takes without a copy.
            run = rows[-1] - rows[0] + 1 == len(rows)
            chosen = [array.slice(int(rows[0]), len(rows)) if run else array.take(pa.array(rows)) for array in arrays]
            yield from self._write(chosen, tuple(column[code] for column in values))

    def _write(self, arrays: Sequence[pa.Array], key: tuple[object, ...]) -> Iterator[NewFile]:
        if self.open is not None and not self.open.is_for(key):
            yield self._close()
        if self.open is None:
            self.open = self._new(key)
        self.open.add(arrays)
        if self.open.is_full:
            yield self._close()

    def _new(self, key: tuple[object, ...]) -> _OpenFile:
        self.count += 1
        values: list[object] = [None] * len(self.plan.partition_types)
        for place, value in zip(self.plan.given, key, strict=True):
            values[place] = value
        path = self.plan.place.path(values, f"{self.name}-{self.count:05d}.parquet")
        self.written.append(path)
        return _OpenFile(self.plan, path, key, tuple(values))

    def _close(self) -> NewFile:
        assert self.open is not None  # noqa: S101 - for the type checker
        made = self.open.close()
        self.open = None
        return made

    def finish(self) -> Iterator[NewFile]:
        if self.open is not None:
            yield self._close()

    def abandon(self) -> None:
        """Remove what this task has written: its rows never come back to whoever would commit them."""
        if self.open is not None:
            self.open.abandon()
        for path in self.written:
            self.plan.storage.remove(path)


class _OpenFile:
    """A Parquet file that is being written, a row group at a time."""

    def __init__(self, plan: DataFiles, path: str, key: tuple[object, ...], partition: tuple[object, ...]) -> None:
        self.plan, self.path, self.partition = plan, path, partition
        self._key = list(map(_comparable, key))
        self.sink: Sink = plan.storage.create(path)
        self.statistics = Statistics(plan.fields, plan.modes)
        self.rows = self.buffered = self.buffered_rows = 0
        self._buffer: list[pa.RecordBatch] = []
        self._footers: list[Any] = []
        options = plan.options
        self._schema = plan.schema
        self._writer = pq.ParquetWriter(
            self.sink.stream,
            self._schema,
            version="2.6",
            compression=options.codec,
            compression_level=options.level,
            data_page_size=options.page_bytes,
            dictionary_pagesize_limit=options.dictionary_bytes,
            store_schema=False,
            store_decimal_as_integer=True,
            metadata_collector=self._footers,
        )

    def is_for(self, key: tuple[object, ...]) -> bool:
        return self._key == list(map(_comparable, key))

    @property
    def is_full(self) -> bool:
        return bool(self.sink.stream.tell() >= self.plan.target_bytes)

    def add(self, arrays: Sequence[pa.Array]) -> None:
        batch = pa.RecordBatch.from_arrays(list(arrays), schema=self._schema)
        self._buffer.append(batch)
        self.buffered += batch.get_total_buffer_size() if batch.num_rows == 0 else batch.nbytes
        self.buffered_rows += batch.num_rows
        options = self.plan.options
        most = min(BUFFERED, options.row_group_bytes, max(self.plan.target_bytes, 1 << 20))
        if self.buffered >= most or self.buffered_rows >= options.row_group_rows:
            self._flush()

    def _flush(self) -> None:
        if not self._buffer:
            return
        table = pa.Table.from_batches(self._buffer, self._schema).combine_chunks()
        self._buffer, self.buffered, self.buffered_rows = [], 0, 0
        for batch in table.to_batches():
            self.statistics.add(batch.columns)
        self._writer.write_table(table, row_group_size=max(table.num_rows, 1))
        self.rows += table.num_rows

    def abandon(self) -> None:
        """Let go of the file, whatever its stream says to that."""
        with suppress(Exception):
            self._writer.close()
        self.sink.abandon()

    def close(self) -> NewFile:
        self._flush()
        self._writer.close()
        size = self.sink.close()
        footer = self._footers[0]
        ids = list(leaf_ids(self.plan.fields))
        sizes: dict[int, int] = {}
        offsets = []
        for group in map(footer.row_group, range(footer.num_row_groups)):
            columns = [group.column(place) for place in range(group.num_columns)]
            for id_, column in zip(ids, columns, strict=True):
                if self.plan.modes[id_].kind != "none":
                    sizes[id_] = sizes.get(id_, 0) + column.total_compressed_size
            offsets.append(min(map(_begin, columns)))
        return NewFile(
            self.path,
            size,
            self.rows,
            self.plan.spec_id,
            self.partition,
            column_sizes=sizes,
            split_offsets=tuple(sorted(offsets)),
            sort_order_id=self.plan.sort_order_id,
            **self.statistics.told(),  # type: ignore[arg-type] # maps, by their names
        )


def _begin(column: Any) -> int:  # noqa: ANN401 - pyarrow has no types
    dictionary = column.dictionary_page_offset
    return int(column.data_page_offset if dictionary is None else min(dictionary, column.data_page_offset))


def conformed(array: pa.Array, one: WriteField) -> pa.Array:
    """A column as files hold it. ValueError for a NULL where the table allows none."""
    found = _conformed(array, one, one.name)
    if one.required and found.null_count:
        raise ValueError(f"{NULL_IN_REQUIRED}{one.name!r}")
    return found


def _conformed(array: pa.Array, one: WriteField, path: str) -> pa.Array:
    kind = one.type
    if pt.is_struct(kind):
        # flatten gives NULL where the struct is: that is no NULL of the field.
        inside = [array.field(child.name) for child in one.children]
        there = array.is_valid()
        parts = []
        for child, values in zip(one.children, inside, strict=True):
            part = _conformed(values, child, f"{path}.{child.name}")
            _check_required(child, part.filter(there) if child.required else part, f"{path}.{child.name}")
            parts.append(part)
        fields = [_arrow(child) for child in one.children]
        mask = None if not array.null_count else array.is_null()
        return pa.StructArray.from_arrays(parts, fields=fields, mask=mask)
    if pt.is_list(kind):
        element = one.children[0]
        array = _compact(array)
        values = _conformed(array.values, element, f"{path}.element")
        _check_required(element, values, f"{path}.element")
        return _typed(array, one, values)
    if pt.is_map(kind):
        key, value = one.children
        array = _compact(array)
        keys = _conformed(array.keys, key, f"{path}.key")
        items = _conformed(array.items, value, f"{path}.value")
        _check_required(value, items, f"{path}.value")
        pairs = pa.StructArray.from_arrays([keys, items], fields=_pair(one))
        return _typed(array, one, pairs)
    return array.cast(kind)


def _pair(one: WriteField) -> list[pa.Field]:
    """The key and the value of a map."""
    kind = _arrow(one).type
    return [kind.key_field, kind.item_field]


def _compact(array: pa.Array) -> pa.Array:
    """A list without an offset, and without items that lie under no row, which a NULL or a slice may leave."""
    inside = array.keys if pt.is_map(array.type) else array.values
    whole = not array.offset and not array.null_count and not array.offsets[0].as_py()
    if whole and array.offsets[-1].as_py() == len(inside):
        return array
    return array.take(pa.array(np.arange(len(array))))


def _typed(array: pa.Array, one: WriteField, inside: pa.Array) -> pa.Array:
    """The same lists of other items, under the type that names the field ids."""
    return pa.Array.from_buffers(
        _arrow(one).type, len(array), array.buffers()[:2], array.null_count, children=[inside]
    )


def _check_required(one: WriteField, values: pa.Array, path: str) -> None:
    if one.required and values.null_count:
        raise ValueError(f"{NULL_IN_REQUIRED}{path!r}")


def _arrow(one: WriteField, *, top: bool = False) -> pa.Field:
    """The field with its id. Only columns are marked as required: parts are checked, and may lie under a NULL."""
    kind = one.type
    if pt.is_struct(kind):
        kind = pa.struct([_arrow(child) for child in one.children])
    elif pt.is_list(kind):
        kind = pa.list_(_arrow(one.children[0]).with_name("element"))
    elif pt.is_map(kind):
        key, value = (_arrow(child) for child in one.children)
        kind = pa.map_(key.with_nullable(False), value)  # noqa: FBT003 - of Arrow's
    return pa.field(one.name, kind, nullable=not (top and one.required), metadata={FIELD_ID: str(one.id)})


def _told_apart(array: pa.Array) -> pa.Array:
    """What Arrow can tell apart by value: floats by their bits, so that -0.0 is not 0.0 and NaN equals itself."""
    if pt.is_floating(array.type):
        return array.view(pa.int32() if pt.is_float32(array.type) else pa.int64())
    return array


def _comparable(value: object) -> object:
    return repr(value) if isinstance(value, float) else value
