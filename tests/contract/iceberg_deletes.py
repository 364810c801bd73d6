"""Delete files of Iceberg tables, committed through PyIceberg's transactions, which have no way of their own to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriterV2,
)
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update.snapshot import _FastAppendFiles

__all__ = ["commit_deletes"]

FILE_PATH, POS = 2147483546, 2147483545
"""The ids of a position delete file's columns."""
EMPTY: Final = (
    *("column_sizes", "value_counts", "null_value_counts", "nan_value_counts"),
    *("lower_bounds", "upper_bounds", "key_metadata", "split_offsets", "sort_order_id"),
)


def commit_deletes(table: Table, rows: frozenset[int], ids: frozenset[int], *, by_value: bool) -> None:
    """Delete these rows: by their positions in each file, or by their ids in each partition that has one of them."""
    files = list(_delete_files(table, rows, ids, by_value=by_value))
    with table.transaction() as transaction:
        producer = _RowDelta(Operation.DELETE, transaction, table.io)
        producer.files = files
        producer.commit()


def _delete_files(table: Table, rows: frozenset[int], ids: frozenset[int], *, by_value: bool) -> Iterator[DataFile]:
    done = set()
    for file in _data_files(table):
        with table.io.new_input(file.file_path).open() as stream:
            numbers = pq.read_table(stream, columns=["row"])["row"].to_pylist()
        places = [place for place, number in enumerate(numbers) if number in rows]
        if not places:
            continue
        if not by_value:
            paths = pa.array([file.file_path] * len(places))
            columns = {"file_path": (FILE_PATH, paths), "pos": (POS, pa.array(places, pa.int64()))}
            yield _delete_file(table, file, columns)
        elif (key := (file.spec_id, repr(file.partition))) not in done:
            done.add(key)
            number = table.schema().find_field("id").field_id
            columns = {"id": (number, pa.array(sorted(ids), pa.int64()))}
            yield _delete_file(table, file, columns, [number])


def _data_files(table: Table) -> Iterator[DataFile]:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    for manifest in snapshot.manifests(table.io):
        if manifest.content == ManifestContent.DATA:
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
                yield entry.data_file


def _delete_file(
    table: Table, like: DataFile, columns: Mapping[str, tuple[int, pa.Array]], equality_ids: list[int] | None = None
) -> DataFile:
    """Of the partition of another file."""
    fields = [
        pa.field(name, values.type, nullable=False, metadata={"PARQUET:field_id": str(number)})
        for name, (number, values) in columns.items()
    ]
    path = f"{table.location()}/data/{uuid4()}-deletes.parquet"
    content = pa.BufferOutputStream()
    pq.write_table(pa.table([values for _, values in columns.values()], schema=pa.schema(fields)), content)
    data = content.getvalue().to_pybytes()
    with table.io.new_output(path).create() as stream:
        stream.write(data)
    facts: dict[str, Any] = dict.fromkeys(EMPTY)
    made = DataFile.from_args(
        content=DataFileContent.EQUALITY_DELETES if equality_ids else DataFileContent.POSITION_DELETES,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=like.partition,
        record_count=len(next(iter(columns.values()))[1]),
        file_size_in_bytes=len(data),
        equality_ids=equality_ids,
        **facts,
    )
    made.spec_id = like.spec_id
    return made


class _DeleteWriter(ManifestWriterV2):
    """A manifest of delete files."""

    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


class _RowDelta(_FastAppendFiles):
    """A snapshot that adds delete files, and nothing else."""

    files: Iterable[DataFile] = ()

    def _manifests(self) -> list[ManifestFile]:
        by_spec: dict[int, list[DataFile]] = {}
        for file in self.files:
            by_spec.setdefault(file.spec_id, []).append(file)
        return [*(self._listed(spec_id, files) for spec_id, files in by_spec.items()), *self._existing_manifests()]

    def _listed(self, spec_id: int, files: Iterable[DataFile]) -> ManifestFile:
        output = self.new_manifest_output()
        writer = _DeleteWriter(self.spec(spec_id), self.schema(), output, self._snapshot_id, self._compression)
        with writer:
            for file in files:
                writer.add(
                    ManifestEntry.from_args(
                        status=ManifestEntryStatus.ADDED,
                        snapshot_id=self._snapshot_id,
                        sequence_number=None,
                        file_sequence_number=None,
                        data_file=file,
                    )
                )
        return writer.to_manifest_file()
