"""A join's keys, collected from the DataFrame that the table will be joined with.

The common build side is small: one job brings all of it to the driver, and its keys are there, without a second job
and without a Python worker, whose start alone takes longer. Of a larger one the key columns are taken, one row more
than keys are allowed. If there are still more rows, they are made distinct, unless those at hand show already that
the keys are too many; then another job asks for their range, and one in Python makes a bloom filter.

Law: every key of the pinned build side is in the filter. A build side of few rows comes to the driver whole, and is
pinned by being there. A larger one is pinned by an eager localCheckpoint: the executors keep its rows, and a job for
which they are lost fails, instead of computing others. (Eager or not takes the same time; but a lazy one leaves rows
that can be computed again, where the first job finds that there are none.) Spark keeps its size estimate, so it is
broadcast as before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, functions
from pyspark.sql.types import DataType, DecimalType, StructField

from tamis.errors import FilterInputError
from tamis.predicate.names import backticked
from tamis.sieve.join.bloom import Bloom
from tamis.sieve.join.bloom_making import bloom_part, merged
from tamis.sieve.join.key_input import ColumnName, column_paths
from tamis.sieve.join.runtime import MAX_KEYS, Collected, RuntimeFilter
from tamis.spark.session import checked, with_fewer_tasks
from tamis.spark.shipping import explained, on_executors

__all__ = ["LEAST_SAVED", "Side", "collect", "key_types", "keys_at", "looked_at", "outlook", "require_columns"]

MAX_BLOOM_KEYS: Final = 4_000_000
"""Most keys to make a bloom filter of: 5 MB from each task. As Spark's own runtime bloom filter has it."""
BLOOM_TASKS: Final = 32
"""Most tasks that make one, so that the driver merges no more than 160 MB."""
MAX_LOCAL_ROWS: Final = 20_000
"""Most rows of a build side to bring to the driver and back: a few megabytes, in less time than a checkpoint."""
MAX_LOCAL_BYTES: Final = 16 << 20
"""Most bytes of them, if every text were as long as MAX_CELL_BYTES: fewer rows where there are many texts."""
MAX_CELL_BYTES: Final = 1024
"""A build side with a longer text or binary value stays where it is."""
LEAST_SAVED: Final = 0.1
"""The part of a table that a filter of very many keys has to save, or its cost is not worth it."""
_WIDE: Final = "_tamis_wide"
BINARY_COLLATION: Final = "UTF8_BINARY"

