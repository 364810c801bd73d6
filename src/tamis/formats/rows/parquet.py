"""The rows of a Parquet file as Arrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Final

import pyarrow as pa
from pyarrow import parquet as pq

from tamis.formats.errors import unreadable

__all__ = ["ParquetRows", "read_parquet"]

BATCH_ROWS: Final = 1 << 17


@dataclass(frozen=True, slots=True)
class ParquetRows:
    """A Parquet file."""

    file: pq.ParquetFile
    schema: pa.Schema

    def batches(self, wanted: Sequence[int]) -> Iterator[pa.RecordBatch]:
        """These columns, by their places, of all rows in order, some at a time."""
        names = [self.schema.field(place).name for place in wanted]
        if not names:
            for group in range(self.file.metadata.num_row_groups):
                yield pa.RecordBatch.from_arrays([pa.nulls(self.file.metadata.row_group(group).num_rows)], names=[""])
            return
        for batch in self.file.iter_batches(BATCH_ROWS, columns=list(dict.fromkeys(names)), use_threads=False):
            # A name with a dot may bring columns along that have it in their paths.
            yield batch.select(names)


def read_parquet(path: str, stream: BinaryIO) -> ParquetRows:
    """The file. UnreadableMetadataError if it is damaged."""
    try:
        file = pq.ParquetFile(stream, coerce_int96_timestamp_unit="us")
        return ParquetRows(file, file.schema_arrow)
    except (pa.ArrowException, OSError) as error:
        raise unreadable(path, str(error).partition("\n")[0]) from error
