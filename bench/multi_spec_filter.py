"""Claim: filtering 1,000,000 entries with 10,000 distinct partition keys in 3 specs takes less than half a second.

The table has evolved: `region, day(ts)`, then `bucket[2000](id)`, then `truncate[10](sku), month(ts)`. Entries come
as one Arrow struct array of partition values for each spec; making the filter, finding the distinct keys and judging
each once all count. PyIceberg projects the predicate onto each spec and evaluates partitions with an evaluator for
each spec, entry by entry: measured on the first entries of each spec and extrapolated. A second, kinder peer is the
same with a memo for each key added: every key evaluated once, every entry looked up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa
from numpy import typing as npt
from pyiceberg import expressions as ice
from pyiceberg import partitioning, transforms, types
from pyiceberg.expressions.visitors import expression_evaluator, inclusive_projection
from pyiceberg.schema import Schema as IcebergSchema
from pyiceberg.typedef import Record

from bench.harness import Claim, best_of, in_turns, main, require
from tamis.predicate.bind import bind
from tamis.predicate.schema import Schema
from tamis.predicate.sql.parse import parse
from tamis.sieve.partitions import MultiSpecPartitionFilter, PartitionField, PartitionSpec
from tamis.sieve.transforms import parse_transform

ENTRIES = 1_000_000
PEER_ENTRIES = 60_000
BATCH = 5_000
REGIONS = ("ap", "br", "ca", "eu", "uk")
DAYS, FIRST_DAY = 800, 19_000
BUCKETS = 2000
SKUS, MONTHS, FIRST_MONTH = 100, 40, 624
KEYS = (len(REGIONS) * DAYS, BUCKETS, SKUS * MONTHS)
"""How many keys each spec has."""

SCHEMA = Schema.of(region=pa.string(), ts=pa.timestamp("us"), id=pa.int64(), sku=pa.int32())
SPECS = (
    PartitionSpec(
        0,
        (
            PartitionField("region", 1, parse_transform("identity")),
            PartitionField("ts_day", 2, parse_transform("day")),
        ),
    ),
    PartitionSpec(1, (PartitionField("id_bucket", 3, parse_transform(f"bucket[{BUCKETS}]")),)),
    PartitionSpec(
        2,
        (
            PartitionField("sku_trunc", 4, parse_transform("truncate[10]")),
            PartitionField("ts_month", 2, parse_transform("month")),
        ),
    ),
)
IDS = tuple(range(1000, 1050))
WHERE = (
    "region IN ('eu', 'uk') AND ts >= timestamp_ntz '2023-03-10' AND ts < timestamp_ntz '2023-06-20' "
    f"AND id IN ({', '.join(map(str, IDS))}) AND sku BETWEEN 205 AND 417"
)

PEER_SCHEMA = IcebergSchema(
    types.NestedField(1, "region", types.StringType()),
    types.NestedField(2, "ts", types.TimestampType()),
    types.NestedField(3, "id", types.LongType()),
    types.NestedField(4, "sku", types.IntegerType()),
)
PEER_SPECS = (
    partitioning.PartitionSpec(
        partitioning.PartitionField(1, 1000, transforms.IdentityTransform(), "region"),
        partitioning.PartitionField(2, 1001, transforms.DayTransform(), "ts_day"),
        spec_id=0,
    ),
    partitioning.PartitionSpec(
        partitioning.PartitionField(3, 1002, transforms.BucketTransform(BUCKETS), "id_bucket"), spec_id=1
    ),
    partitioning.PartitionSpec(
        partitioning.PartitionField(4, 1003, transforms.TruncateTransform(10), "sku_trunc"),
        partitioning.PartitionField(2, 1004, transforms.MonthTransform(), "ts_month"),
        spec_id=2,
    ),
)
PEER_WHERE = ice.And(
    ice.In("region", ("eu", "uk")),
    ice.GreaterThanOrEqual("ts", datetime(2023, 3, 10).isoformat()),  # noqa: DTZ001 - a column without zone
    ice.LessThan("ts", datetime(2023, 6, 20).isoformat()),  # noqa: DTZ001 - as above
    ice.In("id", IDS),
    ice.GreaterThanOrEqual("sku", 205),
    ice.LessThanOrEqual("sku", 417),
)

Mask = npt.NDArray[np.bool_]
Evaluator = Callable[[Record], bool]


@dataclass(frozen=True, slots=True)
class Entries:
    """The partition values of one spec's entries: as Arrow for us, and the first of them as PyIceberg's records."""

    partition: pa.StructArray
    records: list[Record]

    def __len__(self) -> int:
        return len(self.partition)


def make_entries(rng: np.random.Generator) -> list[Entries]:
    """A third of the entries for each spec; every key occurs, at first in order and then at random."""
    sizes = (ENTRIES // 3, ENTRIES // 3, ENTRIES - 2 * (ENTRIES // 3))
    keys = [_at_random(rng, size, count) for size, count in zip(sizes, KEYS, strict=True)]
    regions = pa.array(REGIONS)
    columns: list[dict[str, pa.Array]] = [
        {
            "region": regions.take(pa.array(keys[0] % len(REGIONS))),
            "ts_day": pa.array(FIRST_DAY + keys[0] // len(REGIONS), pa.int32()).view(pa.date32()),
        },
        {"id_bucket": pa.array(keys[1], pa.int32())},
        {
            "sku_trunc": pa.array(keys[2] % SKUS * 10, pa.int32()),
            "ts_month": pa.array(FIRST_MONTH + keys[2] // SKUS, pa.int32()),
        },
    ]
    return [_entries(part) for part in columns]


def _at_random(rng: np.random.Generator, size: int, count: int) -> npt.NDArray[np.int64]:
    return np.concatenate([np.arange(count), rng.integers(0, count, size - count)])


def _entries(columns: dict[str, pa.Array]) -> Entries:
    first = [_as_avro(child[: PEER_ENTRIES // 3]).to_pylist() for child in columns.values()]
    records = [Record(*values) for values in zip(*first, strict=True)]
    return Entries(pa.StructArray.from_arrays(list(columns.values()), names=list(columns)), records)


def _as_avro(child: pa.Array) -> pa.Array:
    """A day is a date to Arrow, and the int that Avro holds to PyIceberg's evaluator."""
    return child.view(pa.int32()) if pa.types.is_date32(child.type) else child


