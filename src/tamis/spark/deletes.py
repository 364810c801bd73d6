"""Rows that are deleted, taken out of a DataFrame: by their place in a file, or by their values.

Deletes become rows, and an anti join removes what they name. Few of them are broadcast, so that the data stays where
it is; many are left to Spark, which then joins as it sees fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Final

import numpy as np
import pyarrow as pa
from numpy import typing as npt
from pyarrow import types as pt
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import LongType, StringType, StructField, StructType

from tamis.formats.errors import unreadable
from tamis.formats.scan import EqualityDeletes, FileGroup, OwnNames, PositionDeletes, ReadField, Scan, Vectors
from tamis.spark.paths import quoted
from tamis.spark.pushdown import Veil
from tamis.spark.relation import relation
from tamis.spark.sharing import read_names, shared, taken
from tamis.spark.types import plain_schema, read_schema

__all__ = ["NUMBER", "POSITION", "equality_lookup", "small_frame", "without_equal", "without_positions"]

NUMBER: Final = "number"
"""The number of a row's file in the scan."""
POSITION: Final = "position"
SEQUENCE: Final = "sequence"
SCOPE: Final = "scope_{}"
"""The scope of a row's file, for each part of the equality deletes."""

MOST_BROADCAST: Final = 1_000_000
"""Deleted rows up to which they are broadcast: as many positions take some 50 MB on each executor."""
MOST_LOCAL: Final = 1_000_000
"""Deleted rows up to which vectors are decoded here; beyond it, on the executors."""

_DATA: Final = "data"
_DELETE: Final = "delete"
_URI: Final = "uri"
Numbers = npt.NDArray[np.int64]


def small_frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    """A DataFrame of a few values that are known here."""
    return spark.createDataFrame(table, plain_schema(table.schema))


def without_positions(spark: SparkSession, scan: Scan, group: FileGroup, frame: DataFrame) -> DataFrame:
    """The rows of a frame with NUMBER and POSITION that no position delete or vector of the group names."""
    parts, rows, own = [], 0, scan.own
    if scan.positions is not None:
        parts += _from_files(spark, scan, scan.positions, group.numbers)
        rows += scan.positions.rows
    if scan.vectors is not None:
        parts += _from_vectors(spark, scan.vectors, group.numbers, own)
        rows += scan.vectors.rows
    if not parts:
        return frame.drop(own(NUMBER), own(POSITION))
    deleted = _sized(reduce(lambda left, right: left.union(right), parts), rows)
    same = (f.col(own(NUMBER)) == f.col(own(_DATA))) & (f.col(own(POSITION)) == f.col(own(_DELETE)))
    return frame.join(deleted, same, "left_anti").drop(own(NUMBER), own(POSITION))


def _sized(deleted: DataFrame, rows: int) -> DataFrame:
    return f.broadcast(deleted) if rows <= MOST_BROADCAST else deleted


def _from_files(spark: SparkSession, scan: Scan, positions: PositionDeletes, numbers: Numbers) -> list[DataFrame]:
    """(number, position) of the rows that position delete files name, each for the data that it applies to."""
    schema = StructType([StructField("file_path", StringType()), StructField("pos", LongType())])
    mine, own = np.isin(positions.data, numbers), scan.own
    data, delete = positions.data[mine], positions.delete[mine]
    formats = positions.files["file_format"].combine_chunks().take(pa.array(delete)).to_numpy(zero_copy_only=False)
    frames = []
    for kind in dict.fromkeys(formats.tolist()):
        chosen = formats == kind
        used, places = np.unique(delete[chosen], return_inverse=True)
        paths = positions.files["path"].take(pa.array(used)).to_pylist()
        found = relation(spark, kind, schema, paths)
        uris = found.uris()
        pairs = pa.table(
            {
                own(_URI): pa.array([uris[path] for path in paths]).take(pa.array(places)),
                "file_path": scan.files["path"].take(pa.array(data[chosen])).combine_chunks(),
                own(_DATA): data[chosen],
            }
        )
        rows = found.frame.select("file_path", f.col("pos").alias(own(_DELETE)), found.file.alias(own(_URI)))
        frames.append(
            rows.join(f.broadcast(small_frame(spark, pairs)), [own(_URI), "file_path"]).select(
                own(_DATA), own(_DELETE)
            )
        )
    return frames


def _from_vectors(spark: SparkSession, vectors: Vectors, numbers: Numbers, own: OwnNames) -> list[DataFrame]:
    mine = np.flatnonzero(np.isin(vectors.data, numbers))
    if not len(mine):
        return []
    if vectors.rows > MOST_LOCAL:
        from tamis.spark.vectors import decoded_on_executors

        return [decoded_on_executors(spark, vectors, mine, (own(_DATA), own(_DELETE)))]
    files: dict[str, bytes] = {}
    data, deleted = [], []
    for place in mine.tolist():
        location = vectors.location[place]
        if location not in files:
            files[location] = vectors.fetch(location)
        start = int(vectors.offset[place])
        try:
            found = vectors.decode(files[location][start : start + int(vectors.length[place])])
        except ValueError as error:
            raise unreadable(location, str(error), start) from error
        data.append(np.full(len(found), vectors.data[place]))
        deleted.append(found)
    return [small_frame(spark, pa.table({own(_DATA): np.concatenate(data), own(_DELETE): np.concatenate(deleted)}))]


