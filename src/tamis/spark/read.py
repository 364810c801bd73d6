"""A plan becomes a DataFrame: the kept files through Spark's own readers, deletes applied, then the row filter.

Law: exactly the live rows that match. Column pruning and filter push-down stay Spark's: what is built here is plain
relations, projections, joins and filters. A file pays for what it has alone: one without deletes joins nothing, and
one of which every row matches is not filtered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa
from pyarrow import types as pt
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from tamis.errors import UnreadableFileError
from tamis.formats import FormatTable
from tamis.formats.errors import shown
from tamis.formats.scan import FileGroup, MetadataColumn, ReadField, Scan
from tamis.predicate.names import backticked
from tamis.sieve.plan import ScanPlan
from tamis.spark import deletes
from tamis.spark.arrow_files import Deleted
from tamis.spark.asked import (
    Reading,
    check_known,
    chosen_columns,
    chosen_metadata,
    compared_columns,
    filters,
    is_foreign,
    is_lost,
    needed_columns,
)
from tamis.spark.calendar import with_known_calendar
from tamis.spark.lookup import PATH, called_late, is_one_value, looked_up_columns, same_sizes
from tamis.spark.meaning import check_meaning
from tamis.spark.merging import SECTION, VERSION_FILE, merged, without_removals
from tamis.spark.merging_tasks import in_files, merged_files
from tamis.spark.padding import as_padded
from tamis.spark.paths import check_distinct
from tamis.spark.pushdown import Veil, may_list_null
from tamis.spark.relation import Keys, Relation, relation, small_frame, united
from tamis.spark.second_way import Files, arrow_frame, why_not_spark
from tamis.spark.session import prepared
from tamis.spark.sharing import read_names, shared, taken
from tamis.spark.shown_types import as_compared, as_numbers, as_shown, chosen_ways, shown_as
from tamis.spark.stored import PLACE, stored_fields, stored_first, with_stored
from tamis.spark.stores import Store, reach_of, storage_of
from tamis.spark.types import (
    can_default,
    has_literal,
    has_naive_time,
    literal,
    output_type,
    read_schema,
    rebuilt,
    unreadable_column,
)
from tamis.spark.zones import check_zone, is_other_zone, session_time, wrong_zone

__all__ = ["read_plan"]

FILE: Final = "file"
_URI: Final = "uri"


def read_plan(  # noqa: PLR0913 - each is a choice of its own, with a default
    plan: ScanPlan,
    source: FormatTable,
    spark: SparkSession,
    *,
    columns: Sequence[str] | None = None,
    metadata_columns: Sequence[str] = (),
    types: Mapping[str, str] | None = None,
    storage: Store | None = None,
    called: dict[str, str] | None = None,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """The rows that match, with the table's columns or those that are named, then the metadata columns.

    types say as what columns are shown that Spark has no type for by default, as SHOWN_AS has them.
    storage="catalog" has Spark's readers enter the table's store with what the table was opened with; if it is not
    given, as the plan was made. If called is given, a column of paths may have what Spark calls the file instead:
    called is told what that means. It costs a row nothing, where the path itself has to be looked up. options are
    further ones of Spark's readers, which must not change the rows.
    """
    check_zone(plan.sieve.predicate, spark)
    check_meaning(plan.sieve.predicate, source.schema, spark)
    prepared(spark)
    scan = source.scan(replace(plan, sieve=replace(plan.sieve, zone=session_time(spark))))
    if plan.sieve.zone is not None and is_other_zone(plan.sieve.zone, spark) and scan.zone_dependent():
        raise wrong_zone("the table has partition values without a time zone", plan.sieve.zone.name, spark)
    ways = chosen_ways(types, plan.sieve.predicate, spark, filters=filters(scan))
    scan = as_numbers(scan) if scan.second_way else scan
    chosen = chosen_columns(scan, columns)
    asked_about = chosen_metadata(metadata_columns, source.metadata_columns, scan)
    scan = with_stored(scan, asked_about)
    needed = needed_columns(scan, chosen, plan, spark, ways)
    sql, named = plan.sieve.predicate.sql, [column.path for column in plan.sieve.predicate.columns]
    asked = frozenset({*chosen, *(path[0] for path in named), *compared_columns(scan)})
    safe = frozenset(() if may_list_null(sql) else named)
    unknown = scan.unknown_sizes()
    check_distinct(scan.files["path"], unknown)
    reach = reach_of(spark, source, storage or storage_of(plan))
    more = (called, tuple((options or {}).items()))
    reading = Reading(reach, scan, chosen, asked_about, needed, sql, asked, safe, ways, unknown, *more)
    frames = [_frame(reading, group) for group in scan.groups if not group.merged]
    frames += _merged_frames(reading, [group for group in scan.groups if group.merged])
    return united(frames) if frames else _empty(reading)


def _frame(reading: Reading, group: FileGroup) -> DataFrame:
    """The matching rows of one group."""
    frame = _rows(reading, group)
    if group.removals and (merging := reading.scan.merging) is not None:
        frame = without_removals(frame, merging.kind, merging.removing)
    return _finished(reading, frame, holds=group.holds)


def _merged_frames(reading: Reading, groups: Sequence[FileGroup]) -> list[DataFrame]:
    """The matching rows of groups of versions: sections that can be merged file by file, and all others by Spark."""
    scan, merging = reading.scan, reading.scan.merging
    if merging is None or not groups:
        return []
    holds = all(group.holds for group in groups)
    wanted = [field.name for field in scan.fields if reading.wants(field)]
    wanted = wanted or [*merging.keys]  # rows without columns could not be counted
    apart, rest = in_files(scan, groups, wanted)
    frames = [merged_files(reading.spark, scan, apart, wanted)] if apart else []
    if rest:
        told = dict.fromkeys([*wanted, *compared_columns(scan), scan.own(SECTION), scan.own(VERSION_FILE)])
        versions = [_rows(reading, group).select(*(f.col(backticked(name)) for name in told)) for group in rest]
        frames.append(merged(scan, united(versions)))
    return [_finished(reading, frame, holds=holds) for frame in frames]


def _finished(reading: Reading, frame: DataFrame, *, holds: bool) -> DataFrame:
    """The rows that match, with the columns that are asked for."""
    fields = reading.scan.fields
    frame = as_padded(as_compared(frame, fields, reading.ways), fields)
    if not holds:
        frame = frame.filter(f.expr(reading.sql))
    frame = as_shown(frame, fields, reading.ways)
    wanted = [*reading.columns, *(column.name for column in reading.metadata_columns)]
    return frame if wanted == frame.columns else frame.select(*(f.col(backticked(name)) for name in wanted))


def _rows(reading: Reading, group: FileGroup) -> DataFrame:
    """The rows of one group that no delete names, with all columns that are offered."""
    scan = reading.scan
    named = set(compared_columns(scan)) if group.equality or group.merged or group.removals else set()
    holds = group.holds and not group.merged  # the versions of rows are filtered together
    wanted = [field for field in group.fields if reading.wants(field, holds=holds) or field.name in named]
    check_known(reading, group)
    why = why_not_spark(reading, group, wanted)
    if why is None:
        frame = _by_spark(reading, group)
    else:
        gone = deletes.in_tasks(scan, group) if group.positions else None
        if gone is not None:
            group = replace(group, positions=False)
        wanted = [field for field in wanted if not is_lost(reading, field, why)]
        frame = _by_arrow(reading, group, wanted, gone or ())
    if group.positions:
        frame = deletes.without_positions(reading.reach, scan, group, frame, reading.unknown)
    if group.equality:
        frame = deletes.without_equal(reading.reach, scan, frame, reading.unknown)
    return stored_first(frame, scan, reading.metadata_columns)


def _by_arrow(
    reading: Reading, group: FileGroup, fields: Sequence[ReadField], deleted: tuple[Deleted, ...]
) -> DataFrame:
    """The rows of the group with these columns, and what is asked about the rows, by tasks of our own."""
    scan, numbers = reading.scan, pa.array(group.numbers)
    files = scan.files.select([PATH, "size"]).take(numbers)
    if reading.called is not None:
        reading.called.update((path, path) for path in files[PATH].to_pylist())
    constants = {
        field.name: scan.constants[field.name].take(numbers) for field in fields if field.name in group.constants
    }
    found = Files(
        group.file_format,
        tuple(files["path"].to_pylist()),
        pa.table(_lookup(reading, group)),
        tuple(files["size"].to_pylist()),
        constants,
        deleted,
    )
    fields = [*fields, *stored_fields(scan, reading.metadata_columns)]
    frame = arrow_frame(reading.reach, found, fields, _position_names(reading, group))
    void = [column.name for column in reading.metadata_columns if _is_void(scan, column)]
    return frame.withColumns({name: f.lit(None).cast(t.StructType()) for name in void}) if void else frame


def _position_names(reading: Reading, group: FileGroup) -> list[str]:
    """Columns that have the places of rows in their files."""
    names = [reading.scan.own(deletes.POSITION)] if group.positions else []
    names += [column.name for column in reading.metadata_columns if column.source is None]
    counted = any(column.counted for column in reading.metadata_columns)
    return [*names, *([reading.scan.own(PLACE)] if counted else [])]


def _by_spark(reading: Reading, group: FileGroup) -> DataFrame:
    """All rows of the group with all columns that are offered, by Spark's own reader."""
    scan = reading.scan
    paths = scan.files["path"].take(pa.array(group.numbers)).to_pylist()
    fields = [field for field in group.fields if field.name in reading.needed and not is_foreign(field, group)]
    if group.file_format == "orc":
        fields = [with_known_calendar(field, group.ordinary) for field in _in_orc(reading, group, fields)]
    fields, constants = _settled(reading, group, fields)
    in_files = [field for field in fields if _in_files(field, group)]
    read, places = shared(in_files, scan.own)
    names = read_names(read, scan.own)
    found = relation(reading.reach, group.file_format, read_schema(read, names), paths, reading.told(group))
    veil = Veil(group.file_format, group.ordinary, reading.safe)
    found = same_sizes(reading.spark, found, reading.unknown)
    looked_up = _lookup(reading, group)
    late = called_late(reading, found, looked_up)
    looked_up = {} if late else looked_up
    keys = found.keys() if looked_up or constants else None
    hidden = [*_hidden_columns(reading, group, found, looked_up, keys), *late]
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
    return frame if keys is None or not looked_up else _with_lookup(reading, keys, frame, looked_up)


