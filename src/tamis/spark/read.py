"""A plan becomes a DataFrame: the kept files through Spark's own readers, deletes applied, then the row filter.

Law: exactly the live rows that match. Column pruning and filter push-down stay Spark's: what is built here is plain
relations, projections, joins and filters. A file pays for what it has alone: one without deletes joins nothing, and
one of which every row matches is not filtered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from tamis.errors import BindError, UnreadableColumnError, UnreadableFileError
from tamis.formats import FormatTable
from tamis.formats.errors import shown
from tamis.formats.scan import METADATA_COLUMNS, FileGroup, ReadField, Scan
from tamis.sieve.plan import ScanPlan
from tamis.spark import deletes
from tamis.spark.calendar import with_known_calendar
from tamis.spark.lookup import is_one_value, looked_up_columns, same_sizes
from tamis.spark.meaning import check_meaning
from tamis.spark.paths import quoted
from tamis.spark.pushdown import Veil, may_list_null
from tamis.spark.relation import Keys, Relation, relation
from tamis.spark.session import CASE_SENSITIVE, is_case_sensitive, prepared
from tamis.spark.sharing import read_names, shared, taken
from tamis.spark.types import (
    can_default,
    has_literal,
    has_naive_time,
    literal,
    output_type,
    read_schema,
    readable,
    rebuilt,
    unreadable_column,
)
from tamis.spark.zones import check_zone

__all__ = ["read_plan"]

FILE: Final = "file"
_URI: Final = "uri"


@dataclass(frozen=True, slots=True)
class _Reading:
    """What is asked of a scan."""

    spark: SparkSession
    scan: Scan
    columns: tuple[str, ...]
    metadata_columns: tuple[str, ...]
    needed: frozenset[str]
    """Columns to offer: all but those that nobody wants and Spark cannot read. Which are read is Spark's to find."""
    sql: str
    asked: frozenset[str]
    """Columns that are wanted, filtered by, or compared with deletes."""
    safe: frozenset[tuple[str, ...]]
    """Columns that the condition names, if none of its lists may have a NULL in it."""
    unknown: frozenset[str]
    """Files of which only Spark can tell whether they are those that the metadata describes."""


def read_plan(
    plan: ScanPlan,
    source: FormatTable,
    spark: SparkSession,
    *,
    columns: Sequence[str] | None = None,
    metadata_columns: Sequence[str] = (),
) -> DataFrame:
    """The rows that match, with the table's columns or those that are named, then the metadata columns."""
    check_zone(plan.sieve.predicate, spark)
    check_meaning(plan.sieve.predicate, source.schema, spark)
    prepared(spark)
    scan = source.scan(plan)
    chosen = _chosen(scan, columns)
    _check_metadata_columns(metadata_columns, scan)
    needed = _needed(scan, chosen, plan, spark)
    named = {column.path[0] for column in plan.sieve.predicate.columns}
    compared = {path[0] for part in scan.equality for path in part.columns}
    asked = frozenset({*chosen, *named, *compared})
    predicate = plan.sieve.predicate
    safe = frozenset(() if may_list_null(predicate.sql) else (column.path for column in predicate.columns))
    unknown = scan.unknown_sizes()
    reading = _Reading(spark, scan, chosen, tuple(metadata_columns), needed, predicate.sql, asked, safe, unknown)
    frames = [_frame(reading, group) for group in scan.groups]
    if not frames:
        return _empty(reading)
    return reduce(lambda left, right: left.union(right), frames)