def evaluators() -> list[Evaluator]:
    """What PyIceberg makes of a scan's row filter, once for each spec."""
    found = []
    for spec in PEER_SPECS:
        projected = inclusive_projection(PEER_SCHEMA, spec)(PEER_WHERE)
        schema = IcebergSchema(*spec.partition_type(PEER_SCHEMA).fields)
        found.append(expression_evaluator(schema, projected, case_sensitive=True))
    return found


def with_memo(evaluate: Evaluator, records: list[Record], memo: dict[tuple[object, ...], bool]) -> list[bool]:
    """Every entry, evaluated only if its key is new."""
    found = []
    for record in records:
        key = tuple(record._data)  # noqa: SLF001 - the record's own hash makes text of it, ten times slower
        answer = memo.get(key)
        if answer is None:
            answer = memo[key] = evaluate(record)
        found.append(answer)
    return found


def run() -> list[Claim]:
    entries = make_entries(np.random.default_rng(11))
    predicate = bind(parse(WHERE), SCHEMA)

    def ours(size: int = ENTRIES) -> list[Mask]:
        partitions = MultiSpecPartitionFilter(predicate, SPECS)
        found = []
        for spec, part in zip(SPECS, entries, strict=True):
            for start in range(0, len(part), size):
                batch = part.partition[start : start + size]
                keyed = partitions.judge(spec.spec_id, batch, len(batch))
                found.append(keyed.bucket.possible[keyed.codes])
        return found

    def peer() -> list[list[bool]]:
        return [[ask(one) for one in part.records] for ask, part in zip(evaluators(), entries, strict=True)]

    mine, theirs = in_turns(ours, peer)
    for ours_of, theirs_of, spec in zip(mine.result, theirs.result, SPECS, strict=True):
        require(np.array_equal(ours_of[: len(theirs_of)], theirs_of), f"the two sides differ in spec {spec.spec_id}")
    kept = sum(int(part.sum()) for part in mine.result)
    require(0 < kept < ENTRIES, "the predicate keeps all or nothing: it compares nothing")
    keys, lookups = _memo_seconds(entries)
    small = best_of(lambda: ours(BATCH))
    require(np.array_equal(np.concatenate(small.result), np.concatenate(mine.result)), "batches change the answer")
    each = theirs.best / PEER_ENTRIES * 1e6
    says = "filter 1,000,000 entries with 10,000 keys in 3 specs"
    return [
        Claim(
            "multi_spec_filter",
            says,
            mine.best,
            peer_name="PyIceberg, entry by entry",
            peer=theirs.best * ENTRIES / PEER_ENTRIES,
            at_most=0.5,
            notes=(
                f"median {mine.median * 1000:.0f} ms; {kept:,} entries kept",
                f"in batches of {BATCH:,} entries, as manifests come: {small.best * 1000:.0f} ms",
                f"peer measured on {PEER_ENTRIES:,} entries ({each:.1f} µs each), extrapolated",
            ),
        ),
        Claim(
            "multi_spec_memo",
            f"{says}, the peer given a memo",
            mine.best,
            peer_name="PyIceberg with a memo added",
            peer=keys + lookups,
            at_most=0.5,
            notes=(f"peer: {sum(KEYS):,} keys {keys * 1000:.0f} ms; lookups measured on {PEER_ENTRIES:,} entries",),
        ),
    ]


def _memo_seconds(entries: list[Entries]) -> tuple[float, float]:
    """Seconds for every key once, and for looking up every entry."""
    memos: list[dict[tuple[object, ...], bool]] = [{} for _ in SPECS]

    def evaluate_keys() -> None:
        for ask, part, count, memo in zip(evaluators(), entries, KEYS, memos, strict=True):
            memo.clear()
            with_memo(ask, part.records[:count], memo)

    def look_up() -> None:
        for ask, part, memo in zip(evaluators(), entries, memos, strict=True):
            with_memo(ask, part.records, memo)

    keys = best_of(evaluate_keys).best
    require(sum(map(len, memos)) == sum(KEYS), "the first entries do not hold every key")
    return keys, best_of(look_up).best * ENTRIES / PEER_ENTRIES


if __name__ == "__main__":
    main(run)