def _is_plain(field: ReadField, veil: Veil) -> bool:
    shown_as_read = field.type != pa.uuid() and field.calendar == "known" and field.stored is None
    return not field.children and shown_as_read and not veil.is_whole(field)


def _cast(frame: DataFrame, fields: Sequence[ReadField], names: Sequence[str], veil: Veil) -> DataFrame:
    """Columns of plain types under their own names, in one call to Spark: each column on its own takes several.

    A cast to the type that a column has drops what its schema says of field ids, and then drops out of the plan.
    """
    casts = [
        f"CAST({veil.text(field, name)} AS {_sql_type(field)}) AS {backticked(field.name)}"
        for field, name in zip(fields, names, strict=True)
    ]
    return frame.selectExpr(*casts)


def _sql_type(field: ReadField) -> str:
    """The type's name in SQL. What `timestamp` means there is a setting of the session."""
    kind = output_type(field)
    return "timestamp_ltz" if isinstance(kind, t.TimestampType) else kind.simpleString()


def _in_orc(reading: Reading, group: FileGroup, fields: Sequence[ReadField]) -> list[ReadField]:
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
    reading: Reading, group: FileGroup, fields: Sequence[ReadField]
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
    reading: Reading, keys: Keys | None, fields: Sequence[ReadField], constants: Mapping[str, pa.Array]
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