def _frame(reading: _Reading, group: FileGroup) -> DataFrame:
    """The rows of one group."""
    scan = reading.scan
    paths = scan.files["path"].take(pa.array(group.numbers)).to_pylist()
    fields = [field for field in group.fields if field.name in reading.needed]
    if group.file_format == "orc":
        fields = [with_known_calendar(field, group.ordinary) for field in _in_orc(reading, group, fields)]
    fields, constants = _settled(reading, group, fields)
    in_files = [field for field in fields if _in_files(field, group)]
    read, places = shared(in_files, scan.own)
    names = read_names(read, scan.own)
    found = relation(reading.spark, group.file_format, read_schema(read, names), paths, dict(group.options))
    veil = Veil(group.file_format, group.ordinary, reading.safe)
    if not reading.unknown.isdisjoint(paths):
        found = same_sizes(reading.spark, found, scan.files["size"].take(pa.array(group.numbers)).combine_chunks())
    looked_up = _lookup(reading, group)
    keys = found.keys() if looked_up or constants else None
    hidden = _hidden_columns(reading, group, found, looked_up, keys)
    if not hidden and not constants and fields == in_files and all(_is_plain(field, veil) for field in fields):
        frame = _cast(found.frame, fields, names, veil)
    else:
        read_as = {
            field.name: taken(veil.column(read[place], names[place]), read[place], field)
            for field, place in zip(in_files, places, strict=True)
        }
        values = _constant_columns(reading, keys, fields, constants)
        columns = [_valued(field, read_as.get(field.name), values.get(field.name)) for field in fields]
        named = [one.alias(field.name, metadata={}) for one, field in zip(columns, fields, strict=True)]
        frame = found.frame.select(*named, *hidden)
    if looked_up and keys is not None:
        frame = _with_lookup(reading, keys, frame, looked_up)
    if group.positions:
        frame = deletes.without_positions(reading.spark, scan, group, frame)
    if group.equality:
        frame = deletes.without_equal(reading.spark, scan, frame)
    if not group.holds:
        frame = frame.filter(f.expr(reading.sql))
    wanted = (*reading.columns, *reading.metadata_columns)
    if not looked_up and not hidden and wanted == tuple(field.name for field in fields):
        return frame
    return frame.select(*(f.col(quoted(name)) for name in wanted))


def _is_plain(field: ReadField, veil: Veil) -> bool:
    shown_as_read = field.type != pa.uuid() and field.calendar == "known"
    return not field.children and shown_as_read and not veil.is_whole(field)


def _cast(frame: DataFrame, fields: Sequence[ReadField], names: Sequence[str], veil: Veil) -> DataFrame:
    """Columns of plain types under their own names, in one call to Spark: each column on its own takes several.

    A cast to the type that a column has drops what its schema says of field ids, and then drops out of the plan.
    """
    casts = [
        f"CAST({veil.text(field, name)} AS {_sql_type(field)}) AS {quoted(field.name)}"
        for field, name in zip(fields, names, strict=True)
    ]
    return frame.selectExpr(*casts)


def _sql_type(field: ReadField) -> str:
    """The type's name in SQL. What `timestamp` means there is a setting of the session."""
    kind = output_type(field)
    return "timestamp_ltz" if isinstance(kind, t.TimestampType) else kind.simpleString()


def _in_orc(reading: _Reading, group: FileGroup, fields: Sequence[ReadField]) -> list[ReadField]:
    """What Spark reads from ORC files; UnreadableColumnError for a column that is asked for, and that it does not."""
    lost = [field for field in fields if has_naive_time(field) and field.name not in group.constants]
    for field in lost:
        if field.name in reading.asked:
            raise unreadable_column(field.name, field.described, " from ORC files")
    return [field for field in fields if field not in lost]


def _in_files(field: ReadField, group: FileGroup) -> bool:
    if group.file_format == "orc" and has_naive_time(field):
        return False  # a partition's value: no other is left
    return field.id is not None or field.written_as is not None


