"""Files to a DataFrame, through Spark's own readers: one relation for a group of files that are read alike.

Spark lists every file before it reads. By default that is a job with a task for each, half a minute for ten thousand;
here the driver lists what is near, and a job with few tasks what is far.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql.types import StructType

from tamis.errors import MissingFileError, UnreadableFileError
from tamis.formats.errors import advice, shown
from tamis.formats.scan import FileFormat
from tamis.spark.paths import as_shown, check_visible, pattern, plain
from tamis.spark.session import check_reader, is_remote, with_settings
from tamis.spark.stores import Reach
from tamis.spark.types import plain_schema

__all__ = [
    "NO_READER",
    "STRICT",
    "Keys",
    "Relation",
    "listing_settings",
    "plain_names",
    "relation",
    "small_frame",
    "united",
    "whole_files",
]

THRESHOLD: Final = "spark.sql.sources.parallelPartitionDiscovery.threshold"
PARALLELISM: Final = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
DRIVER_LISTS: Final = str(1 << 30)
NEAR: Final = ("/", "file:", "hdfs:", "viewfs:")
"""File systems that answer in well under a millisecond: the driver lists them, one by one."""
FAR_TASKS: Final = "64"
"""Tasks that list an object store's files. Each file is a request of some ten milliseconds."""
UNKEPT: Final = {"spark.sql.hive.filesourcePartitionFileCacheSize": "0"}
"""What is listed is not kept for others: nobody asks for it, and measuring it takes 4 to 15 % of the listing."""
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
NO_READER: Final = "no Avro reader"
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
    """As the metadata has them."""
    addresses: tuple[str, ...]
    """As Spark was asked for them."""

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
        names = plain_names(self.paths)
        if names is not None:
            return Keys(self.frame.metadataColumn("_metadata").getField("file_name"), names)
        return self.by_address()

    def by_address(self) -> Keys:
        """The addresses of all files; UnreadableFileError if Spark does not list one, but what is in it."""
        uris = self.uris()
        return Keys(self.file, [uris[path] for path in self.paths])

    def uris(self) -> dict[str, str]:
        """Each path as Spark shows it."""
        listed = self.frame.inputFiles()
        shown_as = as_shown(self.addresses, [_LOCAL.sub("file:/", uri) for uri in listed])
        return {path: shown_as[address] for path, address in zip(self.paths, self.addresses, strict=True)}


def plain_names(paths: Sequence[str]) -> list[str] | None:
    """The names of files, which Spark shows as they are; None if they do not tell one file from another."""
    names = [path.rpartition("/")[2] for path in paths]
    return names if len(set(names)) == len(names) and all(map(_PLAIN_NAME.fullmatch, names)) else None


def small_frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    """A DataFrame of a few values that are known here."""
    return spark.createDataFrame(table, plain_schema(table.schema))


def united(frames: Sequence[DataFrame]) -> DataFrame:
    """All rows of the frames, which have the same columns in the same order; at least one frame."""
    return reduce(lambda left, right: left.union(right), frames)


def relation(
    reach: Reach,
    file_format: FileFormat,
    schema: StructType,
    paths: Sequence[str],
    options: Mapping[str, str] | None = None,
) -> Relation:
    """All rows of the files, under that schema. MissingFileError if one is gone."""
    check_visible(paths)
    check_reader(reach.spark, file_format)
    reader = reach.spark.read.schema(schema).options(**OPTIONS, **(options or {})).format(file_format)
    return _listed(reach, reader, paths, file_format)


def whole_files(reach: Reach, paths: Sequence[str]) -> Relation:
    """The files with their content, a row each. MissingFileError if one is gone."""
    check_visible(paths)
    return _listed(reach, reach.spark.read.format("binaryFile").options(**STRICT), paths, "binaryFile")


def listing_settings(paths: Iterable[str]) -> dict[str, str]:
    """The settings under which Spark lists these files fast."""
    near = all(path.startswith(NEAR) for path in paths)
    return UNKEPT | ({THRESHOLD: DRIVER_LISTS} if near else {THRESHOLD: "32", PARALLELISM: FAR_TASKS})


def _listed(reach: Reach, reader: DataFrameReader, paths: Sequence[str], file_format: str) -> Relation:
    """What the reader makes of the files, by the first schemes that the session has for them."""
    reader = reader.options(**reach.options(paths))
    instead: dict[str, str] = {}
    while True:
        addresses = reach.addresses(paths, instead)
        try:
            frame = _loaded(reach.spark, reader, addresses)
        except Exception as error:
            # Java's errors come as py4j's, as PySpark's, and as those of Spark Connect: they share no root.
            if reach.other(error, instead):
                continue
            found = reach.explained(error, paths) or _explained(error, file_format, paths, addresses)
            if found is not error:  # none is its own cause: chains of causes have an end
                raise found from error
            raise
        reach.served(instead)
        return Relation(frame, tuple(paths), tuple(addresses))


def _loaded(spark: SparkSession, reader: DataFrameReader, addresses: Sequence[str]) -> DataFrame:
    with with_settings(spark, listing_settings(addresses)):
        frame = reader.load([pattern(address) for address in addresses])
        if is_remote(spark):
            frame.isStreaming  # noqa: B018 - a remote session lists only when it is asked something
    return frame


def _explained(
    error: Exception, file_format: str, paths: Sequence[str], addresses: Sequence[str] | None = None
) -> Exception:
    if not isinstance(error, AnalysisException):
        return error
    text = str(error)
    missing = _NOT_FOUND.search(text)
    if missing or "PATH_NOT_FOUND" in text:
        asked = plain(missing[1]) if missing else text
        path = shown(dict(zip(addresses or (), paths, strict=False)).get(asked, asked))
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
            "writers; restore it, or read a snapshot or version that does not need it.",
            path=path,
        )
    if file_format == "avro" and "avro" in text.lower():
        return UnreadableFileError(
            f"the table has Avro data files, and this session has no Avro reader: add {AVRO} of its own Spark "
            "version to spark.jars.packages.",
            path=shown(paths[0]),
            reason=NO_READER,
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
