"""Planning on the executors, for tables with more metadata than one process should hold.

Spark reads the metadata files and shuffles them into the units in which one process would decode them; each unit is
decoded and judged where it comes to lie, and only kept files come back, in the table's order. Law: the plan's files
and counts are those of the local plan. Who sends what:

    driver      Listing.units ─▶ (unit, place, location, about) ──┐ broadcast       the sieve and the reader, pickled
    executors   binaryFile: (location, content) ──────────────────┴▶ join ─▶ shuffle by unit ─▶ judge_units
    driver      Part of each unit: kept files and a tally ◀──────────────────────────────────────┘
                merge (pure) ─▶ the plan ─▶ its deletes, as of a plan that was made here
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Final, Literal

import pyarrow as pa
from pyspark.errors import PythonException
from pyspark.sql import functions

from tamis.errors import ExecutorError, MissingFileError, SparkStorageError, TamisError, UnreadableFileError
from tamis.formats.listing import Listing, Progress, Reader, Unit, finished, sift_here
from tamis.sieve.merging import Part, merge
from tamis.sieve.plan import ScanPlan
from tamis.sieve.sieve import Sieve
from tamis.spark.judging import ANSWER, judge_units
from tamis.spark.paths import check_visible
from tamis.spark.relation import listing_settings, whole_files
from tamis.spark.session import checked, with_settings
from tamis.spark.shipping import explained, on_executors
from tamis.spark.stores import Reach

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["MOST_LOCAL_BYTES", "MOST_LOCAL_FILES", "sift_with"]

MOST_LOCAL_FILES: Final = 4_000_000
"""With more live files in the manifests that are left, planning goes to the executors. Memory sets the limit: a file,
decoded, takes about 300 bytes and its verdict as much again, so that this many take two gigabytes. They also take ten
seconds or more of a processor, against the few seconds in which Spark starts its Python workers."""
MOST_LOCAL_BYTES: Final = 1 << 30
"""The same in bytes of manifests, for files with many columns and for manifests that do not count their files."""
WAVE_BYTES: Final = 2 << 30
"""Metadata to judge in one job. Between jobs progress is told, and an error ends the planning."""
WAVE_LOCATIONS: Final = 50_000
"""Most metadata files of one job: the driver has to list them all."""
ROWS: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"
FEW_ROWS: Final = "8"
"""Manifests that a Python worker gets at once: each has megabytes, and Spark's own ten thousand would fill it."""
TASKS: Final = "spark.sql.shuffle.partitions"
NOTE: Final = "planned on the executors: verdicts lists the files that are kept, and counts alone tell of the others"

Executors = Literal["auto", "always", "never"]


def sift_with(
    reach: Reach,
    name: str,
    listing: Listing,
    sieve: Sieve,
    progress: Progress | None,
    executors: Executors,
) -> ScanPlan:
    """The plan of a table's listing, judged here or, as executors says, by Spark.

    "auto" goes to the executors above MOST_LOCAL_FILES or MOST_LOCAL_BYTES, and stays here with a note if Spark
    cannot read the metadata; "always" goes there, or is an ExecutorError that says why not.
    """
    checked(reach.spark)
    large = listing.files > MOST_LOCAL_FILES or listing.size > MOST_LOCAL_BYTES
    if executors == "never" or (executors == "auto" and not large):
        return sift_here(listing, sieve, progress)
    try:
        return _elsewhere(reach, listing, sieve, progress)
    except _NotReadable as error:
        fault = error
    # If a file is missing or damaged, the local plan says so as it always does.
    plan = sift_here(listing, sieve, progress)
    if executors == "always":
        if isinstance(fault.__cause__, SparkStorageError):
            raise fault.__cause__
        raise ExecutorError(
            f"cannot plan {name} on the executors: {fault}. Plan with executors='auto' to plan here.",
            needs="readable metadata files",
            reason=str(fault),
        ) from fault
    return _noted(plan, f"planned by this process alone: {fault}")


class _NotReadable(Exception):
    """Spark cannot be asked to read the metadata; this process perhaps can."""


