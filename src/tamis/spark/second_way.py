"""Which files Spark's own readers cannot read right, and those files read with Arrow in Spark's tasks.

Law: the rows, columns and types are those of the first way. A file goes the second way only if a column that is asked
for, or its deletes, need it; what is not asked for costs nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from pyarrow import types as pt
from pyspark.sql import DataFrame
from pyspark.sql.types import LongType, StructField, StructType

from tamis.errors import UnreadableFileError
from tamis.formats.scan import DeleteGroup, FileFormat, FileGroup, ReadField, has_counts, has_variant, has_void_inside
from tamis.formats.storage.local import local_path
from tamis.predicate.type_names import is_text
from tamis.spark.arrow_files import ArrowFile, Asked, Deleted, read_contents, read_files
from tamis.spark.asked import Reading
from tamis.spark.calendar import with_known_calendar
from tamis.spark.paths import canonical
from tamis.spark.relation import NO_READER, relation, united, whole_files
from tamis.spark.session import is_case_sensitive
from tamis.spark.shipping import on_executors
from tamis.spark.stores import Reach
from tamis.spark.types import can_default, has_naive_time, output_type, plain_schema

__all__ = ["Files", "arrow_frame", "has_reader", "is_here", "lacks_default", "why_not_spark", "why_not_spark_columns"]

TASK_BYTES: Final = 128 << 20
"""Bytes of files to a task, where there are many."""
FEW_BYTES: Final = 64 * TASK_BYTES
"""Bytes of files up to which there are as many tasks as the cluster runs at once: more of them read nothing faster,
and a worker's first ones take half a second to begin, which is more than it takes to read some megabytes."""


@dataclass(frozen=True, slots=True)
class Files:
    """Files that are read alike."""

    file_format: FileFormat
    paths: tuple[str, ...]
    attached: pa.Table
    """What is added to the rows of each file."""
    sizes: tuple[int | None, ...] | None = None
    """None if they are not to be compared with what is found."""
    constants: Mapping[str, pa.Array] = dataclasses.field(default_factory=dict)
    """By column: the values that stand in where files do not have it."""
    deleted: tuple[Deleted, ...] = ()
    """What names deleted rows of each file, which then do not come out; empty if that is left to others."""


def why_not_spark(reading: Reading, group: FileGroup, fields: Sequence[ReadField]) -> str | None:
    """Why Spark's reader cannot read these columns of these files right; None if it can, or nothing else could."""
    if not reading.scan.second_way:
        return None
    name = group.file_format.upper()
    if group.file_format != "parquet":
        if group.positions:
            return f"{name} files with position deletes"
        if any(column.source is None or column.counted or column.stored for column in reading.metadata_columns):
            return f"positions of rows in {name} files"
    known = [with_known_calendar(field, group.ordinary) for field in fields if field.name not in group.constants]
    path = reading.scan.files["path"][int(group.numbers[0])].as_py()
    return why_not_spark_columns(reading.reach, group, known, path)


def why_not_spark_columns(
    reach: Reach, group: FileGroup | DeleteGroup, fields: Iterable[ReadField], path: str
) -> str | None:
    """The same of what the columns and the file format alone tell; path is one of the files."""
    if group.unread_by_spark is not None:
        return group.unread_by_spark
    if group.twins and not is_case_sensitive(reach.spark):
        return "names that differ in case alone, which the session ignores"
    if group.file_format == "avro" and not has_reader(reach, path):
        return "Avro files, without Spark's Avro package"
    for field in fields:
        if group.file_format != "parquet" and has_variant(field):
            return f"column {field.name!r}: a variant in {group.file_format.upper()} files"
        if group.file_format == "orc" and has_naive_time(field):
            return f"column {field.name!r}: times in ORC files"
        if group.file_format != "parquet" and has_counts(field):
            return f"column {field.name!r}: times of day and nanoseconds in {group.file_format.upper()} files"
        if group.file_format == "avro" and _has_array_map(field):
            return f"column {field.name!r}: maps in Avro files whose keys are no texts"
        if _may_be_days(field):
            return f"column {field.name!r}: dates that have become times in nanoseconds"
        if has_void_inside(field):
            return f"column {field.name!r}: a type without values inside another"
        if _has_old_date(field):
            return f"column {field.name!r}: dates before 1582-10-15 in ORC files"
        if lacks_default(field):
            return f"column {field.name!r}: an initial default that Spark's readers cannot give"
    return None


