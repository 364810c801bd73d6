"""Which files of the generated tables can hold a match, by the generator's own rules: no planner is asked.

A file is a pure function of its place, here as in IcebergTables.java: its bounds, its partition, its path. It can
hold a match if one of the asked values lies within its bounds and, where it is in a bucket, hashes into that bucket
by Iceberg's specification, for which PyIceberg's own hash stands.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import UUID

from pyiceberg.transforms import BucketTransform
from pyiceberg.types import LongType

from bench.iceberg_tables.queries import DAY, IDS, MASK, REGION, ids, mix
from bench.iceberg_tables.tables import FILES_PER_MANIFEST

__all__ = ["can_match"]

FIRST_DAY: Final = 19_723
DAYS: Final = 365
REGIONS: Final = 20
ID_SPAN: Final = 1_000_000
HOUR: Final = 3_600_000_000
DAY_MICROS: Final = 24 * HOUR
BUCKETS: Final = 16
BUCKET_ERA: Final = 2


@dataclass(frozen=True, slots=True)
class File:
    """What the generator knows of a file."""

    name: str
    id: int
    """The least id; the greatest is ID_SPAN above it."""
    region: str
    start: int
    """The least instant; the greatest is an hour above it, less a microsecond."""
    bucket: int | None
    """The bucket of its ids; None in the eras without buckets."""


def _files(files: int) -> Iterator[File]:
    """The files of a table of so many, as IcebergTables.file makes them."""
    third = (files + 2) // 3
    bucket = BucketTransform(BUCKETS).transform(LongType())
    for place in range(files):
        seed = mix(place)
        start = (FIRST_DAY + place * DAYS // files) * DAY_MICROS + seed % (DAY_MICROS - HOUR)
        least = mix(seed) % IDS
        era = place // FILES_PER_MANIFEST * FILES_PER_MANIFEST // third
        name = UUID(int=((seed & MASK) << 64) | (mix(seed + 3) & MASK))
        region = f"region-{mix(seed + 1) % REGIONS:02d}"
        yield File(f"{name}.parquet", least, region, start, bucket(least) if era == BUCKET_ERA else None)


def can_match(location: Path, files: int) -> dict[str, set[str]]:
    """For each question the paths of the files that can hold a match."""
    asked = sorted(ids())
    bucket = BucketTransform(BUCKETS).transform(LongType())
    buckets = [bucket(one) for one in asked]
    begin = int(DAY.timestamp()) * 1_000_000
    found: dict[str, set[str]] = {"all": set(), "region": set(), "in200": set(), "day": set()}
    for file in _files(files):
        path = f"{location}/data/{file.name}"
        found["all"].add(path)
        if file.region == REGION:
            found["region"].add(path)
        within = buckets[bisect_left(asked, file.id) : bisect_right(asked, file.id + ID_SPAN)]
        if file.bucket in within if file.bucket is not None else within:
            found["in200"].add(path)
        if file.start < begin + DAY_MICROS and file.start + HOUR - 1 >= begin:
            found["day"].add(path)
    return found