def _lookup(reading: Reading, group: FileGroup) -> dict[str, pa.Array]:
    """What rows of the group have to know of their file: a value for each of the group's files, by column."""
    scan, taken = reading.scan, pa.array(group.numbers)
    found: dict[str, pa.Array] = {}
    for column in reading.metadata_columns:
        if column.source is not None and not _is_void(scan, column):
            found[column.name] = scan.files[column.source].take(taken).combine_chunks()
    if group.positions:
        found[scan.own(deletes.NUMBER)] = taken
    if group.equality:
        found |= deletes.equality_lookup(scan, group.numbers)
    if group.merged and scan.merging is not None:
        found[scan.own(SECTION)] = pa.array(scan.merging.sections[group.numbers])
        found[scan.own(VERSION_FILE)] = taken
    return found


def _hidden_columns(
    reading: Reading, group: FileGroup, found: Relation, looked_up: Mapping[str, pa.Array], keys: Keys | None
) -> list[Column]:
    hidden = []
    if looked_up and keys is not None:
        hidden.append(keys.file.alias(reading.scan.own(FILE)))
    names = _position_names(reading, group)
    if names and group.file_format != "parquet":
        what = "it has position deletes" if group.positions else "its rows' positions are asked for"
        raise UnreadableFileError(
            f"{shown(found.paths[0])} is an {group.file_format.upper()} file and {what}: Spark knows the place "
            "of a row in Parquet files alone. Rewrite such files as Parquet with the table's own engine.",
            path=shown(found.paths[0]),
            reason="no row positions",
        )
    hidden += [found.position.alias(name) for name in names]
    void = (column for column in reading.metadata_columns if _is_void(reading.scan, column))
    hidden += [f.lit(None).cast(t.StructType()).alias(column.name) for column in void]
    return hidden


