"""Files of several specs without a table around them, and plans of their rewrite."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from tamis.predicate.bind import bind
from tamis.predicate.nodes import Constant
from tamis.predicate.schema import Schema
from tamis.predicate.sql.parse import parse
from tamis.rewrite.deletes import DeleteWeights, ListedDeletes
from tamis.rewrite.options import parse_options
from tamis.rewrite.plan import RewriteDataFilesPlanningResult, RewritePlan
from tamis.rewrite.planning import plan_rewrite
from tamis.rewrite.terms import RewriteTerms
from tamis.sieve.domain import ColumnStats
from tamis.sieve.file_buckets import FileBuckets
from tamis.sieve.files import FileBatch
from tamis.sieve.funnel import sift
from tamis.sieve.outcome import Outcome
from tamis.sieve.partitions import PartitionField, PartitionSpec, Undecoded
from tamis.sieve.sieve import Sieve
from tamis.sieve.transforms import parse_transform

__all__ = [
    "SCHEMA",
    "SPECS",
    "TERMS",
    "FakeDeletes",
    "File",
    "batch",
    "group_files",
    "plan_batches",
    "planned",
    "sizes",
]

MB: Final = 1 << 20
SCHEMA: Final = Schema.of(region=pa.string(), ts=pa.timestamp("us"), id=pa.int32(), price=pa.int64())
UNPARTITIONED: Final = PartitionSpec(0)
BY_REGION: Final = PartitionSpec(1, (PartitionField("region", 1, parse_transform("identity")),))
BY_DAY: Final = PartitionSpec(2, (PartitionField("ts_day", 2, parse_transform("day")),))
STRANGE: Final = PartitionSpec(3, (PartitionField("region_z", 1, parse_transform("zorder[2]")),))
SPECS: Final = (UNPARTITIONED, BY_REGION, BY_DAY, STRANGE)
_TYPES: Final = {1: pa.string(), 2: pa.int32(), 3: pa.string()}
_NAMES: Final = {1: "region", 2: "ts_day", 3: "region_z"}


@dataclass(frozen=True, slots=True)
class File:
    """A file of a spec: its partition value, its size, and what else matters to a rewrite."""

    path: str
    size: int | None
    partition: object = None
    spec_id: int = 1
    rows: int = 100
    deletes: int = 0
    deleted: int = 0
    bucket: int | None = None
    group: int | None = None
    price: tuple[int, int] | None = None
    undecoded: str | None = None
    """The value as it is written, if it cannot be decoded."""
    unknown: bool = False
    """Whether it is not even known how it is written."""


class FakeDeletes:
    """Deletes as the files themselves have them."""

    def weigh(self, outcomes: Sequence[Outcome]) -> list[DeleteWeights]:
        return [self._weigh(outcome) for outcome in outcomes]

    def _weigh(self, outcome: Outcome) -> DeleteWeights:
        rows = np.flatnonzero(outcome.kept)
        counts, removed = (
            outcome.batch.extra[name].to_numpy(zero_copy_only=False)[rows] for name in ("deletes", "deleted")
        )
        return DeleteWeights(counts, removed)

    def listed(self, outcomes: Sequence[Outcome], groups: Sequence[Any]) -> ListedDeletes:
        pairs = []
        for outcome, numbers in zip(outcomes, groups, strict=True):
            for row, number in zip(np.flatnonzero(outcome.kept).tolist(), numbers.tolist(), strict=True):
                path = outcome.batch.path[row].as_py()
                pairs += [(number, f"{path}.d{n}") for n in range(outcome.batch.extra["deletes"][row].as_py())]
        pairs.sort()
        return ListedDeletes(
            np.array([number for number, _ in pairs], np.int64), pa.array([path for _, path in pairs], pa.string())
        )


TERMS: Final = RewriteTerms(
    "Iceberg", 512 * MB, tuple(spec.spec_id for spec in SPECS), 1, deletes=lambda _: FakeDeletes()
)


def batch(files: Sequence[File]) -> FileBatch:
    """Files of one spec as a format hands them in."""
    spec_id = files[0].spec_id
    partition, undecoded = None, ()
    if spec_id:
        values = pa.array([None if one.undecoded or one.unknown else one.partition for one in files], _TYPES[spec_id])
        partition = pa.StructArray.from_arrays([values], [_NAMES[spec_id]])
        failed = np.array([bool(one.undecoded or one.unknown) for one in files])
        if failed.any():
            written = pa.array([one.undecoded for one in files], pa.string())
            undecoded = (Undecoded(0, failed, "the value cannot be read", written),)
    buckets = ()
    if any(one.bucket is not None for one in files):
        own = pa.array([one.bucket for one in files], pa.int32())
        buckets = (FileBuckets(own, pa.array([8] * len(files), pa.int32())),)
    lower, upper = (
        pa.array([None if one.price is None else one.price[side] for one in files], pa.int64()) for side in (0, 1)
    )
    return FileBatch(
        path=pa.array([one.path for one in files]),
        size=pa.array([one.size for one in files], pa.int64()),
        rows=pa.array([one.rows for one in files], pa.int64()),
        spec_id=spec_id,
        partition=partition,
        stats={4: ColumnStats(lower=lower, upper=upper)},
        buckets=buckets,
        group=pa.array([one.group for one in files], pa.int32())
        if any(one.group is not None for one in files)
        else None,
        undecoded=undecoded,
        extra={name: pa.array([getattr(one, name) for one in files], pa.int64()) for name in ("deletes", "deleted")},
    )


def batches(files: Iterable[File]) -> list[FileBatch]:
    """A batch for each run of files of one spec."""
    runs: list[list[File]] = []
    for one in files:
        if not runs or runs[-1][0].spec_id != one.spec_id:
            runs.append([])
        runs[-1].append(one)
    return [batch(run) for run in runs]


def planned(
    files: Iterable[File],
    where: str | None = None,
    *,
    strict: bool = False,
    terms: RewriteTerms = TERMS,
    **options: object,
) -> RewriteDataFilesPlanningResult:
    """The plan of a rewrite of these files, a batch for each run of one spec."""
    return plan_batches(batches(files), where, strict=strict, terms=terms, **options)


def plan_batches(
    made: Iterable[FileBatch],
    where: str | None = None,
    *,
    strict: bool = False,
    terms: RewriteTerms = TERMS,
    **options: object,
) -> RewriteDataFilesPlanningResult:
    """The plan of a rewrite of these batches."""
    node = Constant(value=True) if where is None else parse(where)
    sieve = Sieve(bind(node, SCHEMA), SPECS, strict=strict)
    scan = sift(sieve, made).plan
    return plan_rewrite(scan, parse_options(options, terms), terms)


def group_files(plan: RewritePlan) -> list[list[str]]:
    """The paths of each group."""
    return list(plan.groups["files"].to_pylist())


def sizes(paths: str, *megabytes: float, **more: Any) -> list[File]:  # noqa: ANN401 - of a File
    """Files of these sizes, named a0, a1 and so on."""
    made = File("", 0)
    return [
        replace(made, path=f"{paths}{number}", size=int(size * MB), **more) for number, size in enumerate(megabytes)
    ]
