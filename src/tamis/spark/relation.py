"""Files to a DataFrame, through Spark's own readers: one relation for a group of files that are read alike.

Spark lists every file before it reads. By default that is a job with a task for each, half a minute for ten thousand;
here the driver lists what is near, and a job with few tasks what is far.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql.types import StructType

from tamis.errors import MissingFileError, UnreadableFileError
from tamis.formats.errors import advice, shown
from tamis.formats.scan import FileFormat
from tamis.spark.paths import as_shown, check_visible, pattern, plain
from tamis.spark.session import check_reader, is_remote, with_settings

__all__ = ["STRICT", "Keys", "Relation", "listing", "relation", "whole_files"]

THRESHOLD: Final = "spark.sql.sources.parallelPartitionDiscovery.threshold"
PARALLELISM: Final = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
DRIVER_LISTS: Final = str(1 << 30)
NEAR: Final = ("/", "file:", "hdfs:", "viewfs:")
"""File systems that answer in well under a millisecond: the driver lists them, one by one."""
FAR_TASKS: Final = "64"
"""Tasks that list an object store's files. Each file is a request of some ten milliseconds."""
STRICT: Final = {
    "ignoreMissingFiles": "false",  # a missing file is lost rows
    "ignoreCorruptFiles": "false",  # and so is a corrupt one
    "recursiveFileLookup": "true",  # names like a=1 in paths are no columns: the metadata has the values
}
OPTIONS: Final = {
    **STRICT,
    "datetimeRebaseMode": "CORRECTED",  # the formats have one calendar, and old dates mean what they say
    "int96RebaseMode": "CORRECTED",
}
AVRO: Final = "org.apache.spark:spark-avro_2.13"
_LOCAL: Final = re.compile("^file:/+")
"""Spark lists local files as file:///x, and shows them to their rows as file:/x."""
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9._=-]+")
_NOT_FOUND: Final = re.compile(r"Path does not exist: (\S.*?)\. SQLSTATE")


@dataclass(frozen=True, slots=True)
class Keys:
    """What tells the file of a row, and what that is for each file."""

    file: Column
    values: list[str]


@dataclass(frozen=True, slots=True)
class Relation:
    """A DataFrame over files, with the way back to them."""

    frame: DataFrame
    paths: tuple[str, ...]

    @property
    def file(self) -> Column:
        """The file of each row, as Spark shows it."""
        return self.frame.metadataColumn("_metadata").getField("file_path")

    @property
    def position(self) -> Column:
        """The place of each row in its file. Spark knows it for Parquet alone."""
        return self.frame.metadataColumn("_metadata").getField("row_index")

    def keys(self) -> Keys:
        """Names of files where they tell one from another; else their addresses, as Spark lists them.

        Spark shows names with escapes: an odd one is not taken.
        """
        names = [path.rpartition("/")[2] for path in self.paths]
        if len(set(names)) == len(names) and all(map(_PLAIN_NAME.fullmatch, names)):
            return Keys(self.frame.metadataColumn("_metadata").getField("file_name"), names)
        return self.addresses()

    def addresses(self) -> Keys:
        """The addresses of all files; UnreadableFileError if Spark does not list one, but what is in it."""
        uris = self.uris()
        return Keys(self.file, [uris[path] for path in self.paths])

    def uris(self) -> dict[str, str]:
        """Each path as Spark shows it."""
        listed = self.frame.inputFiles()
        return as_shown(self.paths, [_LOCAL.sub("file:/", uri) for uri in listed])


def relation(
    spark: SparkSession,
    file_format: FileFormat,
    schema: StructType,
    paths: Sequence[str],
    options: Mapping[str, str] | None = None,
) -> Relation:
    """All rows of the files, under that schema. MissingFileError if one is gone."""
    check_visible(paths)
    check_reader(spark, file_format)
    reader = spark.read.schema(schema).options(**OPTIONS, **(options or {})).format(file_format)
    return Relation(_listed(spark, reader, paths, file_format), tuple(paths))


def whole_files(spark: SparkSession, paths: Sequence[str]) -> Relation:
    """The path and the content of each file, a row each. MissingFileError if one is gone."""
    check_visible(paths)
    reader = spark.read.format("binaryFile").options(**STRICT)
    return Relation(_listed(spark, reader, paths, "binaryFile").select("path", "content"), tuple(paths))


def listing(paths: Iterable[str]) -> dict[str, str]:
    """The settings under which Spark lists these files fast."""
    near = all(path.startswith(NEAR) for path in paths)
    return {THRESHOLD: DRIVER_LISTS} if near else {THRESHOLD: "32", PARALLELISM: FAR_TASKS}


def _listed(spark: SparkSession, reader: DataFrameReader, paths: Sequence[str], file_format: str) -> DataFrame:
    try:
        with with_settings(spark, listing(paths)):
            frame = reader.load([pattern(path) for path in paths])
            if is_remote(spark):
                frame.isStreaming  # noqa: B018 - a remote session lists only when it is asked something
    except AnalysisException as error:
        raise _explained(error, file_format) from error
    return frame


def _explained(error: Exception, file_format: str) -> Exception:
    text = str(error)
    missing = _NOT_FOUND.search(text)
    if missing or "PATH_NOT_FOUND" in text:
        path = shown(plain(missing[1])) if missing else text
        hidden = _hidden(path)
        if hidden is not None:
            reason = hidden.strerror or str(hidden)
            return UnreadableFileError(
                f"Spark cannot reach a file that the table lists, {path}: {reason}. {advice(hidden)}",
                path=path,
                reason=reason,
            )
        return MissingFileError(
            f"the table lists a file that is not there: {path}. It was removed by something other than the table's "
            "writers; restore it, or read a snapshot that does not need it.",
            path=path,
        )
    if file_format == "avro" and "avro" in text.lower():
        return UnreadableFileError(
            f"the table has Avro data files, and this session has no Avro reader: add {AVRO} of its own Spark "
            "version to spark.jars.packages.",
            path="",
            reason="no Avro reader",
        )
    return error


def _hidden(path: str) -> OSError | None:
    """Why a local file is not seen that may be there: Java calls absent whatever it cannot look up."""
    if not path.startswith(("/", "file:")):
        return None
    try:
        Path(_LOCAL.sub("/", path)).stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return error
    return None