def equality_lookup(scan: Scan, numbers: Numbers) -> dict[str, pa.Array]:
    """The sequence number and the scopes of these files; a file that a part does not concern has no scope in it."""
    found: dict[str, pa.Array] = {}
    own = scan.own
    sequence = np.zeros(len(numbers), np.int64)
    for place, part in enumerate(scan.equality):
        known = part.data["number"].to_numpy()
        at = np.clip(np.searchsorted(known, numbers), 0, max(len(known) - 1, 0))
        concerned = known[at] == numbers
        sequence = np.where(concerned, part.data["sequence"].to_numpy()[at], sequence)
        found[own(SCOPE.format(place))] = pa.array(part.data["scope"].to_numpy()[at], mask=~concerned)
    found[own(SEQUENCE)] = pa.array(sequence)
    return found


def without_equal(spark: SparkSession, scan: Scan, frame: DataFrame) -> DataFrame:
    """The rows of a frame with SEQUENCE and SCOPEs that no younger delete of their scope equals."""
    own = scan.own
    for place, part in enumerate(scan.equality):
        floats = [_is_float(scan, path) for path in part.columns]
        deleted = _values(spark, part, floats, own)
        scope = own(SCOPE.format(place))
        same = (f.col(scope) == f.col(own(_DATA))) & (f.col(own(SEQUENCE)) < f.col(own(_DELETE)))
        for number, path in enumerate(part.columns):
            same = same & _field(path).eqNullSafe(f.col(own(_value(number))))
            if floats[number]:
                same = same & (_is_minus_zero(_field(path)) == f.col(own(_sign(number))))
        frame = frame.join(_sized(deleted, part.rows), same, "left_anti").drop(scope)
    return frame.drop(own(SEQUENCE))


def _is_float(scan: Scan, path: tuple[str, ...]) -> bool:
    """Whether a compared column is a float."""
    fields: Sequence[ReadField] = (*scan.fields, *scan.hidden)
    for name in path[:-1]:
        fields = next(one.children for one in fields if one.name == name)
    return bool(pt.is_floating(next(one.type for one in fields if one.name == path[-1])))


def _is_minus_zero(number: Column) -> Column:
    """Whether it is -0.0: to Spark the same as 0.0, and another value where deletes are compared as Java does."""
    return f.when(number == 0, number.cast("string") == "-0.0").otherwise(f.lit(False))  # noqa: FBT003 - a column


def _values(spark: SparkSession, part: EqualityDeletes, floats: Sequence[bool], own: OwnNames) -> DataFrame:
    """A row for each deleted value of a scope: the values, the scope, and the youngest delete's sequence number."""
    frames = []
    for group in part.groups:
        paths = group.files["path"].to_pylist()
        read, _ = shared(group.fields, own)
        names = read_names(read, own)
        found = relation(spark, group.file_format, read_schema(read, names), paths, dict(group.options))
        uris = found.uris()
        columns = {own(_URI): [uris[path] for path in paths]}
        known = pa.table({**columns, own(_DATA): group.files["scope"], own(_DELETE): group.files["sequence"]})
        veil = Veil(group.file_format)
        values = [
            taken(veil.column(one, name), one, field).alias(field.name, metadata={})
            for field, one, name in zip(group.fields, read, names, strict=True)
        ]
        rows = found.frame.select(*values, found.file.alias(own(_URI)))
        frames.append(rows.join(f.broadcast(small_frame(spark, known)), own(_URI)))
    united = reduce(lambda left, right: left.union(right), frames)
    keys = {own(_value(number)): _written(part, number) for number in range(len(part.columns))}
    keys |= {own(_sign(number)): _is_minus_zero(_written(part, number)) for number, one in enumerate(floats) if one}
    named = [key.alias(name) for name, key in keys.items()]
    return (
        united.select(*named, own(_DATA), own(_DELETE))
        .groupBy(*keys, own(_DATA))
        .agg(f.max(own(_DELETE)).alias(own(_DELETE)))
    )


def _written(part: EqualityDeletes, number: int) -> Column:
    """A deleted value, by its path in the delete file: the same as in the table, but for a hidden column's name."""
    return _field(part.written[number])


def _value(number: int) -> str:
    return f"value_{number}"


def _sign(number: int) -> str:
    return f"sign_{number}"


def _field(path: tuple[str, ...]) -> Column:
    return reduce(lambda column, name: column.getField(name), path[1:], f.col(quoted(path[0])))
