"""What a file has for all its rows, looked up by the file's name where a row needs it.

A join would cost every row, also of queries that want none of it. An expression costs the rows that ask, and is not
computed at all where nobody selects it. Spark searches a map from its beginning, so files are spread over as many
small maps as there are files, by a checksum of their names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as f

from tamis.spark.asked import Reading
from tamis.spark.relation import Keys, Relation, plain_names, small_frame

__all__ = ["PATH", "called_late", "is_one_value", "looked_up_columns", "same_sizes"]

PATH: Final = "path"
"""The column of a scan that has the path of each file."""


def is_one_value(values: pa.Array) -> bool:
    """Whether all values are one and the same; 0.0 and -0.0 are two."""
    if pt.is_floating(values.type):
        values = values.view(pa.int64() if pt.is_float64(values.type) else pa.int32())
    return len(pc.unique(values)) == 1


def looked_up_columns(spark: SparkSession, keys: Keys, values: pa.Table) -> dict[str, Column]:
    """A column for each of these, which have a row for each of the keys' files. An unknown file stops the job."""
    file, names = keys.file, keys.values
    count = 1 << max(len(names) - 1, 0).bit_length()
    hashes = np.fromiter((crc32(name.encode()) % count for name in names), np.int64, len(names))
    order = np.argsort(hashes, kind="stable")
    starts = np.searchsorted(hashes[order], np.arange(count + 1)).astype(np.int32)
    arrays = [values[name].combine_chunks().take(pa.array(order)) for name in values.column_names]
    entries = pa.StructArray.from_arrays(arrays, names=[str(number) for number in range(len(arrays))])
    maps = pa.MapArray.from_arrays(starts, pa.array(names, pa.string()).take(pa.array(order)), entries)
    buckets = pa.ListArray.from_arrays(pa.array([0, count], pa.int32()), maps)
    table = small_frame(spark, pa.table({"files": buckets})).scalar()
    entry = f.element_at(f.get(table, (f.crc32(file) % count).cast("int")), file)
    unknown = f.raise_error(f.concat(f.lit("tamis does not know the file of this row: "), file))
    return {
        name: f.when(entry.isNull(), unknown).otherwise(entry.getField(str(number)))
        for number, name in enumerate(values.column_names)
    }


def same_sizes(spark: SparkSession, files: Relation, unknown: Mapping[str, int | None]) -> Relation:
    """The relation, which stops the job at a row of a file that has not its size, or is not one of its files.

    unknown has the sizes of files that nobody else can ask. Where the relation has none of them, it stays as it is.
    """
    if unknown.keys().isdisjoint(files.paths):
        return files
    sizes = pa.array([unknown.get(path) for path in files.paths], pa.int64())
    announced = looked_up_columns(spark, files.by_address(), pa.table({"size": sizes}))["size"]
    actual = files.frame.metadataColumn("_metadata").getField("file_size")
    text = "{} has {} bytes, and the table's metadata says {}: it is not the file that was written"
    before, between, last, after = (f.lit(piece) for piece in text.split("{}"))
    wrong = f.raise_error(f.concat(before, files.file, between, actual, last, announced, after))
    same = f.when(announced.isNull() | (actual == announced), f.lit(True)).otherwise(wrong)  # noqa: FBT003 - a literal
    return replace(files, frame=files.frame.filter(same))


def called_late(reading: Reading, found: Relation, looked_up: Mapping[str, pa.Array]) -> list[Column]:
    """The file of each row as Spark calls it, if nothing but its path is to be looked up; who reads it is told."""
    if reading.called is None:
        return []
    columns = {one.name: one.source for one in reading.metadata_columns}
    if not looked_up or any(columns.get(name) != PATH for name in looked_up):
        reading.called.update(zip(found.paths, found.paths, strict=True))
        return []
    named = plain_names(reading.scan.files[PATH].to_pylist())
    keys = found.by_address() if named is None else found.keys()
    reading.called.update(zip(keys.values, found.paths, strict=True))
    return [keys.file.alias(name) for name in looked_up]