def _settled(
    reading: _Reading, group: FileGroup, fields: Sequence[ReadField]
) -> tuple[list[ReadField], dict[str, pa.Array]]:
    """The fields, and the values by file of those that files may lack.

    One value for all files is a default, which the reader gives where a file lacks the column, and all is as if the
    files had it: filters are pushed down. It comes before the column's own default, as NULL does.
    """
    settled, constants = [], {}
    for field in fields:
        if field.name not in group.constants:
            settled.append(field)
            continue
        values = reading.scan.constants[field.name].take(pa.array(group.numbers))
        by_reader = field.id is not None or not _in_files(field, group)
        if is_one_value(values) and by_reader and can_default(field, values[0]):
            settled.append(replace(field, default=values[0] if values[0].is_valid else None))
        else:
            settled.append(replace(field, default=None))
            constants[field.name] = values
    return settled, constants


def _constant_columns(
    reading: _Reading, keys: Keys | None, fields: Sequence[ReadField], constants: Mapping[str, pa.Array]
) -> dict[str, Column]:
    """The partition's value of each row's file, by column; as a literal if there is but one."""
    many = {
        name: values for name, values in constants.items() if not (is_one_value(values) and has_literal(values[0]))
    }
    columns = looked_up_columns(reading.spark, keys, pa.table(many)) if many and keys is not None else {}
    for field in fields:
        if field.name in constants and field.name not in columns:
            columns[field.name] = f.expr(literal(constants[field.name][0])).cast(output_type(field))
    return columns


def _valued(field: ReadField, read_as: Column | None, constant: Column | None) -> Column:
    """A column's value: what the file has, else the partition's, else the default.

    A partition that is not NULL has no NULL in it: NULL means that the file lacks the column. So a float keeps its
    sign of zero, and nothing is looked up for files that have the column.
    """
    if constant is None:
        return _absent(field) if read_as is None else read_as
    return constant if read_as is None else f.coalesce(read_as, constant)


def _absent(field: ReadField) -> Column:
    """A column that files found by name do not have."""
    if field.default is None:
        return f.lit(None).cast(output_type(field))
    return rebuilt(f.expr(literal(field.default)), field).cast(output_type(field))


def _lookup(reading: _Reading, group: FileGroup) -> dict[str, pa.Array]:
    """What rows of the group have to know of their file: a value for each of the group's files, by column."""
    scan, taken = reading.scan, pa.array(group.numbers)
    found: dict[str, pa.Array] = {}
    for name, source in (("_file", "path"), ("_spec_id", "spec_id"), ("_partition", "partition")):
        if name in reading.metadata_columns:
            found[name] = scan.files[source].take(taken).combine_chunks()
    if "_partition" in found and not found["_partition"].type.num_fields:
        del found["_partition"]  # an unpartitioned table: the same empty struct everywhere
    if group.positions:
        found[scan.own(deletes.NUMBER)] = taken
    if group.equality:
        found |= deletes.equality_lookup(scan, group.numbers)
    return found


def _hidden_columns(
    reading: _Reading, group: FileGroup, found: Relation, looked_up: Mapping[str, pa.Array], keys: Keys | None
) -> list[Column]:
    hidden = []
    if looked_up and keys is not None:
        hidden.append(keys.file.alias(reading.scan.own(FILE)))
    asked = "_pos" in reading.metadata_columns
    if asked or group.positions:
        if group.file_format != "parquet":
            what = "its rows' positions are asked for" if asked else "it has position deletes"
            raise UnreadableFileError(
                f"{shown(found.paths[0])} is an {group.file_format.upper()} file and {what}: Spark knows the place "
                "of a row in Parquet files alone. Rewrite such files as Parquet with the table's own engine.",
                path=shown(found.paths[0]),
                reason="no row positions",
            )
        hidden.append(found.position.alias(reading.scan.own(deletes.POSITION)))
    if asked:
        hidden.append(found.position.alias("_pos"))
    if "_partition" in reading.metadata_columns and "_partition" not in looked_up:
        hidden.append(f.lit(None).cast(t.StructType()).alias("_partition"))  # as the connector shows no partition
    return hidden


