"""`tamis demo`: what works so far, on a table made on the spot."""

from __future__ import annotations

from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import typer

from tamis.errors import MissingDependency

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

__all__ = ["demo"]

DAYS = 12
"""Days of data in each of the table's three ages; the last one is 2024-02-05."""
ROWS_A_DAY = 400
CUSTOMERS = 10_000
BUCKETS = 4
FIRST_DAY = 19723
"""2024-01-01, in days since 1970."""
DAY = 86_400_000_000
WHERE = "ts >= timestamp '2024-01-30' AND date(ts) < '2024-02-03' AND customer_id IN (7, 4711) AND amount > 1"


def demo() -> None:
    """Make an Iceberg table whose partitioning has evolved, and ask which of its files a query has to read."""
    import tamis
    from tamis.sieve.runtime import RuntimeFilter

    with TemporaryDirectory(prefix="tamis-demo-") as folder:
        typer.echo(
            "An Iceberg table, partitioned by nothing, then by month(ts), then by day(ts) and bucket(customer_id)."
        )
        typer.echo("Which of its files can hold a matching row? Metadata alone decides; no data file is opened.\n")
        table = tamis.open(_made(folder), cache=False)
        plan = table.plan(WHERE)
        typer.echo(plan.explain())
        typer.echo("\nWhy, file by file (one of each):")
        for line in _one_of_each(plan.verdicts.to_pylist()):
            typer.echo(f"  {line}")
        typer.echo("\nThe keys of a join's small side prune files in the same way:\n")
        keys = RuntimeFilter.of("customer_id", [3, 4711])
        typer.echo(table.plan("ts >= timestamp '2024-01-20'", runtime_filters=[keys]).explain())


def _one_of_each(verdicts: list[dict[str, str | None]]) -> Iterator[str]:
    """The first file of every layer and verdict."""
    seen: set[tuple[str | None, str | None]] = set()
    for row in verdicts:
        if (row["layer"], row["verdict"]) not in seen:
            seen.add((row["layer"], row["verdict"]))
            where = f"spec {row['spec_id']}, {row['partition'] or 'no partition'}"
            yield f"{where}: {row['verdict']}{' by ' + row['layer'] if row['layer'] else ''}: {row['reason']}"


def _made(folder: str) -> str:
    """The table's folder. PyIceberg writes it: real manifests, real Parquet files."""
    try:
        from pyiceberg.catalog.sql import SqlCatalog
        from pyiceberg.transforms import BucketTransform, DayTransform, MonthTransform
    except ImportError as error:
        raise MissingDependency(
            "the demo makes an Iceberg table with 'pyiceberg': pip install 'tamis[iceberg]'",
            package="pyiceberg",
            extra="iceberg",
        ) from error
    catalog = SqlCatalog("demo", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    catalog.create_namespace("shop")
    table = catalog.create_table("shop.events", _rows(0).schema)
    for day in range(DAYS):
        table.append(_rows(day))
    with table.update_spec() as change:
        change.add_field("ts", MonthTransform(), "ts_month")
    for day in range(DAYS, 2 * DAYS):
        table.append(_rows(day))
    with table.update_spec() as change:
        change.remove_field("ts_month")
        change.add_field("ts", DayTransform(), "ts_day")
        change.add_field("customer_id", BucketTransform(BUCKETS), "customer_bucket")
    for day in range(2 * DAYS, 3 * DAYS):
        table.append(_rows(day))
    return f"{folder}/shop/events"


def _rows(day: int) -> pa.Table:
    """A day's events; the same on every run."""
    import pyarrow as pa

    count = range(ROWS_A_DAY)
    starts = (FIRST_DAY + day) * DAY
    return pa.table(
        {
            "ts": pa.array([starts + place * DAY // ROWS_A_DAY for place in count], pa.timestamp("us", "UTC")),
            "customer_id": pa.array([(place * 7919 + day * 104_729) % CUSTOMERS for place in count], pa.int64()),
            "amount": pa.array([(place * 31 + day) % 997 / 4 for place in count], pa.float64()),
            "region": pa.array(["eu" if place % 3 else "us" for place in count], pa.string()),
        }
    )
