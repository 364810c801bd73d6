"""Rows that are deleted, taken out of a DataFrame: by their place in a file, or by their values.

Deletes become rows, and an anti join removes what they name. Few of them are broadcast, so that the data stays where
it is; many are left to Spark, which then joins as it sees fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from pyarrow import types as pt
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import LongType, StringType, StructField, StructType

from tamis.formats.errors import unreadable
from tamis.formats.scan import (
    EqualityDeletes,
    FileFormat,
    FileGroup,
    OwnNames,
    PositionDeletes,
    ReadField,
    Scan,
    Vectors,
)
from tamis.formats.storage.local import local_path
from tamis.formats.storage.sizes import replaced
from tamis.predicate.arrays import Int64s
from tamis.predicate.names import backticked
from tamis.spark.arrow_files import POSITION_FIELDS, Bitmap, Deleted
from tamis.spark.lookup import same_sizes
from tamis.spark.pushdown import Veil
from tamis.spark.relation import relation, small_frame, united
from tamis.spark.second_way import Files, arrow_frame, has_reader, is_here, why_not_spark_columns
from tamis.spark.sharing import read_names, shared, taken
from tamis.spark.stores import Reach
from tamis.spark.types import read_schema

__all__ = ["NUMBER", "POSITION", "equality_lookup", "in_tasks", "without_equal", "without_positions"]

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

Sizes = Mapping[str, int | None]
_DATA: Final = "data"
_DELETE: Final = "delete"
_URI: Final = "uri"


def without_positions(reach: Reach, scan: Scan, group: FileGroup, frame: DataFrame, unknown: Sizes) -> DataFrame:
    """The rows of a frame with NUMBER and POSITION that no position delete or vector of the group names.

    unknown has the sizes of files that are to be compared as they are read: a delete file that was replaced would
    bring rows back, or take others away.
    """
    frames, rows, own = [], 0, scan.own
    if scan.positions is not None:
        frames += _from_files(reach, scan, scan.positions, group.numbers, unknown)
        rows += scan.positions.rows
    if scan.vectors is not None:
        frames += _from_vectors(reach, scan.vectors, group.numbers, own, unknown)
        rows += scan.vectors.rows
    if not frames:
        return frame.drop(own(NUMBER), own(POSITION))
    deleted = _sized(united(frames), rows)
    same = (f.col(own(NUMBER)) == f.col(own(_DATA))) & (f.col(own(POSITION)) == f.col(own(_DELETE)))
    return frame.join(deleted, same, "left_anti").drop(own(NUMBER), own(POSITION))


def in_tasks(scan: Scan, group: FileGroup) -> tuple[Deleted, ...] | None:
    """What names rows of each file of the group by position, for tasks that open these files; None if they cannot.

    They can if all of it is on disks that they see. Position delete files of very many rows are left to a join: each
    task would read all of them.
    """
    positions, vectors, wanted = scan.positions, scan.vectors, group.numbers
    listed: dict[int, list[tuple[str, FileFormat]]] = {}
    bitmaps: dict[int, list[Bitmap]] = {}
    if positions is not None:
        if positions.rows > MOST_BROADCAST:
            return None
        paths, formats = (positions.files[name].to_pylist() for name in ("path", "file_format"))
        applies = np.isin(positions.data, wanted)
        for data, delete in zip(positions.data[applies].tolist(), positions.delete[applies].tolist(), strict=True):
            listed.setdefault(data, []).append((paths[delete], formats[delete]))
    if vectors is not None:
        for place in np.flatnonzero(np.isin(vectors.data, wanted)).tolist():
            where = vectors.location[place], int(vectors.offset[place]), int(vectors.length[place])
            bitmap = Bitmap(vectors.held.get(place, where), vectors.counts.get(place))
            bitmaps.setdefault(int(vectors.data[place]), []).append(bitmap)
    called = dict(zip(wanted.tolist(), scan.files["path"].take(pa.array(wanted)).to_pylist(), strict=True))
    located = [path for files in listed.values() for path, _ in files]
    located += [one.where[0] for each in bitmaps.values() for one in each if not isinstance(one.where, bytes)]
    here = {path: local_path(path) for path in (*called.values(), *located) if is_here(path)}
    if not all(path in here for path in (*called.values(), *located)):
        return None
    decode = None if vectors is None else vectors.decode
    return tuple(
        Deleted(
            path,
            tuple((str(here[name]), file_format) for name, file_format in listed.get(number, ())),
            tuple(_opened_at(one, here) for one in bitmaps.get(number, ())),
            decode,
        )
        for number, path in called.items()
    )


def _opened_at(bitmap: Bitmap, here: Mapping[str, Path | None]) -> Bitmap:
    """The same, by the path under which its file is opened."""
    if isinstance(bitmap.where, bytes):
        return bitmap
    location, start, length = bitmap.where
    return replace(bitmap, where=(str(here[location]), start, length))


def _sized(deleted: DataFrame, rows: int) -> DataFrame:
    return f.broadcast(deleted) if rows <= MOST_BROADCAST else deleted


def _from_files(
    reach: Reach, scan: Scan, positions: PositionDeletes, numbers: Int64s, unknown: Sizes
) -> list[DataFrame]:
    """(number, position) of the rows that position delete files name, each for the data that it applies to."""
    schema = StructType([StructField("file_path", StringType()), StructField("pos", LongType())])
    applies, own = np.isin(positions.data, numbers), scan.own
    data, delete = positions.data[applies], positions.delete[applies]
    formats = positions.files["file_format"].combine_chunks().take(pa.array(delete)).to_numpy(zero_copy_only=False)
    frames = []
    for file_format in dict.fromkeys(formats.tolist()):
        chosen = formats == file_format
        used, indices = np.unique(delete[chosen], return_inverse=True)
        paths = positions.files["path"].take(pa.array(used)).to_pylist()
        if file_format == "avro" and scan.second_way and not has_reader(reach, paths[0]):
            known = paths
            by_file = Files(file_format, tuple(paths), pa.table({own(_URI): paths}), tuple(map(unknown.get, paths)))
            rows = arrow_frame(reach, by_file, POSITION_FIELDS).withColumnRenamed("pos", own(_DELETE))
        else:
            files = same_sizes(reach.spark, relation(reach, file_format, schema, paths), unknown)
            uris = files.uris()
            known = [uris[path] for path in paths]
            rows = files.frame.select("file_path", f.col("pos").alias(own(_DELETE)), files.file.alias(own(_URI)))
        pairs = pa.table(
            {
                own(_URI): pa.array(known, pa.string()).take(pa.array(indices)),
                "file_path": scan.files["path"].take(pa.array(data[chosen])).combine_chunks(),
                own(_DATA): data[chosen],
            }
        )
        frames.append(
            rows.join(f.broadcast(small_frame(reach.spark, pairs)), [own(_URI), "file_path"]).select(
                own(_DATA), own(_DELETE)
            )
        )
    return frames


def _from_vectors(reach: Reach, vectors: Vectors, numbers: Int64s, own: OwnNames, unknown: Sizes) -> list[DataFrame]:
    mine = np.flatnonzero(np.isin(vectors.data, numbers))
    if not len(mine):
        return []
    frames = []
    if vectors.rows > MOST_LOCAL:
        from tamis.spark.vectors import decoded_on_executors

        in_files = mine[~np.isin(mine, list(vectors.held))]
        mine = mine[np.isin(mine, list(vectors.held))]
        if len(in_files):
            frames.append(decoded_on_executors(reach, vectors, in_files, (own(_DATA), own(_DELETE)), unknown))
        if not len(mine):
            return frames
    files: dict[str, bytes] = {}
    data, deleted = [], []
    for place in mine.tolist():
        location, start = vectors.location[place], int(vectors.offset[place])
        if place not in vectors.held and location not in files:
            files[location] = vectors.fetch(location)
            size = unknown.get(location)
            if size is not None and size != len(files[location]):
                raise replaced(location, len(files[location]), size)
        blob = (
            vectors.held[place]
            if place in vectors.held
            else files[location][start : start + int(vectors.length[place])]
        )
        try:
            found = vectors.positions(place, blob)
        except ValueError as error:
            raise unreadable(location, str(error), start) from error
        data.append(np.full(len(found), vectors.data[place]))
        deleted.append(found)
    listed = pa.table({own(_DATA): np.concatenate(data), own(_DELETE): np.concatenate(deleted)})
    return [*frames, small_frame(reach.spark, listed)]


def equality_lookup(scan: Scan, numbers: Int64s) -> dict[str, pa.Array]:
    """The sequence number and the scopes of these files; one that deletes do not concern has no scope in them."""
    columns: dict[str, pa.Array] = {}
    own = scan.own
    sequence = np.zeros(len(numbers), np.int64)
    for number, deletes in enumerate(scan.equality):
        concerning = deletes.data["number"].to_numpy()
        at = np.clip(np.searchsorted(concerning, numbers), 0, max(len(concerning) - 1, 0))
        concerned = concerning[at] == numbers
        sequence = np.where(concerned, deletes.data["sequence"].to_numpy()[at], sequence)
        columns[own(SCOPE.format(number))] = pa.array(deletes.data["scope"].to_numpy()[at], mask=~concerned)
    columns[own(SEQUENCE)] = pa.array(sequence)
    return columns


def without_equal(reach: Reach, scan: Scan, frame: DataFrame, unknown: Sizes) -> DataFrame:
    """The rows of a frame with SEQUENCE and SCOPEs that no younger delete of their scope equals."""
    own = scan.own
    for position, deletes in enumerate(scan.equality):
        floats = [_is_float(scan, path) for path in deletes.columns]
        deleted = _values(reach, scan, deletes, floats, unknown)
        scope = own(SCOPE.format(position))
        same = (f.col(scope) == f.col(own(_DATA))) & (f.col(own(SEQUENCE)) < f.col(own(_DELETE)))
        for number, path in enumerate(deletes.columns):
            same = same & _field(path).eqNullSafe(f.col(own(_value(number))))
            if floats[number]:
                same = same & (_is_minus_zero(_field(path)) == f.col(own(_sign(number))))
        frame = frame.join(_sized(deleted, deletes.rows), same, "left_anti").drop(scope)
    return frame.drop(own(SEQUENCE))


def _is_float(scan: Scan, path: tuple[str, ...]) -> bool:
    """Whether a compared column is a float."""
    fields: Sequence[ReadField] = (*scan.fields, *scan.hidden)
    for name in path[:-1]:
        fields = next(field.children for field in fields if field.name == name)
    return bool(pt.is_floating(next(field.type for field in fields if field.name == path[-1])))


def _is_minus_zero(number: Column) -> Column:
    """Whether it is -0.0: to Spark the same as 0.0, and another value where deletes are compared as Java does."""
    return f.when(number == 0, number.cast("string") == "-0.0").otherwise(f.lit(False))  # noqa: FBT003 - a column


def _values(reach: Reach, scan: Scan, deletes: EqualityDeletes, floats: Sequence[bool], unknown: Sizes) -> DataFrame:
    """A row for each deleted value of a scope: the values, the scope, and the youngest delete's sequence number."""
    frames, own = [], scan.own
    for group in deletes.groups:
        paths = group.files["path"].to_pylist()
        if scan.second_way and why_not_spark_columns(reach, group, group.fields, paths[0]) is not None:
            told = pa.table({own(_DATA): group.files["scope"], own(_DELETE): group.files["sequence"]})
            by_file = Files(group.file_format, tuple(paths), told, tuple(map(unknown.get, paths)))
            frames.append(arrow_frame(reach, by_file, group.fields))
            continue
        read, _ = shared(group.fields, own)
        names = read_names(read, own)
        files = relation(reach, group.file_format, read_schema(read, names), paths, dict(group.options))
        files = same_sizes(reach.spark, files, unknown)
        uris = files.uris()
        columns = {own(_URI): [uris[path] for path in paths]}
        by_uri = pa.table({**columns, own(_DATA): group.files["scope"], own(_DELETE): group.files["sequence"]})
        veil = Veil(group.file_format)
        values = [
            taken(veil.column(column, name), column, field).alias(field.name, metadata={})
            for field, column, name in zip(group.fields, read, names, strict=True)
        ]
        rows = files.frame.select(*values, files.file.alias(own(_URI)))
        joined = rows.join(f.broadcast(small_frame(reach.spark, by_uri)), own(_URI))
        frames.append(
            joined.select(*(f.col(backticked(field.name)) for field in group.fields), own(_DATA), own(_DELETE))
        )
    written = united(frames)
    keys = {own(_value(number)): _written(deletes, number) for number in range(len(deletes.columns))}
    keys |= {
        own(_sign(number)): _is_minus_zero(_written(deletes, number))
        for number, is_float in enumerate(floats)
        if is_float
    }
    named = [key.alias(name) for name, key in keys.items()]
    return (
        written.select(*named, own(_DATA), own(_DELETE))
        .groupBy(*keys, own(_DATA))
        .agg(f.max(own(_DELETE)).alias(own(_DELETE)))
    )


def _written(deletes: EqualityDeletes, number: int) -> Column:
    """A deleted value, by its path in the delete file: the same as in the table, but for a hidden column's name."""
    return _field(deletes.written[number])


def _value(number: int) -> str:
    return f"value_{number}"


def _sign(number: int) -> str:
    return f"sign_{number}"


def _field(path: tuple[str, ...]) -> Column:
    return reduce(lambda column, name: column.getField(name), path[1:], f.col(backticked(path[0])))
