"""Very many deletion vectors, decoded on the executors: Spark reads their files, tamis's code decodes them there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from tamis.formats.scan import Vectors, counted_positions
from tamis.predicate.arrays import Int64s
from tamis.spark.lookup import same_sizes
from tamis.spark.paths import canonical
from tamis.spark.relation import whole_files
from tamis.spark.shipping import on_executors
from tamis.spark.stores import Reach

__all__ = ["decoded_on_executors"]

Blob = tuple[int, int, int, int | None]
"""The number of the data file, where its bitmap begins and ends, and how many positions it has, if that is known."""


def decoded_on_executors(
    reach: Reach, vectors: Vectors, chosen: Int64s, names: tuple[str, str], unknown: Mapping[str, int | None]
) -> DataFrame:
    """A row for each deleted row of these vectors: the number of its file and its position, under these names.

    unknown has the sizes of files that are to be compared.
    """
    locations = list(dict.fromkeys(vectors.location[index] for index in chosen.tolist()))
    files = same_sizes(reach.spark, whole_files(reach, locations), unknown)
    uris = files.uris()
    blobs: dict[str, list[Blob]] = {}
    for index in chosen.tolist():
        start = int(vectors.offset[index])
        end = start + int(vectors.length[index])
        blob = (int(vectors.data[index]), start, end, vectors.counts.get(index))
        blobs.setdefault(canonical(unquote(uris[vectors.location[index]])), []).append(blob)
    work = on_executors(reach.spark, decode_files, blobs, vectors.decode, names)
    return files.frame.select("path", "content").mapInArrow(work, f"{names[0]} bigint, {names[1]} bigint")


def decode_files(
    batches: Iterable[pa.RecordBatch],
    blobs: Mapping[str, list[Blob]],
    decode: Callable[[bytes], Int64s],
    names: tuple[str, str],
) -> Iterator[pa.RecordBatch]:
    """The deleted positions in the files of these batches, a batch for each vector."""
    for batch in batches:
        for path, content in zip(batch.column("path").to_pylist(), batch.column("content"), strict=True):
            data = content.as_buffer().to_pybytes()
            for number, start, end, count in blobs[canonical(path)]:
                try:
                    positions = counted_positions(decode, data[start:end], count)
                except ValueError as error:
                    raise ValueError(f"{path}, at byte {start}: {error}") from error
                yield pa.RecordBatch.from_arrays(
                    [pa.array(np.full(len(positions), number)), pa.array(positions)], list(names)
                )
