"""Which sections are merged file by file on the executors, and in which tasks.

What Arrow reads there is what Spark would read, or the section goes Spark's way: Parquet files on a file system that
every executor has, columns in the table's own types, keys and order that compare as numbers or bytes do.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from pyarrow import types as pt
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from tamis.formats.scan import FileGroup, Merging, ReadField, Scan
from tamis.formats.storage.local import local_path
from tamis.spark.merging_files import Rule, Section, VersionFile, merge_sections
from tamis.spark.session import checked
from tamis.spark.shipping import on_executors
from tamis.spark.types import output_type

__all__ = ["MOST_ROWS", "in_files", "merged_files"]

MOST_ROWS: Final = 20_000_000
"""Versions of a section whose keys a Python worker holds, at some 60 bytes each. Larger ones are left to Spark's
sort, which spills to disk."""
TASKS: Final = "spark.sql.shuffle.partitions"


def in_files(
    scan: Scan, groups: Sequence[FileGroup], wanted: Sequence[str]
) -> tuple[list[FileGroup], list[FileGroup]]:
    """The groups, cut into files whose sections are merged file by file, and into others."""
    merging = scan.merging
    assert merging is not None  # noqa: S101 - for the type checker
    names = {*wanted, *merging.keys, *(newer.column for newer in merging.order), merging.kind}
    able = np.zeros(len(scan.files), np.bool_)
    if merging.engine != "by column" and _comparable(scan, merging):
        for group in groups:
            fields = [field for field in group.fields if field.name in names]
            plain = group.file_format == "parquet" and not group.positions
            if plain and all(_is_read_alike(field) for field in fields):
                # A file that is not here is missed by Spark's reader, before any job.
                able[group.numbers] = [_is_here(scan, number) for number in group.numbers.tolist()]
    members = np.concatenate([group.numbers for group in groups])
    sections = merging.sections[members]
    size = np.bincount(sections, merging.rows[members])
    able[members] &= (size[sections] <= MOST_ROWS) & (merging.rows[members] >= 0)
    lost = np.zeros(len(size), np.bool_)
    lost[sections[~able[members]]] = True
    apart, rest = [], []
    for group in groups:
        left = lost[merging.sections[group.numbers]]
        apart += [replace(group, numbers=group.numbers[~left])] if not left.all() else []
        rest += [replace(group, numbers=group.numbers[left])] if left.any() else []
    return apart, rest


def merged_files(spark: SparkSession, scan: Scan, groups: Sequence[FileGroup], wanted: Sequence[str]) -> DataFrame:
    """The rows of these files' sections, with the columns that are wanted."""
    merging = scan.merging
    assert merging is not None  # noqa: S101 - for the type checker
    fields = {field.name: field for field in (*scan.fields, *scan.hidden)}
    rule = Rule(
        _schema([fields[name] for name in wanted]),
        _schema([fields[name] for name in merging.keys]),
        tuple((newer.column, fields[newer.column].type, newer.descending) for newer in merging.order),
        merging.kind,
        merging.removing,
        merging.engine == "oldest",
        merging.ignores_removals,
        merging.removal,
    )
    tasks = _tasks(spark, _sections(scan, merging, groups, rule))
    shown = StructType([StructField(name, output_type(fields[name])) for name in wanted])
    work = on_executors(spark, merge_sections, tasks, rule)
    return spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(work, shown)


def _comparable(scan: Scan, merging: Merging) -> bool:
    """Whether keys are the same where Arrow's values are, and the order is Arrow's: of floats it is not."""
    fields = {field.name: field for field in (*scan.fields, *scan.hidden)}
    compared = [fields[name] for name in (*merging.keys, *(newer.column for newer in merging.order))]
    return not any(pt.is_floating(field.type) or field.children for field in compared)


def _is_read_alike(field: ReadField) -> bool:
    """Whether Arrow reads the column of a Parquet file as Spark does, and can give it to Spark as it is."""
    if field.id is not None or field.stored is not None or field.default is not None or field.calendar != "known":
        return False
    if "." in (field.written_as or ""):
        return False  # to Arrow the path of a field inside a column
    return not pt.is_nested(field.type) or all(_is_whole(child) for child in field.children)


def _is_whole(field: ReadField) -> bool:
    """The same inside a column: everything has the table's names, and types that need no cast."""
    cast = pt.is_timestamp(field.type) or field.stored is not None
    named = field.written_as in (None, field.name)
    return named and not cast and all(_is_whole(child) for child in field.children)


def _path(scan: Scan, number: int) -> str | None:
    found = local_path(scan.files["path"][number].as_py())
    return None if found is None else str(found)


def _is_here(scan: Scan, number: int) -> bool:
    path = _path(scan, number)
    return path is not None and Path(path).is_file()


def _schema(fields: Sequence[ReadField]) -> pa.Schema:
    return pa.schema([(field.name, field.type) for field in fields])


def _sections(scan: Scan, merging: Merging, groups: Sequence[FileGroup], rule: Rule) -> list[tuple[int, Section]]:
    """Each section with the bytes of its files."""
    names = {*rule.wanted.names, *rule.head.names}
    files: dict[int, list[tuple[int, VersionFile]]] = {}
    sizes: dict[int, int] = {}
    for group in groups:
        written = {
            field.name: field.written_as
            for field in group.fields
            if field.name in names and field.written_as is not None
        }
        for number in group.numbers.tolist():
            constants = {name: scan.constants[name][number] for name in group.constants if name in names}
            file = VersionFile(_path(scan, number) or "", int(merging.rows[number]), written, constants)
            section = int(merging.sections[number])
            files.setdefault(section, []).append((number, file))
            sizes[section] = sizes.get(section, 0) + scan.files["size"][number].as_py()
    in_order = {section: sorted(members, key=lambda member: member[0]) for section, members in files.items()}
    return [(sizes[section], tuple(file for _, file in members)) for section, members in in_order.items()]


def _tasks(spark: SparkSession, sections: Sequence[tuple[int, Section]]) -> list[list[Section]]:
    """The sections in as many tasks as a shuffle would have, the large ones first and each to the least task."""
    count = min(len(sections), int(checked(spark).conf.get(TASKS) or "200"))
    tasks: list[list[Section]] = [[] for _ in range(count)]
    loads = [(0, number) for number in range(count)]
    for size, section in sorted(sections, key=lambda one: -one[0]):
        load, number = heapq.heappop(loads)
        tasks[number].append(section)
        heapq.heappush(loads, (load + size, number))
    return tasks