def _elsewhere(reach: Reach, listing: Listing, sieve: Sieve, progress: Progress | None) -> ScanPlan:
    if not listing.apart:
        raise _NotReadable("this format is always planned by one process")
    _check(listing.units)
    start = perf_counter()
    parts: list[Part] = []
    done = 0
    reader = listing.reader
    for wave in _waves(listing.units) if reader is not None else ():
        assert reader is not None  # noqa: S101 - for the type checker
        for part in _judged(reach, sieve, reader, wave):
            parts.append(part)
            done += sum(spec.all.files for spec in part.tally.specs.values())
            if progress is not None:
                progress(done, max(done, listing.files))
    if progress is not None and parts and done < listing.files:
        progress(done, done)
    plan = merge(sieve, parts, listing.unread, listing.seconds)
    plan = replace(plan, stats=replace(plan.stats, read_seconds=perf_counter() - start))
    return finished(listing, _noted(plan, NOTE))


def _check(units: Sequence[Unit]) -> None:
    locations = [location for unit in units for location in unit.locations]
    try:
        check_visible(locations)
    except UnreadableFileError as error:
        raise _NotReadable(f"Spark ignores files with such a name: {error.facts['path']}") from error
    if len(set(locations)) < len(locations):
        raise _NotReadable("the table lists a metadata file twice")


def _waves(units: Sequence[Unit]) -> Iterator[list[tuple[int, Unit]]]:
    """The units with their numbers, in shares of one job each."""
    wave: list[tuple[int, Unit]] = []
    size = locations = 0
    for number, unit in enumerate(units):
        if wave and (size + unit.size > WAVE_BYTES or locations + len(unit.locations) > WAVE_LOCATIONS):
            yield wave
            wave, size, locations = [], 0, 0
        wave.append((number, unit))
        size, locations = size + unit.size, locations + len(unit.locations)
    if wave:
        yield wave


def _judged(reach: Reach, sieve: Sieve, reader: Reader, wave: Sequence[tuple[int, Unit]]) -> Iterator[Part]:
    """The answers for a share of the units, in order; the first unit's error if there are any."""
    spark = reach.spark
    work = on_executors(spark, judge_units, sieve, reader)
    listed = listing_settings(location for _, unit in wave for location in unit.locations)
    try:
        # A remote session lists again in every job, so the settings have to hold until the end.
        with with_settings(spark, {**listed, ROWS: FEW_ROWS}):
            found = _grouped(reach, wave).mapInArrow(work, ANSWER).toArrow()
    except Exception as error:
        told = _told(error)
        if told is not error:
            raise told from error
        raise
    answers = dict(zip(found["unit"].to_pylist(), found["answer"], strict=True))
    for number, _ in wave:
        if number not in answers:
            raise _NotReadable(f"Spark returned {len(answers)} of {len(wave)} units of metadata")
        answer = pickle.loads(answers[number].as_py())  # noqa: S301 - made by our own work
        if isinstance(answer, TamisError):
            raise answer
        yield answer


def _grouped(reach: Reach, wave: Sequence[tuple[int, Unit]]) -> DataFrame:
    """The files' content, those of one unit together and in order."""
    locations = [location for _, unit in wave for location in unit.locations]
    spark, files = reach.spark, whole_files(reach, locations)
    listed = spark.createDataFrame(_listed(wave, files.uris()))
    content = files.frame.select(files.file.alias("uri"), "content")
    tasks = min(len(wave), int(spark.conf.get(TASKS) or "200"))
    joined = content.join(functions.broadcast(listed), "uri").drop("uri")
    return joined.repartition(tasks, "unit").sortWithinPartitions("unit", "place")


def _listed(wave: Sequence[tuple[int, Unit]], uris: Mapping[str, str]) -> pa.Table:
    """A row for each file: its unit, its place there, its location; with the first, what its unit says of itself."""
    rows = [
        (uris[location], number, place, location, None if place else pickle.dumps(unit.about, protocol=5))
        for number, unit in wave
        for place, location in enumerate(unit.locations)
    ]
    types = {
        "uri": pa.string(),
        "unit": pa.int32(),
        "place": pa.int32(),
        "location": pa.string(),
        "about": pa.binary(),
    }
    columns = zip(*rows, strict=True)
    return pa.table({name: pa.array(one, type_) for (name, type_), one in zip(types.items(), columns, strict=True)})


def _told(error: Exception) -> Exception:
    """Why a job failed: our own error, what the executors lack, a bug as it is; and else Spark cannot read."""
    found = explained(error)
    if isinstance(found, UnreadableFileError | MissingFileError | SparkStorageError):
        return _NotReadable(found.message)
    if isinstance(found, TamisError | PythonException):
        return found
    return _NotReadable(f"Spark cannot read the metadata ({str(error).strip().partition(chr(10))[0]})")


def _noted(plan: ScanPlan, note: str) -> ScanPlan:
    return replace(plan, stats=replace(plan.stats, notes=(*plan.stats.notes, note)))