def _is_void(scan: Scan, column: MetadataColumn) -> bool:
    """Whether it is a struct without fields, an unpartitioned table's partition: NULL, as connectors show it."""
    type_ = None if column.source is None else scan.files.schema.field(column.source).type
    return type_ is not None and pt.is_struct(type_) and not type_.num_fields


def _with_lookup(reading: Reading, keys: Keys, frame: DataFrame, looked_up: Mapping[str, pa.Array]) -> DataFrame:
    """The rows, with what they have to know of their file. A file that is not found fails: its rows are not lost."""
    file, uri = reading.scan.own(FILE), reading.scan.own(_URI)
    columns = {uri: pa.array(keys.values, pa.string()), **looked_up}
    files = small_frame(reading.spark, pa.table(columns))
    joined = frame.join(f.broadcast(files), f.col(file) == f.col(uri), "left")
    unknown = f.raise_error(f.concat(f.lit("tamis does not know the file of this row: "), f.col(file)))
    known = {name: f.when(f.col(uri).isNull(), unknown).otherwise(f.col(backticked(name))) for name in looked_up}
    return joined.withColumns(known).drop(file, uri)


def _empty(reading: Reading) -> DataFrame:
    """No file is kept: no rows, of the same columns."""
    by_name = {field.name: field for field in reading.scan.fields}
    fields = [t.StructField(name, shown_as(by_name[name], reading.ways)) for name in reading.columns]
    sources = list(dict.fromkeys(one.source for one in reading.metadata_columns if one.source is not None))
    shown = small_frame(reading.spark, reading.scan.files.select(sources)).schema if sources else None
    for column in reading.metadata_columns:
        kind = t.LongType() if shown is None or column.source is None else shown[column.source].dataType
        fields.append(t.StructField(column.name, kind))
    return reading.spark.createDataFrame([], t.StructType(fields))