def _with_lookup(reading: _Reading, keys: Keys, frame: DataFrame, looked_up: Mapping[str, pa.Array]) -> DataFrame:
    """The rows, with what they have to know of their file. A file that is not found fails: its rows are not lost."""
    file, uri = reading.scan.own(FILE), reading.scan.own(_URI)
    columns = {uri: pa.array(keys.values, pa.string()), **looked_up}
    files = deletes.small_frame(reading.spark, pa.table(columns))
    joined = frame.join(f.broadcast(files), f.col(file) == f.col(uri), "left")
    unknown = f.raise_error(f.concat(f.lit("tamis does not know the file of this row: "), f.col(file)))
    known = {name: f.when(f.col(uri).isNull(), unknown).otherwise(f.col(quoted(name))) for name in looked_up}
    return joined.withColumns(known).drop(file, uri)


def _chosen(scan: Scan, columns: Sequence[str] | None) -> tuple[str, ...]:
    names = tuple(field.name for field in scan.fields)
    if columns is None:
        return names
    if isinstance(columns, str):
        columns = (columns,)
    found = []
    for name in columns:
        same = [one for one in names if one == name] or [one for one in names if one.lower() == name.lower()]
        if len(same) != 1:
            raise BindError(
                f"the table has no column {name!r}. Its columns: {', '.join(names)}.", column=name, known=names
            )
        found.append(same[0])
    return tuple(found)


def _needed(scan: Scan, chosen: Sequence[str], plan: ScanPlan, spark: SparkSession) -> frozenset[str]:
    """The columns to offer: all but those that nobody asked for and Spark cannot read, or cannot tell from others."""
    filtered = {column.path[0] for column in plan.sieve.predicate.columns} if _filters(scan) else set()
    compared = {path[0] for part in scan.equality for path in part.columns}
    asked = {*chosen, *filtered, *compared}
    for field in (*scan.fields, *scan.hidden):
        if field.name in asked:
            output_type(field)  # UnreadableColumnError, which names it
    sensitive = is_case_sensitive(spark)
    alike = Counter(field.name if sensitive else field.name.lower() for field in scan.fields)
    twice = {field.name for field in scan.fields if alike[field.name if sensitive else field.name.lower()] > 1}
    for name in chosen if twice else ():
        others = [one for one in asked if one != name and one.lower() == name.lower()]
        if name in twice and others:
            raise UnreadableColumnError(
                f"columns {name!r} and {others[0]!r} differ in case alone, which this session ignores. "
                f"Set {CASE_SENSITIVE}=true, or name the columns to read: plan.read(spark, columns=[...]).",
                column=name,
                type="",
            )
    fields = [field for field in (*scan.fields, *scan.hidden) if field.name in asked or field.name not in twice]
    return frozenset(field.name for field in fields if field.name in asked or readable(field))


def _filters(scan: Scan) -> bool:
    return not all(group.holds for group in scan.groups)


def _check_metadata_columns(names: Sequence[str], scan: Scan) -> None:
    own = {field.name.lower() for field in scan.fields}
    for name in names:
        if name not in METADATA_COLUMNS:
            known = ", ".join(METADATA_COLUMNS)
            raise BindError(f"there is no metadata column {name!r}; there are {known}.", column=name, known=known)
        if name in own:
            raise BindError(
                f"the table has a column {name!r} of its own, which hides the metadata column of that name. "
                "Name it in columns to read it.",
                column=name,
                known=METADATA_COLUMNS,
            )


def _empty(reading: _Reading) -> DataFrame:
    """No file is kept: no rows, of the same columns."""
    by_name = {field.name: field for field in reading.scan.fields}
    fields = [t.StructField(name, output_type(by_name[name])) for name in reading.columns]
    partition = (
        deletes.small_frame(reading.spark, reading.scan.files.select(["partition"])).schema["partition"].dataType
    )
    kinds = {"_file": t.StringType(), "_pos": t.LongType(), "_spec_id": t.IntegerType(), "_partition": partition}
    fields += [t.StructField(name, kinds[name]) for name in reading.metadata_columns]
    return reading.spark.createDataFrame([], t.StructType(fields))
