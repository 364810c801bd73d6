"""`tamis demo`: what works so far, on tables made on the spot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.predicate.schema import Schema
    from tamis.sieve.files import FileBatch
    from tamis.sieve.partitions import PartitionSpec

__all__ = ["demo"]

DAYS = 60
"""Days of data that the demo's table holds, up to 2024-02-29."""
BUCKETS = 8
FILES_A_BUCKET = 3
FIRST_DAY = 19723
"""2024-01-01, in days since 1970."""
JANUARY, JANUARY_DAYS = 648, 31
"""January 2024, in months since 1970."""
WHERE = "ts >= timestamp '2024-02-10' AND date(ts) < '2024-02-20' AND customer_id IN (7, 4711) AND amount > 990"


def demo() -> None:
    """Show what works so far, on tables made on the spot."""
    from tamis.predicate.bind import bind
    from tamis.predicate.parse import parse
    from tamis.sieve.funnel import sift
    from tamis.sieve.outcome import Sieve
    from tamis.sieve.runtime import RuntimeFilter

    schema, specs, batches = _events()
    predicate = bind(parse(WHERE), schema, sql=WHERE)
    typer.echo(
        "A table whose partitioning has evolved: by nothing, then month(ts), then day(ts) and bucket(customer_id)."
    )
    typer.echo("Which of its files can hold a matching row? Facts alone decide; no file is opened.\n")
    plan = sift(Sieve(predicate, specs), batches)
    typer.echo(plan.explain())
    typer.echo("\nWhy, file by file (one of each):")
    for line in _one_of_each(plan.verdicts.to_pylist()):
        typer.echo(f"  {line}")
    everything = bind(parse("true"), schema)
    keys = RuntimeFilter.of("customer_id", [3, 12, 4711]).bind(schema)
    typer.echo("\nThe keys of a join's small side prune files in the same way:\n")
    typer.echo(sift(Sieve(everything, specs, runtime_filters=(keys,)), batches).explain())


def _one_of_each(verdicts: list[dict[str, str | None]]) -> Iterator[str]:
    """The first file of every layer and verdict."""
    seen: set[tuple[str | None, str | None]] = set()
    for row in verdicts:
        if (row["layer"], row["verdict"]) not in seen:
            seen.add((row["layer"], row["verdict"]))
            yield f"{row['path']}: {row['verdict']}{' by ' + row['layer'] if row['layer'] else ''}: {row['reason']}"


def _events() -> tuple[Schema, tuple[PartitionSpec, ...], list[FileBatch]]:
    """The facts of an evolved table, as a format would read them from its metadata."""
    import pyarrow as pa

    from tamis.predicate.schema import Schema
    from tamis.sieve.partitions import PartitionField, PartitionSpec
    from tamis.sieve.transforms import parse_transform

    schema = Schema.of(
        ts=pa.timestamp("us", "UTC"), customer_id=pa.int64(), amount=pa.decimal128(10, 2), region=pa.string()
    )
    specs = (
        PartitionSpec(0),
        PartitionSpec(1, (PartitionField("ts_month", 1, parse_transform("month")),)),
        PartitionSpec(
            2,
            (
                PartitionField("ts_day", 1, parse_transform("day")),
                PartitionField("customer_id_bucket", 2, parse_transform(f"bucket[{BUCKETS}]")),
            ),
        ),
    )
    third = DAYS // 3
    months = pa.array([JANUARY if day < JANUARY_DAYS else JANUARY + 1 for day in range(third, 2 * third)], pa.int32())
    pairs = [(day, b) for day in range(2 * third, DAYS) for b in range(BUCKETS) for _ in range(FILES_A_BUCKET)]
    partition = [
        pa.array([FIRST_DAY + day for day, _ in pairs], pa.date32()),
        pa.array([b for _, b in pairs], pa.int32()),
    ]
    return (
        schema,
        specs,
        [
            _batch(0, list(range(third)), None),
            _batch(1, list(range(third, 2 * third)), pa.StructArray.from_arrays([months], ["ts_month"])),
            _batch(
                2, [day for day, _ in pairs], pa.StructArray.from_arrays(partition, ["ts_day", "customer_id_bucket"])
            ),
        ],
    )


def _batch(spec_id: int, days: list[int], partition: object) -> FileBatch:
    """A file a day and partition, with true bounds."""
    from decimal import Decimal

    import pyarrow as pa

    from tamis.sieve.domain import ColumnStats
    from tamis.sieve.files import FileBatch

    size, micros = len(days), 86_400_000_000
    starts = [(FIRST_DAY + day) * micros for day in days]
    highest = pa.array([Decimal(f"{500 + 131 * place % 500}.00") for place in range(size)], pa.decimal128(10, 2))
    zero = pa.array([0] * size, pa.int64())
    instants = pa.timestamp("us", "UTC")
    return FileBatch(
        path=pa.array([f"spec{spec_id}/{place:05d}.parquet" for place in range(size)]),
        size=pa.array([32 * 1024**2 + 4096 * place for place in range(size)], pa.int64()),
        rows=pa.array([250_000] * size, pa.int64()),
        spec_id=spec_id,
        partition=partition,
        stats={
            1: ColumnStats(pa.array(starts, instants), pa.array([s + micros - 1 for s in starts], instants), zero),
            2: ColumnStats(pa.array([1] * size, pa.int64()), pa.array([9_999] * size, pa.int64()), zero),
            3: ColumnStats(pa.array([Decimal("0.01")] * size, pa.decimal128(10, 2)), highest, zero),
        },
    )
