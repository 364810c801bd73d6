"""What rows keep of themselves in files, beside the table's columns: their ids, and when they were last changed.

A file has such a column if its rows were moved there from others. Law: what the file says counts, where it says
anything; else what the metadata says of the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from tamis.formats.scan import FileGroup, MetadataColumn, ReadField, Scan

__all__ = ["PLACE", "stored_fields", "stored_first", "with_stored"]

PLACE: Final = "place"
"""The position of a row in its file, for what is counted by it."""


def with_stored(scan: Scan, asked_about: Sequence[MetadataColumn]) -> Scan:
    """The scan with columns, hidden ones, in which files may have what is asked about their rows."""
    stored = stored_fields(scan, asked_about)
    if not stored:
        return scan
    # Files that are found by names are of writers that knew no ids: they have no such column.
    absent = tuple(replace(field, id=None) for field in stored)
    groups = tuple(
        replace(group, fields=(*group.fields, *(stored if _by_id(group) else absent))) for group in scan.groups
    )
    return replace(scan, hidden=(*scan.hidden, *stored), groups=groups)


def stored_fields(scan: Scan, asked_about: Sequence[MetadataColumn]) -> tuple[ReadField, ...]:
    """The columns in which files that carry field ids may have what is asked about their rows."""
    return tuple(
        ReadField(scan.own(column.name), pa.int64(), column.stored, own_name=True, own_path=True)
        for column in asked_about
        if column.stored is not None
    )


def stored_first(frame: DataFrame, scan: Scan, asked_about: Sequence[MetadataColumn]) -> DataFrame:
    """The rows with what they store of themselves in place of what is known of their file."""
    for column in asked_about:
        if column.stored is not None:
            given = f.col(column.name) + f.col(scan.own(PLACE)) if column.counted else f.col(column.name)
            frame = frame.withColumn(column.name, f.coalesce(f.col(scan.own(column.name)), given))
    return frame


def _by_id(group: FileGroup) -> bool:
    return group.file_format == "parquet" and any(field.id is not None for field in group.fields)
