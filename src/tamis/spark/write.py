"""Rows of a DataFrame to new files of a table: brought together by partition, written by the executors themselves.

Each task writes Parquet with pyarrow under names of its own, and gives back what it wrote. Only files whose names
come back are ever committed: a task that ran twice leaves, at worst, files to which nothing refers. Nothing of the
session is changed but, while the rows are written, how large Spark makes the tasks behind a shuffle, and how it
counts what it hands to Python.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Column
from pyspark.sql import functions as f

from tamis.errors import TamisError, UnwritableFileError, UnwritableRowsError
from tamis.formats.edit import NULL_IN_REQUIRED, Cluster, DeleteStage, Marked, NewFile, Stage
from tamis.formats.storage.sinks import BECAUSE, UNWRITTEN
from tamis.predicate.names import backticked
from tamis.spark.fitting import UNFIT, fitted_columns
from tamis.spark.partitioning import partition_value
from tamis.spark.session import checked, with_settings
from tamis.spark.shipping import explained, on_executors
from tamis.spark.telling import Changes, TaskTold, Telling, ToldRows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["mark_rows", "write_changes", "write_rows"]

ADVISORY: Final = "spark.sql.adaptive.advisoryPartitionSizeInBytes"
BATCH_BYTES: Final = "spark.sql.execution.arrow.maxBytesPerBatch"
"""How much Spark hands to Python at a time; by default it also hands over no more than ten thousand rows."""
BATCH_ROWS: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"
MOST_ROWS: Final = 10_000
BY_DEFAULT: Final = frozenset({"64mb", "67108864", "67108864b"})
UNCOUNTED: Final = "2147483647"
"""With it Spark does not add up the bytes of all columns after each row, which takes longer than to hand it over."""
ANSWER: Final = "file binary"
_KEY: Final = "__tamis_key_{}"
"""Names of the columns by which rows are brought together; no table has such."""


def write_rows(rows: DataFrame, stage: Stage, token: str, *, short: bool = False) -> list[NewFile]:
    """Write the rows by the stage, and say which files there are. token is a part of every file's name.

    short says that ten thousand rows surely are no burden to a task, whatever they hold.
    UnwritableRowsError if the rows do not fit the table, by their schema or for a NULL in a required column.
    """
    checked(rows.sparkSession)
    frame = rows.select(*fitted_columns(rows, stage))
    return _collected(_clustered(frame, stage), stage, token, short=short)


def _collected(
    frame: DataFrame, stage: Stage, token: str, apart: ToldRows | None = None, *, short: bool = False
) -> list[Any]:
    """What the tasks that write a frame give back; what they have written is removed if one fails."""
    spark = frame.sparkSession
    settings = {ADVISORY: str(stage.task_bytes)}
    if short and str(spark.conf.get(BATCH_BYTES)).strip().lower() in BY_DEFAULT and _few_at_once(spark):
        settings[BATCH_BYTES] = UNCOUNTED
    # PySpark would read a name with a dot in it as a path: columns are known by where they stand.
    numbered = frame.toDF(*(str(place) for place in range(len(frame.columns))))
    answers = numbered.mapInArrow(on_executors(spark, _write, stage.write, token, apart), ANSWER)
    try:
        with with_settings(spark, settings):
            found = answers.collect()
    except BaseException as error:
        # Tasks that had finished have left files, whose names never came back.
        stage.discard(token)
        if not isinstance(error, Exception):
            raise
        told = _explained(error, stage)
        if told is not error:
            raise told from error
        raise
    return [pickle.loads(row[0]) for row in found]  # noqa: S301 - what our own tasks wrote


def _few_at_once(spark: SparkSession) -> bool:
    """Whether Spark hands over no more rows at a time than by default; 0 is any number."""
    return 0 < int(str(spark.conf.get(BATCH_ROWS))) <= MOST_ROWS


def write_changes(frame: DataFrame, told: Sequence[str], stage: Stage, token: str, *, short: bool = False) -> Changes:
    """Write rows that are fitted to the stage, and have the columns that are told behind its own: see ToldRows.

    All comes of one job: the files, what was done to how many rows, and which rows of the table are gone by that.
    short is as for write_rows.
    """
    checked(frame.sparkSession)
    apart = ToldRows(len(frame.columns) - len(told), tuple(told))
    found = _collected(_clustered(frame, stage), stage, token, apart, short=short)
    files = [one for one in found if isinstance(one, NewFile)]
    return Changes.of(files, [one for one in found if isinstance(one, TaskTold)])


def mark_rows(places: DataFrame, stage: DeleteStage, token: str) -> list[Marked]:
    """Tell the stage which rows are gone: places are the paths of data files, and positions in them.

    All rows of a data file come to one task, in order.
    """
    spark = checked(places.sparkSession)
    path, place = places.columns
    work = on_executors(spark, _write, stage.write, token)
    together = places.repartition(f.col(backticked(path)))
    ordered = together.sortWithinPartitions(f.col(backticked(path)), f.col(backticked(place)))
    try:
        with with_settings(spark, {ADVISORY: str(stage.task_bytes)}):
            found = ordered.mapInArrow(work, ANSWER).collect()
    except BaseException as error:
        stage.discard(token)
        if not isinstance(error, Exception):
            raise
        told = _unwritten(str(error)) or _known(error)
        if told is not error:
            raise told from error
        raise
    return [pickle.loads(row[0]) for row in found]  # noqa: S301 - what our own tasks wrote


def _clustered(frame: DataFrame, stage: Stage) -> DataFrame:
    """The rows with their partition values behind them, those of one partition together and in order."""
    width = len(frame.columns)
    keys = [partition_value(one).alias(_KEY.format(place)) for place, one in enumerate(stage.partition)]
    order = [partition_value(one).alias(_KEY.format(len(keys) + place)) for place, one in enumerate(stage.sort)]
    frame = frame.select("*", *keys, *(value for value, one in zip(order, stage.sort, strict=True)))
    names = frame.columns[width:]
    partition, sort = names[: len(keys)], names[len(keys) :]
    ordering = [f.col(backticked(name)).asc_nulls_first() for name in partition]
    ordering += [_ordered(name, one) for name, one in zip(sort, stage.sort, strict=True)]
    if stage.distribution == "hash":
        frame = frame.hint("rebalance", *(f.col(backticked(name)) for name in partition))
    elif stage.distribution == "range":
        frame = frame.repartitionByRange(*ordering)
    if ordering:
        frame = frame.sortWithinPartitions(*ordering)
    return frame.drop(*sort) if sort else frame


def _ordered(name: str, one: Cluster) -> Column:
    column = f.col(backticked(name))
    if one.descending:
        return column.desc_nulls_last() if one.nulls_last else column.desc_nulls_first()
    return column.asc_nulls_last() if one.nulls_last else column.asc_nulls_first()


def _write(
    batches: Iterable[pa.RecordBatch],
    write: Callable[[Iterable[pa.RecordBatch], str], Iterator[NewFile | Marked]],
    token: str,
    apart: ToldRows | None = None,
) -> Iterator[pa.RecordBatch]:
    """On an executor: the files of one task, a row each; then what it was told of its rows."""
    context = TaskContext.get()
    task, attempt = (0, 0) if context is None else (context.partitionId(), context.taskAttemptId())
    # A task may run twice at once: names differ in what no two of them share.
    name = f"{task:05d}-{attempt}-{token}-{uuid4().hex[:8]}"
    telling = None if apart is None else Telling(apart)
    files = [pickle.dumps(file, protocol=5) for file in write(telling.rows(batches) if telling else batches, name)]
    files += [pickle.dumps(telling.told(), protocol=5)] if telling else []
    yield pa.RecordBatch.from_arrays([pa.array(files, pa.binary())], ["file"])


def _explained(error: Exception, stage: Stage) -> Exception:
    """A task's error as the user should see it."""
    text = str(error)
    if NULL_IN_REQUIRED in text:
        column = text.partition(NULL_IN_REQUIRED)[2].partition("\n")[0].strip().strip("'\"")
        return UnwritableRowsError(
            f"cannot write to {stage.table}: some rows have NULL in column {column!r}, which is required. Nothing "
            "was committed. Filter them out, or give them a value.",
            table=stage.table,
            column=column,
            reason="NULL in a required column",
            nearest=(),
        )
    if UNFIT in text:
        column, _, kind = text.partition(UNFIT)[2].partition("\n")[0].partition(" as ")
        return UnwritableRowsError(
            f"cannot write to {stage.table}: a value does not fit column {column}, which is {kind.strip()}. Nothing "
            "was committed. Make the value smaller, or the column wider.",
            table=stage.table,
            column=column,
            reason="a value that does not fit",
            nearest=(),
        )
    return _unwritten(text) or _known(error)


def _unwritten(text: str) -> UnwritableFileError | None:
    """The error for a file that a store did not take; None if the text tells of none."""
    if UNWRITTEN not in text:
        return None
    path, _, reason = text.partition(UNWRITTEN)[2].partition("\n")[0].partition(BECAUSE)
    return UnwritableFileError(
        f"cannot write {path}: {reason} Nothing was committed. Executors enter the store as their own environment "
        "says; storage='catalog' hands them the access that the table was opened with.",
        path=path,
        reason=reason,
        unknown=False,
    )


def _known(error: Exception) -> Exception:
    found = explained(error)
    return found if isinstance(found, TamisError) else error
