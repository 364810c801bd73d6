"""Claim: judging 1,000,000 files takes less than a second, and 50 times less than PyIceberg's evaluator needs.

The predicate is `a >= x AND b IN (1000 values) AND s LIKE 'p%'`, and every file has bounds for all three columns. For
us everything from the SQL text counts: parse, bind, domains from Arrow arrays of bounds, verdicts. For PyIceberg only
the call of its inclusive metrics evaluator counts, on DataFile objects with serialised bounds that were made before:
what `plan_files` runs for each file, on the same facts, over the first files, extrapolated to all.

PyIceberg gives up on a list of more than 200 values, so that its answer is a superset of ours. Both are compared
where they must be equal: without the list, and with the list written as ORs of 200 values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy import typing as npt
from pyiceberg import expressions as ice
from pyiceberg.conversions import to_bytes
from pyiceberg.expressions.visitors import _InclusiveMetricsEvaluator
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema as IcebergSchema
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField, StringType

from bench.harness import Claim, best_of, in_turns, main, require
from tamis.predicate.bind import bind
from tamis.predicate.bound import BoundPredicate
from tamis.predicate.schema import Schema
from tamis.predicate.sql.parse import parse
from tamis.sieve.domain import ColumnStats, Facts, stats_domain
from tamis.sieve.judge import Verdicts, judge

FILES = 1_000_000
PEER_FILES = 20_000
EQUAL_FILES = 2_000
"""Files on which the list is written as ORs: a visit costs PyIceberg a millisecond there."""
LISTED = 1000
PEER_LIMIT = 200
ROWS = 10_000
X = 500_000
KEYS = 10_000_000
LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz", np.uint8)

SCHEMA = Schema.of(a=pa.int64(), b=pa.int64(), s=pa.string())
PEER_SCHEMA = IcebergSchema(
    NestedField(1, "a", LongType()), NestedField(2, "b", LongType()), NestedField(3, "s", StringType())
)
TYPES = (LongType(), LongType(), StringType())


@dataclass(frozen=True, slots=True)
class Bounds:
    """Lower and upper bounds and null counts of the three columns, an entry for each file."""

    stats: tuple[ColumnStats, ...]

    def facts(self, predicate: BoundPredicate) -> Facts:
        """What the statistics prove of the predicate's columns."""
        by_id = {1: self.stats[0], 2: self.stats[1], 3: self.stats[2]}
        return Facts(
            FILES, {column.id: stats_domain(column, by_id[column.id], FILES) for column in predicate.columns}
        )