_TYPES: Final = {
    "void": pa.null(),
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "char": pa.string(),
    "varchar": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "time": pa.time64("ns"),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_LOCAL: Final = frozenset(_TYPES) - {"void", "time", "char", "varchar"} | {"decimal"}
"""Types whose values go to the driver and back as they are."""


def collect(  # noqa: PLR0913 - each is a choice of its own, with a default
    df: DataFrame,
    columns: str | Sequence[str],
    *,
    names: ColumnName | Sequence[ColumnName] | None = None,
    max_keys: int = MAX_KEYS,
    null_safe: bool = False,
    with_bloom: bool = True,
    pin: bool = True,
    side: Side | None = None,
    types: Sequence[pa.DataType] | None = None,
) -> RuntimeFilter:
    """The filter, with the build side that it was collected from: see RuntimeFilter.from_dataframe.

    side is the build side if it was looked at before, and types are those of its key columns if they are known: to
    ask Spark again takes some milliseconds each time.
    """
    start = perf_counter()
    checked(df.sparkSession)
    wanted = [columns] if isinstance(columns, str) else list(columns)
    if names is None:
        names = [tuple(path) for path in column_paths(wanted)]
    paths = column_paths(names)
    _check(df, wanted, paths, max_keys)
    if types is None:
        types = key_types(wanted, require_columns(df, wanted))
    if side is None:
        side = looked_at(df) if pin else Side(df, None, whole=False)
    frame = side.pinned() if pin else df
    found = side.keys(wanted) if side.whole else None
    if found is None or found.num_rows > max_keys:
        keys = _key_columns(frame, wanted, null_safe=null_safe)
        found = _listed(keys, max_keys)
    if found is not None:
        listed = RuntimeFilter.of(paths, _plain(found, types, wanted), null_safe=null_safe)
        runtime, count = listed, listed.keys or 0
    else:
        runtime, count = _summary(keys, paths, types, wanted, null_safe=null_safe, with_bloom=with_bloom)
    collected = Collected(count, found is not None, perf_counter() - start)
    return replace(runtime, collected=collected, dataframe=frame)


@dataclass(frozen=True, slots=True)
class Side:
    """A build side, looked at: its first rows, and whether they are all of it."""

    frame: DataFrame
    rows: pa.Table | None
    """The first rows; None if they are of types that do not come to the driver as they are."""
    whole: bool

    def pinned(self) -> DataFrame:
        """The same rows, which cannot change any more, under the same names, aliases and references."""
        if self.whole and self.rows is not None:
            local = self.frame.sparkSession.createDataFrame(self.rows, self.frame.schema)
            # A union has the columns of its first side: none of its rows, but what `df["k"]` refers to.
            return self.frame.where(functions.lit(False)).union(local)  # noqa: FBT003 - a literal of SQL
        return self.frame.localCheckpoint(eager=True)

    def keys(self, columns: Sequence[str]) -> pa.Table | None:
        """The key columns of the first rows; None if some are not columns of their own."""
        paths = column_paths(columns)
        if self.rows is None or any(len(path) > 1 or path[0] not in self.rows.column_names for path in paths):
            return None
        taken = [self.rows.column(path[0]) for path in paths]
        return pa.Table.from_arrays(taken, [f"k{place}" for place in range(len(taken))])


def looked_at(df: DataFrame) -> Side:
    """The first rows of a build side, if they are of plain types: a small one is all there, in one job."""
    fields = df.schema.fields
    texts = _texts(fields)
    if texts is None:
        return Side(df, None, whole=False)
    most = max(min(MAX_LOCAL_ROWS, MAX_LOCAL_BYTES // (MAX_CELL_BYTES * len(texts) + 16 * len(fields) + 1)), 1)
    with with_fewer_tasks(df.sparkSession):
        rows = _cut(df.limit(most + 1), [field.name for field in fields], texts)
    if pc.any(rows.column(_WIDE)).as_py():
        return Side(df, None, whole=False)
    return Side(df, rows.drop_columns([_WIDE]), whole=rows.num_rows <= most)


def keys_at(df: DataFrame, columns: Sequence[str], most: int) -> Side | None:
    """These columns of all rows, in one job, if they are that few; None if not, or if some value is a long one.

    What is told of the side is true of all columns: that all are of plain types, and none has a long value.
    """
    fields = df.schema.fields
    texts = _texts(fields)
    if texts is None:
        return None
    size = sum(MAX_CELL_BYTES if name in texts else 16 for name in columns)
    most = min(most, MAX_LOCAL_BYTES // (size + 1))
    rows = _cut(df.limit(most + 1), columns, texts)
    if rows.num_rows > most or pc.any(rows.column(_WIDE)).as_py():
        return None
    return Side(df, rows.drop_columns([_WIDE]), whole=True)


def _texts(fields: Sequence[StructField]) -> set[str] | None:
    """The columns that have values of any length; None if some are not of plain types, or of one name."""
    plain = all(field.dataType.typeName().partition("(")[0] in _LOCAL for field in fields)
    if not plain or len({field.name for field in fields}) < len(fields):
        return None
    return {field.name for field in fields if field.dataType.typeName() in {"string", "binary"}}


def _cut(df: DataFrame, names: Sequence[str], texts: Collection[str]) -> pa.Table:
    """The rows without long values, and whether each had one: so much cannot come to the driver by accident.

    One expression for all: each that Spark is given takes several messages to it.
    """
    long = {name: f"coalesce(octet_length({backticked(name)}) > {MAX_CELL_BYTES}, false)" for name in sorted(texts)}
    wide, columns = ["false", *long.values()], []
    for name in names:
        column = backticked(name)
        columns.append(f"if({long[name]}, null, {column}) as {column}" if name in long else column)
    rows = df.selectExpr(f"struct({', '.join((*columns, f'{_any(wide)} as {_WIDE}'))}) as row").toArrow()
    return pa.Table.from_struct_array(rows.column("row"))


def _any(conditions: Sequence[str]) -> str:
    return f"({' or '.join(conditions)})"


def outlook(
    side: Side,
    columns: Sequence[str],
    types: Sequence[pa.DataType],
    names: Sequence[ColumnName],
    max_keys: int,
    saved: Callable[[RuntimeFilter], float],
) -> tuple[float, str]:
    """How large a part of a table the keys of a large build side may save, and about how many they are, in words.

    Found out before the side is pinned, from rows that may still change: to decide by, not to prune by. The keys of
    the first rows save at least as much as those of all rows: often that is enough to know.
    """
    head = side.keys(columns)
    paths = column_paths(names)
    repeated = head is None or 2 * head.group_by(head.column_names).aggregate([]).num_rows < head.num_rows
    if head is not None and not repeated:
        share = saved(RuntimeFilter.of(paths, _plain(head, types, columns)))
        if share < LEAST_SAVED:
            return share, f"more than {head.num_rows - 1:,}"
    keys = _key_columns(side.frame, columns, null_safe=False)
    every = functions.col(keys.columns[0]) if len(keys.columns) == 1 else functions.struct(*keys.columns)
    counted = functions.approx_count_distinct(every) if repeated else functions.count("*")
    found = keys.agg(*_ends(keys.columns), counted.alias("keys")).toArrow()
    count = int(found.column("keys")[0].as_py())
    if count <= max_keys:
        return 1.0, f"about {count:,}"
    return saved(
        RuntimeFilter.of_ranges(paths, _ranges(found.drop_columns(["keys"]), types, columns))
    ), f"about {count:,}"


def require_columns(df: DataFrame, columns: Sequence[str]) -> list[StructField]:
    """What these columns are. FilterInputError if the DataFrame lacks one of them, or has several of the name."""
    try:
        return df.select(*columns).schema.fields
    except AnalysisException as error:
        raise FilterInputError(
            f"the DataFrame has no such key columns, or not just one of each: {', '.join(columns)}. "
            f"It has {', '.join(df.columns)}.",
            columns=tuple(columns),
            reason="not just one such column",
        ) from error


def key_types(columns: Sequence[str], fields: Sequence[StructField]) -> list[pa.DataType]:
    """The types of key columns as Arrow has them; FilterInputError for one that has no keys."""
    return [_arrow_type(name, field.dataType) for name, field in zip(columns, fields, strict=True)]


def _check(df: DataFrame, columns: Sequence[str], paths: Sequence[tuple[str, ...]], max_keys: int) -> None:
    if len(columns) != len(paths):
        raise FilterInputError(
            f"{len(columns)} key columns ({', '.join(columns)}) are to be compared with {len(paths)} columns of the "
            f"table ({', '.join('.'.join(path) for path in paths)}). Name as many of each.",
            columns=tuple(columns),
            reason=f"{len(columns)} for {len(paths)} columns of the table",
        )
    if max_keys < 0:
        raise FilterInputError(
            f"max_keys is {max_keys}: give 0 or more.", columns=tuple(columns), reason="max_keys below 0"
        )
    if df.isStreaming:
        raise FilterInputError(
            "a stream has no last key: join with a DataFrame that is not a stream.",
            columns=tuple(columns),
            reason="a stream",
        )


def _arrow_type(name: str, type_: DataType) -> pa.DataType:
    kind = type_.typeName()
    collation = getattr(type_, "collation", BINARY_COLLATION)
    if collation != BINARY_COLLATION:
        raise FilterInputError(
            f"the keys in {name} are compared by the collation {collation}, by which unequal texts may match: they "
            f"cannot prune. Leave {name} out, or join by `{name} collate {BINARY_COLLATION}`.",
            columns=(name,),
            reason=f"collation {collation}",
        )
    if isinstance(type_, DecimalType):
        return pa.decimal128(type_.precision, type_.scale)
    found = _TYPES.get(kind.partition("(")[0])
    if found is None:
        raise FilterInputError(
            f"join keys of type {type_.simpleString()} have no order, and cannot prune. Leave {name} out.",
            columns=(name,),
            reason=f"no order of {type_.simpleString()}",
        )
    return found


def _key_columns(df: DataFrame, columns: Sequence[str], *, null_safe: bool) -> DataFrame:
    keys = df.select(*(functions.col(name).alias(f"k{place}") for place, name in enumerate(columns)))
    for name in [] if null_safe else keys.columns:
        keys = keys.where(functions.col(name).isNotNull())  # not dropna, which takes NaN for missing
    return keys


def _listed(keys: DataFrame, max_keys: int) -> pa.Table | None:
    """Every key, perhaps repeated; None if there are more than max_keys."""
    found = keys.limit(max_keys + 1).toArrow()
    if found.num_rows <= max_keys:
        return found
    if found.group_by(found.column_names).aggregate([]).num_rows <= max_keys:
        found = keys.distinct().limit(max_keys + 1).toArrow()
    return found if found.num_rows <= max_keys else None


def _summary(
    keys: DataFrame,
    paths: tuple[tuple[str, ...], ...],
    types: Sequence[pa.DataType],
    columns: Sequence[str],
    *,
    null_safe: bool,
    with_bloom: bool,
) -> tuple[RuntimeFilter, int]:
    """A range for each column, for a single one a bloom filter too, and about how many keys there are."""
    names = keys.columns
    every = functions.col(names[0]) if len(names) == 1 else functions.struct(*names)
    found = keys.agg(*_ends(names), functions.approx_count_distinct(every).alias("keys")).toArrow()
    count = int(found.column("keys")[0].as_py())
    ranges = _ranges(found.drop_columns(["keys"]), types, columns)
    if not with_bloom or len(names) > 1 or count > MAX_BLOOM_KEYS:
        return RuntimeFilter.of_ranges(paths, ranges, null_safe=null_safe), count
    bloom = _bloom(keys, types[0], count)
    low, high = ranges[0]
    return RuntimeFilter.of_bloom(paths[0], bloom, low, high, type=types[0], null_safe=null_safe), count


def _ends(names: Sequence[str]) -> list[Column]:
    return [end(name).alias(f"{end.__name__}_{name}") for name in names for end in (functions.min, functions.max)]


def _ranges(
    ends: pa.Table, types: Sequence[pa.DataType], columns: Sequence[str]
) -> list[tuple[pa.Scalar, pa.Scalar]]:
    """The least and the greatest key of each column, from a row with all of them."""
    plain = _plain(ends, [type_ for type_ in types for _ in "<>"], [name for name in columns for _ in "<>"])
    values = [column[0] for column in plain.columns]
    return list(zip(values[::2], values[1::2], strict=True))


def _bloom(keys: DataFrame, type_: pa.DataType, count: int) -> Bloom:
    try:
        work = on_executors(keys.sparkSession, bloom_part, type_, count)
        parts = keys.coalesce(BLOOM_TASKS).mapInArrow(work, "bloom binary").toArrow()
    except Exception as error:
        found = explained(error)
        if found is not error:
            raise found from error
        raise
    return merged(parts.column("bloom").to_pylist(), type_, count)


def _plain(found: pa.Table, types: Sequence[pa.DataType], columns: Sequence[str]) -> pa.Table:
    """The same values in types without a session's time zone; texts that are none are refused."""
    arrays = []
    for array, type_, name in zip(found.columns, types, columns, strict=True):
        if type_ == pa.string():
            _check_text(array, name)
        arrays.append(array.cast(type_))
    return pa.Table.from_arrays(arrays, names=found.column_names)


def _check_text(array: pa.ChunkedArray, name: str) -> None:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        raise FilterInputError(
            f"the keys in {name} are not all UTF-8 text, and cannot prune: {error}. Join by cast({name} as binary), "
            "or repair them with validate_utf8.",
            columns=(name,),
            reason="not all UTF-8",
        ) from error
