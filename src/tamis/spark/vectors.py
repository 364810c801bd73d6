"""Very many deletion vectors, decoded on the executors: Spark reads their files, tamis's code decodes them there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from numpy import typing as npt
from pyspark.sql import DataFrame, SparkSession

from tamis.formats.scan import Vectors
from tamis.spark.paths import canonical
from tamis.spark.relation import whole_files
from tamis.spark.shipping import on_executors

__all__ = ["decoded_on_executors"]

Numbers = npt.NDArray[np.int64]
Blob = tuple[int, int, int]
"""The number of the data file, and where its bitmap begins and ends."""


def decoded_on_executors(spark: SparkSession, vectors: Vectors, chosen: Numbers, names: tuple[str, str]) -> DataFrame:
    """A row for each deleted row of these vectors: the number of its file and its place, under these names."""
    locations = list(dict.fromkeys(vectors.location[place] for place in chosen.tolist()))
    found = whole_files(spark, locations)
    uris = found.uris()
    blobs: dict[str, list[Blob]] = {}
    for place in chosen.tolist():
        start = int(vectors.offset[place])
        blob = (int(vectors.data[place]), start, start + int(vectors.length[place]))
        blobs.setdefault(canonical(unquote(uris[vectors.location[place]])), []).append(blob)
    work = on_executors(spark, decode_files, blobs, vectors.decode, names)
    return found.frame.mapInArrow(work, f"{names[0]} bigint, {names[1]} bigint")


def decode_files(
    batches: Iterable[pa.RecordBatch],
    blobs: Mapping[str, list[Blob]],
    decode: Callable[[bytes], Numbers],
    names: tuple[str, str],
) -> Iterator[pa.RecordBatch]:
    """The deleted positions in the files of these batches, a batch for each vector."""
    for batch in batches:
        for path, content in zip(batch.column("path").to_pylist(), batch.column("content"), strict=True):
            data = content.as_buffer().to_pybytes()
            for number, start, end in blobs[canonical(path)]:
                try:
                    found = decode(data[start:end])
                except ValueError as error:
                    raise ValueError(f"{path}, at byte {start}: {error}") from error
                yield pa.RecordBatch.from_arrays(
                    [pa.array(np.full(len(found), number)), pa.array(found)], list(names)
                )