def make_bounds(rng: np.random.Generator) -> Bounds:
    """Narrow ranges of a, wider ones of b and s, in files that stand in any order; one in a thousand is all null."""
    rows = pa.array(np.full(FILES, ROWS))
    empty = rng.random(FILES) < 0.001
    nulls = pa.array(np.where(empty, ROWS, rng.integers(0, 3, FILES)))
    numbers, listed = rng.integers(0, 2 * X, FILES), rng.integers(0, KEYS, FILES)
    words = np.sort(_words(rng))
    first = rng.integers(0, FILES, FILES)
    last = np.minimum(first + rng.integers(0, FILES // 200, FILES), FILES - 1)
    pairs = (
        (pa.array(numbers), pa.array(numbers + rng.integers(0, 50, FILES))),
        (pa.array(listed), pa.array(listed + rng.integers(0, 20_000, FILES))),
        (_strings(words[first]), _strings(words[last])),
    )
    # A column of nulls has no bounds: with some it would contradict itself, and prove nothing.
    known = pa.array(~empty)
    return Bounds(
        tuple(ColumnStats(*(pc.if_else(known, bound, None) for bound in pair), nulls, None, rows) for pair in pairs)
    )


def _words(rng: np.random.Generator) -> npt.NDArray[np.bytes_]:
    """Sixteen letters each, as long as Iceberg leaves a bound of a string."""
    return LETTERS[rng.integers(0, len(LETTERS), (FILES, 16))].reshape(-1).view("S16")


def _strings(words: npt.NDArray[np.bytes_]) -> pa.Array:
    return pa.array(words, pa.binary()).cast(pa.string())


def data_files(bounds: Bounds, count: int) -> list[DataFile]:
    """The first files as PyIceberg has them after reading a manifest."""
    columns = [
        (
            [None if value is None else to_bytes(type_, value) for value in stats.lower[:count].to_pylist()],
            [None if value is None else to_bytes(type_, value) for value in stats.upper[:count].to_pylist()],
            stats.null_count[:count].to_pylist(),
        )
        for type_, stats in zip(TYPES, bounds.stats, strict=True)
    ]
    return [
        DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=f"s3://bucket/data/{place:08d}.parquet",
            file_format=FileFormat.PARQUET,
            partition=Record(),
            record_count=ROWS,
            file_size_in_bytes=1 << 20,
            value_counts=dict.fromkeys((1, 2, 3), ROWS),
            null_value_counts={id_: nulls[place] for id_, (_, _, nulls) in enumerate(columns, 1)},
            nan_value_counts={},
            lower_bounds={id_: lower[place] for id_, (lower, _, _) in enumerate(columns, 1) if lower[place]},
            upper_bounds={id_: upper[place] for id_, (_, upper, _) in enumerate(columns, 1) if upper[place]},
        )
        for place in range(count)
    ]


def evaluator(*parts: ice.BooleanExpression) -> Callable[[DataFile], bool]:
    """What PyIceberg makes of a scan's row filter, once for a plan."""
    return _InclusiveMetricsEvaluator(PEER_SCHEMA, reduce(ice.And, parts)).eval


def in_parts(values: Sequence[int]) -> ice.BooleanExpression:
    """The list as ORs of lists that PyIceberg does evaluate."""
    parts = [ice.In("b", values[at : at + PEER_LIMIT]) for at in range(0, len(values), PEER_LIMIT)]
    return reduce(ice.Or, parts)


def run() -> list[Claim]:
    rng = np.random.default_rng(7)
    bounds = make_bounds(rng)
    values = sorted(rng.choice(KEYS, LISTED, replace=False).tolist())
    rest = f"a >= {X} AND s LIKE 'p%'"
    where = f"a >= {X} AND b IN ({', '.join(map(str, values))}) AND s LIKE 'p%'"
    files = data_files(bounds, PEER_FILES)
    wide = (ice.GreaterThanOrEqual("a", X), ice.StartsWith("s", "p"))

    def bound(text: str) -> BoundPredicate:
        return bind(parse(text), SCHEMA)

    def ours(text: str = where) -> Verdicts:
        predicate = bound(text)
        return judge(predicate.root, bounds.facts(predicate))

    asked = evaluator(wide[0], ice.In("b", values), wide[1])

    def peer() -> list[bool]:
        return [asked(file) for file in files]

    mine, theirs = in_turns(ours, peer)
    check(mine.result.possible, np.array(theirs.result), ours(rest).possible)
    exact = evaluator(*wide, in_parts(values))
    few = np.array([exact(file) for file in files[:EQUAL_FILES]])
    require(np.array_equal(mine.result.possible[:EQUAL_FILES], few), "ours differs from PyIceberg's on ORs of lists")
    binding = best_of(lambda: bound(where))
    predicate = bound(where)
    domains = best_of(lambda: bounds.facts(predicate))
    kept, few_kept = int(mine.result.possible.sum()), int(mine.result.possible[:PEER_FILES].sum())
    return [
        Claim(
            "judge_million",
            "judge 1,000,000 files: a >= x AND b IN (1000 values) AND s LIKE 'p%'",
            mine.best,
            peer_name="PyIceberg's metrics evaluator",
            peer=theirs.best * FILES / PEER_FILES,
            at_most=1.0,
            at_least=50,
            notes=(
                f"parse and bind {binding.best * 1000:.1f} ms, domains {domains.best * 1000:.0f} ms",
                f"median {mine.median * 1000:.0f} ms, {kept:,} files kept",
                f"peer measured on {PEER_FILES:,} files ({theirs.best / PEER_FILES * 1e6:.1f} µs each), extrapolated",
                f"of these tamis keeps {few_kept:,}, PyIceberg {sum(theirs.result):,}: it gives up on long lists",
            ),
        )
    ]


def check(ours: npt.NDArray[np.bool_], peer: npt.NDArray[np.bool_], without_list: npt.NDArray[np.bool_]) -> None:
    """Ours is a subset; and without the list, on which PyIceberg gives up, both are equal."""
    require(not np.any(ours[: len(peer)] & ~peer), "ours keeps a file that PyIceberg prunes")
    require(np.array_equal(without_list[: len(peer)], peer), "without the list the two sides differ")
    require(0 < ours.sum() < len(ours), "the predicate keeps all or nothing: it compares nothing")


if __name__ == "__main__":
    main(run)