def _has_array_map(field: ReadField) -> bool:
    """Whether there is a map in the field that Avro has as a list: its own maps have texts as keys."""
    is_one = pt.is_map(field.type) and not is_text(field.type.key_type)
    return is_one or any(map(_has_array_map, field.children))


def _may_be_days(field: ReadField) -> bool:
    """Whether there are times in the field that are read as numbers, and that older files have as days."""
    return (field.counts is not None and field.promoted) or any(map(_may_be_days, field.children))


def _has_old_date(field: ReadField) -> bool:
    return field.calendar == "taken for julian" or any(map(_has_old_date, field.children))


def lacks_default(field: ReadField, *, top: bool = True) -> bool:
    """Whether files may lack something in the field that has a default which Spark's readers cannot give."""
    if field.default is not None and field.default.is_valid and not (top and can_default(field, field.default)):
        return True
    return any(lacks_default(child, top=False) for child in field.children)


def has_reader(reach: Reach, path: str) -> bool:
    """Whether the session reads Avro files, of which that is one."""
    try:
        relation(reach, "avro", StructType([StructField("nothing", LongType())]), [path])
    except UnreadableFileError as error:
        if error.reason == NO_READER:
            return False
        raise
    return True


def arrow_frame(reach: Reach, files: Files, fields: Sequence[ReadField], positions: Sequence[str] = ()) -> DataFrame:
    """All rows of the files: the fields, under their names, then what is attached, then their places."""
    kinds = [StructField(field.name, output_type(field)) for field in fields]
    shown = StructType(
        [*kinds, *plain_schema(files.attached.schema), *(StructField(n, LongType()) for n in positions)]
    )
    settled = tuple(replace(field, default=None) if field.name in files.constants else field for field in fields)
    asked = Asked(files.file_format, settled, tuple(files.attached.column_names), tuple(positions))
    spark = reach.spark
    near = [is_here(path) for path in files.paths]
    frames = []
    if any(near):
        here = [_file(files, number) for number in np.flatnonzero(near).tolist()]
        size = sum(Path(file.path).stat().st_size for file in here)
        # Without a number of partitions there are as many as the cluster runs at once.
        count = None if size <= FEW_BYTES else min(-(-size // TASK_BYTES), len(here))
        work = on_executors(spark, read_files, here, asked)
        frames.append(spark.range(0, len(here), 1, count).mapInArrow(work, shown))
    if not all(near):
        far = [number for number, is_near in enumerate(near) if not is_near]
        contents = whole_files(reach, [files.paths[number] for number in far])
        uris = contents.uris()
        by_path = {canonical(unquote(uris[files.paths[number]])): _file(files, number) for number in far}
        frames.append(contents.frame.mapInArrow(on_executors(spark, read_contents, by_path, asked), shown))
    return united(frames)


def _file(files: Files, number: int) -> ArrowFile:
    path = files.paths[number]
    here = local_path(path)
    return ArrowFile(
        path if here is None else str(here),
        None if files.sizes is None else files.sizes[number],
        {name: values[number] for name, values in files.constants.items()},
        {name: files.attached[name][number] for name in files.attached.column_names},
        files.deleted[number] if files.deleted else None,
    )


def is_here(path: str) -> bool:
    """Whether the file is one that tasks open themselves."""
    found = local_path(path)
    return found is not None and found.is_file()
